"""Language models that can be asked from here: those of ./models.yaml, and those whose keys are in the environment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from curate.core.config import check
from curate.core.model_family import family
from curate.llm.providers import key_variable
from curate.llm.providers.presets import OVERRIDES, LanguageModel, own_names, presets

PANEL = 3
"""Judges of a panel: the least of which two can outvote one."""


@dataclass(frozen=True)
class FoundJudge:
    """A language model that is proposed, or would be if its key were there."""

    name: str
    key: str | None
    """The variable of its key; None where none is sent."""
    own: bool
    """Whether ./models.yaml defines or changes it."""
    family: str | None

    @property
    def reason(self) -> str:
        """Return why it is proposed, as a clause."""
        key = f"{self.key} is set" if self.key else "no key needed"
        return f"{OVERRIDES}, {key}" if self.own else key


def askable(environment: Mapping[str, str]) -> list[FoundJudge]:
    """Return the models that can be asked, those of ./models.yaml first, else in the order of the table.

    A packaged model that needs no key runs on a server of the user's own, of which only ./models.yaml tells.
    """
    return [each for each in _all() if (environment.get(each.key) if each.key else each.own)]


def keyless(environment: Mapping[str, str]) -> list[FoundJudge]:
    """Return the models of ./models.yaml whose keys are not in the environment."""
    return [each for each in _all() if each.own and each.key and not environment.get(each.key)]


def panel(there: Iterable[FoundJudge]) -> list[FoundJudge]:
    """Return up to `PANEL` models, in their order, one of each family first: models of one family err alike."""
    known = list(there)
    firsts = list({each.family or each.name: each for each in reversed(known)}.values())
    ordered = [each for each in known if each in firsts]
    return [*ordered, *(each for each in known if each not in firsts)][:PANEL]


def variables() -> str:
    """Return the first of the variables that keys are read from, for a sentence."""
    names = sorted({str(preset["key_env"]) for preset in presets().values() if "key_env" in preset})
    return ", ".join(names[:PANEL])


def _all() -> list[FoundJudge]:
    table, own = presets(), own_names()
    found = []
    for name in [*own, *(each for each in table if each not in own)]:
        model = check(LanguageModel, {key: value for key, value in table[name].items() if key != "preset"}, name)
        kin = family(model.model, model.family)
        found.append(FoundJudge(name, key_variable(model), name in own, kin))
    return found
