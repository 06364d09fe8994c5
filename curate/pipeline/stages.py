"""Names of all stages in the order of a run; their modules are imported on demand."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from curate.core.errors import ConfigError, suggestion

if TYPE_CHECKING:  # `curate show` needs the names alone
    from curate.core.config import Section
    from curate.pipeline.stage import Stage

NAMES = ("ingest", "mask", "diversify", "pool", "judge", "consensus", "resolve", "export", "report")
"""Stages of a pipeline that does not list its own."""
_CONFIGS = {
    "pool": ("pipeline.configs", "PoolConfig"),
    "judge": ("pipeline.configs", "JudgeConfig"),
    "consensus": ("pipeline.configs", "ConsensusConfig"),
    "train_set": ("commands.train_set.settings", "Config"),
}
"""Stage -> module and name of the class of its settings, if that is not `Config` in the module of its command."""
_KINDS = ("sts", "label", "paraphrase", "gradient")
KNOWN = (*NAMES[:3], "queries", *NAMES[3:-2], *_KINDS, *NAMES[-2:], "audit", "train_set")
"""All stages, each after those whose tables it reads."""


BUILDING = ("queries", *_KINDS)
"""Stages whose items models write or label. The module `stage` of each has a function `planned`, which returns the
requests that would be sent, for `--plan`."""


def config(name: str) -> "type[Section]":
    """Return the class of a stage's settings, without importing the stage's code."""
    home, attribute = _CONFIGS.get(name, (f"commands.{name}", "Config"))
    section: type[Section] = getattr(import_module(f"curate.{home}"), attribute)
    return section


def stage(name: str) -> "Stage[Any]":
    """Return the stage `name`; ConfigError, with the most similar known name, if there is none."""
    if name not in KNOWN:
        raise ConfigError(f"unknown stage {name!r}: {suggestion(name, KNOWN)}")
    loaded: Stage[Any] = module(name).STAGE
    return loaded


def module(name: str) -> Any:  # noqa: ANN401 - a module, which has STAGE and perhaps `planned`
    """Return the module `stage` of a stage's command, which has `STAGE` and, for some stages, `planned`."""
    return import_module(f"curate.commands.{name}.stage")
