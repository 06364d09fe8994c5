"""Exporter for mteb: folders that stock mteb and `datasets` load offline, and their tasks for `mteb.evaluate`."""

from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.system.extras import require
from curate.system.files import sha256, write_text
from curate.tables.exporters import mteb_tasks
from curate.tables.exporters.card import Table, card, task_readme
from curate.tables.kinds import kinds
from curate.tables.kinds.benchmark_kind import BenchmarkKind, ExportTable, configured

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask

Result = TypeVar("Result")


def load_tasks(folder: str | Path) -> "list[AbsTask]":
    """Return the mteb tasks of an exported folder, such as retrieval, reranking and sts, as far as present.

    `folder` is the run's `export`, its subfolder `mteb`, or the folder of one task. An edited or missing file raises
    DataError, so the cache of `datasets` cannot return outdated data. mteb's own result cache does not detect changed
    data, so evaluate with `cache=None`.
    """
    folder = Path(folder)
    below = folder / "mteb" if (folder / "mteb").is_dir() else folder
    tasks = _checked(lambda: mteb_tasks.load(below))
    return tasks or [load_task(folder)]


def load_task(folder: str | Path) -> "AbsTask":
    """Return the mteb task of one task's folder; see `load_tasks`."""
    task: AbsTask = _checked(lambda: mteb_tasks.task_class(Path(folder)))()
    return task


def _checked(make: Callable[[], Result]) -> Result:
    """Return the result of a function of `tasks.py`; its ValueError becomes a DataError."""
    require("mteb", "loading a task")
    try:
        return make()
    except ValueError as error:
        raise DataError(str(error)) from error


# Write a benchmark as folders that stock mteb and `datasets` load offline, a folder per task.

META = "model_meta.json"


RESULTS = "results"

SETTINGS = "run_settings.jsonl"
"""File with one line per task, shared by all tasks of a revision of a model."""

LANGUAGES: Mapping[str, str] = {
    "ar": "ara-Arab",
    "de": "deu-Latn",
    "en": "eng-Latn",
    "es": "spa-Latn",
    "fr": "fra-Latn",
    "ja": "jpn-Jpan",
    "ko": "kor-Hang",
    "pt": "por-Latn",
    "ru": "rus-Cyrl",
    "zh": "cmn-Hans",
    "zh-HK": "cmn-Hant",
    "zh-Hant": "cmn-Hant",
    "zh-TW": "cmn-Hant",
}
"""Common language tags -> ISO 639-3 code and script, the form that mteb uses."""


def export(benchmark: Benchmark, folder: Path) -> None:
    """Write one folder per kind of benchmark, with Parquet files and the README by which they are loaded.

    `tasks.py` registers the tasks in mteb, and the README in the parent folder is the card of all.
    """
    tasks: dict[BenchmarkKind, tuple[list[Table], Json]] = {}
    code = mteb_language(benchmark.language)
    for kind in _present(benchmark):
        content, below = kind.content(benchmark), folder / kind.name
        below.mkdir()
        tables = [_write(below, kind, table) for table in content.tables]
        tasks[kind] = tables, content.counts()
        write_text(below / "README.md", task_readme(benchmark, kind, code, tables))
    write_text(folder / "tasks.py", Path(mteb_tasks.__file__).read_text(encoding="utf-8"))
    write_text(folder / "README.md", card(benchmark, tasks))


def readmes(benchmark: Benchmark, folder: Path) -> dict[str, str]:
    """Return file -> README as expected for an exported folder, from the benchmark and the tables in the folder."""
    tasks: dict[BenchmarkKind, tuple[list[Table], Json]] = {}
    for kind in _present(benchmark):
        content = kind.content(benchmark)
        for table in content.tables:
            deque(table.frames, maxlen=0)  # the figures are counted while the rows pass
        tasks[kind] = _tables(folder / kind.name, kind), content.counts()
    code = mteb_language(benchmark.language)
    expected = {
        f"{kind.name}/README.md": task_readme(benchmark, kind, code, tables) for kind, (tables, _) in tasks.items()
    }
    return {**expected, "README.md": card(benchmark, tasks)}


def _present(benchmark: Benchmark) -> list[BenchmarkKind]:
    return [kind for kind in kinds() if kind.present(benchmark)]


def _tables(folder: Path, kind: BenchmarkKind) -> list[Table]:
    """Return the tables in the folder of one task, in the order in which the exporter writes them."""
    import pyarrow.parquet as pq

    tables: list[Table] = []
    for config, split in ((config, split) for config in kind.configs for split in kind.splits):
        for path in folder.glob(f"{configured(config, split)}-{'[0-9a-f]' * 16}.parquet"):
            with pq.ParquetFile(path) as file:
                rows, columns = file.metadata.num_rows, file.schema_arrow
                first: dict[str, Json] = next((batch.to_pylist()[0] for batch in file.iter_batches(1)), {})
            if not columns.equals(kind.configs[config]):
                raise DataError(f"{folder.name}/{path.name}: its columns are not those of the table {config}")
            tables.append(Table(config, path.name, rows, columns.names, split, config in kind.items, first))
    return tables


def mteb_language(language: str) -> str:
    """Return mteb's code of a language: `zh` and `zh-CN` give `cmn-Hans`.

    A tag such as `vie-Latn` is returned unchanged.
    """
    if len(language) == 8 and language[3] == "-":
        return language
    subtags = language.split("-")
    for size in range(len(subtags), 0, -1):
        if code := LANGUAGES.get("-".join(subtags[:size])):
            return code
    raise DataError(
        f"language {language!r}: mteb's code of it is not known here; give ISO 639-3 and script, such as vie-Latn"
    )


def _write(folder: Path, kind: BenchmarkKind, table: ExportTable) -> Table:
    """Stream the frames of a table into one Parquet file, which is then named by its content."""
    import pyarrow.parquet as pq

    schema, temporary, rows = kind.configs[table.config], folder / f".{table.config}.parquet", 0
    first: dict[str, Json] = {}
    with pq.ParquetWriter(temporary, schema, compression="zstd", write_statistics=False) as writer:
        for frame in table.frames:
            written = frame.to_arrow().cast(schema)
            writer.write_table(written)
            rows += frame.height
            first = first or next(iter(written.slice(0, 1).to_pylist()), {})
    path = folder / f"{configured(table.config, table.split)}-{sha256(temporary)[:16]}.parquet"
    temporary.rename(path)
    return Table(table.config, path.name, rows, schema.names, table.split, table.config in kind.items, first)


@cache
def quiet() -> None:
    """Turn off progress bars of `datasets` and log messages of mteb below ERROR."""
    import logging

    import datasets

    datasets.disable_progress_bars()
    logging.getLogger("mteb").setLevel(logging.ERROR)
