"""Forms of questions, and the guide for assessors: its HTML and the meanings of the answers in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from curate.core.config import parse_yaml
from curate.core.errors import ConfigError, suggestion
from curate.core.languages import FALLBACK, served_by
from curate.core.scale import FIVE, Scale
from curate.system.resources import template, translations

if TYPE_CHECKING:
    from markupsafe import Markup

_SIGNS = re.compile(r"[!-/:-@\[-`{-~]")


def html(text: str) -> "Markup":
    """Render the guide (CommonMark with a table) as HTML; tags in it are escaped."""
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    return Markup(MarkdownIt("commonmark", {"html": False}).enable("table").render(text))  # noqa: S704 - escaped there


def of_items(text: str, question: Mapping[str, str], scale: Scale, meanings: Mapping[str, Mapping[str, str]]) -> str:
    """Return the guide for items of a kind: its question in every language, and its answers in a table."""
    questions = "\n".join(f"**{_escaped(wording)}**  " for wording in question.values())
    return of_scale(text, scale, meanings, "answer").replace("{question}", questions)


def of_scale(text: str, scale: Scale, meanings: Mapping[str, Mapping[str, str]], head: str = "grade") -> str:
    """Return the guide for a scale: its grades in a table, with what they mean per language, and the relevant ones.

    Without a relevance threshold the paragraph on relevant grades is left out.
    """
    heads = [_head(language) for language in meanings]
    rows = [[head, *heads], ["---"] * (1 + len(heads))]
    rows += [
        [f"**{_escaped(label)}**", *(_escaped(meaning.get(label, "")) for meaning in meanings.values())]
        for label in scale.labels
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    paragraphs = [paragraph for paragraph in text.split("\n\n") if scale.positives or "{relevant}" not in paragraph]
    relevant = " / ".join(f"**{_escaped(label)}**" for label in scale.positives)
    return "\n\n".join(paragraphs).replace("{relevant}", relevant).replace("{grades}", table)


def _head(language: str) -> str:
    """Return the header of the guide's column with the meanings of answers in a language; its tag without one."""
    return str(translations("review/guide_heads.yaml").get(language, language))


def _escaped(text: str) -> str:
    return _SIGNS.sub(r"\\\g<0>", " ".join(text.split()))


def meanings(text: str, language: str) -> Mapping[str, str]:
    """Return answer -> meaning in a language, from the guide's table; empty if there is none."""
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
"""Maximum number of answers listed in a sheet's header; the workbook has a page with all of them."""
FIXED = ("row_id", "answer", "note", "assessor")
"""Columns of every form besides its texts."""


@dataclass(frozen=True)
class Form:
    """One kind of question, in one language."""

    name: str
    language: str
    title: str
    answers: tuple[str, ...]
    """Permitted answers, in scale order."""
    texts: tuple[str, ...]
    """Names of the texts of a row, in the order in which they are read."""
    headers: Mapping[str, str]
    """Column -> its header; columns are `FIXED` and `texts`."""
    said: str
    """Header of the column with others' answers."""
    known: Mapping[str, str]
    """Header in any language, or column name -> column."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other word -> answer."""
    guide: str = "GUIDE.md"
    """The file of the guide for those who answer."""
    private: bool = False
    """Whether filled-in cells may contain personal data, so that no message quotes one."""
    meaning: str = ""
    """Header of the meanings of the answers."""
    question: str = ""
    """Question about every row; empty if the texts make it clear, as query and passage do."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """Answer -> meaning shown in the sheet; empty if only the guide explains the answers."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns in the order in which a sheet has them."""
        return ("row_id", *self.texts, "answer", "note", "assessor")

    @property
    def header(self) -> list[str]:
        """Return the first row of a sheet; if it explains the answers, their header is the question or lists them."""
        answer = self.question or self.headers["answer"]
        if len(self.answers) <= _LISTED or not self.question:
            answer = f"{answer} ({' / '.join(self.answers)})"
        return [answer if column == "answer" and self.meanings else self.headers[column] for column in self.columns]


@cache
def form(name: str, language: str, scale: Scale = FIVE) -> Form:
    """Return a form in a language, in English if it is not translated into that; ConfigError for an unknown name.

    A form without answers of its own has the grades of `scale`.
    """
    forms = parse_yaml(template("review/forms.yaml"))
    assert isinstance(forms, dict)
    if name not in forms:
        raise ConfigError(f"unknown form {name!r}: {suggestion(name, forms)}")
    definition = forms[name]
    languages = [key for key, section in definition.items() if isinstance(section, dict) and "title" in section]
    chosen = served_by(language, languages)
    columns = (*FIXED, *definition["texts"])
    return Form(
        name=name,
        language=chosen,
        title=definition[chosen]["title"],
        answers=tuple(definition.get("answers") or scale.labels),
        texts=tuple(definition["texts"]),
        said=definition[chosen]["said"],
        headers={column: definition[chosen][column] for column in columns},
        known={
            **{column: column for column in columns},
            **{definition[language][column]: column for language in languages for column in columns},
        },
        aliases=definition.get("aliases") or {},
        guide=definition["guide"],
        private=definition.get("private", False),
        meaning=definition[chosen].get("meaning", ""),
    )


def explained(base: Form, meanings: Mapping[str, str]) -> Form:
    """Return a form whose sheets list the answers in their header, with the meaning of each."""
    with_meanings = replace(base, meanings=meanings)
    return replace(
        with_meanings, known={**base.known, with_meanings.header[with_meanings.columns.index("answer")]: "answer"}
    )
