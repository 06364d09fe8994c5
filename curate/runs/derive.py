"""Labels derived again from the ledger: votes, verdicts, and every table that an export makes of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from curate.ask.judges.replay import Config as Recorded
from curate.ask.judges.replay import Replay
from curate.ask.rating import TEXTS
from curate.core.config import check, digest
from curate.core.errors import DataError
from curate.core.records import STOPPED, TABLES
from curate.core.scale import FIVE, Scale
from curate.ledger import Ledger
from curate.panel import grade_sums, voting
from curate.panel.voting import EXPERTS, PAIR, SETTLED
from curate.runs.differences import names
from curate.tables.exporters import labels as reranking
from curate.tables.exporters.labels import Gain, Rerank, gains
from curate.tables.exporters.reading import RETRIEVAL_QUERIES
from curate.tables.kinds.benchmark_kind import listed

_GRADED = ("graded", "graded judged", "qrels", "judged")
"""Kinds of tables that may hold graded labels, those that hold nothing else first."""
Made = Mapping[str, Any]
"""What a manifest says of how labels were made."""


@dataclass(frozen=True)
class Derived:
    """What follows from a ledger for the pairs of an export."""

    verdicts: pl.DataFrame
    """Those that experts decided are as the export has them: no ledger holds what people said."""
    differences: list[str]
    """What is said of votes that the ledger lacks or holds otherwise."""


@dataclass
class Votes:
    """What the ledger holds of judges, and what follows from it: worked out once for all formats of a run."""

    ledger: Ledger
    recorded: Mapping[str, Path] = field(default_factory=dict)
    """Files of judges that replayed grades: name -> file."""
    _read: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict)
    _last: tuple[pl.DataFrame, pl.DataFrame, Made, Derived] | None = None

    def of(self, judge: Made) -> pl.DataFrame:
        """Return query_digest, passage_digest, grade and status of everything that a judge has rated."""
        key = judge["judge"], judge["rubric"]
        if key not in self._read:
            self._read[key] = self.ledger.ratings(self.ledger.current(key[0]), key[1]).select(
                *TEXTS, said="grade", status="status"
            )
        return self._read[key]

    def derive(self, pairs: pl.DataFrame, verdicts: pl.DataFrame, made: Made) -> Derived:
        """Return the verdicts of pairs (query_id, doc_id and the digests of what judges saw) and what differs.

        DataError if a judge replayed grades and its file was not given.
        """
        if self._last and self._last[2] == made and self._last[0].equals(pairs) and self._last[1].equals(verdicts):
            return self._last[3]
        both = _both(pairs, verdicts, made, self)
        settling = _settling(pairs, made, self)
        found = Derived(_decided(both, verdicts, made, settling), [*_otherwise(both), *_unknown(settling, made)])
        self._last = pairs, verdicts, made, found
        return found


def _both(pairs: pl.DataFrame, verdicts: pl.DataFrame, made: Made, votes: Votes) -> pl.DataFrame:
    """Return a row per pair and judge: `grade` and `status` as the ledger has them, `exported` as the export does.

    The status is null where the ledger has nothing. A vote that a cascade did without stays open, also if the ledger
    has learnt it since.
    """
    ratings = pl.concat([_said(pairs, name, judge, votes, made) for name, judge in made["panel"].items()])
    exported = verdicts.explode("votes").unnest("votes").select(*PAIR, "judge", exported="grade")
    both = ratings.join(exported, on=[*PAIR, "judge"], how="left", maintain_order="left")
    spared = pl.lit(made["cascade"]) & pl.col("exported").is_null()
    status = pl.when(spared).then(pl.lit(STOPPED)).otherwise("status")
    return both.with_columns(grade=pl.when(~spared).then("said"), status=status)


def _decided(both: pl.DataFrame, verdicts: pl.DataFrame, made: Made, settling: pl.DataFrame | None) -> pl.DataFrame:
    """Return the verdicts that follow from the ledger; what experts decided stays theirs.

    A threshold on the sum of grades, or a judge that settled what was contested, decides as the manifest says.
    """
    scale = scale_of(made)
    decided = voting.decide(_with_others(both, made), list(made["panel"]), voting.loaded(made["policy"]), scale)
    if "accept" in made:
        decided = grade_sums.publish(decided, scale, made["accept"]["least"])
    if settling is not None:
        decided = grade_sums.settle(
            decided, settling.rename({"said": "grade"}), scale, SETTLED + made["settle"]["name"]
        )
    people = pl.col("by") == EXPERTS
    return (
        decided.join(verdicts.select(*PAIR, was="verdict", by="policy"), on=PAIR)
        .with_columns(
            verdict=pl.when(people).then("was").otherwise("verdict"),
            policy=pl.when(people).then("by").otherwise("policy"),
        )
        .select(*TABLES["verdicts"])
    )


def _settling(pairs: pl.DataFrame, made: Made, votes: "Votes") -> pl.DataFrame | None:
    """Return what the judge that settled contested pairs says of every pair; None where no judge did."""
    return _said(pairs, made["settle"]["name"], made["settle"], votes, made) if "settle" in made else None


def _unknown(settling: pl.DataFrame | None, made: Made) -> Iterator[str]:
    """Yield that the ledger holds less of the settling judge than the manifest says it settled."""
    known = 0 if settling is None else settling["said"].drop_nulls().len()
    if settling is not None and known < made["settle"]["pairs"]:
        yield (
            f"verdicts.parquet: {made['settle']['pairs']:,} pairs are said to be settled by {made['settle']['name']}, "
            f"and the ledger holds {known:,} grades of that judge"
        )


def _said(pairs: pl.DataFrame, name: str, judge: Made, votes: Votes, made: Made) -> pl.DataFrame:
    """Return query_id, doc_id, judge, what it said, and the status, null where nothing is known of a pair."""
    if judge["recorded"] is None:
        known = pairs.join(votes.of(judge), on=TEXTS, how="left", maintain_order="left")
    else:
        known = _replayed(pairs, name, judge, votes.recorded, made)
    return known.select(*PAIR, "said", "status", judge=pl.lit(name))


def _replayed(pairs: pl.DataFrame, name: str, judge: Made, files: Mapping[str, Path], made: Made) -> pl.DataFrame:
    """Return pairs with what a file of recorded grades says, which knows them by the ids of before."""
    if made.get("ids") == "new":
        raise DataError(f"{name} replayed grades by ids that this export does not hold; nothing of it can be looked up")
    if name not in files:
        raise DataError(
            f"{name} replayed recorded grades, which no ledger holds; give its file: --recorded {name}=FILE"
        )
    replay = Replay(name, Recorded(path=files[name], assessor=judge["recorded"]["assessor"]), scale=scale_of(made))
    skipped = _prefix(made)
    if digest(replay.identity) != judge["judge"]:
        raise DataError(f"{files[name]}: not the file that {name} replayed, for its SHA-256 is another")
    said = [
        replay.recorded(query_id[skipped:], doc_id[skipped:]) for query_id, doc_id in pairs.select(PAIR).iter_rows()
    ]
    return pairs.with_columns(
        said=pl.Series([each.grade for each in said], dtype=pl.String),
        status=pl.Series([each.status for each in said], dtype=pl.String),
    )


def _otherwise(both: pl.DataFrame) -> Iterator[str]:
    """Yield what is said of votes that the ledger lacks, and of those that it holds otherwise."""
    for (judge,), rows in both.group_by("judge", maintain_order=True):
        lacking = rows.filter(pl.col("status").is_null())
        if lacking.height:
            yield (
                f"verdicts.parquet: the ledger holds no rating by {judge} of {lacking.height:,} pairs, for example "
                f"{listed(names(lacking))}: a text or an id was changed, or they were judged with another ledger"
            )
        other = rows.filter(pl.col("status").is_not_null() & pl.col("exported").ne_missing(pl.col("grade")))
        if other.height:
            first = other.row(0, named=True)
            yield (
                f"verdicts.parquet: {other.height:,} votes of {judge} are others in the ledger, for example "
                f"{first['query_id']!r} {first['doc_id']!r}: {first['exported']} here, {first['grade']} there"
            )


def _with_others(both: pl.DataFrame, made: Made) -> pl.DataFrame:
    """Return the ratings with those of pairs that were judged and not exported: `dawid-skene` learns from all."""
    ratings = both.select(*PAIR, "judge", "grade", "status")
    rows = [
        (f"\0{number}", f"\0{copy}", judge, grade, "rated" if grade else "unparsed")
        for number, outside in enumerate(made["outside"])
        for copy in range(outside["pairs"])
        for judge, grade in outside["votes"].items()
    ]
    return pl.concat([ratings, pl.DataFrame(rows, ratings.schema, orient="row")])


def scale_of(made: Made) -> Scale:
    """Return the scale of the grades of an export; the five grades where its manifest names none."""
    return Scale.from_json(made["scale"]) if "scale" in made else FIVE


def replaced(made: Made) -> bool:
    """Return whether graded labels stand in the place of the binary ones."""
    return "graded" in made and made["graded"]["labels"] == "graded"


def graded(verdicts: pl.DataFrame, written: Mapping[str, pl.DataFrame], made: Made) -> pl.DataFrame | None:
    """Return the graded labels that follow from verdicts; None where the manifest, or the format, has none.

    Of pairs that experts decided, whose grades no export holds, those of the tables that were `written` stay.
    """
    if "graded" not in made or written.keys().isdisjoint(_GRADED):
        return None
    gain = check(
        Gain, {key: value for key, value in made["graded"].items() if key != "labels"}, "MANIFEST.json: graded"
    )
    people = verdicts.filter(pl.col("policy") == EXPERTS).select(PAIR)
    derived = gains(verdicts, scale_of(made), gain)
    given = next(written[kind] for kind in _GRADED if kind in written)
    theirs = people.join(given.select(*PAIR, said="score"), on=PAIR, how="left").with_columns(
        said=pl.col("said").fill_null(0)  # a table of gains has no row for none
    )
    score = pl.coalesce("said", "score")
    return derived.join(theirs, on=PAIR, how="left", maintain_order="left").with_columns(score=score).drop("said")


def expected(
    verdicts: pl.DataFrame,
    queries: pl.DataFrame,
    texts: pl.DataFrame,
    chosen: pl.DataFrame,
    made: Made,
    grades: pl.DataFrame | None,
) -> dict[str, pl.DataFrame]:
    """Return every table of labels as it must be, by what `reading` calls it.

    `texts` has doc_id and content, `chosen` is what a reranker is given, `grades` are the graded labels, if any.
    """
    reranked = chosen.select("query_id").unique()
    apart = reranked if apart_of(made) else reranked.clear()
    own, asked = (table.join(apart, on="query_id", how="anti", maintain_order="left") for table in (verdicts, queries))
    positives = own.filter(pl.col("verdict") == "relevant").select(*PAIR, score=pl.lit(1, pl.Int32))
    negatives = own.filter(pl.col("verdict") == "not relevant").select(*PAIR, score=pl.lit(0, pl.Int32))
    ranked = chosen.sort(PAIR).group_by("query_id", maintain_order=True).agg(pl.col("doc_id").alias("corpus-ids"))
    tables, shared = _grades(own), _grades(verdicts.join(reranked, on="query_id", how="semi"))
    if grades is not None:
        grades = grades.join(apart, on="query_id", how="anti", maintain_order="left")
        gaining = grades.filter(pl.col("score") > 0).drop("contested")
        more = {"graded": gaining, "graded judged": grades.drop("contested"), "graded queries": asked}
        tables |= more | ({"qrels": more["graded"], "judged": more["graded judged"]} if replaced(made) else {})
    return {
        "qrels": positives,
        "judged": pl.concat([positives, negatives]),
        **tables,
        **{f"reranking {name}": table for name, table in shared.items()},
        "verdicts": verdicts,
        RETRIEVAL_QUERIES: asked,
        "topics": asked.with_columns(pl.col("text").map_elements(lambda text: " ".join(text.split()), pl.String)),
        "reranking qrels": chosen,
        "reranking top_ranked": ranked,
        "reranking queries": queries.join(reranked, on="query_id", how="semi"),
        "reranking corpus": texts.join(chosen, on="doc_id", how="semi"),
    }


def _grades(verdicts: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the tables of votes of a task: those on all its pairs, and on the contested ones."""
    grades = verdicts.select(*PAIR, "verdict", "votes")
    return {"grades": grades, "contested": grades.filter(pl.col("verdict") == "contested").drop("verdict")}


