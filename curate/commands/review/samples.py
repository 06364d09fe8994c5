"""`curate review` for samples that are not drawn from all judged pairs (accept, contested), and next steps."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from curate.core.errors import ConfigError
from curate.core.figures import Record, figure
from curate.review import flags, item_proof, items, published, showing
from curate.review.agreement import checked
from curate.review.desk import desks
from curate.review.drawing import no_controls
from curate.review.lead import recommendation
from curate.review.proof import SampleProof, prove
from curate.runs.opening import opened
from curate.view import state
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import as_table, too_few

if TYPE_CHECKING:
    from pathlib import Path

    from curate.commands.review.contested import ContestedPlan
    from curate.review import Desk, Sample
    from curate.review.acceptance_plan import AcceptancePlan
    from curate.review.drawing import SampleOptions
    from curate.runs.runner import Run


def of(requested: str, for_scores: "Path | None") -> str:
    """Return the object of a sample: `scores` with --for-scores, else --of (`requested`); ConfigError for both."""
    if for_scores is not None and requested != "labels":
        raise ConfigError(f"--for-scores: found --of {requested} beside it, expected one of them; leave out --of")
    return requested if for_scores is None else "scores"


def chosen(of: str, target: str | None, margins: Sequence[str] | None, *, contested: bool) -> str | None:
    """Return `contested` or `accept` for such a sample, None for one of all pairs; ConfigError if options conflict."""
    from curate.commands.review.contested import OF as CONTESTED
    from curate.review.acceptance_plan import OF as ACCEPT

    if not contested and target != ACCEPT:
        return None
    option = "--contested" if contested else f"--target {ACCEPT}"
    conflicts = {"--target": contested and target is not None, "--margin": bool(margins), "--of": of != "labels"}
    if wrong := next((name for name, is_given in conflicts.items() if is_given), None):
        raise ConfigError(f"{wrong}: found together with {option}, which has a design of its own; leave it out")
    return CONTESTED if contested else ACCEPT


def size(work: "Run", size: int | None) -> int:
    """Return the number of contested pairs to read: `size`, by default those in top tens."""
    from curate.commands.review import contested

    work.need_ancestors("resolve")
    return contested.in_top_tens(work.folder) if size is None else size


def draw(work: "Run", order: "SampleOptions", of: str) -> "Sample":
    """Draw a sample of kind `of`: accept or contested."""
    from curate.commands.review import contested
    from curate.review import acceptance_plan

    return (
        contested.draw(work.folder, order)
        if of == contested.OF
        else acceptance_plan.draw(work.folder, order, *_promise(work))
    )


def plan(work: "Run", order: "SampleOptions", of: str) -> "Result[ContestedPlan | AcceptancePlan]":
    """Return the design of a sample of kind `of` (accept or contested), which is not drawn."""
    from curate.commands.review import contested
    from curate.review import acceptance_plan

    if of == contested.OF:
        contested_plan = contested.plan(work.folder, order.size or 0)
        return Result(contested_plan, [as_table([stratum.to_json() for stratum in contested_plan.strata])])
    wrong, confidence = _promise(work)
    planned = acceptance_plan.plan(work.folder, order.size or 0, wrong, confidence, order.seed)
    return Result(planned, _planned(planned, order.size or 0))


def _promise(work: "Run") -> tuple[float, float]:
    """Return `wrong` (largest share of wrong pairs) and `confidence` of `consensus.accept`; ConfigError if not set."""
    accept: Any = getattr(work.pipeline.sections["consensus"], "accept", None)
    if accept is None:
        raise ConfigError(
            "--target accept: found no consensus.accept in the run's settings, expected what is to be promised; set "
            f"it before the sample is drawn: `curate consensus --run {shlex.quote(str(work.folder))} --set "
            "consensus.accept.wrong=0.4`"
        )
    return accept.wrong, accept.confidence


def _planned(plan: "AcceptancePlan", size: int) -> Iterator[str]:
    """Yield the printed plan: strata, share of reviews that find a threshold, error rates, and size needed."""
    rows = [stratum.to_json() for stratum in plan.strata]
    drawn, pairs = (sum(getattr(stratum, field) for stratum in plan.strata) for field in ("drawn", "size"))
    yield f"{drawn:,} of {pairs:,} pairs; wrong share of {plan.wrong:g} at most, confidence {plan.confidence:g}"
    yield as_table(rows, digits=4)
    odds = plan.odds
    of_those = "-" if odds.broken_announced is None else f"{odds.broken_announced:.1%}"
    yield f"find a threshold: {odds.found:.0%} of such reviews, if the anticipated shares are right"
    yield f"announce one that does not hold: {odds.broken:.1%} of all reviews, {of_those} of those that announce one"
    if plan.needed != size:
        least = f"--size {plan.needed:,}".replace(",", "") if plan.needed else "no size; raise consensus.accept.wrong"
        yield f"a threshold is announced only where half of the reviews find one; that needs {least}"


class DrawnStratum(Record, schema_name="some_stratum"):
    """Answers in one stratum."""

    stratum: str = figure("name of the stratum")
    pairs: int = figure("its pairs")
    drawn: int = figure("pairs that were drawn")
    read: int = figure("pairs that were read")
    relevant: int = figure("read pairs that assessors find relevant")


class SampleProgress(Record, schema_name="of_some"):
    """How far a sample was read that is none of all pairs; estimates are those of the command that uses it."""

    sample: str = figure("name of the sample")
    of: str = figure("purpose of the sample: accept, contested or scores")
    rows: int = figure("rows that were drawn")
    read: int = figure("rows that were read")
    strata: tuple[DrawnStratum, ...] = figure("a row per stratum")
    advice: str | None = figure("what to do with the sample, in a sentence", optional=True, default=None)


def report(review: "Desk", notices: Sequence[str]) -> Result[SampleProgress]:
    """Return progress and answers by stratum of an accept or contested sample, without estimates for the pool."""
    rows = checked(review)
    read = [row for row in rows if row.settled]
    strata = tuple(
        DrawnStratum(
            stratum=stratum.name,
            pairs=stratum.size,
            drawn=stratum.drawn,
            read=sum(row.stratum == stratum.name for row in read),
            relevant=sum(row.stratum == stratum.name and bool(row.relevant) for row in read),
        )
        for stratum in review.sample.design.strata
    )
    of = str(review.sample.design.facts["of"])
    say = RecordWords("review/report")
    figures = SampleProgress(review.sample.design.name, of, len(rows), len(read), strata)
    use = say(of).split("\n")
    advice = say("open", figures, open=len(rows) - len(read)) if len(read) < len(rows) else use.pop(0)
    table = as_table([say.cells("stratum", stratum) for stratum in strata])
    lines = [say("advice", figures, advice=advice), say("progress", figures), table, *use, *next_lines(review)]
    return Result(replace(figures, advice=advice), lines, notices)


def report_items(review: "Desk", notices: Sequence[str]) -> Result[item_proof.ItemProof]:
    """Return the precision of a task type's published labels, by the rows of a sample read so far."""
    kind = items.chosen(str(review.sample.design.facts["of"]))
    run = review.sample.folder.parents[1]
    proof = item_proof.prove(review, items.of_run(run, kind))
    say = RecordWords("review/report")
    sides, precision = [say("with_labels", proof)], proof.precision
    if sum(bool(person.read) for person in proof.people.values()) > 1:
        sides.append(say("between_people", proof))
    flagged = len(flags.personal_rows(run))
    reading = state.ReadCounts(proof.rows, proof.read, proof.twice, proof.disagreements_between_people, flagged)
    advice = state.advice(precision.to_json() if precision else None, reading, "items")
    lines = [
        say("advice", proof, advice=advice),
        say("items", proof),
        say("disagreements", proof, sides=", ".join(sides)),
        *([say("outdated")] if proof.outdated else []),
        as_table(list(item_proof.lines(proof)), digits=3),
        *(next_lines(review) if flagged else []),
    ]
    return Result(replace(proof, advice=advice), lines, notices)


