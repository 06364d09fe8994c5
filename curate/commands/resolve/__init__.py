"""The stage `resolve`: final labels of panel and experts."""

from typing import Literal

from curate.core.config import Section


class Config(Section):
    """Whose labels count."""

    policy: Literal["panel", "expert-over-panel"] = "panel"
    samples: tuple[str, ...] = ()
    """Names of the reviewed samples that count; all relevance samples of the run if none is named."""
