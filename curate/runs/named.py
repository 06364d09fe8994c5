"""The settings that a command or a call names: a pipeline file's, or a run folder's; no stage is imported."""

from collections.abc import Callable, Sequence
from pathlib import Path

from curate.core.errors import NotFound, UserError, suggestion
from curate.llm.providers.presets import told_presets
from curate.pipeline.folder import SETTINGS, newest
from curate.pipeline.foreign_files import is_run
from curate.pipeline.pipeline import Pipeline, find
from curate.system.resources import packaged

Tell = Callable[[str], None]


def loaded(
    pipeline: str | None, folder: Path | None, assign: Sequence[str] = (), *, tell: Tell
) -> tuple[Path | None, Path, Pipeline]:
    """Return `place`, and the settings there with assignments to them."""
    folder, path = place(pipeline, folder, tell=tell)
    found = Pipeline.load(path, assign)
    if not found.head.stages:
        raise UserError(f"{path.name}: found a pipeline without stages, which is no run; give it to `curate train`")
    return folder, path, found


def place(pipeline: str | None, folder: Path | None, *, tell: Tell) -> tuple[Path | None, Path]:
    """Return run folder and file of a pipeline, or of a run folder; of neither those of the newest run, which is told.

    The folder is None where a pipeline is given without one. It is told, too, if the working directory has a pipeline
    of a packaged one's name, or presets.
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
    """Return a run folder, without one the newest, which is told; UserError with the remedy if it is none."""
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
