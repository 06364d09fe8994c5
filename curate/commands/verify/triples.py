"""A set to train on, derived again: which side of a triple a document stands on, the order, the texts, the card."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import polars as pl

from curate.commands.verify.readmes import TOLD, WrittenCorpus, otherwise
from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.panel.voting import PAIR
from curate.runs.derive import scale_of
from curate.runs.differences import names
from curate.tables.exporters import triples
from curate.tables.exporters.card import Table, form, told
from curate.tables.exporters.reading import ExportContents
from curate.tables.exporters.triples import TriplesContent
from curate.tables.kinds.benchmark_kind import listed

CHOICE = "which of the judged pairs became triples, for that follows from the pool and from what the test set knows"
OTHER_FORM = "the README, for another version of curate wrote it; write the set again with this one"
_SIDES = {1: ("positive_id", "relevant"), 0: ("negative_id", "not relevant")}
"""Score -> column of `train`, and the verdict that puts a document there."""


def compared(
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
    differences = [*_tables(written, train, wanted), *_lines(folder / triples.LISTS, wanted.lines)]
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


def _tables(written: ExportContents, train: pl.DataFrame, wanted: TriplesContent) -> Iterator[str]:
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
