"""The guide for assessors, read for other places: what each answer means, and its text as HTML."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from curate.core.config import parse_yaml
from curate.core.errors import ConfigError, suggestion
from curate.core.languages import FALLBACK, base_language
from curate.core.scale import FIVE, Scale
from curate.system.resources import template

if TYPE_CHECKING:
    from markupsafe import Markup

_SIGNS = re.compile(r"[!-/:-@\[-`{-~]")


def html(text: str) -> "Markup":
    """Return the guide, which is CommonMark with a table, as HTML; tags in it stay text."""
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    return Markup(MarkdownIt("commonmark", {"html": False}).enable("table").render(text))  # noqa: S704 - escaped there


def of_items(text: str, question: Mapping[str, str], scale: Scale, meanings: Mapping[str, Mapping[str, str]]) -> str:
    """Return the guide for items of a kind: its question in every language, and its answers in a table."""
    asked = "\n".join(f"**{_plain(said)}**  " for said in question.values())
    return of_scale(text, scale, meanings, "answer").replace("{question}", asked)


def of_scale(text: str, scale: Scale, meanings: Mapping[str, Mapping[str, str]], head: str = "grade") -> str:
    """Return the guide for a scale: its grades in a table, with what they mean per language, and the relevant ones.

    Without a cut the paragraph on relevant grades is left out.
    """
    heads = [_head(language) for language in meanings]
    rows = [[head, *heads], ["---"] * (1 + len(heads))]
    rows += [
        [f"**{_plain(label)}**", *(_plain(meaning.get(label, "")) for meaning in meanings.values())]
        for label in scale.labels
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    paragraphs = [each for each in text.split("\n\n") if scale.positives or "{relevant}" not in each]
    relevant = " / ".join(f"**{_plain(label)}**" for label in scale.positives)
    return "\n\n".join(paragraphs).replace("{relevant}", relevant).replace("{grades}", table)


def _head(language: str) -> str:
    """Return the head of the column in which the guide's table says what an answer means; the tag without one."""
    heads: Mapping[str, str] = parse_yaml(template("review/guide_heads.yaml"))
    return heads.get(language, language)


def _plain(text: str) -> str:
    """Return a text in one line of which Markdown makes nothing."""
    return _SIGNS.sub(r"\\\g<0>", " ".join(text.split()))


def meanings(text: str, language: str) -> Mapping[str, str]:
    """Return answer -> what it means, in a language, as the guide's table says; empty if there is none."""
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    head = next((head for head in (_head(language), _head(FALLBACK)) if rows and head in rows[0]), None)
    if head is None:
        return {}
    column = rows[0].index(head)
    return {row[0].strip("*"): row[column] for row in rows[2:]}


# Forms: what a person is asked about each row of a sample, in the words of a language.

_LISTED = 10
"""Answers that the header of a sheet lists behind a question, at most: a page of the workbook lists all."""
FIXED = ("row_id", "answer", "note", "assessor")
"""Columns that every form has besides its texts."""


@dataclass(frozen=True)
class Form:
    """One kind of question, in one language."""

    name: str
    language: str
    title: str
    answers: tuple[str, ...]
    """What may be answered, in the order of the scale."""
    texts: tuple[str, ...]
    """Names of the texts of a row, in the order in which they are read."""
    headers: Mapping[str, str]
    """Column -> its header; columns are `FIXED` and `texts`."""
    said: str
    """Header of what others said."""
    known: Mapping[str, str]
    """Header in any language, or the name of a column -> column."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other words for an answer."""
    guide: str = "GUIDE.md"
    """The file of the guide for those who answer."""
    private: bool = False
    """Whether a cell that was filled in may hold personal data, so that no complaint repeats one."""
    meaning: str = ""
    """Header of what the answers mean."""
    question: str = ""
    """What is asked of every row; empty where the texts say it, as query and passage do."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """Answer -> what it means, which a sheet shows; empty where the guide alone explains the answers."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns in the order in which a sheet has them."""
        return ("row_id", *self.texts, "answer", "note", "assessor")

    @property
    def header(self) -> list[str]:
        """Return the first row of a sheet; where a sheet explains the answers they stand behind the name of theirs."""
        answer = self.question or self.headers["answer"]
        if len(self.answers) <= _LISTED or not self.question:
            answer = f"{answer} ({' / '.join(self.answers)})"
        return [answer if column == "answer" and self.meanings else self.headers[column] for column in self.columns]


@cache
def form(name: str, language: str, scale: Scale = FIVE) -> Form:
    """Return a form in a language, in English where it has no words for it; ConfigError for an unknown name.

    Where the form names no answers they are the grades of `scale`.
    """
    forms = parse_yaml(template("review/forms.yaml"))
    assert isinstance(forms, dict)
    if name not in forms:
        raise ConfigError(f"unknown form {name!r}: {suggestion(name, forms)}")
    found = forms[name]
    languages = [key for key, value in found.items() if isinstance(value, dict) and "title" in value]
    tag = base_language(language)
    chosen = tag if tag in languages else FALLBACK
    columns = (*FIXED, *found["texts"])
    return Form(
        name=name,
        language=chosen,
        title=found[chosen]["title"],
        answers=tuple(found.get("answers") or scale.labels),
        texts=tuple(found["texts"]),
        said=found[chosen]["said"],
        headers={column: found[chosen][column] for column in columns},
        known={
            **{column: column for column in columns},
            **{found[language][column]: column for language in languages for column in columns},
        },
        aliases=found.get("aliases") or {},
        guide=found["guide"],
        private=found.get("private", False),
        meaning=found[chosen].get("meaning", ""),
    )


def explained(asked: Form, meanings: Mapping[str, str]) -> Form:
    """Return a form whose sheets name the answers in their header, and say what each of them means."""
    shown = replace(asked, meanings=meanings)
    return replace(shown, known={**asked.known, shown.header[shown.columns.index("answer")]: "answer"})
