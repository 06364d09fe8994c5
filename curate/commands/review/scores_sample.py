"""Draw a sample of the top tens of evaluated models, for `curate review export --for-scores`."""

from collections.abc import Mapping
from pathlib import Path

from curate.core.config import Json
from curate.core.errors import DataError
from curate.panel import sampling_design
from curate.panel.voting import PAIR
from curate.review.drawing import SampleOptions, frozen
from curate.review.planning import SCORES, Planned, SamplePlan, of_scores
from curate.review.sample import Sample, Stratum
from curate.review.top_pairs import GUESSES, TopPairs, state, strata
from curate.stats.corrected_scores import LEVEL
from curate.system.files import read_scale, read_table, there, write_table


def of_results(run: Path, results: Path) -> TopPairs:
    """Return the pairs in the top tens of an evaluation of a run; DataError unless both are of the same benchmark."""
    folder = next((candidate for candidate in (results, results / "evaluation") if there(candidate, "tops")), None)
    if folder is None:
        raise DataError(
            f"--for-scores {results}: found no tops.parquet, expected the folder of an evaluation of retrieval; run "
            "`curate evaluate` first, or once more if it was an older version's"
        )
    tops = read_table(folder, "tops")
    strange = sorted(set(tops["query_id"]) - set(read_table(run / "pool", "pool")["query_id"]))
    if strange:
        raise DataError(
            f"--for-scores {results}: found {len(strange)} queries that {run} did not judge, the first is "
            f"{strange[0]!r}; expected this run's export, under its own ids (export.ids: keep); name its run by --run"
        )
    verdicts = read_table(run / "consensus", "verdicts")
    return TopPairs(strata(tops.select(PAIR).unique().sort(PAIR), verdicts, read_scale(run / "judge")), tops)


def planned(top: TopPairs, size: int | None, margins: Mapping[str, float]) -> SamplePlan:
    """Return the design of a sample from a frame: strata, expected half widths, and the number of useful answers.

    `size` None: the smallest size for `margins` (figure -> half width).
    """
    count = min(size or top.needed(margins), top.pairs.height)
    drawn, widths_now, widths_complete = top.allocate(count), top.widest(count), top.widest(top.pairs.height)
    rows = [Planned(name, n, drawn[name], drawn[name] / n, GUESSES[top.spreads[name]]) for name, n in top.sizes.items()]
    widths: dict[str, float | None] = {}
    for figure, name in SCORES.items():
        here, end = widths_now[figure], widths_complete[figure]
        widths[name] = here[0] if here else None
        widths[f"{name}, for new queries"] = here[1] if here else None
        widths[f"{name}, for new queries, every pair read"] = end[1] if end else None
    notes = [
        f"{count:,} answers of {top.pairs.height:,} pairs; every pair read leaves no width for these queries",
        f"for new queries more than {top.enough:,} answers narrow nothing by 5 %: beyond that only more queries help",
    ]
    return SamplePlan(tuple(rows), LEVEL, {}, {}, widths, tuple(notes))


def plan(run: Path, order: SampleOptions) -> SamplePlan:
    """Return the design of a sample of an evaluation's top tens; nothing is written."""
    return planned(of_results(run, order.results or run), order.size, of_scores(order.margins))


def draw(run: Path, order: SampleOptions) -> Sample:
    """Draw the sample and freeze it with its frame in `reviews/NAME`; the same options give the same rows."""
    folder = run / "reviews" / order.name
    Sample.refuse(folder)
    top = of_results(run, order.results or run)
    design = planned(top, order.size, of_scores(order.margins))
    drawn = sampling_design.draw(top.pairs, {stratum.stratum: stratum.drawn for stratum in design.strata}, order.seed)
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder, "frame", top.pairs)
    drawn_strata = [Stratum(stratum.stratum, stratum.size, stratum.drawn) for stratum in design.strata]
    return frozen(run, order, drawn, drawn_strata, {"aims": {}, "of": order.of, **facts(top)})


def facts(top: TopPairs) -> dict[str, Json]:
    """Return the facts on the frame, stored in the sample's design: tasks, models, digest of the pairs."""
    return {
        "frame": {
            "what": "first ten documents of the models that were evaluated",
            "pairs": top.pairs.height,
            "tasks": sorted(top.tops["task"].unique()),
            "models": sorted(top.tops["model"].unique()),
            "digest": state(top.pairs),
        }
    }
