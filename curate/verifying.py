"""Derive every label of an export again from the ledger, offline, and say what differs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from curate import manifest, passages, reranking, voting
from curate.config import check, digest, text_digest
from curate.differences import content, contradictions, differences, listed, names
from curate.errors import DataError
from curate.exporters.reading import READERS, Written
from curate.files import read_table
from curate.judges.replay import Config as Recorded
from curate.judges.replay import Replay
from curate.judging import TEXTS
from curate.ledger import Ledger
from curate.records import STOPPED, TABLES, shown
from curate.reranking import Rerank
from curate.voting import EXPERTS, PAIR


@dataclass
class Verified:
    """What was compared, and what differs."""

    folder: Path
    differences: list[str]
    """A sentence each, with counts and example ids; none if the export is what the ledger says."""
    pairs: int = 0
    """Judged pairs whose votes were looked up."""
    labels: int = 0
    """Rows of labels that were derived and compared."""
    by_experts: int = 0
    """Labels that people decided, and no ledger holds."""


@dataclass
class Votes:
    """What the ledger holds of judges; each is read once for all folders."""

    ledger: Ledger
    recorded: Mapping[str, Path] = field(default_factory=dict)
    """Files of judges that replayed grades: name -> file."""
    _read: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict)

    def of(self, judge: Mapping[str, Any]) -> pl.DataFrame:
        """Return query_digest, passage_digest, grade and status of everything that a judge has rated."""
        key = judge["judge"], judge["rubric"]
        if key not in self._read:
            self._read[key] = self.ledger.ratings(*key).select(*TEXTS, said="grade", status="status")
        return self._read[key]


def verify(folder: Path, ledger: Ledger, recorded: Mapping[str, Path] | None = None) -> list[Verified]:
    """Return what is wrong with an export, or with every format of a run's `export`; DataError if it is none.

    `recorded` gives the files of judges that replayed grades, for no ledger holds those.
    """
    folders = (
        [folder] if (folder / manifest.NAME).is_file() else sorted(p.parent for p in folder.glob(f"*/{manifest.NAME}"))
    )
    if not folders:
        raise DataError(
            f"{folder}: no {manifest.NAME} in it or one level below; give a folder that `curate export` wrote"
        )
    votes = Votes(ledger, recorded or {})
    return [_verified(each, votes) for each in folders]


def _verified(folder: Path, votes: Votes) -> Verified:
    body = manifest.read(folder)
    found = Verified(folder, list(manifest.changed(folder, body["files"])))
    if body["format"] not in READERS:
        return found
    try:
        written, verdicts = READERS[body["format"]](folder), read_table(folder, "verdicts")
        texts = _texts(written, verdicts, body["labels"])
    except (DataError, OSError, ValueError, KeyError, pl.exceptions.PolarsError) as error:
        found.differences.append(f"cannot be read as an export any more: {type(error).__name__}: {error}")
        return found
    for name, count in (("queries", written.queries.height), ("corpus", texts.documents)):
        if count != body["rows"][name]:
            found.differences.append(f"{name}: expected {body['rows'][name]:,} texts, found {count:,}")
    _labels(found, written, verdicts, texts, body["labels"], votes)
    return found


@dataclass(frozen=True)
class _Texts:
    """The texts of an export by digest; only documents that were judged are looked at."""

    pairs: pl.DataFrame
    """query_id, doc_id, and the digests of what judges saw, null without a text."""
    contents: pl.DataFrame
    """doc_id, content: a digest of title and text."""
    documents: int
    """How many there are in all."""


def _labels(
    found: Verified, written: Written, verdicts: pl.DataFrame, texts: _Texts, made: Mapping[str, Any], votes: Votes
) -> None:
    """Add what the ledger says otherwise, table by table."""
    say = found.differences
    say += _unknown(texts.pairs)
    try:
        both = _both(texts.pairs, verdicts, made, votes)
    except DataError as error:
        say.append(str(error))
        return
    say += _votes(both)
    derived = _derived(both, verdicts, made)
    found.by_experts = derived.filter(pl.col("policy") == EXPERTS).height
    if found.by_experts != made["experts"]:
        said = f"{found.by_experts:,} labels are said to be experts'"
        say.append(f"verdicts.parquet: {said}, the manifest says {made['experts']:,}")
    given = next((table for kind, table in written.tables.values() if kind == "reranking qrels"), derived.clear())
    wanted = expected(derived, written.queries, texts.contents, _candidates(derived, given, made))
    for place, (kind, table) in {"verdicts.parquet": ("verdicts", verdicts), **written.tables}.items():
        say += differences(place, table, wanted[kind]) if kind in wanted else contradictions(place, table)
        found.labels += table.height
    found.pairs = verdicts.height


def _both(pairs: pl.DataFrame, verdicts: pl.DataFrame, made: Mapping[str, Any], votes: Votes) -> pl.DataFrame:
    """Return a row a pair and judge: `grade` and `status` as the ledger has them, `exported` as the export does.

    The status is null where the ledger has nothing. A vote that a cascade did without stays open, whatever the ledger
    has learnt since.
    """
    ratings = pl.concat([_said(pairs, name, judge, votes, _prefix(made)) for name, judge in made["panel"].items()])
    exported = verdicts.explode("votes").unnest("votes").select(*PAIR, "judge", exported="grade")
    both = ratings.join(exported, on=[*PAIR, "judge"], how="left", maintain_order="left")
    spared = pl.lit(made["cascade"]) & pl.col("exported").is_null()
    status = pl.when(spared).then(pl.lit(STOPPED)).otherwise("status")
    return both.with_columns(grade=pl.when(~spared).then("said"), status=status)


def _derived(both: pl.DataFrame, verdicts: pl.DataFrame, made: Mapping[str, Any]) -> pl.DataFrame:
    """Return the verdicts that follow from the ledger; what experts decided stays theirs."""
    decided = voting.decide(_with_others(both, made), list(made["panel"]), made["policy"])
    people = pl.col("by") == EXPERTS
    return (
        decided.join(verdicts.select(*PAIR, was="verdict", by="policy"), on=PAIR)
        .with_columns(
            verdict=pl.when(people).then("was").otherwise("verdict"),
            policy=pl.when(people).then("by").otherwise("policy"),
        )
        .select(*TABLES["verdicts"])
    )


def expected(
    verdicts: pl.DataFrame, queries: pl.DataFrame, texts: pl.DataFrame, chosen: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Return every table of labels as it must be, by what `reading` calls it.

    `texts` has doc_id and content, `chosen` is what a reranker is given.
    """
    positives = verdicts.filter(pl.col("verdict") == "relevant").select(*PAIR, score=pl.lit(1, pl.Int32))
    negatives = verdicts.filter(pl.col("verdict") == "not relevant").select(*PAIR, score=pl.lit(0, pl.Int32))
    reranked = chosen.select("query_id").unique()
    ranked = chosen.sort(PAIR).group_by("query_id", maintain_order=True).agg(pl.col("doc_id").alias("corpus-ids"))
    tables = {"grades": verdicts.select(*PAIR, "verdict", "votes")}
    tables["contested"] = tables["grades"].filter(pl.col("verdict") == "contested").drop("verdict")
    shared = {f"reranking {name}": table.join(reranked, on="query_id", how="semi") for name, table in tables.items()}
    return {
        **tables,
        **shared,
        "verdicts": verdicts,
        "qrels": positives,
        "judged": pl.concat([positives, negatives]),
        "topics": queries.with_columns(pl.col("text").map_elements(lambda text: " ".join(text.split()), pl.String)),
        "reranking qrels": chosen,
        "reranking top_ranked": ranked,
        "reranking queries": queries.join(reranked, on="query_id", how="semi"),
        "reranking corpus": texts.join(chosen, on="doc_id", how="semi"),
    }


