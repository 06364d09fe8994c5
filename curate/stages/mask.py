"""mask: personal data in queries and corpus gives way to typed placeholders.

Written: queries, corpus, classes, qrels, aliases, dropped as `ingest` left them but masked; spans: where something was
found, never what; residual: where the masked texts still look as if something was missed; and altered: which texts
masking made equal to others, or took too much of. Texts that are equal once they are masked are merged as in `ingest`;
their classes say that they were not. Rows stream, in their order. If a model is to look first, all texts are put to it
before any is masked.
"""

import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl
from pydantic import Field

from curate import files, records
from curate.config import Json
from curate.context import Context, Report, Stage
from curate.duplicates import Firsts, follow_aliases, follow_qrels, made_equal, same_text
from curate.figures import counted_texts
from curate.pii import residual
from curate.pii.masking import Masked
from curate.pii.secret import secret
from curate.pii.settings import Masking, recognisers, untouched
from curate.pii.workers import Batch, mask_batches
from curate.pii.writing import link
from curate.processes import cores
from curate.records import Span
from curate.stages import billing, decisions, spotting
from curate.stages.leaving import Leaving
from curate.stages.spotting import Spots

TABLES = ("queries", "corpus", "classes", "qrels", "aliases", "dropped")
FIELDS = {"queries": ("text",), "corpus": ("title", "text")}
KEYS = {"queries": "query_id", "corpus": "doc_id"}
MOST = 1 / 3
"""Share of a text's characters above which the masked ones may have taken its sense."""
_SMALL = 20_000
"""Rows up to which one process is done before others have started."""


class Config(Masking, Leaving):
    """What is looked for, and what is written in its place."""

    enabled: bool = Field(default=True, description="false copies the tables as they are")
    processes: int | None = Field(default=None, ge=1, description="how many mask at once; all cores for large tables")
    model: str | None = Field(default=None, description="a language model on this machine that looks first; by name")
    allow_remote: bool = Field(default=False, description="send unmasked texts to a model on another machine, too")
    on_failure: Literal["stop", "rules"] = Field(
        default="stop", description="what becomes of texts that the model did not check: stop, or the rules alone look"
    )


class _Row(NamedTuple):
    """A row as it was, and its masked texts by column."""

    raw: dict[str, Any]
    masked: dict[str, Masked]

    @property
    def written(self) -> dict[str, Any]:
        """Return the row with its texts masked."""
        return {**self.raw, **{name: found.text for name, found in self.masked.items()}}

    def shown(self, *, decided: bool) -> str:
        """Return what is shown of the masked row; without what people decided, as it was when they did."""
        texts = {
            name: found.text if decided else found.restored(self.raw[name], decisions.PERSON)
            for name, found in self.masked.items()
        }
        return records.shown(texts.get("title", ""), texts["text"])


