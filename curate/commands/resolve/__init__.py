"""The stage `resolve`: final labels of panel and experts."""

from typing import Literal

from curate.core.config import Section
from curate.runs.running import AskingStage


class Config(Section):
    """Whose labels count."""

    policy: Literal["panel", "expert-over-panel"] = "panel"
    samples: tuple[str, ...] = ()
    """Names of the reviewed samples that count; all relevance samples of the run if none is named."""


class ResolveCommand(AskingStage):
    """Finalise labels.

    Those of the panel, of experts where they checked a pair, or of what consensus adds.
    """

    words = "resolve"
    examples = (
        "resolve",
        "resolve --plan",
    )
    answers = "The plan (--plan), a row for a judge that settles contested pairs; empty if nothing is left to send."
    stage = "resolve"
