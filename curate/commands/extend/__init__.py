"""`curate extend`: judge the unjudged documents that later systems retrieve, and write version 2 of a benchmark."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curate.runs import opening
from curate.runs.command import Names, argument, option
from curate.runs.options import LedgerFirst, Plannable, WithRunFiles
from curate.view.answers import Result
from curate.view.text import as_table


class ExtendCommand(Plannable, LedgerFirst, WithRunFiles):
    """Judge new systems' documents.

    Documents that later systems rank high and nobody has judged are judged, and the next version of the run is written.
    Panel, rubric, prompt and settings are the run's own; what the ledger holds is not asked again. The run itself stays
    as it is. A version that was refused or stopped goes on with the same command.
    """

    words = "extend"
    examples = ("extend runs/demo --run-file system.trec --plan", "extend runs/demo --encoder e5 --max-cost 5")

    run: Path = argument("Run folder of the earlier version.", complete="runs")
    encoder: Names = option("An encoder that searches the corpus; may be repeated.", (), metavar="NAME")
    depth: int = option("Documents of each system that are judged.", 10, ge=1)
    out: Path | None = option("Folder of the new version; default: the run's, with -v2 behind.", None, metavar="FOLDER")

    def result(self) -> Result[Any]:
        """Return the folder and the figures of the new version; with `plan`, what it would ask."""
        from curate.commands.extend import version

        order = version.ExtendOrder(self.run_file, self.encoder, self.depth, self.out, self.subset, self.split)
        folder = opening.run_folder(self.run, tell=self.notify)
        work = opening.opened(None, folder, detect=False, tell=self.notify)
        work.progress, work.tell, work.consent = self.progress, self.tell, self.consent()
        if self.plan:
            return self.cost_estimate(version.planned(work, order))
        folder, facts = version.extend(work, order)
        return Result({"run_folder": folder, **facts}, _lines(folder, facts), facts["warnings"])


def _lines(folder: Path, facts: Mapping[str, Any]) -> Iterator[str]:
    yield f"version {facts['version']}: {folder}"
    yield f"{facts['holes']:,} documents of the added systems were not judged before, and are now:"
    verdicts = ("relevant", "not relevant", "contested", "incomplete", "not positive")
    yield as_table(
        [
            {"system": name, "documents": counts["holes"], **{word: counts[word] for word in verdicts if facts[word]}}
            for name, counts in facts["systems"].items()
        ]
    )
    yield f"queries that have a relevant document since: {facts['queries_won']:,}"
    yield f"labels of earlier pairs that changed: {facts['changed']:,}"
    for warning in facts["warnings"]:
        yield f"not judged alike: {warning}"
