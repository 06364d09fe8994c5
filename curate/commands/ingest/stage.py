"""Stage `ingest`: reads queries, corpus and qrels of many formats into tables."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Literal

import polars as pl

from curate.commands.ingest import Config, labels
from curate.commands.ingest.bad_rows import LISTED, BadRows
from curate.commands.ingest.qrels import ReadLabels, check_pairs
from curate.commands.ingest.read_texts import ReadTexts
from curate.core import records, synthetic
from curate.core.config import Json
from curate.core.duplicates import Firsts, follow_aliases
from curate.core.errors import ConfigError, DataError, TableError
from curate.core.progress import StepLabel
from curate.core.sampling import shuffled
from curate.pii.pseudonyms import name as pseudonym
from curate.pii.pseudonyms import secret
from curate.pipeline import legacy
from curate.pipeline.stage import Context, Report, Stage
from curate.pipeline.withdrawn import Withdrawn
from curate.system import files
from curate.tables.readers import Problem, Row, Source, Table
from curate.tables.readers.file import BINARY, File
from curate.tables.readers.items import (
    Item,
    LabelledPair,
    Names,
    check_header,
    integer_form,
    item,
    needed_columns,
    pair,
    reached,
    shown,
)
from curate.tables.readers.markup import is_html, strip
from curate.tables.readers.passages import passages
from curate.tables.readers.settings import Sources, sources, spoken
from curate.tables.readers.text_rows import FIX

# HTML in queries and documents: counted, and stripped where the settings say so.


@dataclass
class HtmlTexts:
    """Policy for HTML in texts, which keeps or strips it, and the number of texts with HTML."""

    policy: Literal["keep", "strip"]
    found: Counter[Table] = field(default_factory=Counter)

    def read(self, item: Item, table: Table) -> Item:
        """Return the item, stripped of HTML if the policy says so; count it if title or text contains HTML."""
        if not (is_html(item.text) or is_html(item.title)):
            return item
        self.found[table] += 1
        return item if self.policy == "keep" else replace(item, title=strip(item.title), text=strip(item.text))

    def notes(self) -> Iterator[str]:
        """Yield one sentence per table with HTML."""
        words = {"queries": "queries", "corpus": "documents"}
        outcome = {"keep": "which is kept; ingest.html: strip removes it", "strip": "which was stripped"}
        for table, count in sorted(self.found.items()):
            yield f"{count:,} {words[table]} hold HTML, {outcome[self.policy]}"


# Scores of original qrels: which of them mean relevant.


def taken_scores(scores: Mapping[int, int], config: Config, *, audited: bool) -> str:
    """Return a sentence on which `scores` (score -> rows) count as relevant; empty if there is only one positive score.

    DataError if there are several, the set will be audited and `ingest.relevant_from` is not set, because its authors
    may mean *incorrect* by a 1. ConfigError if the setting is above all scores.
    """
    positive = {score: rows for score, rows in sorted(scores.items()) if score > 0}
    summary = f"the qrels have the scores {', '.join(f'{score} ({rows:,})' for score, rows in positive.items())}"
    least = config.relevant_from
    if least is None and audited and len(positive) > 1:
        source = f" {shlex.quote(config.source)}" if config.source else ""
        raise DataError(
            f"ingest: {summary}, and nobody has said which of them mean relevant: an audit would call the others "
            f"wrong; name the lowest that does, with the options of before: curate audit{source} --relevant-from N "
            "(elsewhere --set ingest.relevant_from=N, or that setting in the pipeline)"
        )
    if least is None:
        return f"{summary}: each counts as relevant; see ingest.relevant_from" if len(positive) > 1 else ""
    if not positive:
        return ""
    if least > max(positive):
        raise ConfigError(f"ingest.relevant_from: found {least}, but {summary}; give one of them")
    return f"{summary}: {least} and above count as relevant"


# The mark of queries that a model wrote: a column that any file of queries may have.

_PLACES = ("source", "metadata.source")


def source_columns(table: Table) -> Names:
    """Return the columns that may mark synthetic queries, to be read in addition to those of the table."""
    return {"source": _PLACES} if table == "queries" else {}


def row_source(table: Table, row: Row | Problem, file: str) -> str:
    """Return the mark of a synthetic query in its row; for all other texts the name of the file."""
    if table == "queries" and isinstance(row, Row):
        for mark in (mark for name in _PLACES for mark in reached(row.values, name)):
            if isinstance(mark, str) and synthetic.writer(mark):
                return mark
    return file


_EVERY = 2_000


def _any(_name: str) -> bool:
    return True


@dataclass
class _Reading:
    """State of one run of the stage."""

    config: Config
    context: Context
    sources: Sources
    queries: ReadTexts = field(default_factory=partial(ReadTexts, "queries"))
    corpus: ReadTexts = field(default_factory=partial(ReadTexts, "corpus"))

    def __post_init__(self) -> None:
        self.html = HtmlTexts(self.config.html)
        self.withdrawn = Withdrawn.read(self.context.run)
        self._key = secret(self.context.home) if self.withdrawn else b""
        self.bad = BadRows(self.config)
        self.pairs = ReadLabels(self.queries, self.corpus, self.bad)
        self.extents: list[tuple[str, str, int, int]] = []
        """Passage, its document, start and end in the document's text."""

    def texts(
        self, table: Literal["queries", "corpus"], classes: files.TableWriter, is_taken: Callable[[str], bool] = _any
    ) -> None:
        """Read, check and write the rows of one table with selected ids, and their classes of equal texts."""
        seen, firsts = (self.queries if table == "queries" else self.corpus), Firsts()
        names, merging = self.config.names(table), self.config.duplicates == "merge"
        with files.TableWriter(self.context.out, table) as writer:
            for source, row in self._rows(table):
                parsed = item(row, names)
                if isinstance(parsed, Item) and (not is_taken(parsed.id) or self._is_withdrawn(table, parsed.id)):
                    seen.left_out.add(parsed.id)
                    continue
                self.bad.read[table] += 1
                parsed = self.html.read(parsed, table) if isinstance(parsed, Item) else parsed
                usable = self._usable(table, source, parsed, seen)
                if usable is None:
                    continue
                for passage in self._passages(table, usable, seen):
                    if self._is_withdrawn(table, passage.id):
                        continue
                    number = firsts.number(passage.id, records.shown(passage.title, passage.text))
                    if merging and firsts.names[number] != passage.id:
                        seen.merged[passage.id] = firsts.names[number]
                        continue
                    ids = (
                        {"query_id": passage.id}
                        if table == "queries"
                        else {"doc_id": passage.id, "title": passage.title}
                    )
                    writer.add({**ids, "text": passage.text, "source": row_source(table, row, source.name)})
                    classes.add({"table": table, "id": passage.id, "class": number})
                    seen.retained += 1
        if seen.retained == 0 and self.sources.tables[table]:
            files_read = ", ".join(source.location for source in self.sources.tables[table])
            raise TableError.at(
                files_read, f"no {table} with text", "at least one", f"{self._losses(table, seen)}check the file"
            )
        self.bad.stop_if_most(table)

    def _is_withdrawn(self, table: Table, name: str) -> bool:
        ids = self.withdrawn.queries if table == "queries" else self.withdrawn.documents
        return bool(ids) and (name in ids or pseudonym(self._key, name) in ids)

    def _passages(self, table: Table, text: Item, seen: ReadTexts) -> Iterator[Item]:
        """Yield the passages of a document; a query, or a document that is short enough, as it is."""
        if table != "corpus" or self.config.passages is None:
            yield text
            return
        cut = passages(text, self.config.passages)
        if len(cut) > 1:
            seen.cut.add(text.id)
        for passage, start, end in cut:
            if passage.id != text.id and passage.id in seen.ids:
                raise TableError.at(
                    "ingest.passages",
                    f"the id {shown(passage.id)}, which a passage of {shown(text.id)} would have",
                    "ids without #",
                    "rename it",
                )
            seen.ids.add(passage.id)
            self.extents.append((passage.id, text.id, start, end))
            yield passage

    def _losses(self, table: Table, seen: ReadTexts) -> str:
        """Return clauses on dropped and excluded rows of a table, each followed by `; `; empty if there are none."""
        left_out = (
            f"{len(seen.left_out):,} left out by ingest.ids, by ingest.sample or as of another split or part"
            if seen.left_out
            else ""
        )
        return "".join(f"{clause}; " for clause in (self.bad.reasons(table), left_out) if clause)

    def _usable(self, table: Table, source: Source, parsed: Item | Problem, seen: ReadTexts) -> Item | None:
        """Return the text if it is valid and not excluded; else None, and a problem is recorded."""
        if isinstance(parsed, Problem):
            self.bad.note(table, source, parsed)
        elif parsed.id in seen.ids:
            problem = Problem(parsed.line, f"the id {shown(parsed.id)} again", "one row per id", FIX)
            self.bad.note(table, source, problem, parsed.id, columns=self.config.names(table)["id"])
        else:
            seen.ids.add(parsed.id)
            if self.config.pairs:
                seen.lines[source.line_prefix if isinstance(source, File) else "", parsed.line] = parsed.id
            if not parsed.empty():
                return parsed
            seen.empty.add(parsed.id)
            self.bad.drop(table, parsed.id, "empty text")
        return None

    def qrels(self) -> pl.DataFrame:
        """Return the checked qrels whose query and document are retained, with their retained ids."""
        names = self.config.names("qrels")
        for source, row in self._rows("qrels"):
            self.pairs.add(source, pair(row, names))
        if self.config.pairs:
            self.pairs.add_pairs(self.sources.tables["queries"][0])
        return self.pairs.table()

    def labels(self) -> dict[str, Json]:
        """Write the table `labels`, and return its number of rows as facts; {} if the settings name no labels."""
        texts_by_side = {"queries": self.queries, "corpus": self.corpus}
        table = labels.read(self.config, self.sources, texts_by_side, self.bad)
        self.bad.stop_if_most("labels")
        return labels.write(self.context.out, table, self.config)

    def _rows(self, table: Table) -> Iterator[tuple[Source, Row | Problem]]:
        """Yield (source, row) for a table's sources; DataError at the end of a source with problems."""
        names = self.config.names(table)
        for source in self.sources.tables[table]:
            check_header(source, table, names)
            unit = "bytes" if isinstance(source, File) and source.format not in BINARY else "rows"
            size, label = source.size(), StepLabel(f"reading {table}", unit)
            for number, row in enumerate(source.rows(needed_columns({**names, **source_columns(table)}))):
                if isinstance(row, Row) and number % _EVERY == 0:
                    self.context.progress(label, size, min(row.position, size - 1))
                yield source, row
            self.context.progress(label, size, size)
            self.bad.stop()


