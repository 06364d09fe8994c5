"""`curate review` of samples that are not of all judged pairs (accept, contested), and what follows an import."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from curate.core.errors import ConfigError
from curate.runs.running import open_run
from curate.view.answers import answer
from curate.view.text import as_table

if TYPE_CHECKING:
    from pathlib import Path

    from curate.review import Desk, Sample
    from curate.review.acceptance_plan import AcceptancePlan
    from curate.review.drawing import SampleOptions
    from curate.runs.runner import Run


def of(named: str, for_scores: "Path | None") -> str:
    """Return what a sample is of, by --of and --for-scores."""
    if for_scores is not None and named != "labels":
        raise ConfigError(f"--for-scores: found --of {named} beside it, expected one of them; leave out --of")
    return named if for_scores is None else "scores"


def chosen(of: str, target: str | None, margins: Sequence[str] | None, *, contested: bool) -> str | None:
    """Return what is drawn if not a sample of all pairs; ConfigError for options that do not go with it."""
    from curate.commands.review.contested import OF as CONTESTED
    from curate.review.acceptance_plan import OF as ACCEPT

    if not contested and target != ACCEPT:
        return None
    option = "--contested" if contested else f"--target {ACCEPT}"
    odd = {"--target": contested and target is not None, "--margin": bool(margins), "--of": of != "labels"}
    if wrong := next((name for name, there in odd.items() if there), None):
        raise ConfigError(f"{wrong}: found together with {option}, which has a design of its own; leave it out")
    return CONTESTED if contested else ACCEPT


def size(work: "Run", size: int | None) -> int:
    """Return the number of contested pairs that are wanted, without one those of the top tens."""
    from curate.commands.review import contested

    work.need_ancestors("resolve")
    return contested.in_top_tens(work.folder) if size is None else size


def draw(work: "Run", order: "SampleOptions", of: str, *, plan: bool, as_json: bool) -> "Sample | None":
    """Draw such a sample, or print its plan and return None."""
    from curate.commands.review import contested
    from curate.review import acceptance_plan

    if of == contested.OF:
        if not plan:
            return contested.draw(work.folder, order)
        found = contested.plan(work.folder, order.size or 0)
        strata = [{"stratum": each.name, "size": each.size, "drawn": each.drawn} for each in found]
        answer({"strata": strata}, [as_table(strata)], as_json=as_json)
        return None
    wrong, confidence = _promise(work)
    if not plan:
        return acceptance_plan.draw(work.folder, order, wrong, confidence)
    planned = acceptance_plan.plan(work.folder, order.size or 0, wrong, confidence, order.seed)
    answer(asdict(planned), _planned(planned, order.size or 0), as_json=as_json)
    return None


def _promise(work: "Run") -> tuple[float, float]:
    """Return the wrong share and the confidence that the run's settings ask for."""
    asked: Any = getattr(work.pipeline.sections["consensus"], "accept", None)
    if asked is None:
        raise ConfigError(
            "--target accept: found no consensus.accept in the run's settings, expected what is to be promised; set "
            f"it before the sample is drawn: `curate consensus --run {shlex.quote(str(work.folder))} --set "
            "consensus.accept.wrong=0.4`"
        )
    return asked.wrong, asked.confidence


def _planned(found: "AcceptancePlan", size: int) -> Iterator[str]:
    """Yield the strata, the share of reviews that find a threshold, both error rates, and the size that is needed."""
    rows = [asdict(each) for each in found.strata]
    drawn, pairs = (sum(getattr(each, field) for each in found.strata) for field in ("drawn", "size"))
    yield f"{drawn:,} of {pairs:,} pairs; wrong share of {found.wrong:g} at most, confidence {found.confidence:g}"
    yield as_table(rows, digits=4)
    odds = found.odds
    of_those = "-" if odds.broken_announced is None else f"{odds.broken_announced:.1%}"
    yield f"find a threshold: {odds.found:.0%} of such reviews, if the anticipated shares are right"
    yield f"announce one that does not hold: {odds.broken:.1%} of all reviews, {of_those} of those that announce one"
    if found.needed != size:
        least = f"--size {found.needed:,}".replace(",", "") if found.needed else "no size; raise consensus.accept.wrong"
        yield f"a threshold is announced only where half of the reviews find one; that needs {least}"


def report(desk: "Desk", *, as_json: bool) -> None:
    """Print how far such a sample was read, and what people said by stratum; it tells nothing of other pairs."""
    from curate.review.agreement import checked

    rows = checked(desk)
    read = [row for row in rows if row.settled]
    strata = [
        {
            "stratum": each.name,
            "pairs": each.size,
            "drawn": each.drawn,
            "read": sum(row.stratum == each.name for row in read),
            "relevant": sum(row.stratum == each.name and bool(row.relevant) for row in read),
        }
        for each in desk.sample.design.strata
    ]
    of = str(desk.sample.design.facts["of"])
    lines = [f"{len(read):,} of {len(rows):,} rows read", as_table(strata), *_AFTER.get(of, ())]
    found: dict[str, Any] = {"sample": desk.sample.design.name, "of": of, "rows": len(rows), "read": len(read)}
    answer({**found, "strata": strata}, lines, as_json=as_json)


_AFTER = {
    "accept": ("`curate resolve` says which threshold it proves, if it does",),
    "contested": (
        "`curate resolve --set resolve.policy=expert-over-panel` gives these pairs people's labels",
        "the sample is not random, so nothing follows for other pairs",
    ),
    "scores": ("`curate evaluate` corrects the scores of the models by it",),
}


def report_items(desk: "Desk", *, as_json: bool) -> None:
    """Print the precision of a kind's published labels as far as the sample was read."""
    from curate.review import item_proof, items

    folder = desk.sample.folder.parents[1]
    kind = items.chosen(str(desk.sample.design.facts["of"]))
    found: dict[str, Any] = item_proof.prove(desk, items.of_run(folder, kind))
    answer(found, [*item_proof.heading(found), as_table(list(item_proof.lines(found)), digits=3)], as_json=as_json)


def next_steps(sample: "Sample") -> Iterator[str]:
    """Yield the commands that use answers about documents, with how many labels each would change."""
    if sample.of_items or sample.of_pilot or sample.design.form != "relevance":
        return
    run = sample.folder.parents[1]
    folder, work = shlex.quote(str(run)), open_run(None, run, detect=False)
    if "resolve" not in work.pipeline.head.stages:
        yield f"next: curate audit --run {folder}: the audit with these answers"
        return
    from curate.pipeline import stages

    again = f"curate run {folder}/pipeline.yaml --run {folder}"
    yield f"next: {again}: the labels stay the panel's, page and card say how right they are"
    count = stages.module("resolve").overridden(work.beside("resolve"))
    yield f"  or: {again} --set resolve.policy=expert-over-panel: {count:,} labels become what people say"
