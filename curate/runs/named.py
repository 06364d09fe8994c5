"""Settings of the pipeline file or run folder that a command names; imports no stage."""

from collections.abc import Callable, Sequence
from pathlib import Path

from curate.core.errors import NotFound, UserError, suggestion
from curate.llm.providers.presets import told_presets
from curate.pipeline.folder import SETTINGS, is_run, newest
from curate.pipeline.pipeline import Pipeline, find
from curate.system.resources import packaged

Tell = Callable[[str], None]


def loaded(
    pipeline: str | None, folder: Path | None, assign: Sequence[str] = (), *, tell: Tell
) -> tuple[Path | None, Path, Pipeline]:
    """Return folder and file of `place`, and the settings with assignments applied; UserError without stages."""
    folder, path = place(pipeline, folder, tell=tell)
    settings = Pipeline.load(path, assign)
    if not settings.head.stages:
        raise UserError(f"{path.name}: found a pipeline without stages, which is no run; give it to `curate train`")
    return folder, path, settings


def place(pipeline: str | None, folder: Path | None, *, tell: Tell) -> tuple[Path | None, Path]:
    """Return run folder and pipeline file; without arguments those of the newest run, with a notice.

    The folder is None if a pipeline is given without one. Pipelines of the working directory that hide packaged ones,
    and its presets, cause a notice too.
    """
    if pipeline is None:
        folder = run_folder(folder, "give --pipeline as well", tell=tell)
        pipeline = str(folder / SETTINGS)
    path = find(pipeline)
    if str(path) != pipeline and not packaged(path):
        tell(f"using {path} of the working directory")
    told_presets(tell)
    return folder, path


def run_folder(folder: Path | None, remedy: str = "give a run with --run", *, tell: Tell) -> Path:
    """Return a run folder, by default the newest, with a notice; UserError with the remedy if it is none."""
    if folder is None:
        folder = newest()
        tell(f"working in {folder}")
    if not folder.exists():
        near = {*folder.parent.glob(f"*/{SETTINGS}"), *Path("runs").glob(f"*/{SETTINGS}")}
        runs = [str(path.parent) for path in sorted(near) if is_run(path.parent)]
        raise NotFound(f"{folder}: no such run folder; {suggestion(str(folder), runs)}")
    if not (folder / SETTINGS).is_file():
        raise NotFound(f"{folder}: not a run folder, for it has no pipeline.yaml; {remedy}")
    if not is_run(folder):
        raise UserError(f"{folder}: not a run folder, for its pipeline.yaml is not one that a run wrote; {remedy}")
    return folder
