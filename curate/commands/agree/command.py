"""`curate agree`: agreement of raters in a run or a file of ratings, and comparison of a run's consensus rules."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from curate.commands.agree import lines
from curate.runs.options import AsJson, Folder
from curate.runs.running import open_run
from curate.view.answers import answer

if TYPE_CHECKING:
    from curate.tables.readers.ratings import Layout

Blank = Annotated[str | None, typer.Option(help="Words for a missing rating, besides an empty cell: NA.")]
Cluster = Annotated[str | None, typer.Option(help="Column whose values the intervals resample, such as query_id.")]
Counts = Annotated[bool, typer.Option("--counts", help="FILE has a column per category: how many raters chose it.")]
Delimiter = Annotated[str | None, typer.Option(help="Between the cells of FILE, such as ';' or tab; found without it.")]
Item = Annotated[str | None, typer.Option(help="Columns that identify an item, separated by commas.")]
Missing = Annotated[Literal["gwet", "drop"], typer.Option(help="Estimator of kappa where ratings are missing.")]
Order = Annotated[str | None, typer.Option(help="All ratings in their order: S,A,B,C,D.")]
Positive = Annotated[str | None, typer.Option(help="Ratings that count as positive: agreement on that cut is added.")]
Rater = Annotated[str | None, typer.Option(help="Column of the rater, where FILE has a row per rating.")]
Raters = Annotated[
    str | None, typer.Option(help="Raters to measure: columns, or values of --rater; default: all but people's grades.")
]
Rating = Annotated[str | None, typer.Option(help="Column of the rating, where FILE has a row per rating.")]
Ratings = Annotated[Path | None, typer.Argument(help="File of ratings: CSV, TSV, .xlsx or Parquet; default: the run.")]
RunFiles = Annotated[
    list[Path] | None,
    typer.Option("--run-file", help="For a run: a TREC run or mteb's predictions, a system more; may be repeated."),
]
Scale = Annotated[
    Literal["nominal", "ordinal", "interval"] | None, typer.Option(help="Scale of the ratings; default: nominal.")
]
Seed = Annotated[int | None, typer.Option(help="Seed of the bootstrap.")]
Sheet = Annotated[str | None, typer.Option(help="Sheet of an .xlsx FILE; default: the only one with data.")]
Truth = Annotated[
    str | None,
    typer.Option(help="People's grades: for a run a file (query_id, doc_id, grade), for FILE a column or rater."),
]


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
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    seed: Seed = None,
    run_file: RunFiles = None,
    as_json: AsJson = False,
) -> None:
    """Measure agreement of raters with intervals; for a run, compare all consensus policies as well."""
    from curate.core.errors import ConfigError
    from curate.tables.readers.ratings import Layout

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
        delimiter=delimiter,
        sheet=sheet,
    )
    if file is not None and run is None and file.is_dir():
        file, run = None, file
    if file is not None and run_file:
        raise ConfigError("found a file of ratings and --run-file, expected a run for that; leave one of them out")
    if file is not None and run is None:
        _answer_file(file, layout, seed or 0, as_json=as_json)
    elif file is not None:
        raise ConfigError("found a file of ratings and --run, expected one of them; leave the other out")
    elif layout != Layout():
        raise ConfigError(
            "found options for a file of ratings and no file, expected both; give FILE, or no such option"
        )
    else:
        _answer_run(run, Path(truth) if truth else None, seed, run_file or (), as_json=as_json)


def _answer_file(file: Path, layout: "Layout", seed: int, *, as_json: bool) -> None:
    from curate.commands.agree.ratings_file import measure
    from curate.view.progress import bars

    with bars() as (progress, _):
        figures = measure(file, layout, seed, progress)
    warnings = [*figures["notes"], *lines.caveats(figures["ratings"], figures["dependence"], "raters")]
    answer(figures, lines.of_file(file, layout, figures), as_json=as_json, warnings=warnings)


def _answer_run(
    run: Path | None, truth: Path | None, seed: int | None, run_files: Sequence[Path], *, as_json: bool
) -> None:
    from curate.commands.agree.compare import compared
    from curate.view.progress import bars

    work = open_run(None, run)
    with bars() as (progress, _):
        figures: Mapping[str, Any] = compared(work, seed, truth, run_files, progress)
    warnings = lines.caveats(figures["agreement"]["all_grades"], figures["dependence"], "judges")
    warnings += [lines.HEURISTICS] if figures["only_heuristics"] else []
    answer(figures, lines.of_run(work.folder, figures), as_json=as_json, warnings=warnings)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())
