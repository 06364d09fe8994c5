"""Sections of an evaluation's page: averages, model inputs, corrected scores, contested pairs, speed."""

from collections.abc import Iterator, Sequence

from curate.commands.evaluate.averages import Average, AveragePair, GroupComparison
from curate.commands.evaluate.corrected import CorrectedDifference, CorrectedEstimate, ModelLevel
from curate.commands.evaluate.figures import EvaluationFigures, ModelScore, PairTest, TaskFigures
from curate.commands.evaluate.mteb_models import OWN
from curate.commands.evaluate.speed import Speed
from curate.commands.evaluate.text_inputs import SeenTexts
from curate.commands.evaluate.timing import Timing
from curate.stats.significance import DetectableDifference
from curate.view import charts
from curate.view.page_tables import points, ranged, table
from curate.view.record_words import DASH, RecordWords

MOST_PAIRS = 20
"""Maximum number of pairs of models in a table."""
Cells = dict[str, str]


def averages_sections(figures: EvaluationFigures, say: RecordWords) -> Iterator[str]:
    """Yield the sections across tasks: averages, correlations of groups, models with mteb results, parameters."""
    for group in figures.averages:
        yield from _group(group, say)
    for order in figures.orders:
        yield say("orders_title", order)
        yield "\n".join(f"{line}.\n" for line in correlations(order, say))
    if figures.results:
        tasks = sorted({task for model in figures.results for task in model.scores})
        yield say("results")
        yield table(
            [
                say.cells("result", model=model.model, revision=model.revision[:12])
                | {task: points(model.scores.get(task)) or DASH for task in tasks}
                for model in figures.results
            ]
        )
    if counted := [model for model in figures.parameters if model.source]:
        yield say("parameters")
        yield table(
            [
                say.cells(
                    "counts",
                    model,
                    query_total=_millions(model.query.total),
                    query_active=_millions(model.query.active),
                    document_total=_millions(model.document.total),
                    document_active=_millions(model.document.active),
                )
                for model in counted
            ]
        )


def correlations(order: GroupComparison, say: RecordWords) -> Iterator[str]:
    """Yield a sentence per rank correlation of two groups, naming the test of each p-value."""
    for name, correlation in (("spearman", order.spearman), ("kendall", order.kendall)):
        if correlation is None:
            yield say("no_correlation", order, name=say(name))
            continue
        by_t = "" if correlation.p_t is None else say("by_t", correlation)
        estimate = ranged(correlation, 1, 3)
        yield say("correlation", correlation, order, name=say(name), correlation=estimate, by_t=by_t)


def average_line(group: Average, say: RecordWords) -> str:
    """Return one line with the three best averages of a group, for the terminal."""
    best = ", ".join(f"{average.model} {ranged(average)}" for average in group.models[:3])
    statistic = say("average_name") if group.statistic == "mean" else group.statistic
    return say("average", group, statistic=statistic, tasks=", ".join(group.tasks), best=best or say("no_average"))


def against_model(task: TaskFigures, say: RecordWords) -> Iterator[str]:
    """Yield the tests of all models against one model, and the minimum detectable differences."""
    if task.against_model:
        yield "\n" + _pairs(task.against_model, say)
        yield say("against_note")
    yield from _detectable(task.detectable, say("items", task), say)


def _group(group: Average, say: RecordWords) -> Iterator[str]:
    yield say("average_title" if group.statistic == "mean" else "mixed_title", group, tasks=", ".join(group.tasks))
    if group.models:
        yield table([say.cells("averaged", average) | {group.statistic: ranged(average)} for average in group.models])
    for lacking in group.missing:
        yield say("lacking", lacking, tasks=", ".join(lacking.tasks))
    if group.pairs:
        yield "\n" + _pairs(group.pairs[:MOST_PAIRS], say)
        excerpt = say("clearest", most=MOST_PAIRS, pairs=len(group.pairs)) if len(group.pairs) > MOST_PAIRS else ""
        yield say(
            "averages_note", tested=say("tested_against" if group.against else "tested_all", group), excerpt=excerpt
        )
    yield from _detectable(group.detectable, say("the_queries"), say)


def _pairs(pairs: Sequence[PairTest | AveragePair], say: RecordWords) -> str:
    return table([say.cells("pair", pair) | say.cells("smallest", pair) for pair in pairs])


def _detectable(differences: DetectableDifference | None, items: str, say: RecordWords) -> Iterator[str]:
    if differences:
        spread = "" if differences.spread is None else say("spread", differences)
        yield f"\n{say('detectable', differences, items=items, spread=spread)}"