def report_labels(review: "Desk", notices: Sequence[str]) -> Result[SampleProof]:
    """Return the estimates of a sample of all pairs, of the panel's labels and of the published ones."""
    run = review.sample.folder.parents[1]
    figures, final = prove(review), published.prove(run)
    readers = [name for name, person in figures.people.items() if person.read]
    say = RecordWords("review/report")
    sides = [say("with_panel", figures, people=say("and").join(readers) or say("nobody"))]
    if len(readers) > 1:
        sides.append(say("between_people", figures))
    advice = recommendation(figures, final, len(flags.personal_rows(run))).sentence
    without = no_controls(review.sample.design)
    lines = [
        say("advice", figures, advice=advice),
        say("progress", figures),
        say("disagreements", figures, sides=", ".join(sides)),
        as_table(list(showing.lines(figures.to_json(), final, planted=without is None)), digits=3),
        *([without] if without else []),
    ]
    lines += [showing.note(final)] if final else []
    warnings = [f"Krippendorff's α: {line}" for line in too_few(figures.alpha.queries)] if figures.alpha else []
    lines += [*warnings, *next_lines(review)]
    return Result(replace(figures, published=final, advice=advice), lines, [*notices, *warnings])


def reported(review: "Desk", notices: Sequence[str]) -> Result[Any]:
    """Return the figures of a sample so far, of the kind that it has."""
    of_kind = report_items if review.sample.of_items else report if review.sample.of_some else report_labels
    return of_kind(review, notices)


def answered_beside(review: "Desk") -> Iterator[str]:
    """Yield a line per other sample of the run with answers, since a report is of the newest sample by default."""
    run = review.sample.folder.parents[1]
    for other in desks(run):
        name = other.sample.design.name
        read = sum(grade is not None for row, _, grade in other.answered() if row["expected"] is None)
        if read and name != review.sample.design.name and not other.sample.of_pilot:
            where = f"--run {shlex.quote(str(run))} --sample {shlex.quote(name)}"
            yield f"sample {name} holds answers to {read:,} rows: `curate review report {where}`"


def next_lines(review: "Desk") -> list[str]:
    """Return the lines on the next step of a sample's run."""
    from curate.runs.status import next_lines as lines_of_run

    return lines_of_run(opened(None, review.sample.folder.parents[1], detect=False, tell=lambda _line: None), review)