def _candidates(verdicts: pl.DataFrame, given: pl.DataFrame, made: Mapping[str, Any]) -> pl.DataFrame:
    """Draw a reranker's candidates again.

    `by_rank` takes negatives by their place in the pool, which no export holds: those that were `given` count as the
    first ones, so that their number and labels are verified and not which of the negatives they are.
    """
    rerank = check(Rerank, made["rerank"], "MANIFEST.json: rerank")
    places = verdicts.select(PAIR).join(given.select(*PAIR, position=pl.lit(0, pl.Int32)), on=PAIR, how="left")
    old = [table.with_columns(pl.col(PAIR).str.slice(_prefix(made))) for table in (verdicts, places.fill_null(1))]
    chosen, _ = reranking.candidates(old[0] if rerank.enabled else old[0].clear(), old[1], rerank, made["seed"])
    if made["prefixed"]:  # the draw is by the ids of before
        chosen = chosen.with_columns(query_id="q-" + pl.col("query_id"), doc_id="d-" + pl.col("doc_id"))
    return chosen


def _prefix(made: Mapping[str, Any]) -> int:
    """Return how many characters of every id the export put in front."""
    return len("q-") if made["prefixed"] else 0


def _texts(written: Written, verdicts: pl.DataFrame, made: Mapping[str, Any]) -> _Texts:
    """Read the texts once."""
    judged, limits, count = verdicts.select("doc_id").unique(), made["shown"], 0
    rows: list[tuple[str, str, str]] = []
    for batch in written.documents():
        count += batch.height
        for doc_id, title, text in batch.join(judged, on="doc_id", how="semi").iter_rows():
            seen = passages.cut(shown(title, text), limits["passage_tokens"])
            rows.append((doc_id, text_digest(seen), content(title, text)))
    asked = [
        (key, text_digest(passages.cut(text, limits["query_tokens"]))) for key, text in written.queries.iter_rows()
    ]
    documents = pl.DataFrame(rows, dict.fromkeys(["doc_id", "passage_digest", "content"], pl.String), orient="row")
    queries = pl.DataFrame(asked, dict.fromkeys(["query_id", "query_digest"], pl.String), orient="row")
    pairs = (
        verdicts.select(PAIR)
        .join(queries.unique("query_id"), on="query_id", how="left", maintain_order="left")
        .join(documents.drop("content").unique("doc_id"), on="doc_id", how="left", maintain_order="left")
    )
    return _Texts(pairs, documents.select("doc_id", "content"), count)


