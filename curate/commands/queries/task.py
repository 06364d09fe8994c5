"""What is fixed before anything is written: the documents, the length asked of each, and the real queries shown.

Lengths follow those of the real queries: of every ten documents, one is asked for a length out of each tenth of them.
"""

import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self, get_args

from pydantic import model_validator

from curate.ask.llm_questions import Ask, AskedModel, QuestionClient, Talk
from curate.ask.personal_data import PersonalData
from curate.commands.queries import Config
from curate.core.config import check, digest, read_yaml, text_digest
from curate.core.errors import ConfigError
from curate.core.languages import base_language
from curate.core.messages import Reply, Request
from curate.core.progress import StepLabel, counting
from curate.core.records import Document
from curate.core.sampling import generator, shuffled
from curate.llm import parse
from curate.llm.passages import shown
from curate.llm.prompts import PromptTemplate, block, fence, json_object
from curate.llm.questions import Question, question
from curate.pipeline.stage import Context
from curate.retrieval.similarity.leaks import form
from curate.system import resources
from curate.system.corpus import TableCorpus
from curate.tables.readers.settings import LETTERS, OTHER, language

TENTHS = 10


@dataclass(frozen=True)
class DrawnDocument:
    """A document for which a query is to be written."""

    doc_id: str
    text: str
    """As models are shown it."""
    length: int
    """Characters that are asked for."""
    examples: Sequence[str]
    """Real queries that the writer is shown."""


@dataclass(frozen=True)
class DrawnTexts:
    """The documents in the order in which they were drawn, and what they were drawn from."""

    documents: Sequence[DrawnDocument]
    real: Mapping[str, str]
    """The real queries: id -> text; empty where there are none."""
    corpus: int
    too_short: int
    """Documents with fewer characters than `shortest`."""


def draw(config: Config, context: Context, lengths: tuple[int, int]) -> DrawnTexts:
    """Draw documents by seed, and for each a length and examples; `lengths` count where there are no real queries."""
    rows = context.read("diversify", "queries").select("query_id", "text").iter_rows()
    real = {query_id: text for query_id, text in rows if text.strip()}
    corpus = TableCorpus(context.folder("diversify"))
    usable = [document.doc_id for document in _documents(corpus) if len(document.shown().strip()) >= config.shortest]
    chosen = shuffled(sorted(usable), context.seed, "queries", "documents")[: config.drawn]
    there = frozenset(chosen)
    found = {document.doc_id: document for document in _documents(corpus) if document.doc_id in there}
    wanted = targets(sorted(map(len, real.values())), lengths, len(chosen), context.seed)
    label = StepLabel("drawing documents", "documents")
    documents = [
        DrawnDocument(
            doc_id,
            shown(found[doc_id], config.passage_tokens).text,
            wanted[at],
            examples(real, doc_id, config.examples, context.seed),
        )
        for at, doc_id in enumerate(counting(chosen, context.progress, label, len(chosen)))
    ]
    return DrawnTexts(documents, real, len(corpus), len(corpus) - len(usable))


def _documents(corpus: TableCorpus) -> Iterator[Document]:
    for batch in corpus.batches():
        yield from batch


def targets(real: Sequence[int], lengths: tuple[int, int], count: int, seed: int) -> list[int]:
    """Return a length per document: quantiles of the real lengths, sorted, in turn out of each tenth of them.

    Without real ones lengths are spread evenly between the two of `lengths`.
    """
    drawn, (least, most) = generator(seed, "queries", "lengths"), lengths
    found = []
    for number in range(count):
        place = (number % TENTHS + drawn.random()) / TENTHS
        length = real[int(place * len(real))] if real else round(least + place * (most - least))
        found.append(max(1, length))
    return found


def examples(real: Mapping[str, str], doc_id: str, count: int, seed: int) -> list[str]:
    """Return real queries for the prompt of one document, drawn by seed and document."""
    names = generator(seed, "queries", "examples", doc_id).sample(sorted(real), min(count, len(real)))
    return [real[name] for name in names]


def query_id(doc_id: str, text: str) -> str:
    """Return the id of a synthetic query: the same text of the same document has it in every run."""
    name = text_digest(f"{doc_id}\n{text}")
    return f"synthetic-{name[:12]}"


