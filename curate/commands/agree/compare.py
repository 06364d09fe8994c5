"""Agreement of the judges of a run, and comparison of consensus rules on their ratings."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import polars as pl

from curate.commands.agree import policies
from curate.commands.agree.policies import PolicyLabels, RemovedPairs, SystemOrders
from curate.commands.agree.ratings_file import checked_rows
from curate.core.errors import TableError
from curate.core.figures import Record, figure
from curate.core.protocols import Progress, quiet
from curate.core.records import FILTERED
from curate.core.scale import Scale
from curate.panel import agreement_figures
from curate.panel.agreement_figures import PanelAgreement
from curate.panel.judge_dependence import Dependence
from curate.panel.rules import ConsensusRule
from curate.panel.voting import EXPERTS, PAIR, Policy
from curate.pipeline.configs import ConsensusConfig
from curate.review import Desk, Sample, published
from curate.review.agreement import checked, dependence
from curate.runs.rankings import rankings
from curate.runs.runner import Run
from curate.system.files import read_json, read_scale, read_table
from curate.tables.exporters.labels import Gain, gains
from curate.view.run_figures import only_heuristics

GRADED = "graded, lower median"
"""Name of the labels with graded gains: the gain of a pair's lower median grade, contested pairs included."""


class TruthLabels(Record, schema_name="truth"):
    """People's grades."""

    source: str = figure("file of grades, or sample of the run")
    pairs: int = figure("pairs with assessors' grades")
    judged: int = figure("pairs with assessors' grades that the panel judged")


class RunAgreement(Record, schema_name="of_run"):
    """Agreement of the judges of a run, and comparison of consensus rules."""

    panel: tuple[str, ...] = figure("judges of the panel")
    only_heuristics: bool = figure("whether every judge is a heuristic")
    agreement: PanelAgreement = figure("agreement of the judges")
    sampled: int | None = figure("after a cascade, pairs of the sample that all judges grade; null without a cascade")
    dependence: Dependence = figure("dependence of the judges")
    truth: TruthLabels | None = figure("assessors' grades; null without any")
    policies: tuple[PolicyLabels, ...] = figure("labels of each consensus rule")
    removed: tuple[RemovedPairs, ...] = figure("pairs that unanimity removes, by group")
    systems: SystemOrders = figure("rankings of the systems under the labels of each rule")


def compared(
    work: Run, seed: int | None, truth: Path | None, run_files: Sequence[Path] = (), progress: Progress = quiet
) -> RunAgreement:
    """Return the figures of `compare` for a run, with its settings; `run_files` are rankings of further systems."""
    head, policy = work.pipeline.head, cast("ConsensusConfig", work.pipeline.sections["consensus"]).policy
    others = rankings(work.beside("consensus"), run_files) if run_files else None
    return compare(work.folder, head.seed if seed is None else seed, truth, head.judges, policy, others, progress)