def run(config: Config, context: Context) -> Report:
    """Read all sources and write the tables of the stage."""
    reading = _Reading(config, context, sources(config))
    check_pairs(config, reading.sources)
    with files.TableWriter(context.out, "classes") as classes:
        reading.texts("queries", classes, _choice(config, reading.sources))
        _check_ids(config, reading.queries)
        reading.texts("corpus", classes)
    if config.passages is not None:
        schema = records.TABLES["passages"]
        files.write_table(context.out, "passages", pl.DataFrame(reading.extents, schema=schema, orient="row"))
    qrels = reading.qrels()
    note = taken_scores(reading.pairs.scores, config, audited="audit" in context.stages)
    files.write_table(context.out, "qrels", qrels)
    if config.relevant_from is not None:
        files.write_json(context.out / files.LABELS, {"relevant_from": config.relevant_from})
    tables = (("corpus", reading.corpus), ("queries", reading.queries))
    aliases = [follow_aliases(files.frame("aliases"), table, texts.merged) for table, texts in tables]
    files.write_table(context.out, "aliases", pl.concat(aliases))
    labelled = reading.labels()
    files.write_table(context.out, "dropped", (dropped := reading.bad.dropped.table()).sort("table", "id", "reason"))
    numbers = len(reading.queries.by_number) + len(reading.corpus.by_number)
    floats = (
        f"{numbers:,} ids that no text has were taken for the same whole number, as 101.0 for 101" if numbers else ""
    )
    contested = (source.note() for source in reading.sources.tables["qrels"] if isinstance(source, File))
    withdrawn = reading.withdrawn.note()
    notes = [*reading.sources.notes, *reading.html.notes(), *filter(None, (floats, note, withdrawn, *contested))]
    return _report(reading, qrels.height, dropped, labelled, notes)


