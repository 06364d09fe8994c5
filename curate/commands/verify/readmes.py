"""READMEs and training triples of an export, recomputed from its tables, verdicts and manifest, and compared."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import polars as pl

from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.core.records import Document
from curate.panel.voting import PAIR
from curate.runs.derive import apart_of, names, replaced, scale_of
from curate.tables.exporters import triples
from curate.tables.exporters.card import Table, form, told
from curate.tables.exporters.mteb import readmes
from curate.tables.exporters.reading import ExportContents
from curate.tables.kinds import kind
from curate.tables.kinds.benchmark_kind import listed

TOLD = "what the READMEs say of the run, which stands in MANIFEST.json and in no table"


@dataclass(frozen=True)
class WrittenCorpus:
    """Documents of an export as a `Corpus`, the input of exporters."""

    written: ExportContents
    size: int

    @property
    def digest(self) -> str:
        """Return an empty digest, since nothing about these documents is cached."""
        return ""

    def __len__(self) -> int:
        return self.size

    def batches(self) -> Iterator[list[Document]]:
        """Yield batches of the written documents."""
        for batch in self.written.documents():
            yield [Document(*row) for row in batch.iter_rows()]


def compare_readmes(
    folder: Path,
    body: Mapping[str, Any],
    written: ExportContents,
    size: int,
    verdicts: pl.DataFrame,
    chosen: pl.DataFrame,
    grades: pl.DataFrame | None,
    recomputed: Collection[str],
) -> tuple[list[str], list[str]]:
    """Return differences in the READMEs of an export in format mteb, and the parts that could not be checked.

    `body` is the manifest, `size` the number of documents. `verdicts`, `chosen` (candidates of reranking) and `grades`
    (graded labels) are recomputed. Front matter and figures are checked by the tables. Statements on the run are only
    compared with the manifest and reported as unchecked, but for those of the card's entries in `recomputed`.
    """
    card = body.get("card")
    if not isinstance(card, Mapping) or card.get("form") != form():
        return [], ["the READMEs, for another version of curate wrote them; export again with this one"]
    try:
        facts = json.loads(card["facts"])
        exported = Benchmark(
            name=body["name"],
            language=body["language"],
            queries=written.queries,
            corpus=WrittenCorpus(written, size),
            qrels=verdicts.filter(pl.col("verdict") == "relevant").select(*PAIR, score=pl.lit(1, pl.Int32)),
            candidates=chosen,
            verdicts=verdicts,
            facts=facts,
            tables=_tables(written),
            scale=scale_of(body["labels"]),
            graded=grades,
            replaced=replaced(body["labels"]),
            apart=apart_of(body["labels"]),
        )
        expected = readmes(exported, folder)
    except (DataError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return [f"README.md: cannot be made again ({type(error).__name__}: {error})"], []
    run_facts = ", ".join(told({name: fact for name, fact in facts.items() if name not in recomputed}))
    return list(otherwise(folder, expected)), [f"{TOLD} ({run_facts})"] if run_facts else []


def _tables(written: ExportContents) -> dict[str, pl.DataFrame]:
    """Return table of a task type -> its rows; parts of one table are concatenated, else the first one counts."""
    merged: dict[str, pl.DataFrame] = {}
    for name, tables in written.kinds.items():
        rows, table = kind(name).read(tables), kind(name).table
        if table not in merged:
            merged[table] = rows
        elif kind(name).part:
            merged[table] = pl.concat([merged[table], rows])
    return merged


def otherwise(folder: Path, expected: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence on the first differing line of each file (path -> expected text); missing files are skipped."""
    for path, text in expected.items():
        if (folder / path).is_file():
            actual, expected_lines = (
                (folder / path).read_bytes().decode("utf-8", "replace").split("\n"),
                text.split("\n"),
            )
            same = [actual_line == line for actual_line, line in zip(actual, expected_lines, strict=False)]
            if actual != expected_lines:
                line = [*same, False].index(False) + 1
                yield f"{path}:{line}: it is not what follows from the tables and the manifest"


