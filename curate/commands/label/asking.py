"""Question for the panel: the class of a text, none or several; the given label is not shown."""

from collections.abc import Mapping, Sequence

from curate.ask.llm_questions import AskedModel
from curate.ask.panel import refuse_one_family
from curate.core.config import read_yaml
from curate.core.errors import ConfigError
from curate.core.scale import plain
from curate.llm.questions import Question, question
from curate.llm.recorded_votes import NONE
from curate.pipeline.stage import Context
from curate.system import resources

PURPOSE = "label"


def panel(names: Sequence[str], context: Context) -> list[AskedModel]:
    """Return the judges; ConfigError for a name that is no language model, or is repeated."""
    judges = [AskedModel.named(context, name, "label.panel", PURPOSE) for name in names]
    refuse_one_family("label.panel", judges, None)
    return judges


def template(context: Context) -> Question:
    """Return the packaged question; its labels are the two answers other than classes."""
    path = resources.prompt("label", context.language)
    return question(read_yaml(path), str(path))


def of_classes(base: Question, classes: Sequence[str], meanings: Mapping[str, str]) -> Question:
    """Return the question with the classes as labels, before the labels that it already has.

    ConfigError for classes that cannot be distinguished in an answer, and for definitions of unknown classes.
    """
    if unknown := sorted(set(meanings) - set(classes)):
        raise ConfigError(
            f"label.classes: found {unknown[0]!r}, which no text that is left has; the classes are {', '.join(classes)}"
        )
    name_by_form = {plain(name): name for name in (*base.labels, *NONE)}
    for name in classes:
        if (same_form := name_by_form.setdefault(plain(name), name)) != name or name in (*base.labels, *NONE):
            raise ConfigError(
                f"label: the class {name!r} reads like the answer {same_form!r}; give it another name in the labels"
            )
    labels = {name: meanings.get(name, "").strip() or name for name in classes}
    return question({**base.model_dump(mode="json"), "labels": {**labels, **base.labels}}, base.name)
