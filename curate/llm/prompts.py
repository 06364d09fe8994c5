"""Rubrics, and the prompt that is built from one: stable text first, the texts to be graded last.

Every text is enclosed in markers with a code computed from all texts of the prompt. Equal texts have an equal code, so
a prompt can be repeated and looked up. The author of a passage cannot foresee it, so no passage closes its block.
"""

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import ClassVar, Literal, Self

from pydantic import field_validator, model_validator

from curate.core.config import Json, Section, canonical, check, digest, text_digest
from curate.core.errors import suggestion
from curate.core.messages import Message
from curate.core.scale import FIVE, Order, Scale, declared

LAYOUT = 1
"""Raised when labels, markers or the reply's schema change: they are sent, so they are part of a rubric's digest."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_CODE_LENGTH = 12


class PromptTemplate(Section):
    """A prompt from a file: rules, the form of a reply, and the two templates that contain them."""

    subject: ClassVar[str]
    """Placeholder of the possible answers in the system template, in addition to {rules} and {reply}."""
    texts: ClassVar[frozenset[str]]
    """Placeholders that the user template needs."""
    optional: ClassVar[frozenset[str]] = frozenset()
    """Placeholders that it may have."""

    version: int
    """Version of this file format, 1."""
    name: str
    language: str
    """Language code of the texts it is meant for, such as zh or en."""
    rules: tuple[str, ...]
    """Sentences that hold for every text."""
    reply: str
    """How the answer must look."""
    system: str
    """Template of the stable part, with {rules}, {reply} and the `subject`."""
    user: str
    """Template of the changing part."""

    @field_validator("version")
    @classmethod
    def _known_version(cls, version: int) -> int:
        if version != 1:
            raise ValueError("this program reads prompt files of version 1; rewrite the file in that form")
        return version

    @model_validator(mode="after")
    def _placeholders(self) -> Self:
        stable = frozenset({self.subject, "rules", "reply"})
        _check_template("system", self.system, stable, stable)
        _check_template("user", self.user, self.needed, self.needed | self.optional)
        return self

    @property
    def needed(self) -> frozenset[str]:
        """Return the placeholders that the user template needs."""
        return self.texts

    @abstractmethod
    def meanings(self) -> Mapping[str, str]:
        """Return answer -> meaning, in the order of the prompt."""

    @cached_property
    def prefix(self) -> str:
        """Return the system text, filled in: the same for every call, so it can be cached."""
        values = {
            self.subject: "\n".join(f"{name}: {meaning.strip()}" for name, meaning in self.meanings().items()),
            "rules": "\n".join(f"{number}. {rule.strip()}" for number, rule in enumerate(self.rules, 1)),
            "reply": self.reply.strip(),
        }
        return fill(self.system, values).strip()

    def turns(self, values: Mapping[str, str]) -> tuple[Message, Message]:
        """Return the system and the user turn, the latter with its placeholders filled in."""
        return Message("system", self.prefix), Message("user", fill(self.user, values).strip())


class Rubric(PromptTemplate):
    """Prompt of a judge: a grade of its scale for each passage of a query."""

    subject = "grades"
    texts = frozenset({"query", "passages"})
    optional = frozenset({"labels"})

    grades: Mapping[str, str]
    """Label -> what it means; of an ordinal scale the best first."""
    order: Order = "ordinal"
    """nominal: the labels are classes, none better than another."""
    relevant_from: str = ""
    """The lowest grade that makes a document relevant; not needed for S, A, B, C, D, where it is A."""
    gains: Mapping[str, int] | None = None
    """Label -> gain in graded relevance labels; None counts down to 0."""
    none: str = ""
    """The label of a nominal scale for: none of the others."""
    several: str = ""
    """The label of a nominal scale for: more than one of the others."""
    translations: Mapping[str, Mapping[str, str]] = {}
    """Language code -> label -> what it means, for people who assess in another language than the rubric's."""

    @field_validator("relevant_from", "none", "several", mode="before")
    @classmethod
    def _typed(cls, label: object) -> object:
        if isinstance(label, bool):  # pydantic reports ValueErrors alone
            raise ValueError("YAML reads that word as true or false; write it in quotes")  # noqa: TRY004
        return str(label) if isinstance(label, int) else label

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for where, meanings in {"grades": self.grades, **self.translations}.items():
            if unknown := sorted({*meanings} - {*self.grades}):
                raise ValueError(f"translations.{where}: {', '.join(unknown)} is no label under grades")
            if missing := [label for label in self.grades if not meanings.get(label, "").strip()]:
                raise ValueError(f"no meaning is given for {', '.join(missing)} ({where}); describe each grade")
        assert self.scale.labels  # a declaration that contradicts itself is refused here
        return self

    @cached_property
    def scale(self) -> Scale:
        """The labels that a judge may give."""
        return declared([*self.grades], self.order, self.relevant_from, self.gains, self.none, self.several)

    @property
    def all_meanings(self) -> dict[str, dict[str, str]]:
        """Return language -> label -> its meaning, in the rubric's language first, labels best first."""
        return {language: dict(self.meanings(language)) for language in (self.language, *self.translations)}

    def meanings(self, language: str = "") -> Mapping[str, str]:
        """Return label -> its meaning, best first; in a language if the rubric has that translation."""
        chosen = self.translations.get(language, self.grades)
        return {label: chosen[label] for label in self.scale.labels}

    @property
    def digest(self) -> str:
        """Return the SHA-256 of all that is sent apart from query and passages, and of a scale that is not FIVE.

        The file's name is not sent.
        """
        scale = {} if self.scale == FIVE else {"scale": self.scale.to_json()}
        return digest({"layout": LAYOUT, "system": self.prefix, "user": self.user.strip(), **scale})


