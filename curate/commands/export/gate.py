"""Scan of an export for PII in texts that the stage `mask` has not scanned.

`mask` scanned queries and documents, and its decisions remain valid. All other texts are scanned here. PII in a text
written by a model or a rule prevents the export. PII in a text spliced from source texts is listed, and mixes are made
again without it. Neither the error nor the table `found` contains a text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from curate.ask import privacy_guard
from curate.ask.personal_data import PersonalData
from curate.core.config import Json
from curate.core.errors import UserError
from curate.core.protocols import Benchmark
from curate.pipeline.stage import Context
from curate.system.files import frame
from curate.tables.kinds import kind as named
from curate.tables.kinds import kinds
from curate.tables.kinds.benchmark_kind import BenchmarkKind

TABLE = "found"
SOURCES = (("queries", "text"), ("corpus", "title"), ("corpus", "text"))
"""Tables and columns that `mask` scanned."""
SHOWN = 20


def passed(benchmark: Benchmark, context: Context) -> tuple[Benchmark, pl.DataFrame, dict[str, Json]]:
    """Return the benchmark without mixes that contain PII, the table `found`, and counts of its texts.

    UserError if a text written by a model or a rule contains PII. Nothing is scanned (`looked` is false) if masking is
    off.
    """
    guard, may = PersonalData.of(context), privacy_guard.settings(context)
    tables, written = [frame(TABLE)], [frame(TABLE)]
    for kind in kinds() if guard.looker else ():
        while kind.table and kind.present(benchmark):
            kind_table = benchmark.tables[kind.table]
            finds = _found_values(kind, benchmark, guard, context).filter(~pl.col("id").is_in(may.accept))
            clean_table = kind.without(kind_table, set(finds["id"])) if finds.height else kind_table
            tables.append(finds.with_columns(published=pl.lit(clean_table.height == kind_table.height)))
            if clean_table.height == kind_table.height:
                written += [] if kind.spliced else [finds]
                break
            benchmark = replace(benchmark, tables={**benchmark.tables, kind.table: clean_table})
    if may.residual == "stop":
        _refuse_finds(pl.concat(written).unique().sort("kind", "id", "field"), context)
    table = pl.concat(tables).unique().sort("kind", "id", "field", "found")
    is_published = table.unique(["kind", "id", "field"])["published"]
    facts: dict[str, Json] = {
        "looked": guard.looker is not None,
        "published": int(is_published.sum()),
        "left_out": int((~is_published).sum()),
    }
    return benchmark, table, facts


def notes(facts: Mapping[str, Json]) -> list[str]:
    """Return a list with one sentence on the numbers of texts with PII; [] if there are none."""
    out, published = facts["left_out"], facts["published"]
    message = f"texts that mask never saw held personal data: {out:,} of mixes left out, {published:,} published"
    return [f"{message}; see `curate show export/found`"] if out or published else []


def _found_values(kind: BenchmarkKind, benchmark: Benchmark, guard: PersonalData, context: Context) -> pl.DataFrame:
    """Return the PII in the texts of a kind, without values that occur in a source text."""
    rows = list(_texts(kind, benchmark))
    unseen = dict.fromkeys(text for *_, text in rows if text not in guard.seen)
    guard.seen |= dict.fromkeys(_in_sources(context, list(unseen), exact=True), ())
    finds_by_text = zip(rows, guard.found(text for *_, text in rows), strict=True)
    finds = [(kind.name, name, field, *find) for (name, field, _), text_finds in finds_by_text for find in text_finds]
    masked = _in_sources(context, list({text_value for *_, text_value in finds}), exact=False)
    columns = ("kind", "id", "field", "found")
    return frame(TABLE, [dict(zip(columns, find[:-1], strict=True)) for find in finds if find[-1] not in masked])


def _texts(kind: BenchmarkKind, benchmark: Benchmark) -> Iterator[tuple[str, str, str]]:
    """Yield (id, column, text) for all published text columns; ids and groups, named after ids, are not texts."""
    for rows in (rows for table in kind.content(benchmark).tables for rows in table.frames):
        key = next((name for name in rows.columns if name.endswith("id")), rows.columns[0])
        for name, type_ in rows.schema.items():
            if type_ == pl.String and name != "group" and not name.endswith("id"):
                yield from ((row, name, text) for row, text in rows.select(key, name).drop_nulls().iter_rows())


def _in_sources(context: Context, values: Sequence[str], *, exact: bool) -> set[str]:
    """Return the values equal to a text that `mask` scanned or, if not `exact`, contained in one."""
    in_sources = set[str]()
    for table, column in SOURCES if values else ():
        texts = pl.scan_parquet(context.folder("mask") / f"{table}.parquet").select(text=column)
        if exact:
            in_sources.update(texts.join(pl.LazyFrame({"text": values}), on="text", how="semi").collect()["text"])
        else:
            matches = texts.filter(pl.col("text").str.contains_any(list(values))).collect()["text"]
            in_sources |= {text_value for text_value in values if any(text_value in text for text in matches)}
    return in_sources


def _refuse_finds(finds: pl.DataFrame, context: Context) -> None:
    """Raise UserError if a text written by a model or a rule contains PII."""
    lines = [f"- {kind} {name} ({field}): {what}" for kind, name, field, what, _ in finds.iter_rows()]
    commands = dict.fromkeys(
        f"`curate {named(kind_name).stage} --run {context.run} --force`" for kind_name in finds["kind"]
    )
    if lines:
        raise UserError(
            f"export: nothing is exported, for {len(lines):,} texts that a model or a rule wrote hold personal data:\n"
            + "\n".join([*lines[:SHOWN], f"next: make them again: {', '.join(commands)}; "])
            + "or, if you read them and they hold none: --set mask.accept=[ID, ...]"
        )
