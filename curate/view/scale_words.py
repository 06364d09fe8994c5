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
    placeholders = {
        "grades": words["sizes"][len(scale.labels) - 2],
        "low": scale.relevant_from,
        "below": scale.labels[above],
    }
    texts = {f"{{{name}}}": text for name, text in placeholders.items()}
    filled: dict[str, Any] = {key: _filled(text_or_table, texts) for key, text_or_table in words.items()}
    filled["grades"] = {**{label: label for label in scale.labels}, **words["grades"]}
    filled["grades_note"] = words["grades_note"].format(
        relevant=_listed(scale.labels[:above], words),
        others=_listed(scale.labels[above:], words),
        counts=words["counts"][above > 1],
        does=words["does"][len(scale.labels) - above > 1],
    )
    if len({one - two for one, two in pairwise(scale.gains)}) > 1:
        gains = words["gains_note"].format(gains=words["comma"].join(map(str, scale.gains)))
        filled["agreement_note"] += f"{words['gap']}{gains}"
    return filled


def _filled(content: object, texts: Mapping[str, str]) -> object:
    """Return texts, also in mappings and lists, with placeholders filled in; other braces stay."""
    if isinstance(content, str):
        for name, text in texts.items():
            content = content.replace(name, text)
        return content
    if isinstance(content, Mapping):
        return {key: _filled(entry, texts) for key, entry in content.items()}
    return [_filled(entry, texts) for entry in content] if isinstance(content, list) else content


def _listed(labels: Sequence[str], words: Mapping[str, Any]) -> str:
    """Return labels in words: S and A, or B, C and D."""
    head = words["comma"].join(labels[:-1])
    return f"{head}{words['and']}{labels[-1]}" if head else labels[-1]
