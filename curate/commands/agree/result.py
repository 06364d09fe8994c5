"""Agreement of raters, for a run or any table of ratings, as the result object of the Python API."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import polars as pl

from curate.commands.agree import lines
from curate.commands.agree.compare import RunAgreement, compared
from curate.commands.agree.lines import MeasuredLevels
from curate.commands.agree.policies import PolicyLabels
from curate.commands.agree.ratings_file import FileAgreement, measure
from curate.core.errors import ConfigError, CurateError, suggestion
from curate.panel.agreement_figures import RaterPair
from curate.runs.command import silent
from curate.runs.opening import opened
from curate.runs.python_errors import in_python, python_errors
from curate.system.files import read_scale
from curate.tables.readers.ratings import Layout
from curate.view import html
from curate.view.record_words import RecordWords
from curate.view.run_figures import stated
from curate.view.text import too_few
from curate.view.words import strings

if TYPE_CHECKING:
    from curate.runs.runner import Run

Names = str | Sequence[str]
FILE = "ratings.parquet"


class MeasuredValue(NamedTuple):
    """A measure with its 95 % bootstrap interval; None means undefined."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, repr=False)
class AgreementResult:
    """Agreement of raters with 95 % intervals, on their ratings and on binary labels (level `cut`)."""

    figures: FileAgreement | RunAgreement
    """All figures, as `curate agree --json` prints them."""
    levels: MeasuredLevels
    """Figures by level: a run has `grades` and `cut`, a table of ratings `all ratings` and, if asked for, `cut`."""
    about: str
    notes: Sequence[str] = ()
    """Assumptions and caveats, one sentence each."""

    def measure(self, name: str, level: str | None = None) -> MeasuredValue:
        """Return a measure such as `fleiss`, `alpha_ordinal`, `ac1` or `percent`, at a level, by default the first.

        ConfigError for an unknown measure or level.
        """
        levels = self.levels.figures
        if level is not None and level not in levels:
            raise ConfigError(f"no level {level!r}; {suggestion(level, levels)}")
        figures = levels[level or next(iter(levels))]
        if name not in figures.intervals:
            raise ConfigError(f"no measure {name!r}; {suggestion(name, figures.intervals)}")
        return MeasuredValue(vars(figures)[name], *(figures.intervals[name] or (None, None)))

    @property
    def frame(self) -> pl.DataFrame:
        """Return one row per level and measure: level, measure, value, low, high; null if undefined."""
        rows = [
            (level, name, *self.measure(name, level))
            for level, figure in self.levels.figures.items()
            for name in figure.intervals
        ]
        return pl.DataFrame(rows, schema=["level", "measure", "value", "low", "high"], orient="row")

    @property
    def ratings(self) -> pl.DataFrame:
        """Return one row per level and rating: level, rating, prevalence, specific (agreement); shares from 0 to 1."""
        rows = [
            (level, label, share, same)
            for level, labels in self.levels.labels.items()
            if level in self.levels.figures
            for figures in [self.levels.figures[level]]
            for label, share, same in zip(labels, figures.prevalence, figures.specific, strict=True)
        ]
        return pl.DataFrame(rows, schema=["level", "rating", "prevalence", "specific"], orient="row")

    @property
    def pairs(self) -> pl.DataFrame:
        """Return one row per level and two raters: Cohen's kappa, nominal, linear and quadratic, with low and high."""
        rows = []
        for level, figure in self.levels.figures.items():
            for pair in figure.pairs_of_raters or ():
                first, second = pair.raters
                row = {"level": level, "first": first, "second": second, "items": pair.items}
                rows.append({**row, **_flat_figures(pair)})
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def policies(self) -> pl.DataFrame:
        """Return one row per consensus rule, with figures of the labels that it gives a run; empty for a table."""
        if isinstance(self.figures, FileAgreement):
            return pl.DataFrame()
        rows = [
            {name: cell for name, cell in row.to_json().items() if name not in {"intervals", *row.intervals}}
            | _flat_figures(row)
            for row in self.figures.policies
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def __repr__(self) -> str:
        by_level = [f"{level}: fleiss {_printed(self.measure('fleiss', level))}" for level in self.levels.figures]
        return f"AgreementResult({self.about}; {'; '.join(by_level)})"

    def _repr_html_(self) -> str:
        words, levels = strings("en"), {name: level.to_json() for name, level in self.levels.figures.items()}
        titles = words["measures"] | words["further_measures"]
        rows = [
            {"measure": titles[name], **{level: stated(figures, name, words) for level, figures in levels.items()}}
            for name in next(iter(self.levels.figures.values())).intervals
        ]
        return html.block(f"Agreement of {self.about}", html.table(rows), html.lines(self.notes))


def _flat_figures(figures: RaterPair | PolicyLabels) -> dict[str, float | None]:
    """Return every figure that has an interval, with its bounds as `NAME_low` and `NAME_high`."""
    flat: dict[str, float | None] = {}
    for name, bounds in figures.intervals.items():
        low, high = bounds or (None, None)
        flat |= {name: vars(figures)[name], f"{name}_low": low, f"{name}_high": high}
    return flat


def _printed(measured: MeasuredValue) -> str:
    if measured.value is None:
        return "not defined"
    return f"{measured.value:.3f}" + ("" if measured.low is None else f" ({measured.low:.2f} to {measured.high:.2f})")


def of_run(work: "Run", truth: Path | None, run_files: Sequence[Path], seed: int | None) -> AgreementResult:
    """Return the agreement of a run's judges, and the comparison of its consensus rules (see `compare.compare`)."""
    figures = compared(work, seed, truth, run_files)
    measured = lines.of_comparison(figures, read_scale(work.folder / "judge"))
    heuristics = [RecordWords("agree/agree")("heuristics")] if figures.only_heuristics else []
    notes = [
        *heuristics,
        *(figures.dependence.warnings or ()),
        *too_few(next(iter(measured.figures.values())).clusters, "clusters"),
    ]
    return AgreementResult(figures, measured, f"{', '.join(figures.panel)} in {work.folder}", notes)


@python_errors()
def agree(
    ratings: "str | os.PathLike[str] | pl.DataFrame | object" = None,
    *,
    run: "str | os.PathLike[str] | None" = None,
    run_file: Sequence["str | os.PathLike[str]"] = (),
    item: Names = (),
    raters: Names = (),
    rater: str | None = None,
    rating: str | None = None,
    truth: str | None = None,
    counts: bool = False,
    cluster: str | None = None,
    scale: Literal["nominal", "ordinal", "interval"] | None = None,
    order: Names = (),
    positive: Names = (),
    blank: Names = (),
    missing: Literal["gwet", "drop"] = "gwet",
    delimiter: str | None = None,
    sheet: str | None = None,
    seed: int | None = None,
) -> AgreementResult:
    """Return the agreement of raters in a table, or of a run's judges, with 95 % intervals.

    `ratings` is a file (CSV, TSV, .xlsx, JSON, Parquet) or a frame (polars, pandas, or anything that polars can
    convert), with a column per rater (wide) or a row per rating (long). Columns are detected, or can be given: `item`
    are the columns that identify an item, `raters` the raters to measure, `rater` and `rating` the columns of a long
    table, `truth` the column of human ratings; with `counts`, columns are categories. Intervals resample items, or the
    values of `cluster`, with `seed`. `order` lists all ratings by rank, `positive` the ratings that count as positive
    in an additional binary measurement, `blank` the words for a missing rating.

    Of a `run` all consensus rules are compared as well; `truth` is a file of people's grades then, and `run_file` are
    rankings of further systems. The figures are those of `curate agree --json`; for the measures see `docs/method.md`.
    DataError names an invalid row and the expected content, ConfigError the arguments that conflict.
    """
    if (ratings is None) == (run is None):
        raise ConfigError("agree: expected a table of ratings or run, found both or neither; give one of them")
    if run is not None:
        work = opened(None, Path(run), tell=silent)
        return of_run(work, Path(truth) if truth else None, [Path(path) for path in run_file], seed)
    layout = Layout(
        item=_names(item),
        raters=_names(raters),
        rater=rater,
        rating=rating,
        truth=truth,
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
    if isinstance(ratings, str | os.PathLike):
        path = Path(ratings).expanduser()
        return _measured(measure(path, layout, seed or 0), layout.positive, str(path))
    return _measured(_measured_frame(ratings, layout, seed or 0), layout.positive, "the frame")


def _measured_frame(ratings: object, layout: Layout, seed: int) -> FileAgreement:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        _frame(ratings).write_parquet(path)
        try:
            return measure(path, layout, seed)
        except CurateError as error:  # names a file that nobody has seen
            error.args = (str(error).replace(str(path), "the frame"),)
            raise


def _measured(figures: FileAgreement, positive: Sequence[str], source: str) -> AgreementResult:
    rater_names = ", ".join(figures.raters) or "counts of ratings by category"
    measured = lines.of_ratings(figures, positive)
    common = (figures.dependence.warnings or ()) if figures.dependence else ()
    return AgreementResult(
        figures,
        measured,
        f"{rater_names} in {source}",
        [*map(in_python, figures.notes), *common, *too_few(next(iter(measured.figures.values())).clusters, "clusters")],
    )


def _frame(table: object) -> pl.DataFrame:
    """Convert a table to a polars frame, categories to text."""
    try:
        frame = table if isinstance(table, pl.DataFrame) else pl.DataFrame(cast("Any", table))
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        kind = type(table).__name__
        raise ConfigError(f"agree: found {kind}, expected a path or a frame of ratings ({error})") from error
    return frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))


def _names(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
