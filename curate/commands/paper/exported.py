"""Tables of the exported tasks, computed from their files: numbers of texts, positives, candidates; token lengths."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from curate.commands.paper.evidence import ExportedTask
from curate.commands.paper.latex import Cell, PaperTable, Shown
from curate.core.records import shown
from curate.core.sampling import generator
from curate.stats.distribution import spread
from curate.tables import kinds
from curate.tables.kinds.benchmark_kind import SAMPLE, tokeniser

TEXTS = ("text", "sentences", "sentence1", "sentence2")
"""Columns of a task's files with texts that models encode."""
LABELS = ("score", "labels")
"""Columns with the label of a pair (1: positive); the first that exists is used."""
QUERIES, CORPUS, QRELS, CANDIDATES = "queries", "corpus", "qrels", "top_ranked"
DOCUMENTS = (QUERIES, CORPUS, QRELS, CANDIDATES, "grades", "contested")
"""Configurations of tasks of queries and documents; any other one contains pairs or texts with labels."""


def statistics(tasks: Sequence[ExportedTask], words: dict[str, Any], name: str) -> PaperTable | None:
    """Return the table of dataset statistics, one row per task and split; None without tasks."""
    texts = words["tables"]["statistics"]
    rows = [_counted(task, split) for task in tasks for split in dict.fromkeys(split for _, split in task.files)]
    caption = texts["caption"].format(tasks=len(tasks), name=name)
    return PaperTable("statistics", caption, texts["heads"], rows, keys=2) if rows else None


def lengths(tasks: Sequence[ExportedTask], words: dict[str, Any]) -> PaperTable | None:
    """Return the table of lengths in tokens, one row per task, split and column of texts; None without tasks."""
    texts = words["tables"]["lengths"]
    rows = [row for task in tasks for row in _lengths(task)]
    caption = texts["caption"].format(sample=f"{SAMPLE:,}")
    return PaperTable("lengths", caption, texts["heads"], rows, keys=3) if rows else None


def _counted(task: ExportedTask, split: str) -> list[Shown]:
    """Return the cells of a split in the statistics; None in columns that do not apply to the task type."""
    files = {config: path for (config, file_split), path in task.files.items() if file_split == split}
    pair_files = [path for config, path in files.items() if config not in DOCUMENTS]
    queries = _rows(files.get(QUERIES))
    mteb_type, measure = str(task.mteb["type"]), str(task.mteb["main_score"])
    kind = kinds.of_type(mteb_type, measure)
    return [
        task.name,
        split,
        mteb_type,
        queries,
        sum(_rows(path) or 0 for path in pair_files) if pair_files else None,
        _rows(files.get(CORPUS)),
        Cell(_share(_sum(files.get(QRELS), (pl.col("score") > 0).sum()), queries)),
        Cell(_share(_sum(files.get(CANDIDATES), pl.col("corpus-ids").list.len().sum()), queries)),
        Cell(_positive(pair_files), factor=100),
        # mteb's name of the measure if no task type has it as its main score
        kind.mteb.shown if kind and kind.mteb.main_score == measure else measure,
    ]


def _rows(path: Path | None) -> int | None:
    return None if path is None else int(pl.scan_parquet(path).select(pl.len()).collect().item())


def _sum(path: Path | None, what: pl.Expr) -> int | None:
    return None if path is None else int(pl.scan_parquet(path).select(what).collect().item())


def _share(count: int | None, of: int | None) -> float | None:
    return count / of if count is not None and of else None


def _positive(items: Sequence[Path]) -> float | None:
    """Return the share of pairs with label 1; None if there are no pairs or a label is not 0 or 1."""
    tables = [pl.read_parquet(path) for path in items]
    if not tables or "sentence2" not in tables[0].columns:
        return None
    label = next((name for name in LABELS if name in tables[0].columns), None)
    labels = pl.concat(table[label] for table in tables) if label else pl.Series([], dtype=pl.Int64)
    return float((labels == 1).mean()) if len(labels) and labels.is_in([0, 1]).all() else None  # type: ignore[arg-type]


def _lengths(task: ExportedTask) -> Iterator[list[Shown]]:
    for (config, split), path in task.files.items():
        if config in DOCUMENTS and config not in (QUERIES, CORPUS):
            continue
        columns = pl.scan_parquet(path).collect_schema().names()
        for column in TEXTS:
            if column in columns:
                name = config if config in (QUERIES, CORPUS) else column
                yield [task.name, split, name, *_spread(path, column, title="title" in columns)]


def _spread(path: Path, column: str, *, title: bool) -> list[Shown]:
    """Return the numbers of texts and of sampled texts, and mean, median, 95th percentile and maximum of tokens."""
    size, count = _rows(path) or 0, tokeniser()
    columns = [column, "title"] if title else [column]
    sample = sorted(generator(0, "paper", "lengths").sample(range(size), min(size, SAMPLE)))
    rows = pl.scan_parquet(path).select(columns).with_row_index("at").filter(pl.col("at").is_in(sample)).collect()
    texts = (shown(row.get("title") or "", row[column]) for row in rows.iter_rows(named=True))
    distribution = spread([count(text) for text in texts])
    p95, longest = (None if length is None else int(length) for length in (distribution.p95, distribution.high))
    return [
        size,
        distribution.measured,
        Cell(distribution.mean),
        Cell(distribution.median, digits=1),
        p95,
        longest,
    ]
