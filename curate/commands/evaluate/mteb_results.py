"""Results in mteb's own layout: `results/MODEL__NAME/REVISION/TASK.json` with `model_meta.json` beside it.

mteb's cache writes them when a model is scored. They are kept beside our scores as they are, and written into the
folder of an evaluation, which `mteb.ResultCache(FOLDER).load_results()` reads.
"""

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curate.commands.evaluate.mteb_models import EvaluatedModel
from curate.commands.evaluate.tasks import Foreign
from curate.system.files import read_json, write_json, write_text
from curate.tables.exporters.mteb import RESULTS, SETTINGS

_LOCAL = "local"
_UNSAFE = re.compile(r"[^\w.-]+")
"""What a name of a folder is to be free of."""


@dataclass(frozen=True)
class KeptResult:
    """Where the result of one model on one task is kept."""

    model: str
    task: str
    scores: Path
    """File of our scores; mteb's lies beside it."""

    @property
    def file(self) -> Path:
        """Return the file that holds what mteb wrote."""
        return self.scores.with_suffix(".mteb.json")


def files_of(result: Foreign, model: EvaluatedModel, encode_kwargs: Mapping[str, Any]) -> dict[str, str]:
    """Return path below `results` -> text, of what mteb's cache writes of a task's result."""
    from mteb.cache import ResultCache

    with tempfile.TemporaryDirectory() as place:
        ResultCache(place).save_to_cache(result, _meta(model), encode_kwargs=encode_kwargs)
        root = Path(place) / RESULTS
        files = sorted(path for path in root.rglob("*") if path.is_file())
        return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in files}


def _meta(model: EvaluatedModel) -> Foreign:
    """Return mteb's metadata of a model, by which its results are filed.

    A model that mteb does not know has the identity of its weights for a revision, so that two of a name stay apart.
    What a precision or a width changes is an experiment, as mteb has it; float32 is what mteb takes for granted.
    """
    meta = model.loaded.mteb_model_meta
    special = dict(meta.experiment_kwargs or {})
    if special.get("model_kwargs") == {"dtype": "float32"}:
        del special["model_kwargs"]
    if model.width is not None:
        special["first_coordinates"] = model.width
    revision = _UNSAFE.sub("_", model.revision)[:80] if meta.revision == _LOCAL else meta.revision
    return meta.model_copy(update={"experiment_kwargs": special or None, "revision": revision})


def keep(files: Mapping[str, str], scores: Path) -> None:
    """Keep what mteb wrote beside the file of our scores."""
    write_json(KeptResult("", "", scores).file, dict(files))


def write(out: Path, kept: Iterable[KeptResult]) -> list[str]:
    """Write kept results below `out`, and return a note on those of before version 0.2, which kept none.

    Results of other models and tasks that lie there are left alone, as mteb's cache does.
    """
    lacking = []
    for each in kept:
        if not each.file.is_file():
            lacking.append(each)
            continue
        for path, text in read_json(each.file).items():
            target = out / RESULTS / path
            target.parent.mkdir(parents=True, exist_ok=True)
            write_text(target, _merged(target, text) if target.name == SETTINGS else text)
    return _missing(lacking)


def _merged(path: Path, text: str) -> str:
    """Return lines of settings with those of other tasks that are there already."""
    new = text.splitlines()
    tasks = {_task(line) for line in new}
    before = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    lines = [line for line in before if _task(line) not in tasks]
    return "".join(f"{line}\n" for line in [*lines, *new])


def _task(line: str) -> object:
    try:
        found = json.loads(line)
    except ValueError:  # of another program: it stays as it is
        return None
    return found.get("task") if isinstance(found, dict) else None


def _missing(lacking: Sequence[KeptResult]) -> list[str]:
    if not lacking:
        return []
    which = ", ".join(f"{each.model} on {each.task}" for each in lacking)
    files = " ".join(str(each.scores) for each in lacking)
    why = "scored by a version of curate that kept none"
    return [f"no results file for mteb of {which}: {why}; to have them scored again, delete {files} and evaluate again"]
