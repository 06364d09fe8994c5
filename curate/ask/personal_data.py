"""The rule that a text keeps which nobody masked, since a model or a template wrote it: no personal data that is new.

What is looked for is what the run's `mask` masks. A text that breaks the rule is asked for again before a judge is paid
to confirm it. At export the same rule is the gate.
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

PERSONAL: Literal["personal"] = "personal"
"""The rule, as counts of broken rules name it."""
TOLD = {"zh": "上一次写进了个人信息，请去掉。", "en": "The last text held personal data; leave that out."}
"""What a writer is told that broke it; not in prompts, so that those of people need no word more."""


@dataclass
class PersonalData:
    """Looks at texts, at each once."""

    looker: Masker | None
    """None where masking is off."""
    seen: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict, repr=False)
    """Text -> kind and value of what was found in it; only ever in memory."""

    @classmethod
    def of(cls, context: Context) -> "PersonalData":
        """Return what finds that which the run's `mask` masks."""
        section = check(stages.config("mask"), context.settings.get("mask") or {}, "mask").model_dump()
        masking = Masking.model_validate({name: section[name] for name in Masking.model_fields})
        return cls(masker(masking, context.language, secret(context.home)) if section["enabled"] else None)

    def found(self, texts: Iterable[str]) -> Iterator[tuple[tuple[str, str], ...]]:
        """Yield kind and value of all that is found, by text."""
        wanted = list(texts)
        unseen = [text for text in dict.fromkeys(wanted) if text not in self.seen]
        for text, masked in zip(unseen, mask_all(self.looker, unseen) if self.looker else (), strict=bool(self.looker)):
            self.seen[text] = tuple((span.kind, text[span.start : span.end]) for span in masked.spans)
        yield from (self.seen.get(text, ()) for text in wanted)

    def new(self, text: str, source: str) -> bool:
        """Say whether a text holds personal data that does not stand in the source that it was written beside."""
        [found] = self.found([text])
        return any(value not in source for _, value in found)

    def placeholder(self, text: str) -> bool:
        """Say whether a text holds what masking writes in place of personal data."""
        return self.looker is not None and self.looker.untouched.search(text) is not None


def told(broken: Mapping[Any, str], rules: Sequence[str], language: str) -> str:
    """Return what a writer is told of rules that its last text broke, a line each, in the prompt's words or ours."""
    return "\n".join(broken.get(rule, TOLD["zh" if language.startswith("zh") else "en"]).strip() for rule in rules)
