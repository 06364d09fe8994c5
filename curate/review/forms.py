"""Forms (questions to assessors with their permitted answers), and the guide that explains them in Markdown or HTML."""

import re
from collections.abc import Mapping, Sequence
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

_HAN, _LATIN, _ITEM = re.compile(r"[一-鿿]"), re.compile(r"[A-Za-z]"), re.compile(r"\d+\. ")
_SIGNS = re.compile(r"[!-/:-@\[-`{-~]")


def html(text: str) -> "Markup":
    """Return a guide as HTML, from CommonMark with tables; HTML tags in the text are escaped."""
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    return Markup(MarkdownIt("commonmark", {"html": False}).enable("table").render(text))  # noqa: S704 - escaped there


def in_language(text: str, language: str) -> str:
    """Return a guide whose lines are each in one language, with the lines of a language alone; whole if it has none.

    Of tables the columns of meanings in other languages are left out. Lines in Chinese and in English are told apart by
    their characters; a heading, a fence and a line without letters stay.
    """
    lines = text.splitlines()
    is_zh = [len(_HAN.findall(line)) > len(_LATIN.findall(line)) / 4 for line in lines]
    spoken = [bool(_HAN.search(line) or _LATIN.search(line)) and not line.startswith(("#", "|")) for line in lines]
    if not {zh for zh, has_words in zip(is_zh, spoken, strict=True) if has_words} >= {True, False}:
        return text
    wanted_zh, rows = language.startswith("zh"), list[str]()
    number = ""
    for line, zh, has_words in zip(lines, is_zh, spoken, strict=True):
        item = _ITEM.match(line)
        number = item[0] if item else number if line.startswith(" ") else ""
        if line.startswith("|"):
            rows.append(_own_columns(line, lines, language))
        elif not has_words or zh == wanted_zh:
            is_first = number and not item and not (rows and rows[-1].startswith(number))
            rows.append(f"{number}{line.strip()}" if is_first else line)
    return "\n".join(rows) + "\n"


def _own_columns(row: str, lines: Sequence[str], language: str) -> str:
    """Return a row of a guide's table without the columns of meanings in other languages, if its own has a column."""
    heads = [cell.strip() for cell in next(line for line in lines if line.startswith("|")).strip("| ").split("|")]
    own = language.partition("-")[0]
    others = [_head(other) for other in translations("review/guide_heads.yaml") if other != own]
    foreign = others if _head(own) in heads else []
    cells = zip(heads, row.strip("| ").split("|"), strict=False)
    return f"| {' | '.join(cell.strip() for name, cell in cells if name not in foreign)} |"


def of_items(text: str, question: Mapping[str, str], scale: Scale, meanings: Mapping[str, Mapping[str, str]]) -> str:
    """Return the guide `text` for items of a task type, with its question in every language and a table of answers.

    `meanings` is language -> answer -> meaning.
    """
    questions = "\n".join(f"**{_escaped(wording)}**  " for wording in question.values())
    return of_scale(text, scale, meanings, "answer").replace("{question}", questions)


def of_scale(text: str, scale: Scale, meanings: Mapping[str, Mapping[str, str]], head: str = "grade") -> str:
    """Return the guide `text` with a scale's grades filled in: a table of meanings, and which grades are relevant.

    `meanings` is language -> grade -> meaning. Without a relevance threshold the paragraph on relevant grades is left
    out.
    """
    paragraphs = [paragraph for paragraph in text.split("\n\n") if scale.positives or "{relevant}" not in paragraph]
    relevant = " / ".join(f"**{_escaped(label)}**" for label in scale.positives)
    return "\n\n".join(paragraphs).replace("{relevant}", relevant).replace("{grades}", _table(scale, meanings, head))


def of_rubric(text: str, scale: Scale, meanings: Mapping[str, Mapping[str, str]]) -> str:
    """Return the guide `text` with its table replaced by a rubric's meanings (language -> grade -> meaning)."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(
        _table(scale, meanings, "grade") if paragraph.startswith("|") else paragraph for paragraph in paragraphs
    )


def _table(scale: Scale, meanings: Mapping[str, Mapping[str, str]], head: str) -> str:
    """Return the table of a scale's grades, with a column of meanings per language."""
    heads = [_head(language) for language in meanings]
    rows = [[head, *heads], ["---"] * (1 + len(heads))]
    rows += [
        [f"**{_escaped(label)}**", *(_escaped(meaning.get(label, "")) for meaning in meanings.values())]
        for label in scale.labels
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _head(language: str) -> str:
    """Return the header of the guide's column of meanings in a language; the language tag if it has none."""
    return str(translations("review/guide_heads.yaml").get(language, language))


def _escaped(text: str) -> str:
    return _SIGNS.sub(r"\\\g<0>", " ".join(text.split()))


def meanings(text: str, language: str) -> Mapping[str, str]:
    """Return answer -> meaning in a language, else in English, from the guide's table; empty without such a column."""
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
    """One question to assessors about every row of a sample, in one language, with headers and permitted answers."""

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
    """Header of the column with the answers of assessors and panel, shown to the adjudicator."""
    known: Mapping[str, str]
    """Column name or header in any language -> column name, to read sheets."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Accepted synonym -> answer."""
    guide: str = "GUIDE.md"
    """File name of the packaged guide for assessors."""
    private: bool = False
    """Whether filled-in cells may contain personal data, so that no message quotes one."""
    meaning: str = ""
    """Header of the workbook's column with the meanings of the answers."""
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
        """Return the header row of a sheet.

        If the sheet explains its answers, the header of the answers is the question, followed by the answers if they
        are few.
        """
        answer = self.question or self.headers["answer"]
        if len(self.answers) <= _LISTED or not self.question:
            answer = f"{answer} ({' / '.join(self.answers)})"
        return [answer if column == "answer" and self.meanings else self.headers[column] for column in self.columns]


@cache
def form(name: str, language: str, scale: Scale = FIVE) -> Form:
    """Return the packaged form `name` in a language, else in English; ConfigError for an unknown name.

    Its answers are those of forms.yaml, by default the grades of `scale`.
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
    """Return a form whose sheets list the answers in their header and show their meanings (answer -> meaning)."""
    with_meanings = replace(base, meanings=meanings)
    return replace(
        with_meanings, known={**base.known, with_meanings.header[with_meanings.columns.index("answer")]: "answer"}
    )
