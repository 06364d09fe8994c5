"""Points on labels and texts: licence, metadata, human checks, judges, leaks, privacy, self-preference."""

from collections.abc import Mapping
from typing import Any

from curate.commands.ready.evidence import ReadyEvidence, ReadyPoint
from curate.commands.ready.texts import lengths, texts
from curate.core.config import Json
from curate.pipeline import circularity
from curate.pipeline.circularity import PLACE
from curate.review import relevance_desks
from curate.runs import card_facts
from curate.runs.leaks import COMPARED, digests
from curate.tables.exporters.task_metadata import licence_problem, missing
from curate.view.run_figures import failed


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
    sets = evidence.command("metadata", MISSING=names[0])
    options = "".join(f" --set {name}=VALUE" for name in names[1:])
    tasks = ", ".join(task for task, lacks in lacking.items() if set(lacks) & set(names))
    return ReadyPoint("metadata", "not ok", f"{tasks}: missing {', '.join(names)}", sets + options)


def people(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on human checks: ok if people graded enough randomly sampled pairs; controls do not count."""
    samples = relevance_desks(evidence.run.folder)
    if not samples:
        return ReadyPoint(
            "people", "not measured", "nobody reviewed a sample of the labels", evidence.command("people")
        )
    read = sum(1 for answers in samples for row, grade, _ in answers.answered() if grade and row["expected"] is None)
    if read < evidence.limits["read"]:
        least = f"people read {read} pairs, expected {evidence.limits['read']} or more"
        return ReadyPoint("people", "not ok", least, evidence.command("import"))
    return ReadyPoint("people", "ok", f"people read {read:,} pairs of samples drawn at random")


def gate(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on qualification tests: ok if every LLM judge passed its controls."""
    if not evidence.families:
        return ReadyPoint("judge gate", "not ok", "heuristics alone judged", evidence.command("judges"))
    measured = (evidence.judged.get("gate") or {}).get("judges") or _checked(evidence)
    if not measured:
        return ReadyPoint("judge gate", "not measured", "no judge was given controls", evidence.command("gate"))
    weak = failed({"gate": {"judges": measured}})
    if weak or (weak := sorted(evidence.families.keys() - measured.keys())):
        return ReadyPoint("judge gate", "not ok", f"did not pass: {', '.join(weak)}", evidence.command("judges"))
    return ReadyPoint("judge gate", "ok", f"{len(measured)} judges passed their controls")


def _checked(evidence: ReadyEvidence) -> dict[str, Json]:
    """Return judge -> its figures on controls from `curate check judge`."""
    figures = evidence.written("checks", "judge.json") or {"judges": {}}
    return {name: judge["controls"] for name, judge in figures["judges"].items() if judge.get("controls")}


def kin(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on judge families: ok for enough families without a warning of dependence."""
    count, need = len(set(evidence.families.values())), evidence.limits["families"]
    if count < need:
        finding = f"language models of {count} families judged, expected {need} or more"
        return ReadyPoint("families", "not ok", finding, evidence.command("judges"))
    if warned := card_facts.dependence(evidence.context)["warnings"]:
        return ReadyPoint("families", "not ok", f"{warned[0]}", evidence.command("judges"))  # type: ignore[index]
    return ReadyPoint("families", "ok", f"{count} families: {', '.join(sorted(set(evidence.families.values())))}")


def leaks(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on leaks: ok if the current test set was compared with a training set, without a leak."""
    compared = evidence.written("checks", "leaks", COMPARED)
    if compared is None:
        finding = "no training set was compared with this one"
        return ReadyPoint("leaks", "not measured", finding, evidence.command("leaks"))
    if compared.get("test") != digests(evidence.run.folder) or "leaking_queries" not in compared:
        finding = "queries, documents or labels are other ones than when a training set was compared with them"
        return ReadyPoint("leaks", "not measured", finding, evidence.command("leaks"))
    if n_leaks := compared["leaking_queries"] + compared["leaking_pairs"]:
        return ReadyPoint("leaks", "not ok", f"{n_leaks:,} leaks into a training set", evidence.command("train_set"))
    return ReadyPoint("leaks", "ok", "no leak was found")


def privacy(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on privacy: ok if texts were masked and the export's scan found no residual PII."""
    facts: Mapping[str, Any] = evidence.context.done("export").facts
    if (gate := facts.get("gate")) is None:  # as 0.2 exported
        return ReadyPoint("privacy", "not measured", "no gate looked at what models wrote", evidence.command("again"))
    if not gate["looked"]:
        return ReadyPoint("privacy", "not ok", "the texts were not masked", evidence.command("mask"))
    if n_residual := facts["residual"] + gate["published"]:
        finding = f"{n_residual:,} exported texts still hold what looks like personal data"
        return ReadyPoint("privacy", "not ok", finding, evidence.command("residual" if facts["residual"] else "found"))
    return ReadyPoint("privacy", "ok", "masked, and the gate of the export found nothing in any text")


def favours(evidence: ReadyEvidence) -> ReadyPoint:
    """Return the point on self-preference: ok without a warning of `curate check circular`."""
    figures = circularity.checked(evidence.run.beside("judge"))
    if figures is None or not figures["judges"]:
        finding = f"no {PLACE} of these labels" if figures is None else "no judge is scored under both panels"
        return ReadyPoint("circularity", "not measured", finding, evidence.command("circular"))
    if warned := [judge["judge"] for judge in figures["judges"] if judge["warned"]]:
        finding = f"{', '.join(warned)} gains by judging itself"
        return ReadyPoint("circularity", "not ok", finding, evidence.command("judges"))
    return ReadyPoint("circularity", "ok", f"none of {len(figures['judges'])} judges gains by judging itself")


POINTS = (licence, metadata, texts, lengths, people, gate, kin, leaks, privacy, favours)
"""Points without an evaluation, in display order."""
