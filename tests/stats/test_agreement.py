"""Published worked examples, cases that are not defined, and refused input."""

import csv
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from curate.core.errors import DataError
from curate.stats.agreement import (
    ac,
    alpha,
    cohen,
    fleiss,
    measure,
    percent,
    prevalence,
    randolph,
    scalar,
    specific,
    summary,
)
from curate.stats.tally import Codes, Crosstab, Tally, crosstab, tally

JUDGES = ["h2oloo-fewself", "willia-umbrela1", "RMITIR-llama70B", "Olz-gpt4o", "NISTRetrieval-reason0"]


def rows(folder: Path, name: str, first: int) -> npt.NDArray[np.float64]:
    """Read a table without its header and its first columns; an empty cell is NaN."""
    with (folder / "multirater" / name).open(encoding="utf-8", newline="") as file:
        return np.array([[float(cell or "nan") for cell in row[first:]] for row in list(csv.reader(file))[1:]])


@pytest.fixture
def expected(shared_data: Path) -> Any:
    return json.loads((shared_data / "multirater" / "expected.json").read_text(encoding="utf-8"))


def printed(found: npt.ArrayLike, figure: float) -> bool:
    """Say whether a figure is the one that was printed, to all its decimals."""
    decimals = len(str(figure).partition(".")[2])
    return round(float(np.asarray(found)), decimals) == figure


def test_fleiss_1971(shared_data: Path, expected: Any) -> None:
    want = expected["fleiss1971_diagnoses.csv"]
    codes = rows(shared_data, "fleiss1971_diagnoses.csv", 1) - 1
    found, sums = measure(codes, 5), tally(codes, 5).sums()
    assert (found.items, found.under_two, found.unanimous, found.estimator) == (30, 0, 5, "complete")
    assert found.fleiss is not None
    assert printed(found.fleiss, want["published"]["fleiss_kappa"])
    assert printed(found.fleiss, want["computed"]["fleiss_kappa"])
    assert printed(randolph(sums), want["computed"]["randolph"])
    assert found.alpha_nominal is not None
    assert printed(found.alpha_nominal, want["computed"]["krippendorff_nominal"])
    # z by Fleiss, Nee and Landis (1979): kappa over its standard error when raters only guess.
    p = np.array(found.prevalence, dtype=float)
    q = 1 - p
    spread = (p * q).sum()
    error = np.sqrt(2 / (30 * 6 * 5)) * np.sqrt(spread**2 - (p * q * (q - p)).sum()) / spread
    assert printed(found.fleiss / error, want["published"]["z"])


def test_wikipedia_counts(shared_data: Path, expected: Any) -> None:
    want = expected["wikipedia_fleiss_counts.csv"]
    counts = rows(shared_data, "wikipedia_fleiss_counts.csv", 1)
    found = summary(Tally(counts.astype(np.int64), np.arange(len(counts))))
    assert found.fleiss is not None
    assert found.percent is not None
    assert printed(found.fleiss, want["published"]["fleiss_kappa"])
    assert printed(found.fleiss, want["computed"]["fleiss_kappa"])
    assert printed(found.percent, want["published"]["P_bar"])
    assert printed(sum(part**2 for part in found.prevalence if part), want["published"]["Pe_bar"])


