"""`curate tokens`: tokens per word, unknown words and truncation of a collection, by model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from curate.commands.tokens import tokenizers
from curate.commands.tokens.tokenizers import LENGTHS, ModelTokenizer, Terms, named
from curate.core import records
from curate.core.errors import ConfigError, DataError
from curate.core.figures import Figure, Record, figure
from curate.core.progress import StepLabel, waiting
from curate.pipeline.folder import is_run, table_path
from curate.runs.command import Command, Names, argument, option, setting
from curate.runs.outputs import free_place
from curate.stats.bootstrap import FEW
from curate.stats.tally import Floats
from curate.system.files import write_json, write_text
from curate.tables.readers import Problem, Table, items
from curate.tables.readers import folder as layout
from curate.tables.readers.file import File, format_of
from curate.tables.readers.items import LINE, NAMES, item, needed_columns
from curate.tables.readers.text_rows import shown_names
from curate.view.answers import Result
from curate.view.page_tables import table
from curate.view.record_words import DASH, RecordWords
from curate.view.text import as_table

Cells = dict[str, str]


class Term(Record):
    """A term that is split into several tokens."""

    term: str = figure("the term, in lower case")
    times: int = figure("occurrences in the texts")
    texts: int = figure("texts that contain it")
    tokens: float = figure("mean tokens per occurrence", digits=2)
    of_saved: float = figure("share of all tokens beyond the first of a unit", digits=2, percent=True)


class ModelTokens(Record, schema_name="model"):
    """What one tokenizer makes of the texts."""

    model: str = figure("name of the model")
    own: int | None = figure("longest input in tokens; null if unlimited")
    how: str = figure('how units are told, "in the text", "word by word" or "not told"')
    tokens: int = figure("tokens of all texts")
    fertility: Figure = figure("tokens per unit")
    split: Figure = figure("share of units of several tokens", digits=1, percent=True)
    unknown: Figure = figure("share of units with a token for what the vocabulary lacks", digits=2, percent=True)
    ceiling: Figure = figure("share of tokens that were saved if every split unit were one", digits=1, percent=True)
    over_own: Figure = figure("share of texts over the model's own length", digits=1, percent=True)
    over_128: Figure = figure("share of texts over 128 tokens", digits=1, percent=True)
    over_256: Figure = figure("share of texts over 256 tokens", digits=1, percent=True)
    over_512: Figure = figure("share of texts over 512 tokens", digits=1, percent=True)
    relative: Figure = figure("tokens over those of the first model")
    terms: tuple[Term, ...] = figure("split terms that cost most")


class TextsTokens(Record, schema_name="part"):
    """What the tokenizers make of queries or documents."""

    part: str = figure("queries, documents, or the name of a file")
    texts: int = figure("texts with at least one letter")
    units: int = figure("words, Chinese or Japanese characters, and runs of other signs")
    characters: int = figure("units that are Chinese or Japanese characters")
    per: Literal["word", "character"] = figure("most frequent type of unit")
    models: tuple[ModelTokens, ...] = figure("a row per model")


class TokensFigures(Record, schema_name="found"):
    """What tokenizers make of texts, and what is cut."""

    place: str = figure("folder or file of the texts")
    lengths: tuple[int, ...] = figure("numbers of tokens; texts that exceed them are counted")
    parts: tuple[TextsTokens, ...] = figure("queries, then documents")
    notes: tuple[str, ...] = figure("caveats, one sentence each")
    folder: str | None = figure("folder of the written page and figures; null if nothing was written")


SHOWN = 5
"""Number of terms per model in the terminal."""


class TokensCommand(Command):
    """Compare tokenizers.

    Tokens per word, split words, unknown ones, texts that would be cut.
    """

    words = "tokens"
    examples = ("tokens runs/demo --models e5,minilm", "tokens texts.csv minilm --out tokens")

    folder: Path = argument("A run folder, an export, a folder of queries and corpus, or a file.")
    others: Names = argument("More models, as after --models.", (), metavar="[MODEL]...")
    models: Names = option(
        "minilm, use, e5, a folder, or a model of the hub; separated by commas.",
        (),
        flag="--models,-m",
        metavar="NAMES",
    )
    out: Path | None = option("Folder for tokens.json and README.md.", None, metavar="FOLDER")
    column: str | None = setting("Column of a file's texts; default: text or query.", None)
    terms: int = setting("Split terms listed per model.", 20, ge=0)
    limit: int | None = setting("Read the first texts alone, of queries and documents.", None, ge=1, le=2**63 - 1)
    seed: int = setting("Seed of the resamples.", 0, ge=0)

    def result(self) -> Result[TokensFigures]:
        """Return the figures of every collection of texts and model."""
        figures = report(self)
        return Result(figures, _text(figures), figures.notes)


def _text(figures: TokensFigures) -> Iterator[str]:
    say = RecordWords("tokens/tokens")
    for collection in figures.parts:
        yield head(collection, say)
        yield as_table(overview(collection, say))
        for heading, rows in terms(collection, say, SHOWN):
            yield heading
            yield as_table(rows)
        yield ""
    yield from figures.notes
    if figures.folder:
        yield say("folder", figures)


def head(collection: TextsTokens, say: RecordWords) -> str:
    """Return a sentence with the numbers of texts and units (words or Chinese characters)."""
    return say("head", collection) + (say("characters", collection) if collection.characters else "")


def overview(collection: TextsTokens, say: RecordWords) -> list[Cells]:
    """Return one row per model with its main figures, shares in percent."""
    keys = ["model", *(["relative"] if len(collection.models) > 1 else [])]
    return [
        {heading: cell for key in keys for heading, cell in say.cells(key, collection, model).items()}
        for model in collection.models
    ]


def terms(collection: TextsTokens, say: RecordWords, count: int | None = None) -> Iterator[tuple[str, list[Cells]]]:
    """Yield (heading, rows) of each model's most split terms, at most `count`; models without any are left out."""
    for model in collection.models:
        if model.terms[:count]:
            yield say("terms", model), [say.cells("term", term) for term in model.terms[:count]]


