"""README.md of an evaluation: tables in Markdown, and charts as SVG files."""

import re
from collections.abc import Iterator, Mapping, Sequence

from curate.commands.evaluate import page_sections, provenance, query_sources
from curate.commands.evaluate.averages import MIXED
from curate.commands.evaluate.figures import STOCK, EvaluationFigures, ModelScore, TaskFigures
from curate.commands.evaluate.item_scores import MEDIAN, READINGS
from curate.commands.evaluate.provenance import NOTHING_MISSED, MissedLabels, PublishedShares, SampleShares
from curate.core.figures import Figure
from curate.review.agreement import SampleEstimate
from curate.view import charts
from curate.view.page_tables import points, ranged, table
from curate.view.record_words import DASH, RecordWords

STYLE = (
    ".ground{fill:#fff} rect.bar{fill:#63b3a8} circle.bar{fill:#2b7f77} .axis{stroke:#1d2327} text{fill:#1d2327} "
    ".number{font-variant-numeric:tabular-nums}"
)
Cells = dict[str, str]


def files(summary: EvaluationFigures) -> dict[str, str]:
    """Return file name -> text: `README.md` and its SVG charts."""
    say = RecordWords("evaluate/evaluate", empty=DASH)
    pictures = dict(_pictures(summary, say))
    lines = [*_head(summary, say), *(line for task in summary.tasks for line in _task(task, pictures, say))]
    lines += [*_legacy(summary, pictures, say), *page_sections.averages_sections(summary, say)]
    lines += _missed(summary.missed, say)
    if summary.notes:
        lines += [say("notes"), *(f"- {note}" for note in summary.notes)]
    return {"README.md": "\n".join(lines) + "\n", **pictures}


def overview(summary: EvaluationFigures, say: RecordWords, bold: str = "**") -> list[Cells]:
    """Return one row per model and baseline: its score on every task (the best one in `bold`), and the mean."""
    circular = {model.model: say("circular") if model.circular else "" for model in summary.models}
    sorts = {row.model: row.floor or "" for task in summary.tasks for row in task.floors}
    tasks = [(task, task.scores) for task in summary.tasks], [(task, task.floors) for task in summary.tasks]
    return [
        _overview_row(name, mark, side, say, bold)
        for marks, side in zip((circular, sorts), tasks, strict=True)
        for name, mark in marks.items()
    ]


def _overview_row(
    name: str,
    mark: str,
    scores_by_task: Sequence[tuple[TaskFigures, Sequence[ModelScore]]],
    say: RecordWords,
    bold: str,
) -> Cells:
    cells = say.cells("overview_model", model=marked(name, mark, say))
    rows = [(task, next((row for row in scores if row.model == name), None)) for task, scores in scores_by_task]
    for task, row in rows:
        score = say("overview_score", row, bold=bold if row.best else "") if row else None
        reading = "" if task.lead == STOCK else f", {say(task.lead)}"
        cells |= say.cells("overview_task", task, reading=reading, score=score)
    leads = [row.lead for _, row in rows if row]
    mean = points(sum(leads) / len(leads)) if len(leads) == len(rows) else None
    first = rows[0][1] if rows else None
    measures = {task.measure for task, _ in rows}
    cells |= {say("overview_mean") if len(measures) <= 1 else MIXED: mean or DASH} if len(rows) > 1 else {}
    return cells | say.cells("overview_rate", rate=say("rate", first) if first else None)


def marked(name: str, mark: str, say: RecordWords) -> str:
    """Return a model's name, followed by its mark (circular, floor or shortcut) in brackets, if any."""
    return say("marked", name=name, mark=mark) if mark else name


def _head(summary: EvaluationFigures, say: RecordWords) -> Iterator[str]:
    yield say("title")
    yield table(overview(summary, say))
    if contributors := [model for model in summary.models if model.roles]:
        yield ""
        yield table([say.cells("contributor", model, parts=say("and").join(model.roles)) for model in contributors])
    yield from provenance.family_section(summary.families, say)


def _task(task: TaskFigures, pictures: Mapping[str, str], say: RecordWords) -> Iterator[str]:
    yield say("task", task, pairs=say("task_pairs", task) if task.rows != task.queries else "")
    yield table(list(_scores(task, say)))
    if task.graded:
        yield f"\n{say('graded_labels')}"
    if task.scores[0].condensed:
        yield f"\n{say('readings', lead=say('median_leads' if task.lead == MEDIAN else 'other_leads'))}"
    yield say("scores_chart", file=file_stem(task.name))
    chart = f"{file_stem(task.name)}-speed.svg"
    yield from page_sections.speed_section(task.speed, chart if chart in pictures else None, say)
    yield from _against_floors(task, say)
    yield from page_sections.levels(task, say)
    yield from page_sections.labellings(task, say)
    yield from query_sources.section(task.sources, say)
    yield say("differences")
    yield from _pairs(task, say)
    yield from page_sections.against_model(task, say)
    if task.headroom:
        yield say("headroom", task.headroom, by="" if task.lead == STOCK else say("by_stock"))
        if task.headroom.best_of_all is not None:
            yield say("best_of_all", task.headroom)
    if task.difficulty:
        yield from (say("difficulty"), say("bands"))
        yield table(
            [
                say.cells("band", band) | {name: points(score) or DASH for name, score in band.scores.items()}
                for band in task.difficulty
            ]
        )
    yield from page_sections.inputs(task.scores, say)


