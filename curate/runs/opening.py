"""The run that a command or a call means: its folder, its settings, what it may spend; nothing is run or written."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from curate.core.config import Json
from curate.core.errors import ConfigError, CurateError, NotFound, UserError
from curate.llm.providers.presets import OVERRIDES
from curate.runs.foreign_files import is_run
from curate.runs.pipeline import Pipeline, find, in_language
from curate.runs.run import Run
from curate.runs.tables import SETTINGS, newest
from curate.stages.context import Consent
from curate.system.resources import packaged

Tell = Callable[[str], None]
AUDIT = "audit"
"""The packaged pipeline of an audit."""


def consent(max_cost: str | float | None, yes: bool = False, **more: bool) -> Consent:
    """Return what may be spent: a cap such as 50 or 50USD, or none; ConfigError if the cap is no amount."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]{3})?\s*", "0" if max_cost is None else str(max_cost))
    if found is None:
        raise ConfigError(f"--max-cost: expected an amount from 0 on, such as 50 or 50USD, found {max_cost!r}")
    cap = None if max_cost is None else float(found[1])
    return Consent(cap, yes, currency=found[2].upper() if found[2] else None, **more)


def opened(
    pipeline: str | None, folder: Path | None, assign: Sequence[str] = (), *, detect: bool = True, tell: Tell
) -> Run:
    """Return the run of a pipeline file, or of a run folder; of neither the newest run, which `tell` is told.

    Where a pipeline file names no language it is that of its texts, which is told; unless they are not to be looked at.
    """
    frozen = pipeline is None
    if pipeline is None:
        folder = run_folder(folder, "give --pipeline as well", tell=tell)
        pipeline = str(folder / SETTINGS)
    path = find(pipeline)
    if str(path) != pipeline and not packaged(path):
        tell(f"using {path} of the working directory")
    told_presets(tell)
    loaded = Pipeline.load(path, assign)
    if not loaded.head.stages:
        raise UserError(f"{path.name}: found a pipeline without stages, which is no run; give it to `curate train`")
    if detect:
        said = any(each.partition("=")[0].strip() == "language" for each in assign)
        loaded, line = in_language(loaded, path.name, said=said, frozen=frozen)
        if line:
            tell(line)
    return Run(folder or Path("runs") / loaded.head.name, loaded)


def opened_to_plan(pipeline: str, folder: Path | None, assign: Sequence[str], *, tell: Tell) -> Run:
    """Return the run that `opened` does; where the source cannot be read, in the language that the settings say."""
    try:
        return opened(pipeline, folder, assign, tell=tell)
    except (CurateError, OSError):
        work = opened(pipeline, folder, assign, detect=False, tell=lambda _: None)  # what else is wrong is raised again
        tell(f"language: {work.pipeline.head.language}, for the source cannot be read")
        return work


def run_folder(folder: Path | None, remedy: str = "give a run with --run", *, tell: Tell) -> Path:
    """Return a run folder, without one the newest, which is told; UserError with the remedy if it is none."""
    if folder is None:
        folder = newest()
        tell(f"working in {folder}")
    if not (folder / SETTINGS).is_file():
        raise NotFound(f"{folder}: not a run folder, for it has no pipeline.yaml; {remedy}")
    if not is_run(folder):
        raise UserError(f"{folder}: not a run folder, for its pipeline.yaml is not one that a run wrote; {remedy}")
    return folder


def told_presets(tell: Tell) -> None:
    """Tell it if the working directory changes the presets."""
    if OVERRIDES.is_file():
        tell(f"using {OVERRIDES} of the working directory")


def assigned(given: Mapping[str, object]) -> list[str]:
    """Return the assignments of options to settings; an option that was not given is left out."""
    return [f"{key}={json.dumps(value)}" for key, value in given.items() if value is not None]


def of_source(kind: str, source: str) -> list[str]:
    """Return the assignments that make a run of a source, under the source's name."""
    name = f"{kind}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', Path(source).name).strip('-') or 'set'}"
    return [f"ingest.source={json.dumps(source)}", f"name={name}"]


def scored(runs: Sequence[Path]) -> Iterator[str]:
    """Yield the assignments that make systems of run files, named by their files."""
    names = [re.sub(r"\W+", "-", path.stem) for path in runs]
    for name, path in zip(names, runs, strict=True):
        yield f"retrievers.{name}={json.dumps({'kind': 'runfile', 'path': str(path)})}"
    if names:
        yield f"audit.systems={json.dumps(names)}"


def need_audit(work: Run) -> Run:
    """Return the run; UserError if it is none of an audit."""
    if AUDIT not in work.pipeline.head.stages:
        raise UserError(f"{work.folder}: no run of an audit; name a folder or a task, or give --run")
    return work


def quoted(work: Run) -> list[dict[str, Json]]:
    """Return what judging would send and cost, see `quote`; what comes before is done for it, free, and not kept."""
    from curate.stages.judge.quote import quote

    names = work.pipeline.head.stages
    work.consent = Consent(currency=work.consent.currency)  # what comes before judging is not paid for a plan
    return work.rehearse(names[: names.index("judge")], lambda run: run.look("judge", quote))
