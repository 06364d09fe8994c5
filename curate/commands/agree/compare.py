"""Agreement in a finished run, and consensus policies compared, from its tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import polars as pl

from curate.commands.agree import policies
from curate.commands.agree import policies as system_orders
from curate.commands.agree.ratings_file import checked_rows
from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.protocols import Progress, quiet
from curate.core.scale import Scale
from curate.panel import agreement_figures
from curate.panel.rules import ConsensusRule
from curate.panel.voting import EXPERTS, PAIR, Policy
from curate.pipeline.configs import ConsensusConfig
from curate.review import Desk, Sample, published
from curate.review.agreement import checked, dependence
from curate.runs.run_files import rankings
from curate.runs.runner import Run
from curate.system.files import read_json, read_scale, read_table
from curate.tables.exporters.labels import Gain, gains
from curate.view.run_figures import only_heuristics

GRADED = "graded, lower median"
"""Labels that are the gain of the lower median of the judges' grades, contested pairs among them."""


def compared(
    work: Run, seed: int | None, truth: Path | None, run_files: Sequence[Path] = (), progress: Progress = quiet
) -> dict[str, Json]:
    """Return what `compare` does of a run under its own settings; `run_files` are rankings of further systems."""
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
) -> dict[str, Json]:
    """Return the agreement in a finished `judge` stage and what each policy makes of it, as plain values.

    `truth` is a file of assessors' grades (query_id, doc_id, grade); without it the answers to the run's newest sample
    of relevance count, each for its share of its stratum. `sampled` is how many pairs agreement is measured on after a
    cascade; None without one. Labels that experts' answers made are a policy more, the last. `definitions` are the
    pipeline's own judges; `policy` is its own, which is compared with the named ones if it is a rule; `others` are
    rankings of further systems. DataError if the run is not judged.
    """
    ratings, pool = read_table(run / "judge", "ratings"), read_table(run / "pool", "pool")
    sample = read_table(run / "judge", "samples")
    panel, scale = sorted(read_json(run / "judge" / "panel.json")), read_scale(run / "judge")
    queries = dict(read_table(run / "diversify", "queries").select("query_id", "text").iter_rows())
    people, source = _people(run, truth, scale)
    decided = policies.decide(ratings, panel, scale, policy)
    judged = ratings.select(PAIR).unique()
    proved = published.prove(run)
    final = {f"published ({EXPERTS})": read_table(run / "resolve", "verdicts")} if proved else {}
    rows = policies.compare({**decided, **final}, sorted(queries), seed, people)
    if proved and truth is None:
        rows[-1] |= _proved(rows[-1], proved)
    return {
        "panel": panel,
        "only_heuristics": only_heuristics(panel, _heuristics(run)),
        "agreement": agreement_figures.on_parts(ratings, panel, sample, pool, seed, scale, progress),
        "sampled": len(sample) or None,
        "dependence": dependence(run, seed, definitions or {}, people if truth else None),
        "truth": None
        if people is None
        else {"source": source, "pairs": len(people), "judged": len(people.join(judged, on=PAIR, how="semi"))},
        "policies": rows,
        "removed": policies.removed(decided, pool, queries, scale),
        "systems": system_orders.compare_orders(
            {
                **{name: system_orders.relevant_pairs(table) for name, table in {**decided, **final}.items()},
                GRADED: gains(decided["unanimous"], scale, Gain()),
            },
            pl.concat([read_table(run / "pool", "rankings"), *([] if others is None else [others])]),
            seed,
        ),
    }


def _proved(row: Mapping[str, Json], proof: Mapping[str, Any]) -> dict[str, Json]:
    """Return precision and recall of published labels with their intervals, for a row of policies.

    Of pairs that people read the label is their answer: to weigh those alone, as for a policy, would find no error.
    """
    found = {"precision": proof["confirmed"].get("relevant"), "recall": proof["recall"]}
    bounds = {name: each and [each["low"], each["high"]] for name, each in found.items()}
    return {
        **{name: each and each["value"] for name, each in found.items()},
        "intervals": {**cast("Mapping[str, Json]", row["intervals"]), **bounds},
    }


def _heuristics(run: Path) -> Sequence[str]:
    facts: Mapping[str, Sequence[str]] = read_json(run / "judge" / "stage.json")["report"]["facts"]
    return facts["heuristic"]


def _people(run: Path, truth: Path | None, scale: Scale) -> tuple[pl.DataFrame | None, str | None]:
    """Return what people found of some pairs, and where that stands."""
    if truth is not None:
        return _graded(truth, scale), str(truth)
    designs = sorted((run / "reviews").glob("*/design.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for sample in (Sample.load(path.parent) for path in designs):
        fits = (
            sample.design.form == "relevance" and sample.scale == scale and not sample.of_some and not sample.of_pilot
        )
        found = _sampled(Desk(sample)) if fits else None
        if found is not None and len(found):
            return found, f"sample {sample.design.name}"
    return None, None


def _sampled(desk: Desk) -> pl.DataFrame:
    """Return the answers that count; each stands for as many pairs of its stratum as there are to one that was read."""
    read = [row for row in checked(desk) if row.settled]
    answered = Counter(row.stratum for row in read)
    sizes = {stratum.name: stratum.size for stratum in desk.sample.design.strata}
    rows = [(*row.ids, row.relevant, sizes[row.stratum] / answered[row.stratum]) for row in read]
    return pl.DataFrame(rows, schema=policies.TRUTH, orient="row")


def _graded(path: Path, scale: Scale) -> pl.DataFrame:
    """Return the pairs of a file of grades, one each; DataError names the line that is wrong."""
    seen: dict[tuple[str, str], bool] = {}
    for line, (query_id, doc_id, grade) in checked_rows(path, [*PAIR, "grade"]):
        if grade not in scale.labels:
            known = ", ".join(scale.labels)
            raise DataError(f"{path}:{line}: found the grade {grade!r}, expected one of {known}; correct it")
        if (query_id, doc_id) in seen:
            raise DataError(f"{path}:{line}: found a pair for the second time, expected a row per pair; leave one out")
        seen[query_id, doc_id] = grade in scale.relevant
    rows = [(*pair, relevant, 1.0) for pair, relevant in seen.items()]
    return pl.DataFrame(rows, schema=policies.TRUTH, orient="row")