def test_gwet_missing(shared_data: Path, expected: Any) -> None:
    want = expected["gwet_4raters_missing.csv"]
    codes = rows(shared_data, "gwet_4raters_missing.csv", 1) - 1
    found, sums = measure(codes, 5), tally(codes, 5).sums()
    assert (found.items, found.under_two, found.estimator) == (12, 1, "gwet")
    published, computed = want["published"], want["computed"]
    assert printed(fleiss(sums), published["fleiss_kappa"])
    assert printed(fleiss(sums), computed["fleiss_kappa_gwet_missing"])
    assert printed(ac(sums), published["gwet_ac1"])
    assert printed(ac(sums), computed["gwet_ac1"])
    assert printed(alpha(sums), published["krippendorff_alpha_nominal"])
    assert printed(alpha(sums), computed["krippendorff_nominal_irrCAC"])
    assert printed(alpha(sums), computed["krippendorff_nominal"])
    assert printed(alpha(sums, "ordinal"), computed["krippendorff_ordinal"])
    assert printed(alpha(sums, "interval"), computed["krippendorff_interval"])
    levels = (alpha(sums), alpha(sums, "ordinal"), alpha(sums, "interval"))
    assert [round(float(x), 3) for x in levels] == [0.743, 0.815, 0.849]
    kappa, agreed, chance = computed["fleiss_unequal_n_item_mean"]
    assert printed(fleiss(sums, "drop"), kappa)
    assert printed(percent(sums), agreed)
    pooled = sums.counts / sums.counts.sum()
    assert printed((pooled**2).sum(), chance)
    dropped = measure(codes, 5, missing="drop")
    assert dropped.estimator == "drop"
    assert dropped.fleiss == scalar(fleiss(sums, "drop"))
    assert (found.fleiss, found.ac1) == (scalar(fleiss(sums)), scalar(ac(sums)))


def test_cohen_sas(shared_data: Path, expected: Any) -> None:
    want = expected["cohen_sas_table.csv"]
    table = rows(shared_data, "cohen_sas_table.csv", 1)
    for source in ("published", "computed"):
        assert printed(cohen(Crosstab(table)), want[source]["cohen_kappa"])
        assert printed(cohen(Crosstab(table), "linear"), want[source]["linear_weighted"])
    # The asymptotic standard error is the delta method's: how kappa changes with the weight of each cell.
    step = 1e-6 * np.eye(9).reshape(9, 3, 3)
    slope = (cohen(Crosstab(table + step)) - cohen(Crosstab(table - step))) / 2e-6 * table.sum()
    part = (table / table.sum()).ravel()
    error = np.sqrt(((part * slope**2).sum() - (part @ slope) ** 2) / table.sum())
    assert printed(error, want["published"]["ase"])


@pytest.mark.parametrize("counts", [[[6, 1, 0], [0, 7, 0]], [[7, 1], [3, 5]]])
def test_randolph_counts(expected: Any, counts: list[list[int]]) -> None:
    text = str(counts).replace(" ", "")
    (want,) = (value for key, value in expected["degenerate_cases"].items() if key.startswith(text))
    ratings = Tally(np.array(counts), np.arange(2))
    assert printed(fleiss(ratings.sums()), want["fleiss"])
    assert summary(ratings).fleiss == pytest.approx(float(fleiss(ratings.sums())), abs=1e-12)
    assert printed(randolph(ratings.sums()), want["randolph"])


def test_llm_judges(shared_data: Path, expected: Any) -> None:
    want = expected["llmjudge_8queries_5judges.csv"]["computed"]
    codes = rows(shared_data, "llmjudge_8queries_5judges.csv", 2)
    human, panel = codes[:, 0], codes[:, 1:]
    # One judge wrote a 5 on a scale from 0 to 3, twice. No one reading of it gives all printed figures: Fleiss' kappa
    # fits a 3 there (a 2 as well), Cohen's kappa a category of its own.
    with pytest.raises(DataError, match="row 580, column 2: found 5"):
        measure(panel, 4)
    graded, binary = measure(np.minimum(panel, 3), 4), measure(panel >= 2, 2)
    assert graded.items == binary.items == 1337
    assert graded.fleiss is not None
    assert binary.fleiss is not None
    assert printed(graded.fleiss, want["fleiss_4way"])
    assert printed(binary.fleiss, want["fleiss_binary_ge2"])
    assert binary.unanimous == want["unanimous_binary"]
    for place, judge in enumerate(JUDGES):
        assert printed(cohen(crosstab(panel[:, place], human, 6)), want["cohen_4way_vs_human"][judge])


