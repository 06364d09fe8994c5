"""Sentences of an STS set: rules of each kind, prompt and reply, choice of words, writer, and confirmation.

A positive contains the synonym and asks the same; a hard negative contains the synonym and asks something else; an easy
negative contains the query's own term and asks something else. Rules check words, length and form; the panel checks the
meaning. A reply is one JSON object, kind -> sentence; any other form is unparsed.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, get_args

from curate.ask.edits.question_templates import Wording
from curate.ask.edits.synonym_matcher import Lexer
from curate.ask.edits.synonyms import Entry
from curate.ask.panel import Panel
from curate.ask.personal_data import PERSONAL, PersonalData, told
from curate.ask.writing import WriterPrompt, WriterTask, Written, read
from curate.core.config import check, read_yaml
from curate.core.messages import Reply, Request
from curate.core.progress import StepLabel, counting
from curate.core.protocols import Progress, quiet
from curate.core.sampling import shuffled
from curate.llm.prompts import block, fence, json_object
from curate.llm.questions import Question
from curate.pipeline.stage import Context
from curate.system import resources

Kind = Literal["positive", "hard", "easy"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Rule = Literal["word", "other word", "length", "form", "same", "duplicate", "reply"]
RULES: tuple[Rule, ...] = get_args(Rule)
"""`reply`: no sentence could be parsed. The rule on personal data is separate and in no prompt."""
ANSWER_TOKENS = 600
LONGEST = 1000
"""Maximum code points of a sentence."""


@dataclass(frozen=True)
class RewritingTask:
    """A query, one of its words, and a synonym of it; words normalised by `synonyms.plain`."""

    query_id: str
    query: str
    term: str
    synonym: str

    def holds(self, kind: Kind) -> str:
        """Return the word that a sentence of a kind must contain."""
        return self.term if kind == "easy" else self.synonym

    def lacks(self, kind: Kind) -> str:
        """Return the word that a sentence of a kind must not contain."""
        return self.synonym if kind == "easy" else self.term


@dataclass(frozen=True)
class Rules:
    """Checks of a sentence that need no model."""

    lexer: Lexer
    asks: Callable[[str], bool]
    """Whether a text has the form of a question."""
    length: float = 0.3
    """Share of the query's code points by which a sentence may be longer or shorter."""

    def broken(self, task: RewritingTask, kind: Kind, text: str, taken: Collection[str] = ()) -> list[Rule]:
        """Return the rules that a sentence breaks; `taken` are the other sentences, normalised by `bare`."""
        words = {match.word for match in self.lexer.find(text)}
        size, bare_text = len(task.query), bare(text)
        broken_by_rule: dict[Rule, bool] = {
            "word": task.holds(kind) not in words,
            "other word": task.lacks(kind) in words,
            "length": not self.fits(size, len(text)),
            "form": self.asks(text) != self.asks(task.query),
            "same": bare_text == bare(task.query),
            "duplicate": bare_text in taken and bare_text != bare(task.query),
        }
        return [rule for rule in RULES if broken_by_rule.get(rule)]

    def fits(self, query: int, sentence: int) -> bool:
        """Whether the length of a sentence is close enough to that of its query, in code points."""
        return abs(sentence - query) <= self.length * query + 1e-9


def bare(text: str) -> str:
    """Normalise a text for comparison: half-width, lower case, letters and digits only."""
    return "".join(char for char in unicodedata.normalize("NFKC", text).lower() if char.isalnum())


class RewritingPrompt(WriterPrompt):
    """Prompt that asks a model to write the sentences of a query."""

    texts = frozenset({"query", "term", "synonym", "wanted", "broken"})
    all_kinds, all_rules = KINDS, RULES

    def request(
        self,
        task: RewritingTask,
        spelled: Mapping[str, str],
        broken: Mapping[Kind, Sequence[str]],
        thinking_tokens: int,
    ) -> Request:
        """Return the request for the kinds in `broken`: kind -> rules that its last sentence broke, may be empty."""
        term, synonym = spelled[task.term], spelled[task.synonym]
        code = fence([task.query, term, synonym])
        violations = [(kind, rule) for kind, rules in broken.items() for rule in rules]
        faults = [f"{kind}: {told(self.broken, [rule], self.language)}" for kind, rule in violations]
        texts = {"query": task.query, "term": term, "synonym": synonym}
        blocks = {
            **{name: block(name, code, text) for name, text in texts.items()},
            "wanted": ", ".join(broken),
            "broken": "\n".join(faults),
        }
        schema = json_object({kind: {"type": "string"} for kind in broken})
        return Request(self.turns(blocks), ANSWER_TOKENS + thinking_tokens, schema)


@dataclass(frozen=True)
class WantedSentences:
    """A query with its words, and the kinds of sentences to write, each with the rules that its last one broke."""

    task: RewritingTask
    broken: Mapping[Kind, Sequence[str]]


