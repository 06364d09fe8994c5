"""Queries that a model writes, one per document; what breaks a rule is asked for again, and then given up."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from curate.ask.llm_questions import Ask, AskedModel, QuestionClient, Talk
from curate.commands.queries.drawing import DrawnDocument
from curate.commands.queries.prompts import QueryPrompt, QueryReply, QueryRule, read
from curate.commands.queries.rules import QueryRules

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
        left: dict[str, tuple[DrawnDocument, list[QueryRule]]] = {each.doc_id: (each, []) for each in documents}
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
        self.written |= {each.doc_id: WrittenQuery(each, each.text[: each.length], 0) for each in documents}
