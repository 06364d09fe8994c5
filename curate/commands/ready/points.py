"""Points of the checklist on labels and texts: licence, metadata, people, judges, leaks, privacy, circularity."""

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


def licence(known: ReadyEvidence) -> ReadyPoint:
    """Return whether every task states a licence that mteb takes."""
    given = {front["mteb"].get("license") for front in known.fronts.values()}
    if None not in given:
        return ReadyPoint("licence", "ok", ", ".join(sorted(map(str, given))))
    stated = known.run.pipeline.sections["export"].license  # type: ignore[attr-defined]
    return ReadyPoint("licence", "not ok", licence_problem(stated) or "no licence is set", known.command("licence"))


def metadata(known: ReadyEvidence) -> ReadyPoint:
    """Return whether mteb would find every field of every task filled, the licence apart."""
    lacking = {name: missing(front["mteb"]) for name, front in known.fronts.items()}
    names = [
        name for name in dict.fromkeys(each for some in lacking.values() for each in some) if name != "export.license"
    ]
    if not names:
        return ReadyPoint("metadata", "ok", f"all fields of {len(lacking)} tasks are filled")
    sets = known.command("metadata", MISSING=names[0])
    more = "".join(f" --set {name}=VALUE" for name in names[1:])
    tasks = ", ".join(task for task, lacks in lacking.items() if set(lacks) & set(names))
    return ReadyPoint("metadata", "not ok", f"{tasks}: missing {', '.join(names)}", sets + more)


def people(known: ReadyEvidence) -> ReadyPoint:
    """Return whether people graded enough pairs of a sample at random of all judged pairs."""
    desks = relevance_desks(known.run.folder)
    if not desks:
        return ReadyPoint("people", "not measured", "nobody reviewed a sample of the labels", known.command("people"))
    read = sum(1 for desk in desks for row, given, _ in desk.answered() if given and row["expected"] is None)
    if read < known.limits["read"]:
        least = f"people read {read} pairs, expected {known.limits['read']} or more"
        return ReadyPoint("people", "not ok", least, known.command("import"))
    return ReadyPoint("people", "ok", f"people read {read:,} pairs of samples drawn at random")


def gate(known: ReadyEvidence) -> ReadyPoint:
    """Return whether every judge passed its controls."""
    if not known.families:
        return ReadyPoint("judge gate", "not ok", "heuristics alone judged", known.command("judges"))
    measured = (known.judged.get("gate") or {}).get("judges") or _checked(known)
    if not measured:
        return ReadyPoint("judge gate", "not measured", "no judge was given controls", known.command("gate"))
    weak = failed({"gate": {"judges": measured}})
    if weak or (weak := sorted(known.families.keys() - measured.keys())):
        return ReadyPoint("judge gate", "not ok", f"did not pass: {', '.join(weak)}", known.command("judges"))
    return ReadyPoint("judge gate", "ok", f"{len(measured)} judges passed their controls")


def _checked(known: ReadyEvidence) -> dict[str, Json]:
    """Return judge -> what `curate check judge` found of its controls."""
    found = known.written("checks", "judge.json") or {"judges": {}}
    return {name: each["controls"] for name, each in found["judges"].items() if each.get("controls")}


def kin(known: ReadyEvidence) -> ReadyPoint:
    """Return whether language models of several families judged, and none of them doubles another."""
    count, need = len(set(known.families.values())), known.limits["families"]
    if count < need:
        said = f"language models of {count} families judged, expected {need} or more"
        return ReadyPoint("families", "not ok", said, known.command("judges"))
    if warned := card_facts.dependence(known.context)["warnings"]:
        return ReadyPoint("families", "not ok", f"{warned[0]}", known.command("judges"))  # type: ignore[index]
    return ReadyPoint("families", "ok", f"{count} families: {', '.join(sorted(set(known.families.values())))}")


def leaks(known: ReadyEvidence) -> ReadyPoint:
    """Return whether a training set was compared with this test set, as it is now, and does not know it."""
    compared = known.written("checks", "leaks", COMPARED)
    if compared is None:
        said = "no training set was compared with this one"
        return ReadyPoint("leaks", "not measured", said, known.command("leaks"))
    if compared.get("test") != digests(known.run.folder) or "leaking_queries" not in compared:
        said = "queries, documents or labels are other ones than when a training set was compared with them"
        return ReadyPoint("leaks", "not measured", said, known.command("leaks"))
    if found := compared["leaking_queries"] + compared["leaking_pairs"]:
        return ReadyPoint("leaks", "not ok", f"{found:,} leaks into a training set", known.command("train_set"))
    return ReadyPoint("leaks", "ok", "no leak was found")


def privacy(known: ReadyEvidence) -> ReadyPoint:
    """Return what the gate of the export found in all that is published."""
    facts: Mapping[str, Any] = known.context.done("export").facts
    if (found := facts.get("gate")) is None:  # as 0.2 exported
        return ReadyPoint("privacy", "not measured", "no gate looked at what models wrote", known.command("again"))
    if not found["looked"]:
        return ReadyPoint("privacy", "not ok", "the texts were not masked", known.command("mask"))
    if left := facts["residual"] + found["published"]:
        said = f"{left:,} exported texts still hold what looks like personal data"
        return ReadyPoint("privacy", "not ok", said, known.command("residual" if facts["residual"] else "found"))
    return ReadyPoint("privacy", "ok", "masked, and the gate of the export found nothing in any text")


def favours(known: ReadyEvidence) -> ReadyPoint:
    """Return whether no judge gains by judging itself."""
    found = circularity.checked(known.run.beside("judge"))
    if found is None or not found["judges"]:
        said = f"no {PLACE} of these labels" if found is None else "no judge is scored under both panels"
        return ReadyPoint("circularity", "not measured", said, known.command("circular"))
    if warned := [each["judge"] for each in found["judges"] if each["warned"]]:
        said = f"{', '.join(warned)} gains by judging itself"
        return ReadyPoint("circularity", "not ok", said, known.command("judges"))
    return ReadyPoint("circularity", "ok", f"none of {len(found['judges'])} judges gains by judging itself")


POINTS = (licence, metadata, texts, lengths, people, gate, kin, leaks, privacy, favours)
"""Points that need no evaluation, in the order in which they are shown."""