class LengthClasses:
    """Classes of length that hold about as many real queries each; equal lengths are in one class."""

    def __init__(self, real: Sequence[int], count: int) -> None:
        self.real = sorted(real)
        size = len(self.real)
        bounds = {self.real[min(size - 1, size * at // count)] for at in range(1, count)} if real else set[int]()
        self.bounds = sorted(bounds - {self.real[0]} if real else bounds)

    def of(self, length: int) -> int:
        """Return the class of a length, from 0; the lower bound is in the class."""
        return bisect.bisect_right(self.bounds, length)

    def shares(self, lengths: Sequence[int]) -> list[float]:
        """Return the share of lengths in each class; zeros where there are none."""
        counts = [0] * (len(self.bounds) + 1)
        for length in lengths:
            counts[self.of(length)] += 1
        return [count / len(lengths) if lengths else 0.0 for count in counts]


# How a model is asked for a query that a document answers, and how its reply is read: a JSON object with `query`.

KEY = "query"
WRITE, FILTER = "queries-write", "queries-filter"
GOOD = "good"
"""The answer of a filter that accepts a query."""
QueryRule = Literal["reply", "empty", "language", "length", "copied", "duplicate", "personal"]
RULES: tuple[QueryRule, ...] = get_args(QueryRule)
"""`reply`: no query could be read. They are tried in this order."""
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
    return resources.prompt(name, context.language)


# Rules that a synthetic query keeps: what can be checked without a model.

SPARE = 4
"""Characters by which a query may always differ from the length asked for."""


def longest_run(query: str, document: str) -> float:
    """Return the share of a query that its document has in one piece, 0 to 1: letters and digits alone count."""
    one, other = form(query), form(document)
    best = 0
    for start in range(len(one)):
        while start + best < len(one) and one[start : start + best + 1] in other:
            best += 1
    return best / len(one) if one else 0.0


@dataclass
class QueryRules:
    """Says which rule a query breaks; what it accepts counts as taken."""

    config: Config
    language: str
    """Of the script that queries are in; `OTHER` for all that are not told apart. Japanese may be kanji alone."""
    personal: PersonalData
    taken: set[str] = field(default_factory=set)
    """What no query may repeat, as `form` has it: real queries, and every query so far."""

    @classmethod
    def of(cls, config: Config, context: Context, real: set[str]) -> "QueryRules":
        """Return the rules of a run."""
        spoken = base_language(context.language)
        return cls(config, spoken if spoken in LETTERS else OTHER, PersonalData.of(context), real)

    def broken(self, query: str, document: DrawnDocument) -> QueryRule | None:
        """Return the first rule that a query breaks; None for one that breaks none, which is then taken."""
        plain = form(query)
        checks: Mapping[QueryRule, Callable[[], bool]] = {
            "empty": lambda: not any(map(str.isalnum, query)),
            "length": lambda: self._far(len(query), document.length),
            "language": lambda: language([query]) not in {self.language, "zh" if self.language == "ja" else ""},
            "copied": lambda: longest_run(query, document.text) > self.config.copied,
            "duplicate": lambda: plain in self.taken,
            "personal": lambda: self.personal.new(query, "") or self.personal.placeholder(query),
        }
        rule = next((name for name, breaks in checks.items() if breaks()), None)
        if rule is None:
            self.taken.add(plain)
        return rule

    def _far(self, length: int, asked: int) -> bool:
        return abs(length - asked) > max(self.config.length * asked, SPARE)


# Queries that a model writes, one per document; what breaks a rule is asked for again, and then given up.

REFUSED, FAILED = "the writer refused", "the writer gave no reply"
WHY: dict[QueryRule, str] = {
    "reply": "the reply was not one query in the form agreed upon",
    "empty": "the query was empty",
    "language": "the query was in another language",
    "length": "the query was too long or too short",
    "copied": "the query was copied from its document",
    "duplicate": "the query was there already",
    "personal": "the query held personal data, or a placeholder for it",
}
"""Rule -> why there is no query of a document, if the last attempt broke it."""


@dataclass(frozen=True)
class WrittenQuery:
    """A query that keeps to the rules, and at which attempt."""

    document: DrawnDocument
    text: str
    attempt: int


@dataclass
class QueryWriter:
    """Takes the first query of each document that keeps to the rules."""

    rules: QueryRules
    written: dict[str, WrittenQuery] = field(default_factory=dict)
    """Document -> its query."""
    lost: dict[str, str] = field(default_factory=dict)
    """Document -> why there is none."""
    broken: Counter[QueryRule] = field(default_factory=Counter)
    """How often a query broke a rule, at any attempt."""
    failed: int = 0
    """Questions that got no reply: the stage is not finished."""

    def write(
        self,
        documents: Sequence[DrawnDocument],
        model: AskedModel,
        prompt: QueryPrompt,
        desk: QuestionClient,
        again: int,
    ) -> None:
        """Have a model write; what breaks a rule is asked again, each time with what was wrong."""
        left: dict[str, tuple[DrawnDocument, list[QueryRule]]] = {
            document.doc_id: (document, []) for document in documents
        }
        thinking = model.settings.thinking_tokens
        for attempt in range(1, again + 2):
            if not left:
                return
            asks = {
                name: Ask(prompt.request(each.text, each.examples, each.length, rules, thinking), read)
                for name, (each, rules) in left.items()
            }
            label = f"queries.generator={model.name}"
            [answers] = desk.answers([Talk(label, model, prompt.digest, asks, QueryReply, attempt - 1)])
            if desk.dry:
                self._stand_in([each for name, (each, _) in left.items() if name not in answers])
            left = {
                name: (each, [rule])
                for name, (each, _) in left.items()
                if name in answers and (rule := self._read(each, answers[name], attempt))
            }

    def _read(self, document: DrawnDocument, answer: QueryReply, attempt: int) -> QueryRule | None:
        """Take a query; return the rule that it breaks, if it is to be asked for again."""
        if answer.status == "failed":
            self.failed += 1
        if answer.status in ("failed", "refused"):
            self.lost[document.doc_id] = FAILED if answer.status == "failed" else REFUSED
            return None
        rule = "reply" if answer.status == "unparsed" else self.rules.broken(answer.text, document)
        if rule is None:
            self.lost.pop(document.doc_id, None)
            self.written[document.doc_id] = WrittenQuery(document, answer.text, attempt)
        else:
            self.broken[rule] += 1
            self.lost[document.doc_id] = WHY[rule]
        return rule

    def _stand_in(self, documents: Sequence[DrawnDocument]) -> None:
        """Put part of the document in the place of queries that nobody has written yet, so that filters are planned."""
        self.written |= {
            document.doc_id: WrittenQuery(document, document.text[: document.length], 0) for document in documents
        }
