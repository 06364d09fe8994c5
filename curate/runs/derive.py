"""Labels of an export recomputed from the ledger (votes, verdicts, tables), and sentences on differences found.

The ledger is the append-only record of every model reply. `provenance` is the part of an export's manifest on its
labels: panel, rubric, consensus rule, seed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import polars as pl

from curate.ask import settling
from curate.ask.judges.replay import Config as Recorded
from curate.ask.judges.replay import Replay
from curate.ask.rating import TEXTS
from curate.ask.settling import validated
from curate.core.config import check, digest, text_digest
from curate.core.errors import ConfigError, DataError
from curate.core.records import STOPPED, TABLES
from curate.core.scale import FIVE, Scale
from curate.ledger import Ledger
from curate.panel import voting
from curate.panel import voting as grade_sums
from curate.panel.voting import EXPERTS, PAIR, SETTLED
from curate.pipeline import stages
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context
from curate.runs import graded_labels
from curate.runs.pool_record import HEX
from curate.tables.exporters import labels as reranking
from curate.tables.exporters.labels import Gain, Rerank, gains
from curate.tables.exporters.reading import RETRIEVAL_QUERIES
from curate.tables.kinds.benchmark_kind import SHOWN, listed


def differences(file: str, table: pl.DataFrame, correct: pl.DataFrame) -> Iterator[str]:
    """Yield sentences on surplus, missing, differing and repeated rows of `table`, compared with `correct`.

    `file` is the name of the table's file in the sentences.
    """
    keys = [name for name in PAIR if name in correct.columns]
    if correct.columns == table.columns and table.sort(keys).equals(correct.sort(keys)):
        return  # equal: found in a tenth of the time
    table, correct = _comparable(table), _comparable(correct)
    twice = table.filter(pl.struct(keys).is_duplicated())
    columns = correct.columns
    surplus = table.join(correct, on=columns, how="anti", nulls_equal=True, maintain_order="left")
    lacking = correct.join(table, on=columns, how="anti", nulls_equal=True, maintain_order="left")
    differing = surplus.join(lacking, on=keys, how="semi", maintain_order="left")
    for rows, what in (
        (differing, "rows say otherwise than the ledger"),
        (surplus.join(differing, on=keys, how="anti", maintain_order="left"), "rows should not be there"),
        (lacking.join(differing, on=keys, how="anti", maintain_order="left"), "rows are missing"),
        (twice, "rows stand there more than once"),
    ):
        if rows.height:
            yield f"{file}: {rows.height:,} {what}, for example {listed(names(rows, keys))}"


def _comparable(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table with comparable columns: votes and candidates joined to a string, title and text as a digest."""
    if "votes" in table.columns:
        one = pl.element().struct.field("judge") + "=" + pl.element().struct.field("grade").fill_null("-")
        table = table.with_columns(pl.col("votes").list.eval(one).list.sort().list.join(" "))
    if "corpus-ids" in table.columns:
        table = table.with_columns(pl.col("corpus-ids").list.join(" "))
    if "title" in table.columns:
        rows = [(doc_id, content(title, text)) for doc_id, title, text in table.iter_rows()]
        table = pl.DataFrame(rows, dict.fromkeys(["doc_id", "content"], pl.String), orient="row")
    return table


def names(rows: pl.DataFrame, keys: Sequence[str] = PAIR) -> list[str]:
    """Return the keys of the first `SHOWN` rows, the values of each joined by a blank."""
    return [" ".join(row) for row in rows.select(keys).head(SHOWN).iter_rows()]


def content(title: str, text: str) -> str:
    """Return the digest of a document's title and text."""
    return text_digest(f"{title}\0{text}")


# Checks for contradicting settings of several stages, when a stage is run or planned, before it is paid.


def need_consistent(pipeline: Pipeline, context: Context) -> None:
    """Raise ConfigError if settings of a pipeline's stages contradict each other, or if a stage lacks its input."""
    names = pipeline.head.stages
    for name in names:
        stage = stages.stage(name)
        lacking = [ancestor for ancestor in stage.after if ancestor not in (*names, *stage.optional)]
        if lacking and not all(context.report(ancestor) for ancestor in lacking):
            raise ConfigError(f"stages: {name} reads what {', '.join(lacking)} writes; name that too")
    if "judge" in names:
        validated(cast("JudgeConfig", pipeline.sections["judge"]), context)
        if judge := settling.judge_of(context):
            settling.identity(judge, context)
    if "export" in names:
        graded_labels.refuse(cast("graded_labels.GradedConfig", pipeline.sections["export"]), context)


