"""The run that a command or a call means: its folder, its settings, what it may spend; nothing is run or written."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from curate.core.config import Json
from curate.core.errors import ConfigError, CurateError, UserError
from curate.pipeline.pipeline import in_language, with_defaults_of
from curate.pipeline.stage import Consent
from curate.runs.named import Tell, loaded
from curate.runs.runner import Run

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
    folder, path, settings = loaded(pipeline, folder, assign, tell=tell)
    if detect:
        said = any(each.partition("=")[0].strip() == "language" for each in assign)
        settings, line = in_language(settings, path.name, said=said, frozen=frozen)
        if line:
            tell(line)
    folder = folder or Path("runs") / settings.head.name
    return Run(folder, with_defaults_of(settings, folder, path.name))


def opened_to_plan(pipeline: str, folder: Path | None, assign: Sequence[str], *, tell: Tell) -> Run:
    """Return the run that `opened` does; where the source cannot be read, in the language that the settings say."""
    try:
        return opened(pipeline, folder, assign, tell=tell)
    except (CurateError, OSError):
        work = opened(pipeline, folder, assign, detect=False, tell=lambda _: None)  # what else is wrong is raised again
        tell(f"language: {work.pipeline.head.language}, for the source cannot be read")
        return work


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
    from curate.ask.quote import quote

    names = work.pipeline.head.stages
    work.consent = Consent(currency=work.consent.currency)  # what comes before judging is not paid for a plan
    return work.rehearse(names[: names.index("judge")], lambda run: run.look("judge", quote))
