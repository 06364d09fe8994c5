"""The stages of a run, in order: one file per verb, imported when it is needed."""

from importlib import import_module
from typing import Any

from curate.context import Stage
from curate.errors import ConfigError, suggestion

NAMES = ("ingest", "mask", "diversify", "pool", "judge", "consensus", "resolve", "export", "report")
"""What a pipeline runs, unless it lists its stages."""
KNOWN = (*NAMES[:-2], "sts", *NAMES[-2:], "audit", "train_set")
"""All stages, each behind those whose tables it reads."""


def stage(name: str) -> Stage[Any]:
    """Return the stage of that name; ConfigError names the nearest known one."""
    if name not in KNOWN:
        raise ConfigError(f"unknown stage {name!r}: {suggestion(name, KNOWN)}")
    found: Stage[Any] = import_module(f"curate.stages.{name}").STAGE
    return found
