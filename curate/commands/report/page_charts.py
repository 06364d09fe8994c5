"""The charts of the report page, as SVG."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curate.commands.report.shown import Labels, Shown
from curate.core.records import VERDICTS
from curate.panel.sampling_design import DECIDED
from curate.stats.distribution import Spread
from curate.view import charts, grade_colours, run_figures
from curate.view.bins import histogram
from curate.view.grade_colours import STATUSES
from curate.view.run_figures import Overlap

GROUPS = 12
"""Groups of retrievers that the plot of their overlap shows, the largest ones; the table beside it has all of them."""
Levels = list[tuple[str, Mapping[str, Any]]]
"""What agreement was measured on, in words, and its figures."""


def sets(shown: Shown) -> dict[str, Labels]:
    """Return the labels that are counted by name: the panel's, and the published ones where experts changed some."""
    panel = {"panel": Labels(shown.agreed["counts"], shown.overlap, shown.queries)}
    return panel | ({"published": shown.published} if shown.published else {})


def labelled(shown: Shown, words: Mapping[str, Any], what: str, labels: str) -> str:
    """Return what is counted, and of which labels where there are two kinds."""
    return str(words["labelled"]).format(what, words["labels"][labels]) if shown.published else what


def tallies(shown: Shown, words: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Return the columns of the table of queries, head, labels and the verdict's place: two where they differ."""
    last = shown.published.queries if shown.published else shown.queries
    moved = {
        place
        for one, two in zip(shown.queries, last, strict=True)
        for place, counts in enumerate(zip(one.verdicts, two.verdicts, strict=True))
        if counts[0] != counts[1]
    }
    heads = [words["verdicts"][verdict] for verdict in verdicts(shown)]
    return [
        (labelled(shown, words, head, name) if at in moved else head, name, at)
        for at, head in enumerate(heads)
        for name in (sets(shown) if at in moved else ["panel"])
    ]


def drawn(shown: Shown, positives: Mapping[str, Spread], levels: Levels, words: Mapping[str, Any]) -> dict[str, str]:
    """Return the charts by name, as SVG."""
    titles, axes = words["charts"], words["axes"]
    colours = grade_colours.classes(shown.scale)
    votes = {name: colours[name] for name in (*shown.scale.labels, *STATUSES)}
    found = list(zip(shown.overlap.retrievers, shown.overlap.found, strict=True))
    kinds = verdict_classes(shown)
    decided = [
        (labelled(shown, words, words["all_pairs"], name), {verdict: each.counts[verdict] for verdict in kinds})
        for name, each in sets(shown).items()
    ]
    return {
        "texts": charts.funnel(titles["texts"], _texts(shown, words["funnel"])),
        "pairs": charts.funnel(titles["pairs"], list(_pairs(shown, words))),
        "grades": charts.stacked(titles["grades"], list(shown.agreed["grades"].items()), votes, words["grades"]),
        "verdicts": charts.stacked(titles["verdicts"], decided, kinds, words["verdicts"]),
        "agreement": _forest(levels[:2], words),
        "overlap": charts.upset(titles["overlap"], found, _together(shown.overlap)),
        **{
            f"positives {name}": histogram(titles["positives"], spread.bins, axes["positives"])
            for name, spread in positives.items()
        },
        "queries": histogram(titles["queries"], shown.lengths["queries"].bins, axes["queries"]),
        "corpus": histogram(titles["corpus"], shown.lengths["corpus"].bins, axes["corpus"]),
    }


def _texts(shown: Shown, names: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return how many queries and documents each stage left."""
    export = shown.steps.get("export")
    return [
        (names["read"], shown.steps["ingest"].rows_in),
        *((names[name], shown.steps[name].rows_out) for name in ("ingest", "mask", "diversify")),
        *([(names["export"], export.count("queries") + export.count("corpus"))] if export else []),
    ]


def _pairs(shown: Shown, words: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield how many pairs of query and document were found, chosen, decided and relevant."""
    pool, names = shown.steps["pool"], words["funnel"]
    yield names["retrieved"], pool.count("retrieved_pairs")
    yield names["pool"], pool.rows_out
    for word, counted in (("decided", DECIDED), ("relevant", ("relevant",))):
        for name, each in sets(shown).items():
            yield labelled(shown, words, names[word], name), sum(each.counts[verdict] for verdict in counted)


def _together(overlap: Overlap) -> list[tuple[tuple[str, ...], int]]:
    return [(group.retrievers, group.pairs) for group in overlap.together[:GROUPS]]


def _forest(levels: Levels, words: Mapping[str, Any]) -> str:
    """Return the measures of agreement as a chart, with one line per level."""
    rows = [
        (title, [(level, *_entry(agreed, name, words)) for level, agreed in levels])
        for name, title in words["measures"].items()
    ]
    return charts.forest(words["charts"]["agreement"], rows)


def _entry(
    agreed: Mapping[str, Any], name: str, words: Mapping[str, Any]
) -> tuple[float | None, Sequence[float] | None, str]:
    """Return a measure, its interval and what is written beside it; what is 1 by definition is not drawn."""
    if agreed.get("one_category") and agreed[name] is not None:
        return None, None, str(words["one_category"])
    return agreed[name], agreed["intervals"][name], run_figures.stated(agreed, name, words)


def verdicts(shown: Shown) -> tuple[str, ...]:
    """Return the verdicts that the page counts; the last one is known only after a cascade."""
    return VERDICTS if shown.agreed["counts"][VERDICTS[-1]] else VERDICTS[:-1]


def verdict_classes(shown: Shown) -> dict[str, str]:
    """Return verdict -> the class that colours it."""
    return {name: f"v-{name.replace(' ', '-')}" for name in verdicts(shown)}
