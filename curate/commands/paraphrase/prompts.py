"""How a model is asked for a paraphrase, and how its reply is read: one JSON object with the key `paraphrase`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, get_args

from pydantic import model_validator

from curate.ask.personal_data import told
from curate.core.config import check, digest, read_yaml
from curate.core.messages import Reply, Request
from curate.llm import parse
from curate.llm.prompts import PromptTemplate, block, fence, json_object
from curate.llm.questions import Question, question
from curate.pipeline.stage import Context
from curate.system import resources

KEY = "paraphrase"
ParaphraseRule = Literal["length", "same", "duplicate", "reply"]
RULES: tuple[ParaphraseRule, ...] = get_args(ParaphraseRule)
"""`reply` says that no sentence could be read. Beside them stands the rule on personal data, in no prompt."""
LANGUAGES = ("zh", "en")
"""Languages that there are prompts in; texts of others are asked about in English."""
LAYOUT = 1
"""Raised when markers or the reply's schema change: they are sent, so they are part of a prompt's digest."""
ANSWER_TOKENS = 400
LONGEST = 1000
"""Code points of a sentence, at most."""


class ParaphrasePrompt(PromptTemplate):
    """How a model is asked for a paraphrase."""

    subject = "kinds"
    texts = frozenset({"query", "broken"})

    kinds: Mapping[str, str]
    """What a paraphrase is."""
    broken: Mapping[ParaphraseRule, str]
    """What is said of a sentence that broke a rule, when it is asked for again."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if set(self.kinds) != {KEY} or set(self.broken) != set(RULES):
            raise ValueError(f"expected the kind {KEY} and the rules {', '.join(RULES)}; say each")
        return self

    def meanings(self) -> Mapping[str, str]:
        """Return what is wanted -> what it is."""
        return self.kinds

    @property
    def digest(self) -> str:
        """Return the SHA-256 of everything that is sent beside the query."""
        return digest({"layout": LAYOUT, "system": self.prefix, "user": self.user.strip(), "broken": self.broken})

    def request(self, query: str, broken: Sequence[str], thinking_tokens: int) -> Request:
        """Return the request for a paraphrase, and what was wrong with the last one, if there was one."""
        values = {
            "query": block("query", fence([query]), query),
            "broken": told(self.broken, broken, self.language),
        }
        return Request(self.turns(values), ANSWER_TOKENS + thinking_tokens, json_object({KEY: {"type": "string"}}))


@dataclass(frozen=True)
class ParaphraseReply:
    """What a reply came to."""

    status: Literal["written", "refused", "unparsed", "failed"]
    text: str = ""


def read(reply: Reply) -> ParaphraseReply:
    """Return the sentence of a reply that holds it and nothing else; anything else is unparsed."""
    if reply.finish == "refusal":
        return ParaphraseReply("refused")
    found = parse.items(reply.text or "")
    if reply.finish == "length" or found is None or [key for key, _ in found] != [KEY]:
        return ParaphraseReply("unparsed")
    text = found[0][1]
    if not isinstance(text, str) or not text.strip() or "\n" in text.strip() or len(text) > LONGEST:
        return ParaphraseReply("unparsed")
    return ParaphraseReply("written", text.strip())


def writing(context: Context) -> ParaphrasePrompt:
    """Return how a model is asked."""
    path = _file(context, "paraphrase-write")
    return check(ParaphrasePrompt, read_yaml(path), str(path))


def asking(context: Context, name: str) -> Question:
    """Return what the panel is asked, by the prompt's name without its language."""
    path = _file(context, name)
    return question(read_yaml(path), str(path))


def _file(context: Context, name: str) -> Path:
    language = context.language.split("-")[0]
    return resources.find("prompts", f"{name}-{language if language in LANGUAGES else 'en'}.yaml")
