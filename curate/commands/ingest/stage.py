"""HTML in queries and documents: counted, and stripped where the settings say so."""

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
from curate.core.errors import ConfigError, DataError
from curate.core.progress import StepLabel
from curate.core.sampling import shuffled
from curate.pipeline import legacy
from curate.pipeline.stage import Context, Report, Stage
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
    pair,
    reached,
    shown,
    wanted,
)
from curate.tables.readers.markup import is_html, strip
from curate.tables.readers.settings import Sources, sources, spoken
from curate.tables.readers.text_rows import FIX


@dataclass
class HtmlTexts:
    """What becomes of texts with tags, and how many there were."""

    policy: Literal["keep", "strip"]
    found: Counter[Table] = field(default_factory=Counter)

    def read(self, item: Item, table: Table) -> Item:
        """Return the item as the settings want it, and count it if its title or its text holds HTML."""
        if not (is_html(item.text) or is_html(item.title)):
            return item
        self.found[table] += 1
        return item if self.policy == "keep" else replace(item, title=strip(item.title), text=strip(item.text))

    def notes(self) -> Iterator[str]:
        """Yield a sentence per table with HTML."""
        words = {"queries": "queries", "corpus": "documents"}
        done = {"keep": "which is kept; ingest.html: strip removes it", "strip": "which was stripped"}
        for table, count in sorted(self.found.items()):
            yield f"{count:,} {words[table]} hold HTML, {done[self.policy]}"


# Scores of a set's own qrels: which of them mean relevant, and what is asked where nobody has said so.


def taken_scores(scores: Mapping[int, int], config: Config, *, audited: bool) -> str:
    """Return in a sentence which scores (score -> rows of the qrels) count as relevant; empty where it is plain.

    DataError if positive scores hold several values, `ingest.relevant_from` is not given and the set is to be audited:
    its authors may mean *incorrect* by a 1. ConfigError if it is above every score.
    """
    positive = {score: rows for score, rows in sorted(scores.items()) if score > 0}
    said = f"the qrels have the scores {', '.join(f'{score} ({rows:,})' for score, rows in positive.items())}"
    least = config.relevant_from
    if least is None and audited and len(positive) > 1:
        source = f" {shlex.quote(config.source)}" if config.source else ""
        raise DataError(
            f"ingest: {said}, and nobody has said which of them mean relevant: an audit would call the others wrong; "
            f"name the lowest that does, with the options of before: curate audit{source} --relevant-from N "
            "(elsewhere --set ingest.relevant_from=N, or that setting in the pipeline)"
        )
    if least is None:
        return f"{said}: each counts as relevant; see ingest.relevant_from" if len(positive) > 1 else ""
    if not positive:
        return ""
    if least > max(positive):
        raise ConfigError(f"ingest.relevant_from: found {least}, but {said}; give one of them")
    return f"{said}: {least} and above count as relevant"


# The mark of queries that a model wrote, as a row of any file of queries may carry it.

_PLACES = ("source", "metadata.source")


def source_columns(table: Table) -> Names:
    """Return the columns that may hold a mark, to be read beside those of the table."""
    return {"source": _PLACES} if table == "queries" else {}


def row_source(table: Table, row: Row | Problem, file: str) -> str:
    """Return the mark of a query that a model wrote, as its row has it; the name of the file for all other texts."""
    if table == "queries" and isinstance(row, Row):
        for value in (value for name in _PLACES for value in reached(row.values, name)):
            if isinstance(value, str) and synthetic.writer(value):
                return value
    return file


# Ingest: raw queries, corpus and qrels of many formats become tables.

_EVERY = 2_000


def _any(_name: str) -> bool:
    return True


