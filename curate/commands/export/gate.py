"""The gate of an export: no text of any kind is published that holds personal data which `mask` never saw.

Queries and documents were looked at by `mask`, and what it decided holds. All other texts are looked at here. What a
model or a rule wrote stops the export; of texts that are spliced of the sources' own what is found is listed, and mixes
are made anew without it. Neither the error nor the table `found` holds a text.
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
"""Tables and columns that `mask` looked at."""
SHOWN = 20


def passed(benchmark: Benchmark, context: Context) -> tuple[Benchmark, pl.DataFrame, dict[str, Json]]:
    """Return a benchmark without mixes that hold personal data, the table `found`, and how many texts it names.

    UserError if what models or rules wrote holds any. Nothing is `looked` for where masking is off.
    """
    guard, may = PersonalData.of(context), privacy_guard.settings(context)
    tables, written = [frame(TABLE)], [frame(TABLE)]
    for kind in kinds() if guard.looker else ():
        while kind.table and kind.present(benchmark):
            held = benchmark.tables[kind.table]
            found = _found(kind, benchmark, guard, context).filter(~pl.col("id").is_in(may.accept))
            rest = kind.without(held, set(found["id"])) if found.height else held
            tables.append(found.with_columns(published=pl.lit(rest.height == held.height)))
            if rest.height == held.height:
                written += [] if kind.spliced else [found]
                break
            benchmark = replace(benchmark, tables={**benchmark.tables, kind.table: rest})
    if may.residual == "stop":
        _stop(pl.concat(written).unique().sort("kind", "id", "field"), context)
    table = pl.concat(tables).unique().sort("kind", "id", "field", "found")
    out = table.unique(["kind", "id", "field"])["published"]
    facts: dict[str, Json] = {
        "looked": guard.looker is not None,
        "published": int(out.sum()),
        "left_out": int((~out).sum()),
    }
    return benchmark, table, facts


def notes(facts: Mapping[str, Json]) -> list[str]:
    """Return in how many texts something was found, in a sentence; nothing if nothing was."""
    out, published = facts["left_out"], facts["published"]
    said = f"texts that mask never saw held personal data: {out:,} of mixes left out, {published:,} published"
    return [f"{said}; see `curate show export/found`"] if out or published else []


def _found(kind: BenchmarkKind, benchmark: Benchmark, guard: PersonalData, context: Context) -> pl.DataFrame:
    """Return what is found in the texts of a kind, but for values that stand in a text of the sources."""
    rows = list(_texts(kind, benchmark))
    unseen = dict.fromkeys(text for *_, text in rows if text not in guard.seen)
    guard.seen |= dict.fromkeys(_in_sources(context, list(unseen), whole=True), ())
    looked = zip(rows, guard.found(text for *_, text in rows), strict=True)
    finds = [(kind.name, name, field, *find) for (name, field, _), each in looked for find in each]
    masked = _in_sources(context, list({value for *_, value in finds}), whole=False)
    columns = ("kind", "id", "field", "found")
    return frame(TABLE, [dict(zip(columns, find[:-1], strict=True)) for find in finds if find[-1] not in masked])


def _texts(kind: BenchmarkKind, benchmark: Benchmark) -> Iterator[tuple[str, str, str]]:
    """Yield id, column and text of all that a kind publishes: ids and the groups named after them are no texts."""
    for part in (part for table in kind.content(benchmark).tables for part in table.frames):
        key = next((name for name in part.columns if name.endswith("id")), part.columns[0])
        for name, type_ in part.schema.items():
            if type_ == pl.String and name != "group" and not name.endswith("id"):
                yield from ((row, name, text) for row, text in part.select(key, name).drop_nulls().iter_rows())


def _in_sources(context: Context, values: Sequence[str], *, whole: bool) -> set[str]:
    """Return which of some texts are a text that `mask` looked at, or, not `whole`, stand in one."""
    known = set[str]()
    for table, column in SOURCES if values else ():
        texts = pl.scan_parquet(context.folder("mask") / f"{table}.parquet").select(text=column)
        if whole:
            known.update(texts.join(pl.LazyFrame({"text": values}), on="text", how="semi").collect()["text"])
        else:
            held = texts.filter(pl.col("text").str.contains_any(list(values))).collect()["text"]
            known |= {value for value in values if any(value in text for text in held)}
    return known


def _stop(found: pl.DataFrame, context: Context) -> None:
    """Raise UserError if personal data was found in what models or rules wrote."""
    lines = [f"- {kind} {name} ({field}): {what}" for kind, name, field, what, _ in found.iter_rows()]
    again = dict.fromkeys(f"`curate {named(each).stage} --run {context.run} --force`" for each in found["kind"])
    if lines:
        raise UserError(
            f"export: nothing is exported, for {len(lines):,} texts that a model or a rule wrote hold personal data:\n"
            + "\n".join([*lines[:SHOWN], f"next: make them again: {', '.join(again)}; "])
            + "or, if you read them and they hold none: --set mask.accept=[ID, ...]"
        )
