"""`curate review`: draw a sample for assessors to check, import their answers, and report the figures."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from curate.commands.review import samples
from curate.commands.review.contested import ContestedPlan
from curate.commands.review.invitations import Invited, InvitedPeople, ReviewFlags, ReviewLog
from curate.commands.review.samples import SampleProgress
from curate.core.errors import ConfigError
from curate.core.figures import Record, figure
from curate.review.acceptance_plan import AcceptancePlan
from curate.review.item_proof import ItemProof
from curate.review.paper import FileResult
from curate.review.planning import SamplePlan
from curate.review.proof import SampleProof
from curate.runs.command import Names, argument, option, setting
from curate.runs.options import OnRun
from curate.view.answers import Result, retyped_without
from curate.view.text import as_table

if TYPE_CHECKING:
    from curate.review import Desk, Sample
    from curate.review.drawing import SampleOptions
    from curate.review.paper import Kind
    from curate.runs.runner import Run


class HandedOut(Record, schema_name="sheets"):
    """The files to hand out; with --plan the design of the sample and the intervals it will give."""

    sample: Path = figure("folder")
    files: Sequence[Path] = figure("sheets and guide")


class Disputed(Record):
    """The file of disputed rows; or what was taken from the file with the final answers."""

    file: Path = figure("file to fill in")
    rows: int = figure("rows on which people differ")


class ReviewExportCommand(OnRun):
    """Draw a sample, and write its sheets.

    Judged pairs, or a task type's items, are drawn in strata; one file per assessor. Without --size and --margin the
    sheets of a sample that was drawn before are written again.
    """

    words = "review export"
    examples = ("review export --size 300 --plan", "review export --size 300 --assessors anna,ben --format xlsx")

    size: int | None = option("Number of pairs, or items, to check.", None, ge=1)
    target: str | None = option(
        "Figure that the sample is drawn for: both (precision and recall of the positives; the default), or accept, "
        "for the threshold that consensus.accept asks for; for --of audit fp (false positives).",
        None,
        metavar="both|precision|recall|agreement|accept|fp",
    )
    margin: tuple[str, ...] = option(
        "Instead of --size: wanted half width of an interval, such as precision=0.02; may be repeated. Without a name "
        "it holds for the agreement, or for every figure of --target.",
        (),
        metavar="[NAME=]M",
    )
    of: str = option(
        "audit: the judged pairs of an audit of original labels; a task type such as sts: its published items.",
        "labels",
        metavar="labels|audit|TYPE",
    )
    contested: bool = option(
        "Have people settle contested pairs: those of the retrievers' top tens first (all of these without --size), "
        "then the others by rank.",
        False,
    )
    for_scores: Path | None = option(
        "Folder of an evaluation: draw from the top tens of its models, so that `curate evaluate` can correct their "
        "scores.",
        None,
        metavar="RESULTS",
    )
    sample: str | None = option(
        "Name of the new sample; default: expert, or what is drawn: --of, accept, contested.", None, metavar="NAME"
    )
    assessors: Names = option("Names of the people who read, separated by commas.", ("assessor",), metavar="NAMES")
    format: str = option("File format.", "csv", metavar="csv|xlsx|csv,xlsx")
    out: Path | None = option("Folder to write to; default: the sample's own.", None, metavar="FOLDER")
    plan: bool = option("Print the intervals that the size will give; write nothing.", False)
    overlap: float | None = option(
        "Share of the rows that a second person reads too; default with two people or more: 50 rows, or 10 % if that "
        "is more.",
        None,
    )
    controls: int | None = option("Number of random documents planted as controls; default: 2 % of the size.", None)
    known: Path | None = setting("File of pairs of known grade to plant: query_id, doc_id, grade.", None)
    seed: int | None = setting(
        "Seed of the random sample; default: the pipeline's, or the next that no other sample of the run has.",
        None,
        ge=0,
    )

    def result(self) -> Result[HandedOut | SamplePlan | AcceptancePlan | ContestedPlan]:
        """Return the sample's folder and its files; with `plan`, the strata and the widths of the intervals."""
        from curate.review import Desk, Sample, drawing, paper
        from curate.runs.outputs import outside_runs

        outside_runs(self.out)
        work, kinds, of = self.open_run(), paper.kinds(self.format), samples.of(self.of, self.for_scores)
        special = samples.chosen(of, self.target, self.margin, contested=self.contested)
        name = self.sample or special or ("expert" if of == "labels" else of)
        is_drawn = (work.folder / "reviews" / name / "design.json").is_file()
        if self.size is None and not self.margin and self.target in (None, special) and is_drawn:
            return self._hand_out(Desk(Sample.find(work.folder, name)), kinds)
        order = drawing.SampleOptions(
            name=name,
            size=samples.size(work, self.size) if self.contested else self.size,
            target=None if special else self.target,
            margins=self.margin,
            assessors=list(self.assessors),
            overlap=self.overlap,
            controls=self.controls,
            known=self.known,
            seed=drawing.free_seed(work.folder, special or of, work.pipeline.head.seed)
            if self.seed is None
            else self.seed,
            language=work.pipeline.head.language,
            of=of,
            results=self.for_scores,
        )
        _need(work, order)
        if self.plan:
            planned = samples.plan(work, order, special) if special else _planned(work, order)
            return replace(planned, lines=[*planned.lines, f"next: {retyped_without('--plan')}"])
        drawn = samples.draw(work, order, special) if special else self._draw(work, order)
        if line := drawing.no_controls(drawn.design):
            self.notify(line)
        return self._hand_out(Desk(drawn), kinds)

    def _draw(self, work: "Run", order: "SampleOptions") -> "Sample":
        from curate.review.planning import purpose

        drawn: Sample = _design(order).draw(work.folder, order)
        if order.aims and not order.of_items:
            self.notify(f"drawn for: {purpose(order.aims)}")
        return drawn

    def _hand_out(self, review: "Desk", kinds: "Sequence[Kind]") -> Result[HandedOut]:
        from curate.review import paper

        files = paper.hand_out(review, self.out or review.sample.folder / "sheets", kinds)
        for line in (paper.readers(review), *samples.next_lines(review)):
            self.notify(line)
        return Result(HandedOut(review.sample.folder, files), map(str, files))


