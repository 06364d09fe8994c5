"""The threshold on the sum of grades for `consensus.accept`, if its review proves one."""

from pathlib import Path

from curate.core.config import Json, check
from curate.core.errors import ConfigError, suggestion
from curate.pipeline.configs import AcceptConfig, ConsensusConfig
from curate.pipeline.stage import Context
from curate.review import Desk, Sample, acceptance_plan, accepted, drawing
from curate.review.accepted import HalfAnsweredError, ProvedThreshold


def wanted(context: Context) -> AcceptConfig | None:
    """Return the setting `consensus.accept`; None if it is not set."""
    return check(ConsensusConfig, context.settings.get("consensus") or {}, "consensus").accept


def desk_of(context: Context, config: AcceptConfig) -> Desk | None:
    """Return the sample of the threshold; None before one is drawn, ConfigError if only others were."""
    folder = context.run / "reviews"
    if (folder / config.sample / "design.json").is_file():
        return Desk(Sample.load(folder / config.sample))
    if drawn := _drawn(folder):
        raise ConfigError(f"consensus.accept.sample: no sample {config.sample!r} in {folder}; {suggestion('', drawn)}")
    return None


def _drawn(folder: Path) -> list[str]:
    """Return the samples that were drawn for a threshold."""
    samples = [Sample.load(path.parent) for path in sorted(folder.glob("*/design.json"))]
    return [sample.design.name for sample in samples if sample.design.facts.get("of") == acceptance_plan.OF]


def proved(context: Context) -> ProvedThreshold | None:
    """Return the threshold that the review proves for the current pool; None if `consensus.accept` is not set.

    ConfigError or DataError if no guarantee is possible. Before the first answer, and while the review is incomplete,
    there is no threshold; an incomplete review is only reported, since other samples may be complete.
    """
    config = wanted(context)
    if config is None:
        return None
    review = desk_of(context, config)
    facts: dict[str, Json] = {"sample": config.sample, "wrong": config.wrong, "confidence": config.confidence}
    if review is None or not any(answer for _, _, answer in review.answered()):
        return ProvedThreshold(None, {**facts, "answered": 0, "threshold": None})
    frame = acceptance_plan.frame_of(context.folder("judge"), context.folder("consensus"))
    old = frozenset(drawing.outdated(review.sample, context.folder("diversify")))
    try:
        return accepted.judged(review, frame, config.wrong, config.confidence, context.scale, old)
    except HalfAnsweredError as lacking:
        answered = sum(bool(answer) for _, _, answer in review.answered())
        return ProvedThreshold(None, {**facts, "answered": answered, "threshold": None, "unproved": str(lacking)})
