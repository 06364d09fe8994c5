"""Gradients: several items per source text, with scores by the share of the item that is correct.

Mixes follow the integrity gradients of Soffer et al. A pair has a source X and a destination. At the levels 100, 75, 50
and 25, the first 100, 75, 50 or 25 % of X are retained and completed with the end of another source Z. At level 0 the
source is complete and the destination is that of another pair Y. Z and Y depend only on the texts, so `curate verify`
can recompute every level. Edits of a text are a separate task.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from curate.core.config import Json
from curate.core.protocols import Benchmark
from curate.core.sampling import shuffled
from curate.ledger import Ledger
from curate.system.files import frame
from curate.tables.kinds import benchmark_kind as words
from curate.tables.kinds.benchmark_kind import (
    BenchmarkKind,
    ExportTable,
    KindCheck,
    Lengths,
    MtebClass,
    ReviewItems,
    TaskContent,
    empty,
    listed,
    repeated,
    rounded,
    sentence,
)
from curate.tables.kinds.confirmed import PublishedItem, otherwise

MIX = "mix"
FEWEST = 3
"""Minimum number of pairs: X, and two other pairs Y and Z."""
LEVELS = (0, 25, 50, 75, 100)
_SEED = 0
"""Fixed seed: the choice of Y and Z depends on the texts and not on the run's seed."""


@dataclass(frozen=True)
class MixPair:
    """A source text and its destination text, with their ids."""

    source: str
    destination: str
    query_id: str
    source_id: str


def mixed(text: str, second: str, share: float) -> str:
    """Return the first `share` of a text and the last 1 - `share` of a second one, in code points."""
    return text[: round(share * len(text))] + second[round(share * len(second)) :]


def successors(order: Sequence[str]) -> dict[str, str]:
    """Return name -> next name, in a cyclic order: the last name is followed by the first."""
    return dict(zip(order, [*order[1:], *order[:1]], strict=True))