def _millions(parameters: int | None) -> str | None:
    return None if parameters is None else f"{parameters / 1e6:,.1f}"


# Model inputs: prompt, maximum length, truncated texts, precision.

SHORT = 60
"""Maximum number of characters of a prompt in a table; evaluation.json has the complete prompts."""


def inputs(scores: Sequence[ModelScore], say: RecordWords) -> Iterator[str]:
    """Yield the section on the inputs of a task's models; nothing if no model has vectors."""
    rows = [_input(score, seen, say) for score in scores for seen in score.inputs]
    if not rows:
        return
    yield say("inputs")
    yield table(rows)
    yield f"\n{say('inputs_note')}"
    yield from _unverified(scores, say)
    if checked := [say.cells("precision_check", score) for score in scores if score.precision_check]:
        yield say("float32")
        yield table(checked)


def _unverified(scores: Sequence[ModelScore], say: RecordWords) -> Iterator[str]:
    """Yield sentences on models that were not compared with float32, and on models whose inputs are unknown."""
    vectors = [score for score in scores if score.inputs]
    model_names = {vector.model for vector in vectors}
    unchecked = [
        vector.model
        for vector in vectors
        if vector.precision != "float32"
        and not vector.precision_check
        and vector.model.rpartition("@")[0] not in model_names  # NAME@WIDTH is a truncated model
    ]
    if unchecked:
        yield say("not_compared", models=", ".join(unchecked))
    by_own_code = [vector for vector in vectors if vector.precision == OWN]
    if unknown := [vector.model for vector in by_own_code if not all(seen.known for seen in vector.inputs)]:
        yield f"\n{say('own_code', models=', '.join(unknown))}"


def _input(score: ModelScore, seen: SeenTexts, say: RecordWords) -> Cells:
    return say.cells(
        "input",
        score,
        seen,
        side=say("side", seen) if seen.route else "",
        prompt=_prompt(seen, say),
        max_length=seen.max_length or None,
        cut=None if seen.cut is None else say("cut", seen),
        precision=_precision(score, say),
    )


def _prompt(seen: SeenTexts, say: RecordWords) -> str:
    if not seen.known:
        return say("not_known")
    prompt = (seen.prompt or "").replace("\n", " ⏎ ")
    if not prompt:
        return say("no_prompt")
    return say("prompt", prompt=f"{prompt[:SHORT]}…" if len(prompt) > SHORT else prompt)


def _precision(score: ModelScore, say: RecordWords) -> str | None:
    """Return the model's precision, followed by the precisions of weights that differ, such as token embeddings."""
    dtypes = ", ".join(dtype for dtype in score.weights if dtype != score.precision)
    if score.precision == OWN:
        return dtypes or say("not_known")
    return say("partly", score, dtypes=dtypes) if dtypes else score.precision


# Labels: corrected scores, and contested pairs.

MEASURES = ("precision_at_10", "scaled_dcg_at_10")
MOST_DIFFERENCES = 20
"""Maximum number of differences in a table."""


def levels(task: TaskFigures, say: RecordWords) -> Iterator[str]:
    """Yield the section on corrected scores.

    It is empty for a task without verdicts, and for a task that no sample can cover.
    """
    corrected = task.levels
    if not task.verdicts or (not corrected and not task.judged):
        return
    yield say("levels_title")
    if not corrected:
        yield say("nobody_read")
        return
    yield table([_level(row, say) for row in corrected.models])
    strata = "; ".join(say("level_stratum", stratum) for stratum in corrected.strata)
    sentences = [say("levels_note", corrected, strata=strata)]
    if task.undecided:  # some judged queries are in no mean
        sentences.append(say("excluded_1" if task.undecided == 1 else "excluded", task))
    yield "\n" + " ".join([*sentences, say("not_corrected")])
    if corrected.pairs_of_models:
        yield say("corrected_differences")
        yield from _differences(corrected.pairs_of_models, say)


def labellings(task: TaskFigures, say: RecordWords) -> Iterator[str]:
    """Yield the section on contested pairs, with rank correlations between the ways of scoring them."""
    if not task.contested:
        return
    yield say("contested")
    yield say("contested_1" if task.undecided == 1 else "contested_pairs", task, task.contested)
    if task.orders:
        yield say("alike")
        yield table([say.cells("reading_order", row, one=say(row.one), other=say(row.other)) for row in task.orders])


