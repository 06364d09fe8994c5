"""Opening of the run that a command's options name: settings, folder, budget. No stage is run, nothing written.

`tell` is called with each notice, one line.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from curate.core.config import Json, read_yaml
from curate.core.errors import ConfigError, CurateError, NotFound, UserError, suggestion
from curate.panel.voting import EXPERTS
from curate.pipeline.folder import SETTINGS, is_run, newest
from curate.pipeline.mark import Mark
from curate.pipeline.pipeline import Pipeline, find, in_language, with_defaults_of
from curate.pipeline.pipeline_edit import flow
from curate.pipeline.stage import Consent
from curate.system.resources import packaged

if TYPE_CHECKING:
    from curate.ask.billing import PlanRow
    from curate.runs.runner import Run

Tell = Callable[[str], None]


def loaded(
    pipeline: str | None, folder: Path | None, assign: Sequence[str] = (), *, tell: Tell
) -> tuple[Path | None, Path, Pipeline]:
    """Return run folder and pipeline file as `place` does, and the settings with `assign` (`KEY=VALUE`) applied.

    UserError if the pipeline has no stages.
    """
    folder, path = place(pipeline, folder, tell=tell)
    settings = Pipeline.load(path, assign)
    if not settings.head.stages:
        raise UserError(f"{path.name}: found a pipeline without stages, which is no run; give it to `curate train`")
    return folder, path, settings


def place(pipeline: str | None, folder: Path | None, *, tell: Tell) -> tuple[Path | None, Path]:
    """Return run folder and pipeline file; without arguments those of the newest run, with a notice.

    The folder is None if a pipeline is given without one. A notice is also given if a file of the working
    directory is used instead of the packaged one.
    """
    if pipeline is None:
        folder = run_folder(folder, "give --pipeline as well", tell=tell)
        pipeline = str(folder / SETTINGS)
    path = find(pipeline)
    if str(path) != pipeline and not packaged(path):
        tell(f"using {path} of the working directory")
    return folder, path


def run_folder(folder: Path | None, remedy: str = "give a run with --run", *, tell: Tell) -> Path:
    """Return a run folder, by default the newest, with a notice; UserError or NotFound if it is not one.

    `remedy` ends the message.
    """
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


# Open the run of a command: folder, settings, budget; runs and writes nothing.

AUDIT = "audit"
"""The packaged pipeline of an audit."""


def consent(max_cost: str | float | None, yes: bool = False, **more: bool) -> Consent:
    """Return the consent to spend a budget such as `50` or `50USD`, None for no budget; ConfigError if invalid.

    `yes` allows spending without a budget.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]{3})?\s*", "0" if max_cost is None else str(max_cost))
    if match is None:
        raise ConfigError(f"--max-cost: expected an amount from 0 on, such as 50 or 50USD, found {max_cost!r}")
    cap = None if max_cost is None else float(match[1])
    return Consent(cap, yes, currency=match[2].upper() if match[2] else None, **more)


def opened(
    pipeline: str | None, folder: Path | None, assign: Sequence[str] = (), *, detect: bool = True, tell: Tell
) -> "Run":
    """Return the run of a pipeline file or of a run folder; if neither is given, the newest run, with a notice.

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
    settings = with_defaults_of(settings, folder, path.name)
    if not frozen and (line := _differing_settings(folder, settings)):
        tell(line)
    if warning := _people_lost(folder, settings, path.name):
        tell(warning)
    from curate.runs.runner import Run  # brings all that runs a stage, which `curate models` does without

    return Run(folder, settings, warning=warning)


def resolve_policy(pipeline: Pipeline) -> str:
    """Return the setting `resolve.policy` of a pipeline with this stage."""
    policy: str = pipeline.sections["resolve"].model_dump()["policy"]
    return policy


def _people_lost(folder: Path, pipeline: Pipeline, file: str) -> str:
    """Return a warning if the labels of a run follow people's answers and those of the pipeline would not."""
    mark = Mark.read(folder / "resolve") if "resolve" in pipeline.head.stages else None
    if mark is None or mark.report.facts.get("policy") != EXPERTS or not mark.report.facts.get("reviewed"):
        return ""
    policy = resolve_policy(pipeline)
    if policy == EXPERTS:
        return ""
    return (
        f"WARNING: resolve.policy was {EXPERTS}, is {policy}: the labels lose what people decided on "
        f"{mark.report.facts['reviewed']:,} pairs; to keep it, write `resolve: {{policy: {EXPERTS}}}` into {file}"
    )