def _report(
    reading: _Reading, qrels: int, dropped: pl.DataFrame, labelled: Mapping[str, Json], notes: list[str]
) -> Report:
    lost_qrels, lost_labels = (int((dropped["table"] == name).sum()) for name in ("qrels", "labels"))
    facts: dict[str, Json] = {
        "queries": reading.queries.retained,
        "documents": reading.corpus.retained,
        "qrels": qrels,
        "merged_queries": len(reading.queries.merged),
        "merged_corpus": len(reading.corpus.merged),
        "dropped_qrels": lost_qrels,
        "queries_left_out": len(reading.queries.left_out - set(reading.withdrawn.queries)),
        "languages": asdict(spoken(reading.config, reading.sources)),
        **({legacy.LOST: dict(Counter(reading.pairs.lost.values()))} if reading.pairs.lost else {}),
        **reading.withdrawn.facts(),
        **labelled,
    }
    written, lost = reading.queries.retained + reading.corpus.retained, len(dropped) - lost_qrels - lost_labels
    read = reading.bad.read["queries"] + reading.bad.read["corpus"]
    return Report(read, written, lost, facts=facts, notes=notes)


def _choice(config: Config, inputs: Sources) -> Callable[[str], bool]:
    """Return a predicate on query ids: those of `_named`, limited to one split or to a sample."""
    is_named, split = _named(config, inputs), config.part
    if config.sample is None and split is None:
        return is_named
    names = config.names("queries")
    parsed = (item(row, names) for source in inputs.tables["queries"] for row in source.rows(needed_columns(names)))
    eligible = {
        query.id
        for query in parsed
        if isinstance(query, Item)
        and not query.empty()
        and is_named(query.id)
        and (split is None or split.holds(query.text))
    }
    return frozenset(shuffled(sorted(eligible), config.sample_seed, "ingest")[: config.sample]).__contains__


