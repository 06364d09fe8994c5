"""Results in mteb's layout: `results/MODEL__NAME/REVISION/TASK.json`, with `model_meta.json` in the same folder.

mteb's cache writes them when a model is scored. They are stored next to curate's scores, and copied into the output
folder of an evaluation, where `mteb.ResultCache(FOLDER).load_results()` reads them.
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
"""Characters that are replaced in folder names."""


@dataclass(frozen=True)
class KeptResult:
    """mteb's stored result of one model on one task."""

    model: str
    task: str
    scores: Path
    """File of curate's scores; the file of mteb's result is next to it."""

    @property
    def file(self) -> Path:
        """Return the path of the file with mteb's result files, as one JSON object."""
        return self.scores.with_suffix(".mteb.json")


def files_of(result: Foreign, model: EvaluatedModel, encode_kwargs: Mapping[str, Any]) -> dict[str, str]:
    """Return path below `results` -> text, for the files that mteb's cache writes for a result."""
    from mteb.cache import ResultCache

    with tempfile.TemporaryDirectory() as folder:
        ResultCache(folder).save_to_cache(result, _meta(model), encode_kwargs=encode_kwargs)
        root = Path(folder) / RESULTS
        files = sorted(path for path in root.rglob("*") if path.is_file())
        return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in files}


def _meta(model: EvaluatedModel) -> Foreign:
    """Return mteb's metadata of a model, which determines the paths of its results.

    The revision of a model unknown to mteb is the identity of its weights, so that models of the same name are
    distinct. Precision and width are mteb's experiment arguments; float32, the default, is omitted.
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
    """Store mteb's result files next to the file of curate's scores."""
    write_json(KeptResult("", "", scores).file, dict(files))


def write(out: Path, results: Iterable[KeptResult]) -> list[str]:
    """Write stored results below `out`.

    Return a note on scores without a stored result, which are from before version 0.2. Existing results of other models
    and tasks are not changed, as in mteb's cache.
    """
    lacking = []
    for result in results:
        if not result.file.is_file():
            lacking.append(result)
            continue
        for path, text in read_json(result.file).items():
            target = out / RESULTS / path
            target.parent.mkdir(parents=True, exist_ok=True)
            write_text(target, _merged(target, text) if target.name == SETTINGS else text)
    return _missing(lacking)


def _merged(path: Path, text: str) -> str:
    """Return the lines of a settings file: the existing lines of other tasks, then the new ones."""
    new = text.splitlines()
    tasks = {_task(line) for line in new}
    existing = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    lines = [line for line in existing if _task(line) not in tasks]
    return "".join(f"{line}\n" for line in [*lines, *new])


def _task(line: str) -> object:
    try:
        settings = json.loads(line)
    except ValueError:  # a line of another program is retained
        return None
    return settings.get("task") if isinstance(settings, dict) else None


def _missing(lacking: Sequence[KeptResult]) -> list[str]:
    if not lacking:
        return []
    which = ", ".join(f"{result.model} on {result.task}" for result in lacking)
    files = " ".join(str(result.scores) for result in lacking)
    why = "scored by a version of curate that kept none"
    return [f"no results file for mteb of {which}: {why}; to have them scored again, delete {files} and evaluate again"]