def partners(pairs: Mapping[str, tuple[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """Return name -> Z and name -> Y, the pairs that complete each of `pairs` (name -> source, destination)."""
    order = sorted(pairs, key=lambda name: pairs[name])
    texts = [list(pairs[name]) for name in order]
    z, y = (shuffled(order, _SEED, "gradient", purpose, texts) for purpose in ("Z", "Y"))
    return successors(z), successors(y)


def level(
    name: str, share: int, pairs: Mapping[str, tuple[str, str]], z: Mapping[str, str], y: Mapping[str, str]
) -> tuple[str, str, str | None]:
    """Return source, destination and name of the other pair (Y or Z) of an item at level `share`, in percent.

    The other pair is None at the highest level.
    """
    source, destination = pairs[name]
    if share == LEVELS[0]:
        return source, pairs[y[name]][1], y[name]
    if share == LEVELS[-1]:
        return source, destination, None
    return mixed(source, pairs[z[name]][0], share / 100), destination, z[name]


def mix_rows(pairs: Mapping[str, MixPair]) -> list[dict[str, object]]:
    """Return one row per pair and level; [] without pairs."""
    if not pairs:
        return []
    texts = {name: (pair.source, pair.destination) for name, pair in pairs.items()}
    z, y = partners(texts)
    records: list[dict[str, object]] = []
    for name, pair in pairs.items():
        for share in LEVELS:
            source, destination, alternate = level(name, share, texts, z, y)
            row = {"item_id": f"{name}-{share}", "kind": MIX, "variant": MIX, "level": share, "source": source}
            row |= {"destination": destination, "query_id": pair.query_id or None, "source_id": pair.source_id}
            records.append({**row, "alternate_id": alternate, "pair_id": name, "verdict": "unconfirmed", "votes": []})
    return records


# Gradients: items of one source, scored by how much of each is right.

if TYPE_CHECKING:
    import pyarrow as pa

_NAMED = {
    "sentence1": "source",
    "sentence2": "destination",
    "score": "level",
    "kind": "variant",
    "pair-id": "pair_id",
    "query-id": "query_id",
    "source-id": "source_id",
    "alternate-id": "alternate_id",
}
"""Column of an export -> column of the stage's table."""
_SAME, _CHANGED = "same", "different"


def _mteb(highest: int) -> MtebClass:
    return MtebClass(
        "STS",
        "sts.AbsTaskSTS",
        "cosine_spearman",
        "Spearman",
        "sentence-similarity",
        {"min_score": 0, "max_score": highest},
    )


class _Gradient(BenchmarkKind):
    """Base class of both gradient tasks: two texts, and a level as score."""

    default = "items"
    items = ("items",)
    card = "tables/kinds/gradient.md.j2"
    scorer = "curate.commands.evaluate.scorers_by_type:LevelScorer"
    stage = "gradient"
    table = "gradients"
    part = True
    made: str
    """Value of the column `kind` in this task's rows of the stage's table."""

    @property
    def configs(self) -> Mapping[str, "pa.Schema"]:
        """Return the columns of the items: texts, and the level as a whole number."""
        import pyarrow as pa

        return {"items": pa.schema(dict.fromkeys(_NAMED, pa.string()) | {"score": pa.int32()})}

    def _rows_of_kind(self, benchmark: Benchmark) -> pl.DataFrame:
        return benchmark.tables[self.table].filter(pl.col("kind") == self.made).sort("pair_id", "level")

    def present(self, benchmark: Benchmark) -> bool:
        """Return whether there are items of this kind."""
        return self.table in benchmark.tables and bool(self._rows_of_kind(benchmark).height)

    def content(self, benchmark: Benchmark) -> TaskContent:
        """Return the items, sorted by pair and level."""
        rows = self._rows_of_kind(benchmark)
        columns = {new: pl.col(old).cast(pl.Int32) if new == "score" else pl.col(old) for new, old in _NAMED.items()}
        return TaskContent([ExportTable("items", [rows.select(**columns)])], lambda: _counts(rows))

    def problems(self, benchmark: Benchmark) -> Iterable[str]:
        """Yield a sentence per problem: repeated ids, empty texts, pairs with missing or repeated levels."""
        rows = self._rows_of_kind(benchmark)
        yield from repeated("gradients", rows, "item_id")
        yield from empty("gradients", rows, "item_id", "source", "destination")
        yield from sentence("gradients", self._broken(rows), "pairs lack a level, or have one twice", "make them again")

    def _broken(self, rows: pl.DataFrame) -> list[str]:
        """Return the ids of pairs that do not have each level of the kind exactly once."""
        expected = [float(rung) for rung in self.levels()]
        held = rows.sort("pair_id", "level").group_by("pair_id", maintain_order=True).agg("level")
        return [name for name, levels in held.iter_rows() if levels != expected]

    @abstractmethod
    def levels(self) -> tuple[int, ...]:
        """Return the levels that every pair has, lowest first."""

    def renamed(self, table: pl.DataFrame, new: Mapping[str, pl.Expr]) -> pl.DataFrame:
        """Return the table of both tasks with query and source ids replaced by `new`; an edit's source is a query."""
        ids = table.with_columns(doc_id=pl.col("source_id")).select(query_id=new["query_id"], doc_id=new["doc_id"])
        source = pl.when(pl.col("kind") == GradientEdit.made).then(ids["query_id"]).otherwise(ids["doc_id"])
        return table.with_columns(query_id=ids["query_id"], source_id=source)

    def words(self, language: str, _facts: Mapping[str, Json]) -> tuple[str, Json]:
        """Return the description, and one prompt for both texts."""
        texts = words.of(language)
        return texts["description"][self.name], texts["similar"]

    def read(self, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Return the items under the column names of the stage's table, with levels as floats."""
        table = tables["items"].rename(_NAMED)
        return table.with_columns(pl.col("level").cast(pl.Float64), kind=pl.lit(self.made))

    def verify(self, table: pl.DataFrame, facts: Mapping[str, Any], ledger: Ledger) -> KindCheck:
        """Return the differences of the levels from those implied by the texts or the panel's answers."""
        broken = self._broken(table)
        differences = [f"{self.name}: {len(broken):,} pairs have other levels, for example {listed(broken)}"]
        all_differences = [*(differences if broken else []), *self._differences(table, facts, ledger)]
        unchecked = list(self._unchecked(table, facts))
        return KindCheck(all_differences, unchecked, table.height, as_given=bool(unchecked))

    @abstractmethod
    def _differences(self, table: pl.DataFrame, facts: Mapping[str, Any], ledger: Ledger) -> Iterator[str]:
        """Yield one sentence per difference from the texts or the ledger."""

    def _unchecked(self, _table: pl.DataFrame, _facts: Mapping[str, Any]) -> Iterator[str]:
        """Yield one sentence per kind of label that cannot be verified."""
        yield from ()


class GradientEdit(_Gradient):
    """Gradient of edits: a counterpart of the same meaning (score 1) and an edit that changes the answer (score 0)."""

    name = "gradient-edit"
    title = "meaning under edits"
    mteb = _mteb(1)
    made = "edit"
    scorer = "curate.commands.evaluate.scorers_by_type:EditScorer"
    least = 50
    unit = "edits"
    section = "tables/kinds/gradient_section.html.j2"
    section_words = "tables/kinds/gradient.yaml"

    def sizes(self, benchmark: Benchmark) -> Mapping[str, int]:
        """Return kind of edit -> number of edits."""
        edits = self._rows_of_kind(benchmark).filter(pl.col("level") == 0)
        return dict(edits["variant"].value_counts().sort("variant").iter_rows())

    def reduced(self, benchmark: Benchmark, variants: Collection[str]) -> Benchmark:
        """Return the benchmark without some kinds of edits."""
        of_variants = (pl.col("kind") == self.made) & pl.col("variant").is_in(list(variants))
        return replace(
            benchmark, tables={**benchmark.tables, self.table: benchmark.tables[self.table].filter(~of_variants)}
        )

    def levels(self) -> tuple[int, ...]:
        """Return the levels of every pair."""
        return (0, 1)

    def to_review(self, table: pl.DataFrame) -> ReviewItems:
        """Return both texts and the label of every item; assessors answer whether both need the same answer."""
        rows = table.filter(pl.col("kind") == self.made).select(
            "item_id",
            text1="source",
            text2="destination",
            label=pl.when(pl.col("level") == 1).then(pl.lit(_SAME)).otherwise(pl.lit(_CHANGED)),
            stratum=pl.when(pl.col("level") == 1).then(pl.lit(_SAME)).otherwise("variant"),
        )
        return ReviewItems(rows, (_SAME, _CHANGED), words.translated("counterpart", self.section_words))

    def _differences(self, table: pl.DataFrame, facts: Mapping[str, Any], ledger: Ledger) -> Iterator[str]:
        sources = table.group_by("pair_id").agg(pl.col("source").n_unique())
        odd = sorted(sources.filter(pl.col("source") > 1)["pair_id"])
        if odd:
            yield f"{self.name}: {len(odd):,} pairs have two sources, for example {listed(odd)}"
        asked_of = facts.get("asked", {})
        for question, score in (("sts-sentences", 1), ("edit-plausible", 0), ("edit-different", 0)):
            rows = table.filter(pl.col("level") == score).select("pair_id", "source", "destination").iter_rows()
            items = {name: PublishedItem((source, destination), "yes") for name, source, destination in rows}
            if question in asked_of:
                yield from otherwise(self.name, asked_of[question], items, ledger)

    def _unchecked(self, table: pl.DataFrame, facts: Mapping[str, Any]) -> Iterator[str]:
        if not facts.get("asked"):
            yield f"{self.name}: {table.height:,} levels of counterparts and edits that no panel confirmed"


class GradientMix(_Gradient):
    """Gradient of mixes (integrity gradient): texts spliced from two sources; score: the first one's share in %."""

    name = "gradient-mix"
    title = "spliced texts"
    mteb = _mteb(LEVELS[-1])
    made = MIX
    spliced = True

    def levels(self) -> tuple[int, ...]:
        """Return the levels of every pair."""
        return LEVELS

    def without(self, table: pl.DataFrame, ids: Collection[str]) -> pl.DataFrame:
        """Return the table without some pairs.

        The other mixes are made again, because each pair completes another one.
        """
        is_mix = pl.col("kind") == MIX
        originals = table.filter(is_mix, pl.col("level") == LEVELS[-1], ~pl.col("pair_id").is_in(list(ids)))
        columns = originals.select("pair_id", "source", "destination", pl.col("query_id").fill_null(""), "source_id")
        pairs = {name: MixPair(*values) for name, *values in columns.iter_rows()}
        mixes = frame(self.table, mix_rows(pairs) if len(pairs) >= FEWEST else ())
        return pl.concat([table.filter(~is_mix), mixes]).sort("kind", "pair_id", "level", "item_id")

    def _differences(self, table: pl.DataFrame, _facts: Mapping[str, Any], _ledger: Ledger) -> Iterator[str]:
        originals = table.filter(pl.col("level") == LEVELS[-1]).select("pair_id", "source", "destination")
        pairs = {name: (source, destination) for name, source, destination in originals.iter_rows()}
        z, y = partners(pairs)
        odd = [
            f"{name}, level {share:g}"
            for name, share, *held in table.select(
                "pair_id", "level", "source", "destination", "alternate_id"
            ).iter_rows()
            if name not in pairs or tuple(held) != level(name, int(share), pairs, z, y)
        ]
        if odd:
            yield f"{self.name}: {len(odd):,} items are not the mix of their level, for example {listed(odd)}"


def _counts(rows: pl.DataFrame) -> list[dict[str, Json]]:
    """Return the figures per kind of edit, or of the mixes."""
    lengths = Lengths(0)
    return [
        {
            "kind": variant,
            "pairs": group["pair_id"].n_unique(),
            "items": group.height,
            "tokens of sentence1": rounded(lengths.mean_of(group["source"].to_list())),
            "tokens of sentence2": rounded(lengths.mean_of(group["destination"].to_list())),
        }
        for (variant,), group in rows.sort("variant").group_by("variant", maintain_order=True)
    ]
