"""Load what the exporter `mteb` wrote, as tasks for `mteb.evaluate`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from curate.core.errors import DataError
from curate.system.extras import require
from curate.tables.exporters import mteb_tasks

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
