"""Provenance of a benchmark, read from its run: contributors, missed relevant documents, model families of judges."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from curate.ask import build
from curate.commands.evaluate.tasks import EvaluationTask
from curate.core.config import Json, Settings
from curate.core.figures import Figure, Record, figure
from curate.core.model_family import family
from curate.core.protocols import Retriever
from curate.panel.sampling_design import verdict_of
from curate.pipeline import facts
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context, home
from curate.retrieval.encoders.presets import with_presets
from curate.review import Desk, published, relevance_desks
from curate.review.agreement import SampleEstimate, checked, rounded_estimate, stratum_counts
from curate.review.proof import prove
from curate.runs.checks import CHECKS
from curate.stats.sample_estimates import recall
from curate.system.egress import AllowedHosts
from curate.system.files import read_json
from curate.tables.exporters import manifest
from curate.tables.exporters.labels import ROLES
from curate.view.page_tables import ranged, table
from curate.view.record_words import RecordWords

WITHOUT_VECTORS = frozenset({"bm25", "reranker", "sparse"})
"""Kinds of retrievers that are evaluated by their rankings."""


def run_of(folder: Path) -> Path | None:
    """Return the run folder: the folder or one of its four nearest parents; None for an export without its run."""
    absolute = folder.resolve()
    return next((parent for parent in (absolute, *absolute.parents[:4]) if (parent / "pipeline.yaml").is_file()), None)


def definitions(run: Path | None) -> Mapping[str, Settings]:
    """Return name -> settings of the encoders in a run's pipeline, and of the packaged encoders; {} without a run."""
    if run is None:
        return {}
    return with_presets(cast("Mapping[str, Settings]", Pipeline.load(run / "pipeline.yaml").head.encoders))


def retrievers(run: Path | None) -> Mapping[str, Callable[[], Retriever]]:
    """Return name -> function that makes a retriever of a run's pipeline that has no encoder; {} without a run."""
    if run is None:
        return {}
    pipeline = Pipeline.load(run / "pipeline.yaml")
    defined = {"encoders": definitions(run), "retrievers": cast("Mapping[str, Settings]", pipeline.head.retrievers)}
    context = Context(
        run=run, out=run, home=home(), settings=pipeline.frozen, language=pipeline.head.language, definitions=defined
    )
    return {
        name: partial(build.retriever, context, name)
        for name, settings in defined["retrievers"].items()
        if settings.get("kind", name) in WITHOUT_VECTORS
    }


def allowed_hosts(run: Path | None) -> AllowedHosts:
    """Return the hosts that encoders may reach by a run's pipeline; every host without a run."""
    return AllowedHosts() if run is None else Pipeline.load(run / "pipeline.yaml").head.egress


def roles(models: Sequence[str], tasks: Sequence[EvaluationTask]) -> dict[str, list[str]]:
    """Return model -> its roles as a contributor to these tasks: `retriever`, `judge`, `generator`, or none."""
    return {model: [role for role in ROLES if any(model in task.parts[role] for task in tasks)] for model in models}


def circular(model: str, task: EvaluationTask) -> list[str]:
    """Return the roles of a model as a contributor to a task that bias its score on this task."""
    return [role for role in task.kind.circular if model in task.parts[role]]


class SampleShares(Record, schema_name="sample"):
    """What a reviewed sample says of the panel's labels."""

    sample: str = figure("name of the sample")
    negatives: SampleEstimate | None = figure("share of the panel's negatives that assessors find relevant")
    contested: SampleEstimate | None = figure("share of the contested pairs that assessors find relevant")
    recall: SampleEstimate | None = figure("share of all relevant pairs of the pool that are positives")
    contested_of_relevant: SampleEstimate | None = figure(
        "share of the pairs that assessors find relevant which are contested"
    )


class PublishedShares(Record):
    """The same of published labels with answers of experts."""

    samples: tuple[str, ...] = figure("samples whose answers became labels")
    negatives: SampleEstimate | None = figure("share of the negatives that assessors find relevant")
    contested: SampleEstimate | None = figure("share of the contested pairs that assessors find relevant")
    recall: SampleEstimate | None = figure("share of all relevant pairs of the pool that are positives")


class MissedLabels(Record, schema_name="missed"):
    """Estimates of relevant documents without a relevant label."""

    samples: tuple[SampleShares, ...] | None = figure("reviewed samples", optional=True)
    published: PublishedShares | None = figure("published labels with answers of experts", optional=True)
    capture: Any = figure(
        "capture-recapture estimates of documents outside the pool, from `curate check pool`", optional=True
    )
    below: Any = figure("estimates from graded samples outside the pool, from `curate check pool`", optional=True)


NOTHING_MISSED = MissedLabels(samples=None, published=None, capture=None, below=None)