@dataclass
class _Done:
    """What masking did to one table."""

    table: str
    key: bytes = field(repr=False)
    classes: pl.DataFrame
    """id and class of every row that `ingest` wrote."""
    spans: list[dict[str, str | int]] = field(default_factory=list)
    """Rows of the table `spans`; offsets in the raw text."""
    residual: list[dict[str, str | int]] = field(default_factory=list)
    """Rows of the table `residual`; offsets in the masked text."""
    merged: dict[str, str] = field(default_factory=dict)
    firsts: Firsts = field(default_factory=Firsts)
    masked: list[int] = field(default_factory=list)
    """The class of every row's masked text."""
    lost: dict[str, float] = field(default_factory=dict)
    """Id -> share of its characters that were masked, of those in which something was."""
    kept: int = 0

    def rows(self, batch: pl.DataFrame, masked: Sequence[Masked]) -> Iterator[_Row]:
        """Yield the rows of a batch with their masked texts, and note the spans."""
        columns = FIELDS[self.table]
        for number, row in enumerate(batch.iter_rows(named=True)):
            texts = {name: masked[place * len(batch) + number] for place, name in enumerate(columns)}
            for name, found in texts.items():
                self._note(str(row[KEYS[self.table]]), name, row[name], found)
            self._count(str(row[KEYS[self.table]]), sum(len(row[name]) for name in columns), texts.values())
            yield _Row(row, texts)

    def take(self, batch: pl.DataFrame, masked: Sequence[Masked], *, keep_all: bool) -> Iterator[_Row]:
        """Yield the rows of a batch that are kept, and note what the others are merged into."""
        for row in self.rows(batch, masked):
            name, first = str(row.raw[KEYS[self.table]]), self.first(row)
            first = self.merged.get(first, first)
            if keep_all or first == name:
                self.kept += 1
                yield row
            else:
                self.merged[name] = first

    def first(self, row: _Row) -> str:
        """Return the id of the first row of a masked text; one that people had masked stands for what it had merged."""
        name = str(row.raw[KEYS[self.table]])
        number = self.firsts.number(name, row.shown(decided=False))
        if self.firsts.names[number] == name:
            number = self.firsts.number(name, row.shown(decided=True))
        self.masked.append(number)
        return self.firsts.names[number]

    def altered(self) -> pl.DataFrame:
        """Return the rows of the table `altered`: texts made equal to another one, and those that lost too much."""
        equal = made_equal(self.classes.with_columns(masked=pl.Series(self.masked, dtype=pl.Int64)))
        lost = pl.DataFrame(list(self.lost.items()), {"id": pl.String, "lost": pl.Float64}, orient="row")
        every = lost.join(equal, on="id", how="full", coalesce=True).with_columns(table=pl.lit(self.table))
        return every.filter((pl.col("lost") > MOST) | pl.col("equal_to").is_not_null()).sort("id")

    def _count(self, name: str, length: int, texts: Iterable[Masked]) -> None:
        if hidden := sum(span.end - span.start for found in texts for span in found.spans):
            self.lost[name] = hidden / length

    def look_over(self, rows: Sequence[_Row], closed: re.Pattern[str]) -> None:
        """Note what still looks like personal data in masked rows."""
        for name in FIELDS[self.table]:
            for number, found in residual.scan([row.masked[name].text for row in rows], closed):
                row = rows[number]
                place: dict[str, str | int] = {"table": self.table, "id": row.raw[KEYS[self.table]], "field": name}
                start, end = row.masked[name].raw(found.start, found.end)
                raw: dict[str, str | int] = {
                    "raw_start": start,
                    "raw_end": end,
                    "link": decisions.text_link(self.key, row.raw[name]),
                }
                self.residual.append({**place, "start": found.start, "end": found.end, "reason": found.reason, **raw})

    def _note(self, name: str, key: str, raw: str, masked: Masked) -> None:
        for span in masked.spans:
            place: dict[str, str | int] = {"table": self.table, "id": name, "field": key}
            kind: dict[str, str | int] = {"kind": span.kind, "recogniser": span.recogniser}
            value = link(self.key, span.kind, raw[span.start : span.end])
            self.spans.append({**place, "start": span.start, "end": span.end, **kind, "link": value})


def run(config: Config, context: Context) -> Report:
    """Mask both tables of texts, let qrels and aliases follow, write everything."""
    if not config.enabled:
        return _copy(context)
    spots = spotting.spot(config, context, lambda: _texts(context))
    decided = decisions.ToMask(context.run, secret(context.home))
    masked = {table: _mask(table, config, context, spots, decided) for table in FIELDS}
    qrels = follow_qrels(context.read("ingest", "qrels"), masked["queries"].merged, masked["corpus"].merged)
    files.write_table(context.out, "qrels", qrels)
    aliases = context.read("ingest", "aliases")
    followed = [follow_aliases(aliases, table, masked[table].merged) for table in sorted(FIELDS)]
    files.write_table(context.out, "aliases", pl.concat(followed))
    files.write_table(context.out, "dropped", context.read("ingest", "dropped"))
    spans = files.frame("spans", [span for table in FIELDS for span in masked[table].spans])
    files.write_table(context.out, "spans", spans.sort("table", "id", "field", "start"))
    left = files.frame("residual", [row for table in FIELDS for row in masked[table].residual])
    files.write_table(context.out, "residual", left.sort("table", "id", "field", "start"))
    altered = pl.concat([masked[table].altered().select(*records.TABLES["altered"]) for table in sorted(FIELDS)])
    files.write_table(context.out, "altered", altered)
    classes = [_kept(masked[table]) for table in FIELDS]
    files.write_table(context.out, "classes", pl.concat(classes))
    return _report(masked, altered, len(left), spots, decided)


def _kept(done: _Done) -> pl.DataFrame:
    """Return the classes of the rows that were not merged."""
    own = done.classes.filter(~pl.col("id").is_in(list(done.merged)))
    return own.select(table=pl.lit(done.table), id="id", **{"class": "class"})


def _mask(table: str, config: Config, context: Context, spots: Spots | None, decided: decisions.ToMask) -> _Done:
    total, key = _height(context.folder("ingest"), table), secret(context.home)
    processes = config.processes or (cores() if total > _SMALL else 1)
    settings = Masking.model_validate(config.model_dump(include=set(Masking.model_fields)))
    done = _Done(table, key, same_text(context.read("ingest", "classes"), table))
    keep_all = context.duplicates == "keep"
    closed, batches = untouched(settings), _batches(table, context, spots, decided)
    with files.TableWriter(context.out, table) as writer:
        for batch, masked in mask_batches(settings, context.language, key, batches, processes):
            kept = list(done.take(batch, masked, keep_all=keep_all))
            for each in kept:
                writer.add(each.written)
            done.look_over(kept, closed)
            context.progress(f"mask {table}", total, len(done.masked))
            del batch, masked, kept  # or they would be held while the next batch is masked
    return done


