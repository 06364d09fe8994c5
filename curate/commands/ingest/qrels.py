"""The table `qrels`: checked rows with the ids of retained texts; pairs with contradictory scores are invalid."""

from collections import Counter
from typing import Any

import polars as pl

from curate.commands.ingest import Config
from curate.commands.ingest.bad_rows import BadRows
from curate.commands.ingest.read_texts import WORDS, ReadTexts
from curate.core.duplicates import follow_qrels
from curate.core.errors import ConfigError
from curate.tables.readers import Problem, Source
from curate.tables.readers.guess import first_columns
from curate.tables.readers.items import LabelledPair, shown
from curate.tables.readers.settings import Sources
from curate.tables.readers.text_rows import FIX

PAIR = ("query_id", "doc_id")
_COLUMNS = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Int32, "line": pl.Int64, "source": pl.Int64}


class ReadLabels:
    """Collects and checks the rows of qrels."""

    def __init__(self, queries: ReadTexts, corpus: ReadTexts, bad: BadRows) -> None:
        self.queries, self.corpus, self.bad = queries, corpus, bad
        self.scores = Counter[int]()
        """Score -> number of rows, for all queries: the relevant scores do not depend on the selected queries."""
        self.lost: dict[tuple[str, str], str] = {}
        """Dropped pair labelled relevant -> reason: `not in corpus`, or `dropped`."""
        self._sources: list[Source] = []
        self._rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS}

    def add(self, source: Source, parsed: LabelledPair | Problem) -> None:
        """Add a row, unless it is invalid, its query is not selected, or one of its texts is empty."""
        if isinstance(parsed, Problem):
            self.bad.read["qrels"] += 1
            self.bad.note("qrels", source, parsed)
            return
        self.scores[parsed.score] += 1
        query, doc = self.queries.meant(parsed.query_id), self.corpus.meant(parsed.doc_id)
        if query in self.queries.left_out:
            return
        self.bad.read["qrels"] += 1
        for name, texts, role in ((query, self.queries, "query_id"), (doc, self.corpus, "doc_id")):
            word, key = WORDS[texts.table], f"{parsed.query_id} {parsed.doc_id}"
            if name in texts.ids - texts.empty - texts.cut:
                continue
            unknown = name not in texts.ids
            self._lose((query, doc), parsed.score, "not in corpus" if unknown and texts is self.corpus else "dropped")
            if unknown:
                unknown_id, expected = f"the unknown {word} {shown(name)}", f"the id of a {word}"
                problem = Problem(parsed.line, unknown_id, expected, texts.remedy(name))
                self.bad.note("qrels", source, problem, key, f"unknown {word}", self.bad.config.names("qrels")[role])
            else:
                why = "was cut into passages" if name in texts.cut else "has an empty text"
                self.bad.drop("qrels", key, f"its {word} {why}")
            return
        if source not in self._sources[-1:]:
            self._sources.append(source)
        cells = (query, doc, parsed.score, parsed.line, len(self._sources) - 1)
        for column, cell in zip(self._rows.values(), cells, strict=True):
            column.append(cell)

    def add_pairs(self, source: Source) -> None:
        """Add query and document of each row as a pair of score 1; a pair whose document is invalid is dropped."""
        for row, query in self.queries.lines.items():
            if row in self.corpus.lines:
                self.add(source, LabelledPair(row[1], query, self.corpus.lines[row], 1))
            else:
                self.bad.read["qrels"] += 1
                self.bad.drop("qrels", query, "its document was dropped")
                self._lose((query, str(row[1])), 1, "dropped")

    def table(self) -> pl.DataFrame:
        """Return the valid rows as the table `qrels`, with the ids of retained texts.

        Pairs with several scores are invalid. Repeated equal rows count once. Merged texts share their labels, and a
        pair has the highest of their scores.
        """
        rows, score = pl.DataFrame(self._rows, schema=_COLUMNS), pl.col("score")
        apart = rows.filter(score.min().over(PAIR) < score.max().over(PAIR)).sort(*PAIR, "source", "line")
        for (query, doc), pair in apart.group_by(PAIR, maintain_order=True):
            scores = " and ".join(map(str, pair["score"].unique().sort()))
            *others, (line, number) = pair.select("line", "source").iter_rows()
            other_lines = " and ".join(
                f"{self._sources[source].location}:{other_line}" for other_line, source in others
            )
            contradiction = (
                f"the scores {scores} for the query {shown(query)} and the document {shown(doc)}, "
                f"the others in {other_lines}"
            )
            problem = Problem(line, contradiction, "one score per pair", FIX)
            self._lose((query, doc), max(pair["score"]), "dropped")
            for _ in range(len(pair) if self.bad.config.on_error == "drop" else 1):  # every row is listed
                self.bad.note("qrels", self._sources[number], problem, f"{query} {doc}", f"the scores {scores}")
        self.bad.stop_if_most("qrels")
        good = rows.join(apart, on=PAIR, how="anti").select(*PAIR, "score")
        return follow_qrels(good, self.queries.merged, self.corpus.merged)

    def _lose(self, pair: tuple[str, str], score: int, became: str) -> None:
        if score >= (self.bad.config.relevant_from or 1):
            self.lost[pair] = became


def check_pairs(config: Config, sources: Sources) -> None:
    """Raise ConfigError if rows should be pairs but are not from one file with columns of queries and documents."""
    if not config.pairs:
        return
    if not sources.one_table:
        raise ConfigError(
            "ingest.pairs: rows are pairs in one file alone, in a workbook on one sheet; name the same file with "
            "ingest.queries.path and ingest.corpus.path, or leave ingest.pairs out and give known pairs as qrels"
        )
    source = sources.tables["queries"][0]
    columns, _ = first_columns(source)
    texts = [next((n for n in config.names(t)["text"] if n in columns), None) for t in ("queries", "corpus")]
    if texts[0] == texts[1] is not None:
        raise ConfigError(
            f"{source.location}: found the column {texts[0]!r} for queries and documents, expected two with "
            "ingest.pairs; name them with ingest.columns.queries.text and ingest.columns.corpus.text"
        )
