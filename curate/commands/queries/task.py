"""Writing of synthetic queries: documents, target lengths and examples drawn; prompt, reply, rules, and the writer.

Target lengths follow the real queries: of every ten documents, one gets a length from each decile.
"""

import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from curate.ask.panel import Panel
from curate.ask.personal_data import PersonalData
from curate.ask.writing import WriterPrompt, WriterTask, Written, read
from curate.commands.queries import Config
from curate.core.config import check, read_yaml, text_digest
from curate.core.errors import ConfigError
from curate.core.languages import base_language
from curate.core.messages import Reply, Request
from curate.core.progress import StepLabel, counting
from curate.core.records import Document
from curate.core.sampling import generator, shuffled
from curate.llm.passages import shown
from curate.llm.prompts import block, fence, json_object
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
    """Text in the prompts, truncated to `passage_tokens`."""
    length: int
    """Target length in characters."""
    examples: Sequence[str]
    """Real queries in the writer's prompt."""


@dataclass(frozen=True)
class DrawnTexts:
    """The drawn documents in order, and their sources."""

    documents: Sequence[DrawnDocument]
    real: Mapping[str, str]
    """The real queries: id -> text; empty where there are none."""
    corpus: int
    too_short: int
    """Documents with fewer characters than `shortest`."""


def draw(config: Config, context: Context, lengths: tuple[int, int]) -> DrawnTexts:
    """Draw documents by seed, each with a length and examples; `lengths` is the range without real queries."""
    rows = context.queries.select("query_id", "text").iter_rows()
    real = {query_id: text for query_id, text in rows if text.strip()}
    corpus = context.corpus
    usable = [document.doc_id for document in _documents(corpus) if len(document.shown().strip()) >= config.shortest]
    chosen = shuffled(sorted(usable), context.seed, "queries", "documents")[: config.drawn]
    chosen_ids = frozenset(chosen)
    document_by_id = {document.doc_id: document for document in _documents(corpus) if document.doc_id in chosen_ids}
    target_lengths = targets(sorted(map(len, real.values())), lengths, len(chosen), context.seed)
    label = StepLabel("drawing documents", "documents")
    documents = [
        DrawnDocument(
            doc_id,
            shown(document_by_id[doc_id], config.passage_tokens).text,
            target_lengths[index],
            examples(real, doc_id, config.examples, context.seed),
        )
        for index, doc_id in enumerate(counting(chosen, context.progress, label, len(chosen)))
    ]
    return DrawnTexts(documents, real, len(corpus), len(corpus) - len(usable))


def _documents(corpus: TableCorpus) -> Iterator[Document]:
    for batch in corpus.batches():
        yield from batch


def targets(real: Sequence[int], lengths: tuple[int, int], count: int, seed: int) -> list[int]:
    """Return a target length per document: random quantiles of `real` (sorted), cycling through the deciles.

    Without real lengths, uniform between the two `lengths`, also cycling through tenths.
    """
    randomness, (least, most) = generator(seed, "queries", "lengths"), lengths
    target_lengths = []
    for number in range(count):
        quantile = (number % TENTHS + randomness.random()) / TENTHS
        length = real[int(quantile * len(real))] if real else round(least + quantile * (most - least))
        target_lengths.append(max(1, length))
    return target_lengths


def examples(real: Mapping[str, str], doc_id: str, count: int, seed: int) -> list[str]:
    """Return real queries for the prompt of one document, drawn by seed and document."""
    names = generator(seed, "queries", "examples", doc_id).sample(sorted(real), min(count, len(real)))
    return [real[name] for name in names]


def query_id(doc_id: str, text: str) -> str:
    """Return the id of a synthetic query, a digest of document id and text, stable between runs."""
    name = text_digest(f"{doc_id}\n{text}")
    return f"synthetic-{name[:12]}"


