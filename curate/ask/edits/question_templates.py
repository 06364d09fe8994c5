"""Question templates: reworded questions and questions of another intent, written without a model.

Words and patterns are in `question_templates.yaml`, by language. Patterns do not understand a question: good enough to
show a pipeline, no replacement for assessors or a panel. `rewriting` changes details.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from curate.ask.edits.rewriting import BROADER, KINDS, edits
from curate.core.config import Section, check, parse_yaml
from curate.core.languages import base_language
from curate.core.sampling import generator, shuffled
from curate.pipeline.stage import Context
from curate.system import resources

EDITS = (*(kind for kind in KINDS if kind != "swap"), BROADER)
"""Kinds of small edits."""
TEMPLATES = "ask/edits/question_templates.yaml"
Rewrite = tuple[str, str]
"""A pattern and its replacement."""


class Intent(Section):
    """An intent of questions: words that mark a question of it, and templates with {x} for the subject."""

    cues: tuple[str, ...]
    questions: tuple[str, ...]
    phrases: tuple[str, ...]


class Wording(Section):
    """The words of one language."""

    language: str
    question: str
    """Pattern that every question contains."""
    same: tuple[Rewrite, ...]
    intents: tuple[Intent, ...]

    def asks(self, text: str) -> bool:
        """Return whether a text has the form of a question."""
        return re.search(self.question, text.strip(), re.IGNORECASE) is not None

    def positives(self, pieces: Sequence[str], word: str, seed: int) -> Iterator[tuple[str, str]]:
        """Yield method and text of the pieces joined by `word`: as they are and reworded, in seeded order."""
        plainly = ("substituted", word.join(pieces))
        reworded = [("reworded", text) for text in _rewritten(pieces, word, self.same)]
        first = generator(seed, "reword", *pieces).random() < 0.5  # else a copied wording would reveal a positive
        yield from [*reworded, plainly] if first else [plainly, *reworded]

    def others(self, query: str, word: str, seed: int) -> Iterator[tuple[str, str]]:
        """Yield method and question about `word` of an intent that the query does not have, in seeded order."""
        free = [intent for intent in self.intents if not any(cue in query for cue in intent.cues)]
        forms = "questions" if self.asks(query) else "phrases"
        templates = [template for intent in free for template in getattr(intent, forms)]
        for template in shuffled(templates, seed, "intent", query, word):
            yield "template", template.replace("{x}", word)

    def edited(self, pieces: Sequence[str], word: str, seed: int) -> Iterator[tuple[str, str]]:
        """Yield method and text of the pieces joined by `word` with one detail changed, in seeded order.

        The word itself is not changed, so that a dose in its name stays.
        """
        ends = list(accumulate(len(piece) + len(word) for piece in pieces[:-1]))
        keep = [(end - len(word), end) for end in ends]
        for edit in edits(word.join(pieces), self.language, seed, kinds=EDITS, keep=keep):
            yield edit.kind, edit.text


def wording(context: Context) -> Wording | None:
    """Return the templates of the language of the texts; None for a language without any."""
    wordings: dict[str, object] = parse_yaml(resources.template(TEMPLATES))
    tag = base_language(context.language)
    words = wordings.get(tag)
    return None if words is None else check(Wording, words, f"question_templates.yaml: {tag}")


def _rewritten(pieces: Sequence[str], word: str, rewrites: Sequence[Rewrite]) -> Iterator[str]:
    """Yield the text once per pattern that matches in a piece, its first match rewritten.

    The word itself is not changed, so that a dose in its name stays.
    """
    for pattern, by in rewrites:
        for index, piece in enumerate(pieces):
            changed = re.sub(pattern, by, piece, count=1, flags=re.IGNORECASE)
            if changed != piece:
                yield word.join([*pieces[:index], changed, *pieces[index + 1 :]])
                break
