"""The gate of an export: no text of any kind is published that holds personal data which `mask` never saw.

Queries and documents were looked at by `mask`, and what it decided holds. All other texts are looked at here. What a
model or a rule wrote stops the export; of texts that are spliced of the sources' own what is found is listed, and mixes
are made anew without it. Neither the error nor the table holds a text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from curate.core.config import Json
from curate.core.errors import UserError
from curate.core.protocols import Benchmark
from curate.formats.kinds import kinds
from curate.formats.kinds.kind import BenchmarkKind
from curate.stages.asking import privacy_guard
from curate.stages.asking.personal_data import PersonalData
from curate.stages.context import Context
from curate.system.files import frame

TABLE = "found"
SOURCES = (("queries", "text"), ("corpus", "title"), ("corpus", "text"))
"""Tables and columns that `mask` looked at."""
SHOWN = 10
"""Lines of an error."""


@dataclass(frozen=True)
class Gated:
    """A benchmark that may be published, and what the gate found on the way."""

    benchmark: Benchmark
    table: pl.DataFrame
    """The table `found`: kind, id and field of a text, the kind of what was found, whether it is published."""
    looked: bool
    """False where masking is off, so that nothing was looked for."""

    @property
    def facts(self) -> dict[str, Json]:
        """Return in how many texts something was found, for whoever asks whether they may be published."""
        published = self.table.unique(["kind", "id", "field"])["published"]
        return {"looked": self.looked, "published": int(published.sum()), "left_out": int((~published).sum())}

    @property
    def notes(self) -> list[str]:
        """Return what was found, in a sentence; nothing if nothing was."""
        if self.table.is_empty():
            return []
        out, published = self.facts["left_out"], self.facts["published"]
        said = f"texts that mask never saw held personal data: {out:,} of mixes left out, {published:,} published"
        return [f"{said}; see `curate show export/found`"]


def passed(benchmark: Benchmark, context: Context) -> Gated:
    """Return a benchmark without mixes that hold personal data; UserError if what models or rules wrote does."""
    guard, may = PersonalData.of(context), privacy_guard.settings(context)
    tables, written = [frame(TABLE)], [frame(TABLE)]
    for kind in kinds() if guard.looker else ():
        while kind.table and kind.present(benchmark):
            held = benchmark.tables[kind.table]
            found = _found(kind, benchmark, guard, context).filter(~pl.col("id").is_in(may.accept))
            rest = kind.without(held, set(found["id"])) if found.height else held
            tables.append(found.with_columns(published=pl.lit(rest.height == held.height)))
            if rest.height == held.height:
                written += [] if kind.spliced else [tables[-1]]
                break
            benchmark = replace(benchmark, tables={**benchmark.tables, kind.table: rest})
    if may.residual == "stop":
        _stop(pl.concat(written))
    return Gated(benchmark, pl.concat(tables).unique().sort("kind", "id", "field", "found"), guard.looker is not None)


def _found(kind: BenchmarkKind, benchmark: Benchmark, guard: PersonalData, context: Context) -> pl.DataFrame:
    """Return what is found in the texts of a kind, but for values that stand in a text of the sources."""
    rows = list(_texts(kind, benchmark))
    unmasked = dict.fromkeys(text for *_, text in rows if text not in guard.seen)
    guard.seen |= dict.fromkeys(_in_sources(context, list(unmasked), whole=True), ())
    looked = zip(rows, guard.found(text for *_, text in rows), strict=True)
    finds = [(row, find) for row, each in looked for find in each]
    masked = _in_sources(context, list({value for _, (_, value) in finds}), whole=False)
    return frame(
        TABLE,
        [
            {"kind": kind.name, "id": name, "field": field, "found": what}
            for (name, field, _), (what, value) in finds
            if value not in masked
        ],
    )


def _texts(kind: BenchmarkKind, benchmark: Benchmark) -> Iterator[tuple[str, str, str]]:
    """Yield id, column and text of all that a kind publishes: ids and the groups named after them are no texts."""
    for table in kind.content(benchmark).tables:
        for part in table.frames:
            key = next((name for name in part.columns if name.endswith("id")), part.columns[0])
            columns = [name for name, type_ in part.schema.items() if type_ == pl.String]
            for name in (each for each in columns if not each.endswith("id") and each != "group"):
                yield from ((row, name, text) for row, text in part.select(key, name).drop_nulls().iter_rows())


def _in_sources(context: Context, values: Sequence[str], *, whole: bool) -> set[str]:
    """Return which of some texts are a text that `mask` looked at, or, not `whole`, stand in one."""
    known = set[str]()
    for table, column in SOURCES if values else ():
        texts = pl.scan_parquet(context.folder("mask") / f"{table}.parquet").select(pl.col(column).alias("text"))
        if whole:
            known.update(texts.join(pl.LazyFrame({"text": values}), on="text", how="semi").collect()["text"])
        else:
            held = texts.filter(pl.col("text").str.contains_any(list(values))).collect()["text"]
            known |= {value for value in values if any(value in text for text in held)}
    return known


def _stop(found: pl.DataFrame) -> None:
    """Raise UserError if personal data was found in what models or rules wrote."""
    if found.is_empty():
        return
    rows = found.unique(maintain_order=True).sort("kind", "id", "found")
    lines = [f"- {row['kind']} {row['id']} ({row['field']}): {row['found']}" for row in rows.iter_rows(named=True)]
    more = [f"- and {len(lines) - SHOWN:,} more"] if len(lines) > SHOWN else []
    remake = ", ".join(f"`curate {name} --force`" for name in _stages(found["kind"].to_list()))
    raise UserError(
        "export: nothing was exported, for texts that a model or a rule wrote hold what looks like personal data:\n"
        + "\n".join([*lines[:SHOWN], *more])
        + f"\nnext: make them again: {remake}; or, once you have read them and they hold none, accept their ids: "
        "--set mask.accept=[ID, ...]"
    )


def _stages(names: Sequence[str]) -> Iterator[str]:
    yield from dict.fromkeys(kind.stage for kind in kinds() if kind.stage and kind.name in names)
