"""Paraphrases of queries, written by a model or from templates, and the rules that each must pass.

Rules check length, duplicates and personal data; the meaning is checked by the panel.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from curate.ask.llm_questions import Ask, AskedModel, QuestionClient, Talk
from curate.ask.personal_data import PERSONAL, PersonalData
from curate.commands.paraphrase.prompts import ParaphrasePrompt, ParaphraseReply, read
from curate.retrieval.similarity.leaks import form

MODEL = "model"
"""The way of a sentence by a model; the ways of templates are named after the pattern."""


@dataclass(frozen=True)
class WrittenSentence:
    """A sentence, the way in which it was written, and the attempt, from 1."""

    text: str
    way: str
    attempt: int = 1


@dataclass
class ParaphraseWriter:
    """Accepts for each query the first sentence that passes the rules."""

    length: float
    """Share of the query's code points by which a sentence may be longer or shorter."""
    taken: set[str]
    """Normalised texts (`form`) that no sentence may repeat: all queries, and every accepted sentence."""
    personal: PersonalData
    written: dict[str, WrittenSentence] = field(default_factory=dict)
    broken: Counter[str] = field(default_factory=Counter)
    """Rule -> number of violations; personal data also counts those of templates and edits."""
    disclosing: set[str] = field(default_factory=set)
    """Queries with a sentence that contained new personal data."""
    refused: set[str] = field(default_factory=set)
    failed: int = 0
    """Questions that got no reply: the stage is not finished."""

    def offline(self, sources: Mapping[str, str], rewordings: Callable[[str], Iterable[tuple[str, str]]]) -> None:
        """Write from templates: accept the first rewording that passes the rules."""
        for query_id, text in sources.items():
            for way, sentence in rewordings(text):
                if self._accept(query_id, text, WrittenSentence(sentence, way)) is None:
                    break

    def by_model(
        self,
        sources: Mapping[str, str],
        model: AskedModel,
        prompt: ParaphrasePrompt,
        client: QuestionClient,
        again: int,
    ) -> None:
        """Have a model write; after a broken rule, ask up to `again` more times, with the rule in the prompt."""
        broken_by_query: dict[str, list[str]] = {query_id: [] for query_id in sources}
        for attempt in range(1, again + 2):
            if not broken_by_query:
                return
            thinking = model.settings.thinking_tokens
            asks = {
                query_id: Ask(prompt.request(sources[query_id], rules, thinking), read)
                for query_id, rules in broken_by_query.items()
            }
            label = f"paraphrase.generator={model.name}"
            [answers] = client.answers([Talk(label, model, prompt.digest, asks, ParaphraseReply, attempt - 1)])
            if client.dry:
                # placeholders for unwritten sentences, so that the panel's requests can be planned
                unwritten = [query_id for query_id in broken_by_query if query_id not in answers]
                self.written |= {query_id: WrittenSentence(f"{sources[query_id]} ?", "open") for query_id in unwritten}
            broken_by_query = {
                query_id: [rule]
                for query_id in broken_by_query
                if query_id in answers
                and (rule := self._process_reply(query_id, sources[query_id], answers[query_id], attempt))
            }

    def _process_reply(self, query_id: str, query: str, answer: ParaphraseReply, attempt: int) -> str | None:
        """Process a reply; return the broken rule if the query is to be asked again."""
        if answer.status == "failed":
            self.failed += 1
        if answer.status == "refused":
            self.refused.add(query_id)
        if answer.status == "unparsed":
            self.broken["reply"] += 1
            return "reply"
        if answer.status != "written":
            return None
        rule = self._accept(query_id, query, WrittenSentence(answer.text, MODEL, attempt))
        if rule and rule != PERSONAL:
            self.broken[rule] += 1
        return rule

    def discloses(self, text: str, query: str) -> bool:
        """Whether a text contains personal data that its query does not; a hit is counted."""
        is_new = self.personal.new(text, query)
        self.broken[PERSONAL] += is_new
        return is_new

    def _accept(self, query_id: str, query: str, sentence: WrittenSentence) -> str | None:
        """Accept a sentence, or return the rule that it breaks."""
        normalised = form(sentence.text)
        if normalised == form(query):
            return "same"
        if normalised in self.taken or not normalised:
            return "duplicate"
        if abs(len(sentence.text) - len(query)) > max(self.length * len(query), 2):
            return "length"
        if self.discloses(sentence.text, query):
            self.disclosing.add(query_id)
            return PERSONAL
        self.taken.add(normalised)
        self.written[query_id] = sentence
        return None
