"""Provenance of a benchmark from its run: retrievers, judges, and relevant documents that it missed."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from curate.commands.evaluate.tasks import EvaluationTask
from curate.core.config import Json, Settings
from curate.core.model_family import family
from curate.panel.sampling_design import verdict_of
from curate.pipeline import circularity
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context, home
from curate.retrieval.encoders.presets import with_presets
from curate.review import Desk, published, relevance_desks
from curate.review.agreement import checked, part, shown
from curate.review.proof import prove
from curate.stats.sample_estimates import recall
from curate.system.files import read_json
from curate.tables.exporters import manifest
from curate.tables.exporters.labels import ROLES
from curate.view.page_tables import ranged, table


def run_of(folder: Path) -> Path | None:
    """Return the run folder that a folder is, or lies in; None for an export by itself."""
    whole = folder.resolve()
    return next((each for each in (whole, *whole.parents[:4]) if (each / "pipeline.yaml").is_file()), None)


def definitions(run: Path | None) -> Mapping[str, Settings]:
    """Return the encoders of a run by name: those that its pipeline defines, and the packaged ones."""
    if run is None:
        return {}
    return with_presets(cast("Mapping[str, Settings]", Pipeline.load(run / "pipeline.yaml").head.encoders))


def roles(models: Sequence[str], tasks: Sequence[EvaluationTask]) -> dict[str, list[str]]:
    """Return model -> what parts it had in making these tasks: `retriever`, `judge`, `generator`, some or none."""
    return {model: [role for role in ROLES if any(model in task.parts[role] for task in tasks)] for model in models}


def circular(model: str, task: EvaluationTask) -> list[str]:
    """Return by which of its parts in making a task a model's score on it is partly its own doing."""
    return [role for role in task.kind.circular if model in task.parts[role]]


def missed(run: Path | None) -> dict[str, Json]:
    """Return what is known of relevant documents that count as not relevant; empty without a run.

    `samples`: of every review sample the share of the panel's negatives and of contested pairs that people found
    relevant, and of all relevant pairs of the pool the share that the panel found and the one that it contests.
    `published`: the same of the labels that experts' answers made. `capture` and `below`: what lies outside the pool,
    by `curate check pool`.
    """
    if run is None:
        return {}
    found: dict[str, Json] = {}
    rows = [(desk, {"sample": desk.sample.design.name, **_proved(prove(desk))}) for desk in relevance_desks(run)]
    if samples := [row | _held(desk) for desk, row in rows]:
        found["samples"] = samples
    if final := published.prove(run):
        found["published"] = {"samples": final["samples"], **_proved(final)}
    path = run / "checks" / "pool.json"
    checked = read_json(path) if path.is_file() else {}
    return found | {name: checked[name] for name in ("capture", "below") if checked.get(name)}


def _held(desk: Desk) -> dict[str, Json]:
    """Return which share of all pairs that people find relevant the panel contests."""
    if not desk.sample.scale.relevant:
        return {"contested_of_relevant": None}
    read = [row for row in checked(desk) if row.settled]
    parts = {each.name: part(each.name, each.size, read, "relevant") for each in desk.sample.design.strata}
    contested = [each for name, each in parts.items() if verdict_of(name) == "contested"]
    others = [each for name, each in parts.items() if verdict_of(name) != "contested"]
    return {"contested_of_relevant": shown(recall(contested, others))}


def _proved(proof: Mapping[str, Any]) -> dict[str, Json]:
    negatives = proof["confirmed"].get("not relevant")
    wrong = negatives and {
        "value": round(1 - negatives["value"], 4),
        "low": round(1 - negatives["high"], 4),
        "high": round(1 - negatives["low"], 4),
        "answered": negatives["answered"],
    }
    contested = proof["relevant"].get("contested")
    return {"negatives": wrong, "contested": contested, "recall": proof["recall"]}


# Models that share a family with a judge of the benchmark, beside what that judge gains by judging itself.

FamilyFigures = Mapping[str, Any]
UNCHECKED = "not checked (`curate check circular`)"


def of_family(models: Sequence[str], tasks: Sequence[EvaluationTask], run: Path | None) -> list[dict[str, Json]]:
    """Return a row per model and judge of its family: `favour` is None where `curate check circular` was not run.

    What judges gain stands in the manifest of the export, else in the run.
    """
    judges = _judges(tasks)
    if run is not None and any(judge["favour"] is None for judge in judges.values()):
        context = Context(run=run, out=run, home=home(), settings=Pipeline.load(run / "pipeline.yaml").frozen)
        now = circularity.favours(context)
        judges = {name: {**judge, "favour": judge["favour"] or now.get(name)} for name, judge in judges.items()}
    return [
        {"model": model, "judge": judge, **each}
        for model in models
        for judge, each in judges.items()
        if each["family"] and family("", str(each["family"])) == family(model)
    ]


def _judges(tasks: Sequence[EvaluationTask]) -> dict[str, dict[str, Json]]:
    """Return judge -> family and favour, by the manifests of the exports; one of an older version names none."""
    found: dict[str, dict[str, Json]] = {}
    for folder in sorted({task.folder.parent for task in tasks if task.folder}):
        path = folder / manifest.NAME
        found |= read_json(path).get("judges", {}) if path.is_file() else {}
    return found


def family_section(rows: Sequence[FamilyFigures]) -> Iterator[str]:
    """Yield the table of the page; nothing without such a model."""
    if rows:
        yield ""
        yield table(
            [
                {
                    "model": row["model"],
                    "is of the family": row["family"],
                    "of the judge": row["judge"],
                    "which by judging itself gains": _gain(row["favour"]),
                }
                for row in rows
            ]
        )


def family_notes(rows: Sequence[FamilyFigures]) -> Iterator[str]:
    """Yield a sentence per model whose judge is warned of."""
    for row in rows:
        if row["favour"] and row["favour"]["warned"]:
            yield (
                f"circular: {row['model']} is of the family {row['family']}, and so is the judge {row['judge']}, "
                f"which gains {ranged(row['favour']['effect'])} points of nDCG@10 by judging itself: its scores may "
                "be too high"
            )


def _gain(favour: FamilyFigures | None) -> str:
    return f"{ranged(favour['effect'])} points of nDCG@10" if favour else UNCHECKED
