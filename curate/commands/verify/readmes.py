"""The READMEs of an export, made again from its tables, its verdicts, and what its manifest says of the run."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import polars as pl

from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.core.records import Document
from curate.panel.voting import PAIR
from curate.runs.derive import apart_of, replaced, scale_of
from curate.runs.differences import names
from curate.tables.exporters import triples
from curate.tables.exporters.card import Table, form, told
from curate.tables.exporters.mteb import readmes
from curate.tables.exporters.reading import ExportContents
from curate.tables.exporters.triples import TriplesContent
from curate.tables.kinds import kind
from curate.tables.kinds.benchmark_kind import listed

TOLD = "what the READMEs say of the run, which stands in MANIFEST.json and in no table"


@dataclass(frozen=True)
class WrittenCorpus:
    """The documents of an export, as an exporter is given them."""

    written: ExportContents
    size: int

    @property
    def digest(self) -> str:
        """Return nothing: none of them is kept."""
        return ""

    def __len__(self) -> int:
        return self.size

    def batches(self) -> Iterator[list[Document]]:
        """Yield the documents as they were written."""
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
) -> tuple[list[str], list[str]]:
    """Return what is wrong with the READMEs of the format mteb, and what of them could not be checked.

    `body` is the manifest, `size` the number of documents; `verdicts`, the `chosen` candidates
    and the graded labels, if any, are derived anew. A
    front matter and all figures of a folder follow from its tables. What is said of the run as a whole, such as its
    agreement, must be what the manifest says, and is named as not checked.
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
        wanted = readmes(exported, folder)
    except (DataError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return [f"README.md: cannot be made again ({type(error).__name__}: {error})"], []
    parts = ", ".join(told(facts))
    return list(otherwise(folder, wanted)), [f"{TOLD} ({parts})"] if parts else []


def _tables(written: ExportContents) -> dict[str, pl.DataFrame]:
    """Return the tables of kinds by name; kinds that hold parts of one table give it together, else the first does."""
    found: dict[str, pl.DataFrame] = {}
    for name, tables in written.kinds.items():
        own, table = kind(name).read(tables), kind(name).table
        if table not in found:
            found[table] = own
        elif kind(name).part:
            found[table] = pl.concat([found[table], own])
    return found


def otherwise(folder: Path, wanted: Mapping[str, str]) -> Iterator[str]:
    """Yield where a file of text is another one; one that is missing was named before."""
    for path, text in wanted.items():
        if (folder / path).is_file():
            found, lines = (folder / path).read_bytes().decode("utf-8", "replace").split("\n"), text.split("\n")
            same = [one == line for one, line in zip(found, lines, strict=False)]
            if found != lines:
                line = [*same, False].index(False) + 1
                yield f"{path}:{line}: it is not what follows from the tables and the manifest"


# A set to train on, derived again: which side of a triple a document stands on, the order, the texts, the card.

CHOICE = "which of the judged pairs became triples, for that follows from the pool and from what the test set knows"
OTHER_FORM = "the README, for another version of curate wrote it; write the set again with this one"
_SIDES = {1: ("positive_id", "relevant"), 0: ("negative_id", "not relevant")}
"""Score -> column of `train`, and the verdict that puts a document there."""


def compare_triples(
    folder: Path, body: Mapping[str, Any], written: ExportContents, train: pl.DataFrame, verdicts: pl.DataFrame
) -> tuple[list[str], list[str]]:
    """Return what differs in a set to train on, and what could not be checked; `verdicts` are derived anew.

    Every document must stand on the side that its verdict says. From the pairs follow the order of the triples, the
    lines of `triples.jsonl` with their scores, and which texts there are.
    """
    chosen = pl.concat(
        train.select("query_id", doc_id=column, score=pl.lit(score, pl.Int32)).unique()
        for score, (column, _) in _SIDES.items()
    )
    wrong = list(_sides(chosen, verdicts))
    if wrong:
        return wrong, [CHOICE]
    facts = json.loads(body["card"]["facts"])
    held = Benchmark(
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
        wanted = triples.content(held)
    except (DataError, KeyError) as error:
        return [f"{triples.LISTS}: cannot be made again ({type(error).__name__}: {error})"], [CHOICE]
    differences = [*_triples_tables(written, train, wanted), *_lines(folder / triples.LISTS, wanted.lines)]
    if body["card"]["form"] != form():
        return differences, [CHOICE, OTHER_FORM]
    tables = [
        Table(name, path.name, len(table), table.columns)
        for name, table in wanted.tables.items()
        for path in folder.glob(f"{name}-*.parquet")
    ]
    differences += otherwise(folder, {"README.md": triples.readme(held, wanted, tables)})
    return differences, [CHOICE, f"{TOLD} ({', '.join(told(facts))})"]


def _sides(chosen: pl.DataFrame, verdicts: pl.DataFrame) -> Iterator[str]:
    """Yield documents on the wrong side, and judged pairs that are in no triple."""
    decided = chosen.join(verdicts.select(*PAIR, "verdict"), on=PAIR, how="left", maintain_order="left")
    for score, (column, verdict) in _SIDES.items():
        odd = decided.filter((pl.col("score") == score) & pl.col("verdict").ne_missing(verdict)).sort(PAIR)
        if odd.height:
            yield (
                f"train: {odd.height:,} pairs of {column} are not {verdict} by the ledger, for example "
                f"{listed(names(odd))}"
            )
    lost = verdicts.join(chosen, on=PAIR, how="anti", maintain_order="left")
    if lost.height:
        yield f"train: {lost.height:,} judged pairs are in no triple, for example {listed(names(lost))}"


def _triples_tables(written: ExportContents, train: pl.DataFrame, wanted: TriplesContent) -> Iterator[str]:
    """Yield tables with other rows, or rows in another order, than follows from the pairs."""
    documents = pl.concat(written.documents()).select("doc_id", "text")
    for name, table in (("train", train), ("queries", written.queries), ("documents", documents)):
        if not table.equals(wanted.tables[name]):
            yield f"{name}: its rows are not those that follow from the pairs and the ledger, or not in their order"


def _lines(path: Path, wanted: Iterable[str]) -> Iterator[str]:
    """Yield the first line that is another one; a file that is missing was named before."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", newline="\n") as stream:
        for number, (found, line) in enumerate(zip_longest(stream, wanted), start=1):
            if found != line:
                yield f"{path.name}:{number}: it is not what follows from the tables and the ledger"
                return
