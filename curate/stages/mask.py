"""mask: personal data in queries and corpus gives way to typed placeholders.

Written: queries, corpus, qrels, aliases, dropped as `ingest` left them but masked; spans: where something was found,
never what; and residual: where the masked texts still look as if something was missed. Texts that are equal once they
are masked are merged as in `ingest`. Rows stream, in their order. If a model is to look first, all texts are put to it
before any is masked.
"""

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pydantic import Field

from curate import files, records
from curate.config import Json
from curate.context import Context, Report, Stage
from curate.duplicates import Firsts, follow_aliases, follow_qrels
from curate.pii import residual
from curate.pii.masking import Masked
from curate.pii.secret import secret
from curate.pii.settings import Masking, recognisers, untouched
from curate.pii.workers import Batch, mask_batches
from curate.pii.writing import link
from curate.processes import cores
from curate.stages import billing, spotting
from curate.stages.leaving import Leaving
from curate.stages.spotting import Spots

TABLES = ("queries", "corpus", "qrels", "aliases", "dropped")
FIELDS = {"queries": ("text",), "corpus": ("title", "text")}
KEYS = {"queries": "query_id", "corpus": "doc_id"}
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


@dataclass
class _Done:
    """What masking did to one table."""

    table: str
    key: bytes = field(repr=False)
    spans: list[dict[str, str | int]] = field(default_factory=list)
    """Rows of the table `spans`; offsets in the raw text."""
    residual: list[dict[str, str | int]] = field(default_factory=list)
    """Rows of the table `residual`; offsets in the masked text."""
    merged: dict[str, str] = field(default_factory=dict)
    read: int = 0
    kept: int = 0
    changed: int = 0

    def rows(self, batch: pl.DataFrame, masked: Sequence[Masked]) -> Iterator[dict[str, object]]:
        """Yield the rows of a batch with their texts masked, and note the spans."""
        columns = FIELDS[self.table]
        for number, row in enumerate(batch.iter_rows(named=True)):
            texts = {name: masked[place * len(batch) + number] for place, name in enumerate(columns)}
            for name, found in texts.items():
                self._note(str(row[KEYS[self.table]]), name, row[name], found)
            self.read += 1
            self.changed += any(found.spans for found in texts.values())
            yield {**row, **{name: found.text for name, found in texts.items()}}

    def look_over(self, rows: Sequence[dict[str, Any]], closed: re.Pattern[str]) -> None:
        """Note what still looks like personal data in masked rows."""
        for name in FIELDS[self.table]:
            for number, found in residual.scan([row[name] for row in rows], closed):
                place: dict[str, str | int] = {"table": self.table, "id": rows[number][KEYS[self.table]], "field": name}
                self.residual.append({**place, "start": found.start, "end": found.end, "reason": found.reason})

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
    masked = {table: _mask(table, config, context, spots) for table in FIELDS}
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
    return _report(masked, len(left), spots)


def _mask(table: str, config: Config, context: Context, spots: Spots | None) -> _Done:
    total, key = _height(context.folder("ingest"), table), secret(context.home)
    processes = config.processes or (cores() if total > _SMALL else 1)
    settings = Masking.model_validate(config.model_dump(include=set(Masking.model_fields)))
    done, firsts, keep_all = _Done(table, key), Firsts(), context.duplicates == "keep"
    closed, batches = untouched(settings), _batches(table, context, spots)
    with files.TableWriter(context.out, table) as writer:
        for batch, masked in mask_batches(settings, context.language, key, batches, processes):
            kept = []
            for row in done.rows(batch, masked):
                name = str(row[KEYS[table]])
                shown = records.shown(str(row.get("title", "")), str(row["text"]))
                first = name if keep_all else firsts.of(name, shown)
                if first == name:
                    writer.add(row)
                    kept.append(row)
                else:
                    done.merged[name] = first
            done.look_over(kept, closed)
            done.kept += len(kept)
            context.progress(f"mask {table}", total, done.read)
    return done


def _batches(table: str, context: Context, spots: Spots | None) -> Iterator[tuple[pl.DataFrame, Batch]]:
    """Yield the raw rows, their texts field by field, and what a model has found in them."""
    for batch in files.batches(context.folder("ingest"), table):
        texts = [text for name in FIELDS[table] for text in batch[name]]
        found = enumerate(map(spots.of, texts)) if spots else ()
        yield batch, (texts, {row: spans for row, spans in found if spans})


def _texts(context: Context) -> Iterator[str]:
    for table in FIELDS:
        for _, (texts, _) in _batches(table, context, None):
            yield from texts


def _report(masked: dict[str, _Done], left: int, spots: Spots | None) -> Report:
    kinds = Counter(str(span["kind"]) for part in masked.values() for span in part.spans)
    facts: dict[str, Json] = {f"spans_{kind}": count for kind, count in sorted(kinds.items())}
    for table, part in masked.items():
        facts |= {f"masked_{table}": part.changed, f"merged_{table}": len(part.merged)}
    facts["residual"] = left
    stopped = "stop `export` and whatever asks a model elsewhere: see `curate show mask/residual`"
    notes = [f"{left:,} places still look like personal data, and {stopped}"]
    if spots is not None:
        facts |= {"model": spots.facts, **billing.facts(spots.paid)}
    parts = masked.values()
    return Report(
        sum(part.read for part in parts),
        sum(part.kept for part in parts),
        cost=0.0 if spots is None else spots.paid.amount,
        facts=facts,
        notes=[*(notes if left else ()), *spotting.notes(spots)],
        spent=0.0 if spots is None else spots.spent,
    )


def _copy(context: Context) -> Report:
    for table in TABLES:
        shutil.copyfile(context.folder("ingest") / f"{table}.parquet", context.out / f"{table}.parquet")
    for table in ("spans", "residual"):
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
    return {"recognisers": config.names, "duplicates": context.duplicates, "words": lists, "key": drawn, "model": asked}


def preflight(config: Config, context: Context) -> None:
    """Check the key of the model, if it wants one."""
    if config.enabled:
        spotting.preflight(config, context)


STAGE = Stage("mask", Config, ("ingest",), run, fingerprint, preflight, head=("language",), version=3)
