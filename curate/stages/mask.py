"""mask: personal data in queries and corpus gives way to typed placeholders.

Written: queries, corpus, qrels, aliases, dropped as `ingest` left them but masked, and spans: where something was
found, never what. Texts that are equal once they are masked are merged as in `ingest`. Rows stream, in their order.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from pydantic import Field

from curate import files, records
from curate.config import Json
from curate.context import Context, Report, Stage
from curate.duplicates import Firsts, follow_aliases, follow_qrels
from curate.pii.masking import Masked
from curate.pii.secret import secret
from curate.pii.settings import Masking, recognisers
from curate.pii.workers import Batch, cores, mask_batches
from curate.pii.writing import link

TABLES = ("queries", "corpus", "qrels", "aliases", "dropped")
FIELDS = {"queries": ("text",), "corpus": ("title", "text")}
KEYS = {"queries": "query_id", "corpus": "doc_id"}
_SMALL = 20_000
"""Rows up to which one process is done before others have started."""


class Config(Masking):
    """What is looked for, and what is written in its place."""

    enabled: bool = Field(default=True, description="false copies the tables as they are")
    processes: int | None = Field(default=None, ge=1, description="how many mask at once; all cores for large tables")


@dataclass
class _Done:
    """What masking did to one table."""

    table: str
    key: bytes = field(repr=False)
    spans: list[dict[str, str | int]] = field(default_factory=list)
    """Rows of the table `spans`; offsets in the raw text."""
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
    masked = {table: _mask(table, config, context) for table in FIELDS}
    qrels = follow_qrels(context.read("ingest", "qrels"), masked["queries"].merged, masked["corpus"].merged)
    files.write_table(context.out, "qrels", qrels)
    aliases = context.read("ingest", "aliases")
    followed = [follow_aliases(aliases, table, masked[table].merged) for table in sorted(FIELDS)]
    files.write_table(context.out, "aliases", pl.concat(followed))
    files.write_table(context.out, "dropped", context.read("ingest", "dropped"))
    spans = files.frame("spans", [span for table in FIELDS for span in masked[table].spans])
    files.write_table(context.out, "spans", spans.sort("table", "id", "field", "start"))
    return _report(masked)


def _mask(table: str, config: Config, context: Context) -> _Done:
    total, key = _height(context.folder("ingest"), table), secret(context.home)
    processes = config.processes or (cores() if total > _SMALL else 1)
    settings = Masking.model_validate(config.model_dump(include=set(Masking.model_fields)))
    done, firsts, keep_all = _Done(table, key), Firsts(), context.duplicates == "keep"
    with files.TableWriter(context.out, table) as writer:
        for batch, masked in mask_batches(settings, context.language, key, _batches(table, context), processes):
            for row in done.rows(batch, masked):
                name = str(row[KEYS[table]])
                shown = records.shown(str(row.get("title", "")), str(row["text"]))
                first = name if keep_all else firsts.of(name, shown)
                if first == name:
                    writer.add(row)
                    done.kept += 1
                else:
                    done.merged[name] = first
            context.progress(f"mask {table}", total, done.read)
    return done


def _batches(table: str, context: Context) -> Iterator[tuple[pl.DataFrame, Batch]]:
    """Yield the raw rows, and their texts field by field."""
    for batch in files.batches(context.folder("ingest"), table):
        yield batch, ([text for name in FIELDS[table] for text in batch[name]], {})


def _report(masked: dict[str, _Done]) -> Report:
    kinds = Counter(str(span["kind"]) for part in masked.values() for span in part.spans)
    facts: dict[str, Json] = {f"spans_{kind}": count for kind, count in sorted(kinds.items())}
    for table, part in masked.items():
        facts |= {f"masked_{table}": part.changed, f"merged_{table}": len(part.merged)}
    parts = masked.values()
    return Report(sum(part.read for part in parts), sum(part.kept for part in parts), facts=facts)


def _copy(context: Context) -> Report:
    for table in TABLES:
        shutil.copyfile(context.folder("ingest") / f"{table}.parquet", context.out / f"{table}.parquet")
    files.write_table(context.out, "spans", files.frame("spans"))
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
    return {"recognisers": config.names, "duplicates": context.duplicates, "words": lists, "key": drawn}


STAGE = Stage("mask", Config, ("ingest",), run, fingerprint, head=("language",), version=2)
