"""`curate agree`: agreement of raters with intervals, in a run or any file of ratings, and policies compared."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from curate.cli.options import AsJson, Folder
from curate.cli.running import open_run
from curate.cli.tables import as_table, print_figures, too_few

if TYPE_CHECKING:
    from curate.formats.readers.raters import Layout
    from curate.stages.configs import ConsensusConfig

Blank = Annotated[str | None, typer.Option(help="Words for a missing rating, besides an empty cell: NA.")]
Cluster = Annotated[str | None, typer.Option(help="Column whose values the intervals resample, such as query_id.")]
Counts = Annotated[bool, typer.Option("--counts", help="FILE has a column per category: how many raters chose it.")]
Item = Annotated[str | None, typer.Option(help="Columns that identify an item, separated by commas.")]
Missing = Annotated[Literal["gwet", "drop"], typer.Option(help="Estimator of kappa where ratings are missing.")]
Order = Annotated[str | None, typer.Option(help="All ratings in their order: S,A,B,C,D.")]
Positive = Annotated[str | None, typer.Option(help="Ratings that count as positive: agreement on that cut is added.")]
Rater = Annotated[str | None, typer.Option(help="Column of the rater, where FILE has a row per rating.")]
Raters = Annotated[
    str | None, typer.Option(help="Raters to measure: columns, or values of --rater; default: all but people's grades.")
]
Rating = Annotated[str | None, typer.Option(help="Column of the rating, where FILE has a row per rating.")]
Ratings = Annotated[Path | None, typer.Argument(help="File of ratings: CSV, TSV or Parquet; default: the run.")]
RunFiles = Annotated[
    list[Path] | None,
    typer.Option("--run-file", help="For a run: a TREC run or mteb's predictions, a system more; may be repeated."),
]
Scale = Annotated[
    Literal["nominal", "ordinal", "interval"] | None, typer.Option(help="Scale of the ratings; default: nominal.")
]
Seed = Annotated[int | None, typer.Option(help="Seed of the bootstrap.")]
Truth = Annotated[
    str | None,
    typer.Option(help="People's grades: for a run a file (query_id, doc_id, grade), for FILE a column or rater."),
]

COUNTS = {
    "items": "items",
    "under_two": "items with fewer than two ratings",
    "unanimous": "items on which all ratings are equal",
    "clusters": "clusters that intervals resample",
}

MANY = 190
"""Of more pairs, those of over twenty raters, only the near-identical ones are printed; `--json` has all."""


def agree(
    file: Ratings = None,
    run: Folder = None,
    truth: Truth = None,
    item: Item = None,
    raters: Raters = None,
    counts: Counts = False,
    rater: Rater = None,
    rating: Rating = None,
    cluster: Cluster = None,
    scale: Scale = None,
    order: Order = None,
    positive: Positive = None,
    blank: Blank = None,
    missing: Missing = "gwet",
    seed: Seed = None,
    run_file: RunFiles = None,
    as_json: AsJson = False,
) -> None:
    """Measure agreement of raters with intervals; for a run, compare all consensus policies as well."""
    from curate.core.errors import ConfigError
    from curate.formats.readers.raters import Layout

    layout = Layout(
        item=_names(item),
        raters=_names(raters),
        rater=rater,
        rating=rating,
        truth=truth if file else None,
        counts=counts,
        cluster=cluster,
        scale=scale,
        order=_names(order),
        positive=_names(positive),
        blank=_names(blank),
        missing=missing,
    )
    if file is not None and run_file:
        raise ConfigError("found a file of ratings and --run-file, expected a run for that; leave one of them out")
    if file is not None and run is None:
        _of_file(file, layout, seed or 0, as_json=as_json)
    elif file is not None:
        raise ConfigError("found a file of ratings and --run, expected one of them; leave the other out")
    elif layout != Layout():
        raise ConfigError(
            "found options for a file of ratings and no file, expected both; give FILE, or no such option"
        )
    else:
        _of_run(run, Path(truth) if truth else None, seed, run_file or (), as_json=as_json)


def _of_file(file: Path, layout: "Layout", seed: int, *, as_json: bool) -> None:
    from curate.cli.progress import bars
    from curate.evaluation.agreement.ratings_file import measure

    with bars() as (progress, _):
        figures = measure(file, layout, seed, progress)
    if as_json:
        print_figures(figures, (), as_json=True)
        return
    who = f"ratings by {', '.join(figures['raters'])}" if figures["raters"] else "counts of ratings by category"
    what = f"items by {', '.join(figures['item']) or 'row'}; {who}"
    typer.echo(f"{file}: {what}; scale {figures['scale']}: {', '.join(figures['labels'])}")
    for note in figures["notes"]:
        typer.echo(note)
    levels = {"all ratings": figures["ratings"], **({"cut": figures["cut"]} if figures["cut"] else {})}
    _agreement(levels, {"all ratings": figures["labels"], "cut": [" ".join(layout.positive), "others"]})
    if figures["dependence"]:
        _dependence(figures["dependence"], "raters")


def _of_run(
    run: Path | None, truth: Path | None, seed: int | None, run_files: Sequence[Path], *, as_json: bool
) -> None:
    from curate.checks.run_files import rankings
    from curate.cli.progress import bars
    from curate.evaluation.agreement.compare import compare
    from curate.system.files import read_scale

    work = open_run(None, run)
    head = work.pipeline.head
    others = rankings(work.beside("consensus"), run_files) if run_files else None
    policy = cast("ConsensusConfig", work.pipeline.sections["consensus"]).policy
    with bars() as (progress, _):
        figures: Mapping[str, Any] = compare(
            work.folder, head.seed if seed is None else seed, truth, head.judges, policy, others, progress
        )
    if as_json:
        print_figures(figures, (), as_json=True)
        return
    typer.echo(f"panel: {', '.join(figures['panel'])}")
    if figures["only_heuristics"]:
        typer.echo("every judge is a heuristic: these figures show that the program runs, and are no evidence")
    agreed, sides = figures["agreement"], {"all_grades": "grades", "cut": "cut"}
    levels = {name: agreed[side] for side, name in sides.items()}
    for side, name in sides.items() if agreed["top_50"] else ():
        levels[f"{name}, top 50"] = agreed["top_50"][side]
    if figures["sampled"] is not None:
        typer.echo(
            f"after a cascade agreement is measured on the {figures['sampled']:,} pairs that everybody was to rate; "
            "policies have no more grades than the cascade asked for"
        )
    scale = read_scale(work.folder / "judge")
    cut = [" ".join(scale.positives), " ".join(scale.labels[len(scale.positives) :])]
    _agreement(levels, {"grades": scale.labels, "cut": cut})
    _dependence(figures["dependence"], "judges")
    _policies(figures)


def _agreement(levels: Mapping[str, Mapping[str, Any]], labels: Mapping[str, Sequence[str]]) -> None:
    """Print measures, ratings and pairs of raters, a column per level."""
    from curate.report.page import strings
    from curate.report.run_figures import stated

    words, first = strings("en"), next(iter(levels.values()))
    titles = words["measures"] | words["further_measures"]
    rows = [
        {"measure": titles[name], **{level: stated(found, name, words) for level, found in levels.items()}}
        for name in first["intervals"]
    ]
    counts = [
        {"measure": word, **{level: f"{found[name]:,}" for level, found in levels.items()}}
        for name, word in COUNTS.items()
    ]
    estimators = {level: words["estimators"][found["estimator"]] for level, found in levels.items()}
    _table("Agreement, with 95 % intervals", [*rows, *counts, {"measure": words["estimator"], **estimators}])
    _table(
        "Ratings: how common each is, and how often another rating of the item is the same",
        [
            {"level": level, "rating": label, "prevalence": _figure(share), "specific agreement": _figure(same)}
            for level, names in labels.items()
            if level in levels
            for label, share, same in zip(names, levels[level]["prevalence"], levels[level]["specific"], strict=True)
        ],
    )
    _table(
        "Cohen's kappa of every pair",
        [
            {"raters": " / ".join(pair["raters"]), "level": level, "items": pair["items"]}
            | {scheme: _with(pair, scheme) for scheme in pair["intervals"]}
            for level, found in levels.items()
            for pair in found["pairs_of_raters"] or ()
        ],
    )
    for line in too_few(first["clusters"], "clusters"):
        typer.echo(f"\n{line}")


def _dependence(found: Mapping[str, Any], who: str) -> None:
    """Print what raters have in common, and the warnings that follow from it."""
    from curate.panel import judge_dependence
    from curate.report.page import strings

    words, pairs = strings("en")["dependence"], found["together"]
    if len(pairs) > MANY:
        pairs = [pair for pair in pairs if pair["near"]]
    _table(f"What every two {who} have in common", [judge_dependence.row(pair) for pair in pairs])
    typer.echo("\n".join([*judge_dependence.warnings(found, words, who), judge_dependence.worth(found, words, who)]))


def _policies(figures: Mapping[str, Any]) -> None:
    """Print what every policy makes of the ratings, what unanimity removes, and the order of the retrievers."""
    known = figures["truth"]
    _table(
        "Policies",
        [
            {name: row[name] for name in ("policy", "kept", "relevant", "not relevant", "contested", "incomplete")}
            | ({"not positive": row["not positive"]} if figures["policies"][0]["not positive"] else {})
            | {name.replace("_", " "): _with(row, name) for name in row["intervals"]}
            for row in figures["policies"]
        ],
    )
    typer.echo(
        f"precision and recall by {known['source']}: {known['judged']:,} of {known['pairs']:,} graded pairs were judged"
        if known
        else "no assessors' grades, so no precision and recall: `curate review export` has people check a sample"
    )
    if figures["policies"][-1]["policy"].startswith("published"):
        typer.echo(
            "published: what people read has their answer for its label, and the rest errs as the panel does; these "
            "intervals are those of the sample"
        )
    if any(row["policy"] == "dawid-skene" for row in figures["policies"]):
        typer.echo("dawid-skene assumes that judges err independently: judges who err alike outvote a better one")
    _table(
        "What unanimity removes: contested pairs, and those lost that a majority finds relevant",
        [
            {**row, "share": _figure(row["share"]), "lost_share": _figure(row["lost_share"])}
            for row in figures["removed"]
        ],
    )
    systems, against = figures["systems"]["ndcg_at_10"], figures["systems"]["against_unanimous"]
    _table(
        "nDCG@10 of the systems under the labels of each policy",
        [
            {"policy": policy} | {name: _figure(mean) for name, mean in means.items()}
            for policy, means in systems.items()
        ],
    )
    _table(
        "How like the order by unanimous labels the order of the systems is, with 95 % intervals over queries",
        [
            {"policy": policy, "tau-b": _with(_bounded(found["tau_b"]), "tau_b")}
            | {
                words: _figure(found[name])
                for words, name in (("tau_AP", "tau_ap"), ("rank-biased overlap", "rank_biased_overlap"))
            }
            for policy, found in against.items()
        ],
    )


def _table(title: str, rows: Sequence[Mapping[str, object]]) -> None:
    if rows:
        typer.echo(f"\n{title}\n{as_table(rows, digits=3)}")


def _with(found: Mapping[str, Any], name: str) -> str:
    from curate.report.run_figures import stated

    return stated(found, name, {"undefined": "not defined"})


def _bounded(figure: Mapping[str, Any]) -> dict[str, Any]:
    bounds = None if figure["low"] is None else [figure["low"], figure["high"]]
    return {"tau_b": figure["value"], "intervals": {"tau_b": bounds}}


def _figure(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.3f}"


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())
