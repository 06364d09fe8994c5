"""Errors in common: correlations a second way, and three real judges that err alike and pass for three."""

import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.commands.check.panel import panel, unanimous
from curate.core.model_family import begins_as, family
from curate.core.scale import FIVE
from curate.panel import judge_dependence
from curate.panel.judge_dependence import Dependence, effective, effective_number, together, warnings, worth
from curate.stats import agreement
from curate.stats.tally import tally
from curate.view.words import strings
from tests.support.records import partly

Judged = tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.str_]]
WORDS = strings("en")["dependence"]
ALIKE = ("h2oloo-fewself", "willia-umbrela1", "Olz-gpt4o")
"""Of the five these three err together."""


@pytest.fixture(scope="session")
def llmjudge(shared_data: Path) -> Judged:
    """Return names of judges, their grades from 0 to 3, people's, and the query of each pair."""
    with (shared_data / "multirater" / "llmjudge_8queries_5judges.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    names = list(rows[0])[3:]
    grades = np.array([[int(float(row[name])) for name in names] for row in rows])
    return names, grades, np.array([int(row["human"]) for row in rows]), np.array([row["query_id"] for row in rows])


def errors(grades: npt.NDArray[np.int64], human: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return np.asarray((grades >= 2).astype(float) - (human >= 2)[:, None], dtype=np.float64)


def test_three_real_judges_that_err_alike_are_worth_hardly_more_than_one(llmjudge: Judged) -> None:
    names, grades, human, queries = llmjudge
    mine = grades[:, [names.index(name) for name in ALIKE]]
    found = effective(errors(mine, human), queries, 7)
    assert found is not None
    assert (round(found.rho or 0, 3), round(found.value or 0, 2)) == (0.836, 1.12)
    assert found.low is not None
    assert found.high is not None
    assert 1 <= found.low < found.high < 1.3
    same = (mine == mine[:, :1]).all(axis=1)
    assert round(float((mine[same, 0] == human[same]).mean()), 2) == 0.71
    whole = effective(errors(grades, human), queries, 7)
    assert whole is not None
    assert 1.3 < (whole.value or 0) < 1.6


def test_the_warning_applies_to_real_judges_that_err_alike_and_to_no_other(llmjudge: Judged) -> None:
    names, grades, human, _ = llmjudge
    found = together(names, grades, errors(grades, human), dict.fromkeys(names))
    flagged = {frozenset((each.first, each.second)) for each in found if each.near}
    assert flagged == {frozenset(pair) for pair in ((ALIKE[0], ALIKE[1]), (ALIKE[0], ALIKE[2]), (ALIKE[1], ALIKE[2]))}


def test_near_clones_agree_almost_wholly_and_are_right_as_seldom_as_one_of_them(llmjudge: Judged) -> None:
    """Three copies of one real judge, a few of whose grades differ: kappa is no measure of quality."""
    names, grades, human, queries = llmjudge
    one = grades[:, names.index("NISTRetrieval-reason0")]
    random = np.random.default_rng(7)
    copies = np.column_stack([np.where(random.random(len(one)) < 0.0015, 3 - one, one) for _ in range(3)])
    kappa = agreement.summary(tally(copies, 4)).fleiss
    assert kappa is not None
    assert kappa >= 0.997
    agreed = (copies == copies[:, :1]).all(axis=1)
    assert 0.42 <= float((copies[agreed, 0] == human[agreed]).mean()) <= 0.46
    assert all(each.near for each in together(["a", "b", "c"], copies, None, {}))
    worth = effective(errors(copies, human), queries, 7)
    assert worth is not None
    assert (worth.value or 9) < 1.01


def test_without_people_no_real_raters_pass_for_clones(llmjudge: Judged, shared_data: Path) -> None:
    """Neither five real judges nor three personas of one model, on the grades or on the cut; exact copies do."""
    names, grades, _, _ = llmjudge
    table = pl.read_csv(shared_data / "panel" / "ratings.tsv", separator="\t")
    personas = table.pivot(on="assessor", index=["query_id", "doc_id"], values="grade").drop("query_id", "doc_id")
    codes = personas.select(pl.all().replace_strict(dict(zip("SABCD", range(5), strict=True)))).to_numpy()
    for who, said in ((names, grades), (personas.columns, codes), (personas.columns, (codes > 1).astype(int))):
        assert [each.near for each in together(who, said, None, {})] == [False] * (len(who) * (len(who) - 1) // 2)
    low = [each.kappa_low or 0 for each in together(personas.columns, codes, None, {})]
    assert 0.78 < min(low) <= max(low) < 0.80
    twice = together(["a", "b"], np.column_stack([codes[:, 0], codes[:, 0]]), None, {})
    assert twice[0].near
    assert together(["a", "b"], np.tile(codes[:20, :1], 2), None, {})[0].near is None, "twenty pairs are too few"


def test_the_lower_bound_of_kappa_holds_for_independent_pairs() -> None:
    """Two judges who are equal on 90 % of the items: at most 2.5 % of the bounds lie above the true kappa."""
    random, above = np.random.default_rng(4), 0
    for _ in range(400):
        first = random.integers(0, 4, 300)
        second = np.where(random.random(300) < 0.1, (first + random.integers(1, 4, 300)) % 4, first)
        low = together(["a", "b"], np.column_stack([first, second]), None, {})[0].kappa_low
        above += (low or 0) > 1 - 0.1 / 0.75
    assert above / 400 <= 0.045


def test_a_panel_is_told_of_its_kin_and_what_it_is_worth() -> None:
    grades = {"one": "SSBBDD", "two": "SSBBDC", "three": "SBBADD"}
    rows = [(f"q{n // 2}", f"d{n}", name, grade) for name, said in grades.items() for n, grade in enumerate(said)]
    schema = ["query_id", "doc_id", "judge", "grade"]
    ratings = pl.DataFrame(rows, schema, orient="row")
    people = pl.DataFrame(
        [(f"q{n // 2}", f"d{n}", g, 1.0) for n, g in enumerate("SBBADD")],
        [*schema[:2], "grade", "weight"],
        orient="row",
    )
    found = panel(ratings, list(grades), people, {"one": "gpt", "two": "gpt", "three": "llama"}, 7, FIVE)
    assert (found.clones, found.families) == ((("one", "two"),), {"gpt": ("one", "two")})
    assert warnings(found, WORDS) == [
        "near-identical judges: one and two: one family (gpt), errors correlate at 1.00",
        "judges of one family (gpt): one, two",
        "judges that err alike agree: kappa of such a panel says little of its quality",
    ]
    assert found.effective is None  # the third never errs: its errors correlate with nothing
    assert found.not_measured == "errors"
    assert found.unanimous_as_people is not None
    silent = panel(ratings, list(grades), people.clear(), {}, 7, FIVE)
    assert (silent.effective, silent.unanimous_as_people) == (None, None)
    assert worth(silent, WORDS).endswith("not measured (no grades by people of what all of them rated)")


def test_unanimous_pairs_are_those_with_one_grade_by_all() -> None:
    codes = np.array([[0, 0], [1, 1], [2, 3], [4, 4], [-1, -1]])
    people = pl.Series(["S", "B", "B", None, "D"])
    found = unanimous(codes, people, np.ones(5), FIVE)
    assert found is not None
    assert (found.value, found.answered) == (0.5, 2)
    weighed = unanimous(codes, people, np.array([3.0, 1, 1, np.nan, 1]), FIVE)
    assert weighed is not None
    assert weighed.value == 0.75


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-4o-2024-08-06", "gpt"),
        ("openai/gpt-4o-mini", "gpt"),
        ("DeepSeek-V3", "deepseek"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "qwen"),
        ("4o", None),
        ("BAAI/bge-m3", "bge"),
        ("BAAI/llm-embedder", "bge"),
        ("multilingual-e5-large", "e5"),
        ("intfloat/e5-mistral-7b-instruct", "mistral"),
        ("sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2", "minilm"),
        ("sentence-transformers/all-MiniLM-L6-v2", "minilm"),
        ("text-embedding-3-large", "gpt"),
        ("mistralai/Mixtral-8x7B", "mistral"),
        ("moonshot-v1-8k", "kimi"),
        ("acme/ranker-2", "ranker"),
    ],
)
def test_a_family_is_known_by_the_spellings_of_its_models_and_vendors(model: str, expected: str | None) -> None:
    assert family(model) == expected


def test_a_declared_family_counts_as_its_vendor_is_spelled_and_raters_are_models_by_their_beginning() -> None:
    assert family("m-1", "BAAI") == family("bge-m3") == "bge"
    assert family("gpt-4o", "Our own 2") == "Our own 2"
    given = ("ChatGPT-4", "qwen_max", "stella", "o1", "王医生")
    assert [begins_as(name) for name in given] == ["gpt", "qwen", None, None, None]


def test_the_effective_number_at_its_ends() -> None:
    assert effective_number(3, 0.0) == 3
    assert effective_number(3, 1.0) == 1
    assert [effective_number(2, rho) for rho in (-0.1, -1.0)] == [2, 2], "never more than there are"
    assert effective(np.zeros((5, 3)), np.arange(5), 7) is None
    assert effective(np.zeros((5, 1)), np.arange(5), 7) is None


def test_judges_whose_errors_cancel_are_no_more_than_they_are() -> None:
    """Two who never err on one pair: rho is below 0."""
    wrong = np.zeros((40, 2))
    wrong[:9, 0], wrong[9:18, 1] = 1, -1
    wrong[18:25] = [1, -1]
    found = effective(wrong, np.arange(40), 7)
    assert found is not None
    assert (found.rho or 0) < 0
    assert found.high == found.value == 2
    assert (found.low or 9) <= 2
    said = worth(partly(Dependence, effective=found), WORDS)
    assert said.startswith("effective number of judges: 2.00 of 2 (")


def test_the_effective_number_is_that_of_equally_good_independent_judges() -> None:
    """The mean of m correlated judges varies as that of so many independent ones."""
    random, rho, judges = np.random.default_rng(2), 0.4, 4
    shared, own = random.normal(size=(200_000, 1)), random.normal(size=(200_000, judges))
    wrong = np.sqrt(rho) * shared + np.sqrt(1 - rho) * own
    found = effective(wrong, np.arange(200_000) % 50, 7)
    assert found is not None
    assert found.value == pytest.approx(wrong.var(axis=0).mean() / wrong.mean(axis=1).var(), rel=0.01)
    assert found.rho == pytest.approx(rho, abs=0.01)


@pytest.mark.slow
@given(st.integers(0, 10_000), st.integers(1, 5))
def test_a_pair_of_a_sample_counts_for_those_it_stands_for(seed: int, most: int) -> None:
    """Weights do what so many equal pairs would, of one query each, and what never varies stays undefined."""
    random = np.random.default_rng(seed)
    wrong, times = random.integers(-1, 2, (40, 3)).astype(float), random.integers(1, most + 1, 40)
    found, whole = (
        effective(wrong, np.arange(40), seed, times),
        effective(np.repeat(wrong, times, axis=0), np.repeat(np.arange(40), times), seed),
    )
    assert found is not None
    assert whole is not None
    ends = ("rho", "rho_low", "rho_high")
    assert [getattr(found, end) for end in ends] == pytest.approx([getattr(whole, end) for end in ends])
    names = ["a", "b", "c"]
    said = np.zeros(wrong.shape, dtype=np.int64)
    one, other = together(names, said, wrong, {}, times), together(names, said, np.repeat(wrong, times, axis=0), {})
    assert [each.errors for each in one] == pytest.approx([each.errors for each in other])
    wrong[:, 0] = 1
    assert effective(wrong, np.arange(40), seed, times / 7) is None


@pytest.mark.slow
@given(st.integers(0, 10_000), st.integers(2, 5))
def test_rho_is_the_mean_of_numpys_correlations(seed: int, judges: int) -> None:
    wrong = np.random.default_rng(seed).integers(-1, 2, (40, judges)).astype(float)
    found = effective(wrong, np.arange(40) % 7, seed)
    matrix = np.corrcoef(wrong.T)
    assert found is not None
    assert found.rho == pytest.approx(matrix[np.triu_indices(judges, 1)].mean())
    pairs = together([str(n) for n in range(judges)], wrong.astype(np.int64) + 1, wrong, {})
    assert [each.errors for each in pairs] == pytest.approx(list(matrix[np.triu_indices(judges, 1)]))
    assert all(each.near == ((each.errors or 0) >= judge_dependence.ERRORS) for each in pairs)


def test_judges_whose_errors_nobody_measured_are_not_called_independent() -> None:
    codes = np.array([[0, 1], [1, 0], [0, 0], [1, 1]] * 5)
    [unmeasured] = together(["one", "two"], codes, None, {})
    assert judge_dependence.row(unmeasured)["near-identical"] == "not measured"
    [measured] = together(["one", "two"], codes, codes - 0.5, {})
    assert judge_dependence.row(measured)["near-identical"] == "no"
