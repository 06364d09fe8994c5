"""Descriptive statistics of an exported task, by mteb's own method of its class; nothing is written by mteb.

mteb's public `calculate_descriptive_statistics` writes into the installed package, and returns what lies there under
the name of a task, whatever it was made of. Its method per split does the counting, and is all that is called here.
"""

import io
import json
from collections.abc import Mapping
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from curate.system.files import write_text
from curate.tables.exporters.mteb import load_task, quiet

Statistics = Mapping[str, Mapping[str, Any]]
FOLDER = "mteb/descriptive_stats"


def of_folder(folder: Path) -> Statistics:
    """Return split -> figures of one exported task."""
    task = load_task(folder)
    quiet()
    task.load_data()
    return of_task(task)


def of_task(task: Any) -> Statistics:  # noqa: ANN401 - mteb has no types
    """Return split -> figures of a loaded task: of the splits that are scored, and of that classifiers learn on."""
    splits = list(task.metadata.eval_splits)
    if (train := _learnt_on(task)) and train not in splits:
        splits.append(train)
    with redirect_stderr(io.StringIO()):  # a progress bar per column, which cannot be switched off
        return {split: task._calculate_descriptive_statistics_from_split(split) for split in splits}  # noqa: SLF001


def _learnt_on(task: Any) -> str | None:  # noqa: ANN401 - mteb has no types
    from mteb.abstasks import AbsTaskClassification

    return str(task.train_split) if isinstance(task, AbsTaskClassification) else None


def place(type_: str, name: str) -> str:
    """Return where mteb's repository has the statistics of a task."""
    return f"{FOLDER}/{type_}/{name}.json"


def as_mteb_writes(found: Statistics) -> str:
    """Return the text of mteb's file."""
    return json.dumps(found, indent=4)


def write(found: Statistics, path: Path) -> None:
    """Write the statistics as mteb does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, as_mteb_writes(found))
