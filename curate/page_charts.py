"""The charts of the report page, as SVG."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from curate import charts, figures
from curate.figures import Bin, Overlap, Spread
from curate.records import GRADES, VERDICTS

if TYPE_CHECKING:
    from curate.page import Shown

STATUSES = ("refused", "unparsed", "failed", "stopped")
MEASURES = ("percent", "fleiss", "alpha_nominal", "alpha_ordinal", "ac1")
GROUPS = 12
"""Groups of retrievers that the plot of their overlap shows, the largest ones; the table beside it has all of them."""
Levels = list[tuple[str, Mapping[str, Any]]]
"""What agreement was measured on, in words, and its figures."""


def drawn(shown: "Shown", positives: Spread, levels: Levels, words: Mapping[str, Any]) -> dict[str, str]:
    """Return the charts by name, as SVG."""
    titles, axes = words["charts"], words["axes"]
    votes: dict[str, str] = {name: f"g-{name}" for name in (*GRADES, *STATUSES)}
    sets = list(zip(shown.overlap.retrievers, shown.overlap.found, strict=True))
    kinds: dict[str, str] = {name: f"v-{name.replace(' ', '-')}" for name in VERDICTS}
    decided: dict[str, int] = {name: shown.agreed["counts"][name] for name in verdicts(shown)}
    return {
        "texts": charts.funnel(titles["texts"], _texts(shown, words["funnel"])),
        "pairs": charts.funnel(titles["pairs"], _pairs(shown, words["funnel"])),
        "grades": charts.stacked(titles["grades"], list(shown.agreed["grades"].items()), votes, words["grades"]),
        "verdicts": charts.stacked(titles["verdicts"], [(words["all_pairs"], decided)], kinds, words["verdicts"]),
        "agreement": _forest(levels[:2], words),
        "overlap": charts.upset(titles["overlap"], sets, _together(shown.overlap)),
        "positives": _histogram(titles["positives"], positives, axes["positives"]),
        "queries": _histogram(titles["queries"], shown.lengths["queries"], axes["queries"]),
        "corpus": _histogram(titles["corpus"], shown.lengths["corpus"], axes["corpus"]),
    }


def _texts(shown: "Shown", names: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return how many queries and documents each stage left."""
    export = shown.steps.get("export")
    return [
        (names["read"], shown.steps["ingest"].rows_in),
        *((names[name], shown.steps[name].rows_out) for name in ("ingest", "mask", "diversify")),
        *([(names["export"], export.count("queries") + export.count("corpus"))] if export else []),
    ]


def _pairs(shown: "Shown", names: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return how many pairs of query and document were found, chosen, decided and relevant."""
    pool = shown.steps["pool"]
    return [
        (names["retrieved"], pool.count("retrieved_pairs")),
        (names["pool"], pool.rows_out),
        (names["decided"], shown.steps["consensus"].rows_out),
        (names["relevant"], shown.agreed["counts"]["relevant"]),
    ]


def _together(overlap: Overlap) -> list[tuple[tuple[str, ...], int]]:
    return [(group.retrievers, group.pairs) for group in overlap.together[:GROUPS]]


def _forest(levels: Levels, words: Mapping[str, Any]) -> str:
    """Return the measures of agreement as a chart, with a line for each level."""
    rows = [
        (words["measures"][name], [(level, *_entry(agreed, name, words)) for level, agreed in levels])
        for name in MEASURES
    ]
    return charts.forest(words["charts"]["agreement"], rows)


def _entry(
    agreed: Mapping[str, Any], name: str, words: Mapping[str, Any]
) -> tuple[float | None, Sequence[float] | None, str]:
    """Return a measure, its interval and what is written beside it; what is 1 by definition is not drawn."""
    if agreed.get("one_category") and agreed[name] is not None:
        return None, None, str(words["one_category"])
    return agreed[name], agreed["intervals"][name], figures.stated(agreed, name, words)


def verdicts(shown: "Shown") -> tuple[str, ...]:
    """Return the verdicts that the page counts; the last one is known only after a cascade."""
    return VERDICTS if shown.agreed["counts"][VERDICTS[-1]] else VERDICTS[:-1]


def _histogram(title: str, spread: Spread, axis: str) -> str:
    return charts.histogram(title, [(*_names(each), each.count) for each in spread.bins], axis)


def _names(each: Bin) -> tuple[str, str]:
    """Return a bin's short name, its lower end, and its full one."""
    if each.high is None:
        return f"≥{each.low:,}", f"≥ {each.low:,}"
    return f"{each.low:,}", f"{each.low:,}" if each.low == each.high else f"{each.low:,}–{each.high:,}"
