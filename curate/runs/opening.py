"""Open the run of a command: folder, settings, budget; runs and writes nothing."""

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
    """Return the consent for a budget such as 50 or 50USD, or None; ConfigError if it is no amount."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]{3})?\s*", "0" if max_cost is None else str(max_cost))
    if match is None:
        raise ConfigError(f"--max-cost: expected an amount from 0 on, such as 50 or 50USD, found {max_cost!r}")
    cap = None if max_cost is None else float(match[1])
    return Consent(cap, yes, currency=match[2].upper() if match[2] else None, **more)


def opened(
    pipeline: str | None, folder: Path | None, assign: Sequence[str] = (), *, detect: bool = True, tell: Tell
) -> Run:
    """Return the run of a pipeline file or of a run folder; without either the newest run, with a notice.

    With `detect`, the language of a pipeline file that names none is detected from its texts, with a notice.
    """
    frozen = pipeline is None
    folder, path, settings = loaded(pipeline, folder, assign, tell=tell)
    if detect:
        language_set = any(assignment.partition("=")[0].strip() == "language" for assignment in assign)
        settings, line = in_language(settings, path.name, said=language_set, frozen=frozen)
        if line:
            tell(line)
    folder = folder or Path("runs") / settings.head.name
    return Run(folder, with_defaults_of(settings, folder, path.name))


def opened_to_plan(pipeline: str, folder: Path | None, assign: Sequence[str], *, tell: Tell) -> Run:
    """Return the run of `opened`; if the source cannot be read, with the language of the settings."""
    try:
        return opened(pipeline, folder, assign, tell=tell)
    except (CurateError, OSError):
        work = opened(pipeline, folder, assign, detect=False, tell=lambda _: None)  # other errors are raised again
        tell(f"language: {work.pipeline.head.language}, for the source cannot be read")
        return work


def assigned(options: Mapping[str, object]) -> list[str]:
    """Return options as assignments of settings; None is left out."""
    return [f"{key}={json.dumps(setting)}" for key, setting in options.items() if setting is not None]


def of_source(kind: str, source: str) -> list[str]:
    """Return overrides for a run on a source, named after it."""
    name = f"{kind}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', Path(source).name).strip('-') or 'set'}"
    return [f"ingest.source={json.dumps(source)}", f"name={name}"]


def scored(runs: Sequence[Path]) -> Iterator[str]:
    """Yield overrides that add run files as systems, named after the files."""
    names = [re.sub(r"\W+", "-", path.stem) for path in runs]
    for name, path in zip(names, runs, strict=True):
        yield f"retrievers.{name}={json.dumps({'kind': 'runfile', 'path': str(path)})}"
    if names:
        yield f"audit.systems={json.dumps(names)}"


def need_audit(work: Run) -> Run:
    """Return the run; UserError unless it is an audit."""
    if AUDIT not in work.pipeline.head.stages:
        raise UserError(f"{work.folder}: no run of an audit; name a folder or a task, or give --run")
    return work


def quoted(work: Run) -> list[dict[str, Json]]:
    """Return the rows of `quote`; runs the stages before judging for it, free of cost, and discards them."""
    from curate.ask.quote import quote

    names = work.pipeline.head.stages
    work.consent = Consent(currency=work.consent.currency)  # what comes before judging is not paid for a plan
    return work.rehearse(names[: names.index("judge")], lambda run: run.look("judge", quote))
