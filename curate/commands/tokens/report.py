"""Tables of tokenizers for people, in the terminal and in Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from curate.commands.tokens import tokenizers
from curate.commands.tokens.tokenizers import LENGTHS, ModelTokenizer, Terms, named
from curate.core import records
from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Progress, quiet
from curate.pipeline.folder import table_path
from curate.pipeline.foreign_files import is_run
from curate.runs.outputs import free_place
from curate.stats.bootstrap import FEW, Figure
from curate.stats.tally import Floats
from curate.system.files import write_json, write_text
from curate.tables.readers import Problem, Table
from curate.tables.readers import folder as layout
from curate.tables.readers.file import File, format_of
from curate.tables.readers.items import LINE, NAMES, Names, item, wanted
from curate.tables.readers.text_rows import shown_names
from curate.view.page_tables import ranged, table

Figures = Mapping[str, Any]
METHOD = (
    "A unit is a run of letters, digits and marks, or one Chinese or Japanese character, or a run of other signs. "
    "*Split*: units of several tokens. *Unknown*: units with a token for what the vocabulary lacks. *Ceiling*: tokens "
    "that were saved if every split unit were one token, which no vocabulary reaches on texts that it was not made "
    "from. Lengths count the tokens that mark beginning and end, and no prompt. Intervals (95 %) resample texts."
)


def head(part: Figures) -> str:
    """Return what was read, in a sentence."""
    characters = f", {part['characters']:,} of them characters" if part["characters"] else ""
    return f"{part['part']}: {part['texts']:,} texts, {part['units']:,} units{characters}"


def overview(part: Figures, lengths: list[int]) -> list[dict[str, object]]:
    """Return one row per model."""
    return [
        {
            "model": each["model"],
            f"tokens per {part['per']}": ranged(each["fertility"], 1, 3),
            "split %": ranged(each["split"], 100, 1),
            "unknown %": ranged(each["unknown"], 100, 2),
            "ceiling %": ranged(each["ceiling"], 100, 1),
            **{f"over {length} %": _share(each[f"over_{length}"]) for length in lengths},
            "own length": each["own"],
            "over it %": _share(each["over_own"]),
            **({"tokens, to the first's": ranged(each["relative"], 1, 3)} if len(part["models"]) > 1 else {}),
        }
        for each in part["models"]
    ]


def terms(part: Figures, count: int | None = None) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """Yield a model and its worst frequent terms, a row each."""
    for each in part["models"]:
        rows = [
            {
                "term": row["term"],
                "times": row["times"],
                "texts": row["texts"],
                "tokens each": f"{row['tokens']:.2f}",
                "of what is lost": f"{100 * row['of_saved']:.2f} %",
            }
            for row in each["terms"][:count]
        ]
        if rows:
            yield each["model"], rows


def readme(found: Figures) -> str:
    """Return the page that lies beside the figures."""
    parts = [f"# Tokens of {found['place']}", METHOD]
    for part in found["parts"]:
        parts += [f"## {head(part)}", table(overview(part, found["lengths"]))]
        for model, rows in terms(part):
            parts += [f"### Split terms that cost most, {model}", table(rows)]
    if found["notes"]:
        parts += ["## To be known", "\n".join(f"- {note}" for note in found["notes"])]
    return "\n\n".join(parts) + "\n"


def _share(figure: Figures) -> str | None:
    return None if figure["value"] is None else f"{100 * figure['value']:.1f}"


# Texts to count tokens of: a run's tables, a folder of queries and documents, an export, or one file.

BELOW = ("", "retrieval", "beir", "mteb/retrieval", "export/beir", "export/mteb/retrieval")
"""Where in a folder its queries and documents may lie, first choice first."""
TABLES: Mapping[Table, str] = {"queries": "query", "corpus": "document"}


@dataclass(frozen=True)
class TextPart:
    """Texts of one role: queries or documents."""

    name: str
    role: str
    files: Sequence[File]
    names: Names = field(repr=False)

    def texts(self) -> Iterator[str]:
        """Yield every text as an encoder reads it, title first; DataError at the first row that cannot be read."""
        for file in self.files:
            for row in file.rows(wanted(self.names)):
                found = item(row, self.names)
                if isinstance(found, Problem):
                    raise DataError(found.sentence(file.place))
                yield records.shown(found.title, found.text)


def parts(place: Path, column: str | None = None) -> list[TextPart]:
    """Return the texts of a place, queries first; `column` names the one that holds a file's texts."""
    if place.is_file():
        return [_file(place, column)]
    if column is not None:
        raise ConfigError(f"--column {column}: found the folder {place}, expected a file with it; leave it out")
    if not place.is_dir():
        raise DataError(f"{place}: no such file or folder, expected one with texts; check the path")
    if is_run(place):
        return _of_run(place)
    for below in BELOW:
        if found := _of_folder(place / below):
            return found
    held = ", ".join(path.name for path in layout.readable(place)[:10]) or "no table"
    raise DataError(
        f"{place}: found {held}, expected a run folder, an export, or queries.jsonl or corpus.jsonl; give a single "
        "file by its own path"
    )


