"""`curate pilot`: people grade a few pairs before judges are paid for all, and a panel and a rule are proposed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curate.core.errors import ConfigError
from curate.runs.command import Names, option, setting
from curate.runs.options import LedgerFirst, OnPipeline, Plannable
from curate.view.answers import Result


class PilotExportCommand(OnPipeline):
    """Write the sheets of a pilot.

    Pairs are drawn at random over all queries of the pool, before anything is judged; one file per assessor. Without
    --assessors the sheets of a pilot that was drawn before are written again.
    """

    words = "pilot export"
    examples = ("pilot export --assessors anna,ben", "pilot export --assessors anna --size 150 --format xlsx")

    size: int | None = option("Number of pairs, 100 or more; default: 200.", None)
    sample: str = option("Name of the pilot.", "pilot", metavar="NAME")
    assessors: Names = option("Names of the people who read, separated by commas.", (), metavar="NAMES")
    format: str = option("File format.", "csv", metavar="csv|xlsx|csv,xlsx")
    out: Path | None = option("Folder to write to; default: the sample's own.", None, metavar="FOLDER")
    overlap: float | None = setting("Share of the pairs that a second person reads too; default: 50 pairs.", None)
    seed: int | None = setting("Seed of the random sample; default: the pipeline's.", None, ge=0)

    def result(self) -> Result[Any]:
        """Return the sample's folder, its files, and counts of pairs and queries."""
        from curate.ask import seating
        from curate.commands.pilot import sample as pilot
        from curate.review import Desk, Sample, paper
        from curate.runs.outputs import outside_runs

        outside_runs(self.out)
        work, kinds = self.open_run(), paper.kinds(self.format)
        is_drawn = (work.folder / "reviews" / self.sample / "design.json").is_file()
        if not self.assessors and self.size is None and is_drawn:
            drawn = Sample.find(work.folder, self.sample)
        else:
            head = work.pipeline.head
            options = pilot.PilotOptions(
                self.assessors,
                self.sample,
                pilot.SIZE if self.size is None else self.size,
                self.overlap,
                head.seed if self.seed is None else self.seed,
                head.language,
            )
            drawn = pilot.draw(work.folder, options, work.look("judge", seating.load_rubric))
        files = paper.hand_out(Desk(drawn), self.out or drawn.folder / "sheets", kinds)
        facts = drawn.design.facts
        result = {"sample": drawn.folder, "files": files, "pairs": len(drawn.rows), **facts}
        counts = f"{len(drawn.rows):,} pairs of {facts['queries']:,} of {facts['queries_in_pool']:,} queries"
        return Result(result, [*map(str, files), counts])


class PilotReportCommand(OnPipeline, Plannable, LedgerFirst):
    """Propose a panel and a rule.

    Candidate judges are asked about the pairs that people graded; rules of one to five judges are compared, and the
    cheapest is proposed. What the ledger holds is not asked again, here or by `curate judge`.
    """

    words = "pilot report"
    examples = (
        "pilot report --models gpt,qwen,deepseek --plan",
        "pilot report --pipeline my.yaml --accept --yes",
    )

    models: Names = option(
        "The candidates: names of two to eight judges, separated by commas; default: judge.models.",
        (),
        complete="judges",
        metavar="NAMES",
    )
    sample: str = option("Name of the pilot.", "pilot", metavar="NAME")
    single: bool = option("Also propose one judge alone: no kappa, nothing contested.", False)
    accept: bool = option("Write the proposed panel and rule into the file of --pipeline.", False)

    def result(self) -> Result[Any]:
        """Return the comparison of panels and rules; with `plan`, what the judges would be asked."""
        from curate.commands.pilot import pilot
        from curate.commands.pilot.pilot_figures import pilot_lines
        from curate.pipeline import pipeline_edit

        file = _target(self.pipeline) if self.accept else None
        work = self.open_run()
        work.consent = self.consent()
        candidates = list(self.models or getattr(work.pipeline.sections["judge"], "models", ()))
        order = pilot.PilotOrder(candidates, self.sample, self.single)
        if self.plan:
            return self.cost_estimate(pilot.planned(work, order))
        summary = pilot.compare(work, order)
        written: Mapping[str, object] = {"written": None}
        lines = list(pilot_lines(summary, accepted=self.accept))
        if file is not None:
            changes = pilot.changes(summary, work)
            changed = pipeline_edit.rewrite(file, changes)
            written = {"written": file}
            outcome = "written into it" if changed else "it says so already"
            lines.append(f"{file}: {outcome}:\n{pipeline_edit.lines(changes)}")
        return Result({**summary, **written}, lines, summary["warnings"])


def _target(pipeline: str | None) -> Path:
    """Return the pipeline file to write a proposal into; ConfigError if it is missing or packaged."""
    from curate.pipeline.pipeline import find
    from curate.system.resources import packaged

    if pipeline is None:
        raise ConfigError("--accept: found no --pipeline, expected the file to write into; give --pipeline FILE")
    path = find(pipeline)
    if packaged(path) and str(path) != pipeline:
        raise ConfigError(f"--accept: {pipeline} is packaged and stays as it is; copy it, and give --pipeline FILE")
    return path
