"""The stages of a run, in order: one file per verb, imported when it is needed."""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from curate.core.errors import ConfigError, suggestion

if TYPE_CHECKING:  # `curate show` needs the names alone
    from curate.core.config import Section
    from curate.pipeline.stage import Stage

NAMES = ("ingest", "mask", "diversify", "pool", "judge", "consensus", "resolve", "export", "report")
"""What a pipeline runs, unless it lists its stages."""
_CONFIGS = {
    "pool": ("pipeline.configs", "PoolConfig"),
    "judge": ("pipeline.configs", "JudgeConfig"),
    "consensus": ("pipeline.configs", "ConsensusConfig"),
    "train_set": ("commands.train_set.settings", "Config"),
}
"""Stage -> where its settings are, if services read them too, or its command is imported without them; those of the
others are its command's own."""
_KINDS = ("sts", "label", "paraphrase", "gradient")
KNOWN = (*NAMES[:3], "queries", *NAMES[3:-2], *_KINDS, *NAMES[-2:], "audit", "train_set")
"""All stages, each behind those whose tables it reads."""


@dataclass(frozen=True)
class KindCommand:
    """The command of a stage that makes a kind of benchmark and asks a panel: its section has `panel`."""

    help: str
    generator: str = ""
    """Help of `--generator`, for a section that has `generator`; empty for one without."""


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
"""Stage -> its command; `queries` makes no kind and takes the same options. A stage has the command once `KNOWN`
names it; its module `stage` has `planned` for `--plan`, which returns what would be sent."""


def config(name: str) -> "type[Section]":
    """Return the settings of a stage; its work is not imported."""
    home, attribute = _CONFIGS.get(name, (f"commands.{name}", "Config"))
    section: type[Section] = getattr(import_module(f"curate.{home}"), attribute)
    return section


def stage(name: str) -> "Stage[Any]":
    """Return the stage of that name; ConfigError names the nearest known one."""
    if name not in KNOWN:
        raise ConfigError(f"unknown stage {name!r}: {suggestion(name, KNOWN)}")
    loaded: Stage[Any] = module(name).STAGE
    return loaded


def module(name: str) -> Any:  # noqa: ANN401 - a module, which has STAGE and perhaps `planned`
    """Return the module with the work of a stage."""
    return import_module(f"curate.commands.{name}.stage")
