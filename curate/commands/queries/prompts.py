"""How a model is asked for a query that a document answers, and how its reply is read: a JSON object with `query`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, get_args

from pydantic import model_validator

from curate.core.config import check, digest, read_yaml
from curate.core.errors import ConfigError
from curate.core.messages import Reply, Request
from curate.llm import parse
from curate.llm.prompts import PromptTemplate, block, fence, json_object
from curate.llm.questions import Question, question
from curate.pipeline.stage import Context
from curate.system import resources
from curate.tables.readers.settings import base

KEY = "query"
WRITE, FILTER = "queries-write", "queries-filter"
GOOD = "good"
"""The answer of a filter that accepts a query."""
QueryRule = Literal["reply", "empty", "language", "length", "copied", "duplicate", "personal"]
RULES: tuple[QueryRule, ...] = get_args(QueryRule)
"""`reply`: no query could be read. They are tried in this order."""
LANGUAGES = ("zh", "en")
"""Languages that there are prompts in; for texts of others models are asked in English."""
LAYOUT = 1
"""Raised when markers or the reply's schema change: they are sent, so they are part of a prompt's digest."""
ANSWER_TOKENS = 400
PER_CHARACTER = 3
"""Tokens of a reply per character that is asked for, where these are more."""


class QueryPrompt(PromptTemplate):
    """How a model is asked for a query."""

    subject = "kinds"
    texts = frozenset({"document", "examples", "length", "broken"})

    kinds: Mapping[str, str]
    """What a query is."""
    broken: Mapping[QueryRule, str]
    """What is said of a query that broke a rule, when it is asked for again."""
    lengths: tuple[int, int]
    """Least and most characters of a query where no real one shows how long they are."""

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
        """Return the SHA-256 of everything that is sent beside document, examples and length."""
        return digest({"layout": LAYOUT, "system": self.prefix, "user": self.user.strip(), "broken": self.broken})

    def request(
        self, document: str, examples: Sequence[str], length: int, broken: Sequence[QueryRule], thinking_tokens: int
    ) -> Request:
        """Return the request for a query of about `length` characters in the style of the examples."""
        code = fence([document, *examples])
        shown = [block(f"example{number}", code, text) for number, text in enumerate(examples, 1)]
        values = {
            "document": block("document", code, document),
            "examples": "\n".join(shown),
            "length": str(length),
            "broken": "\n".join(self.broken[rule].strip() for rule in broken),
        }
        most = max(ANSWER_TOKENS, PER_CHARACTER * length) + thinking_tokens
        return Request(self.turns(values), most, json_object({KEY: {"type": "string"}}))


@dataclass(frozen=True)
class QueryReply:
    """What a reply came to."""

    status: Literal["written", "refused", "unparsed", "failed"]
    text: str = ""


def read(reply: Reply) -> QueryReply:
    """Return the query of a reply that holds one line of text under the key and nothing else; all else is unparsed."""
    if reply.finish == "refusal":
        return QueryReply("refused")
    found = parse.items(reply.text or "")
    if reply.finish == "length" or found is None or [key for key, _ in found] != [KEY]:
        return QueryReply("unparsed")
    text = found[0][1]
    if not isinstance(text, str) or len(text.strip().splitlines()) > 1:
        return QueryReply("unparsed")
    return QueryReply("written", text.strip())


def writing(context: Context) -> QueryPrompt:
    """Return how the writer is asked."""
    path = _file(context, WRITE)
    return check(QueryPrompt, read_yaml(path), str(path))


def filtering(context: Context) -> Question:
    """Return what the filters are asked; ConfigError if no answer means that a query is accepted."""
    path = _file(context, FILTER)
    found = question(read_yaml(path), str(path))
    if GOOD not in found.labels:
        raise ConfigError(f"{path}: labels: found {', '.join(found.labels)}; expected {GOOD!r} among them")
    return found


def _file(context: Context, name: str) -> Path:
    language = base(context.language)
    return resources.find("prompts", f"{name}-{language if language in LANGUAGES else 'en'}.yaml")
