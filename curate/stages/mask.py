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
from curate.config import Json, Section
from curate.context import Context, Report, Stage
from curate.duplicates import Firsts, follow_aliases, follow_qrels
from curate.pii import RECOGNISERS, Recogniser
from curate.pii.masking import find, replace

TABLES = ("queries", "corpus", "qrels", "aliases", "dropped")
FIELDS = {"queries": ("text",), "corpus": ("title", "text")}
KEYS = {"queries": "query_id", "corpus": "doc_id"}


class Config(Section):
    """What is looked for."""

    enabled: bool = Field(default=True, description="false copies the tables as they are")
    recognisers: list[str] | None = Field(default=None, description="names of recognisers; all without it")


@dataclass
class _Masked:
    """What masking does to one table."""

    table: str
    recognisers: Sequence[Recogniser]
    spans: list[dict[str, str | int]] = field(default_factory=list)
    """Rows of the table `spans`; offsets in the raw text."""
    merged: dict[str, str] = field(default_factory=dict)
    read: int = 0
    kept: int = 0
    changed: int = 0

    def row(self, row: dict[str, object]) -> dict[str, str]:
        """Return the row with its texts masked, and note the spans."""
        name = str(row[KEYS[self.table]])
        texts = {key: self._text(name, key, str(row[key])) for key in FIELDS[self.table]}
        self.read += 1
        self.changed += any(texts[key] != row[key] for key in texts)
        return {**{key: str(value) for key, value in row.items()}, **texts}

    def _text(self, name: str, key: str, text: str) -> str:
        found = find(text, self.recognisers)
        for span in found:
            place: dict[str, str | int] = {"table": self.table, "id": name, "field": key}
            kind: dict[str, str | int] = {"kind": span.kind, "recogniser": span.recogniser}
            self.spans.append({**place, "start": span.start, "end": span.end, **kind})
        return replace(text, found)


def run(config: Config, context: Context) -> Report:
    """Mask both tables of texts, let qrels and aliases follow, write everything."""
    if not config.enabled:
        return _copy(context)
    recognisers = [RECOGNISERS.load(name) for name in _names(config)]
    masked = {table: _mask(table, recognisers, context) for table in FIELDS}
    qrels = follow_qrels(context.read("ingest", "qrels"), masked["queries"].merged, masked["corpus"].merged)
    files.write_table(context.out, "qrels", qrels)
    aliases = context.read("ingest", "aliases")
    followed = [follow_aliases(aliases, table, masked[table].merged) for table in sorted(FIELDS)]
    files.write_table(context.out, "aliases", pl.concat(followed))
    files.write_table(context.out, "dropped", context.read("ingest", "dropped"))
    spans = files.frame("spans", [span for table in FIELDS for span in masked[table].spans])
    files.write_table(context.out, "spans", spans.sort("table", "id", "field", "start"))
    return _report(masked)


def _mask(table: str, recognisers: Sequence[Recogniser], context: Context) -> _Masked:
    masked, firsts, keep_all = _Masked(table, recognisers), Firsts(), context.duplicates == "keep"
    with files.TableWriter(context.out, table) as writer:
        for row in _rows(table, context):
            new = masked.row(row)
            name = new[KEYS[table]]
            first = name if keep_all else firsts.of(name, records.shown(new.get("title", ""), new["text"]))
            if first == name:
                writer.add(new)
                masked.kept += 1
            else:
                masked.merged[name] = first
    return masked


def _rows(table: str, context: Context) -> Iterator[dict[str, object]]:
    total, done = _height(context.folder("ingest"), table), 0
    for batch in files.batches(context.folder("ingest"), table):
        yield from batch.iter_rows(named=True)
        done += batch.height
        context.progress(f"mask {table}", total, done)


def _report(masked: dict[str, _Masked]) -> Report:
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


def _names(config: Config) -> list[str]:
    return RECOGNISERS.names() if config.recognisers is None else config.recognisers


def fingerprint(config: Config, context: Context) -> Json:
    """Check the names of the recognisers; return them, and what becomes of duplicates."""
    for name in _names(config):
        RECOGNISERS.load(name)
    return {"recognisers": _names(config), "duplicates": context.duplicates}


STAGE = Stage("mask", Config, ("ingest",), run, fingerprint, head=())
