"""Questions with named answers about a query and a passage, put to a language model: prompt and strict parser.

Texts stand between the markers of `prompts`. A reply is one JSON object with exactly two keys: `label`, one of the
named answers, and `reason`, one sentence. Whatever else comes is no answer and becomes none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from curate.core.config import Json, Section, check, digest
from curate.core.messages import Message, Reply, Request
from curate.llm import parse
from curate.llm.prompts import block, check_template, fence, fill

LAYOUT = 1
"""Raised when markers or the reply's schema change: they are sent, so they are part of a question's digest."""
ANSWER_TOKENS = 300
"""Room for the label and one sentence."""
LONGEST = 500
"""Code points of a sentence, at most."""
_SYSTEM = frozenset({"labels", "rules", "reply"})
_USER = frozenset({"query", "passage"})

Status = Literal["labelled", "refused", "unparsed", "failed"]
STATUSES: tuple[Status, ...] = ("labelled", "refused", "unparsed", "failed")


class Question(Section):
    """What is asked, and the answers that there are."""

    version: Literal[1]
    name: str
    language: str
    labels: Mapping[str, str] = Field(min_length=2)
    """The named answers, and what each of them means."""
    rules: tuple[str, ...]
    reply: str
    """How the answer must look."""
    system: str
    """Template of the stable part, with {labels}, {rules} and {reply}."""
    user: str
    """Template of the changing part, with {query}, {passage} and, if wanted, {grades}."""

    @field_validator("labels")
    @classmethod
    def _plain_labels(cls, labels: Mapping[str, str]) -> Mapping[str, str]:
        if len({parse.plain(label) for label in labels}) < len(labels) or not all(map(str.strip, labels.values())):
            raise ValueError("two labels are the same, or one has no meaning; name and describe each of them")
        return labels

    @model_validator(mode="after")
    def _placeholders(self) -> Self:
        check_template("system", self.system, _SYSTEM, _SYSTEM)
        check_template("user", self.user, _USER, _USER | {"grades"})
        return self

    @cached_property
    def prefix(self) -> str:
        """Return the system text, filled in: the same for every call, so it can be cached."""
        values = {
            "labels": "\n".join(f"{label}: {meaning.strip()}" for label, meaning in self.labels.items()),
            "rules": "\n".join(f"{number}. {rule.strip()}" for number, rule in enumerate(self.rules, 1)),
            "reply": self.reply.strip(),
        }
        return fill(self.system, values).strip()

    @property
    def digest(self) -> str:
        """Return the SHA-256 of everything that is sent beside the texts."""
        return digest({"layout": LAYOUT, "system": self.prefix, "user": self.user.strip(), "labels": list(self.labels)})


@dataclass(frozen=True)
class Said:
    """What a reply came to; ValueError unless a label and a reason come with `labelled`, and with nothing else."""

    status: Status
    label: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if (self.label is not None, self.reason is not None) != (self.status == "labelled",) * 2:
            raise ValueError(f"found the label {self.label!r} with the status {self.status!r}")


def question(data: Mapping[str, Json], where: str) -> Question:
    """Return the question in a parsed YAML mapping; ConfigError names `where`, the key, and what to do."""
    return check(Question, data, where)


def build(asked: Question, query: str, passage: str, grades: Sequence[str] = (), thinking_tokens: int = 0) -> Request:
    """Return the request about a query and a passage, as they are shown; `grades` are what judges gave."""
    code = fence([query, passage])
    values = {
        "query": block("query", code, query),
        "passage": block("passage", code, passage),
        "grades": ", ".join(grades),
    }
    turns = (Message("system", asked.prefix), Message("user", fill(asked.user, values).strip()))
    return Request(turns, ANSWER_TOKENS + thinking_tokens, schema(asked))


def schema(asked: Question) -> dict[str, Json]:
    """Return the JSON schema of a reply: a label out of the named ones, and a sentence."""
    return {
        "type": "object",
        "properties": {"label": {"type": "string", "enum": list(asked.labels)}, "reason": {"type": "string"}},
        "required": ["label", "reason"],
        "additionalProperties": False,
    }


def read(asked: Question, reply: Reply) -> Said:
    """Return what a reply says; a refusal, an answer that was cut and one in another form are no label."""
    if reply.finish == "refusal":
        return Said("refused")
    found = parse.items(reply.text or "")
    if reply.finish == "length" or found is None or sorted(key for key, _ in found) != ["label", "reason"]:
        return Said("unparsed")
    said = dict(found)
    label, reason = said["label"], said["reason"]
    names = {parse.plain(name): name for name in asked.labels}
    if not isinstance(label, str) or not isinstance(reason, str) or parse.plain(label) not in names:
        return Said("unparsed")
    sentence = reason.strip()
    if not sentence or "\n" in sentence or len(sentence) > LONGEST:
        return Said("unparsed")
    return Said("labelled", names[parse.plain(label)], sentence)
