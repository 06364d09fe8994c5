"""An export compared with the ledger's records: the pool that was to be judged, and what `export` published of it.

Every pair of the pool must be in the export, or follow as left out: its query has no positive, or a refined corpus
lacks its document. Agreement, dependence of judges and counts are recomputed from the votes on the whole pool.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from curate.core.config import Json, check, digest
from curate.core.records import Columns
from curate.panel import agreement_figures, voting
from curate.panel.voting import PAIR
from curate.review.agreement import in_common, with_warnings
from curate.runs import card_facts
from curate.runs.derive import PoolVotes, Votes, apart_of, scale_of
from curate.runs.pool_record import HEX, TEXTS, export_record, pool_pairs
from curate.system.files import frame
from curate.tables.exporters import FOLDERS, manifest
from curate.tables.exporters.labels import Gain, gains
from curate.tables.kinds.benchmark_kind import SHOWN, listed

NO_POOL = "the pool, for the ledger holds no record of it that this export names: nothing says what it should hold"
_NO_VOTES = "for no ledger holds all votes of judges that replayed grades, or of a cascade"
_PEOPLE: Columns = {"query_id": pl.String, "doc_id": pl.String, "relevant": pl.Boolean, "weight": pl.Float64}
_UNMEASURED = ("people", "few")
"""Reasons why judges' errors are unknown, if no expert read a pair; their dependence then follows from votes."""


@dataclass(frozen=True)
class ExportedTexts:
    """What an export holds of the pool: judged pairs by their texts, and all ids."""

    pairs: pl.DataFrame
    """query_id, doc_id, query_digest, passage_digest; null digests without a text."""
    doc_ids: Sequence[str]
    query_ids: Sequence[str]


@dataclass
class PoolCheck:
    """Differences from the ledger's records, what could not be checked, and the card's entries that were recomputed."""

    differences: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    recomputed: list[str] = field(default_factory=list)


def compare_pool(body: Mapping[str, Any], exported: ExportedTexts, chosen: pl.DataFrame, votes: Votes) -> PoolCheck:
    """Return how an export differs from the records; `body` is the manifest, `chosen` the candidates of reranking."""
    result, entry = PoolCheck(), body.get("pool")
    if entry is None:
        result.unchecked.append(NO_POOL)
        return result
    record = votes.ledger.recorded(entry["record"])
    if record is None:
        result.differences.append(
            f"{manifest.NAME}: the ledger holds no record of the pool {entry['record'][:HEX]}: it was judged with "
            "another ledger, or the manifest was changed"
        )
        return result
    pairs = exported.pairs.drop_nulls().with_columns(passage=pl.col("passage_digest").str.slice(0, HEX))
    result.differences += _settings(record, body["labels"])
    result.differences += _statements(body, pairs, exported, votes)
    pool = _matched(pool_pairs(record), pairs)
    pool_votes = votes.of_pool(entry["record"], pool, body["labels"])
    result.differences += _surplus(pool, pairs)
    _compare_pairs(result, body, pool, pool_votes)
    _compare_figures(result, body, record, pool, pool_votes, chosen)
    return result


