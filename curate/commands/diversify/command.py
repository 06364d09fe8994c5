"""`curate diversify`: near-duplicate filtering, or a forecast of it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from curate.core.config import Json
from curate.runs.command import option
from curate.runs.running import StageCommand
from curate.view.answers import Result, only_plans
from curate.view.text import as_table


class DiversifyCommand(StageCommand):
    """Drop near-duplicates.

    Texts whose sentences are all in another text are dropped; or texts are thinned by a cosine.
    """

    words = "diversify"
    examples = ("diversify --plan", "diversify --sweep t=0.7:0.9")
    speaks_json = True
    stage = "diversify"

    plan: bool = option("Print how long it will take; do nothing.", False)
    sweep: str | None = option(
        "Print how many texts of a sample thresholds keep, such as t=0.7:0.9; do nothing.", None, metavar="t=LOW:HIGH"
    )

    def result(self) -> Result[Any]:
        """Filter the texts; with `plan` or `sweep`, answer what that would take or keep."""
        from curate.commands.diversify.forecast import forecast, swept
        from curate.retrieval.similarity.diversity import thresholds

        if not self.plan and self.sweep is None:
            only_plans()
            return super().result()
        look = forecast if self.sweep is None else partial(swept, ts=thresholds(self.sweep))
        rows = self.open_run().look("diversify", look)
        cells = rows if self.sweep is None else [_sampled(row) for row in rows]
        table = as_table(cells, digits=1 if self.sweep is None else 3) if rows else "nothing is to be compared"
        return Result(rows, [table])


def _sampled(row: Mapping[str, Json]) -> dict[str, Json]:
    """Return a row of a sweep for printing: texts retained and dropped; headings have the sample size."""
    cells: dict[str, Json] = {"t": row["t"]}
    for name in ("queries", "corpus"):
        cells[f"{name} of {row[f'{name}_sampled']:,}"] = row[f"{name}_kept"]
        cells[f"{name} dropped"] = row[f"{name}_dropped"]
    return cells