def _of_run(run: Path) -> list[TextPart]:
    names = {"queries": {"id": ("query_id",)}, "corpus": {"id": ("doc_id",), "title": ("title",)}}
    return [
        TextPart(_called(table), role, [_opened(table_path(run, table), table)], names[table] | {"text": ("text",)})
        for table, role in TABLES.items()
    ]


def _of_folder(folder: Path) -> list[TextPart]:
    if not folder.is_dir():
        return []
    found = layout.find(folder, None)
    return [
        TextPart(_called(table), role, [_opened(path, table) for path in found.of(table)], NAMES[table])
        for table, role in TABLES.items()
        if found.of(table)
    ]


def _file(path: Path, column: str | None) -> TextPart:
    """Return a file's texts: those of the column that is named, else of `text` or `query`, after `title`."""
    file = _opened(path, "corpus")
    texts = (column,) if column else (*NAMES["corpus"]["text"], "query")
    head = file.header()
    if head is not None and not any(name in head for name in texts):
        raise DataError(
            f"{path}: found the columns {shown_names(head)}, expected {' or '.join(texts)}; name the one that holds "
            "the texts with --column"
        )
    titles: Names = {} if column else {"title": NAMES["corpus"]["title"]}
    return TextPart(path.name, "document", [file], {"id": (LINE,), **titles, "text": texts})


def _opened(path: Path, table: Table) -> File:
    return File(path, format_of(path), table=table)


def _called(table: Table) -> str:
    return "documents" if table == "corpus" else table


# Report of tokenizers: read texts, cut them by every model's tokenizer, count, resample.

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
        write_text(order.out / "README.md", readme(found))
    return {**found, "folder": None if order.out is None else str(order.out)}


def _part(
    part: TextPart, models: dict[str, dict[str, ModelTokenizer]], order: TokenRequest, progress: Progress
) -> dict[str, Json]:
    counts = [_Count(name, sides[part.role], [], Terms()) for name, sides in models.items()]
    units = characters = done = 0
    label = StepLabel(f"cutting {part.name}", "texts")
    kept = islice(_kept(part), order.limit)
    while texts := list(islice(kept, BATCH)):
        spans = [tokenizers.spans(text) for text in texts]
        units, characters = units + sum(map(len, spans)), characters + sum(span.characters for span in spans)
        for count in counts:
            _count(count, texts, spans)
        done += len(texts)
        progress(label, done, done)
    if not done:
        raise DataError(f"{part.files[0].place}: found no text, expected one at least; check the file")
    sums: list[Floats] = [np.array(count.rows) for count in counts]
    with waiting(progress, StepLabel(f"resampling {part.name}")):
        figures = tokenizers.figures(sums, order.seed)
    return {
        "part": part.name,
        "texts": done,
        "units": units,
        "characters": characters,
        "per": "character" if 2 * characters > units else "word",
        "models": [_row(count, figure, order.terms) for count, figure in zip(counts, figures, strict=True)],
    }


def _kept(part: TextPart) -> Iterator[str]:
    return (text for text in part.texts() if text.strip())


def _count(count: _Count, texts: Sequence[str], spans: Sequence[tokenizers.UnitSpans]) -> None:
    made = count.tokenizer.cut(texts, spans)
    for text, units, pieces in zip(texts, spans, made, strict=True):
        count.rows.append(tokenizers.row(units, pieces, count.tokenizer.own))
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