# Labels recomputed from the ledger: votes, verdicts, and every table of an export.

_GRADED = ("graded", "graded judged", "qrels", "judged")
"""Kinds of tables (see `reading`) that may contain graded labels; first those that contain no other labels."""
Made = Mapping[str, Any]
"""Provenance of labels, from the manifest of an export."""


@dataclass(frozen=True)
class Derived:
    """Verdicts recomputed from a ledger for the pairs of an export."""

    verdicts: pl.DataFrame
    """Verdicts by experts are copied from the export, since no ledger contains experts' answers."""
    differences: list[str]
    """Sentences on exported votes that the ledger lacks or has with another grade."""


@dataclass(frozen=True)
class PoolVotes:
    """Ratings of all pairs of a recorded pool, and the verdicts that follow from them without any expert."""

    ratings: pl.DataFrame
    """query_id, doc_id, judge, grade, status; status `failed` without a rating."""
    by_rule: pl.DataFrame
    """Verdicts by the consensus rule."""
    verdicts: pl.DataFrame
    """Verdicts after threshold and tie-breaker judge."""


@dataclass
class Votes:
    """Ratings of judges from the ledger, and verdicts recomputed from them; cached for all export formats of a run."""

    ledger: Ledger
    recorded: Mapping[str, Path] = field(default_factory=dict)
    """Judge that replayed recorded grades -> file of these grades."""
    _read: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict)
    _last: tuple[pl.DataFrame, pl.DataFrame, Made, Derived] | None = None
    _pools: dict[str, PoolVotes] = field(default_factory=dict)

    def of(self, judge: Made) -> pl.DataFrame:
        """Return all ratings of a judge of the provenance: query_digest, passage_digest, said (the grade), status."""
        key = judge["judge"], judge["rubric"]
        if key not in self._read:
            self._read[key] = self.ledger.ratings(self.ledger.current(key[0]), key[1]).select(
                *TEXTS, said="grade", status="status"
            )
        return self._read[key]

    def derive(self, pairs: pl.DataFrame, verdicts: pl.DataFrame, provenance: Made) -> Derived:
        """Return the recomputed verdicts, and how the exported votes in `verdicts` differ from the ledger.

        `pairs` has query_id, doc_id and the digests of the shown texts. DataError if a judge replayed grades and its
        file was not given.
        """
        if (
            self._last
            and self._last[2] == provenance
            and self._last[0].equals(pairs)
            and self._last[1].equals(verdicts)
        ):
            return self._last[3]
        both = _joined_grades(pairs, verdicts, provenance, self)
        settling = _settling(pairs, self, provenance)
        derived = Derived(
            _decided(both, verdicts, provenance, settling),
            [*_vote_differences(both), *_missing_settled(settling, provenance)],
        )
        self._last = pairs, verdicts, provenance, derived
        return derived

    def of_pool(self, record: str, pairs: pl.DataFrame, provenance: Made) -> PoolVotes | None:
        """Return the votes on the pool of a record; None if the ledger does not hold them all.

        A judge may have replayed them, or a cascade skipped some. `pairs` has query_id, doc_id, and the columns of
        `pool_record.TEXTS`.
        """
        judges = {**provenance["panel"], **({"": provenance["settle"]} if "settle" in provenance else {})}
        if provenance["cascade"] or any(judge["recorded"] is not None for judge in judges.values()):
            return None
        key = digest([record, provenance])
        if key not in self._pools:
            self._pools[key] = self._on_pool(pairs, provenance)
        return self._pools[key]

    def _on_pool(self, pairs: pl.DataFrame, provenance: Made) -> PoolVotes:
        rated = pl.concat([self.of(judge).select(TEXTS) for judge in provenance["panel"].values()])
        texts = rated.with_columns(passage=pl.col("passage_digest").str.slice(0, HEX))
        found = texts.unique(["query_digest", "passage"])
        pairs = pairs.join(found, on=["query_digest", "passage"], how="left", maintain_order="left")
        ratings = pl.concat(
            [_ratings_of(pairs, name, judge, self, provenance) for name, judge in provenance["panel"].items()]
        ).select(*PAIR, "judge", grade="said", status=pl.col("status").fill_null("failed"))
        by_rule = _by_rule(ratings, provenance)
        return PoolVotes(ratings, by_rule, _beyond_rule(by_rule, provenance, _settling(pairs, self, provenance)))


