"""Prompt for a paraphrase, and parser of its reply: one JSON object with the key `paraphrase`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, get_args

from pydantic import model_validator

from curate.ask.personal_data import told
from curate.ask.task import LLMTask
from curate.core.config import check, digest, read_yaml
from curate.core.messages import Reply, Request
from curate.llm import parse
from curate.llm.prompts import PromptTemplate, block, fence, json_object
from curate.llm.recorded_votes import Missing
from curate.pipeline.stage import Context
from curate.system import resources

KEY = "paraphrase"
ParaphraseRule = Literal["length", "same", "duplicate", "reply"]
RULES: tuple[ParaphraseRule, ...] = get_args(ParaphraseRule)
"""`reply`: no sentence could be parsed. The rule on personal data is separate and in no prompt."""
LAYOUT = 1
"""Incremented when markers or the reply schema change: they are part of the prompt's digest."""
ANSWER_TOKENS = 400
LONGEST = 1000
"""Code points of a sentence, at most."""


class ParaphrasePrompt(PromptTemplate):
    """Prompt that asks for a paraphrase."""

    subject = "kinds"
    texts = frozenset({"query", "broken"})

    kinds: Mapping[str, str]
    """`paraphrase` -> its definition."""
    broken: Mapping[ParaphraseRule, str]
    """Rule -> sentence in the next prompt after a violation."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if set(self.kinds) != {KEY} or set(self.broken) != set(RULES):
            raise ValueError(f"expected the kind {KEY} and the rules {', '.join(RULES)}; say each")
        return self

    def meanings(self) -> Mapping[str, str]:
        """Return kind -> definition."""
        return self.kinds

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the prompt without the query."""
        return digest({"layout": LAYOUT, "system": self.prefix, "user": self.user.strip(), "broken": self.broken})

    def request(self, query: str, broken: Sequence[str], thinking_tokens: int) -> Request:
        """Return the request for a paraphrase; `broken` are the rules that the last one violated."""
        blocks = {
            "query": block("query", fence([query]), query),
            "broken": told(self.broken, broken, self.language),
        }
        return Request(self.turns(blocks), ANSWER_TOKENS + thinking_tokens, json_object({KEY: {"type": "string"}}))


@dataclass(frozen=True)
class ParaphraseReply:
    """Parsed reply."""

    status: Literal["written", "refused", "unparsed", "failed"]
    text: str = ""


@dataclass(frozen=True)
class Rewritten:
    """A query to paraphrase, and the rules that the last sentence about it broke."""

    query_id: str
    query: str
    broken: tuple[str, ...] = ()


class ParaphraseTask(LLMTask[Rewritten, ParaphraseReply]):
    """Have a model write a paraphrase of a query."""

    def __init__(self, prompt: ParaphrasePrompt) -> None:
        self.prompt, self.digest = prompt, prompt.digest

    def label(self, model: str) -> str:
        """Return the setting that names the model."""
        return f"paraphrase.generator={model}"

    def request(self, item: Rewritten, thinking_tokens: int) -> Request:
        """Return the request, with the broken rules in the prompt."""
        return self.prompt.request(item.query, item.broken, thinking_tokens)

    def read(self, _item: Rewritten, reply: Reply) -> ParaphraseReply:
        """Return the sentence."""
        return read(reply)

    def none(self, status: Missing) -> ParaphraseReply:
        """Return a reply without a sentence."""
        return ParaphraseReply(status)


def read(reply: Reply) -> ParaphraseReply:
    """Parse a reply: a JSON object with one sentence of at most `LONGEST` code points on one line, else unparsed."""
    if reply.finish == "refusal":
        return ParaphraseReply("refused")
    entries = parse.items(reply.text or "")
    if reply.finish == "length" or entries is None or [key for key, _ in entries] != [KEY]:
        return ParaphraseReply("unparsed")
    text = entries[0][1]
    if not isinstance(text, str) or not text.strip() or "\n" in text.strip() or len(text) > LONGEST:
        return ParaphraseReply("unparsed")
    return ParaphraseReply("written", text.strip())


def writing(context: Context) -> ParaphrasePrompt:
    """Return the prompt in the language of the run."""
    path = resources.prompt("paraphrase-write", context.language)
    return check(ParaphrasePrompt, read_yaml(path), str(path))
