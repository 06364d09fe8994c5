"""Available language models: those in ./models.yaml, and those whose API keys are in the environment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from curate.core.config import check
from curate.core.model_family import family
from curate.llm.providers import key_variable
from curate.llm.providers.presets import OVERRIDES, LanguageModel, own_names, presets

PANEL = 3
"""Number of judges of a proposed panel: the minimum with which two can outvote one."""


@dataclass(frozen=True)
class FoundJudge:
    """A language model that is available, or lacks only its API key."""

    name: str
    key: str | None
    """Environment variable of the API key; None if the model needs none."""
    own: bool
    """Whether ./models.yaml defines or changes the model."""
    priced: bool
    """Whether its price is known, without which no budget can be kept."""
    family: str | None

    @property
    def reason(self) -> str:
        """Return the reason for proposing the model, as a clause."""
        key = f"{self.key} is set" if self.key else "no key needed"
        return f"{OVERRIDES}, {key}" if self.own else key


def askable(environment: Mapping[str, str]) -> list[FoundJudge]:
    """Return the available models: those of ./models.yaml first, then in packaged order.

    A packaged model without a key runs on the user's own server, so it counts only if ./models.yaml names it.
    """
    return [judge for judge in _known_judges() if (environment.get(judge.key) if judge.key else judge.own)]


def keyless(environment: Mapping[str, str]) -> list[FoundJudge]:
    """Return the models of ./models.yaml whose API keys are missing from the environment."""
    return [judge for judge in _known_judges() if judge.own and judge.key and not environment.get(judge.key)]


def panel(judges: Iterable[FoundJudge]) -> list[FoundJudge]:
    """Return up to `PANEL` models, first one per family, because models of one family share errors.

    Models of ./models.yaml come first, then packaged ones with a price, each in their order.
    """
    candidates = sorted(judges, key=lambda judge: (not judge.own, not judge.priced))
    firsts = list({judge.family or judge.name: judge for judge in reversed(candidates)}.values())
    ordered = [judge for judge in candidates if judge in firsts]
    return [*ordered, *(judge for judge in candidates if judge not in firsts)][:PANEL]


def variables() -> str:
    """Return the first few environment variables of API keys, for a message."""
    names = sorted({str(preset["key_env"]) for preset in presets().values() if "key_env" in preset})
    return ", ".join(names[:PANEL])


def _known_judges() -> list[FoundJudge]:
    table, user_names = presets(), own_names()
    judges = []
    for name in [*user_names, *(packaged for packaged in table if packaged not in user_names)]:
        model = check(LanguageModel, {key: setting for key, setting in table[name].items() if key != "preset"}, name)
        model_family = family(model.model, model.family)
        priced = model.price is not None
        judges.append(FoundJudge(name, key_variable(model), name in user_names, priced, model_family))
    return judges
