"""Publication checklist of a benchmark, and its points on labels and texts; nothing is sent or scored."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from curate.commands.ready import pull_request
from curate.commands.ready.evidence import ReadyEvidence, ReadyPoint, scored
from curate.core.figures import Record, figure
from curate.panel.controls import SHORT
from curate.pipeline import facts as circularity
from curate.pipeline.facts import PLACE
from curate.review import flags
from curate.review.lead import of_run
from curate.runs import card_facts
from curate.runs.checks import CHECKS, JUDGE, grade_outside, outside_run
from curate.runs.runner import Run
from curate.runs.status import SAMPLE, review_step
from curate.system.files import read_json
from curate.tables.exporters.task_metadata import licence_problem, missing
from curate.tables.kinds.benchmark_kind import COLUMNS
from curate.view.run_figures import failed
from curate.view.words import strings

RETRIEVED = {"corpus": ("title", "text"), "queries": ("text",)}
"""Configuration of a retrieval task -> columns of texts; rows that agree in all of them are duplicates."""
TITLE = "title"
"""Column of texts that may be empty."""


@dataclass(frozen=True)
class TextTable:
    """The texts of one configuration of a task, by split."""

    place: str
    """Task and configuration, for messages."""
    parts: Sequence[pl.DataFrame]

    @property
    def empty(self) -> int:
        """Return the number of rows with a missing or blank text."""
        blank = pl.any_horizontal((_stripped(name) == "").fill_null(True) for name in self._columns)
        return sum(split.filter(blank).height for split in self.parts)

    @property
    def lengths(self) -> pl.Series:
        """Return the characters of every text, without surrounding blanks."""
        counted = [
            split.select(_stripped(name).str.len_chars()).to_series() for split in self.parts for name in self._columns
        ]
        return pl.concat([lengths.rename("characters") for lengths in counted]).drop_nulls()

    @property
    def _columns(self) -> list[str]:
        return [name for name in self.parts[0].columns if name != TITLE]


def _stripped(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String).str.strip_chars()


def texts_point(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on texts: ok if none is empty or duplicated, within or between splits."""
    problems = [problem for table in text_tables(evidence) for problem in _split_problems(table)]
    if problems:
        finding = f"{'; '.join(problems)}; take them out of the source"
        return ReadyPoint("texts", "not ok", finding, evidence.command("source"))
    return ReadyPoint("texts", "ok", "no text is empty or there twice, and no split holds a text of another")