def _scores(task: TaskFigures, say: RecordWords) -> Iterator[Cells]:
    """Yield one row per model and baseline, best first; the leading way of scoring is the first column."""
    further_measures = list(dict.fromkeys(name for result in task.scores for name in result.beside))
    for result in sorted([*task.scores, *task.floors], key=lambda row: -row.lead):
        name = marked(result.model, result.floor or "", say)
        cells = say.cells(
            "score",
            name=marked(name, say("circular") if result.model in task.circular else "", say),
            reading=say("linear" if task.graded else task.lead),
            bold="**" if result.best else "",
            score=ranged(getattr(result, task.lead)) or say("undefined_score"),
        )
        for measure in further_measures:
            # a number of sources is no score
            scale = (1, 0) if measure.startswith("sources") else (100, 2)
            cells[measure] = ranged(result.beside.get(measure), *scale) or DASH
        if task.graded:
            cells |= say.cells("graded", result)
        if task.verdicts:
            for reading in () if task.graded else READINGS:
                cells |= {say(reading): ranged(getattr(result, reading)) or DASH} if reading != task.lead else {}
            doubtful, holes = (
                None if getattr(result, f"{name}_at_10") is None else say(name, result)
                for name in ("doubtful", "holes")
            )
            cells |= say.cells("shares", doubtful=doubtful, holes=holes)
        yield cells | say.cells("rates", result)


def _against_floors(task: TaskFigures, say: RecordWords) -> Iterator[str]:
    if against := task.against_floors:
        yield say("floors", against, measure=against.in_measure)
        yield table(
            [
                say.cells(
                    "floor", task, row, distance=ranged(row), reached=say("reached" if row.above else "not_reached")
                )
                for row in against.models
            ]
        )
        yield f"\n{say('floors_note')}"


def _pairs(task: TaskFigures, say: RecordWords) -> Iterator[str]:
    if not task.pairs:
        yield say("one_model")
        return
    yield table([say.cells("pair", pair) | say.cells("enough", task, pair) for pair in task.enough.neighbours])
    test = say("randomisation" if task.exchanged else "bootstrap")
    yield f"\n{say('pairs_note', task, pairs=len(task.pairs), test=test)}"


def _legacy(summary: EvaluationFigures, pictures: Mapping[str, str], say: RecordWords) -> Iterator[str]:
    for comparison in summary.legacy:
        yield say("legacy_title", comparison)
        yield table([say.cells("legacy_score", score) for score in comparison.scores])
        for name, correlation in (("spearman", comparison.spearman), ("kendall", comparison.kendall)):
            if correlation:
                estimate = ranged(correlation, 1, 3)
                sentence = say("legacy_correlation", comparison, name=say(name), correlation=estimate, p=correlation.p)
            else:
                sentence = say("no_correlation", comparison, name=say(name))
            yield f"\n{sentence}."
        file = f"{file_stem(comparison.old)}-against-{file_stem(comparison.new)}.svg"
        if file in pictures:
            yield say("legacy_chart", file=file)


def _missed(missed: MissedLabels, say: RecordWords) -> Iterator[str]:
    yield say("missed")
    if missed == NOTHING_MISSED:
        yield say("nothing_missed")
    for sample in missed.samples or ():
        yield _shares(say("panel_labels", sample), sample, sample.contested_of_relevant, say)
    if final := missed.published:
        samples = ", ".join(f"`{name}`" for name in final.samples)
        yield _shares(say("published_labels", samples=samples), final, None, say)
    if missed.capture:
        yield say("capture", missed=ranged(Figure.from_json(missed.capture["missed"]), 1, 0))
    for sample in missed.below or ():
        yield say("below", recall=ranged(Figure.from_json(sample["recall"])), source=sample["source"])


def _shares(
    labels: str, shares: SampleShares | PublishedShares, contested_of_relevant: SampleEstimate | None, say: RecordWords
) -> str:
    share = ranged(contested_of_relevant)
    return say(
        "shares_missed",
        labels=labels,
        negatives=ranged(shares.negatives) or say("not_known"),
        contested=ranged(shares.contested) or say("not_known"),
        recall=ranged(shares.recall) or say("not_known"),
        clause=say("contested_clause", share=share) if share else "",
    )


def _pictures(summary: EvaluationFigures, say: RecordWords) -> Iterator[tuple[str, str]]:
    """Yield (file name, SVG): per task a bar chart and a scatter plot of speed, per legacy task a scatter plot."""
    for task in summary.tasks:
        rows = [
            (marked(row.model, row.floor or "", say), row.lead, interval.low, interval.high)
            for row in sorted([*task.scores, *task.floors], key=lambda row: -row.lead)
            for interval in [getattr(row, task.lead)]
        ]
        title = say("chart_title", task)
        yield f"{file_stem(task.name)}-scores.svg", charts.alone(charts.scores(title, rows), STYLE)
        scores = [(row.model, row.lead) for row in task.scores]
        if chart := page_sections.speed_chart(title, task.speed, scores, task.shown, say):
            yield f"{file_stem(task.name)}-speed.svg", charts.alone(chart, STYLE)
    for comparison in summary.legacy:
        both = [(row.model, row.old, row.new) for row in comparison.scores]
        title = say("against", comparison)
        chart = charts.scatter(title, both, comparison.old, comparison.new)
        yield f"{file_stem(comparison.old)}-against-{file_stem(comparison.new)}.svg", charts.alone(chart, STYLE)


def file_stem(name: str) -> str:
    """Return a name converted to a file name that is valid on all systems."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "task"
