"""Real judges, people and systems under seven labellings of the same pairs, with the functions of an evaluation."""

from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl
import pytest

from curate.commands.evaluate.item_scores import look, ndcg
from curate.commands.evaluate.tasks import gains_of_median_grades, scale_of
from curate.core.scale import FIVE, Scale
from tests.support.assessed import SCALE, Assessed

SYSTEMS = ("Olz-gpt4o", "NISTRetrieval-reason0")
Gains = Mapping[str, Mapping[str, float]]
Rankings = Mapping[str, Mapping[str, list[str]]]


@pytest.fixture(scope="module")
def real(shared_data: Path) -> Assessed:
    return Assessed.read(shared_data)


def grades(real: Assessed) -> pl.DataFrame:
    """Return what an export holds of the first three judges' grades, unanimous ones decided."""
    votes = [
        [{"judge": name, "grade": str(grade)} for name, grade in zip(real.panel, row, strict=True)]
        for row in real.table.select(real.panel).iter_rows()
    ]
    verdicts = [{0: "not relevant", 3: "relevant"}.get(count, "contested") for count in real.votes.tolist()]
    keys = {"query-id": real.table["query_id"].cast(pl.String), "corpus-id": real.table["doc_id"].cast(pl.String)}
    return pl.DataFrame(keys | {"verdict": verdicts, "votes": votes})


def by_query(table: pl.DataFrame, values: list[float]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for query, doc, value in zip(table["query-id"], table["corpus-id"], values, strict=True):
        found.setdefault(query, {})[doc] = float(value)
    return found


def ranked(real: Assessed, table: pl.DataFrame, system: str) -> dict[str, list[str]]:
    ranks = by_query(table, real.ranks(-real.grades[system]).tolist())
    return {query: sorted(docs, key=docs.__getitem__) for query, docs in ranks.items()}


def test_two_systems_under_seven_labellings(real: Assessed) -> None:
    table = grades(real)
    votes, human = real.votes.tolist(), real.table["human"].to_list()
    known = {row: dict(docs.select("corpus-id", "verdict").iter_rows()) for (row,), docs in table.group_by("query-id")}
    unanimous = by_query(table, [float(count == 3) for count in votes])
    median = gains_of_median_grades(table, unanimous, SCALE)
    scored = [query for query, docs in unanimous.items() if any(docs.values())]
    assert (len(known), len(scored)) == (8, 7), "of one query no document is relevant to all three"
    settled = [float(h >= 2) if 0 < count < 3 else count == 3 for h, count in zip(human, votes, strict=True)]
    least = real.table.select(pl.min_horizontal(real.panel)).to_series().to_list()
    gains: dict[str, Gains] = {
        "people": by_query(table, human),
        "majority": by_query(table, [float(count >= 2) for count in votes]),
        "people settle": by_query(table, settled),
        "minimum": by_query(table, least),
    }

    def mean(score: Callable[[str], float]) -> float:
        return round(sum(score(query) for query in scored) / len(scored), 4)

    found: dict[str, list[float]] = {}
    for system in SYSTEMS:
        ranking = ranked(real, table, system)
        seen = {q: look(ranking[q], unanimous[q], known[q], "ndcg_at_10", median[q]).scores for q in scored}
        for name, each in gains.items():
            found.setdefault(name, []).append(mean(lambda q, r=ranking, g=each: ndcg(r[q], g[q])))  # type: ignore[misc]
        for name in ("stock", "condensed", "median"):
            found.setdefault(name, []).append(mean(lambda q, s=seen, n=name: s[q][n]))  # type: ignore[misc]
    assert found == {
        "people": [0.7249, 0.4967],
        "stock": [0.9234, 0.5057],
        "condensed": [0.9777, 0.7410],
        "majority": [0.9274, 0.5482],
        "people settle": [0.9282, 0.6113],
        "median": [0.8905, 0.5747],
        "minimum": [0.8802, 0.5563],
    }


def pair(verdict: str, *given: str | None) -> pl.DataFrame:
    votes = [[{"judge": f"j{place}", "grade": grade} for place, grade in enumerate(given)]]
    kinds = {"votes": pl.List(pl.Struct({"judge": pl.String, "grade": pl.String}))}
    keys = {"query-id": ["q"], "corpus-id": ["d"], "verdict": [verdict], "votes": votes}
    return pl.DataFrame(keys, schema_overrides=kinds)


@pytest.mark.parametrize(
    ("verdict", "given", "gain"),
    [
        ("contested", ("S", "B", "B"), 2),
        ("contested", ("S", "B"), 2),
        ("relevant", ("S", "S", "A"), 4),
        ("relevant", ("D", "D", "D"), 3),
        ("not relevant", ("S", "A", "A"), 2),
        ("not relevant", ("D", "C", "B"), 1),
    ],
)
def test_a_gain_is_the_lower_median_on_the_side_of_the_published_label(
    verdict: str, given: tuple[str, ...], gain: int
) -> None:
    labels: dict[str, dict[str, float]] = {"q": {"d": 1.0}} if verdict == "relevant" else {"q": {"other": 1.0}}
    found = gains_of_median_grades(pair(verdict, *given), labels, FIVE)["q"]
    assert found["d"] == gain
    assert found.get("other", 3) == 3, "a published positive without votes gains what the cut gains"


def test_gains_are_known_where_the_scale_and_all_votes_are() -> None:
    other = Scale(("yes", "no"), "yes", (1, 0))
    assert scale_of({}, pair("contested", "S", "D")) == FIVE
    assert scale_of({"scale": other.to_json()}, pair("contested", "yes", "no")) == other
    assert scale_of({}, pair("contested", "yes", "no")) is None, "nobody says what those gain"
    assert scale_of({}, pair("not positive", "D")) is None, "a cascade left votes out"
    assert scale_of({}, pair("incomplete", None)) is None
    nominal = Scale(("x", "y"), order="nominal")
    assert scale_of({"scale": nominal.to_json()}, pair("contested", "x", "y")) is None
