"""Run folders: whether a folder is one, the newest one, paths of tables, and foreign files, which are not replaced."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from curate.core.errors import DataError, NotFound, UserError, suggestion
from curate.pipeline import stages
from curate.system.files import digests, read_json

ID = ".id"
"""File with the random id of a run folder, drawn by its first command."""
_OTHERS = re.compile(r"\.DS_Store|\.nfs\w+|\._.*|Thumbs\.db|desktop\.ini|.*\.pyc|\..+\.\d+")
"""Names of files that systems and programs leave behind; the last pattern is that of curate's interrupted writes."""
_SHOWN = 3


def run_id(run: Path) -> str:
    """Return the random id of a run folder, 32 hex digits; empty if the file is missing or has other content."""
    path = run / ID
    content = path.read_text("ascii", "replace") if path.is_file() else ""
    return content if re.fullmatch("[0-9a-f]{32}", content) else ""


def is_run(folder: Path) -> bool:
    """Return whether a folder is a run: it has an id or, if copied without hidden files, a stage's done-mark."""
    if run_id(folder):
        return True
    from curate.pipeline.mark import Mark  # of the stages' side, which takes as long as the rest of `curate models`

    return any(Mark.read(folder / name) for name in stages.KNOWN)


def need_run(folder: Path) -> None:
    """Raise UserError unless a folder is a run or can become one: missing, or empty but for hidden files.

    UserError, too, if a stage's folder is a symbolic link.
    """
    if folder.is_dir() and not is_run(folder):
        foreign = sorted(path.name for path in folder.iterdir() if not path.name.startswith(".") or path.name == ID)
        if foreign:
            raise UserError(
                f"{folder}: no run folder, and not empty ({_name_list(foreign)}); give a new folder with --run"
            )
    for name in stages.KNOWN:
        if (folder / name).is_symlink():
            raise UserError(
                f"{folder / name}: a link, and a stage takes its place by renaming its folder; put the folder itself "
                "there, or link the whole run"
            )


def need_ours(run: Path, name: str) -> None:
    """Raise UserError if the folder of a stage, before it is replaced, contains files that the stage did not write."""
    folder = run / name
    if not folder.exists():
        return
    written = _files_of_stage(run, name)
    if written is None and (folder.is_file() or any(folder.iterdir())):
        raise UserError(
            f"{folder}: no folder of the stage, for it has no stage.json of ours, and {name} would replace it; "
            "move it elsewhere, or give another folder with --run"
        )
    present = {path.relative_to(folder).as_posix() for path in _below(folder) if not _OTHERS.fullmatch(path.name)}
    if foreign := sorted(present - {"stage.json", *(written or ())}):
        raise UserError(
            f"{folder}: holds what the stage did not write ({_name_list(foreign)}) and would replace; move it elsewhere"
        )


def _files_of_stage(run: Path, name: str) -> set[str] | None:
    """Return the files that a stage wrote, by its done-mark or, if damaged, by manifest.json; None if unknown."""
    from curate.pipeline.mark import Mark

    folder, mark = run / name, Mark.read(run / name)
    if mark is not None:
        return set(mark.outputs)
    if not (folder / "stage.json").is_file():
        return None
    try:
        outputs = read_json(run / "manifest.json")["stages"][name]["outputs"]
        return {path for path, digest in digests(folder).items() if outputs.get(path) == digest}
    except (DataError, OSError, KeyError, TypeError, AttributeError):
        return None


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_symlink() or not path.is_dir():
            yield path
        else:
            yield from _below(path)


def _name_list(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")


# Paths of a run's tables, and the newest run; imports only what `curate show` needs.

SETTINGS = "pipeline.yaml"
"""File with the settings of a run; the run whose file was written last is the newest."""
SHOWN = (".parquet", ".json")
"""Endings of the files that `curate show` can show."""


def newest(parent: Path = Path("runs")) -> Path:
    """Return the newest run folder in `parent`, by the time of its settings; NotFound if there is none."""
    runs = [path.parent for path in parent.glob(f"*/{SETTINGS}") if is_run(path.parent)]
    if not runs:
        raise NotFound(f"no run folder in {parent.resolve()}; start with `curate run PIPELINE.yaml`, or give --run DIR")
    return max(runs, key=lambda run: (run / SETTINGS).stat().st_mtime_ns)


@contextmanager
def newest_when_done(run: Path) -> Iterator[None]:
    """Keep the former newest run the newest if the block raises in a new run; the new run's files remain."""
    settings, others = run / SETTINGS, [*run.parent.glob(f"*/{SETTINGS}")]
    try:
        yield
    except BaseException:
        if others and settings not in others and settings.is_file():
            earlier_ns = max(path.stat().st_mtime_ns for path in others) - 1_000_000
            os.utime(settings, ns=(earlier_ns, earlier_ns))
        raise


def table_paths(run: Path) -> list[Path]:
    """Return the files of all tables (Parquet) and figures (JSON) of a run, in the order of stages.

    NotFound if there is no such run.
    """
    if not run.is_dir():
        raise NotFound(f"{run}: no such run folder; give one with --run")
    files = [path for stage in stages.KNOWN for path in (run / stage).glob("*.*") if path.suffix in SHOWN]
    return [path for path in files if path.name != "stage.json"]


def table_path(run: Path, table: str) -> Path:
    """Return the file of a table, given as `TABLE` (of the last stage that has it) or as `STAGE/TABLE`.

    Figures, such as `agreement`, are in a JSON file instead. NotFound if there is none.
    """
    stage, _, name = table.rpartition("/")
    tables = table_paths(run)
    paths = [path for path in tables if path.stem == name and stage in ("", path.parent.name)]
    if not paths:
        raise NotFound(f"{run}: no table {table!r}; {suggestion(name, {path.stem for path in tables})}")
    return paths[-1]


def readable(path: Path) -> Path:
    """Return `path`, the file of a table or of figures; UserError if it is damaged. A table's rows are not read."""
    try:
        if path.suffix == ".json":
            read_json(path)
        else:
            pl.read_parquet_schema(path)
    except (pl.exceptions.PolarsError, OSError, DataError) as error:
        raise UserError(f"{path}: damaged; make it again with `curate {path.parent.name} --force`") from error
    return path