def _joined_grades(pairs: pl.DataFrame, verdicts: pl.DataFrame, provenance: Made, votes: Votes) -> pl.DataFrame:
    """Return a row per pair and judge: `grade` and `status` in the ledger, and the grade `exported`.

    Without a rating the status is null. A vote that a cascade skipped has the status `stopped`, even if the ledger has
    a rating by now.
    """
    ratings = pl.concat(
        [_ratings_of(pairs, name, judge, votes, provenance) for name, judge in provenance["panel"].items()]
    )
    exported = verdicts.explode("votes").unnest("votes").select(*PAIR, "judge", exported="grade")
    both = ratings.join(exported, on=[*PAIR, "judge"], how="left", maintain_order="left")
    spared = pl.lit(provenance["cascade"]) & pl.col("exported").is_null()
    status = pl.when(spared).then(pl.lit(STOPPED)).otherwise("status")
    return both.with_columns(grade=pl.when(~spared).then("said"), status=status)


def _decided(
    both: pl.DataFrame, verdicts: pl.DataFrame, provenance: Made, settling: pl.DataFrame | None
) -> pl.DataFrame:
    """Return the verdicts recomputed from the ledger's grades; verdicts by experts are copied from the export.

    A threshold on the sum of grades and a tie-breaker judge are applied if the manifest names them.
    """
    decided = _beyond_rule(_by_rule(_with_others(both, provenance), provenance), provenance, settling)
    people = pl.col("by") == EXPERTS
    return (
        decided.join(verdicts.select(*PAIR, was="verdict", by="policy"), on=PAIR)
        .with_columns(
            verdict=pl.when(people).then("was").otherwise("verdict"),
            policy=pl.when(people).then("by").otherwise("policy"),
        )
        .select(*TABLES["verdicts"])
    )


def _by_rule(ratings: pl.DataFrame, provenance: Made) -> pl.DataFrame:
    """Return the verdicts of all pairs by the consensus rule."""
    policy = voting.loaded(provenance["policy"])
    return voting.decide(ratings, list(provenance["panel"]), policy, scale_of(provenance))


def _beyond_rule(decided: pl.DataFrame, provenance: Made, settling: pl.DataFrame | None) -> pl.DataFrame:
    """Return verdicts after the threshold on the sum of grades and the tie-breaker judge, if the manifest has them."""
    scale = scale_of(provenance)
    if "accept" in provenance:
        decided = grade_sums.publish(decided, scale, provenance["accept"]["least"])
    if settling is not None:
        grades = settling.rename({"said": "grade"})
        decided = grade_sums.settle(decided, grades, scale, SETTLED + provenance["settle"]["name"])
    return decided


def _settling(pairs: pl.DataFrame, votes: Votes, provenance: Made) -> pl.DataFrame | None:
    """Return the ratings of the tie-breaker judge; None without one."""
    judge = provenance.get("settle")
    return None if judge is None else _ratings_of(pairs, judge["name"], judge, votes, provenance)


def _missing_settled(settling: pl.DataFrame | None, provenance: Made) -> Iterator[str]:
    """Yield a sentence if the ledger has fewer grades of the tie-breaker judge than the manifest says it decided."""
    graded = 0 if settling is None else settling["said"].drop_nulls().len()
    if settling is not None and graded < provenance["settle"]["pairs"]:
        yield (
            f"verdicts.parquet: {provenance['settle']['pairs']:,} pairs are said to be settled by "
            f"{provenance['settle']['name']}, and the ledger holds {graded:,} grades of that judge"
        )


def _ratings_of(pairs: pl.DataFrame, name: str, judge: Made, votes: Votes, provenance: Made) -> pl.DataFrame:
    """Return query_id, doc_id, judge, said (its grade), status; null status for a pair without a rating."""
    if judge["recorded"] is None:
        rated = pairs.join(votes.of(judge), on=TEXTS, how="left", maintain_order="left")
    else:
        rated = _replayed(pairs, name, judge, votes.recorded, provenance)
    return rated.select(*PAIR, "said", "status", judge=pl.lit(name))