class LengthClasses:
    """Length classes with about equal numbers of real queries; equal lengths are in one class."""

    def __init__(self, real: Sequence[int], count: int) -> None:
        self.real = sorted(real)
        size = len(self.real)
        bounds = (
            {self.real[min(size - 1, size * number // count)] for number in range(1, count)} if real else set[int]()
        )
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


# Prompt for a query that a document answers, and parser of its reply: a JSON object with `query`.

KEY = "query"
WRITE, FILTER = "queries-write", "queries-filter"
GOOD = "good"
"""The answer of a filter that accepts a query."""
QueryRule = Literal["reply", "empty", "language", "length", "copied", "duplicate", "personal"]
RULES: tuple[QueryRule, ...] = get_args(QueryRule)
"""Rules, in the order of the checks; `reply`: no query could be parsed."""
ANSWER_TOKENS = 400
PER_CHARACTER = 3
"""Tokens of a reply per character of the target length, if this exceeds `ANSWER_TOKENS`."""


class QueryPrompt(WriterPrompt):
    """Prompt that asks for a query."""

    texts = frozenset({"document", "examples", "length", "broken"})
    all_kinds, all_rules = (KEY,), RULES

    lengths: tuple[int, int]
    """Minimum and maximum characters of a query without real queries."""

    def request(
        self, document: str, examples: Sequence[str], length: int, broken: Sequence[QueryRule], thinking_tokens: int
    ) -> Request:
        """Return the request for a query of about `length` characters in the style of the examples."""
        code = fence([document, *examples])
        example_blocks = [block(f"example{number}", code, text) for number, text in enumerate(examples, 1)]
        blocks = {
            "document": block("document", code, document),
            "examples": "\n".join(example_blocks),
            "length": str(length),
            "broken": "\n".join(self.broken[rule].strip() for rule in broken),
        }
        max_tokens = max(ANSWER_TOKENS, PER_CHARACTER * length) + thinking_tokens
        return Request(self.turns(blocks), max_tokens, json_object({KEY: {"type": "string"}}))


@dataclass(frozen=True)
class WantedQuery:
    """A document to write a query about, and the rules that the last query broke."""

    document: DrawnDocument
    broken: tuple[QueryRule, ...] = ()


class QueryTask(WriterTask[WantedQuery]):
    """Have a model write a query that a document answers."""

    def __init__(self, prompt: QueryPrompt) -> None:
        super().__init__("queries", prompt)
        self.prompt = prompt

    def request(self, item: WantedQuery, thinking_tokens: int) -> Request:
        """Return the request, with the broken rules in the prompt."""
        document = item.document
        return self.prompt.request(document.text, document.examples, document.length, item.broken, thinking_tokens)

    def read(self, _item: WantedQuery, reply: Reply) -> Written:
        """Return the query, of one line; it may be empty."""
        return read(reply, (KEY,), lambda text: len(text.strip().splitlines()) <= 1)


def writing(context: Context) -> QueryPrompt:
    """Return the writer's prompt in the language of the run."""
    path = _file(context, WRITE)
    return check(QueryPrompt, read_yaml(path), str(path))


def filtering(context: Context) -> Question:
    """Return the question for the filters; ConfigError if `good` is not among its answers."""
    path = _file(context, FILTER)
    filter_question = question(read_yaml(path), str(path))
    if GOOD not in filter_question.labels:
        raise ConfigError(f"{path}: labels: found {', '.join(filter_question.labels)}; expected {GOOD!r} among them")
    return filter_question


def _file(context: Context, name: str) -> Path:
    return resources.prompt(name, context.language)


# Rules for a synthetic query that need no model.

SPARE = 4
"""Characters by which a query may always differ from its target length."""


def longest_run(query: str, document: str) -> float:
    """Return the longest common substring of query and document, as a share of the query's letters and digits."""
    query_form, document_form = form(query), form(document)
    longest = 0
    for start in range(len(query_form)):
        while start + longest < len(query_form) and query_form[start : start + longest + 1] in document_form:
            longest += 1
    return longest / len(query_form) if query_form else 0.0


@dataclass
class QueryRules:
    """Checks queries; an accepted query may not be repeated."""

    config: Config
    language: str
    """Language by script; `OTHER` for scripts that are not distinguished. A Japanese query may be kanji only."""
    personal: PersonalData
    taken: set[str] = field(default_factory=set)
    """Normalised texts (`form`) that no query may repeat: real queries, and every accepted query."""

    @classmethod
    def of(cls, config: Config, context: Context, real: set[str]) -> "QueryRules":
        """Return the rules of a run."""
        tag = base_language(context.language)
        return cls(config, tag if tag in LETTERS else OTHER, PersonalData.of(context), real)

    def broken(self, query: str, document: DrawnDocument) -> QueryRule | None:
        """Return the first rule that a query breaks; None if it is accepted."""
        normalised = form(query)
        checks: Mapping[QueryRule, Callable[[], bool]] = {
            "empty": lambda: not any(map(str.isalnum, query)),
            "length": lambda: abs(len(query) - document.length) > max(self.config.length * document.length, SPARE),
            "language": lambda: language([query]) not in {self.language, "zh" if self.language == "ja" else ""},
            "copied": lambda: longest_run(query, document.text) > self.config.copied,
            "duplicate": lambda: normalised in self.taken,
            "personal": lambda: self.personal.new(query, "") or self.personal.placeholder(query),
        }
        rule = next((name for name, breaks in checks.items() if breaks()), None)
        if rule is None:
            self.taken.add(normalised)
        return rule


# Writer: one query per document; after a broken rule the model is asked again, up to a limit.

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
"""Rule -> reason in `dropped`, if the last attempt broke it."""


@dataclass(frozen=True)
class WrittenQuery:
    """An accepted query, and its attempt, from 1."""

    document: DrawnDocument
    text: str
    attempt: int


@dataclass
class QueryWriter:
    """Accepts for each document the first query that passes the rules."""

    rules: QueryRules
    written: dict[str, WrittenQuery] = field(default_factory=dict)
    """Document -> its query."""
    lost: dict[str, str] = field(default_factory=dict)
    """Document -> reason why it has no query."""
    broken: Counter[QueryRule] = field(default_factory=Counter)
    """Rule -> number of violations, over all attempts."""
    failed: int = 0
    """Questions that got no reply: the stage is not finished."""

    def write(self, documents: Sequence[DrawnDocument], prompt: QueryPrompt, panel: Panel, again: int) -> None:
        """Have the writer write; after a broken rule, ask up to `again` more times, with the rule in the prompt."""
        items = {document.doc_id: WantedQuery(document) for document in documents}
        panel.write(QueryTask(prompt), items, again, self._take, self._draft)

    def _draft(self, item: WantedQuery) -> None:
        """Put a placeholder for an unwritten query, so that the filters' requests can be planned."""
        document = item.document
        self.written[document.doc_id] = WrittenQuery(document, document.text[: document.length], 0)

    def _take(self, item: WantedQuery, answer: Written, attempt: int) -> WantedQuery | None:
        """Process a reply; return the document with the broken rule if it is to be asked about again."""
        document = item.document
        if answer.status == "failed":
            self.failed += 1
        if answer.status in ("failed", "refused"):
            self.lost[document.doc_id] = FAILED if answer.status == "failed" else REFUSED
            return None
        rule = "reply" if answer.status == "unparsed" else self.rules.broken(answer.texts[KEY], document)
        if rule is None:
            self.lost.pop(document.doc_id, None)
            self.written[document.doc_id] = WrittenQuery(document, answer.texts[KEY], attempt)
        else:
            self.broken[rule] += 1
            self.lost[document.doc_id] = WHY[rule]
        return None if rule is None else replace(item, broken=(rule,))