def rubric(content: Mapping[str, Json], where: str) -> Rubric:
    """Return the rubric in a parsed YAML mapping; ConfigError names `where`, the key, and what to do."""
    return check(Rubric, content, where)


def labels(number: int) -> tuple[str, ...]:
    """Return the labels of `number` passages, P1 to Pn: they do not reveal id, rank or grade."""
    return tuple(f"P{index}" for index in range(1, number + 1))


def messages(template: Rubric, query: str, passages: Sequence[str]) -> tuple[Message, ...]:
    """Return the system and the user turn that ask for the grades of passages, in the given form."""
    code, names = fence([query, *passages]), labels(len(passages))
    blocks = [block(name, code, passage) for name, passage in zip(names, passages, strict=True)]
    values = {"labels": ", ".join(names), "query": block("query", code, query), "passages": "\n\n".join(blocks)}
    return template.turns(values)


def schema(names: Sequence[str], scale: Scale) -> dict[str, Json]:
    """Return the JSON schema of a reply: an object with exactly these labels, one grade of the scale per label."""
    grade: Json = {"type": "string", "enum": list(scale.labels)}
    return json_object(dict.fromkeys(names, grade))


def json_object(properties: Mapping[str, Json]) -> dict[str, Json]:
    """Return the JSON schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def fence(texts: Sequence[str]) -> str:
    """Return the code of a prompt's markers: 12 hex digits of the texts' SHA-256 that occur in none of the texts."""
    codes = (text_digest(canonical([attempt, *texts]))[:_CODE_LENGTH] for attempt in count())
    return next(code for code in codes if not any(code in text for text in texts))


def block(label: str, code: str, text: str) -> str:
    """Return a text between the two marker lines of its label."""
    return f"<{label} {code}>\n{text}\n</{label} {code}>"


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a template with its placeholders filled in; unknown ones stay text."""
    # One pass, so that a placeholder inside a query or a passage stays text; braces of a JSON example stay as well.
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)


def _check_template(
    key: Literal["system", "user"], template: str, needed: frozenset[str], allowed: frozenset[str]
) -> None:
    """Raise ValueError unless a template holds all needed placeholders and only allowed ones."""
    used = set(_PLACEHOLDER.findall(template))
    if missing := sorted(needed - used):
        names = ", ".join(f"{{{name}}}" for name in missing)
        raise ValueError(f"the {key} template lacks {names}; put it where that text belongs")
    for name in sorted(used - allowed):
        raise ValueError(f"the {key} template has an unknown placeholder {{{name}}}; {suggestion(name, allowed)}")