class SentencesTask(WriterTask[WantedSentences]):
    """Have a model write the sentences of a query, several kinds in one reply."""

    def __init__(self, prompt: RewritingPrompt, spelled: Mapping[str, str]) -> None:
        super().__init__("sts", prompt)
        self.prompt, self.spelled = prompt, spelled

    def request(self, item: WantedSentences, thinking_tokens: int) -> Request:
        """Return the request for the kinds that are open."""
        return self.prompt.request(item.task, self.spelled, item.broken, thinking_tokens)

    def read(self, item: WantedSentences, reply: Reply) -> Written:
        """Return the sentences of the kinds that were asked for, each of at most `LONGEST` code points on one line."""
        return read(reply, [*item.broken], _is_sentence)


def _is_sentence(text: str) -> bool:
    return bare(text) != "" and "\n" not in text.strip() and len(text) <= LONGEST


# Prompts by language.


def ends_in_a_mark(text: str) -> bool:
    """Whether a text has the form of a question, for languages without templates."""
    return text.rstrip().endswith(("?", "？"))


def generator_prompt(context: Context) -> RewritingPrompt:
    """Return the generator's prompt in the language of the run."""
    path = resources.prompt("sts-write", context.language)
    return check(RewritingPrompt, read_yaml(path), str(path))


# Construction: confirm words, write sentences, check rules, ask the panel.

YES, NO = "yes", "no"
MODEL = "model"
"""The way of a sentence by a model; the ways of templates are named after the pattern."""


class WritingSettings(Protocol):
    """Settings of the stage that the writer uses."""

    again: int
    edits: bool


@dataclass
class Sentence:
    """A sentence for a query, and the votes on it."""

    task: RewritingTask
    kind: Kind
    text: str
    way: str
    """`MODEL`, or the pattern of a template or an edit."""
    attempt: int = 1
    votes: dict[str, str | None] = field(default_factory=dict)
    """Judge -> yes (the same meaning), no, or None for no answer."""

    @property
    def outcome(self) -> str:
        """Return the outcome: kept, rejected, incomplete (a vote is missing), or unconfirmed (no votes)."""
        if not self.votes:
            return "unconfirmed"
        if None in self.votes.values():
            return "incomplete"
        confirming = {YES if self.kind == "positive" else NO}
        return "kept" if set(self.votes.values()) == confirming else "rejected"

    @property
    def usable(self) -> bool:
        """Whether the sentence may be selected: kept, or unconfirmed."""
        return self.outcome in ("kept", "unconfirmed")


@dataclass
class Draft:
    """All accepted sentences, and counts of the others."""

    sentences: list[Sentence] = field(default_factory=list)
    broken: Counter[str] = field(default_factory=Counter)
    """Rule -> number of violations."""
    disclosing: set[str] = field(default_factory=set)
    """Queries with a sentence that contained new personal data."""
    refused: set[str] = field(default_factory=set)
    """Queries that the generator refused."""
    failed: int = 0
    """Questions that got no reply: the stage is not finished."""


@dataclass(frozen=True)
class Choice:
    """Chosen word and synonym per query, and the queries without any."""

    tasks: list[RewritingTask]
    left_out: dict[str, str]
    """Query -> reason."""


def candidates(text: str, lexer: Lexer, rules: Rules) -> Iterator[tuple[str, str, Entry]]:
    """Yield (word, synonym, dictionary row) for words of a query and synonyms that it lacks and that fit in length."""
    counts = Counter(match.word for match in lexer.find(text))
    for word, times in sorted(counts.items()):
        for synonym, entry in lexer.partners[word]:
            size = len(text) + times * (len(lexer.spelled[synonym]) - len(word))
            if synonym not in counts and rules.fits(len(text), size):
                yield word, synonym, entry


def choose(queries: Sequence[tuple[str, str]], lexer: Lexer, rules: Rules, seed: int, most: int | None) -> Choice:
    """Return a task per query, with word and synonym by seed; of equal texts only the first is used."""
    tasks: list[RewritingTask] = []
    left_out: dict[str, str] = {}
    seen: set[str] = set()
    for query_id, text in queries:
        fitting = [(word, synonym) for word, synonym, _ in candidates(text, lexer, rules)]
        if bare(text) in seen:
            left_out[query_id] = "its text is that of another query"
        elif not lexer.find(text):
            left_out[query_id] = "no word of the dictionary"
        elif not fitting:
            left_out[query_id] = "no synonym that fits into its length and is not there already"
        else:
            tasks.append(RewritingTask(query_id, text, *shuffled(fitting, seed, "sts", query_id)[0]))
        seen.add(bare(text))
    chosen = tasks if most is None else shuffled(tasks, seed, "sts", "queries")[:most]
    chosen_ids = {task.query_id for task in chosen}
    left_out |= {task.query_id: "beyond sts.queries" for task in tasks if task.query_id not in chosen_ids}
    return Choice([task for task in tasks if task.query_id in chosen_ids], left_out)