@pytest.mark.parametrize("missing", [False, True])
def test_one_category_only(missing: bool) -> None:
    found = measure([[2, 2, 2], [2, 2, -1 if missing else 2]], 5)
    assert (found.fleiss, found.alpha_nominal, found.alpha_ordinal) == (None, None, None)
    assert (found.percent, found.ac1, found.unanimous) == (1, 1, 2)
    assert list(found.prevalence) == [0, 0, 1, 0, 0]
    assert list(found.specific) == [None, None, 1, None, None]
    sums = tally([[2, 2]], 5).sums()
    assert scalar(alpha(sums, "interval")) is None
    assert scalar(fleiss(sums, "drop")) is None
    assert scalar(randolph(sums)) == 1
    assert scalar(cohen(crosstab([2, 2], [2, 2], 5))) is None


def test_other_category_in_a_single_rating_defines_no_kappa() -> None:
    found = measure([[1, 1], [0, -1]], 2)
    assert (found.fleiss, found.alpha_nominal, found.percent) == (None, None, 1)
    assert found.prevalence == (0.5, 0.5)


@pytest.mark.parametrize("codes", [[[0], [1]], [[0, None], [None, 1]], [[-1, 0], [1, -1]]])
def test_no_two_ratings_anywhere(codes: Codes) -> None:
    found = measure(codes, 2)
    measures = (found.percent, found.fleiss, found.alpha_nominal, found.alpha_ordinal, found.ac1)
    assert measures == (None, None, None, None, None)
    assert (found.items, found.under_two, found.unanimous) == (2, 2, 0)
    assert found.prevalence == (0.5, 0.5)
    assert found.specific == (None, None)
    assert np.isnan(randolph(tally(codes, 2).sums()))


@pytest.mark.parametrize("codes", [np.empty((0, 3)), np.empty((4, 0)), np.full((1, 2), np.nan)])
def test_no_rating_at_all(codes: Codes) -> None:
    found = measure(codes, 3)
    assert found.items == found.under_two == len(np.asarray(codes))
    assert {found.percent, found.fleiss, found.alpha_nominal, found.ac1, *found.prevalence} == {None}


def test_cohen_needs_a_common_item_and_two_categories() -> None:
    assert scalar(cohen(crosstab([0, None], [None, 1], 2))) is None
    assert scalar(cohen(crosstab([0, 0], [1, 1], 2))) == 0


def test_unrated_items_leave_the_rest_complete() -> None:
    pairs = [[0, 0], [0, 1], [1, 1]]
    rated, more = measure(pairs, 2), measure([*pairs, [-1, -1]], 2)
    assert more.estimator == "complete"
    assert (more.items, more.under_two) == (4, 1)
    assert asdict(more) | {"items": 3, "under_two": 0} == asdict(rated)


def test_disagreement_by_eye() -> None:
    """Two raters agree on half of four items, half of the ratings are 1: kappa 0, and AC1 as well."""
    found = measure([[0, 0], [1, 1], [0, 1], [1, 0]], 2)
    assert (found.percent, found.fleiss, found.ac1, found.unanimous) == (0.5, 0, 0, 2)
    assert found.specific == (0.5, 0.5)
    opposed = measure([[0, 1], [1, 0]], 2)
    assert (opposed.percent, opposed.fleiss, opposed.specific) == (0, -1, (0, 0))


def test_weighted_agreement_forgives_neighbours() -> None:
    """D against C is a fifth of the way on a scale of six, so AC2 sees four fifths of agreement."""
    sums = tally([[0, 1], [4, 5]], 6).sums()
    observed = float((sums.pairs * (1 - np.abs(np.subtract.outer(range(6), range(6))) / 5)).sum() / sums.paired)
    assert observed == pytest.approx(0.8)
    assert float(ac(sums)) < 0 < float(ac(sums, "linear")) < float(ac(sums, "quadratic"))


def test_specific_agreement_weighs_items_alike() -> None:
    """Three raters split 2 to 1: of the pairs that hold a 0, one in two is 0 and 0; those with a 1 never agree."""
    sums = tally([[0, 0, 1]], 2).sums()
    assert specific(sums).tolist() == [0.5, 0]
    assert prevalence(sums).tolist() == pytest.approx([2 / 3, 1 / 3])