class OnSample(OnRun):
    """A command about a sample of a run."""

    sample: str | None = option("Name of the sample; default: the newest of the run.", None, metavar="NAME")

    def desk(self) -> "tuple[Desk, list[str]]":
        """Return the answers to the sample, and the notice of its folder unless run and sample are named."""
        from curate.pipeline.folder import newest
        from curate.review import Desk, Sample

        chosen = Sample.find(self.run or newest(), self.sample)
        notices = [f"working in {chosen.folder}"] if self.run is None or self.sample is None else []
        for line in notices:
            self.notify(line)
        return Desk(chosen), notices


class ReviewImportCommand(OnSample):
    """Read filled-in sheets.

    Every problem is listed with its row, and a file with problems is not imported.
    """

    words = "review import"
    examples = ("review import anna.csv ben.xlsx", "review import anna.csv --keep-good-rows")

    files: tuple[Path, ...] = argument("Filled-in files: CSV or xlsx.", metavar="FILES...")
    assessor: str | None = option("Who filled in the files, if the files do not name a person.", None, metavar="NAME")
    keep_good_rows: bool = option("Import the correct rows of a file with errors.", False)

    def result(self) -> Result[list[FileResult]]:
        """Return a result per file: person, answers, new ones, problems."""
        from curate.review import paper

        review, notices = self.desk()
        results = paper.take_back(review, self.files, assessor=self.assessor, keep_good_rows=self.keep_good_rows)
        for result in results:
            for problem in result.problems:
                notices.append(f"{problem.fault(result.file).finding}; held back")
                self.notify(notices[-1])
        lines = [f"{result.file}: {result.assessor}: {result.counts}" for result in results]
        return Result(results, [*lines, *samples.next_lines(review)], notices)