def _batches(
    table: str, context: Context, spots: Spots | None = None, decided: decisions.ToMask | None = None
) -> Iterator[tuple[pl.DataFrame, Batch]]:
    """Yield the raw rows, their texts field by field, and what a model has found or people have decided to mask."""
    for batch in files.batches(context.folder("ingest"), table):
        texts = [text for name in FIELDS[table] for text in batch[name]]
        known: defaultdict[int, list[Span]] = defaultdict(list)
        for row, text in enumerate(texts):
            if spots and (spans := spots.of(text)):
                known[row] += spans
        for row, span in decided.of(table, batch, FIELDS[table], KEYS[table]) if decided else ():
            known[row].append(span)
        yield batch, (texts, dict(known))


def _texts(context: Context) -> Iterator[str]:
    for table in FIELDS:
        for _, (texts, _) in _batches(table, context):
            yield from texts


def _report(
    masked: dict[str, _Done], altered: pl.DataFrame, left: int, spots: Spots | None, decided: decisions.ToMask
) -> Report:
    kinds = Counter(str(span["kind"]) for part in masked.values() for span in part.spans)
    facts: dict[str, Json] = {f"spans_{kind}": count for kind, count in sorted(kinds.items())}
    for table, part in masked.items():
        own = altered.filter(pl.col("table") == table)
        equal, shortened = own["equal_to"].count(), own.filter(pl.col("lost") > MOST).height
        facts |= {f"masked_{table}": len(part.lost), f"merged_{table}": len(part.merged)}
        facts |= {f"made_equal_{table}": equal, f"shortened_{table}": shortened}
    facts["residual"] = left
    if decided.decided:
        facts["masked_by_people"] = decided.applied
    if spots is not None:
        facts |= {"model": spots.facts, **billing.facts(spots.paid)}
    stopped = "stop `export` and whatever asks a model elsewhere: see `curate check mask --residual`"
    notes = [f"{left:,} places still look like personal data, and {stopped}"] if left else []
    if gone := decided.decided - decided.applied:
        notes.append(f"{gone:,} decisions to mask a place belong to texts that have changed, so they were dropped")
    notes += _altering(facts)
    parts = masked.values()
    return Report(
        sum(len(part.masked) for part in parts),
        sum(part.kept for part in parts),
        cost=0.0 if spots is None else spots.paid.amount,
        facts=facts,
        notes=[*notes, *spotting.notes(spots)],
        spent=0.0 if spots is None else spots.spent,
    )


def _altering(facts: Mapping[str, Json]) -> Iterator[str]:
    """Yield what masking did to the sense of texts, if it did it to any, as one sentence."""
    told = (
        ("made_equal", "made {} equal to others that they were not equal to"),
        ("shortened", "took more than a third of the characters of {}"),
    )
    parts = [words.format(counted) for fact, words in told if (counted := counted_texts(facts, fact))]
    if parts:
        yield f"masking {' and '.join(parts)}: see `curate show mask/altered`"


def _copy(context: Context) -> Report:
    for table in TABLES:
        shutil.copyfile(context.folder("ingest") / f"{table}.parquet", context.out / f"{table}.parquet")
    for table in ("spans", "residual", "altered"):
        files.write_table(context.out, table, files.frame(table))
    rows = sum(_height(context.out, table) for table in FIELDS)
    return Report(rows, rows)


def _height(folder: Path, table: str) -> int:
    rows: int = pl.scan_parquet(folder / f"{table}.parquet").select(pl.len()).collect().item()
    return rows


def fingerprint(config: Config, context: Context) -> Json:
    """Check the recognisers; return their names, what becomes of duplicates, and what is outside of the settings."""
    recognisers(config)
    lists = {name: files.sha256(each.file) for name, each in config.words.items() if each.file}
    drawn = link(secret(context.home), "", "") if config.mode == "pseudonym" else None
    asked = spotting.fingerprint(config, context) if config.enabled else None
    return {
        "recognisers": config.names,
        "duplicates": context.duplicates,
        "words": lists,
        "key": drawn,
        "model": asked,
        "decisions": decisions.identity(context.run) if config.enabled else [],
    }


def preflight(config: Config, context: Context) -> None:
    """Check the key of the model, if it wants one."""
    if config.enabled:
        spotting.preflight(config, context)


STAGE = Stage("mask", Config, ("ingest",), run, fingerprint, preflight, head=("language",), version=6)
