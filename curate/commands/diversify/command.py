"""`curate diversify`: near-duplicate filtering, or a forecast of it."""

from functools import partial

from curate.commands.diversify.forecast import ForecastRow, ThresholdRow, forecast, swept
from curate.retrieval.similarity.diversity import thresholds
from curate.runs.command import option
from curate.runs.running import StageCommand
from curate.view.answers import Result, only_plans
from curate.view.record_words import RecordWords
from curate.view.text import as_table


class DiversifyCommand(StageCommand):
    """Drop near-duplicates.

    Texts whose sentences are all in another text are dropped; or texts are thinned by a cosine.
    """

    words = "diversify"
    examples = ("diversify --plan", "diversify --sweep t=0.7:0.9")
    speaks_json = True
    answers = "A forecast (--plan), a row per table; or a row per threshold (--sweep)."
    stage = "diversify"

    plan: bool = option("Print how long it will take; do nothing.", False)
    sweep: str | None = option(
        "Print how many texts of a sample thresholds keep, such as t=0.7:0.9; do nothing.", None, metavar="t=LOW:HIGH"
    )

    def result(self) -> Result[list[ForecastRow] | list[ThresholdRow]]:
        """Filter the texts; with `plan` or `sweep`, answer what that would take or keep."""
        if not self.plan and self.sweep is None:
            only_plans()
            return super().result()
        work = self.open_run()
        rows: list[ForecastRow] | list[ThresholdRow] = (
            work.look("diversify", forecast)
            if self.sweep is None
            else work.look("diversify", partial(swept, ts=thresholds(self.sweep)))
        )
        say = RecordWords("diversify/diversify")
        table = as_table([say.cells(row.schema_name, row) for row in rows]) if rows else say("nothing")
        return Result(rows, [table])
