"""`curate agree`: agreement of raters in a run or a file of ratings, and comparison of a run's consensus rules."""

from dataclasses import fields
from pathlib import Path
from typing import Literal

from curate.commands.agree import lines
from curate.commands.agree.compare import RunAgreement, compared
from curate.commands.agree.ratings_file import FileAgreement, measure
from curate.core.errors import ConfigError
from curate.runs.command import Names, argument, option, setting
from curate.runs.options import OnRun, OnTable
from curate.system.files import read_scale
from curate.tables.readers.ratings import Layout
from curate.view.answers import Result
from curate.view.record_words import RecordWords


class AgreeCommand(OnRun, OnTable):
    """Measure agreement.

    Of raters in a file, or of a run's judges, with intervals; for a run, all consensus rules are compared as well.
    """

    words = "agree"
    examples = ("agree --run runs/demo", "agree ratings.csv --raters anna,ben --scale ordinal --order S,A,B,C,D")

    file: Path | None = argument("File of ratings: CSV, TSV, .xlsx, JSON, Parquet or Arrow; default: the run.", None)
    truth: str | None = option(
        "People's grades: for a run a file (query_id, doc_id, grade), for a file of ratings a column or rater.",
        None,
        metavar="FILE|NAME",
    )
    item: Names = option("Columns that identify an item, separated by commas.", (), metavar="COLUMNS")
    raters: Names = option(
        "Raters to measure: columns, or values of --rater; default: all but people's grades.", (), metavar="NAMES"
    )
    counts: bool = option("The file has a column per category: how many raters chose it.", False)
    rater: str | None = option("Column of the rater, where the file has a row per rating.", None, metavar="COLUMN")
    rating: str | None = option("Column of the rating, where the file has a row per rating.", None, metavar="COLUMN")
    scale: Literal["nominal", "ordinal", "interval"] | None = option("Scale of the ratings; default: nominal.", None)
    order: Names = option("All ratings in their order: S,A,B,C,D.", (), metavar="RATINGS")
    positive: Names = option(
        "Ratings that count as positive: agreement on that threshold is added.", (), metavar="RATINGS"
    )
    run_file: tuple[Path, ...] = option(
        "For a run: a TREC run or mteb's predictions, a system more; may be repeated.", (), metavar="FILE"
    )
    cluster: str | None = setting("Column whose values the intervals resample, such as query_id.", None)
    blank: Names = setting("Words for a missing rating, besides an empty cell: NA.", ())
    missing: Literal["gwet", "drop"] = setting("Estimator of kappa where ratings are missing.", "gwet")
    delimiter: str | None = setting("Between the cells of the file, such as ';' or tab; found without it.", None)
    sheet: str | None = setting("Sheet of an .xlsx file; default: the only one with data.", None)
    seed: int | None = setting("Seed of the bootstrap.", None)

    def result(self) -> Result[FileAgreement | RunAgreement]:
        """Return the figures of the file, or those of the run."""
        if self.file is not None and self.run is None and self.file.is_dir():
            return self.model_copy(update={"file": None, "run": self.file}).result()
        if self.file is not None and self.run_file:
            raise ConfigError("found a file of ratings and --run-file, expected a run for that; leave one of them out")
        if self.file is not None and self.run is not None:
            raise ConfigError("found a file of ratings and --run, expected one of them; leave the other out")
        chosen = {entry.name: getattr(self, entry.name) for entry in fields(Layout)}
        layout = Layout(**chosen if self.file else {**chosen, "truth": None})
        if self.file is not None:
            of_file = measure(self.file, layout, self.seed or 0, self.progress)
            warnings = [*of_file.notes, *lines.caveats(of_file.ratings, of_file.dependence, "raters")]
            return Result(of_file, lines.of_file(self.file, layout.positive, of_file), warnings)
        if layout != Layout():
            raise ConfigError(
                "found options for a file of ratings and no file, expected both; give FILE, or no such option"
            )
        work, truth = self.open_run(), Path(self.truth) if self.truth else None
        figures = compared(work, self.seed, truth, self.run_file, self.progress)
        warnings = lines.caveats(figures.agreement.all_grades, figures.dependence, "judges")
        warnings += [RecordWords("agree/agree")("heuristics")] if figures.only_heuristics else []
        return Result(figures, lines.of_run(read_scale(work.folder / "judge"), figures), warnings)
