"""Question templates: rewording, another question or a changed detail, without a model.

The words are data, `question_templates.yaml`, by language. Nothing here knows what a question means; it is right as
often as its patterns are: enough to show a pipeline, no replacement for people or a panel.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from re import Pattern

from pydantic import field_validator

from curate.core.config import Section
from curate.core.sampling import generator, shuffled

NUMBER = re.compile(r"(?<![A-Za-z0-9.])\d{1,4}(?:\.\d{1,2})?(?![\d.])")
"""A dose, a degree, a count: no longer number and none within a word, which may be anything."""
EDITS = ("negation", "laterality", "dose", "hypernym")
"""Kinds of small edits; `negation` has opposites too (before and after a meal)."""
Rewrite = tuple[str, str]
"""A pattern and what takes its place."""


class Intent(Section):
    """Something that can be asked of anything: words that betray a question of this intent, and templates with {x}."""

    cues: tuple[str, ...]
    questions: tuple[str, ...]
    phrases: tuple[str, ...]


class Wording(Section):
    """The words of one language."""

    question: str
    """Pattern that stands in every question."""
    same: tuple[Rewrite, ...]
    intents: tuple[Intent, ...]
    edits: Mapping[str, tuple[Rewrite, ...]]
    ranks: str
    """Characters behind a number that make it a rank, such as the 型 of 2型: it moves by one and is not doubled."""

    @field_validator("edits")
    @classmethod
    def _known(cls, edits: Mapping[str, tuple[Rewrite, ...]]) -> Mapping[str, tuple[Rewrite, ...]]:
        if unknown := set(edits) - set(EDITS):
            raise ValueError(f"unknown edits {sorted(unknown)}; known: {', '.join(EDITS)}")
        return edits

    @cached_property
    def _question(self) -> Pattern[str]:
        return re.compile(self.question, re.IGNORECASE)

    def asks(self, text: str) -> bool:
        """Say whether a text has the form of a question."""
        return self._question.search(text.strip()) is not None

    def positives(self, pieces: Sequence[str], word: str, seed: int) -> Iterator[tuple[str, str]]:
        """Yield what was done and the text of the pieces around `word`: every second one first in other words."""
        plainly = ("substituted", word.join(pieces))
        reworded = [("reworded", text) for text in _rewritten(pieces, word, self.same)]
        first = generator(seed, "reword", *pieces).random() < 0.5  # else a copied wording would tell a positive
        yield from [*reworded, plainly] if first else [plainly, *reworded]

    def others(self, query: str, word: str, seed: int) -> Iterator[tuple[str, str]]:
        """Yield what was done and questions about `word` of an intent that the query does not have, by seed."""
        free = [intent for intent in self.intents if not any(cue in query for cue in intent.cues)]
        forms = "questions" if self.asks(query) else "phrases"
        templates = [template for intent in free for template in getattr(intent, forms)]
        for template in shuffled(templates, seed, "intent", query, word):
            yield "template", template.replace("{x}", word)

    def edited(self, pieces: Sequence[str], word: str, seed: int) -> Iterator[tuple[str, str]]:
        """Yield what was done and the text of the pieces around `word` with one detail changed, by seed."""
        found = [(kind, text) for kind in EDITS for text in self._edits(kind, pieces, word)]
        yield from shuffled(found, seed, "edit", *pieces, word)

    def _edits(self, kind: str, pieces: Sequence[str], word: str) -> Iterator[str]:
        if kind != "dose":
            yield from _rewritten(pieces, word, self.edits.get(kind, ()))
            return
        for at, piece in enumerate(pieces):
            for number in NUMBER.finditer(piece):
                changed = piece[: number.start()] + self._other(number, piece) + piece[number.end() :]
                yield word.join([*pieces[:at], changed, *pieces[at + 1 :]])

    def _other(self, number: re.Match[str], piece: str) -> str:
        behind = piece[number.end() : number.end() + 1]
        if behind and behind in self.ranks:
            rank = float(number[0])
            return f"{rank - 1 if rank > 1 else rank + 1:g}"
        return f"{float(number[0]) * 2:g}" if float(number[0]) else "1"


def _rewritten(pieces: Sequence[str], word: str, rewrites: Sequence[Rewrite]) -> Iterator[str]:
    """Yield the text once for every pattern that one of the pieces holds, the first such place rewritten.

    The word itself is never looked into, so that a dose in its name stays.
    """
    for pattern, by in rewrites:
        for at, piece in enumerate(pieces):
            changed = re.sub(pattern, by, piece, count=1, flags=re.IGNORECASE)
            if changed != piece:
                yield word.join([*pieces[:at], changed, *pieces[at + 1 :]])
                break
