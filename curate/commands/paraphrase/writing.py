"""Paraphrases of queries: written by a model, or without one from synonyms and other words for the same.

Rules see length and equal texts; whether the meaning is the same they cannot see, a panel can.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from curate.ask.llm_questions import Ask, AskedModel, QuestionClient, Talk
from curate.ask.personal_data import PERSONAL, PersonalData
from curate.commands.paraphrase.prompts import ParaphrasePrompt, ParaphraseReply, read
from curate.retrieval.similarity.leaks import form

MODEL = "model"
"""The way of a sentence that a model wrote; others are named after what was done."""


@dataclass(frozen=True)
class WrittenSentence:
    """A sentence, how it came to be, and at which attempt."""

    text: str
    way: str
    attempt: int = 1


@dataclass
class ParaphraseWriter:
    """Takes the first sentence beside each query that keeps to the rules."""

    length: float
    """Share of the query's code points by which a sentence may be longer or shorter."""
    taken: set[str]
    """What no sentence may repeat, as `form` has it: all queries, and every sentence so far."""
    personal: PersonalData
    written: dict[str, WrittenSentence] = field(default_factory=dict)
    broken: Counter[str] = field(default_factory=Counter)
    """How often a model's sentence broke a rule, and any sentence or edit that on personal data."""
    disclosing: set[str] = field(default_factory=set)
    """Queries beside which a sentence held personal data."""
    refused: set[str] = field(default_factory=set)
    failed: int = 0
    """Questions that got no reply: the stage is not finished."""

    def offline(self, sources: Mapping[str, str], rewordings: Callable[[str], Iterable[tuple[str, str]]]) -> None:
        """Write without a model: the first rewording that keeps to the rules."""
        for query_id, text in sources.items():
            for way, sentence in rewordings(text):
                if self._take(query_id, text, WrittenSentence(sentence, way)) is None:
                    break

    def by_model(
        self,
        sources: Mapping[str, str],
        model: AskedModel,
        prompt: ParaphrasePrompt,
        desk: QuestionClient,
        again: int,
    ) -> None:
        """Have a model write; what breaks a rule is asked again, each time with what was wrong."""
        left: dict[str, list[str]] = {query_id: [] for query_id in sources}
        for attempt in range(1, again + 2):
            if not left:
                return
            thinking = model.settings.thinking_tokens
            asks = {
                query_id: Ask(prompt.request(sources[query_id], rules, thinking), read)
                for query_id, rules in left.items()
            }
            label = f"paraphrase.generator={model.name}"
            [answers] = desk.answers([Talk(label, model, prompt.digest, asks, ParaphraseReply, attempt - 1)])
            if desk.dry:
                self._stand_in({query_id: sources[query_id] for query_id in left if query_id not in answers})
            left = {
                query_id: [rule]
                for query_id in left
                if query_id in answers and (rule := self._read(query_id, sources[query_id], answers[query_id], attempt))
            }

    def _read(self, query_id: str, query: str, answer: ParaphraseReply, attempt: int) -> str | None:
        """Take a sentence; return the rule that it breaks, if it is to be asked for again."""
        if answer.status == "failed":
            self.failed += 1
        if answer.status == "refused":
            self.refused.add(query_id)
        if answer.status == "unparsed":
            self.broken["reply"] += 1
            return "reply"
        if answer.status != "written":
            return None
        rule = self._take(query_id, query, WrittenSentence(answer.text, MODEL, attempt))
        if rule and rule != PERSONAL:
            self.broken[rule] += 1
        return rule

    def discloses(self, text: str, query: str) -> bool:
        """Say whether a text holds personal data that its query does not; it is counted."""
        found = self.personal.new(text, query)
        self.broken[PERSONAL] += found
        return found

    def _take(self, query_id: str, query: str, sentence: WrittenSentence) -> str | None:
        """Take a sentence, or return the rule that it breaks."""
        plain = form(sentence.text)
        if plain == form(query):
            return "same"
        if plain in self.taken or not plain:
            return "duplicate"
        if abs(len(sentence.text) - len(query)) > max(self.length * len(query), 2):
            return "length"
        if self.discloses(sentence.text, query):
            self.disclosing.add(query_id)
            return PERSONAL
        self.taken.add(plain)
        self.written[query_id] = sentence
        return None

    def _stand_in(self, sources: Mapping[str, str]) -> None:
        """Put the query in the place of sentences that nobody has written yet, so that the panel can be planned."""
        self.written |= {query_id: WrittenSentence(f"{text} ?", "open") for query_id, text in sources.items()}
