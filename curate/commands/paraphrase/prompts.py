"""Prompt for a paraphrase, and parser of its reply: one JSON object with the key `paraphrase`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from curate.ask.personal_data import told
from curate.ask.writing import WriterPrompt, WriterTask, Written, read
from curate.core.config import check, read_yaml
from curate.core.messages import Reply, Request
from curate.llm.prompts import block, fence, json_object
from curate.pipeline.stage import Context
from curate.system import resources

KEY = "paraphrase"
ParaphraseRule = Literal["length", "same", "duplicate", "reply"]
RULES: tuple[ParaphraseRule, ...] = get_args(ParaphraseRule)
"""`reply`: no sentence could be parsed. The rule on personal data is separate and in no prompt."""
ANSWER_TOKENS = 400
LONGEST = 1000
"""Code points of a sentence, at most."""


class ParaphrasePrompt(WriterPrompt):
    """Prompt that asks for a paraphrase."""

    texts = frozenset({"query", "broken"})
    all_kinds, all_rules = (KEY,), RULES

    def request(self, query: str, broken: Sequence[str], thinking_tokens: int) -> Request:
        """Return the request for a paraphrase; `broken` are the rules that the last one violated."""
        blocks = {
            "query": block("query", fence([query]), query),
            "broken": told(self.broken, broken, self.language),
        }
        return Request(self.turns(blocks), ANSWER_TOKENS + thinking_tokens, json_object({KEY: {"type": "string"}}))


@dataclass(frozen=True)
class WantedParaphrase:
    """A query to paraphrase, and the rules that the last sentence about it broke."""

    query_id: str
    query: str
    broken: tuple[str, ...] = ()


class ParaphraseTask(WriterTask[WantedParaphrase]):
    """Have a model write a paraphrase of a query."""

    def __init__(self, prompt: ParaphrasePrompt) -> None:
        super().__init__("paraphrase", prompt)
        self.prompt = prompt

    def request(self, item: WantedParaphrase, thinking_tokens: int) -> Request:
        """Return the request, with the broken rules in the prompt."""
        return self.prompt.request(item.query, item.broken, thinking_tokens)

    def read(self, _item: WantedParaphrase, reply: Reply) -> Written:
        """Return the sentence, of at most `LONGEST` code points on one line."""
        return read(reply, (KEY,), lambda text: is_sentence(text) and len(text) <= LONGEST)


def is_sentence(text: str) -> bool:
    """Return whether a text is one line that is not blank."""
    return bool(text.strip()) and "\n" not in text.strip()


def writing(context: Context) -> ParaphrasePrompt:
    """Return the prompt in the language of the run."""
    path = resources.prompt("paraphrase-write", context.language)
    return check(ParaphrasePrompt, read_yaml(path), str(path))
