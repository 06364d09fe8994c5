"""Masking of texts from Python: the masked texts, the masked spans, and possible residual PII."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from curate.core.config import check
from curate.core.errors import TableError
from curate.core.protocols import Progress, quiet
from curate.runs.python_errors import python_errors
from curate.view import html

SPANS = {"text": pl.Int64, "start": pl.Int64, "end": pl.Int64, "kind": pl.String, "recogniser": pl.String}
RESIDUAL = {"text": pl.Int64, "start": pl.Int64, "end": pl.Int64, "reason": pl.String}
SHOWN = 5


@dataclass(frozen=True, repr=False)
class AnonymisedTexts:
    """Masked texts, with the masked spans and possible residual PII; a sequence of the texts."""

    texts: list[str]
    """Masked texts, in the order of the input."""
    spans: pl.DataFrame
    """Masked spans: text (index, from 0), start and end (in code points of the raw text), kind, recogniser."""
    residual: pl.DataFrame
    """Possible residual PII, to be checked: text (index), start and end (in code points of the raw text), reason."""

    @property
    def kinds(self) -> dict[str, int]:
        """Return kind of personal data -> number of masked spans."""
        return dict(sorted(Counter(self.spans["kind"]).items()))

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __getitem__(self, number: int) -> str:
        return self.texts[number]

    def _sentence(self) -> str:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in self.kinds.items())
        residual = f"; {len(self.residual):,} places still look like personal data" if len(self.residual) else ""
        return f"texts: {len(self.texts):,}; masked: {kinds or 'nothing'}{residual}"

    def __repr__(self) -> str:
        return f"AnonymisedTexts({self._sentence()})"

    def _repr_html_(self) -> str:
        rows = [{"text": number, "masked": text} for number, text in enumerate(self.texts[:SHOWN])]
        return html.block(self._sentence(), html.table(rows))


@python_errors()
def anonymise(
    texts: Iterable[str],
    *,
    language: Literal["zh", "en"] | None = None,
    mode: Literal["placeholder", "pseudonym", "tag"] | None = None,
    recognisers: Sequence[str] | None = None,
    without: Sequence[str] | None = None,
    words: Iterable[str] = (),
    settings: Mapping[str, object] | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> AnonymisedTexts:
    """Return texts with personal data masked as by `curate anonymise`, with the same settings.

    `texts` is any iterable of texts, such as a column of a frame. `language` is that of the placeholders, by default
    that of each text. `mode` is the replacement: placeholders, pseudonyms (invented values, equal for equal values) or
    tags of the same length. `recognisers` are the enabled ones, `without` those to disable, `words` further words to
    mask. `settings` are those of the stage `mask`, such as your own patterns. Long input is masked by `processes`
    processes, by default one per core.

    Unlike the command, this function does not withhold texts with possible residual PII: check `residual` before
    passing them on. DataError names the first value that is not a text, ConfigError an invalid setting.
    """
    from curate.pii.pseudonyms import secret
    from curate.pii.settings import Masking
    from curate.pii.texts import mask_texts
    from curate.pipeline.stage import home

    custom = list(words)
    raw, changed = _texts(texts), dict(settings or {})
    if custom:
        configured = changed.get("words")
        changed["words"] = {**(configured if isinstance(configured, Mapping) else {}), "words": {"words": custom}}
    changes = {"mode": mode, "placeholders": language, "recognisers": recognisers, "without": without}
    changed |= {name: change for name, change in changes.items() if change is not None}
    config = check(Masking, changed, "anonymise")
    key = secret(home()) if config.mode == "pseudonym" else b""
    masked = list(mask_texts(raw, config, key, processes, progress or quiet))
    spans = [
        (row, span.start, span.end, span.kind, span.recogniser)
        for row, result in enumerate(masked)
        for span in result.masked.spans
    ]
    residual = [
        (row, *result.masked.raw(residue.start, residue.end), residue.reason)
        for row, result in enumerate(masked)
        for residue in result.left
    ]
    return AnonymisedTexts(
        [result.masked.text for result in masked],
        pl.DataFrame(spans, schema=SPANS, orient="row"),
        pl.DataFrame(residual, schema=RESIDUAL, orient="row"),
    )


def _texts(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str):
        raise TableError.at("anonymise", "one text", "a list of texts", "write [text]")
    raw = list(texts)
    for number, text in enumerate(raw):
        if not isinstance(text, str):
            raise TableError.at(f"anonymise: text {number}", type(text).__name__, "str", "leave it out or make it text")
    return raw