@dataclass
class _Reading:
    """One run of the stage."""

    config: Config
    context: Context
    sources: Sources
    queries: ReadTexts = field(default_factory=partial(ReadTexts, "queries"))
    corpus: ReadTexts = field(default_factory=partial(ReadTexts, "corpus"))

    def __post_init__(self) -> None:
        self.html = HtmlTexts(self.config.html)
        self.bad = BadRows(self.config)
        self.pairs = ReadLabels(self.queries, self.corpus, self.bad)

    def texts(
        self, table: Literal["queries", "corpus"], classes: files.TableWriter, taken: Callable[[str], bool] = _any
    ) -> None:
        """Read, check and write the rows of one table of texts, and their classes; only those whose ids are `taken`."""
        seen, firsts = (self.queries if table == "queries" else self.corpus), Firsts()
        names, merging = self.config.names(table), self.config.duplicates == "merge"
        with files.TableWriter(self.context.out, table) as writer:
            for source, row in self._rows(table):
                found = item(row, names)
                if isinstance(found, Item) and not taken(found.id):
                    seen.left_out.add(found.id)
                    continue
                self.bad.read[table] += 1
                found = self.html.read(found, table) if isinstance(found, Item) else found
                kept = self._judged(table, source, found, seen)
                if kept is None:
                    continue
                number = firsts.number(kept.id, records.shown(kept.title, kept.text))
                if merging and firsts.names[number] != kept.id:
                    seen.merged[kept.id] = firsts.names[number]
                    continue
                writer.add(_row(table, kept, row_source(table, row, source.name)))
                classes.add({"table": table, "id": kept.id, "class": number})
                seen.kept += 1
        if seen.kept == 0 and self.sources.tables[table]:
            places = ", ".join(source.place for source in self.sources.tables[table])
            raise DataError(
                f"{places}: found no {table} with text, expected at least one; {self._lost(table, seen)}check the file"
            )
        self.bad.stop_if_most(table)

    def _lost(self, table: Table, seen: ReadTexts) -> str:
        """Return what became of the rows of a table of which none was kept, as a clause; empty if there was no row."""
        left_out = (
            f"{len(seen.left_out):,} left out by ingest.ids, by ingest.sample or as of another split or part"
            if seen.left_out
            else ""
        )
        return "".join(f"{part}; " for part in (self.bad.reasons(table), left_out) if part)

    def _judged(self, table: Table, source: Source, found: Item | Problem, seen: ReadTexts) -> Item | None:
        """Return the item if it can be kept; else note why not."""
        if isinstance(found, Problem):
            self.bad.note(table, source, found)
        elif found.id in seen.known:
            problem = Problem(found.line, f"the id {shown(found.id)} again", "one row per id", FIX)
            self.bad.note(table, source, problem, found.id)
        else:
            seen.known.add(found.id)
            if self.config.pairs:
                seen.lines[found.line] = found.id
            if not found.empty():
                return found
            seen.empty.add(found.id)
            self.bad.drop(table, found.id, "empty text")
        return None

    def qrels(self) -> pl.DataFrame:
        """Read and check the qrels; return those whose query and document are kept, under their kept ids."""
        names = self.config.names("qrels")
        for source, row in self._rows("qrels"):
            self.pairs.add(source, pair(row, names))
        if self.config.pairs:
            self.pairs.add_pairs(self.sources.tables["queries"][0])
        return self.pairs.table()

    def labels(self) -> dict[str, Json]:
        """Write the labels of texts and return how many there are; nothing where no setting names any."""
        known = {"queries": self.queries, "corpus": self.corpus}
        found = labels.read(self.config, self.sources, known, self.bad)
        self.bad.stop_if_most("labels")
        return labels.write(self.context.out, found, self.config)

    def _rows(self, table: Table) -> Iterator[tuple[Source, Row | Problem]]:
        """Yield the rows of a table's sources; at the end of each, raise what was wrong in it."""
        names = self.config.names(table)
        for source in self.sources.tables[table]:
            check_header(source, table, names)
            size, label = source.size(), StepLabel(f"reading {table}", _unit(source))
            for number, row in enumerate(source.rows(wanted({**names, **source_columns(table)}))):
                if isinstance(row, Row) and number % _EVERY == 0:
                    self.context.progress(label, size, min(row.at, size - 1))
                yield source, row
            self.context.progress(label, size, size)
            self.bad.stop()


def _unit(source: Source) -> str:
    """Return the unit of a source's size: bytes of a text file, or rows."""
    return "bytes" if isinstance(source, File) and source.format not in BINARY else "rows"