def readme(figures: TokensFigures) -> str:
    """Return the text of README.md in the output folder: tables and notes in Markdown."""
    say = RecordWords("tokens/tokens", empty=DASH)
    sections = [f"# {say('title', figures)}", say("method")]
    for collection in figures.parts:
        sections += [f"## {head(collection, say)}", table(overview(collection, say))]
        for heading, rows in terms(collection, say):
            sections += [f"### {heading[0].upper()}{heading[1:]}", table(rows)]
    if figures.notes:
        sections += [f"## {say('notes')}", "\n".join(f"- {note}" for note in figures.notes)]
    return "\n\n".join(sections) + "\n"


# Input: tables of a run, a folder of queries and documents, an export, or one file.

BELOW = ("", "retrieval", "beir", "mteb/retrieval", "export/beir", "export/mteb/retrieval")
"""Subfolders in which queries and documents are searched for; the first that has them is used."""
TABLES: Mapping[Table, str] = {"queries": "query", "corpus": "document"}


@dataclass(frozen=True)
class TextPart:
    """Texts of one role: queries or documents."""

    name: str
    role: str
    files: Sequence[File]
    names: items.Names = field(repr=False)

    def texts(self) -> Iterator[str]:
        """Yield every text with its title, as for an encoder; DataError at the first row that cannot be read."""
        for file in self.files:
            for row in file.rows(needed_columns(self.names)):
                record = item(row, self.names)
                if isinstance(record, Problem):
                    raise record.error(file.location)
                yield records.shown(record.title, record.text)


def parts(path: Path, column: str | None = None) -> list[TextPart]:
    """Return the texts of a folder or file, queries first; `column` is the text column of a file.

    DataError if no texts are found.
    """
    if path.is_file():
        return [_file_texts(path, column)]
    if column is not None:
        raise ConfigError(f"--column {column}: found the folder {path}, expected a file with it; leave it out")
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder, expected one with texts; check the path")
    if is_run(path):
        names = {"queries": {"id": ("query_id",)}, "corpus": {"id": ("doc_id",), "title": ("title",)}}
        return [
            TextPart(
                _plural(table), role, [_file_of(table_path(path, table), table)], names[table] | {"text": ("text",)}
            )
            for table, role in TABLES.items()
        ]
    for below in BELOW:
        if of_folder := _folder_parts(path / below):
            return of_folder
    file_names = ", ".join(file.name for file in layout.readable(path)[:10]) or "no table"
    raise DataError(
        f"{path}: found {file_names}, expected a run folder, an export, or queries.jsonl or corpus.jsonl; give a "
        "single file by its own path"
    )


def _folder_parts(folder: Path) -> list[TextPart]:
    if not folder.is_dir():
        return []
    tables = layout.find(folder, None)
    return [
        TextPart(_plural(table), role, [_file_of(path, table) for path in tables.of(table)], NAMES[table])
        for table, role in TABLES.items()
        if tables.of(table)
    ]


