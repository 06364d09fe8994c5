"""Paths of a run folder: its tables, the newest run, and foreign files, which are never replaced."""

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
"""Names of files left by systems and programs; the last pattern is of curate's own interrupted writes."""
_SHOWN = 3


def run_id(run: Path) -> str:
    """Return the random id of a run folder; empty without one, or if the file is not ours."""
    path = run / ID
    content = path.read_text("ascii", "replace") if path.is_file() else ""
    return content if re.fullmatch("[0-9a-f]{32}", content) else ""


def is_run(folder: Path) -> bool:
    """Return whether a folder is a run; a copy without hidden files is recognised by a stage's mark."""
    if run_id(folder):
        return True
    from curate.pipeline.mark import Mark  # of the stages' side, which takes as long as the rest of `curate models`

    return any(Mark.read(folder / name) for name in stages.KNOWN)


def need_run(folder: Path) -> None:
    """Raise UserError unless a folder is a run, or can become one because no foreign file is in it."""
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
    """Raise UserError if the folder that a stage is to replace holds what the stage did not write."""
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
    """Return the files that a stage wrote, by its mark, or if that is damaged by the manifest."""
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
"""File of a run folder's settings; the newest run is the one whose settings were written last."""
SHOWN = (".parquet", ".json")
"""Endings of what `curate show` shows."""


def newest(parent: Path = Path("runs")) -> Path:
    """Return the run folder that was used last; UserError if there is none."""
    runs = [path.parent for path in parent.glob(f"*/{SETTINGS}") if is_run(path.parent)]
    if not runs:
        raise NotFound(f"no run folder in {parent.resolve()}; start with `curate run PIPELINE.yaml`, or give --run DIR")
    return max(runs, key=lambda run: (run / SETTINGS).stat().st_mtime_ns)


@contextmanager
def newest_when_done(run: Path) -> Iterator[None]:
    """If the block fails in a new run, leave the former newest run the newest; the new run's files stay."""
    settings, others = run / SETTINGS, [*run.parent.glob(f"*/{SETTINGS}")]
    try:
        yield
    except BaseException:
        if others and settings not in others and settings.is_file():
            earlier_ns = max(path.stat().st_mtime_ns for path in others) - 1_000_000
            os.utime(settings, ns=(earlier_ns, earlier_ns))
        raise


def table_paths(run: Path) -> list[Path]:
    """Return the files of all tables and figures of a run, in the order of its stages; NotFound without a run."""
    if not run.is_dir():
        raise NotFound(f"{run}: no such run folder; give one with --run")
    files = [path for stage in stages.KNOWN for path in (run / stage).glob("*.*") if path.suffix in SHOWN]
    return [path for path in files if path.name != "stage.json"]


def table_path(run: Path, table: str) -> Path:
    """Return the file of a table, given as `table` (the last stage that has it) or as `stage/table`.

    Figures that are not a table, such as agreement, are in a JSON file.
    """
    stage, _, name = table.rpartition("/")
    tables = table_paths(run)
    paths = [path for path in tables if path.stem == name and stage in ("", path.parent.name)]
    if not paths:
        raise NotFound(f"{run}: no table {table!r}; {suggestion(name, {path.stem for path in tables})}")
    return paths[-1]


def readable(path: Path) -> Path:
    """Return the path of a table or figures after checking that it can be read; UserError if it is damaged."""
    try:
        if path.suffix == ".json":
            read_json(path)
        else:
            pl.read_parquet_schema(path)
    except (pl.exceptions.PolarsError, OSError, DataError) as error:
        raise UserError(f"{path}: damaged; make it again with `curate {path.parent.name} --force`") from error
    return path
