"""Verify an export: its files against the manifest, and every label against what follows from the ledger, offline."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from curate.commands.verify import readmes
from curate.commands.verify import readmes as triples
from curate.core.config import text_digest
from curate.core.errors import DataError, UserError
from curate.core.records import shown
from curate.ledger import Ledger
from curate.llm import passages
from curate.panel.voting import EXPERTS, PAIR
from curate.runs.derive import Votes, candidates, expected, graded
from curate.runs.differences import content, differences
from curate.system.files import read_table
from curate.tables.exporters import EXPORTERS, FILES, FOLDERS, OF_CANDIDATES, READERS, manifest
from curate.tables.exporters.manifest import foreign
from curate.tables.exporters.reading import RETRIEVAL_QUERIES, ExportContents
from curate.tables.kinds import kind
from curate.tables.kinds.benchmark_kind import listed

_UNREADABLE = (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError, pl.exceptions.PolarsError)
"""What is raised where a file holds something else than its name says."""


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
    unchecked: list[str] = field(default_factory=list)
    """What follows neither from the tables nor from the ledger: a part each, as a noun phrase."""


@dataclass(frozen=True)
class _Texts:
    """The texts of an export by digest; only documents that were judged are looked at."""

    pairs: pl.DataFrame
    """query_id, doc_id, and the digests of what judges saw, null without a text."""
    contents: pl.DataFrame
    """doc_id, content: a digest of title and text."""
    documents: int
    """How many there are in all."""


def verify(folder: Path, ledger: Ledger, recorded: Mapping[str, Path] | None = None) -> list[Verified]:
    """Return what is wrong with an export, or with every format of a run's `export`; DataError if it is none.

    `recorded` gives the files of judges that replayed grades, for no ledger holds those.
    """
    own = (folder / manifest.NAME).is_file()
    folders = [folder] if own else sorted(path.parent for path in folder.glob(f"*/{manifest.NAME}"))
    if not folders:
        raise DataError(
            f"{folder}: no {manifest.NAME} in it or one level below; give a folder that `curate export` wrote"
        )
    votes, seen = Votes(ledger, recorded or {}), dict[tuple[str, int | None], str]()
    return [_readable(folder, votes, seen) for folder in folders]


def _readable(folder: Path, votes: Votes, seen: dict[tuple[str, int | None], str]) -> Verified:
    """Return what is wrong with one format; a manifest of another form is one thing that is."""
    try:
        return _verified(folder, votes, seen)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        return Verified(folder, [f"{manifest.NAME}: it is not in the form that curate writes ({type(error).__name__})"])


def _verified(folder: Path, votes: Votes, seen: dict[tuple[str, int | None], str]) -> Verified:
    body = manifest.read(folder)
    found = Verified(folder, list(manifest.changed(folder, body["files"])))
    found.differences += foreign(folder, body["format"], body["files"])
    if body["format"] not in {*EXPORTERS.names(), *FILES}:
        found.differences.append(
            f"{manifest.NAME}: no exporter writes the format {body['format']!r}; expected one of "
            f"{', '.join(EXPORTERS.names())}, or install the package that wrote it"
        )
    elif body["format"] not in READERS:
        found.unchecked.append(f"labels and texts, for those of the format {body['format']} are not read")
    elif body["format"] in OF_CANDIDATES and "labels" not in body:  # as 0.1 wrote it
        found.unchecked.append(
            "labels and texts, for this manifest says nothing of how labels were made; write it again"
        )
        return found
    if body["format"] not in READERS:
        return found
    try:
        _compare(found, body, votes, seen)
    except UserError as error:
        found.differences.append(f"cannot be read as an export any more: {error}")
    except _UNREADABLE as error:  # whose words may quote a text
        found.differences.append(f"cannot be read as an export any more ({type(error).__name__})")
    return found


def _compare(found: Verified, body: Mapping[str, Any], votes: Votes, seen: dict[tuple[str, int | None], str]) -> None:
    """Add what differs in the texts and labels of an export; any file of it may be another one."""
    module, _, name = READERS[body["format"]].partition(":")
    written: ExportContents = getattr(import_module(module), name)(found.folder)
    verdicts = read_table(found.folder, "verdicts")
    texts = _texts(written, verdicts, body["labels"]["shown"], seen)
    for name, count in (("queries", written.queries.height), ("corpus", texts.documents)):
        if count != body["rows"][name]:
            found.differences.append(f"{name}: expected {body['rows'][name]:,} texts, found {count:,}")
    found.differences += _unknown(texts.pairs)
    _labels(found, written, verdicts, texts, body, votes)


def _labels(
    found: Verified,
    written: ExportContents,
    verdicts: pl.DataFrame,
    texts: _Texts,
    body: Mapping[str, Any],
    votes: Votes,
) -> None:
    """Add what the ledger says otherwise, table by table."""
    say, made = found.differences, body["labels"]
    try:
        derived = votes.derive(texts.pairs, verdicts, made)
    except DataError as error:
        say.append(str(error))
        return
    say += derived.differences
    found.pairs, people = verdicts.height, verdicts.filter(pl.col("policy") == EXPERTS).height
    if people != made["experts"]:
        say.append(
            f"verdicts.parquet: {people:,} labels are said to be experts', the manifest says {made['experts']:,}"
        )
    if people:
        found.unchecked.append(f"{people:,} labels of experts, which no ledger holds")
    given = next((table for labels, table in written.tables.values() if labels == "reranking qrels"), None)
    chosen = verdicts.select(PAIR).clear()
    if written.reranks:
        chosen = candidates(derived.verdicts, chosen if given is None else given, made)
    if given is None and chosen.height:
        say.append(f"reranking: {chosen.height:,} candidates should be there, and the whole folder is missing")
    grades = graded(derived.verdicts, dict(written.tables.values()), made)
    wanted = expected(derived.verdicts, written.queries, texts.contents, chosen, made, grades)
    for place, (labels, table) in {"verdicts.parquet": ("verdicts", verdicts), **written.tables}.items():
        say += differences(place, table, wanted[labels])
        found.labels += table.height if labels != RETRIEVAL_QUERIES else 0
    _of_kinds(found, written, body, votes.ledger)
    if written.triples is not None:
        wrong, unchecked = triples.compare_triples(found.folder, body, written, written.triples, derived.verdicts)
        found.differences += wrong
        found.unchecked += unchecked
        found.labels += written.triples.height
    if written.reranks:
        rerank = made["rerank"]
        if chosen.height and rerank["draw"] == "by_rank":
            found.unchecked.append("which negatives a reranker is given, for no export holds their place in the pool")
        wrong, unchecked = readmes.compare_readmes(
            found.folder, body, written, texts.documents, derived.verdicts, chosen, grades
        )
        found.differences += wrong
        found.unchecked += unchecked


def _of_kinds(found: Verified, written: ExportContents, body: Mapping[str, Any], ledger: Ledger) -> None:
    """Add what differs in the tables of kinds that have their own."""
    made = body.get("kinds", {}) if body["format"] in FOLDERS else {}
    found.differences += [f"{name}: the whole folder is missing" for name in sorted({*made} - {*written.kinds})]
    for name, tables in written.kinds.items():
        checked = kind(name).verify(kind(name).read(tables), made.get(name, {}), ledger)
        found.differences += checked.differences
        found.unchecked += checked.unchecked
        found.labels += checked.labels


def _texts(
    written: ExportContents,
    verdicts: pl.DataFrame,
    limits: Mapping[str, int | None],
    seen: dict[tuple[str, int | None], str],
) -> _Texts:
    """Read the texts once; `seen` remembers what judges were shown of a document, for the next format."""
    judged, count, limit = verdicts.select("doc_id").unique(), 0, limits["passage_tokens"]
    rows: list[tuple[str, str, str]] = []
    for batch in written.documents():
        count += batch.height
        for doc_id, title, text in batch.join(judged, on="doc_id", how="semi").iter_rows():
            key = content(title, text), limit
            if key not in seen:
                seen[key] = text_digest(passages.cut(shown(title, text), limit))
            rows.append((doc_id, seen[key], key[0]))
    queries = [
        (query_id, text_digest(passages.cut(text, limits["query_tokens"])))
        for query_id, text in written.queries.iter_rows()
    ]
    documents = _frame(rows, "doc_id", "passage_digest", "content")
    asked = _frame(queries, "query_id", "query_digest").unique("query_id")
    pairs = (
        verdicts.select(PAIR)
        .join(asked, on="query_id", how="left", maintain_order="left")
        .join(documents.drop("content").unique("doc_id"), on="doc_id", how="left", maintain_order="left")
    )
    return _Texts(pairs, documents.select("doc_id", "content"), count)


def _frame(rows: list[Any], *columns: str) -> pl.DataFrame:
    return pl.DataFrame(rows, dict.fromkeys(columns, pl.String), orient="row")


def _unknown(pairs: pl.DataFrame) -> Iterator[str]:
    for column, what in (("query_id", "query"), ("doc_id", "document")):
        digest = "query_digest" if what == "query" else "passage_digest"
        lost = pairs.filter(pl.col(digest).is_null())[column].unique(maintain_order=True).to_list()
        if lost:
            yield f"{what} ids: {len(lost):,} were judged and have no text, for example {listed(lost)}"