def _file_texts(path: Path, column: str | None) -> TextPart:
    """Return the texts of a file: from `column`, else from `title` and `text` or `query`."""
    file = _file_of(path, "corpus")
    texts = (column,) if column else (*NAMES["corpus"]["text"], "query")
    head = file.header()
    if head is not None and not any(name in head for name in texts):
        raise DataError(
            f"{path}: found the columns {shown_names(head)}, expected {' or '.join(texts)}; name the one that holds "
            "the texts with --column"
        )
    titles: items.Names = {} if column else {"title": NAMES["corpus"]["title"]}
    return TextPart(path.name, "document", [file], {"id": (LINE,), **titles, "text": texts})


def _file_of(path: Path, table: Table) -> File:
    return File(path, format_of(path), table=table)


def _plural(table: Table) -> str:
    return "documents" if table == "corpus" else table


# Figures: tokenize with every model, count, resample.

BATCH = 500


@dataclass
class _Count:
    """Counts of one tokenizer on the texts of one role."""

    model: str
    tokenizer: ModelTokenizer
    rows: list[list[float]]
    terms: Terms


def report(command: TokensCommand) -> TokensFigures:
    """Return all figures; if `out` is given, also write them to tokens.json and README.md in this folder."""
    if command.out is not None:
        free_place(command.out, ["tokens.json"])
    names = list(dict.fromkeys([*command.models, *command.others]))
    if not names:
        raise ConfigError("tokens: found no model; name some with --models, such as --models use,e5")
    with waiting(command.progress, StepLabel("loading tokenizers")):
        models = {name: named(name) for name in names}
    collections = tuple(_collection_figures(texts, models, command) for texts in parts(command.folder, command.column))
    figures = TokensFigures(
        place=str(command.folder),
        lengths=LENGTHS,
        parts=collections,
        notes=tuple(note for collection in collections for note in _notes(collection, command)),
        folder=None if command.out is None else str(command.out),
    )
    if command.out is not None:
        command.out.mkdir(parents=True, exist_ok=True)
        write_json(command.out / "tokens.json", figures.to_json("folder"))
        write_text(command.out / "README.md", readme(figures))
    return figures


def _collection_figures(
    collection: TextPart, models: dict[str, dict[str, ModelTokenizer]], command: TokensCommand
) -> TextsTokens:
    counts = [_Count(name, sides[collection.role], [], Terms()) for name, sides in models.items()]
    units = characters = n_texts = 0
    label = StepLabel(f"cutting {collection.name}", "texts")
    remaining = islice((text for text in collection.texts() if text.strip()), command.limit)
    while texts := list(islice(remaining, BATCH)):
        spans = [tokenizers.spans(text) for text in texts]
        units, characters = units + sum(map(len, spans)), characters + sum(span.characters for span in spans)
        for count in counts:
            pieces_by_text = count.tokenizer.cut(texts, spans)
            for text, units_of_text, pieces in zip(texts, spans, pieces_by_text, strict=True):
                count.rows.append(tokenizers.row(units_of_text, pieces, count.tokenizer.own))
                if pieces.per_unit is not None:
                    count.terms.add(text, units_of_text, pieces.per_unit)
        n_texts += len(texts)
        command.progress(label, n_texts, n_texts)
    if not n_texts:
        raise DataError(f"{collection.files[0].location}: found no text, expected one at least; check the file")
    sums: list[Floats] = [np.array(count.rows) for count in counts]
    with waiting(command.progress, StepLabel(f"resampling {collection.name}")):
        figures = tokenizers.figures(sums, command.seed)
    return TextsTokens(
        part=collection.name,
        texts=n_texts,
        units=units,
        characters=characters,
        per="character" if 2 * characters > units else "word",
        models=tuple(_model_tokens(count, row, command.terms) for count, row in zip(counts, figures, strict=True)),
    )


def _model_tokens(count: _Count, figures: dict[str, Figure], terms: int) -> ModelTokens:
    saved = sum(count.terms.saved.values())
    return ModelTokens(
        model=count.model,
        own=count.tokenizer.own,
        how=count.tokenizer.how,
        tokens=int(sum(row[2] for row in count.rows)),
        terms=tuple(
            Term(term, times, texts, round(1 + extra_tokens / times, 2), round(extra_tokens / saved, 6))
            for term, times, texts, extra_tokens in count.terms.worst(terms)
        ),
        **figures,
    )


def _notes(collection: TextsTokens, command: TokensCommand) -> Iterator[str]:
    if collection.texts < FEW:
        yield f"{collection.part}: {collection.texts} texts, under {FEW}: these intervals are too narrow"
    if collection.texts == command.limit:
        yield f"{collection.part}: the first {command.limit:,} texts alone (limit)"
    for model in collection.models:
        if model.how == "not told":
            yield f"{collection.part}: {model.model} tells how many tokens a text has, and not where they begin"