KEPT = "write what --set changes into the pipeline file too: the next run of that file takes it back"
"""How a setting of one command lasts."""


def _differing_settings(folder: Path, pipeline: Pipeline) -> str:
    """Return a notice on settings of an existing run, such as those of `--set`, that a pipeline would change.

    Empty if there are none. It says how to keep them, for stages run again without them.
    """
    if not is_run(folder):
        return ""
    old, new = (dict(_values(settings)) for settings in (read_yaml(folder / SETTINGS), pipeline.frozen))
    lost = {key: leaf for key, leaf in old.items() if leaf not in (None, "") and new.get(key) != leaf}
    options = " ".join(f"--set {shlex.quote(f'{key}={flow(leaf)}')}" for key, leaf in lost.items())
    changes = ", ".join(f"{key} was {flow(leaf)}, is {flow(new.get(key))}" for key, leaf in lost.items())
    return f"{folder}: the pipeline changes settings of this run: {changes}; to keep them: {options}" if lost else ""


def _values(settings: Json, section: str = "") -> Iterator[tuple[str, Json]]:
    """Yield (SECTION.KEY, value) of every setting."""
    if isinstance(settings, Mapping):
        for key, child in settings.items():
            yield from _values(child, f"{section}.{key}" if section else str(key))
    else:
        yield section, settings


def opened_to_plan(pipeline: str, folder: Path | None, assign: Sequence[str], *, tell: Tell) -> "Run":
    """Return the run as `opened` does, or without language detection, with a notice, if the source cannot be read."""
    try:
        return opened(pipeline, folder, assign, tell=tell)
    except (CurateError, OSError):
        work = opened(pipeline, folder, assign, detect=False, tell=lambda _: None)  # other errors are raised again
        tell(f"language: {work.pipeline.head.language}, for the source cannot be read")
        return work


def of_source(kind: str, source: str) -> list[str]:
    """Return assignments of settings for a run on a source: `ingest.source`, and the name `KIND-SOURCE`."""
    name = f"{kind}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', Path(source).name).strip('-') or 'set'}"
    return [f"ingest.source={json.dumps(source)}", f"name={name}"]


def scored(runs: Sequence[Path]) -> Iterator[str]:
    """Yield assignments of settings that add run files as retrievers and as systems of an audit, by file name."""
    names = [re.sub(r"\W+", "-", path.stem) for path in runs]
    for name, path in zip(names, runs, strict=True):
        yield f"retrievers.{name}={json.dumps({'kind': 'runfile', 'path': str(path)})}"
    if names:
        yield f"audit.systems={json.dumps(names)}"


def need_audit(work: "Run") -> "Run":
    """Return the run; UserError unless it is an audit."""
    if AUDIT not in work.pipeline.head.stages:
        raise UserError(f"{work.folder}: no run of an audit; name a folder or a task, or give --run")
    return work


def quoted(work: "Run") -> "list[PlanRow]":
    """Return the cost estimate of judging, as the rows of `quote`.

    The stages before it are run on trial, without paid calls, and discarded.
    """
    from curate.ask.quote import quote

    names = work.pipeline.head.stages
    work.consent = Consent(currency=work.consent.currency)  # what comes before judging is not paid for a plan
    return work.rehearse(names[: names.index("judge")], lambda run: run.look("judge", quote))
