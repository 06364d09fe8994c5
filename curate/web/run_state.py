"""State of a run for its first page: colour, reason, rule and next command, as the report and the audit give it."""

from pathlib import Path

from curate.ask import privacy_guard
from curate.pipeline.mark import Mark
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context, home
from curate.review import published
from curate.review.lead import judged_pairs, of_people, published_precision
from curate.runs import checks
from curate.runs.runner import Run
from curate.system.files import read_json, there
from curate.view import run_figures, state
from curate.view.state import Evidence, State

_RENDERS = ("report",)


def state_of(run: Path, language: str) -> State:
    """Return the state of a run in a language."""
    pipeline = Pipeline.load(run / "pipeline.yaml")
    names = [name for name in pipeline.head.stages if name not in _RENDERS]
    marks = {name: Mark.read(run / name) for name in names}
    states = Run(run, pipeline).states()
    again = [name for name in names if states[name][0] not in ("done", "unchecked")]
    judge, export = marks.get("judge"), marks.get("export")
    if judge is None or not (run / "consensus" / "agreement.json").is_file():
        return state.of_evidence(Evidence(0, None, unfinished=next(iter(again), "judge")), language)
    context = Context(run=run, out=run, home=home(), settings=pipeline.frozen)
    judged = judge.report.facts
    if (run / "audit" / "audit.json").is_file():
        figures = read_json(run / "audit" / "audit.json")
        texts = privacy_guard.residual(context).select("table", "id").unique().height
        personal = texts if there(run / "mask", "residual") else None
        evidence = state.audit_evidence(figures, run_figures.failed(judged), personal)
        return state.of_evidence(evidence, language, "audit")
    agreed = read_json(run / "consensus" / "agreement.json")
    people = of_people(run, judged_pairs(agreed))
    evidence = state.evidence(
        judged,
        agreed["panel"],
        export.report.facts if export else None,
        {**people, "precision": published_precision(published.prove(run)) or people["precision"]},
        checks.controls(judged, checks.CHECKS["judge"].result(context)),
        again,
    )
    return state.of_evidence(evidence, language)
