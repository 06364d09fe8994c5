"""Judge by a language model: request and reply of a prompt, and models by their names in a pipeline; sends nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curate.ask.judges import JUDGES
from curate.core.config import Json, Settings, check
from curate.core.errors import ConfigError, suggestion
from curate.core.messages import Reply, Request
from curate.core.records import Outcome
from curate.llm.parse import Parsed, parse
from curate.llm.prompts import Rubric, labels, messages, schema
from curate.llm.providers import PROVIDERS
from curate.llm.providers.presets import LanguageModel, complete, presets

TOKENS_A_GRADE = 16
"""Room for one item of the reply: label, grade, quotes, indentation; about twice what vendors' tokenizers need."""
TOKENS_A_CHARACTER = 3
"""More room for each character of the longest grade beyond its first; a rare Chinese character takes up to three."""
TOKENS_AROUND = 64
"""Room for braces and a code fence."""


@dataclass(frozen=True)
class LlmJudge:
    """A rubric and one model; pure, so the same texts give the same request."""

    name: str
    rubric: Rubric
    model: Mapping[str, Json]
    """Identity of the provider that will answer: vendor, model, sampling parameters."""
    thinking_tokens: int = 0
    """Tokens beyond the answer that a model which thinks first may spend; counted in the bound of the answer."""

    @property
    def identity(self) -> Mapping[str, Json]:
        """Return the model and its parameters; the rubric has a ledger key of its own."""
        return {"model": dict(self.model), "thinking_tokens": self.thinking_tokens}

    def build(self, query: str, passages: Sequence[str]) -> Request:
        """Return the request for the grades of passages, as shown and in this order, labelled P1 to Pn."""
        scale = self.rubric.scale
        longer = max(map(len, scale.labels)) - 1
        bound = self.thinking_tokens + TOKENS_AROUND + (TOKENS_A_GRADE + TOKENS_A_CHARACTER * longer) * len(passages)
        return Request(messages(self.rubric, query, passages), bound, schema(labels(len(passages)), scale))

    def read(self, reply: Reply, number: int) -> Parsed:
        """Return the grades of `number` passages in a reply, with counts of foreign, repeated and wrong items."""
        return parse(reply.text, labels(number), self.rubric.scale, cut=reply.finish == "length")

    def parse(self, reply: Reply, number: int) -> list[Outcome]:
        """Return one outcome per passage, in the order of the request: a grade, or why there is none."""
        return self.outcomes(reply, self.read(reply, number))

    @staticmethod
    def outcomes(reply: Reply, parsed: Parsed) -> list[Outcome]:
        """Return the outcomes of a parsed reply.

        A refusal refuses every passage, even if grades came with it. An answer stopped at its bound gives the grades
        that are complete; the others are `unparsed` and can be asked again.
        """
        refused = reply.finish == "refusal"
        lacking = Outcome(None, "refused" if refused else "unparsed")
        return [lacking if refused or grade is None else Outcome(grade) for grade in parsed.grades.values()]


# Language models by the names that judges have in a pipeline.


def named_model(definitions: Mapping[str, Settings], name: str) -> LanguageModel | None:
    """Return the settings of the language model of that name; None if the name means another kind of judge.

    The pipeline's own definitions come before the presets, and may change one: `gpt-4o: {concurrency: 64}`, or under
    another name `wide: {preset: gpt-4o, concurrency: 64}`. A definition whose `kind` is a provider's (openai,
    anthropic) is a language model.
    """
    setting, known_presets, definition = f"judges.{name}", presets(), definitions.get(name)
    settings = complete(name, known_presets.get(name, {}) if definition is None else definition, known_presets, setting)
    if definition is not None and "kind" not in settings and name not in JUDGES.names():
        raise ConfigError(f"{setting}: give a kind, or the name of a preset: {suggestion(name, known_presets)}")
    return check(LanguageModel, settings, setting) if settings.get("kind") in PROVIDERS.names() else None