def _level(row: ModelLevel, say: RecordWords) -> Cells:
    cells = say.cells("level_model", row)
    for measure, score in zip(MEASURES, (row.precision_at_10, row.scaled_dcg_at_10), strict=True):
        cells |= say.cells(
            "level_score",
            measure=say(measure),
            score=say("half", score) if score else say("no_score"),
            new_queries=_for_new_queries(score, say),
        )
    return cells | say.cells("level_outside", share=say("outside", row) if row.outside else None)


def _for_new_queries(score: CorrectedEstimate | CorrectedDifference | None, say: RecordWords) -> str | None:
    return None if score is None or score.new_queries is None else say("half_new", score)


def _differences(pairs: Sequence[CorrectedDifference], say: RecordWords) -> Iterator[str]:
    rows = sorted(pairs, key=lambda row: (row.measure, row.p or 0.0, -row.value))
    for measure in MEASURES:
        measure_rows = [row for row in rows if row.measure == measure]
        yield table(
            [
                say.cells(
                    "corrected_difference",
                    row,
                    name=say(measure),
                    by=say("half", row),
                    by_new=_for_new_queries(row, say),
                    p_or_exact=say("exact" if row.p is None else "p", row),
                )
                for row in measure_rows[:MOST_DIFFERENCES]
            ]
        )
        more = len(measure_rows) > MOST_DIFFERENCES
        yield say(
            "corrected_note",
            excerpt=say("corrected_excerpt", pairs=len(measure_rows)) if more else "",
            exact=say("exact_note") if any(row.p is None for row in measure_rows) else "",
        )


# Speed: a table per task, ratios, and a chart of quality against speed.


def speed_overview(speed: Speed, say: RecordWords) -> list[dict[str, object]]:
    """Return one row per model, fastest first."""
    return [
        say.cells(
            "speed_model",
            row,
            rate=_rate(row.qps),
            encoded=_range(row.encoding, say),
            per_cpu_second=_rate(row.encoding.per_cpu_second) if row.encoding else None,
            searched=_rate(row.search.qps) if row.search else None,
            index=_millions(row.index_bytes),
            dtype=", ".join(row.dtypes) or None,
        )
        | {say("longest"): row.max_length}
        for row in sorted(speed.models, key=lambda row: (-row.qps, row.model))
    ]


def speed_ratios(speed: Speed, say: RecordWords) -> list[str]:
    """Return a sentence per model on its encoding speed relative to the slowest model."""
    return [say("ratio", row, wall=say("spread_of", row.wall), cpu=say("spread_of", row.cpu)) for row in speed.ratios]


def speed_machine(speed: Speed, say: RecordWords) -> str:
    """Return sentences on the conditions of the measurement: queries, machine, load."""
    before, after = (
        say("not_known") if speed.load[moment] is None else f"{speed.load[moment]:g}" for moment in ("before", "after")
    )
    return say(
        "machine",
        speed,
        **speed.characters,
        search=say("machine_search", speed) if speed.searched else "",
        gpus="".join(f", {gpu}" for gpu in speed.machine.gpus),
        threads=str(speed.threads["torch"]),
        before=before,
        after=after,
    )


def speed_section(speed: Speed | None, chart: str | None, say: RecordWords) -> Iterator[str]:
    """Yield the speed section of a task; nothing if speed was not measured on this machine."""
    if not speed:
        return
    yield say("speed")
    yield table(speed_overview(speed, say))
    yield f"\n{speed_machine(speed, say)}"
    for line in speed_ratios(speed, say):
        yield f"\n- {line}"
    if chart:
        yield say("chart", chart=chart)


def speed_chart(
    title: str, speed: Speed | None, scores: Sequence[tuple[str, float]], up: str, say: RecordWords
) -> str | None:
    """Return a scatter plot of quality against speed (logarithmic axis); None with fewer than two models."""
    rates = {row.model: row.qps for row in speed.models} if speed else {}
    rated = [(name, rates[name], score) for name, score in scores if name in rates]
    axis = say("speed_axis")
    return (
        charts.scatter(say("speed_chart", title=title), rated, axis, up, logarithmic=True) if len(rated) > 1 else None
    )


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2f}"


def _range(timing: Timing | None, say: RecordWords) -> str | None:
    if timing is None:
        return None
    return say("range", qps=_rate(timing.qps), qps_low=_rate(timing.qps_low), qps_high=_rate(timing.qps_high))
