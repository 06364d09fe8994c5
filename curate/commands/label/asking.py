"""What the panel is asked of a text: which of all classes it is of, none or several; it never sees the given label."""

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
    """Return the judges; ConfigError for a name that is no language model, or that stands there twice."""
    found = [AskedModel.named(context, name, "label.panel", PURPOSE) for name in names]
    refuse_one_family("label.panel", found, None)
    return found


def template(context: Context) -> Question:
    """Return the packaged question, whose labels are the two answers beside the classes."""
    path = resources.prompt("label", context.language)
    return question(read_yaml(path), str(path))


def of_classes(asked: Question, classes: Sequence[str], meanings: Mapping[str, str]) -> Question:
    """Return the question with the classes, in the order of their names, before the answers that it has already.

    ConfigError for classes that cannot be told apart in an answer, and for definitions of classes that are not there.
    """
    if unknown := sorted(set(meanings) - set(classes)):
        raise ConfigError(
            f"label.classes: found {unknown[0]!r}, which no text that is left has; the classes are {', '.join(classes)}"
        )
    taken = {plain(name): name for name in (*asked.labels, *NONE)}
    for name in classes:
        if (other := taken.setdefault(plain(name), name)) != name or name in (*asked.labels, *NONE):
            raise ConfigError(
                f"label: the class {name!r} reads like the answer {other!r}; give it another name in the labels"
            )
    labels = {name: meanings.get(name, "").strip() or name for name in classes}
    return question({**asked.model_dump(mode="json"), "labels": {**labels, **asked.labels}}, asked.name)
