"""Paraphrases of queries, written by a model or from templates, and the rules that each must pass.

Rules check length, duplicates and personal data; the meaning is checked by the panel.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from curate.ask.panel import Panel
from curate.ask.personal_data import PERSONAL, PersonalData
from curate.ask.writing import Written
from curate.commands.paraphrase.prompts import KEY, ParaphrasePrompt, ParaphraseTask, WantedParaphrase
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

    def by_model(self, sources: Mapping[str, str], prompt: ParaphrasePrompt, panel: Panel, again: int) -> None:
        """Have the writer write; after a broken rule, ask up to `again` more times, with the rule in the prompt."""
        items = {query_id: WantedParaphrase(query_id, text) for query_id, text in sources.items()}
        panel.write(ParaphraseTask(prompt), items, again, self._take, self._draft)

    def _draft(self, item: WantedParaphrase) -> None:
        """Put a placeholder for an unwritten sentence, so that the panel's requests can be planned."""
        self.written[item.query_id] = WrittenSentence(f"{item.query} ?", "open")

    def _take(self, item: WantedParaphrase, answer: Written, attempt: int) -> WantedParaphrase | None:
        """Process a reply; return the query with the broken rule if it is to be asked about again."""
        if answer.status == "failed":
            self.failed += 1
        if answer.status == "refused":
            self.refused.add(item.query_id)
        if answer.status == "unparsed":
            self.broken["reply"] += 1
            return replace(item, broken=("reply",))
        if answer.status != "written":
            return None
        rule = self._accept(item.query_id, item.query, WrittenSentence(answer.texts[KEY], MODEL, attempt))
        if rule and rule != PERSONAL:
            self.broken[rule] += 1
        return replace(item, broken=(rule,)) if rule else None

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