def _replayed(pairs: pl.DataFrame, name: str, judge: Made, files: Mapping[str, Path], provenance: Made) -> pl.DataFrame:
    """Return pairs with grade (`said`) and status from a file of recorded grades, which has the ids before export."""
    if provenance.get("ids") == "new":
        raise DataError(f"{name} replayed grades by ids that this export does not hold; nothing of it can be looked up")
    if name not in files:
        raise DataError(
            f"{name} replayed recorded grades, which no ledger holds; give its file: --recorded {name}=FILE"
        )
    replay = Replay(
        name, Recorded(path=files[name], assessor=judge["recorded"]["assessor"]), scale=scale_of(provenance)
    )
    skipped = _prefix(provenance)
    if digest(replay.identity) != judge["judge"]:
        raise DataError(f"{files[name]}: not the file that {name} replayed, for its SHA-256 is another")
    records = [
        replay.recorded(query_id[skipped:], doc_id[skipped:]) for query_id, doc_id in pairs.select(PAIR).iter_rows()
    ]
    return pairs.with_columns(
        said=pl.Series([record.grade for record in records], dtype=pl.String),
        status=pl.Series([record.status for record in records], dtype=pl.String),
    )


def _vote_differences(both: pl.DataFrame) -> Iterator[str]:
    """Yield sentences on exported votes that the ledger lacks, or has with another grade."""
    for (judge,), rows in both.group_by("judge", maintain_order=True):
        lacking = rows.filter(pl.col("status").is_null())
        if lacking.height:
            yield (
                f"verdicts.parquet: the ledger holds no rating by {judge} of {lacking.height:,} pairs, for example "
                f"{listed(names(lacking))}: a text or an id was changed, or they were judged with another ledger"
            )
        differing = rows.filter(pl.col("status").is_not_null() & pl.col("exported").ne_missing(pl.col("grade")))
        if differing.height:
            first = differing.row(0, named=True)
            yield (
                f"verdicts.parquet: {differing.height:,} votes of {judge} are others in the ledger, for example "
                f"{first['query_id']!r} {first['doc_id']!r}: {first['exported']} here, {first['grade']} there"
            )


def _with_others(both: pl.DataFrame, provenance: Made) -> pl.DataFrame:
    """Return the ratings, with those of judged pairs that were not exported: `dawid-skene` is fitted on all pairs."""
    ratings = both.select(*PAIR, "judge", "grade", "status")
    rows = [
        (f"\0{number}", f"\0{copy}", judge, grade, "rated" if grade else "unparsed")
        for number, outside in enumerate(provenance["outside"])
        for copy in range(outside["pairs"])
        for judge, grade in outside["votes"].items()
    ]
    return pl.concat([ratings, pl.DataFrame(rows, ratings.schema, orient="row")])


def scale_of(provenance: Made) -> Scale:
    """Return the scale of an export's grades; the default scale of five grades if its manifest names none."""
    return Scale.from_json(provenance["scale"]) if "scale" in provenance else FIVE


def replaced(provenance: Made) -> bool:
    """Return whether graded labels replace the binary ones."""
    return "graded" in provenance and provenance["graded"]["labels"] == "graded"


def graded(verdicts: pl.DataFrame, written: Mapping[str, pl.DataFrame], provenance: Made) -> pl.DataFrame | None:
    """Return the graded labels recomputed from verdicts; None if the manifest or the format has none.

    `written` is kind of table -> exported table. Pairs decided by experts keep the grade in these tables, since no
    export contains the experts' grades.
    """
    if "graded" not in provenance or written.keys().isdisjoint(_GRADED):
        return None
    gain = check(
        Gain,
        {key: setting for key, setting in provenance["graded"].items() if key != "labels"},
        "MANIFEST.json: graded",
    )
    people = verdicts.filter(pl.col("policy") == EXPERTS).select(PAIR)
    derived = gains(verdicts, scale_of(provenance), gain)
    published = next(written[kind] for kind in _GRADED if kind in written)
    theirs = people.join(published.select(*PAIR, said="score"), on=PAIR, how="left").with_columns(
        said=pl.col("said").fill_null(0)  # a table of gains has no row for none
    )
    score = pl.coalesce("said", "score")
    return derived.join(theirs, on=PAIR, how="left", maintain_order="left").with_columns(score=score).drop("said")