def _settings(record: Mapping[str, Any], labels: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence on the settings of judging that are not those of the record."""
    others = [name for name in ("panel", "shown", "seed") if record[name] != labels[name]]
    if others:
        yield f"{manifest.NAME}: {', '.join(others)}: others than those of the pool record in the ledger"


def _statements(body: Mapping[str, Any], pairs: pl.DataFrame, exported: ExportedTexts, votes: Votes) -> Iterator[str]:
    """Yield sentences on statements and ids that are not those of the most similar export record of the ledger."""
    pool = body["pool"]["record"]
    actual = _parts(export_record(pool, body, pairs, exported.doc_ids, exported.query_ids))
    records = [_parts(record) for record in votes.ledger.following(pool) if record["format"] == body["format"]]
    if not records:
        yield f"{manifest.NAME}: the ledger holds no record that this pool was exported as {body['format']}"
        return
    others = min(
        (sorted(name for name in {*actual, *record} if actual.get(name) != record.get(name)) for record in records),
        key=len,
    )
    statements = [name for name in others if name not in _IDS]
    if statements:
        yield f"{manifest.NAME}: {', '.join(statements)}: not what `curate export` recorded in the ledger"
    for name, what in _IDS.items():
        if name in others:
            yield f"{what} are not those that `curate export` recorded in the ledger"


_IDS = {
    "pairs": "ids of judged pairs, or their texts,",
    "documents": "ids of documents",
    "queries": "ids of queries",
}
"""Entry of an export record -> the ids of which it is the digest."""


def _parts(record: Mapping[str, Any]) -> dict[str, Json]:
    return {**record["statements"], **{name: record[name] for name in _IDS}}


def _matched(pool: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the pool under ids of its own, which sort as the run's, with the published ids or null.

    Columns: query_id, doc_id, query_digest, passage, position, published_query, published_doc, and `single`: whether no
    other query has the text of the pair's query, so that it is known which of them was published.
    """
    copy = pl.int_range(pl.len()).over(TEXTS).alias("copy")  # equal texts under several ids
    published = pairs.sort(PAIR).select(*TEXTS, copy, published_query="query_id", published_doc="doc_id")
    repeated = pl.int_range(pl.len()).over("query", "passage")
    suffix = pl.when(repeated > 0).then(pl.format("-{}", repeated)).otherwise(pl.lit(""))
    matched = pool.with_columns(copy).join(published, on=[*TEXTS, "copy"], how="left", maintain_order="left")
    query = pl.col("published_query").drop_nulls().first().over("query")
    return matched.select(
        pl.col("query").cast(pl.String).str.zfill(8).alias("query_id"),
        pl.concat_str("passage", suffix).alias("doc_id"),
        *TEXTS,
        "position",
        "published_doc",
        published_query=query,
        single=pl.col("query").n_unique().over("query_digest") == 1,
    )


def _surplus(pool: pl.DataFrame, pairs: pl.DataFrame) -> Iterator[str]:
    """Yield a sentence on exported pairs that are in no pool, or more often than there."""
    inside = pool.select(query_id="published_query", doc_id="published_doc").drop_nulls()
    outside = pairs.join(inside, on=PAIR, how="anti", maintain_order="left")
    if outside.height:
        names = [" ".join(pair) for pair in outside.select(PAIR).head(SHOWN).iter_rows()]
        yield f"pool: {outside.height:,} exported pairs are not in it, for example {listed(names)}"


def _compare_pairs(
    result: PoolCheck, body: Mapping[str, Any], pool: pl.DataFrame, pool_votes: PoolVotes | None
) -> None:
    """Add pairs and queries of the pool that are not exported and do not follow as left out."""
    refined, lost = body["pool"]["refined"], body["lost"]["queries"]
    removed = voting.refined_out(pool_votes.by_rule) if pool_votes and refined else []
    single = pool.filter("single")
    if single.height < pool.height:
        result.unchecked.append("whether pairs of queries with equal texts are missing, for nothing tells these apart")
    absent = single.filter(pl.col("published_query").is_null())
    missing = single.filter(pl.col("published_query").is_not_null() & pl.col("published_doc").is_null())
    missing = missing.filter(~pl.col("doc_id").is_in(removed))
    if missing.height and refined and pool_votes is None:
        result.unchecked.append(f"which documents the refined corpus lacks, {_NO_VOTES}")
    elif missing.height:
        queries = missing["published_query"].unique(maintain_order=True).to_list()
        result.differences.append(
            f"pool: {missing.height:,} pairs of exported queries were judged and are missing, for example of "
            f"{listed(queries)}"
        )
    count = absent["query_id"].n_unique()
    if apart_of(body["labels"]) and body["format"] not in FOLDERS:
        result.unchecked.append("which queries are of the reranking task alone")
        return
    if count != lost and not refined and single.height == pool.height:
        result.differences.append(f"pool: {count:,} queries are not exported, the manifest says {lost:,}")
    if count and pool_votes is None:
        result.unchecked.append(f"why {count:,} queries of the pool are not exported, {_NO_VOTES}")
    elif count and pool_votes:
        relevant = _relevant(pool_votes, body["labels"], removed).join(absent, on="query_id", how="semi")
        digests = relevant.join(pool, on=PAIR, how="left")["query_digest"].unique().sort()
        if len(digests) and body["pool"]["reviewed"]:
            result.unchecked.append(f"why {len(digests):,} queries are not exported, for experts read pairs")
        elif len(digests):
            names = listed([query[:HEX] for query in digests])
            result.differences.append(
                f"pool: {len(digests):,} queries have a relevant document by the ledger and are missing, for example "
                f"those of the digests {names}"
            )


def _relevant(pool_votes: PoolVotes, labels: Mapping[str, Any], removed: Sequence[str]) -> pl.DataFrame:
    """Return the pairs for which a query is exported: relevant and, with graded labels, of a query that gains."""
    there = pool_votes.verdicts.filter(~pl.col("doc_id").is_in(removed))
    relevant = there.filter(pl.col("verdict") == "relevant").select(PAIR)
    if "graded" not in labels:
        return relevant
    settings = {name: setting for name, setting in labels["graded"].items() if name != "labels"}
    graded = gains(there, scale_of(labels), check(Gain, settings, f"{manifest.NAME}: graded"))
    return relevant.join(graded.filter(pl.col("score") > 0), on="query_id", how="semi")


def _compare_figures(
    result: PoolCheck,
    body: Mapping[str, Any],
    record: Mapping[str, Any],
    pool: pl.DataFrame,
    pool_votes: PoolVotes | None,
    chosen: pl.DataFrame,
) -> None:
    """Add differences between the manifest's figures and those recomputed from the votes on the pool."""
    if pool_votes is None:
        result.unchecked.append(f"agreement, dependence and counts, {_NO_VOTES}")
        return
    labels, stated = body["labels"], body["dependence"]
    facts = json.loads(body["card"]["facts"]) if "card" in body else {}
    expected: dict[str, Mapping[str, Any]] = {}
    if stated["effective"] is None and stated["not_measured"] in _UNMEASURED:
        kin = {name: judge["family"] for name, judge in body["judges"].items()}
        panel, people = sorted(labels["panel"]), pl.DataFrame(schema=_PEOPLE)
        common = in_common(pool_votes.ratings, panel, people, kin, labels["seed"], scale_of(labels))
        common = with_warnings(common)
        if digest(common.to_json()) != digest(stated):
            result.differences.append(f"{manifest.NAME}: dependence: the ledger's votes give another one")
        expected["dependence"] = card_facts.warned(common)
    else:
        result.unchecked.append("the dependence of judges, for it is measured against answers of experts")
    if facts:
        expected["agreement"] = _agreement(labels, pool, pool_votes, chosen)
        expected["counts"] = _counts(facts["counts"], record, pool_votes, reviewed=bool(body["pool"]["reviewed"]))
    for name, figures in expected.items():
        if name in facts:
            result.differences += _otherwise(name, facts[name], figures)
            result.recomputed.append(name)


def _agreement(
    labels: Mapping[str, Any], pool: pl.DataFrame, pool_votes: PoolVotes, chosen: pl.DataFrame
) -> dict[str, Json]:
    """Return the card's agreement, on the whole pool, its top and the candidates of reranking."""
    panel, scale, seed = sorted(labels["panel"]), scale_of(labels), labels["seed"]
    positions = pool.select(*PAIR, "position")
    figures = agreement_figures.on_parts(pool_votes.ratings, panel, frame("samples"), positions, seed, scale)
    of_candidates = None
    if chosen.height:
        published = {"query_id": "published_query", "doc_id": "published_doc"}
        candidates = pool.join(chosen, left_on=[*published.values()], right_on=[*published], how="semi")
        rated = pool_votes.ratings.join(candidates, on=PAIR, how="semi")
        of_candidates = agreement_figures.measure(rated, panel, seed, scale).to_json()
    return card_facts.agreement_rows({**figures.to_json(), "rerank": of_candidates})


def _counts(stated: Json, record: Mapping[str, Any], pool_votes: PoolVotes, *, reviewed: bool) -> dict[str, Json]:
    """Return the card's counts in the form in which they are said: of the panel, and of the published labels."""
    panel = voting.counts(pool_votes.by_rule, record["pooled"])
    if isinstance(stated, Mapping):
        return panel
    published = {} if reviewed else voting.counts(pool_votes.verdicts, record["pooled"])
    return {
        **{f"panel, {name}": count for name, count in panel.items()},
        **{f"published, {name}": count for name, count in published.items()},
    }


def _otherwise(name: str, stated: Any, figures: Mapping[str, Any]) -> Iterator[str]:  # noqa: ANN401 - of a card
    """Yield a sentence on the first of a card's figures that are not the recomputed ones."""
    if not isinstance(stated, Mapping):
        columns = ("panel", "published")
        stated = {f"{column}, {row['']}": row[column] for row in stated for column in columns if column in row}
    others = [key for key, figure in figures.items() if digest(stated.get(key)) != digest(figure)]
    if others:
        yield (
            f"{manifest.NAME}: card: {name}: {len(others):,} figures are others by the ledger, for example "
            f"{others[0]!r}: {stated.get(others[0])!r} here, {figures[others[0]]!r} there"
        )
