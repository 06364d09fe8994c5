"""The threshold on the sum of grades that `consensus.accept` asks for, as far as its review proves one."""

from pathlib import Path

from curate.core.config import Json, check
from curate.core.errors import ConfigError, suggestion
from curate.pipeline.configs import AcceptConfig, ConsensusConfig
from curate.pipeline.stage import Context
from curate.review import Desk, Sample, acceptance_plan, accepted, drawing
from curate.review.accepted import HalfAnsweredError, ProvedThreshold


def wanted(context: Context) -> AcceptConfig | None:
    """Return what `consensus.accept` asks for; None if it is not set."""
    return check(ConsensusConfig, context.settings.get("consensus") or {}, "consensus").accept


def desk_of(context: Context, asked: AcceptConfig) -> Desk | None:
    """Return the sample that is to prove it; None before one is drawn, ConfigError if others were."""
    folder = context.run / "reviews"
    if (folder / asked.sample / "design.json").is_file():
        return Desk(Sample.load(folder / asked.sample))
    if drawn := _drawn(folder):
        raise ConfigError(f"consensus.accept.sample: no sample {asked.sample!r} in {folder}; {suggestion('', drawn)}")
    return None


def _drawn(folder: Path) -> list[str]:
    """Return the samples that were drawn for a threshold."""
    samples = [Sample.load(path.parent) for path in sorted(folder.glob("*/design.json"))]
    return [sample.design.name for sample in samples if sample.design.facts.get("of") == acceptance_plan.OF]


def proved(context: Context) -> ProvedThreshold | None:
    """Return what the review proves for the pool as it is now; None if nothing is asked for.

    ConfigError or DataError where nothing can be promised. Before the first answer there is no threshold, and none
    while the review is half answered: other samples may be whole, so that is a sentence and stops nothing.
    """
    asked = wanted(context)
    if asked is None:
        return None
    desk = desk_of(context, asked)
    facts: dict[str, Json] = {"sample": asked.sample, "wrong": asked.wrong, "confidence": asked.confidence}
    if desk is None or not any(answer for _, _, answer in desk.answered()):
        return ProvedThreshold(None, {**facts, "answered": 0, "threshold": None})
    frame = acceptance_plan.frame_of(context.folder("judge"), context.folder("consensus"))
    old = frozenset(drawing.outdated(desk.sample, context.folder("diversify")))
    try:
        return accepted.judged(desk, frame, asked.wrong, asked.confidence, context.scale, old)
    except HalfAnsweredError as lacking:
        answered = sum(bool(answer) for _, _, answer in desk.answered())
        return ProvedThreshold(None, {**facts, "answered": answered, "threshold": None, "unproved": str(lacking)})
