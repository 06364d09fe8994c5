"""Sentences written by a language model beside a query: what each kind must contain, and how it is asked for.

A positive holds the synonym and asks the same; a hard negative holds the synonym and asks something else; an easy one
holds the query's own term and asks something else. Rules see words, length and form; whether the meaning is right they
cannot see, a panel can. A reply is one JSON object, kind -> sentence; a reply in any other form is no sentence.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, Self, get_args

from pydantic import model_validator

from curate.ask.edits.question_templates import Wording
from curate.ask.edits.synonym_matcher import Lexer
from curate.ask.edits.synonyms import Entry
from curate.ask.llm_questions import Ask, AskedModel, QuestionClient, Talk
from curate.ask.panel import ask_panel
from curate.ask.personal_data import PERSONAL, PersonalData, told
from curate.core.config import Json, check, digest, read_yaml
from curate.core.messages import Reply, Request
from curate.core.progress import StepLabel, counting
from curate.core.protocols import Progress, quiet
from curate.core.sampling import shuffled
from curate.llm import parse
from curate.llm.prompts import PromptTemplate, block, fence, json_object
from curate.llm.questions import Question, question
from curate.pipeline.stage import Context
from curate.system import resources

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


# What an STS set is made with and lies outside of the run: prompts, by language.


def ends_in_a_mark(text: str) -> bool:
    """Say whether a text has the form of a question, in a language without a wording."""
    return text.rstrip().endswith(("?", "？"))


def _file(context: Context, name: str) -> Path:
    return resources.prompt(f"sts-{name}", context.language)


def generator_prompt(context: Context) -> RewritingPrompt:
    """Return how a model is asked for sentences."""
    path = _file(context, "write")
    return prompt(read_yaml(path), str(path))


def panel_question(context: Context, name: str) -> Question:
    """Return what the panel is asked of `words` or of `sentences`."""
    path = _file(context, name)
    return question(read_yaml(path), str(path))


# How the sentences of an STS set come to be: words confirmed, sentences written, checked by rule, put to a panel.

YES, NO = "yes", "no"
MODEL = "model"
"""The way of a sentence that a model wrote; others are named after what was done."""


class WritingSettings(Protocol):
    """What the settings of the stage say of writing."""

    again: int
    edits: bool


@dataclass
class Sentence:
    """What was written beside a query, and what the panel said of it."""

    task: RewritingTask
    kind: Kind
    text: str
    way: str
    """`MODEL`, or what was done without one."""
    attempt: int = 1
    votes: dict[str, str | None] = field(default_factory=dict)
    """Judge -> yes (the same meaning), no, or None for no answer."""

    @property
    def outcome(self) -> str:
        """Return kept, rejected, incomplete, or unconfirmed where nobody was asked."""
        if not self.votes:
            return "unconfirmed"
        if None in self.votes.values():
            return "incomplete"
        wanted = {YES if self.kind == "positive" else NO}
        return "kept" if set(self.votes.values()) == wanted else "rejected"

    @property
    def usable(self) -> bool:
        """Say whether it may stand in the set."""
        return self.outcome in ("kept", "unconfirmed")


@dataclass
class Draft:
    """All sentences, and what became of those that are not there."""

    sentences: list[Sentence] = field(default_factory=list)
    broken: Counter[str] = field(default_factory=Counter)
    """How often a sentence broke a rule."""
    disclosing: set[str] = field(default_factory=set)
    """Queries beside which a sentence held personal data."""
    refused: set[str] = field(default_factory=set)
    """Queries that the generator refused."""
    failed: int = 0
    """Questions that got no reply: the stage is not finished."""


@dataclass(frozen=True)
class Choice:
    """Which word of which query gives way to which, and why other queries have none."""

    tasks: list[RewritingTask]
    left_out: dict[str, str]
    """Query -> reason."""


def candidates(text: str, lexer: Lexer, rules: Rules) -> Iterator[tuple[str, str, Entry]]:
    """Yield word, synonym and row per word of a query that a synonym of fitting length can take the place of."""
    places = Counter(each.word for each in lexer.find(text))
    for word, times in sorted(places.items()):
        for synonym, entry in lexer.partners[word]:
            size = len(text) + times * (len(lexer.spelled[synonym]) - len(word))
            if synonym not in places and rules.fits(len(text), size):
                yield word, synonym, entry


def choose(queries: Sequence[tuple[str, str]], lexer: Lexer, rules: Rules, seed: int, most: int | None) -> Choice:
    """Return a task per query, its word and synonym by seed; equal texts are one query, the first."""
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
    kept = {task.query_id for task in chosen}
    left_out |= {task.query_id: "beyond sts.queries" for task in tasks if task.query_id not in kept}
    return Choice([task for task in tasks if task.query_id in kept], left_out)


def confirmed(
    entries: Sequence[Entry], panel: Sequence[AskedModel], question: Question, desk: QuestionClient
) -> dict[int, dict[str, str]]:
    """Return line -> judge -> yes, no or why there is no answer to whether both words of a row mean the same.

    Rows that a dry desk left open are not there.
    """
    pairs = {str(entry.line): entry.spelled for entry in entries}
    votes = ask_panel(pairs, panel, question, desk, "words")
    return {int(line): vote for line, vote in votes.items()}


def confirm(
    sentences: Sequence[Sentence], panel: Sequence[AskedModel], question: Question, desk: QuestionClient
) -> int:
    """Note what every judge says of every sentence; return how many questions failed."""
    pairs = {str(at): (sentence.task.query, sentence.text) for at, sentence in enumerate(sentences)}
    for sentence in sentences:
        sentence.votes = {model.name: None for model in panel}
    failed = 0
    for name, votes in ask_panel(pairs, panel, question, desk, "sentences").items():
        failed += list(votes.values()).count("failed")
        sentences[int(name)].votes = {judge: vote if vote in (YES, NO) else None for judge, vote in votes.items()}
    return failed


@dataclass
class SentenceWriter:
    """Writes the sentences: by a model, by templates, and by small edits where those are wanted."""

    rules: Rules
    wording: Wording | None
    config: WritingSettings
    seed: int
    taken: set[str]
    """What no sentence may repeat: the queries, and every sentence so far, as `bare` has them."""
    personal: PersonalData
    draft: Draft = field(default_factory=Draft)
    progress: Progress = quiet

    def offline(self, tasks: Sequence[RewritingTask], kinds: Sequence[Kind], *, templates: bool) -> None:
        """Write what needs no model: the first try that keeps to the rules; templates only where they are wanted."""
        for task in counting(tasks, self.progress, StepLabel("writing sentences", "queries"), len(tasks)):
            for kind in kinds:
                for way, text in self._tries(task, kind, templates=templates):
                    if not self._take(task, kind, text, way):
                        break

    def _tries(self, task: RewritingTask, kind: Kind, *, templates: bool) -> Iterator[tuple[str, str]]:
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

    def by_model(
        self, tasks: Sequence[RewritingTask], model: AskedModel, prompt: RewritingPrompt, desk: QuestionClient
    ) -> None:
        """Have a model write what is missing; what breaks a rule is asked again, each time with what was wrong."""
        done = {(sentence.task.query_id, sentence.kind) for sentence in self.draft.sentences}
        first: dict[RewritingTask, dict[Kind, list[str]]] = {
            task: {kind: [] for kind in KINDS if (task.query_id, kind) not in done} for task in tasks
        }
        open_ = {task: kinds for task, kinds in first.items() if kinds}
        for attempt in range(1, self.config.again + 2):
            if not open_:
                return
            answers = self._ask(open_, model, prompt, desk, attempt - 1)
            unanswered = [task for task in open_ if task.query_id not in answers]
            if desk.dry:
                self._stand_in({task: open_[task] for task in unanswered})
            open_ = {
                task: left
                for task, kinds in open_.items()
                if task.query_id in answers and (left := self._read(task, kinds, answers[task.query_id], attempt))
            }

    def _ask(
        self,
        open_: Mapping[RewritingTask, Mapping[Kind, Sequence[str]]],
        model: AskedModel,
        prompt: RewritingPrompt,
        desk: QuestionClient,
        times: int,
    ) -> dict[str, RewritingReply]:
        spelled, thinking = self.rules.lexer.spelled, model.settings.thinking_tokens
        asks = {
            task.query_id: Ask(prompt.request(task, spelled, kinds, thinking), partial(read, list(kinds)))
            for task, kinds in open_.items()
        }
        return desk.answers([Talk(f"sts.generator={model.name}", model, prompt.digest, asks, RewritingReply, times)])[0]

    def _read(
        self, task: RewritingTask, kinds: Mapping[Kind, Sequence[str]], answer: RewritingReply, attempt: int
    ) -> dict[Kind, list[str]]:
        """Take what keeps to the rules; return what is to be asked again, and why."""
        if answer.status == "failed":
            self.draft.failed += 1
        if answer.status == "refused":
            self.draft.refused.add(task.query_id)
        if answer.status == "unparsed":
            self.draft.broken["reply"] += 1
            return {kind: ["reply"] for kind in kinds}
        left = {kind: self._take(task, kind, text, MODEL, attempt) for kind, text in answer.sentences.items()}
        return {kind: rules for kind, rules in left.items() if rules}

    def _take(self, task: RewritingTask, kind: Kind, text: str, way: str, attempt: int = 1) -> list[str]:
        """Take a sentence; return the rules that it breaks, if it cannot be taken."""
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

    def _stand_in(self, open_: Mapping[RewritingTask, Mapping[Kind, Sequence[str]]]) -> None:
        """Put the query in the place of sentences that nobody has written yet, so that the panel can be planned."""
        self.draft.sentences += [
            Sentence(task, kind, f"{task.query} ({kind})", "open") for task, kinds in open_.items() for kind in kinds
        ]