def apart_of(made: Made) -> bool:
    """Return whether reranking has queries of its own."""
    return "rerank" in made and check(Rerank, made["rerank"], "MANIFEST.json: rerank").apart


def candidates(verdicts: pl.DataFrame, given: pl.DataFrame, made: Made) -> pl.DataFrame:
    """Draw a reranker's candidates again.

    `by_rank` takes negatives by their place in the pool, which no export holds: those that were `given` count as the
    first ones, so that their number and labels are verified and not which of the negatives they are.
    """
    rerank = check(Rerank, made["rerank"], "MANIFEST.json: rerank")
    places = verdicts.select(PAIR).join(given.select(*PAIR, position=pl.lit(0, pl.Int32)), on=PAIR, how="left")
    old = [table.with_columns(pl.col(PAIR).str.slice(_prefix(made))) for table in (verdicts, places.fill_null(1))]
    chosen, _ = reranking.candidates(
        old[0] if rerank.enabled else old[0].clear(), old[1], rerank, made["seed"], scale_of(made)
    )
    if made["prefixed"]:  # the draw is by the ids of before
        chosen = chosen.with_columns(query_id="q-" + pl.col("query_id"), doc_id="d-" + pl.col("doc_id"))
    return chosen


def _prefix(made: Made) -> int:
    """Return how many characters of every id the export put in front."""
    return len("q-") if made["prefixed"] else 0
