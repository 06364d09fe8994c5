"""Questions with named answers about a query and a passage, or about one text: prompt and strict parser.

Texts are enclosed in the markers of `prompts`. A reply is one JSON object with exactly two keys: `label`, one of the
named answers, and `reason`, one sentence. A reply in any other form is no answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, field_validator

from curate.core.config import Json, check, digest
from curate.core.messages import Reply, Request
from curate.core.scale import plain
from curate.llm import parse
from curate.llm.prompts import PromptTemplate, block, fence, json_object

LAYOUT = 1
"""Raised when markers or the reply's schema change: they are sent, so they are part of a question's digest."""
ANSWER_TOKENS = 300
"""Room for the label and one sentence."""
LONGEST = 500
"""Code points of a sentence, at most."""

Status = Literal["labelled", "refused", "unparsed", "failed"]
STATUSES: tuple[Status, ...] = ("labelled", "refused", "unparsed", "failed")


class Question(PromptTemplate):
    """Prompt of a question with its possible answers."""

    subject = "labels"
    texts = frozenset({"query", "passage"})
    optional = frozenset({"grades"})

    labels: Mapping[str, str] = Field(min_length=2)
    """The named answers, and what each of them means."""

    @property
    def shows(self) -> tuple[str, ...]:
        """Return the placeholders of the texts that are shown, in order."""
        return ("text",) if "{text}" in self.user else ("query", "passage")

    @property
    def needed(self) -> frozenset[str]:
        """Return the placeholders that the user template must contain, for one text or for two."""
        return frozenset(self.shows)

    @field_validator("labels")
    @classmethod
    def _plain_labels(cls, labels: Mapping[str, str]) -> Mapping[str, str]:
        if len({plain(label) for label in labels}) < len(labels) or not all(map(str.strip, labels.values())):
            raise ValueError("two labels are the same, or one has no meaning; name and describe each of them")
        return labels

    def meanings(self) -> Mapping[str, str]:
        """Return label -> its meaning, in the order of the file."""
        return self.labels

    @property
    def digest(self) -> str:
        """Return the SHA-256 of everything in the prompt except the texts."""
        return digest({"layout": LAYOUT, "system": self.prefix, "user": self.user.strip(), "labels": list(self.labels)})


@dataclass(frozen=True)
class Said:
    """Result of a reply; ValueError unless it has label and reason exactly if its status is `labelled`."""

    status: Status
    label: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if (self.label is not None, self.reason is not None) != (self.status == "labelled",) * 2:
            raise ValueError(f"found the label {self.label!r} with the status {self.status!r}")


def question(content: Mapping[str, Json], where: str) -> Question:
    """Return the question in a parsed YAML mapping; ConfigError names `where`, the key, and what to do."""
    return check(Question, content, where)


def build(template: Question, *texts: str, grades: Sequence[str] = (), thinking_tokens: int = 0) -> Request:
    """Return the request about a query and a passage, or one text; `grades` are the grades of judges to show."""
    code = fence(texts)
    values = {name: block(name, code, text) for name, text in zip(template.shows, texts, strict=True)}
    return Request(
        template.turns({**values, "grades": ", ".join(grades)}), ANSWER_TOKENS + thinking_tokens, schema(template)
    )


def schema(template: Question) -> dict[str, Json]:
    """Return the JSON schema of a reply: one of the named labels, and a sentence."""
    return json_object({"label": {"type": "string", "enum": list(template.labels)}, "reason": {"type": "string"}})


def read(template: Question, reply: Reply) -> Said:
    """Return the result of a reply; a refusal or a truncated or malformed reply has no label."""
    if reply.finish == "refusal":
        return Said("refused")
    pairs = parse.items(reply.text or "")
    if reply.finish == "length" or pairs is None or sorted(key for key, _ in pairs) != ["label", "reason"]:
        return Said("unparsed")
    fields = dict(pairs)
    label, reason = fields["label"], fields["reason"]
    names = {plain(name): name for name in template.labels}
    if not isinstance(label, str) or not isinstance(reason, str) or plain(label) not in names:
        return Said("unparsed")
    sentence = reason.strip()
    if not sentence or "\n" in sentence or len(sentence) > LONGEST:
        return Said("unparsed")
    return Said("labelled", names[plain(label)], sentence)
