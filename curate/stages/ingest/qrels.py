"""Labels of pairs as they are read: contradictions are bad rows, and what is good goes under the ids of the texts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from curate.core.duplicates import follow_qrels
from curate.formats.readers import Problem, Source
from curate.formats.readers.items import LabelledPair, shown
from curate.formats.readers.text import FIX
from curate.stages.ingest.bad_rows import BadRows
from curate.stages.ingest.read_texts import WORDS, ReadTexts

_PAIR = ("query_id", "doc_id")
_COLUMNS = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Int32, "line": pl.Int64, "source": pl.Int64}


@dataclass
class ReadLabels:
    """The rows of qrels, one after the other."""

    queries: ReadTexts
    corpus: ReadTexts
    bad: BadRows
    relevant_from: int
    """Lowest score that means relevant."""
    lost: dict[tuple[str, str], str] = field(default_factory=dict)
    """Dropped pair that a row calls relevant -> what became of it: `not in corpus`, or `dropped`."""
    _sources: list[Source] = field(default_factory=list)
    _columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _COLUMNS})

    def add(self, source: Source, found: LabelledPair | Problem) -> None:
        """Take a row over, unless it is bad, its query is not taken, or one of its texts is empty."""
        if isinstance(found, Problem):
            self.bad.read["qrels"] += 1
            self.bad.note("qrels", source, found)
            return
        query, doc = self.queries.meant(found.query_id), self.corpus.meant(found.doc_id)
        if query in self.queries.left_out:
            return
        self.bad.read["qrels"] += 1
        for name, texts in ((query, self.queries), (doc, self.corpus)):
            word, key = WORDS[texts.table], f"{found.query_id} {found.doc_id}"
            if name in texts.empty:
                self.lose((query, doc), found.score, "dropped")
                self.bad.drop("qrels", key, f"its {word} has an empty text")
                return
            if name not in texts.known:
                self.lose((query, doc), found.score, "not in corpus" if texts is self.corpus else "dropped")
                unknown = f"the unknown {word} {shown(name)}"
                problem = Problem(found.line, unknown, f"the id of a {word}", texts.remedy(name))
                self.bad.note("qrels", source, problem, key, f"unknown {word}")
                return
        if source not in self._sources[-1:]:
            self._sources.append(source)
        row = (query, doc, found.score, found.line, len(self._sources) - 1)
        for column, value in zip(self._columns.values(), row, strict=True):
            column.append(value)

    def lose(self, pair: tuple[str, str], score: int, became: str) -> None:
        """Count a pair that is dropped, if its score means relevant."""
        if score >= self.relevant_from:
            self.lost[pair] = became

    def table(self) -> pl.DataFrame:
        """Return the good rows as the table `qrels`, under the ids that were kept; pairs with several scores are bad.

        The same row twice is one. Equal texts share their labels, and the highest score of a pair holds.
        """
        rows = pl.DataFrame(self._columns, schema=_COLUMNS)
        score = pl.col("score")
        apart = rows.filter(score.min().over(_PAIR) < score.max().over(_PAIR)).sort(*_PAIR, "source", "line")
        for _, pair in apart.group_by(_PAIR, maintain_order=True):
            self._contradiction(pair.rows(named=True))
        self.bad.stop()
        good = rows.join(apart, on=_PAIR, how="anti").select(*_PAIR, "score")
        return follow_qrels(good, self.queries.merged, self.corpus.merged)

    def _contradiction(self, rows: Sequence[dict[str, Any]]) -> None:
        """Note that a pair has several scores: as one problem at its last row, or as many dropped rows."""
        query, doc, last = rows[0]["query_id"], rows[0]["doc_id"], rows[-1]
        self.lose((query, doc), max(row["score"] for row in rows), "dropped")
        scores = " and ".join(str(score) for score in sorted({row["score"] for row in rows}))
        said = f"the scores {scores} for the query {shown(query)} and the document {shown(doc)}"
        places = " and ".join(f"{self._sources[row['source']].place}:{row['line']}" for row in rows[:-1])
        problem = Problem(last["line"], f"{said}, the others in {places}", "one score per pair", FIX)
        for _ in rows if self.bad.config.on_error == "drop" else rows[:1]:
            self.bad.note("qrels", self._sources[last["source"]], problem, f"{query} {doc}", f"the scores {scores}")
