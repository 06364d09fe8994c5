"""Least number of items of a task: smaller tasks do not order models and are exported only with `export.small`."""

from collections.abc import Mapping

import polars as pl

from curate.commands.export import Config
from curate.core.config import Json
from curate.core.errors import ConfigError
from curate.core.protocols import Benchmark
from curate.tables.exporters import FOLDERS, OF_CANDIDATES
from curate.tables.kinds import kind as named
from curate.tables.kinds import kinds
from curate.tables.kinds.benchmark_kind import BenchmarkKind

Small = Mapping[str, Mapping[str, int]]
"""Kind -> its parts with too few items -> number of items."""
WAY_OUT = "--set export.small=true"


def of_reranking(candidates: pl.DataFrame, config: Config) -> Small:
    """Return the reranking task if its candidates are of too few queries; {} otherwise, and if it has none."""
    size, name = candidates["query_id"].n_unique(), "reranking"
    return {name: {name: size}} if _checked(config) and 0 < size < named(name).least else {}


def _checked(config: Config) -> bool:
    """Return whether sizes count; training data (formats of `OF_CANDIDATES` alone) may have any size."""
    return not (config.small or set(config.formats) <= set(OF_CANDIDATES))


def large_enough(benchmark: Benchmark, config: Config, reranking: Small) -> tuple[Benchmark, Small]:
    """Return the benchmark without parts that have too few items, and these; ConfigError if no format is left.

    `reranking` is the reranking task if it was dropped for its size.
    """
    small = {**reranking}
    for kind in kinds() if _checked(config) else ():
        if kind.present(benchmark) and (sizes := kind.small(benchmark)):
            small[kind.name] = sizes
            benchmark = kind.reduced(benchmark, sizes)
    if not formats(benchmark, config, small):
        lines = "\n".join(f"- {line}" for line in _sentences(small))
        raise ConfigError(
            f"export: nothing was exported, because its tasks have too few items to order models:\n{lines}\n"
            f"next: add data, or export them all the same, under names that say so: {WAY_OUT}"
        )
    return benchmark, small


def formats(benchmark: Benchmark, config: Config, small: Small) -> list[str]:
    """Return the formats to write: all, or without `small` parts those that are not empty."""
    return [name for name in config.formats if not small or _has_content(benchmark, name)]


def _has_content(benchmark: Benchmark, format_name: str) -> bool:
    if format_name in OF_CANDIDATES:
        return bool(benchmark.candidates.height)
    written = [kind for kind in kinds() if kind.present(benchmark)]
    return any(format_name in FOLDERS or kind.name == "retrieval" for kind in written)


def notes(small: Small, benchmark: Benchmark, config: Config) -> list[str]:
    """Return a sentence per part that was not exported, and one on formats that would be empty."""
    written = formats(benchmark, config, small)
    empty = [name for name in config.formats if name not in written]
    return [
        *(f"{line}: not exported; with {WAY_OUT} it is, under a name that says so" for line in _sentences(small)),
        *([f"not written, for too few items: {', '.join(empty)}"] if empty else []),
    ]


def fact(small: Small) -> dict[str, Json]:
    """Return the entry of the manifest on what has too few items; {} if nothing has."""
    return {"small": {name: dict(sizes) for name, sizes in small.items()}} if small else {}


def _sentences(small: Small) -> list[str]:
    order = [kind.name for kind in kinds()]
    return [
        f"{_label(named(name), variant)}: {size:,} {named(name).unit}, fewer than {named(name).least}"
        for name, sizes in sorted(small.items(), key=lambda entry: order.index(entry[0]))
        for variant, size in sizes.items()
    ]


def _label(kind: BenchmarkKind, variant: str) -> str:
    """Return the name of a part in a sentence: the task's, and the kind of edit if there are several."""
    return kind.name if variant == kind.name else f"{kind.name} ({variant})"