def expected(
    verdicts: pl.DataFrame,
    queries: pl.DataFrame,
    texts: pl.DataFrame,
    chosen: pl.DataFrame,
    provenance: Made,
    grades: pl.DataFrame | None,
) -> dict[str, pl.DataFrame]:
    """Return kind of table (see `reading`) -> the table that the export should contain, for all tables of labels.

    `texts` has doc_id and content (a digest), `chosen` the candidates of reranking, `grades` the graded labels, if any.
    """
    reranked = chosen.select("query_id").unique()
    apart = reranked if apart_of(provenance) else reranked.clear()
    retrieval_verdicts, retrieval_queries = (
        table.join(apart, on="query_id", how="anti", maintain_order="left") for table in (verdicts, queries)
    )
    positives = retrieval_verdicts.filter(pl.col("verdict") == "relevant").select(*PAIR, score=pl.lit(1, pl.Int32))
    negatives = retrieval_verdicts.filter(pl.col("verdict") == "not relevant").select(*PAIR, score=pl.lit(0, pl.Int32))
    ranked = chosen.sort(PAIR).group_by("query_id", maintain_order=True).agg(pl.col("doc_id").alias("corpus-ids"))
    tables, shared = _grades(retrieval_verdicts), _grades(verdicts.join(reranked, on="query_id", how="semi"))
    if grades is not None:
        grades = grades.join(apart, on="query_id", how="anti", maintain_order="left")
        gaining = grades.filter(pl.col("score") > 0).drop("contested")
        graded_tables = {
            "graded": gaining,
            "graded judged": grades.drop("contested"),
            "graded queries": retrieval_queries,
        }
        tables |= graded_tables | (
            {"qrels": graded_tables["graded"], "judged": graded_tables["graded judged"]} if replaced(provenance) else {}
        )
    return {
        "qrels": positives,
        "judged": pl.concat([positives, negatives]),
        **tables,
        **{f"reranking {name}": table for name, table in shared.items()},
        "verdicts": verdicts,
        RETRIEVAL_QUERIES: retrieval_queries,
        "topics": retrieval_queries.with_columns(
            pl.col("text").map_elements(lambda text: " ".join(text.split()), pl.String)
        ),
        "reranking qrels": chosen,
        "reranking top_ranked": ranked,
        "reranking queries": queries.join(reranked, on="query_id", how="semi"),
        "reranking corpus": texts.join(chosen, on="doc_id", how="semi"),
    }


def _grades(verdicts: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the tables of judges' votes: `grades` of all pairs, and `contested` of the contested ones."""
    grades = verdicts.select(*PAIR, "verdict", "votes")
    return {"grades": grades, "contested": grades.filter(pl.col("verdict") == "contested").drop("verdict")}


def apart_of(provenance: Made) -> bool:
    """Return whether the reranking task has queries that the retrieval task does not have."""
    return "rerank" in provenance and check(Rerank, provenance["rerank"], "MANIFEST.json: rerank").apart


def candidates(verdicts: pl.DataFrame, published: pl.DataFrame, provenance: Made) -> pl.DataFrame:
    """Return the candidates of reranking, drawn again with the seed of the export.

    `by_rank` takes negatives by their position in the pool, which no export contains. The `published` negatives then
    count as the first ones: their number and labels are verified, but not that they rank first.
    """
    rerank = check(Rerank, provenance["rerank"], "MANIFEST.json: rerank")
    positions = verdicts.select(PAIR).join(published.select(*PAIR, position=pl.lit(0, pl.Int32)), on=PAIR, how="left")
    old = [
        table.with_columns(pl.col(PAIR).str.slice(_prefix(provenance))) for table in (verdicts, positions.fill_null(1))
    ]
    chosen, _ = reranking.candidates(
        old[0] if rerank.enabled else old[0].clear(), old[1], rerank, provenance["seed"], scale_of(provenance)
    )
    if provenance["prefixed"]:  # the draw used the ids before export
        chosen = chosen.with_columns(query_id="q-" + pl.col("query_id"), doc_id="d-" + pl.col("doc_id"))
    return chosen


def _prefix(provenance: Made) -> int:
    """Return the length of the prefix that the export added to every id."""
    return len("q-") if provenance["prefixed"] else 0
