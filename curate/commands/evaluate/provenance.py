"""Provenance of a benchmark, read from its run: contributors, missed relevant documents, model families of judges."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from curate.commands.evaluate.tasks import EvaluationTask
from curate.core.config import Json, Settings
from curate.core.model_family import family
from curate.panel.sampling_design import verdict_of
from curate.pipeline import facts
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context, home
from curate.retrieval.encoders.presets import with_presets
from curate.review import Desk, published, relevance_desks
from curate.review.agreement import checked, part, shown
from curate.review.proof import prove
from curate.runs.checks import CHECKS
from curate.stats.sample_estimates import recall
from curate.system.files import read_json
from curate.tables.exporters import manifest
from curate.tables.exporters.labels import ROLES
from curate.view.page_tables import ranged, table


def run_of(folder: Path) -> Path | None:
    """Return the run folder: the folder or one of its four nearest parents; None for an export without its run."""
    absolute = folder.resolve()
    return next((parent for parent in (absolute, *absolute.parents[:4]) if (parent / "pipeline.yaml").is_file()), None)


def definitions(run: Path | None) -> Mapping[str, Settings]:
    """Return name -> settings of the encoders in a run's pipeline, and of the packaged encoders; {} without a run."""
    if run is None:
        return {}
    return with_presets(cast("Mapping[str, Settings]", Pipeline.load(run / "pipeline.yaml").head.encoders))


def roles(models: Sequence[str], tasks: Sequence[EvaluationTask]) -> dict[str, list[str]]:
    """Return model -> its roles as a contributor to these tasks: `retriever`, `judge`, `generator`, or none."""
    return {model: [role for role in ROLES if any(model in task.parts[role] for task in tasks)] for model in models}


def circular(model: str, task: EvaluationTask) -> list[str]:
    """Return the roles of a model as a contributor to a task that bias its score on this task."""
    return [role for role in task.kind.circular if model in task.parts[role]]


def missed(run: Path | None) -> dict[str, Json]:
    """Return estimates of relevant documents without a relevant label; {} without a run.

    `samples`: per review sample, the shares of relevant pairs among the panel's negatives and among contested pairs,
    the panel's recall, and the share of relevant pairs that are contested. `published`: the same for published labels
    with answers of experts. `capture` and `below`: documents outside the pool, from `curate check pool`.
    """
    if run is None:
        return {}
    estimates: dict[str, Json] = {}
    rows = [
        (answers, {"sample": answers.sample.design.name, **_label_shares(prove(answers))})
        for answers in relevance_desks(run)
    ]
    if samples := [row | _contested_share(answers) for answers, row in rows]:
        estimates["samples"] = samples
    if final := published.prove(run):
        estimates["published"] = {"samples": final["samples"], **_label_shares(final)}
    checked = CHECKS["pool"].written(run) or {}
    return estimates | {name: checked[name] for name in ("capture", "below") if checked.get(name)}


def _contested_share(answers: Desk) -> dict[str, Json]:
    """Return the share of contested pairs among those that assessors found relevant."""
    if not answers.sample.scale.relevant:
        return {"contested_of_relevant": None}
    read = [row for row in checked(answers) if row.settled]
    counts_by_stratum = {
        stratum.name: part(stratum.name, stratum.size, read, "relevant") for stratum in answers.sample.design.strata
    }
    contested = [counts for name, counts in counts_by_stratum.items() if verdict_of(name) == "contested"]
    others = [counts for name, counts in counts_by_stratum.items() if verdict_of(name) != "contested"]
    return {"contested_of_relevant": shown(recall(contested, others))}


def _label_shares(proof: Mapping[str, Any]) -> dict[str, Json]:
    negatives = proof["confirmed"].get("not relevant")
    wrong = negatives and {
        "value": round(1 - negatives["value"], 4),
        "low": round(1 - negatives["high"], 4),
        "high": round(1 - negatives["low"], 4),
        "answered": negatives["answered"],
    }
    contested = proof["relevant"].get("contested")
    return {"negatives": wrong, "contested": contested, "recall": proof["recall"]}


# Models of the same family as a judge, with the self-preference of that judge.

FamilyFigures = Mapping[str, Any]
UNCHECKED = "not checked (`curate check circular`)"


def of_family(models: Sequence[str], tasks: Sequence[EvaluationTask], run: Path | None) -> list[dict[str, Json]]:
    """Return one row per model and judge of the same family.

    `favour`, the judge's self-preference, is None if unmeasured. `curate check circular` measures self-preference; it
    is read from the export's manifest, else from the run.
    """
    judges = _judges(tasks)
    if run is not None and any(judge["favour"] is None for judge in judges.values()):
        context = Context(run=run, out=run, home=home(), settings=Pipeline.load(run / "pipeline.yaml").frozen)
        favours = facts.favours(context)
        judges = {name: {**judge, "favour": judge["favour"] or favours.get(name)} for name, judge in judges.items()}
    return [
        {"model": model, "judge": judge, **judge_facts}
        for model in models
        for judge, judge_facts in judges.items()
        if judge_facts["family"] and family("", str(judge_facts["family"])) == family(model)
    ]


def _judges(tasks: Sequence[EvaluationTask]) -> dict[str, dict[str, Json]]:
    """Return judge -> model family and self-preference, from the manifests of exports; older manifests have none."""
    judges: dict[str, dict[str, Json]] = {}
    for folder in sorted({task.folder.parent for task in tasks if task.folder}):
        path = folder / manifest.NAME
        judges |= read_json(path).get("judges", {}) if path.is_file() else {}
    return judges


def family_section(rows: Sequence[FamilyFigures]) -> Iterator[str]:
    """Yield the section on models of a judge's family; nothing if there are none."""
    if rows:
        yield ""
        yield table(
            [
                {
                    "model": row["model"],
                    "is of the family": row["family"],
                    "of the judge": row["judge"],
                    "which by judging itself gains": (
                        f"{ranged(row['favour']['effect'])} points of nDCG@10" if row["favour"] else UNCHECKED
                    ),
                }
                for row in rows
            ]
        )


def family_notes(rows: Sequence[FamilyFigures]) -> Iterator[str]:
    """Yield a sentence per model of the same family as a judge with a warning of self-preference."""
    for row in rows:
        if row["favour"] and row["favour"]["warned"]:
            yield (
                f"circular: {row['model']} is of the family {row['family']}, and so is the judge {row['judge']}, "
                f"which gains {ranged(row['favour']['effect'])} points of nDCG@10 by judging itself: its scores may "
                "be too high"
            )
