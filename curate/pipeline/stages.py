"""Names of all stages in the order of a run; their modules are imported on demand."""

from dataclasses import dataclass
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


@dataclass(frozen=True)
class KindCommand:
    """Command of a stage that builds the items of a task type and asks a panel; its settings have `panel`."""

    help: str
    generator: str = ""
    """Help of the option `--generator`; empty if the settings have no `generator`."""


WRITER = "Language model that writes the sentences, or `templates`."
KIND_COMMANDS = {
    "queries": KindCommand(
        "Have a model write queries for a corpus, and models of another family filter them.",
        "Language model that writes the queries.",
    ),
    "label": KindCommand("Have a panel pick the label of each text: classification and clustering tasks."),
    "paraphrase": KindCommand("Write paraphrases, have a panel confirm them, and set neighbours against them.", WRITER),
    "gradient": KindCommand(
        "Make series of texts with falling agreement to a query: mixes, edits, and the panel's grades.",
        "Who writes counterparts of the same meaning: `templates`, or `paraphrase`, the stage of that name.",
    ),
    "sts": KindCommand("Write an STS set: sentence pairs around synonyms, of the same meaning or of another.", WRITER),
}
"""Stage -> its command, for stages in `KNOWN`. `queries` builds no task type but has the same options. The module
`stage` of each has a function `planned`, which returns the requests that would be sent, for `--plan`."""


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