class ReviewServeCommand(OnSample):
    """Show the sample as a web page.

    On this machine; every answer is saved at once.
    """

    words = "review serve"
    examples = ("review serve", "review serve --run runs/demo --sample expert --port 8765")
    speaks_json = False

    port: int = option("Port of the web page; 0 takes a free one.", 8765, ge=0, le=65535)
    host: str = option("Address to listen at.", "127.0.0.1", metavar="ADDRESS")
    allow_remote: bool = option("Let other machines reach the page.", False)
    public_url: str | None = option("Address of the proxy in front of the page.", None, metavar="URL")

    def result(self) -> Result[None]:
        """Serve the page until Ctrl-C."""
        from curate.web import serve

        serve(
            self.desk()[0],
            host=self.host,
            port=self.port,
            allow_remote=self.allow_remote,
            public_url=self.public_url or "",
            tell=typer.echo,
        )
        return Result(None)


class ReviewInviteCommand(OnSample):
    """Give people links of their own.

    Or one-time codes; end them, or list them. A link opens the pages of its role on the served sample.
    """

    words = "review invite"
    examples = ("review invite anna", "review invite ben --role adjudicator --days 7")

    name: str | None = argument("Name of the person.", None)
    role: Literal["assessor", "adjudicator", "lead", "reader"] = option("What the person may do.", "assessor")
    days: int = option("Days for which the link is valid.", 30, ge=1, le=365)
    code: bool = option("Give a code of eight digits instead, for a day and one use.", False)
    revoke: bool = option("End the links, codes and open browsers of the person.", False)
    list: bool = option("List all links.", False)
    public_url: str | None = option("Address of the proxy in front of the page.", None, metavar="URL")
    port: int = option("Port of the web page, for the printed link.", 8765, ge=1, le=65535)

    def result(self) -> Result[Invited | InvitedPeople]:
        """Return the link or code, or the people with the state of their links."""
        from curate.commands.review import invitations
        from curate.review.access import ENTER, public

        desk, notices = self.desk()
        if self.list:
            return invitations.listed(desk, notices)
        if self.name is None:
            raise ConfigError("invite: found no name, expected whom to invite; give NAME, or --list")
        if self.revoke:
            return invitations.revoked(desk, self.name, notices)
        site = public(self.public_url) if self.public_url else f"http://127.0.0.1:{self.port}"
        return invitations.invited(desk, self.name, self.role, self.days, f"{site}{ENTER}", notices, code=self.code)


class ReviewLogCommand(OnSample):
    """List who did what when.

    Links made, entered and ended, answers, flags, conflicts of two browsers, names revealed.
    """

    words = "review log"
    examples = ("review log", "review log --sample expert --json")

    def result(self) -> Result[ReviewLog]:
        """Return the events, in the order of time."""
        from curate.commands.review import invitations

        return invitations.log(*self.desk())


class ReviewFlagsCommand(OnSample):
    """List or settle flags.

    Rows that assessors cannot judge, and personal data that masking missed; until that is settled, nothing is exported.
    """

    words = "review flags"
    examples = ("review flags", "review flags --settle r00012-hafqvd --as harmless")

    settle: str | None = option("Row whose flags of personal data are settled.", None, metavar="ROW")
    as_: Literal["harmless", "masked"] | None = option("How they are settled.", None, flag="--as")

    def result(self) -> Result[ReviewFlags]:
        """Return the open flags, after one was settled."""
        from curate.commands.review import invitations

        desk, notices = self.desk()
        return invitations.flagged(desk, self.settle, self.as_, notices)


class ReviewReportCommand(OnSample):
    """Estimate precision and recall.

    And agreement, as far as the sample was read: of the panel's and the published labels.
    """

    words = "review report"
    examples = ("review report", "review report --run runs/demo --sample expert --json")

    def result(self) -> Result[SampleProof | ItemProof | SampleProgress]:
        """Return the estimates from the answers so far."""
        review, notices = self.desk()
        if review.sample.of_pilot:
            raise ConfigError(
                f"{review.sample.folder}: a pilot, which proves nothing of labels; see `curate pilot report`, or name "
                "a review with --sample"
            )
        result: Result[Any] = samples.reported(review, notices)
        if self.sample is not None:
            return result
        first, *others = result.lines
        return replace(result, lines=[first, *samples.answered_beside(review), *others])


