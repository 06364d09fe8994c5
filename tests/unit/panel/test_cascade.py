"""Cascades: what is left out cannot change a verdict, or a positive; the sample is drawn before anybody answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.ask.judges.replay import record
from curate.core.config import Settings
from curate.core.scale import FIVE
from curate.panel import cascade
from curate.panel.voting import unanimous
from curate.system.files import read_json
from tests import vendor as fake
from tests.support.pools import QUERIES, pooled, said, step, table
from tests.vendor import vendor

JUDGES = ["a", "b", "c"]
MODES: tuple[cascade.Mode, ...] = ("exact", "positives")
PAIR = ["query_id", "doc_id"]
Grades = Mapping[str, Sequence[str | None]]
"""Judge -> its grade of document 0, 1, ...; None is a rating that failed."""


def pairs(number: int) -> pl.DataFrame:
    return pl.DataFrame({"query_id": ["q"] * number, "doc_id": [f"d{place:04}" for place in range(number)]})


def ratings(grades: Grades, judge: str) -> pl.DataFrame:
    given_ = pl.Series("grade", grades[judge], pl.String)
    status = pl.when(pl.col("grade").is_null()).then(pl.lit("failed")).otherwise(pl.lit("rated"))
    return pairs(len(given_)).with_columns(given_, judge=pl.lit(judge)).with_columns(status=status)


def judged(grades: Grades, mode: cascade.Mode | None, always: pl.DataFrame) -> tuple[pl.DataFrame, list[int]]:
    """Return the verdicts of a panel that answers as it is asked, and how many pairs each judge was asked for."""
    everything = pairs(len(grades["a"]))
    rows: list[pl.DataFrame] = []
    asked: list[int] = []
    for judge in JUDGES:
        wanted = cascade.wanted(everything, rows, mode, always, JUDGES, "unanimous", FIVE) if mode else everything
        asked.append(len(wanted))
        answers = ratings(grades, judge)
        stopped = answers.join(wanted, on=PAIR, how="anti").with_columns(
            grade=pl.lit(None, pl.String), status=pl.lit("stopped")
        )
        rows.append(pl.concat([answers.join(wanted, on=PAIR, how="semi"), stopped.select(answers.columns)]))
    return unanimous(pl.concat(rows), JUDGES, FIVE).select(*PAIR, "verdict"), asked


panels = st.integers(1, 60).flatmap(
    lambda number: st.fixed_dictionaries(
        {judge: st.lists(st.sampled_from([*FIVE.labels, None]), min_size=number, max_size=number) for judge in JUDGES}
    )
)


@pytest.mark.slow
@given(panels, st.integers(0, 20))
def test_exact_gives_the_verdicts_of_the_whole_panel(grades: Grades, least: int) -> None:
    always = cascade.sample(pairs(len(grades["a"])), 0.1, least, seed=1)
    whole, _ = judged(grades, None, always)
    found, asked = judged(grades, "exact", always)
    assert found.equals(whole)
    assert asked[0] == len(grades["a"])


@pytest.mark.slow
@given(panels, st.integers(0, 20))
def test_positives_gives_its_positives_and_takes_nothing_else_for_one(grades: Grades, least: int) -> None:
    always = cascade.sample(pairs(len(grades["a"])), 0.1, least, seed=1)
    whole, _ = judged(grades, None, always)
    found, asked = judged(grades, "positives", always)
    positive = pl.col("verdict") == "relevant"
    assert found.filter(positive).equals(whole.filter(positive))
    both = whole.join(found, on=PAIR, suffix="_found").filter(pl.col("verdict") != pl.col("verdict_found"))
    assert set(both["verdict_found"]) <= {"not positive", "contested"}
    assert "relevant" not in set(both["verdict"])
    assert asked == sorted(asked, reverse=True)
    sampled = found.join(always, on=PAIR, how="semi")
    assert sampled.equals(whole.join(always, on=PAIR, how="semi"))


def test_the_sample_depends_on_the_seed_and_the_pairs_alone() -> None:
    many = pairs(5000)
    one = cascade.sample(many, 0.05, 100, seed=1)
    assert len(one) == 250
    assert one.equals(cascade.sample(many.sample(fraction=1, shuffle=True, seed=3), 0.05, 100, seed=1))
    assert not one.equals(cascade.sample(many, 0.05, 100, seed=2))
    assert len(cascade.sample(many, 0.05, 1000, seed=1)) == 1000
    assert len(cascade.sample(pairs(7), 0.05, 1000, seed=1)) == 7


def test_what_is_saved_is_a_share_of_all_ratings() -> None:
    assert cascade.saved(10, [10, 5, 3]) == pytest.approx(0.4)
    assert cascade.saved(0, []) is None


def test_savings_on_real_grades(shared_data: Path) -> None:
    """Three runs of one model, which are asked in the order of their names."""
    types = dict.fromkeys([*PAIR, "assessor", "grade"], pl.String)
    rows = pl.read_csv(shared_data / "panel" / "ratings.tsv", separator="\t", schema_overrides=types)
    rows = rows.with_columns(judge="assessor", status=pl.lit("rated"))
    frames = [part for _, part in rows.sort("assessor").group_by("assessor", maintain_order=True)]
    names = sorted(rows["assessor"].unique())
    everything, none = frames[0].select(PAIR), frames[0].select(PAIR).clear()
    found = {}
    for mode in MODES:
        asked = [
            len(cascade.wanted(everything, frames[:place], mode, none, names, "unanimous", FIVE))
            for place in range(len(frames))
        ]
        found[mode] = cascade.saved(len(everything), asked)
    assert found == {"exact": pytest.approx(0.01, abs=0.01), "positives": pytest.approx(0.54, abs=0.02)}


# The stage


def answers(_query: str, passage: str) -> str:
    return passage[-1]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_cascade_asks_the_cheapest_first_and_says_what_it_saved(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three models that agree on the passage's last letter but for one that is dearer and finds everything bad."""
    monkeypatch.setattr("curate.ask.panel_run.LEAST", 4)
    texts = {f"d{n:02}": f"段落{n} {'SABCD'[n % 5]}" for n in range(30)}
    run = pooled(tmp_path / "run", texts)
    price = {"cheap": 1.0, "fair": 5.0, "dear": 30.0}
    with vendor(
        answers, lambda call: fake.edit(lambda said: dict.fromkeys(said, "D")) if call.model == "fair" else None
    ) as server:
        judges: dict[str, Settings] = {
            name: {
                "kind": "openai",
                "model": name,
                "base_url": server.url,
                "price": {"input": cost, "output": cost, "date": "2026-01-01"},
            }
            for name, cost in price.items()
        }
        settings: Settings = {"models": ["dear", "cheap", "fair"], "cascade": mode, "cascade_sample": 0.0}
        report = step(run, "judge", settings, judges, max_cost=1.0)
        order = list(dict.fromkeys(call.model for call in server.calls))
        assert order == ["cheap", "fair", "dear"]
    everything = len(QUERIES) * len(texts)
    found: Any = report.facts["cascade"]
    asked = found["asked"]
    assert asked["cheap"] == everything
    relevant = everything * 2 // 5
    sample = table(run, "judge", "samples")
    assert len(sample) == 4
    if mode == "positives":
        assert relevant <= asked["fair"] <= relevant + 4
        assert asked["dear"] <= 4  # fair found everything bad, so only the sample is left
    else:
        assert asked["fair"] == everything
        assert everything - relevant <= asked["dear"] <= everything - relevant + 4
    status = set(said(run, "dear").values())
    assert "stopped" in status
    assert report.unfinished == ""
    step(run, "consensus")
    verdicts = set(table(run, "consensus", "verdicts")["verdict"])
    assert verdicts <= (
        {"not relevant", "contested", "not positive"} if mode == "positives" else {"not relevant", "contested"}
    )
    figures = read_json(run / "consensus" / "agreement.json")
    assert figures["all_grades"]["items"] == 4
    record(run, tmp_path / "said.tsv")
    again = pooled(tmp_path / "again", texts)
    recorded: dict[str, Settings] = {
        name: {"kind": "replay", "path": str(tmp_path / "said.tsv"), "assessor": name} for name in price
    }
    found = step(again, "judge", settings, recorded).facts["cascade"]
    step(again, "consensus")
    assert found["asked"] == asked
    for name in ("judge/ratings", "judge/samples", "consensus/verdicts"):
        assert (again / f"{name}.parquet").read_bytes() == (run / f"{name}.parquet").read_bytes()
    assert read_json(again / "consensus" / "agreement.json") == figures