def confirmed(entries: Sequence[Entry], panel: Panel, question: Question) -> dict[int, dict[str, str]]:
    """Return line -> judge -> answer (yes, no or a failure): whether both words of a dictionary row mean the same.

    With a dry panel, rows without a recorded answer are missing.
    """
    pairs = {str(entry.line): entry.spelled for entry in entries}
    return {int(line): vote for line, vote in panel.vote(question, pairs, "words").items()}


def confirm(sentences: Sequence[Sentence], panel: Panel, question: Question) -> int:
    """Set the votes of every sentence; return the number of failed questions."""
    pairs = {str(index): (sentence.task.query, sentence.text) for index, sentence in enumerate(sentences)}
    for sentence in sentences:
        sentence.votes = {model.name: None for model in panel.models}
    failed = 0
    for name, votes in panel.vote(question, pairs, "sentences").items():
        failed += list(votes.values()).count("failed")
        sentences[int(name)].votes = {judge: vote if vote in (YES, NO) else None for judge, vote in votes.items()}
    return failed


@dataclass
class SentenceWriter:
    """Writes sentences by a model, by templates, and optionally by small edits."""

    rules: Rules
    wording: Wording | None
    config: WritingSettings
    seed: int
    taken: set[str]
    """Texts normalised by `bare` that no sentence may repeat: queries, and every accepted sentence."""
    personal: PersonalData
    draft: Draft = field(default_factory=Draft)
    progress: Progress = quiet

    def offline(self, tasks: Sequence[RewritingTask], kinds: Sequence[Kind], *, templates: bool) -> None:
        """Write without a model: accept the first candidate that passes the rules; templates only if `templates`."""
        for task in counting(tasks, self.progress, StepLabel("writing sentences", "queries"), len(tasks)):
            for kind in kinds:
                for way, text in self._attempts(task, kind, templates=templates):
                    if not self._accept(task, kind, text, way):
                        break

    def _attempts(self, task: RewritingTask, kind: Kind, *, templates: bool) -> Iterator[tuple[str, str]]:
        assert self.wording is not None  # the fingerprint refuses other languages
        pieces = self.rules.lexer.apart(task.query, task.term)
        word = self.rules.lexer.spelled[task.holds(kind)]
        if kind == "positive":
            yield from self.wording.positives(pieces, word, self.seed)
            return
        if self.config.edits:
            yield from self.wording.edited(pieces, word, self.seed)
        if templates:
            yield from self.wording.others(task.query, word, self.seed)

    def by_model(self, tasks: Sequence[RewritingTask], prompt: RewritingPrompt, panel: Panel) -> None:
        """Have the writer write the missing sentences; after a broken rule, ask again, with the rule in the prompt."""
        written = {(sentence.task.query_id, sentence.kind) for sentence in self.draft.sentences}
        items_by_query = {
            task.query_id: WantedSentences(task, {kind: () for kind in KINDS if (task.query_id, kind) not in written})
            for task in tasks
        }
        items = {query_id: item for query_id, item in items_by_query.items() if item.broken}
        task = SentencesTask(prompt, self.rules.lexer.spelled)
        panel.write(task, items, self.config.again, self._take, self._draft)

    def _draft(self, item: WantedSentences) -> None:
        """Put placeholders for unwritten sentences, so that the panel's requests can be planned."""
        task = item.task
        self.draft.sentences += [Sentence(task, kind, f"{task.query} ({kind})", "open") for kind in item.broken]

    def _take(self, item: WantedSentences, answer: Written, attempt: int) -> WantedSentences | None:
        """Accept the valid sentences of a reply; return the kinds to request again with their broken rules."""
        if answer.status == "failed":
            self.draft.failed += 1
        if answer.status == "refused":
            self.draft.refused.add(item.task.query_id)
        if answer.status == "unparsed":
            self.draft.broken["reply"] += 1
            return replace(item, broken=dict.fromkeys(item.broken, ("reply",)))
        texts: Mapping[Kind, str] = {kind: answer.texts[kind] for kind in item.broken if kind in answer.texts}
        broken_by_kind = {
            kind: tuple(self._accept(item.task, kind, text, MODEL, attempt)) for kind, text in texts.items()
        }
        broken = {kind: rules for kind, rules in broken_by_kind.items() if rules}
        return replace(item, broken=broken) if broken else None

    def _accept(self, task: RewritingTask, kind: Kind, text: str, way: str, attempt: int = 1) -> list[str]:
        """Accept a sentence, or return the rules that it breaks; empty if accepted."""
        broken: list[str] = [*self.rules.broken(task, kind, text, self.taken)]
        if not broken and self.personal.new(text, task.query):
            broken = [PERSONAL]
            self.draft.disclosing.add(task.query_id)
        if not broken:
            self.taken.add(bare(text))
            self.draft.sentences.append(Sentence(task, kind, text, way, attempt))
        elif way == MODEL or broken == [PERSONAL]:
            self.draft.broken.update(broken)
        return broken