def compare(
    run: Path,
    seed: int,
    truth: Path | None = None,
    definitions: Mapping[str, Mapping[str, Any]] | None = None,
    policy: Policy | ConsensusRule = "unanimous",
    others: pl.DataFrame | None = None,
    progress: Progress = quiet,
) -> RunAgreement:
    """Return the agreement in a finished `judge` stage, and the figures of each consensus rule.

    `truth` is a file of assessors' grades (query_id, doc_id, grade); without it, the answers to the run's newest
    relevance sample are used, weighted by stratum. `definitions` are the judges that the pipeline defines. `policy` is
    the consensus rule of the pipeline, which is compared, too, if it is given by thresholds. `others` are rankings of
    further systems. After a cascade agreement is computed on the pairs that it let all judges grade. Published labels
    with experts' answers are the last of the rules. DataError if the run is not judged.
    """
    ratings, pool = read_table(run / "judge", "ratings"), read_table(run / "pool", "pool")
    sample = read_table(run / "judge", "samples")
    panel, scale = sorted(read_json(run / "judge" / "panel.json")), read_scale(run / "judge")
    queries = dict(read_table(run / FILTERED, "queries").select("query_id", "text").iter_rows())
    people, source = _people(run, truth, scale)
    decided = policies.decide(ratings, panel, scale, policy)
    judged = ratings.select(PAIR).unique()
    proved = published.prove(run)
    final = {f"published ({EXPERTS})": read_table(run / "resolve", "verdicts")} if proved else {}
    rows = policies.compare({**decided, **final}, sorted(queries), seed, people)
    if proved and truth is None:
        rows[-1] = _reviewed_estimates(rows[-1], proved)
    facts: Mapping[str, Sequence[str]] = read_json(run / "judge" / "stage.json")["report"]["facts"]
    return RunAgreement(
        panel=tuple(panel),
        only_heuristics=only_heuristics(panel, facts["heuristic"]),
        agreement=agreement_figures.on_parts(ratings, panel, sample, pool, seed, scale, progress),
        sampled=len(sample) or None,
        dependence=dependence(run, seed, definitions or {}, people if truth else None),
        truth=None
        if people is None
        else TruthLabels(source, len(people), len(people.join(judged, on=PAIR, how="semi"))),
        policies=tuple(rows),
        removed=tuple(policies.removed(decided, pool, queries, scale)),
        systems=policies.compare_orders(
            {
                **{name: policies.relevant_pairs(table) for name, table in {**decided, **final}.items()},
                GRADED: gains(decided["unanimous"], scale, Gain()),
            },
            pl.concat([read_table(run / "pool", "rankings"), *([] if others is None else [others])]),
            seed,
        ),
    )


def _reviewed_estimates(row: PolicyLabels, proof: Mapping[str, Any]) -> PolicyLabels:
    """Return `row` with precision and recall of the published labels, from `proof`, the estimates of the review.

    They are not computed on the reviewed pairs only: these have the assessors' own answers as labels, and no error.
    """
    estimates = {"precision": proof["confirmed"].get("relevant"), "recall": proof["recall"]}
    bounds = {name: estimate and (estimate["low"], estimate["high"]) for name, estimate in estimates.items()}
    values = {name: estimate and estimate["value"] for name, estimate in estimates.items()}
    return replace(row, **values, intervals={**row.intervals, **bounds})


def _people(run: Path, truth: Path | None, scale: Scale) -> tuple[pl.DataFrame | None, str]:
    """Return the assessors' relevance labels (columns of `policies.TRUTH`) and their source; None without labels."""
    if truth is not None:
        return _read_grades(truth, scale), str(truth)
    designs = sorted((run / "reviews").glob("*/design.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for sample in (Sample.load(path.parent) for path in designs):
        fits = (
            sample.design.form == "relevance" and sample.scale == scale and not sample.of_some and not sample.of_pilot
        )
        answers = _weighted_answers(Desk(sample)) if fits else None
        if answers is not None and len(answers):
            return answers, f"sample {sample.design.name}"
    return None, ""


def _weighted_answers(sample_answers: Desk) -> pl.DataFrame:
    """Return the final answers to a sample, each weighted by the number of pairs per answer in its stratum."""
    answers = [row for row in checked(sample_answers) if row.settled]
    answered = Counter(row.stratum for row in answers)
    sizes = {stratum.name: stratum.size for stratum in sample_answers.sample.design.strata}
    rows = [(*row.ids, row.relevant, sizes[row.stratum] / answered[row.stratum]) for row in answers]
    return pl.DataFrame(rows, schema=policies.TRUTH, orient="row")


def _read_grades(path: Path, scale: Scale) -> pl.DataFrame:
    """Return the relevance labels in a file of grades, one row per pair, weight 1; DataError names the line."""
    seen: dict[tuple[str, str], bool] = {}
    for line, (query_id, doc_id, grade) in checked_rows(path, [*PAIR, "grade"]):
        if grade not in scale.labels:
            labels = ", ".join(scale.labels)
            raise TableError.at(f"{path}:{line}, column grade", f"{grade!r}", f"one of {labels}", "correct it")
        if (query_id, doc_id) in seen:
            raise TableError.at(f"{path}:{line}", "a pair for the second time", "a row per pair", "leave one out")
        seen[query_id, doc_id] = grade in scale.relevant
    rows = [(*pair, relevant, 1.0) for pair, relevant in seen.items()]
    return pl.DataFrame(rows, schema=policies.TRUTH, orient="row")
