"""Rule for texts written by a model or a template, which are not masked: no new personal data.

The recognisers are those of the run's `mask`. A text that breaks the rule is generated again before a judge is paid to
confirm it. The export checks the same rule.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from curate.core.config import check
from curate.pii.masking import Masker
from curate.pii.pseudonyms import secret
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all
from curate.pipeline import stages
from curate.pipeline.stage import Context
from curate.system import resources

PERSONAL: Literal["personal"] = "personal"
"""Name of the rule in counts of broken rules."""


@dataclass
class PersonalData:
    """Scanner of texts for personal data; scans equal texts once."""

    looker: Masker | None
    """None where masking is off."""
    seen: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict, repr=False)
    """Text -> kind and text of its spans of personal data; never written to disk."""

    @classmethod
    def of(cls, context: Context) -> "PersonalData":
        """Return a scanner with the settings of the run's `mask`."""
        section = check(stages.config("mask"), context.settings.get("mask") or {}, "mask").model_dump()
        masking = Masking.model_validate({name: section[name] for name in Masking.model_fields})
        return cls(masker(masking, context.language, secret(context.home)) if section["enabled"] else None)

    def found(self, texts: Iterable[str]) -> Iterator[tuple[tuple[str, str], ...]]:
        """Yield per text the kind and text of its spans of personal data."""
        all_texts = list(texts)
        unseen = [text for text in dict.fromkeys(all_texts) if text not in self.seen]
        for text, masked in zip(unseen, mask_all(self.looker, unseen) if self.looker else (), strict=bool(self.looker)):
            self.seen[text] = tuple((span.kind, text[span.start : span.end]) for span in masked.spans)
        yield from (self.seen.get(text, ()) for text in all_texts)

    def new(self, text: str, source: str) -> bool:
        """Return whether a text holds personal data that its source does not contain."""
        [spans] = self.found([text])
        return any(span not in source for _, span in spans)

    def placeholder(self, text: str) -> bool:
        """Return whether a text holds a placeholder of masking."""
        return self.looker is not None and self.looker.untouched.search(text) is not None


def told(broken: Mapping[Any, str], rules: Sequence[str], language: str) -> str:
    """Return the feedback on broken rules, a line each: the prompt's own texts, else those of feedback.yaml."""
    personal: str = resources.words("ask/feedback.yaml", language)[PERSONAL]
    return "\n".join(broken.get(rule, personal).strip() for rule in rules)
