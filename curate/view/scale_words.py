"""The words of the report page that depend on the grades: their number and names, the cut, the gains."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from curate.core.scale import Scale


def fitted(words: Mapping[str, Any], scale: Scale) -> dict[str, Any]:
    """Return the words of a language for an ordinal scale: texts with {grades}, {low} and {below} filled in.

    A label is its own name among `grades`; `grades_note` says which are relevant, and `agreement_note` names the gains
    where they are not equally far apart.
    """
    above = len(scale.positives)
    named = {"grades": words["sizes"][len(scale.labels) - 2], "low": scale.relevant_from, "below": scale.labels[above]}
    texts = {f"{{{name}}}": text for name, text in named.items()}
    found: dict[str, Any] = {key: _filled(value, texts) for key, value in words.items()}
    found["grades"] = {**{label: label for label in scale.labels}, **words["grades"]}
    found["grades_note"] = words["grades_note"].format(
        relevant=_listed(scale.labels[:above], words),
        others=_listed(scale.labels[above:], words),
        counts=words["counts"][above > 1],
        does=words["does"][len(scale.labels) - above > 1],
    )
    if len({one - other for one, other in pairwise(scale.gains)}) > 1:
        gains = words["gains_note"].format(gains=words["comma"].join(map(str, scale.gains)))
        found["agreement_note"] += f"{words['gap']}{gains}"
    return found


def _filled(value: object, named: Mapping[str, str]) -> object:
    """Return texts, also those in mappings and lists, with names replaced; other braces stay."""
    if isinstance(value, str):
        for name, text in named.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, Mapping):
        return {key: _filled(each, named) for key, each in value.items()}
    return [_filled(each, named) for each in value] if isinstance(value, list) else value


def _listed(labels: Sequence[str], words: Mapping[str, Any]) -> str:
    """Return labels as a sentence has them: S and A, or B, C and D."""
    head = words["comma"].join(labels[:-1])
    return f"{head}{words['and']}{labels[-1]}" if head else labels[-1]