class ReviewAdjudicateCommand(OnSample):
    """Settle disputed rows.

    Those on which people differ from the labels or from each other are written; or the final answers to them are read.
    """

    words = "review adjudicate"
    examples = ("review adjudicate --out disputed.csv", "review adjudicate disputed.csv")

    file: Path | None = argument("The file with the final answers.", None)
    out: Path | None = option(
        "File to write the disputed rows to; default: in the sample's folder.", None, metavar="FILE"
    )

    def result(self) -> Result[Disputed | list[FileResult]]:
        """Return the file and its number of rows; with `file`, a result for it as `review import` gives."""
        from curate.review import ADJUDICATED, paper
        from curate.review.proof import between_people, disagreements
        from curate.runs.outputs import outside_runs
        from curate.runs.status import NextStep, step_lines

        review, notices = self.desk()
        if self.file is None:
            outside_runs(self.out)
            sheet = self.out or review.sample.folder / "sheets" / f"{ADJUDICATED}.csv"
            _, rows = paper.dispute(review, sheet)
            differing = sum(between_people(row) for row in disagreements(review))
            against = "published label" if review.sample.of_items else "panel"
            split = f"{differing:,} on which readers differ, {rows - differing:,} on which only the {against} does"
            sample = f"--run {shlex.quote(str(review.sample.folder.parents[1]))} --sample {review.sample.design.name}"
            read = f"curate review adjudicate {shlex.quote(str(sheet))} {sample}"
            lines = [
                f"{sheet}: {rows:,} rows: {split}",
                *step_lines([NextStep(read, "once the sheet is filled in")]),
            ]
            if not rows:
                lines = ["nothing is disputed, so no sheet is written", *samples.next_lines(review)]
            return Result(Disputed(sheet, rows), lines, notices)
        results = paper.take_back(review, [self.file], assessor=ADJUDICATED)
        lines = [f"{result.file}: final answers: {result.counts}" for result in results]
        return Result(results, [*lines, *samples.next_lines(review)], notices)


def _design(order: "SampleOptions") -> Any:  # noqa: ANN401 - a module with `plan` and `draw`
    """Return the module that draws the sample."""
    from curate.commands.review import scores_sample
    from curate.review import drawing, items

    return scores_sample if order.results else items if order.of_items else drawing


def _planned(work: "Run", order: "SampleOptions") -> Result[SamplePlan]:
    """Return the design of a sample, which is not drawn."""
    from curate.review import drawing

    module = _design(order)
    design: SamplePlan = drawing.plan(work.folder, order)[1] if module is drawing else module.plan(work.folder, order)
    return Result(design, _widths(design, "items" if order.of_items else "pairs"))


def _need(work: "Run", order: "SampleOptions") -> None:
    """Raise UserError if the labels or items that the sample is drawn from are not up to date."""
    from curate.pipeline import stages
    from curate.review import items

    if not order.of_items:
        work.need_ancestors("resolve")
    elif (stage := str(items.chosen(order.of).stage)) in stages.KNOWN:  # a kind of others has a stage of others
        work.need(stage)


def _widths(planned: SamplePlan, unit: str) -> Iterator[str]:
    """Yield the printed plan: pairs or items (`unit`) drawn per stratum, and half widths of the expected intervals."""
    from curate.review.planning import purpose

    drawn, pairs = (sum(getattr(entry, field) for entry in planned.strata) for field in ("drawn", "size"))
    yield f"{drawn:,} of {pairs:,} {unit}; half widths are those of {planned.level:.0%} intervals"
    if planned.aims:
        yield f"drawn for: {purpose(planned.aims)}"
    yield as_table(planned.rows(), digits=4)
    yield as_table(planned.widths(), digits=4)
    yield from planned.notes
