"""What is put to a model about sampled pairs: planned, paid once, read again from the ledger by `llm_questions`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from curate.ask.llm_questions import Ask, AskedModel, QuestionClient, Talk
from curate.core.config import text_digest
from curate.llm import questions
from curate.llm.questions import Question, Said

PURPOSE = "analyze"


@dataclass(frozen=True)
class SampledPair:
    """A pair that is asked about, with its texts as they are shown."""

    query_id: str
    doc_id: str
    query: str
    passage: str
    grades: tuple[str, ...] = ()
    """What the judges gave, nameless."""


@dataclass(frozen=True)
class Inquiry:
    """One question about a sample."""

    question: Question
    items: tuple[SampledPair, ...]
    population: int
    """From how many pairs or queries the sample was drawn."""

    def talk(self, model: AskedModel) -> Talk[Said]:
        """Return what a model is asked, by the place of each item."""
        asks = {str(place): self._ask(item, model.settings.thinking_tokens) for place, item in enumerate(self.items)}
        return Talk(self.question.name, model, self.question.digest, asks, Said)

    def _ask(self, item: SampledPair, thinking_tokens: int) -> Ask[Said]:
        request = questions.build(
            self.question, item.query, item.passage, grades=item.grades, thinking_tokens=thinking_tokens
        )
        slots = (text_digest(item.passage),)
        return Ask(request, partial(questions.read, self.question), text_digest(item.query), slots)


def said(model: AskedModel, inquiries: Sequence[Inquiry], desk: QuestionClient) -> list[list[tuple[SampledPair, Said]]]:
    """Return the items of each inquiry with what was said of them, one inquiry after the other.

    A dry desk plans what was never answered, and leaves it out.
    """
    found = []
    for inquiry in inquiries:
        (answers,) = desk.answers([inquiry.talk(model)])
        found.append([(item, answers[str(at)]) for at, item in enumerate(inquiry.items) if str(at) in answers])
    return found
