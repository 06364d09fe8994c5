"""Diversify queries and documents: drop a text that too many kept texts already resemble.

In: queries, corpus, qrels of `mask`. Out: the same tables without the redundant texts, and `dropped`, which
names for each the nearest kept text and their similarity. The rule is the one of the CMedTEB paper.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from curate.config import Json, Section
from curate.context import Context, Report, Stage
from curate.corpus import TableCorpus
from curate.diversity import Diversity, Kept, diversify, everything, threshold, twins
from curate.duplicates import follow_qrels
from curate.errors import UserError
from curate.files import TableWriter, batches, frame, write_table
from curate.protocols import Vectors
from curate.records import shown
from curate.stages import build
from curate.vectors import of_corpus

SEED_FROM, SEED_SIZE = 50_000, 5_000
TABLES = {"queries": ("query_id", "text"), "corpus": ("doc_id", "title", "text")}


class Side(Section):
    """The rule for queries or for documents."""

    enabled: bool = True
    t: Annotated[float, Field(ge=-1, le=1)] | Literal["auto"] = Field(
        default="auto", description="similarity above which two texts count as alike"
    )
    k: int = Field(default=5, ge=1, description="neighbours that are looked at")
    n: int = Field(default=1, ge=0, description="alike neighbours that are allowed")
    seed_size: Annotated[int, Field(ge=0)] | Literal["auto"] = Field(
        default="auto", description="first items that are kept untested"
    )
    target_drop: float = Field(default=0.1, gt=0, lt=1, description="share that `t: auto` drops, at most")

    @model_validator(mode="after")
    def _n_below_k(self) -> "Side":
        if self.n >= self.k:
            raise ValueError("n must be smaller than k, else nothing is ever dropped")
        return self


class Config(Section):
    """Thresholds belong to one encoder: 0.85 / 0.78 are right for gte-multilingual-base and for no other."""

    enabled: bool = True
    encoder: str = "use"
    queries: Side = Side()
    corpus: Side = Side()
    max_drop: float = Field(default=0.5, ge=0, le=1, description="a larger share dropped stops the run")


def decide(side: Side, size: int, encode: Callable[[], Vectors]) -> Diversity:
    """Apply one side's settings to `size` items; `auto` seeds are 5,000 from 50,000 items on and none below."""
    if not side.enabled:
        return everything(size)
    seed_size = (SEED_SIZE if size >= SEED_FROM else 0) if side.seed_size == "auto" else side.seed_size
    vectors = encode()
    t = threshold(vectors, side.n, side.target_drop) if side.t == "auto" else side.t
    return diversify(vectors, t, side.n, seed_size)


def run(config: Config, context: Context) -> Report:
    """Decide both sides, write what is kept, and let qrels follow."""
    texts = {name: _Texts(context, name) for name in TABLES}
    sides = {
        name: decide(_side(config, name), len(texts[name]), partial(texts[name].vectors, config.encoder))
        for name in TABLES
    }
    _refuse_too_many(config, sides)
    for name in TABLES:
        texts[name].copy(sides[name].kept)
    dropped = pl.concat([_dropped(texts[name], sides[name]) for name in TABLES])
    moved = {name: twins(texts[name].items(), sides[name].kept) for name in TABLES}
    qrels, lost = _follow(context.read("mask", "qrels"), dropped, moved)
    write_table(context.out, "qrels", qrels)
    write_table(context.out, "dropped", pl.concat([dropped, lost]).sort("table", "id"))
    facts: dict[str, Json] = {
        name: {"items": side.kept.size, "kept": int(side.kept.sum()), "t": side.t} for name, side in sides.items()
    }
    total = sum(side.kept.size for side in sides.values())
    facts |= {"encoder": config.encoder, "qrels_lost": len(lost)}
    return Report(total, total - len(dropped), len(dropped), facts=facts)


def fingerprint(config: Config, context: Context) -> Json:
    """Return the encoder's revision, if one is needed."""
    needed = any(_side(config, name).enabled for name in TABLES)
    return build.encoder(context, config.encoder).revision if needed else None


@dataclass(frozen=True)
class _Texts:
    """The queries or the documents that `mask` wrote, read in batches."""

    context: Context
    table: str

    def __len__(self) -> int:
        return sum(map(len, self._batches()))

    def items(self) -> Iterator[tuple[str, str]]:
        """Yield (id, text) in order; the text of a document is what an encoder sees."""
        for batch in self._batches():
            for name, *texts in batch.select(TABLES[self.table]).iter_rows():
                yield name, shown(*texts) if self.table == "corpus" else texts[0]

    def vectors(self, name: str) -> Vectors:
        """Return the vectors of all texts, in order, by the encoder of that name."""
        encoder = build.encoder(self.context, name)
        if self.table == "corpus":
            return of_corpus(encoder, TableCorpus(self.context.folder("mask")), self.context.progress)[1]
        return encoder.encode([text for _, text in self.items()], "query")

    def copy(self, kept: Kept) -> None:
        """Write the kept rows, in order."""
        at = 0
        with TableWriter(self.context.out, self.table) as writer:
            for batch in self._batches():
                writer.extend(batch.filter(pl.Series(kept[at : at + len(batch)], dtype=pl.Boolean)))
                at += len(batch)

    def _batches(self) -> Iterator[pl.DataFrame]:
        return batches(self.context.folder("mask"), self.table)


def _side(config: Config, name: str) -> Side:
    side: Side = getattr(config, name)
    return side if config.enabled else side.model_copy(update={"enabled": False})


def _refuse_too_many(config: Config, sides: Mapping[str, Diversity]) -> None:
    for name, side in sides.items():
        share = 1 - side.kept.mean() if side.kept.size else 0.0
        if share > config.max_drop:
            raise UserError(
                f"diversify.{name}: {share:.0%} of {side.kept.size:,} texts would be dropped at t = {side.t:g}; the "
                f"threshold may belong to another encoder than {config.encoder!r}. Set diversify.{name}.t, or go on "
                "with --set diversify.max_drop=1"
            )


def _dropped(texts: _Texts, side: Diversity) -> pl.DataFrame:
    ids = [name for name, _ in texts.items()]
    found = {"table": texts.table, "stage": "diversify", "reason": "redundant"}
    rows = (
        {**found, "id": ids[at], "nearest_id": ids[side.nearest[at]], "similarity": float(side.similarity[at])}
        for at in np.flatnonzero(~side.kept).tolist()
    )
    return frame("dropped", rows)


def _follow(
    qrels: pl.DataFrame, dropped: pl.DataFrame, moved: Mapping[str, Mapping[str, str]]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the qrels of kept pairs, and a row for each that is lost with its query or document.

    A qrel follows its text to an equal one that is kept, never to one that is merely similar: that would be a label
    which nobody gave.
    """
    followed = follow_qrels(qrels, moved["queries"], moved["corpus"])
    gone = {table: dropped.filter(pl.col("table") == table)["id"].implode() for table in TABLES}
    lost = pl.col("query_id").is_in(gone["queries"]) | pl.col("doc_id").is_in(gone["corpus"])
    found = {"table": "qrels", "stage": "diversify", "reason": "its query or document is redundant"}
    pairs = followed.filter(lost).select("query_id", "doc_id").iter_rows()
    rows = ({**found, "id": f"{query_id} {doc_id}"} for query_id, doc_id in pairs)
    return followed.filter(~lost), frame("dropped", rows)


STAGE = Stage("diversify", Config, ("mask",), run, fingerprint, head=())