def run(config: Config, context: Context) -> Report:
    """Read all sources and write the six tables."""
    reading = _Reading(config, context, sources(config))
    check_pairs(config, reading.sources)
    with files.TableWriter(context.out, "classes") as classes:
        reading.texts("queries", classes, _choice(config, reading.sources))
        _check_ids(config, reading.queries)
        reading.texts("corpus", classes)
    qrels = reading.qrels()
    note = taken_scores(reading.pairs.scores, config, audited="audit" in context.stages)
    files.write_table(context.out, "qrels", qrels)
    if config.relevant_from is not None:
        files.write_json(context.out / files.LABELS, {"relevant_from": config.relevant_from})
    files.write_table(context.out, "aliases", _aliases(reading))
    labelled = reading.labels()
    files.write_table(context.out, "dropped", (dropped := reading.bad.dropped.table()).sort("table", "id", "reason"))
    numbers = len(reading.queries.by_number) + len(reading.corpus.by_number)
    floats = (
        f"{numbers:,} ids that no text has were taken for the same whole number, as 101.0 for 101" if numbers else ""
    )
    notes = [*reading.sources.notes, *reading.html.notes(), *filter(None, (floats, note))]
    return _report(reading, qrels.height, dropped, labelled, notes)


def _report(
    reading: _Reading, qrels: int, dropped: pl.DataFrame, labelled: Mapping[str, Json], notes: list[str]
) -> Report:
    lost_qrels, lost_labels = (int((dropped["table"] == name).sum()) for name in ("qrels", "labels"))
    facts: dict[str, Json] = {
        "queries": reading.queries.kept,
        "documents": reading.corpus.kept,
        "qrels": qrels,
        "merged_queries": len(reading.queries.merged),
        "merged_corpus": len(reading.corpus.merged),
        "dropped_qrels": lost_qrels,
        "queries_left_out": len(reading.queries.left_out),
        "languages": asdict(spoken(reading.config, reading.sources)),
        **({legacy.LOST: dict(Counter(reading.pairs.lost.values()))} if reading.pairs.lost else {}),
        **labelled,
    }
    kept, lost = reading.queries.kept + reading.corpus.kept, len(dropped) - lost_qrels - lost_labels
    read = reading.bad.read["queries"] + reading.bad.read["corpus"]
    return Report(read, kept, lost, facts=facts, notes=notes)


def _aliases(reading: _Reading) -> pl.DataFrame:
    none = files.frame("aliases")
    tables = (("corpus", reading.corpus), ("queries", reading.queries))
    return pl.concat([follow_aliases(none, table, texts.merged) for table, texts in tables])


def _row(table: Table, found: Item, source: str) -> dict[str, str]:
    own = {"query_id": found.id} if table == "queries" else {"doc_id": found.id, "title": found.title}
    return {**own, "text": found.text, "source": source}


def _choice(config: Config, found: Sources) -> Callable[[str], bool]:
    """Return which queries are taken: those of `_named`, or of these one part, or a sample."""
    taken, part = _named(config, found), config.part
    if config.sample is None and part is None:
        return taken
    names = config.names("queries")
    read = (item(row, names) for source in found.tables["queries"] for row in source.rows(wanted(names)))
    known = {
        each.id
        for each in read
        if isinstance(each, Item) and not each.empty() and taken(each.id) and (part is None or part.holds(each.text))
    }
    return frozenset(shuffled(sorted(known), config.sample_seed, "ingest")[: config.sample]).__contains__


def _named(config: Config, found: Sources) -> Callable[[str], bool]:
    """Return which queries are meant: those that are named, else all but those of other splits only."""
    if config.ids is not None:
        return frozenset(config.ids).__contains__
    if not found.other_qrels:
        return _any
    names = config.names("qrels")

    def labelled(group: Sequence[Source]) -> set[str]:
        read = (pair(row, names) for source in group for row in source.rows(wanted(names)))
        return {integer_form(each.query_id) for each in read if isinstance(each, LabelledPair)}

    other, own = labelled(found.other_qrels), labelled(found.tables["qrels"])
    return lambda name: integer_form(name) in own or integer_form(name) not in other


def _check_ids(config: Config, queries: ReadTexts) -> None:
    unknown = [repr(name) for name in config.ids or [] if name not in queries.known | queries.left_out]
    if unknown:
        more = f" and {len(unknown) - LISTED} more" if len(unknown) > LISTED else ""
        raise ConfigError(f"ingest.ids: found no query {', '.join(unknown[:LISTED])}{more}; correct the list of ids")


def fingerprint(config: Config, _context: Context) -> Json:
    """Return the digests of everything that is read; a missing file is an error before anything runs."""
    found = sources(config)
    check_pairs(config, found)
    return {**found.digests(), **labels.digests(config, found)}


STAGE = Stage("ingest", Config, (), run, fingerprint, head=(), version=2)
