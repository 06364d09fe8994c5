"""The READMEs of an export, made again from its tables, its verdicts, and what its manifest says of the run."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.core.records import Document
from curate.panel.voting import PAIR
from curate.runs.derive import apart_of, replaced, scale_of
from curate.tables.exporters.card import form, told
from curate.tables.exporters.mteb import readmes
from curate.tables.exporters.reading import ExportContents
from curate.tables.kinds import kind

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


def compared(
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
