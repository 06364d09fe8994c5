"""Coherent forgeries of an export: every file and the manifest are written again by the program's own code."""

import json
import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from curate.commands.verify.readmes import _tables
from curate.core.protocols import Benchmark
from curate.core.records import Document
from curate.panel.voting import PAIR
from curate.runs import derive
from curate.system.files import read_table, write_table
from curate.tables.exporters import EXPORTERS, READERS, manifest

Verdicts = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass
class Forgery:
    """An export taken apart, to be changed and put together again."""

    folder: Path
    body: dict[str, Any]
    facts: dict[str, Any]
    queries: pl.DataFrame
    documents: list[Document]
    verdicts: pl.DataFrame
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> "Forgery":
        """Take an export apart."""
        body = manifest.read(folder)
        module, _, name = READERS[body["format"]].partition(":")
        written = getattr(import_module(module), name)(folder)
        documents = [Document(*row) for batch in written.documents() for row in batch.iter_rows()]
        facts = json.loads(body["card"]["facts"]) if "card" in body else {}
        facts |= {"license": body["license"]} if "license" in body else {}
        verdicts = read_table(folder, "verdicts")
        return cls(folder, deepcopy(body), facts, written.queries, documents, verdicts, _tables(written))

    def renamed(self, table: str, names: dict[str, str]) -> None:
        """Rename queries (`query_id`) or documents (`doc_id`) everywhere."""
        self.verdicts = self.verdicts.with_columns(pl.col(table).replace(names))
        if table == "query_id":
            self.queries = self.queries.with_columns(pl.col(table).replace(names))
        else:
            self.documents = [
                replace(document, doc_id=names.get(document.doc_id, document.doc_id)) for document in self.documents
            ]

    def write(self) -> None:
        """Put the export together again, in its place."""
        labels, verdicts = self.body["labels"], self.verdicts.sort(PAIR)
        none = verdicts.select(PAIR).clear()
        benchmark = Benchmark(
            name=self.body["name"],
            language=self.body["language"],
            queries=self.queries,
            corpus=Held(self.documents),
            qrels=verdicts.filter(pl.col("verdict") == "relevant").select(*PAIR, score=pl.lit(1, pl.Int32)),
            candidates=derive.candidates(verdicts, none, labels),
            verdicts=verdicts,
            facts=self.facts,
            tables=self.tables,
            scale=derive.scale_of(labels),
        )
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        EXPORTERS.load(self.body["format"])(benchmark, self.folder)
        write_table(self.folder, "verdicts", verdicts)
        said = {name: self.body[name] for name in self.body if name not in ("files", "version")}
        manifest.write(self.folder, {**said, **manifest.described(benchmark, self.body["format"])})


@dataclass(frozen=True)
class Held:
    """Documents in memory, as a corpus."""

    documents: list[Document]
    digest: str = ""

    def __len__(self) -> int:
        return len(self.documents)

    def batches(self) -> Iterator[list[Document]]:
        """Yield all documents at once."""
        yield self.documents
