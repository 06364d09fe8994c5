"""Figures of the report from the tables of a run: drops, overlap of retrievers, samples of pairs, counts per query."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.config import Json
from curate.core.figures import Record, decimal
from curate.core.records import VERDICTS
from curate.panel.voting import PAIR

NARROW = 0.05


@dataclass(frozen=True)
class Drop:
    """Number of rows of a table that a stage dropped for one reason."""

    stage: str
    table: str
    reason: str
    count: int


@dataclass(frozen=True)
class RetrieverGroup:
    """Pairs found by exactly these retrievers and no others."""

    retrievers: tuple[str, ...]
    pairs: int
    relevant: int


@dataclass(frozen=True)
class Overlap:
    """Overlap of the retrievers in a pool; lists are in the order of `retrievers`."""

    retrievers: list[str]
    pairs: int
    """Number of pairs in the pool with a hit of any retriever."""
    found: list[int]
    alone: list[int]
    """Number of pairs per retriever that no other retriever found."""
    relevant: list[int]
    """Number of relevant pairs among those in `found`."""
    relevant_alone: list[int]
    together: list[RetrieverGroup]
    """The pairs grouped by their retrievers, the largest group first."""


@dataclass(frozen=True)
class QueryCounts:
    """Pool size of one query, and its pairs by verdict (in the order of `VERDICTS`)."""

    query_id: str
    text: str
    pool: int
    verdicts: tuple[int, ...]


def counted_texts(facts: Mapping[str, Json], name: str) -> str:
    """Return a fact of a stage on queries and documents as text, such as `3 queries and 20 documents`.

    The text is empty if the stage counted none.
    """
    words = {"queries": "queries", "corpus": "documents"}
    counts = ((facts.get(f"{name}_{table}"), word) for table, word in words.items())
    return " and ".join(f"{count:,} {word}" for count, word in counts if isinstance(count, int) and count)


def drops(tables: Sequence[pl.DataFrame]) -> list[Drop]:
    """Return the numbers of rows of `dropped` tables per stage, table and reason; within a stage the largest first."""
    counts: list[Drop] = []
    for table in tables:
        counted = table.group_by("stage", "table", "reason").len("count")
        rows = counted.sort(pl.col("stage"), -pl.col("count").cast(pl.Int64), pl.col("table"), pl.col("reason"))
        counts.extend(Drop(*row) for row in rows.iter_rows())
    return counts


def overlap(pool: pl.DataFrame, verdicts: pl.DataFrame) -> Overlap:
    """Return the overlap of the retrievers in a pool, from hits down to the requested depth.

    Pairs without a hit, which were added as known positives, are excluded.
    """
    pool = pool.filter(pl.col("hits").list.len() > 0)
    by = pool.select(*PAIR, by=pl.col("hits").list.eval(pl.element().struct.field("retriever")))
    relevant = verdicts.filter(pl.col("verdict") == "relevant").select(*PAIR, relevant=pl.lit(1))
    joined = by.join(relevant, on=PAIR, how="left", maintain_order="left")
    names = sorted(by["by"].explode(empty_as_null=False).unique())
    hits = joined.select(pl.col("by").list.contains(name).cast(pl.Int64).alias(name) for name in names).to_numpy()
    alone = hits * (hits.sum(axis=1) == 1)[:, None]
    good = joined["relevant"].fill_null(0).to_numpy().astype(bool)
    return Overlap(
        retrievers=names,
        pairs=len(pool),
        found=hits.sum(axis=0).tolist(),
        alone=alone.sum(axis=0).tolist(),
        relevant=hits[good].sum(axis=0).tolist(),
        relevant_alone=alone[good].sum(axis=0).tolist(),
        together=_retriever_groups(names, hits, good),
    )


def _retriever_groups(
    names: Sequence[str], hits: npt.NDArray[np.int64], good: npt.NDArray[np.bool_]
) -> list[RetrieverGroup]:
    """Return the pairs grouped by the retrievers that found them.

    `hits` is pairs x retrievers, `good` marks relevant pairs.
    """
    kinds, which = np.unique(hits @ (1 << np.arange(len(names))), return_inverse=True)
    counts = zip(kinds.tolist(), np.bincount(which), np.bincount(which[good], minlength=len(kinds)), strict=True)
    groups = [
        RetrieverGroup(tuple(name for index, name in enumerate(names) if kind >> index & 1), int(size), int(relevant))
        for kind, size, relevant in counts
    ]
    return sorted(groups, key=lambda group: (-group.pairs, group.retrievers))


def per_query(queries: pl.DataFrame, pool: pl.DataFrame, verdicts: pl.DataFrame) -> list[QueryCounts]:
    """Return the counts of every query, in the order of `queries`; zeros for a query without candidates."""
    pooled = Counter(pool["query_id"])
    decided = Counter(verdicts.select("query_id", "verdict").iter_rows())
    return [
        QueryCounts(name, text, pooled[name], tuple(decided[name, verdict] for verdict in VERDICTS))
        for name, text in queries.select("query_id", "text").iter_rows()
    ]


def excerpt(text: str, size: int) -> str:
    """Return the first `size` code points of a text with white space collapsed, followed by … if it was cut."""
    plain = " ".join(text.split())
    return plain if len(plain) <= size else f"{plain[:size].rstrip()}…"


def ranged(figure: float | None, bounds: Sequence[float] | None) -> str | None:
    """Return a figure with its interval, such as `0.731 (0.70–0.76)`; without bounds only the figure; None for None."""
    if figure is None:
        return None
    return f"{decimal(figure, 3)} {_interval(*bounds)}" if bounds else decimal(figure, 3)


def _interval(low: float, high: float) -> str:
    """Return bounds in brackets, with three decimals if closer than `NARROW`: two might not show that they differ."""
    digits = 3 if 0 < high - low < NARROW else 2
    bounds = [decimal(bound, digits) for bound in (low, high)]
    dash = " – " if "-" in "".join(bounds) else "–"  # keeps dash and minus apart
    return f"({dash.join(bounds)})"


def stated(measures: Mapping[str, Any], name: str, words: Mapping[str, Any]) -> str:
    """Return a measure of agreement with its interval, as text in the language of `words`.

    `1 by definition` if the raters used one category only; the word for "undefined" if it is None.
    """
    if measures[name] is not None and measures.get("one_category"):
        return str(words["by_definition"])
    return ranged(measures[name], measures["intervals"][name]) or str(words["undefined"])


def between(figure: Mapping[str, Any] | Record | None) -> str | None:
    """Return a figure (value, low, high) with its interval as text; None if it is undefined."""
    if figure is None:
        return None
    cells: Mapping[str, Any] = figure.to_json() if isinstance(figure, Record) else figure
    return ranged(cells["value"], None if cells["low"] is None else (cells["low"], cells["high"]))


def effect(figure: Mapping[str, Any]) -> str | None:
    """Return an effect with its interval as text, or the range that is known of it; None if neither is."""
    has_bounds_only = figure["value"] is None and figure["low"] is not None
    return _interval(figure["low"], figure["high"])[1:-1] if has_bounds_only else between(figure)


def counted(figure: Mapping[str, Any], words: Mapping[str, Any]) -> str:
    """Return an estimated count with its interval as text in the language of `words`."""
    numbers = [f"{figure[name]:,.0f}" for name in ("value", "low", "high") if figure[name] is not None]
    return str(words["between"].format(*numbers)) if len(numbers) > 1 else numbers[0]


def percents(figure: Mapping[str, Any], words: Mapping[str, Any]) -> str:
    """Return a share and its interval in percent, with one decimal if rounding would give 0, 100 or equal bounds."""
    bounds = [figure[name] for name in ("value", "low", "high") if figure[name] is not None]
    printed = [f"{100 * bound:.0f}" for bound in bounds]
    ends = any(text in ("0", "100") and bound not in (0, 1) for text, bound in zip(printed, bounds, strict=True))
    if ends or len(set(printed)) < len(set(bounds)):
        printed = [f"{100 * bound:.1f}" for bound in bounds]
    form = words["percents"]["bounded" if len(printed) == len(("value", "low", "high")) else "bare"]
    return str(form.format(*printed))


def hundred(figure: Mapping[str, Any] | None) -> str | None:
    """Return a score with its interval, times 100 with one decimal; None if it is undefined."""
    if figure is None or figure["value"] is None:
        return None
    bounds = [f"{100 * figure[name]:.1f}" for name in ("low", "high") if figure[name] is not None]
    interval = f" ({'–'.join(bounds)})" if bounds else ""
    return f"{100 * figure['value']:.1f}{interval}"


def failed(facts: Mapping[str, Json]) -> list[str]:
    """Return the judges that did not pass the qualification test, from the facts of the judge stage."""
    gate = facts.get("gate")
    measured = gate.get("judges") if isinstance(gate, Mapping) else None
    by_judge = measured if isinstance(measured, Mapping) else {}
    return [
        name for name, accuracy in by_judge.items() if isinstance(accuracy, Mapping) and accuracy["state"] != "passed"
    ]


def weak(controls: Mapping[str, Any]) -> list[str]:
    """Return the judges that their controls show to be weak; too few controls show nothing."""
    return [name for name, accuracy in controls.items() if accuracy["state"] == "weak"]


def only_heuristics(panel: Sequence[str], heuristic: Sequence[str]) -> bool:
    """Return whether all judges of the panel are heuristics; their labels are no evidence."""
    return set(panel) <= set(heuristic)


# Key facts on the labels, in the words of a language: titles with lines, commands between backticks.

Words = Mapping[str, Any]
Figures = Mapping[str, Any]


@dataclass(frozen=True)
class LeadRow:
    """Key facts of one kind: title and lines of text."""

    name: str
    """`synthetic`, `worth`, `kappa`, `cost`, `read` or `circular`."""
    title: str
    lines: Sequence[str]


def lead_rows(lead: Figures, words: Words) -> list[LeadRow]:
    """Return the figures of `review.lead.lead` in the words of a language, as page and card show them."""
    lead_words = words["lead"]
    rule = lead_words["rules"].get(lead["policy"], lead["policy"])
    wrote = lead.get("synthetic")
    rows = {
        **({"synthetic": _synthetic(wrote, lead_words)} if wrote else {}),
        "worth": _worth(lead, words),
        "kappa": _kappa(lead, lead_words, words),
        "cost": _cost(lead, lead_words, words),
        "read": [lead_words["orders"][lead["orders"]], lead_words["levels"][lead["levels"]]],
        "circular": _circular(lead["circular"], lead_words),
    }
    return [LeadRow(name, lead_words["titles"][name].format(rule), list(lines)) for name, lines in rows.items()]


def _synthetic(writers: Sequence[Figures], lead_words: Words) -> Iterator[str]:
    for writer in writers:
        yield lead_words["wrote"].format(writer["queries"], writer["of"], writer["writer"])
        if writer["kin"]:
            yield lead_words["kin"].format(writer["family"], lead_words["comma"].join(writer["kin"]))
    yield lead_words["apart"]


def _worth(lead: Figures, words: Words) -> Iterator[str]:
    effective, lead_words = lead["effective"], words["lead"]
    if effective is None:
        reason = words["dependence"]["reasons"][lead["not_measured"]].format(who=words["dependence"]["who"]["judges"])
        yield lead_words["unmeasured"].format(reason)
    else:
        yield lead_words["of"].format(_bounded(effective), effective["judges"])


def _kappa(lead: Figures, lead_words: Words, words: Words) -> Iterator[str]:
    if lead["sample"] is None:
        yield lead_words["nobody"]
        return
    yield lead_words["by"].format(_figure_text(lead["kappa"], words), lead["sample"], lead["read"])
    yield lead_words["people"].format(_bounded(lead["people"])) if lead["people"] else lead_words["alone"]


def _cost(lead: Figures, lead_words: Words, words: Words) -> Iterator[str]:
    if lead["sample"]:
        for side, prefix in (("positives", ""), ("negatives", "negative_")):
            yield lead_words[side].format(
                *(_figure_text(lead[f"{prefix}{name}"], words) for name in ("precision", "recall"))
            )
    share = f"{lead['contested'] / lead['judged']:.1%}" if lead["judged"] else words["undefined"]
    yield lead_words["contested"].format(share, lead["contested"])
    if lead["sample"] and lead["contested"]:
        yield lead_words["relevant"].format(*(_figure_text(lead[name], words) for name in ("relevant", "held")))
    if not lead["sample"]:
        yield lead_words["unread"]


def _circular(judges: Sequence[Figures] | None, lead_words: Words) -> Iterator[str]:
    if judges is None:
        yield lead_words["unchecked"]
        return
    by_effect = sorted(judges, key=lambda judge: -(judge["effect"]["value"] or judge["effect"]["high"] or 0))
    warned = [judge for judge in by_effect if judge["warned"]]
    clauses = [
        lead_words["favour"].format(judge["judge"], _bounded(judge["effect"], "+.3f"))
        for judge in warned or by_effect[:1]
    ]
    yield (
        lead_words["warned" if warned else "quiet"].format(lead_words["comma"].join(clauses))
        if clauses
        else lead_words["unscored"]
    )


def _figure_text(figure: Figures | None, words: Words) -> str:
    return _bounded(figure) if figure else str(words["undefined"])


def _bounded(figure: Figures, form: str = ".2f") -> str:
    """Return a figure with its interval, such as `0.62 (0.55–0.70)`."""
    if figure["value"] is None:
        return _interval(figure["low"], figure["high"])
    number = format(figure["value"], form)
    return number if figure["low"] is None else f"{number} {_interval(figure['low'], figure['high'])}"
