"""Printed lines of `curate agree`, and the levels of agreement: on ratings, and on binary labels (`cut`)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from curate.core.scale import Scale
from curate.view.text import as_table, too_few

Figures = Mapping[str, Any]


class MeasuredLevels(NamedTuple):
    """Agreement figures at several levels: on all ratings, or on binary labels."""

    figures: dict[str, Figures]
    """Level -> `agreement_figures.figures`."""
    labels: dict[str, Sequence[str]]
    """Level -> names of its categories, in the order of the scale."""


def of_ratings(figures: Figures, positive: Sequence[str]) -> MeasuredLevels:
    """Return the levels in the result of `ratings_file.measure`: `all ratings`, and `cut` if `positive` is given.

    `positive` are the ratings that count as positive; `cut` compares them with all others.
    """
    levels = {"all ratings": figures["ratings"], **({"cut": figures["cut"]} if figures["cut"] else {})}
    return MeasuredLevels(levels, {"all ratings": figures["labels"], "cut": [" ".join(positive), "others"]})


def of_comparison(figures: Figures, scale: Scale) -> MeasuredLevels:
    """Return the levels in the result of `compare`: `grades` and `cut` (binary), for all pairs.

    If a pool is deeper than 50, also both for the first 50 positions.
    """
    agreed, sides = figures["agreement"], {"all_grades": "grades", "cut": "cut"}
    levels = {name: agreed[side] for side, name in sides.items()}
    for side, name in sides.items() if agreed["top_50"] else ():
        levels[f"{name}, top 50"] = agreed["top_50"][side]
    cut = [" ".join(scale.positives), " ".join(scale.labels[len(scale.positives) :])]
    return MeasuredLevels(levels, {"grades": scale.labels, "cut": cut})


if TYPE_CHECKING:
    from curate.tables.readers.ratings import Layout

COUNTS = {
    "items": "items",
    "under_two": "items with fewer than two ratings",
    "unanimous": "items on which all ratings are equal",
    "clusters": "clusters that intervals resample",
}

HEURISTICS = "every judge is a heuristic: these figures show that the program runs, and are no evidence"

MANY = 190
"""Maximum number of pairs of raters printed, that of 20 raters. With more, only near-identical raters are printed, and
`--json` has all."""


def of_file(file: Path, layout: "Layout", figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the printed lines on a file of ratings; `figures` is the result of `ratings_file.measure`."""
    from curate.commands.agree.lines import of_ratings

    who = f"ratings by {', '.join(figures['raters'])}" if figures["raters"] else "counts of ratings by category"
    what = f"items by {', '.join(figures['item']) or 'row'}; {who}"
    yield f"{file}: {what}; scale {figures['scale']}: {', '.join(figures['labels'])}"
    yield from figures["notes"]
    yield from _agreement(*of_ratings(figures, layout.positive))
    if figures["dependence"]:
        yield from _dependence(figures["dependence"], "raters")