def missed(run: Path | None) -> MissedLabels:
    """Return estimates of relevant documents without a relevant label; none without a run."""
    if run is None:
        return NOTHING_MISSED
    final, checked = published.prove(run), CHECKS["pool"].written(run) or {}
    samples = tuple(
        SampleShares(answers.sample.design.name, *_label_shares(prove(answers).to_json()), _contested_share(answers))
        for answers in relevance_desks(run)
    )
    return MissedLabels(
        samples=samples or None,
        published=PublishedShares(tuple(cast("Sequence[str]", final["samples"])), *_label_shares(final))
        if final
        else None,
        capture=checked.get("capture"),
        below=checked.get("below") or None,
    )


def _contested_share(answers: Desk) -> SampleEstimate | None:
    """Return the share of contested pairs among those that assessors found relevant."""
    if not answers.sample.scale.relevant:
        return None
    read = [row for row in checked(answers) if row.settled]
    counts_by_stratum = {
        stratum.name: stratum_counts(stratum.name, stratum.size, read, "relevant")
        for stratum in answers.sample.design.strata
    }
    contested = [counts for name, counts in counts_by_stratum.items() if verdict_of(name) == "contested"]
    others = [counts for name, counts in counts_by_stratum.items() if verdict_of(name) != "contested"]
    return rounded_estimate(recall(contested, others))


def _label_shares(
    proof: Mapping[str, Any],
) -> tuple[SampleEstimate | None, SampleEstimate | None, SampleEstimate | None]:
    """Return the shares of negatives and of contested pairs that are relevant, and recall."""
    negatives = proof["confirmed"].get("not relevant")
    wrong = negatives and SampleEstimate(
        value=round(1 - negatives["value"], 4),
        low=round(1 - negatives["high"], 4),
        high=round(1 - negatives["low"], 4),
        answered=negatives["answered"],
    )
    return wrong, _label_share(proof["relevant"].get("contested")), _label_share(proof["recall"])


def _label_share(estimate: Mapping[str, Any] | None) -> SampleEstimate | None:
    return SampleEstimate.from_json(estimate) if estimate else None


# Models of the same family as a judge, with the self-preference of that judge.


class JudgeFavour(Record, schema_name="favour"):
    """What a judge gains by judging itself."""

    effect: Figure = figure("effect on nDCG@10", digits=2, percent=True)
    ranks: int = figure("ranks gained under its own panel")
    queries: int = figure("queries with a relevant document under both panels")
    replaced_by: str | None = figure("judge that replaces it; null if it is left out")
    warned: bool = figure("whether the effect is large and significant")


class FamilyModel(Record, schema_name="of_family"):
    """A model of the same family as a judge."""

    model: str = figure("name of the model")
    judge: str = figure("name of the judge")
    family: str = figure("family of both")
    favour: JudgeFavour | None = figure("self-preference of the judge; null if `curate check circular` was not run")


def of_family(models: Sequence[str], tasks: Sequence[EvaluationTask], run: Path | None) -> tuple[FamilyModel, ...]:
    """Return one row per model and judge of the same family.

    `favour`, the judge's self-preference, is None if unmeasured. `curate check circular` measures self-preference; it
    is read from the export's manifest, else from the run.
    """
    judges = _judges(tasks)
    if run is not None and any(judge["favour"] is None for judge in judges.values()):
        context = Context(run=run, out=run, home=home(), settings=Pipeline.load(run / "pipeline.yaml").frozen)
        favours = facts.favours(context)
        judges = {name: {**judge, "favour": judge["favour"] or favours.get(name)} for name, judge in judges.items()}
    return tuple(
        FamilyModel.from_json({"model": model, "judge": judge, **judge_facts})
        for model in models
        for judge, judge_facts in judges.items()
        if judge_facts["family"] and family("", str(judge_facts["family"])) == family(model)
    )


def _judges(tasks: Sequence[EvaluationTask]) -> dict[str, dict[str, Json]]:
    """Return judge -> model family and self-preference, from the manifests of exports; older manifests have none."""
    judges: dict[str, dict[str, Json]] = {}
    for folder in sorted({task.folder.parent for task in tasks if task.folder}):
        path = folder / manifest.NAME
        judges |= read_json(path).get("judges", {}) if path.is_file() else {}
    return judges


def family_section(rows: Sequence[FamilyModel], say: RecordWords) -> Iterator[str]:
    """Yield the section on models of a judge's family; nothing if there are none."""
    if rows:
        yield ""
        yield table(
            [
                say.cells("family", row, favour=say("favour", row.favour) if row.favour else say("no_favour"))
                for row in rows
            ]
        )


def family_notes(rows: Sequence[FamilyModel]) -> Iterator[str]:
    """Yield a sentence per model of the same family as a judge with a warning of self-preference."""
    for row in rows:
        if row.favour and row.favour.warned:
            yield (
                f"circular: {row.model} is of the family {row.family}, and so is the judge {row.judge}, "
                f"which gains {ranged(row.favour.effect)} points of nDCG@10 by judging itself: its scores may "
                "be too high"
            )
