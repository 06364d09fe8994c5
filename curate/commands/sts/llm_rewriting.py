"""Sentences written by a language model beside a query: what each kind must contain, and how it is asked for.

A positive holds the synonym and asks the same; a hard negative holds the synonym and asks something else; an easy one
holds the query's own term and asks something else. Rules see words, length and form; whether the meaning is right they
cannot see, a panel can. A reply is one JSON object, kind -> sentence; a reply in any other form is no sentence.
"""

import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self, get_args

from pydantic import model_validator

from curate.ask.edits.synonym_matcher import Lexer
from curate.ask.personal_data import told
from curate.core.config import Json, check, digest
from curate.core.messages import Reply, Request
from curate.llm import parse
from curate.llm.prompts import PromptTemplate, block, fence, json_object

Kind = Literal["positive", "hard", "easy"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Rule = Literal["word", "other word", "length", "form", "same", "duplicate", "reply"]
RULES: tuple[Rule, ...] = get_args(Rule)
"""`reply` says that no sentence could be read. Beside them stands the rule on personal data, in no prompt."""
Status = Literal["written", "refused", "unparsed", "failed"]
LAYOUT = 1
"""Raised when markers or the reply's schema change: they are sent, so they are part of a prompt's digest."""
ANSWER_TOKENS = 600
LONGEST = 1000
"""Code points of a sentence, at most."""


@dataclass(frozen=True)
class RewritingTask:
    """A query, the word of it that has a synonym, and the synonym; words as `synonyms.plain` has them."""

    query_id: str
    query: str
    term: str
    synonym: str

    def holds(self, kind: Kind) -> str:
        """Return the word that stands in a sentence of a kind."""
        return self.term if kind == "easy" else self.synonym

    def lacks(self, kind: Kind) -> str:
        """Return the word that does not stand in it."""
        return self.synonym if kind == "easy" else self.term


@dataclass(frozen=True)
class Rules:
    """What can be checked of a sentence without knowing what it means."""

    lexer: Lexer
    asks: Callable[[str], bool]
    """Whether a text has the form of a question."""
    length: float = 0.3
    """Share of the query's code points by which a sentence may be longer or shorter."""

    def broken(self, task: RewritingTask, kind: Kind, text: str, taken: Collection[str] = ()) -> list[Rule]:
        """Return the rules that a sentence breaks; `taken` are the other sentences, as `bare` has them."""
        words = {each.word for each in self.lexer.find(text)}
        size, bare_text = len(task.query), bare(text)
        found: dict[Rule, bool] = {
            "word": task.holds(kind) not in words,
            "other word": task.lacks(kind) in words,
            "length": not self.fits(size, len(text)),
            "form": self.asks(text) != self.asks(task.query),
            "same": bare_text == bare(task.query),
            "duplicate": bare_text in taken and bare_text != bare(task.query),
        }
        return [rule for rule in RULES if found.get(rule)]

    def fits(self, query: int, sentence: int) -> bool:
        """Say whether a sentence of a length is near enough to a query of another, in code points."""
        return abs(sentence - query) <= self.length * query + 1e-9


def bare(text: str) -> str:
    """Return a text as it is compared: half-width, lower case, letters and digits alone."""
    return "".join(char for char in unicodedata.normalize("NFKC", text).lower() if char.isalnum())


class RewritingPrompt(PromptTemplate):
    """How a model is asked for sentences."""

    subject = "kinds"
    texts = frozenset({"query", "term", "synonym", "wanted", "broken"})

    kinds: Mapping[Kind, str]
    """What a sentence of each kind is."""
    broken: Mapping[Rule, str]
    """What is said of a sentence that broke a rule, when it is asked for again."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if set(self.kinds) != set(KINDS) or set(self.broken) != set(RULES):
            raise ValueError(f"expected the kinds {', '.join(KINDS)} and the rules {', '.join(RULES)}; say each")
        return self

    def meanings(self) -> Mapping[str, str]:
        """Return kind -> what a sentence of it is."""
        return {kind: self.kinds[kind] for kind in KINDS}

    @property
    def digest(self) -> str:
        """Return the SHA-256 of everything that is sent beside the texts."""
        return digest({"layout": LAYOUT, "system": self.prefix, "user": self.user.strip(), "broken": self.broken})

    def request(
        self,
        task: RewritingTask,
        spelled: Mapping[str, str],
        broken: Mapping[Kind, Sequence[str]],
        thinking_tokens: int,
    ) -> Request:
        """Return the request for the kinds in `broken`, and what was wrong with the last sentence of each, if any."""
        term, synonym = spelled[task.term], spelled[task.synonym]
        code = fence([task.query, term, synonym])
        wrong = [(kind, rule) for kind, rules in broken.items() for rule in rules]
        faults = [f"{kind}: {told(self.broken, [rule], self.language)}" for kind, rule in wrong]
        texts = {"query": task.query, "term": term, "synonym": synonym}
        values = {
            **{name: block(name, code, text) for name, text in texts.items()},
            "wanted": ", ".join(broken),
            "broken": "\n".join(faults),
        }
        schema = json_object({kind: {"type": "string"} for kind in broken})
        return Request(self.turns(values), ANSWER_TOKENS + thinking_tokens, schema)


def prompt(data: Mapping[str, Json], where: str) -> RewritingPrompt:
    """Return the prompt in a parsed YAML mapping; ConfigError names `where`, the key, and what to do."""
    return check(RewritingPrompt, data, where)


@dataclass(frozen=True)
class RewritingReply:
    """What a reply came to."""

    status: Status
    sentences: Mapping[Kind, str] = field(default_factory=dict)


def read(wanted: Sequence[Kind], reply: Reply) -> RewritingReply:
    """Return the sentences of a reply that has exactly the wanted kinds, a line each; anything else is unparsed."""
    if reply.finish == "refusal":
        return RewritingReply("refused")
    found = parse.items(reply.text or "")
    if reply.finish == "length" or found is None or sorted(key for key, _ in found) != sorted(wanted):
        return RewritingReply("unparsed")
    said = dict(found)
    sentences: dict[Kind, str] = {}
    for kind in wanted:
        text = said[kind]
        if not isinstance(text, str) or not bare(text) or "\n" in text.strip() or len(text) > LONGEST:
            return RewritingReply("unparsed")
        sentences[kind] = text.strip()
    return RewritingReply("written", sentences)