def lengths_point(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on lengths: ok if no text is shorter than `limits.shortest` characters."""
    least, short, ranges = evidence.limits["shortest"], list[str](), list[str]()
    for table in text_tables(evidence):
        characters: list[int] = table.lengths.to_list()
        if n_short := sum(length < least for length in characters):
            short.append(f"{table.place}: {n_short:,} of {len(characters):,} texts have fewer than {least} characters")
        elif characters:
            ranges.append(f"{table.place} {min(characters):,} to {max(characters):,} (mean {fmean(characters):.0f})")
    if short:
        finding = f"{'; '.join(short)}; take them out of the source"
        return ReadyPoint("lengths", "not ok", finding, evidence.command("source"))
    return ReadyPoint("lengths", "ok", f"characters: {', '.join(ranges)}")


def text_tables(evidence: ReadyEvidence) -> Iterator[TextTable]:
    """Yield the tables of texts of every exported task."""
    for folder, front in evidence.fronts.items():
        type_columns = COLUMNS.get(front["mteb"]["type"])
        for config in front["configs"]:
            name = config["config_name"]
            columns = (
                RETRIEVED.get(name, ()) if type_columns is None else type_columns[0] if config.get("default") else ()
            )
            if columns:
                task_folder = evidence.run.folder / "export" / "mteb" / folder
                tables = [pl.read_parquet(task_folder / file["path"]) for file in config["data_files"]]
                present = [[column for column in columns if column in table.columns] for table in tables]
                texts = [table.select(names) for table, names in zip(tables, present, strict=True)]
                yield TextTable(f"{folder} {name}", texts)


def _split_problems(table: TextTable) -> Iterator[str]:
    splits = table.parts
    if table.empty:
        yield f"{table.place}: {table.empty:,} empty"
    if double := sum(split.height - split.n_unique() for split in splits):
        yield f"{table.place}: {double:,} there twice"
    if (shared := sum(split.unique().height for split in splits) - pl.concat(splits).n_unique()) > 0:
        yield f"{table.place}: {shared:,} in several splits"


# Points on labels and texts: licence, metadata, human checks, judges, leaks, privacy, self-preference.


def licence(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on licences: ok if every task has one that mteb accepts."""
    licences = {front["mteb"].get("license") for front in evidence.fronts.values()}
    if None not in licences:
        return ReadyPoint("licence", "ok", ", ".join(sorted(map(str, licences))))
    stated = evidence.run.pipeline.sections["export"].license  # type: ignore[attr-defined]
    return ReadyPoint("licence", "not ok", licence_problem(stated) or "no licence is set", evidence.command("licence"))


def metadata(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on metadata: ok if every field that mteb requires is filled, except the licence."""
    lacking = {name: missing(front["mteb"]) for name, front in evidence.fronts.items()}
    names = [
        name
        for name in dict.fromkeys(field for fields in lacking.values() for field in fields)
        if name != "export.license"
    ]
    if not names:
        return ReadyPoint("metadata", "ok", f"all fields of {len(lacking)} tasks are filled")
    examples = {name: evidence.rules["metadata"][name.rpartition(".")[2]] for name in names}
    options = "".join(f" --set {shlex.quote(f'{name}={example}')}" for name, example in examples.items())
    tasks = ", ".join(task for task, lacks in lacking.items() if set(lacks) & set(names))
    finding = f"{tasks}: missing {', '.join(names)}; give those of your texts for the example values"
    return ReadyPoint("metadata", "not ok", finding, evidence.command("metadata") + options)


def people(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on expert review: ok if the review's recommendation is to publish the labels."""
    review, advice = of_run(evidence.run.folder) or (None, None)
    if review is None or advice is None:
        run = shlex.quote(str(evidence.run.folder))
        draw = f"curate review export --run {run} --size {SAMPLE} --assessors first,second"
        return ReadyPoint("people", "not measured", "nobody reviewed a sample of the labels", draw)
    step = review_step(evidence.run, review, advice)
    finding = f"sample {advice.sample}: {advice.sentence}"
    # a plan would leave the point as it was
    command = step.command.removesuffix(" --plan") if step else None
    return ReadyPoint("people", "not ok" if step else "ok", finding, command)


def gate(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on qualification tests: ok if every LLM judge passed its controls."""
    if not evidence.families:
        return ReadyPoint("judge gate", "not ok", "heuristics alone judged", evidence.other_judges)
    measured = (evidence.judged.get("gate") or {}).get("judges")
    if not measured:  # then the controls of `curate check judge`
        figures = CHECKS["judge"].written(evidence.run.folder) or {"judges": {}}
        measured = {name: judge["controls"] for name, judge in figures["judges"].items() if judge.get("controls")}
    if not measured:
        finding = "no judge was given controls"
        if unqualified := evidence.judged.get("controls"):
            finding = strings("en")["done"]["said"]["reads"].format(", ".join(unqualified))
        return ReadyPoint("judge gate", "not measured", finding, evidence.command("gate"))
    weak = failed({"gate": {"judges": measured}})
    if weak and all(measured[name]["state"] == SHORT for name in weak):
        lacking = "add documents that are in no pool, and have more pairs read"
        finding = f"too few controls to tell: {', '.join(weak)}; {lacking}"
        return ReadyPoint("judge gate", "not measured", finding, evidence.command("source"))
    if weak or (weak := sorted(evidence.families.keys() - measured.keys())):
        return ReadyPoint("judge gate", "not ok", f"did not pass: {', '.join(weak)}", evidence.other_judges)
    return ReadyPoint("judge gate", "ok", f"{len(measured)} judges passed their controls")


def kin(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on judge families: ok for enough families without a warning of dependence."""
    count, need = len(set(evidence.families.values())), evidence.limits["families"]
    if count < need:
        finding = f"language models of {count} families judged, expected {need} or more"
        return ReadyPoint("families", "not ok", finding, evidence.other_judges)
    if warned := card_facts.dependence(evidence.context).warnings:
        return ReadyPoint("families", "not ok", warned[0], evidence.other_judges)
    return ReadyPoint("families", "ok", f"{count} families: {', '.join(sorted(set(evidence.families.values())))}")


def leaks(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on leaks: ok if the current test set was compared with a training set and no leak was found."""
    compared = CHECKS["leaks"].result(evidence.context)
    if compared.state in ("absent", "needless"):
        finding = "no training set was compared with this one"
        return ReadyPoint("leaks", "not measured", finding, evidence.command("leaks"))
    if compared.state == "older":
        finding = "queries, documents or labels are other ones than when a training set was compared with them"
        return ReadyPoint("leaks", "not measured", finding, evidence.command("leaks"))
    if n_leaks := compared.figures["leaking_queries"] + compared.figures["leaking_pairs"]:
        finding = (
            f"{n_leaks:,} leaks into a training set; compare with one that has none "
            f"(`curate train-set SOURCE --test {shlex.quote(str(evidence.run.folder))}` makes it)"
        )
        return ReadyPoint("leaks", "not ok", finding, evidence.command("leaks"))
    return ReadyPoint("leaks", "ok", "no leak was found")


def privacy(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on privacy: ok if texts were masked and the export's scan found no residual PII."""
    facts: Mapping[str, Any] = evidence.context.done("export").facts
    if flagged_rows := flags.personal_rows(evidence.context.run):
        finding = f"assessors flagged personal data in {len(flagged_rows):,} rows"
        return ReadyPoint("privacy", "not ok", finding, evidence.command("flags"))
    if (gate := facts.get("gate")) is None:  # as 0.2 exported
        return ReadyPoint("privacy", "not measured", "no gate looked at what models wrote", evidence.command("again"))
    if not gate["looked"]:
        return ReadyPoint("privacy", "not ok", "the texts were not masked", evidence.command("mask"))
    if n_residual := facts["residual"] + gate["published"]:
        finding = f"{n_residual:,} exported texts still hold what looks like personal data"
        finding += "" if facts["residual"] else "; accept those in `curate show export/found` that hold none"
        return ReadyPoint("privacy", "not ok", finding, evidence.command("residual" if facts["residual"] else "found"))
    return ReadyPoint("privacy", "ok", "masked, and the gate of the export found nothing in any text")


def favours(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on self-preference: ok without a warning of `curate check circular`, with effects measured."""
    figures = circularity.checked(evidence.run.beside("judge"))
    if figures is None:
        return _unmeasured_favours(evidence, f"no {PLACE} of these labels")
    if not figures["judges"]:
        finding = "no judge is scored under both panels"
        if figures["fourth"]:
            return ReadyPoint("circularity", "not measured", finding, evidence.other_judges)
        return _unmeasured_favours(evidence, finding)
    if warned := [judge["judge"] for judge in figures["judges"] if judge["warned"]]:
        finding = f"{', '.join(warned)} gains by judging itself"
        return ReadyPoint("circularity", "not ok", finding, evidence.other_judges)
    if any(judge["effect"]["value"] is None for judge in figures["judges"]):
        return _unmeasured_favours(evidence, "the panel alone gives ranges, no effects")
    return ReadyPoint("circularity", "ok", f"none of {len(figures['judges'])} judges gains by judging itself")


def _unmeasured_favours(evidence: ReadyEvidence, finding: str) -> ReadyPoint:
    """Return the open point on self-preference, with the command for its state.

    A judge from outside of the panel grades the pool in a run of its own; then it takes each judge's place.
    """
    run = evidence.run
    graded = outside_run(run.folder) / "judge" / "panel.json"
    earlier = (CHECKS["circular"].written(run.folder) or {}).get("fourth")
    outside = sorted(read_json(graded).keys() - evidence.panel.keys()) if graded.is_file() else []
    if outside := [earlier] if earlier else outside:
        finding += f"; {outside[0]} has graded the pool and can take each judge's place"
        return ReadyPoint("circularity", "not measured", finding, evidence.command("circular", JUDGE=outside[0]))
    then = evidence.command("circular", JUDGE=JUDGE)
    finding += f"; a judge from outside of the panel, NAME, has to grade the pool first, then `{then}`"
    return ReadyPoint("circularity", "not measured", finding, grade_outside(run.folder, run.pipeline.head.stages))


POINTS = (licence, metadata, texts_point, lengths_point, people, gate, kin, leaks, privacy, favours)
"""Functions of the points that need no evaluation, in display order."""


# Checklist of a benchmark before publication; nothing is sent or scored.


def ready_points(evidence: ReadyEvidence) -> list[ReadyPoint]:
    """Return the points of a run; UserError without an up-to-date export."""
    _ = evidence.folders  # first, because it raises without an export, which all other points are about
    return [*(point(evidence) for point in POINTS), *scored(evidence)]


class Checklist(Record):
    """Checklist of a benchmark that is to be published; an error unless every point is ok."""

    run: str = figure("run folder")
    ready: bool = figure("whether every point is ok")
    ok: int = figure("points that are ok")
    not_ok: int = figure("points that are not ok")
    not_measured: int = figure("points that were not measured")
    points: tuple[ReadyPoint, ...] = figure("all points")
    folder: str | None = figure("folder for a pull request, written by --out")
    files: tuple[str, ...] = figure("written files, relative to that folder")
    edited: tuple[str, ...] = figure("files of that folder that were edited by hand and left as they are")


def checklist(run: Run, out: Path | None = None) -> Checklist:
    """Return all points and their counts by state; with `out`, also write the folder for a pull request.

    A pull request adds two points: the upload of the texts, and task names that are free in mteb.
    """
    evidence = ReadyEvidence(run)
    run_points = ready_points(evidence)
    written = None if out is None else pull_request.write(evidence, run_points, out)
    run_points += written.points if written else []
    states = Counter(point.state for point in run_points)
    return Checklist(
        run=str(run.folder),
        ready=states["ok"] == len(run_points),
        ok=states["ok"],
        not_ok=states["not ok"],
        not_measured=states["not measured"],
        points=tuple(run_points),
        folder=None if written is None else str(written.folder),
        files=tuple(written.files) if written else (),
        edited=tuple(written.edited) if written else (),
    )
