"""Sections of the report page that kinds of benchmark bring with them, in words of their own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from curate.commands.report.shown import Shown, ShownKind
from curate.core.config import parse_yaml
from curate.system import resources

_BEHIND = "lengths"
"""The section of the page behind which those of kinds stand."""


@dataclass(frozen=True)
class KindSection:
    """The section of a kind in one language, as the page's template takes it."""

    kind: ShownKind
    words: Mapping[str, Any]
    """Of the page; `kind` are those of the section."""
    first: bool
    """Whether it is the first section of its stage, which says what became of the stage's items."""


def sections(shown: Shown, words: Mapping[str, Any], language: str) -> list[KindSection]:
    """Return the sections of the kinds that a run has made, in the order of the kinds."""
    stages = [each.stage for each in shown.kinds]
    return [
        KindSection(each, {**words, "kind": _words(each, language)}, each.stage not in stages[:place])
        for place, each in enumerate(shown.kinds)
    ]


def with_kinds(words: Mapping[str, Any], shown: Shown, language: str) -> dict[str, Any]:
    """Return the words of the page with those of the kinds: sections, and their stages, tables and reasons.

    A stage that no words name is called as users type it.
    """
    own = {each.name: _words(each, language) for each in shown.kinds}
    stages = {each.stage: own[each.name] for each in reversed(shown.kinds)}
    named = {name: {"stage": name, "unit": "", **stages.get(name, {})} for name in shown.steps}
    titles = {name: each["section"] for name, each in own.items()}
    found = {**words, "sections": _behind(words["sections"], titles)}
    for what, one in (("stages", "stage"), ("units", "unit")):
        found[what] = {**{name: each[one] for name, each in named.items()}, **words[what]}
    for what in ("tables", "reasons"):
        found[what] = {
            **words[what],
            **{key: said for each in own.values() for key, said in each.get(what, {}).items()},
        }
    return found


def _behind(titles: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    place = list(titles).index(_BEHIND) + 1
    rows = list(titles.items())
    return dict([*rows[:place], *more.items(), *rows[place:]])


def _words(kind: ShownKind, language: str) -> Mapping[str, Any]:
    """Return the words of a kind's section; English, or the first of its languages, where it has none of this one."""
    known: dict[str, dict[str, Any]] = parse_yaml(resources.template(kind.words))
    return known.get(language.partition("-")[0]) or known.get("en") or next(iter(known.values()))
