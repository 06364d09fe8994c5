"""Writers: models that write texts about items, and are asked again with the rules that a text broke."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from curate.ask.task import Item, LLMTask
from curate.core.config import digest
from curate.core.messages import Reply
from curate.llm import parse
from curate.llm.prompts import PromptTemplate
from curate.llm.recorded_votes import Missing

LAYOUT = 1
"""Incremented when markers or the reply schema change: they are part of a prompt's digest."""


class WriterPrompt(PromptTemplate):
    """Prompt that asks for texts of named kinds."""

    subject = "kinds"
    all_kinds: ClassVar[Sequence[str]]
    all_rules: ClassVar[Sequence[str]]

    kinds: Mapping[str, str]
    """Kind -> its definition."""
    broken: Mapping[str, str]
    """Rule -> sentence in the next prompt after a violation."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if set(self.kinds) != set(self.all_kinds) or set(self.broken) != set(self.all_rules):
            kinds, rules = ", ".join(self.all_kinds), ", ".join(self.all_rules)
            raise ValueError(f"expected the kinds {kinds} and the rules {rules}; say each")
        return self

    def meanings(self) -> Mapping[str, str]:
        """Return kind -> definition, in the order of the kinds."""
        return {kind: self.kinds[kind] for kind in self.all_kinds}

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the prompt without the texts."""
        return digest({"layout": LAYOUT, "system": self.prefix, "user": self.user.strip(), "broken": self.broken})


@dataclass(frozen=True)
class Written:
    """A writer's reply: kind -> text, empty without a valid one."""

    status: Literal["written", "refused", "unparsed", "failed"]
    texts: Mapping[str, str] = field(default_factory=dict)


def read(reply: Reply, kinds: Sequence[str], valid: Callable[[str], bool]) -> Written:
    """Parse a reply: a JSON object of exactly these kinds, each with a valid text, else unparsed."""
    if reply.finish == "refusal":
        return Written("refused")
    entries = parse.items(reply.text or "")
    if reply.finish == "length" or entries is None or sorted(key for key, _ in entries) != sorted(kinds):
        return Written("unparsed")
    texts = {kind: text.strip() for kind, text in entries if isinstance(text, str) and valid(text)}
    return Written("written", texts) if len(texts) == len(kinds) else Written("unparsed")


class WriterTask(LLMTask[Item, Written]):
    """Have the model of a command's `generator` write."""

    def __init__(self, purpose: str, prompt: WriterPrompt) -> None:
        self.purpose, self.digest = purpose, prompt.digest

    def label(self, model: str) -> str:
        """Return the setting that names the model."""
        return f"{self.purpose}.generator={model}"

    @abstractmethod
    def read(self, item: Item, reply: Reply) -> Written:
        """Return the texts in a reply."""

    def none(self, status: Missing) -> Written:
        """Return a reply without a text."""
        return Written(status)