def _named(config: Config, inputs: Sources) -> Callable[[str], bool]:
    """Return a predicate on query ids: true for `ingest.ids`, else for all not labelled only in other splits."""
    if config.ids is not None:
        return frozenset(config.ids).__contains__
    if not inputs.other_qrels:
        return _any
    names = config.names("qrels")

    def labelled(group: Sequence[Source]) -> set[str]:
        parsed = (pair(row, names) for source in group for row in source.rows(needed_columns(names)))
        return {integer_form(label.query_id) for label in parsed if isinstance(label, LabelledPair)}

    other_ids, own_ids = labelled(inputs.other_qrels), labelled(inputs.tables["qrels"])
    return lambda name: integer_form(name) in own_ids or integer_form(name) not in other_ids


def _check_ids(config: Config, queries: ReadTexts) -> None:
    unknown = [repr(name) for name in config.ids or [] if name not in queries.ids | queries.left_out]
    if unknown:
        others_clause = f" and {len(unknown) - LISTED} more" if len(unknown) > LISTED else ""
        raise ConfigError(
            f"ingest.ids: found no query {', '.join(unknown[:LISTED])}{others_clause}; correct the list of ids"
        )


def fingerprint(config: Config, context: Context) -> Json:
    """Return the digests of all files that are read, and of the withdrawn ids; ConfigError if a file is missing."""
    inputs = sources(config)
    check_pairs(config, inputs)
    return {**inputs.digests(), **labels.digests(config, inputs), **Withdrawn.read(context.run).fingerprint()}


STAGE = Stage("ingest", Config, (), run, fingerprint, head=(), version=2)
