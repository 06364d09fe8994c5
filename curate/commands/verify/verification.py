"""Offline verification of an export: files by the manifest, and labels by recomputing them from the ledger."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from curate.commands.verify import readmes
from curate.commands.verify import readmes as triples
from curate.commands.verify.records import ExportedTexts, PoolCheck, compare_pool
from curate.core.config import text_digest
from curate.core.errors import DataError, UserError
from curate.core.figures import Record, figure
from curate.core.records import shown
from curate.ledger import Ledger
from curate.llm import passages
from curate.panel.voting import EXPERTS, PAIR
from curate.runs.derive import Votes, candidates, content, differences, expected, graded
from curate.system.files import read_table, sha256
from curate.tables.exporters import EXPORTERS, FILES, FOLDERS, READERS, manifest
from curate.tables.exporters.manifest import foreign
from curate.tables.exporters.reading import RETRIEVAL_QUERIES, ExportContents
from curate.tables.kinds import kind
from curate.tables.kinds.benchmark_kind import listed

_UNREADABLE = (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError, pl.exceptions.PolarsError)
"""Errors that reading a file with unexpected content may raise."""


class Verified(Record, schema_name="row"):
    """A row per export of the folder; an error if anything differs or could not be checked."""

    folder: Path = figure("folder of the export")
    differences: list[str] = figure("sentences with counts and example ids; empty if the export agrees")
    pairs: int = figure("judged pairs looked up in the ledger")
    labels: int = figure("rows of labels derived again")
    unchecked: list[str] = figure("parts that could not be checked")
    as_given: list[str] = figure("kinds of benchmark with labels as given, which no panel confirmed")
    digest: str = figure("SHA-256 of MANIFEST.json")


@dataclass
class _Verification:
    """What was found so far in one export."""

    folder: Path
    differences: list[str]
    pairs: int = 0
    labels: int = 0
    unchecked: list[str] = field(default_factory=list)
    as_given: list[str] = field(default_factory=list)

    def verified(self) -> Verified:
        digest = sha256(self.folder / manifest.NAME)
        return Verified(
            self.folder, self.differences, self.pairs, self.labels, self.unchecked, sorted(self.as_given), digest
        )


@dataclass(frozen=True)
class _Texts:
    """Digests of the texts of an export's judged documents and queries."""

    pairs: pl.DataFrame
    """query_id, doc_id, and digests of the texts that judges saw, null without a text."""
    contents: pl.DataFrame
    """doc_id and `content`, a digest of title and text."""
    doc_ids: list[str]
    """Ids of all documents."""


def verify(
    folder: Path, ledger: Ledger, recorded: Mapping[str, Path] | None = None, digests: Collection[str] = ()
) -> list[Verified]:
    """Return the result of verifying an export, or each format in a run's folder `export`; DataError if there is none.

    `recorded` is judge -> file, for judges that replayed recorded grades, which are not in the ledger. `digests` are
    those of the published manifests: if any are given, every manifest must have one of them, and each one a manifest.
    """
    is_export = (folder / manifest.NAME).is_file()
    folders = [folder] if is_export else sorted(path.parent for path in folder.glob(f"*/{manifest.NAME}"))
    if not folders:
        raise DataError(
            f"{folder}: no {manifest.NAME} in it or one level below; give a folder that `curate export` wrote"
        )
    votes, seen = Votes(ledger, recorded or {}), dict[tuple[str, int | None], str]()
    results = [_readable(folder, votes, seen) for folder in folders]
    for result in results if digests else ():
        if result.digest not in digests:
            result.differences.append(f"{manifest.NAME}: its digest is {result.digest}, and none of those given")
    if foreign_digests := sorted({*digests} - {result.digest for result in results}):
        results[0].differences.append(f"{manifest.NAME}: no manifest here has the digest {', '.join(foreign_digests)}")
    return results


def _readable(folder: Path, votes: Votes, seen: dict[tuple[str, int | None], str]) -> Verified:
    """Return the result of verifying one export; a malformed manifest is a difference."""
    try:
        return _verified(folder, votes, seen).verified()
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        sentence = f"{manifest.NAME}: it is not in the form that curate writes ({type(error).__name__})"
        return _Verification(folder, [sentence]).verified()


def _verified(folder: Path, votes: Votes, seen: dict[tuple[str, int | None], str]) -> _Verification:
    body = manifest.read(folder)
    result = _Verification(folder, list(manifest.changed(folder, body["files"])))
    result.differences += foreign(folder, body["format"], body["files"])
    if body["format"] not in {*EXPORTERS.names(), *FILES}:
        result.differences.append(
            f"{manifest.NAME}: no exporter writes the format {body['format']!r}; expected one of "
            f"{', '.join(EXPORTERS.names())}, or install the package that wrote it"
        )
    elif body["format"] not in READERS:
        result.unchecked.append(f"labels and texts, for those of the format {body['format']} are not read")
    if body["format"] not in READERS:
        return result
    try:
        _compare(result, body, votes, seen)
    except UserError as error:
        result.differences.append(f"cannot be read as an export any more: {error}")
    except _UNREADABLE as error:  # whose words may quote a text
        result.differences.append(f"cannot be read as an export any more ({type(error).__name__})")
    return result


