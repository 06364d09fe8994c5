"""Report of tokenizers: read texts, cut them by every model's tokenizer, count, resample."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from curate.commands.tokens import fertility, page
from curate.commands.tokens.fertility import LENGTHS, Terms
from curate.commands.tokens.reading import TextPart, parts
from curate.commands.tokens.tokenizers import ModelTokenizer, named
from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Progress, quiet
from curate.runs.outputs import free_place
from curate.stats.bootstrap import FEW, Figure
from curate.stats.tally import Floats
from curate.system.files import write_json, write_text

BATCH = 500


@dataclass(frozen=True)
class TokenRequest:
    """What a user wants to know of texts and tokenizers."""

    place: Path
    models: Sequence[str]
    column: str | None = None
    """Of a file: the column of its texts."""
    terms: int = 20
    """Split terms that are listed per tokenizer."""
    limit: int | None = None
    """Texts of each part that are read, the first ones; all without it."""
    out: Path | None = None
    seed: int = 0


@dataclass
class _Count:
    """What one tokenizer makes of one part."""

    model: str
    tokenizer: ModelTokenizer
    rows: list[list[float]]
    terms: Terms


def report(order: TokenRequest, progress: Progress = quiet) -> dict[str, Any]:
    """Return all figures as plain values, and write them where `out` says."""
    if order.out is not None:
        free_place(order.out, ["tokens.json"])
    names = list(dict.fromkeys(order.models))
    if not names:
        raise ConfigError("tokens: found no model; name some with --models, such as --models use,e5")
    with waiting(progress, StepLabel("loading tokenizers")):
        models = {name: named(name) for name in names}
    read = [_part(part, models, order, progress) for part in parts(order.place, order.column)]
    found: dict[str, Any] = {
        "place": str(order.place),
        "lengths": list(LENGTHS),
        "parts": read,
        "notes": [note for each in read for note in _notes(each, order)],
    }
    if order.out is not None:
        order.out.mkdir(parents=True, exist_ok=True)
        write_json(order.out / "tokens.json", found)
        write_text(order.out / "README.md", page.readme(found))
    return {**found, "folder": None if order.out is None else str(order.out)}


def _part(
    part: TextPart, models: dict[str, dict[str, ModelTokenizer]], order: TokenRequest, progress: Progress
) -> dict[str, Json]:
    counts = [_Count(name, sides[part.role], [], Terms()) for name, sides in models.items()]
    units = characters = done = 0
    label = StepLabel(f"cutting {part.name}", "texts")
    kept = islice(_kept(part), order.limit)
    while texts := list(islice(kept, BATCH)):
        spans = [fertility.spans(text) for text in texts]
        units, characters = units + sum(map(len, spans)), characters + sum(each.characters for each in spans)
        for each in counts:
            _count(each, texts, spans)
        done += len(texts)
        progress(label, done, done)
    if not done:
        raise DataError(f"{part.files[0].place}: found no text, expected one at least; check the file")
    sums: list[Floats] = [np.array(each.rows) for each in counts]
    with waiting(progress, StepLabel(f"resampling {part.name}")):
        figures = fertility.figures(sums, order.seed)
    return {
        "part": part.name,
        "texts": done,
        "units": units,
        "characters": characters,
        "per": "character" if 2 * characters > units else "word",
        "models": [_row(each, some, order.terms) for each, some in zip(counts, figures, strict=True)],
    }


def _kept(part: TextPart) -> Iterator[str]:
    return (text for text in part.texts() if text.strip())


def _count(count: _Count, texts: Sequence[str], spans: Sequence[fertility.UnitSpans]) -> None:
    made = count.tokenizer.cut(texts, spans)
    for text, units, pieces in zip(texts, spans, made, strict=True):
        count.rows.append(fertility.row(units, pieces, count.tokenizer.own))
        if pieces.per_unit is not None:
            count.terms.add(text, units, pieces.per_unit)


def _row(count: _Count, figures: dict[str, Figure], terms: int) -> dict[str, Json]:
    saved = sum(count.terms.saved.values())
    return {
        "model": count.model,
        "own": count.tokenizer.own,
        "how": count.tokenizer.how,
        "tokens": int(sum(row[2] for row in count.rows)),
        **{name: figure.shown() for name, figure in figures.items()},
        "terms": [
            {
                "term": term,
                "times": times,
                "texts": texts,
                "tokens": round(1 + beyond / times, 2),
                "of_saved": round(beyond / saved, 6),
            }
            for term, times, texts, beyond in count.terms.worst(terms)
        ],
    }


def _notes(part: dict[str, Any], order: TokenRequest) -> Iterator[str]:
    if part["texts"] < FEW:
        yield f"{part['part']}: {part['texts']} texts, under {FEW}: these intervals are too narrow"
    if part["texts"] == order.limit:
        yield f"{part['part']}: the first {order.limit:,} texts alone (--limit)"
    for each in part["models"]:
        if each["how"] == "not told":
            yield f"{part['part']}: {each['model']} tells how many tokens a text has, and not where they begin"
