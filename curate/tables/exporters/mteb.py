"""Load what the exporter `mteb` wrote, as tasks for `mteb.evaluate`."""

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
from curate.tables.exporters.card import Table, card, overview
from curate.tables.kinds import kinds
from curate.tables.kinds.benchmark_kind import BenchmarkKind, ExportTable, configured

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask

Result = TypeVar("Result")


def load_tasks(folder: str | Path) -> "list[AbsTask]":
    """Return the mteb tasks of a written folder: retrieval, reranking and sts, those that are there.

    `folder` is the run's `export`, the `mteb` in it, or one task's. Nothing comes out of the cache of `datasets` but
    what the files hold: an edited or missing file is a DataError. mteb's own cache of results does not notice that data
    changed, so evaluate with `cache=None`.
    """
    folder = Path(folder)
    below = folder / "mteb" if (folder / "mteb").is_dir() else folder
    found = _checked(lambda: mteb_tasks.load(below))
    return found or [load_task(folder)]


def load_task(folder: str | Path) -> "AbsTask":
    """Return the mteb task of one task's folder; see `load_tasks`."""
    made: AbsTask = _checked(lambda: mteb_tasks.task_class(Path(folder)))()
    return made


def _checked(made: Callable[[], Result]) -> Result:
    """Return what a function of `tasks.py` makes; its complaint as ours."""
    require("mteb", "loading a task")
    try:
        return made()
    except ValueError as error:
        raise DataError(str(error)) from error


# Write a benchmark as folders that stock mteb and `datasets` load offline, a folder per task.

META = "model_meta.json"


RESULTS = "results"

SETTINGS = "run_settings.jsonl"
"""One line per task, by all tasks of a model's revision together."""

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
"""Language tags as people write them -> ISO 639-3 and script, as mteb wants them."""


def export(benchmark: Benchmark, folder: Path) -> None:
    """Write a folder per kind that the benchmark has something of.

    Each has a README and its Parquet files; `tasks.py` registers them in mteb, and a README above them names them all.
    """
    tables: dict[BenchmarkKind, list[Table]] = {}
    code = mteb_language(benchmark.language)
    for kind in _present(benchmark):
        content, below = kind.content(benchmark), folder / kind.name
        below.mkdir()
        tables[kind] = [_write(below, kind, table) for table in content.tables]
        write_text(below / "README.md", card(benchmark, kind, code, tables[kind], content.counts()))
    write_text(folder / "tasks.py", Path(mteb_tasks.__file__).read_text(encoding="utf-8"))
    write_text(folder / "README.md", overview(benchmark, tables))


def readmes(benchmark: Benchmark, folder: Path) -> dict[str, str]:
    """Return the READMEs that a written folder must have, by file: made of the benchmark and of the tables there."""
    tables = {kind: _tables(folder / kind.name, kind) for kind in _present(benchmark)}
    code = mteb_language(benchmark.language)
    cards = {
        f"{kind.name}/README.md": card(benchmark, kind, code, table, _counts(benchmark, kind))
        for kind, table in tables.items()
    }
    return {**cards, "README.md": overview(benchmark, tables)}


def _present(benchmark: Benchmark) -> list[BenchmarkKind]:
    return [kind for kind in kinds() if kind.present(benchmark)]


def _counts(benchmark: Benchmark, kind: BenchmarkKind) -> Json:
    """Return the figures of one folder, counted anew."""
    content = kind.content(benchmark)
    for table in content.tables:
        deque(table.frames, maxlen=0)
    return content.counts()


def _tables(folder: Path, kind: BenchmarkKind) -> list[Table]:
    """Return the tables that lie in one task's folder, in the order in which they are written."""
    import pyarrow.parquet as pq

    found: list[Table] = []
    for config, split in ((config, split) for config in kind.configs for split in kind.splits):
        for path in folder.glob(f"{configured(config, split)}-{'[0-9a-f]' * 16}.parquet"):
            with pq.ParquetFile(path) as file:
                rows, columns = file.metadata.num_rows, file.schema_arrow
            if not columns.equals(kind.configs[config]):
                raise DataError(f"{folder.name}/{path.name}: its columns are not those of the table {config}")
            found.append(Table(config, path.name, rows, columns.names, split, config in kind.items))
    return found


def mteb_language(language: str) -> str:
    """Return mteb's code of a language: `zh` and `zh-CN` give `cmn-Hans`; one such as `vie-Latn` is already a code."""
    if len(language) == 8 and language[3] == "-":
        return language
    parts = language.split("-")
    for size in range(len(parts), 0, -1):
        if code := LANGUAGES.get("-".join(parts[:size])):
            return code
    raise DataError(
        f"language {language!r}: mteb's code of it is not known here; give ISO 639-3 and script, such as vie-Latn"
    )


def _write(folder: Path, kind: BenchmarkKind, table: ExportTable) -> Table:
    """Stream frames into one Parquet file, then name it by its content."""
    import pyarrow.parquet as pq

    schema, beside, rows = kind.configs[table.config], folder / f".{table.config}.parquet", 0
    with pq.ParquetWriter(beside, schema, compression="zstd", write_statistics=False) as writer:
        for frame in table.frames:
            writer.write_table(frame.to_arrow().cast(schema))
            rows += frame.height
    path = folder / f"{configured(table.config, table.split)}-{sha256(beside)[:16]}.parquet"
    beside.rename(path)
    return Table(table.config, path.name, rows, schema.names, table.split, table.config in kind.items)


@cache
def quiet() -> None:
    """Keep progress bars and notes of mteb and `datasets` off the terminal; warnings stay in their logs."""
    import logging

    import datasets

    datasets.disable_progress_bars()
    logging.getLogger("mteb").setLevel(logging.ERROR)