def of_run(folder: Path, figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the printed lines on a run; `figures` is the result of `compare`."""
    from curate.commands.agree.lines import of_comparison
    from curate.system.files import read_scale

    yield f"panel: {', '.join(figures['panel'])}"
    if figures["only_heuristics"]:
        yield HEURISTICS
    if figures["sampled"] is not None:
        yield (
            f"after a cascade agreement is measured on the {figures['sampled']:,} pairs that everybody was to rate; "
            "policies have no more grades than the cascade asked for"
        )
    yield from _agreement(*of_comparison(figures, read_scale(folder / "judge")))
    yield from _dependence(figures["dependence"], "judges")
    yield from _policies(figures)


def _agreement(levels: Mapping[str, Mapping[str, Any]], labels: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield tables of measures, of ratings and of pairs of raters, with a column per level."""
    from curate.view.run_figures import stated
    from curate.view.words import strings

    words, first = strings("en"), next(iter(levels.values()))
    titles = words["measures"] | words["further_measures"]
    rows = [
        {"measure": titles[name], **{level: stated(figures, name, words) for level, figures in levels.items()}}
        for name in first["intervals"]
    ]
    counts = [
        {"measure": word, **{level: f"{figures[name]:,}" for level, figures in levels.items()}}
        for name, word in COUNTS.items()
    ]
    estimators = {level: words["estimators"][figures["estimator"]] for level, figures in levels.items()}
    yield from _table("Agreement, with 95 % intervals", [*rows, *counts, {"measure": words["estimator"], **estimators}])
    yield from _table(
        "Ratings: how common each is, and how often another rating of the item is the same",
        [
            {"level": level, "rating": label, "prevalence": _figure(share), "specific agreement": _figure(same)}
            for level, names in labels.items()
            if level in levels
            for label, share, same in zip(names, levels[level]["prevalence"], levels[level]["specific"], strict=True)
        ],
    )
    yield from _table(
        "Cohen's kappa of every pair",
        [
            {"raters": " / ".join(pair["raters"]), "level": level, "items": pair["items"]}
            | {scheme: _with_interval(pair, scheme) for scheme in pair["intervals"]}
            for level, figures in levels.items()
            for pair in figures["pairs_of_raters"] or ()
        ],
    )
    yield from (f"\n{line}" for line in too_few(first["clusters"], "clusters"))


def _dependence(figures: Mapping[str, Any], who: str) -> Iterator[str]:
    """Yield printed lines on dependent raters, with warnings and the effective number of raters."""
    from curate.panel import judge_dependence
    from curate.view.words import strings

    words, pairs = strings("en")["dependence"], figures["together"]
    if len(pairs) > MANY:
        pairs = [pair for pair in pairs if pair["near"]]
    yield from _table(f"What every two {who} have in common", [judge_dependence.row(pair) for pair in pairs])
    yield from judge_dependence.warnings(figures, words, who)
    yield judge_dependence.worth(figures, words, who)


def caveats(agreed: Mapping[str, Any], dependence: Mapping[str, Any] | None, who: str) -> list[str]:
    """Return warnings on agreement figures: too few clusters for intervals, dependent raters.

    `who` is the word for the raters.
    """
    from curate.panel import judge_dependence
    from curate.view.words import strings

    warnings = too_few(agreed["clusters"], "clusters")
    return warnings + list(
        judge_dependence.warnings(dependence, strings("en")["dependence"], who) if dependence else ()
    )


def _policies(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield tables of the figures of consensus rules, of the pairs that unanimity removes, and of system rankings."""
    truth = figures["truth"]
    yield from _table(
        "Policies",
        [
            {name: row[name] for name in ("policy", "kept", "relevant", "not relevant", "contested", "incomplete")}
            | ({"not positive": row["not positive"]} if figures["policies"][0]["not positive"] else {})
            | {name.replace("_", " "): _with_interval(row, name) for name in row["intervals"]}
            for row in figures["policies"]
        ],
    )
    yield (
        f"precision and recall by {truth['source']}: {truth['judged']:,} of {truth['pairs']:,} graded pairs were judged"
        if truth
        else "no assessors' grades, so no precision and recall: `curate review export` has people check a sample"
    )
    if figures["policies"][-1]["policy"].startswith("published"):
        yield (
            "published: what people read has their answer for its label, and the rest errs as the panel does; these "
            "intervals are those of the sample"
        )
    if any(row["policy"] == "dawid-skene" for row in figures["policies"]):
        yield "dawid-skene assumes that judges err independently: judges who err alike outvote a better one"
    yield from _table(
        "What unanimity removes: contested pairs, and those lost that a majority finds relevant",
        [
            {**row, "share": _figure(row["share"]), "lost_share": _figure(row["lost_share"])}
            for row in figures["removed"]
        ],
    )
    systems, against = figures["systems"]["ndcg_at_10"], figures["systems"]["against_unanimous"]
    yield from _table(
        "nDCG@10 of the systems under the labels of each policy",
        [
            {"policy": policy} | {name: _figure(mean) for name, mean in means.items()}
            for policy, means in systems.items()
        ],
    )
    yield from _table(
        "How like the order by unanimous labels the order of the systems is, with 95 % intervals over queries",
        [
            {"policy": policy, "tau-b": _with_interval(_with_bounds(order["tau_b"]), "tau_b")}
            | {
                words: _figure(order[name])
                for words, name in (("tau_AP", "tau_ap"), ("rank-biased overlap", "rank_biased_overlap"))
            }
            for policy, order in against.items()
        ],
    )


def _table(title: str, rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    if rows:
        yield f"\n{title}\n{as_table(rows, digits=3)}"


def _with_interval(figures: Mapping[str, Any], name: str) -> str:
    from curate.view.run_figures import stated

    return stated(figures, name, {"undefined": "not defined"})


def _with_bounds(figure: Mapping[str, Any]) -> dict[str, Any]:
    bounds = None if figure["low"] is None else [figure["low"], figure["high"]]
    return {"tau_b": figure["value"], "intervals": {"tau_b": bounds}}


def _figure(figure: float | None) -> str:
    return "not defined" if figure is None else f"{figure:.3f}"