def _unknown(pairs: pl.DataFrame) -> Iterator[str]:
    for column, kind in (("query_id", "query"), ("doc_id", "document")):
        digest = "query_digest" if kind == "query" else "passage_digest"
        lost = pairs.filter(pl.col(digest).is_null())[column].unique(maintain_order=True).to_list()
        if lost:
            yield f"{kind} ids: {len(lost):,} were judged and have no text, for example {listed(lost)}"


def _said(pairs: pl.DataFrame, name: str, judge: Mapping[str, Any], votes: Votes, skipped: int) -> pl.DataFrame:
    """Return query_id, doc_id, judge, what it said, and the status, null where nothing is known of a pair."""
    if judge["recorded"] is None:
        known = pairs.join(votes.of(judge), on=TEXTS, how="left", maintain_order="left")
    else:
        known = _replayed(pairs, name, judge, votes.recorded, skipped)
    return known.select(*PAIR, "said", "status", judge=pl.lit(name))


def _replayed(
    pairs: pl.DataFrame, name: str, judge: Mapping[str, Any], files: Mapping[str, Path], skipped: int
) -> pl.DataFrame:
    """Return pairs with what a file of recorded grades says, which knows them by the ids of before."""
    if name not in files:
        raise DataError(
            f"{name} replayed recorded grades, which no ledger holds; give its file: --recorded {name}=FILE"
        )
    replay = Replay(name, Recorded(path=files[name], assessor=judge["recorded"]["assessor"]))
    if digest(replay.identity) != judge["judge"]:
        raise DataError(f"{files[name]}: not the file that {name} replayed, for its SHA-256 is another")
    said = [
        replay.recorded(query_id[skipped:], doc_id[skipped:]) for query_id, doc_id in pairs.select(PAIR).iter_rows()
    ]
    return pairs.with_columns(
        said=pl.Series([each.grade for each in said], dtype=pl.String),
        status=pl.Series([each.status for each in said], dtype=pl.String),
    )


def _votes(both: pl.DataFrame) -> Iterator[str]:
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


def _with_others(both: pl.DataFrame, made: Mapping[str, Any]) -> pl.DataFrame:
    """Return the ratings with those of pairs that were judged and not exported: `dawid-skene` learns from all."""
    ratings = both.select(*PAIR, "judge", "grade", "status")
    rows = [
        (f"\0{number}", f"\0{copy}", judge, grade, "rated" if grade else "unparsed")
        for number, outside in enumerate(made["outside"])
        for copy in range(outside["pairs"])
        for judge, grade in outside["votes"].items()
    ]
    return pl.concat([ratings, pl.DataFrame(rows, ratings.schema, orient="row")])
