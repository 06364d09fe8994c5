"""Run stages for a command: open the run that its options name, ask consent to spend, print progress and results."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from curate.view import output_mode
from curate.view.answers import answer
from curate.view.text import as_table

if TYPE_CHECKING:
    from curate.core.config import Json
    from curate.pipeline.pipeline import Head, Pipeline
    from curate.pipeline.stage import Consent
    from curate.runs.runner import Run

from collections.abc import Iterator
from contextlib import contextmanager

if TYPE_CHECKING:
    from curate.ledger import Ledger


def allowed(max_cost: str | None, yes: bool = False, **more: bool) -> "Consent":
    """Return the consent to spend that the options `--max-cost` and `--yes` give; ConfigError for an invalid amount."""
    from curate.runs.opening import consent

    return consent(max_cost, yes, **more)


def print_plan(
    work: "Run",
    consent: "Consent",
    look: "Callable[[], Sequence[Mapping[str, Json]]]",
    digits: int,
    as_json: bool = False,
) -> None:
    """Print the cost estimate that `look` returns, as rows of calls and cost, with totals in the budget's currency.

    No model is called.
    """
    from curate.view.progress import bars

    work.consent = consent
    with bars() as (work.progress, work.tell):
        rows = look()
    _print_costs(rows, digits, as_json)


def _print_costs(rows: "Sequence[Mapping[str, Json]]", digits: int, as_json: bool) -> None:
    answer(rows, [as_table(rows, digits=digits) if rows else "nothing is left to send"], as_json=as_json)


def listed(key: str, names: str | None) -> list[str]:
    """Return the assignment `KEY=[NAMES]` of comma-separated names in a list; an empty list if `names` is None."""
    return [] if names is None else [f"{key}=[{names}]"]


def go(
    names: Sequence[str] | None,
    pipeline: str | None,
    folder: Path | None,
    assign: Sequence[str],
    force: bool,
    consent: "Consent | None" = None,
) -> Path:
    """Run the named stages, or all, with progress bars, print the results, and return the run folder."""
    from curate.view.progress import bars

    work = open_run(pipeline, folder, assign)
    if consent is not None:
        work.consent = consent
    work.named = pipeline is not None or folder is not None
    with bars() as (work.progress, work.tell):
        work.execute(names, force=force)
    outputs = results(work, names)
    lines = [f"{label.replace('_', ' ')}: {path}" for label, path in outputs.items() if isinstance(path, str)]
    output_mode.put(outputs, "\n".join([*lines, *outputs.get("summary", ())]))
    _need_grades(work, names)
    return work.folder


def _need_grades(work: "Run", names: Sequence[str] | None) -> None:
    """Raise Incomplete if a judge left more pairs without a grade than its settings allow."""
    from curate.core.errors import Incomplete

    mark = work.mark("judge") if "judge" in (names or work.pipeline.head.stages) else None
    if mark and (judges := mark.report.facts.get("too_many_lost")):
        raise Incomplete(
            f"judge: more pairs have no grade than judge.sanity.missing allows, of {judges}; what was graded is kept"
        )


def results(work: "Run", names: Sequence[str] | None) -> dict[str, Any]:
    """Return the outputs to print: `run_folder`; if the last stage is export, report or audit, also its files.

    After export or report there is a `summary`, too. `names` are the stages that ran, None for all.
    """
    from curate.runs.status import summary

    last = (names or work.pipeline.head.stages)[-1]
    paths = {"benchmark": work.folder / "export", "report": work.folder / "report.html"}
    if last == "audit":
        paths = {"report": work.folder / "audit.html"}
    outputs: dict[str, Any] = {"run_folder": str(work.folder)}
    if last in ("export", "report", "audit"):
        outputs |= {label: str(path) for label, path in paths.items() if path.exists()}
    return {**outputs, "summary": summary(work)} if last in ("export", "report") else outputs


def open_run(pipeline: str | None, folder: Path | None, assign: Sequence[str] = (), *, detect: bool = True) -> "Run":
    """Return the run named by `--pipeline` and `--run`; without both the newest run, with a printed notice.

    With `detect`, the language of a pipeline that does not set one is detected from its texts; a notice is printed.
    """
    from curate.runs.opening import opened

    return opened(pipeline, folder, assign, detect=detect, tell=_print_line)


def load_pipeline(pipeline: str | None, folder: Path | None) -> "Pipeline":
    """Return the settings of the pipeline or run named by `--pipeline` and `--run`, without opening the run."""
    from curate.runs.opening import loaded

    return loaded(pipeline, folder, tell=_print_line)[-1]


def load_head(pipeline: str | None, folder: Path | None) -> "Head":
    """Return the head of the pipeline or run named by `--pipeline` and `--run`: the settings outside of stages."""
    from curate.pipeline.pipeline import head
    from curate.runs.opening import place

    return head(place(pipeline, folder, tell=_print_line)[-1])


def _print_line(line: str) -> None:
    typer.echo(line, err=True)


def run_folder(folder: Path | None, remedy: str = "give a run with --run") -> Path:
    """Return a run folder, by default the newest, with a printed notice; UserError, ending in `remedy`, if invalid."""
    from curate.runs import opening as named

    return named.run_folder(folder, remedy, tell=_print_line)


def announce_presets() -> None:
    """Print a notice if the working directory changes the presets."""
    from curate.llm.providers.presets import told_presets

    told_presets(_print_line)


def assigned(options: Mapping[str, object]) -> list[str]:
    """Return options (setting -> value) as assignments `KEY=JSON`; those that are None are left out."""
    from curate.runs import opening

    return opening.assigned(options)


def of_source(kind: str, source: str) -> list[str]:
    """Return assignments of settings for a run on a source, as `opening.of_source` does."""
    from curate.runs import opening

    return opening.of_source(kind, source)


def carry_out(work: "Run", consent: "Consent", *, plan: bool, force: bool, as_json: bool) -> bool:
    """Run all stages and return True; with `plan`, print the cost estimate of judging instead and return False.

    A new run that fails does not become the newest run; only the same command resumes it.
    """
    from curate.pipeline.folder import newest_when_done
    from curate.runs.opening import quoted
    from curate.view.progress import bars

    with bars() as (work.progress, work.tell):
        if not plan:
            work.consent = consent
            with newest_when_done(work.folder):
                work.execute(None, force=force)
            if output_mode.json_lines():
                output_mode.put(results(work, None), "")
            _need_grades(work, None)
            return True
        work.consent = consent
        rows = quoted(work)
    _print_costs(rows, 2, as_json)
    return False


@contextmanager
def opened(where: str | None = None, *, new: bool = False) -> Iterator["Ledger"]:
    """Yield the ledger at a file or URL, by default that of the environment; NotFound if missing, unless `new`."""
    from curate.core.errors import NotFound
    from curate.ledger import Ledger
    from curate.pipeline.stage import ledger_place

    location = ledger_place() if where is None else where if "://" in where else Path(where)
    if isinstance(location, Path) and not location.exists() and not new:
        raise NotFound(f"{location}: no ledger yet; judge something first, or set CURATE_HOME or CURATE_LEDGER")
    with Ledger(location) as ledger:
        yield ledger