def _compare(
    result: _Verification, body: Mapping[str, Any], votes: Votes, seen: dict[tuple[str, int | None], str]
) -> None:
    """Add differences in texts and labels to the result; any file of the export may have been replaced."""
    module, _, name = READERS[body["format"]].partition(":")
    written: ExportContents = getattr(import_module(module), name)(result.folder)
    verdicts = read_table(result.folder, "verdicts")
    texts = _texts(written, verdicts, body["labels"]["shown"], seen)
    for name, count in (("queries", written.queries.height), ("corpus", len(texts.doc_ids))):
        if count != body["rows"][name]:
            result.differences.append(f"{name}: expected {body['rows'][name]:,} texts, found {count:,}")
    for column, digest, what in (("query_id", "query_digest", "query"), ("doc_id", "passage_digest", "document")):
        lost = texts.pairs.filter(pl.col(digest).is_null())[column].unique(maintain_order=True).to_list()
        if lost:
            result.differences.append(
                f"{what} ids: {len(lost):,} were judged and have no text, for example {listed(lost)}"
            )
    _compare_labels(result, written, verdicts, texts, body, votes)


def _compare_labels(
    result: _Verification,
    written: ExportContents,
    verdicts: pl.DataFrame,
    texts: _Texts,
    body: Mapping[str, Any],
    votes: Votes,
) -> None:
    """Add differences between the export's tables of labels and those recomputed from the ledger to the result."""
    problems, label_facts = result.differences, body["labels"]
    try:
        derived = votes.derive(texts.pairs, verdicts, label_facts)
    except DataError as error:
        problems.append(str(error))
        return
    problems += derived.differences
    result.pairs, people = verdicts.height, verdicts.filter(pl.col("policy") == EXPERTS).height
    if people != label_facts["experts"]:
        problems.append(
            f"verdicts.parquet: {people:,} labels are said to be experts', the manifest says {label_facts['experts']:,}"
        )
    if people:
        result.unchecked.append(
            f"{people:,} labels of experts, which no ledger holds (none is exported of a query that is not published)"
        )
    chosen = _candidates(problems, written, derived.verdicts, label_facts)
    grades = graded(derived.verdicts, dict(written.tables.values()), label_facts)
    expected_tables = expected(derived.verdicts, written.queries, texts.contents, chosen, label_facts, grades)
    for path, (labels, table) in {"verdicts.parquet": ("verdicts", verdicts), **written.tables}.items():
        problems += differences(path, table, expected_tables[labels])
        result.labels += table.height if labels != RETRIEVAL_QUERIES else 0
    _compare_kinds(result, written, body, votes.ledger)
    pool = PoolCheck()
    if written.triples is None:
        exported = ExportedTexts(texts.pairs, texts.doc_ids, written.queries["query_id"].to_list())
        pool = compare_pool(body, exported, chosen, votes)
        result.differences += pool.differences
        result.unchecked += pool.unchecked
    if written.triples is not None:
        wrong, unchecked = triples.compare_triples(result.folder, body, written, written.triples, derived.verdicts)
        result.differences += wrong
        result.unchecked += unchecked
        result.labels += written.triples.height
    if written.reranks:
        rerank = label_facts["rerank"]
        if chosen.height and rerank["draw"] == "by_rank":
            result.unchecked.append("which negatives a reranker is given, for no export holds their place in the pool")
        wrong, unchecked = readmes.compare_readmes(
            result.folder, body, written, len(texts.doc_ids), derived.verdicts, chosen, grades, pool.recomputed
        )
        result.differences += wrong
        result.unchecked += unchecked


def _candidates(
    problems: list[str], written: ExportContents, verdicts: pl.DataFrame, labels: Mapping[str, Any]
) -> pl.DataFrame:
    """Return the candidates of reranking, recomputed; add to the problems if their whole folder is missing."""
    published = next((table for name, table in written.tables.values() if name == "reranking qrels"), None)
    none = verdicts.select(PAIR).clear()
    chosen = candidates(verdicts, none if published is None else published, labels) if written.reranks else none
    if published is None and chosen.height:
        problems.append(f"reranking: {chosen.height:,} candidates should be there, and the whole folder is missing")
    return chosen


def _compare_kinds(result: _Verification, written: ExportContents, body: Mapping[str, Any], ledger: Ledger) -> None:
    """Add differences in tables of other task types to the result."""
    kind_facts = body.get("kinds", {}) if body["format"] in FOLDERS else {}
    result.differences += [f"{name}: the whole folder is missing" for name in sorted({*kind_facts} - {*written.kinds})]
    for name, tables in written.kinds.items():
        checked = kind(name).verify(kind(name).read(tables), kind_facts.get(name, {}), ledger)
        result.differences += checked.differences
        result.unchecked += checked.unchecked
        result.labels += checked.labels
        result.as_given += [name] if checked.as_given else []


def _texts(
    written: ExportContents,
    verdicts: pl.DataFrame,
    limits: Mapping[str, int | None],
    seen: dict[tuple[str, int | None], str],
) -> _Texts:
    """Return digests of the texts, in one pass over the documents; `seen` caches digests of passages across formats.

    `limits` are the maximum lengths to which judges saw the texts.
    """
    judged, doc_ids, limit = verdicts.select("doc_id").unique(), list[str](), limits["passage_tokens"]
    rows: list[tuple[str, str, str]] = []
    for batch in written.documents():
        doc_ids.extend(batch["doc_id"])
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
    query_digests = _frame(queries, "query_id", "query_digest").unique("query_id")
    pairs = (
        verdicts.select(PAIR)
        .join(query_digests, on="query_id", how="left", maintain_order="left")
        .join(documents.drop("content").unique("doc_id"), on="doc_id", how="left", maintain_order="left")
    )
    return _Texts(pairs, documents.select("doc_id", "content"), doc_ids)


def _frame(rows: list[Any], *columns: str) -> pl.DataFrame:
    return pl.DataFrame(rows, dict.fromkeys(columns, pl.String), orient="row")