# Training triples, derived again: sides of documents, order, texts and card.

CHOICE = "which of the judged pairs became triples, for that follows from the pool and from what the test set knows"
OTHER_FORM = "the README, for another version of curate wrote it; write the set again with this one"
_SIDES = {1: ("positive_id", "relevant"), 0: ("negative_id", "not relevant")}
"""Score of a training pair -> (column of `train` with its document, verdict that the document must have)."""


def compare_triples(
    folder: Path, body: Mapping[str, Any], written: ExportContents, train: pl.DataFrame, verdicts: pl.DataFrame
) -> tuple[list[str], list[str]]:
    """Return differences in training triples, and the parts that could not be checked; `verdicts` are recomputed.

    Every positive document must have the verdict relevant, every negative one not relevant. Order of triples, lines of
    `triples.jsonl` with scores, and texts are recomputed from the pairs.
    """
    chosen = pl.concat(
        train.select("query_id", doc_id=column, score=pl.lit(score, pl.Int32)).unique()
        for score, (column, _) in _SIDES.items()
    )
    wrong = list(_misplaced(chosen, verdicts))
    if wrong:
        return wrong, [CHOICE]
    facts = json.loads(body["card"]["facts"])
    train_set = Benchmark(
        name=body["name"],
        language=body["language"],
        queries=written.queries,
        corpus=WrittenCorpus(written, body["rows"]["corpus"]),
        qrels=chosen.filter(pl.col("score") == 1),
        candidates=chosen,
        verdicts=verdicts,
        facts=facts,
        scale=scale_of(body["labels"]),
    )
    try:
        expected = triples.content(train_set)
    except (DataError, KeyError) as error:
        return [f"{triples.LISTS}: cannot be made again ({type(error).__name__}: {error})"], [CHOICE]
    documents = pl.concat(written.documents()).select("doc_id", "text")
    differences = [
        f"{name}: its rows are not those that follow from the pairs and the ledger, or not in their order"
        for name, table in (("train", train), ("queries", written.queries), ("documents", documents))
        if not table.equals(expected.tables[name])
    ]
    differences += _changed_line(folder / triples.LISTS, expected.lines)
    if body["card"]["form"] != form():
        return differences, [CHOICE, OTHER_FORM]
    tables = [
        Table(name, path.name, len(table), table.columns)
        for name, table in expected.tables.items()
        for path in folder.glob(f"{name}-*.parquet")
    ]
    differences += otherwise(folder, {"README.md": triples.readme(train_set, expected, tables)})
    return differences, [CHOICE, f"{TOLD} ({', '.join(told(facts))})"]


def _misplaced(chosen: pl.DataFrame, verdicts: pl.DataFrame) -> Iterator[str]:
    """Yield sentences on documents that contradict their verdict, and on judged pairs without a triple."""
    decided = chosen.join(verdicts.select(*PAIR, "verdict"), on=PAIR, how="left", maintain_order="left")
    for score, (column, verdict) in _SIDES.items():
        misplaced = decided.filter((pl.col("score") == score) & pl.col("verdict").ne_missing(verdict)).sort(PAIR)
        if misplaced.height:
            yield (
                f"train: {misplaced.height:,} pairs of {column} are not {verdict} by the ledger, for example "
                f"{listed(names(misplaced))}"
            )
    missing = verdicts.join(chosen, on=PAIR, how="anti", maintain_order="left")
    if missing.height:
        yield f"train: {missing.height:,} judged pairs are in no triple, for example {listed(names(missing))}"


def _changed_line(path: Path, expected: Iterable[str]) -> Iterator[str]:
    """Yield a sentence on the first differing line of a file, if any; a missing file is skipped."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", newline="\n") as stream:
        for number, (actual, line) in enumerate(zip_longest(stream, expected), start=1):
            if actual != line:
                yield f"{path.name}:{number}: it is not what follows from the tables and the ledger"
                return
