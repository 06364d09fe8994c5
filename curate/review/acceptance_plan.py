"""Design of the review that proves a threshold on the sum of a pair's grades: equally many pairs of every sum.

A sum with too few pairs is drawn completely, and the other sums get more. The chance to find a threshold is simulated
at anticipated error rates: the guesses of `panel/sampling_design.yaml`, updated by answers to earlier samples.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.core.figures import Record, figure
from curate.core.records import STOPPED
from curate.panel import sampling_design, voting
from curate.panel.voting import PAIR
from curate.review import planning
from curate.review.agreement import checked
from curate.review.desk import graded_desks, relevance_desks
from curate.review.drawing import SampleOptions, frozen
from curate.review.sample import Sample, Stratum
from curate.stats import acceptance
from curate.stats.acceptance import FOUND, AcceptanceOdds
from curate.system.files import read_scale, read_table, write_table

OF = "accept"
"""Value of `of` of such a sample."""


class SumPlan(Record, schema_name="sum"):
    """One sum of grades in a plan."""

    sum: int = figure("sum of the grades' gains")
    size: int = figure("pairs with this sum")
    drawn: int = figure("pairs that are drawn")
    wrong: float = figure("anticipated share that people call wrong")


class AcceptancePlan(Record, schema_name="threshold"):
    """Plan of a review for a threshold, with the outcomes to expect if the anticipated shares are right."""

    strata: Sequence[SumPlan] = figure("a row per sum of grades, the highest first")
    wrong: float = figure("share that is to be promised")
    confidence: float = figure("confidence level of the promise")
    odds: AcceptanceOdds = figure("outcome probabilities of such reviews")
    needed: int | None = figure("smallest size with which half of the reviews find a threshold; null if there is none")

    def facts(self) -> dict[str, Json]:
        """Return the guarantee, the anticipated shares by sum and the odds, as stored in the sample's design."""
        rates: dict[str, Json] = {str(entry.sum): entry.wrong for entry in self.strata}
        return {"wrong": self.wrong, "confidence": self.confidence, "rates": rates, **self.odds.to_json()}


def stratum(total: int) -> str:
    """Return the name of a sum's stratum."""
    return f"sum {total}"


def frame_of(judge: Path, consensus: Path) -> pl.DataFrame:
    """Return query_id, doc_id and sum of all pairs for which a threshold can be proved.

    These are the pairs whose mean grade has at least the gain `voting.MEAN`. `judge` and `consensus` are the folders of
    these stages.
    ConfigError on a scale without a relevance threshold, DataError if a cascade hides sums or there is no such pair.
    """
    scale, run = read_scale(judge), judge.parent
    if not scale.relevant:
        raise ConfigError(
            f"{run}: the judges' grades are nominal, and have no sum; judge with a rubric that has relevant_from"
        )
    verdicts, ratings = read_table(consensus, "verdicts"), read_table(judge, "ratings")
    if hidden := voting.open_sums(verdicts, ratings.filter(pl.col("status") == STOPPED), scale):
        raise DataError(
            f"{run}: a cascade spared judges on {hidden:,} pairs whose sum of grades may lie in the frame, so a "
            "threshold on the sum can neither be proved nor applied; judge in full first: "
            "`curate judge --set judge.cascade=null`"
        )
    pairs = voting.frame(verdicts, scale)
    if pairs.is_empty():
        raise DataError(
            f"{run}: no pair has a mean grade of gain {voting.MEAN} or more, so there is no threshold to prove"
        )
    return pairs


def plan(run: Path, size: int, wrong: float, confidence: float, seed: int = 0) -> AcceptancePlan:
    """Return the plan of a review of `size` pairs; nothing is written. ConfigError if the size is too small."""
    framed = frame_of(run / "judge", run / "consensus")
    sizes = dict(framed.group_by("sum").len().sort("sum", descending=True).iter_rows())
    rates = anticipated(run, framed)

    def tried(pairs: int) -> tuple[list[int], AcceptanceOdds]:
        drawn = allocate(sizes, pairs)
        counts = [drawn[total] for total in sizes]
        return counts, acceptance.odds(
            [*sizes.values()], [rates[total] for total in sizes], counts, wrong, confidence, seed=seed
        )

    drawn, odds = tried(size)
    needed: int | None = size
    if not odds.enough:
        most = sum(sizes.values())

        def enough(pairs: int) -> bool:
            return tried(pairs)[1].enough

        needed = sampling_design.smallest(size + 1, most, enough) if enough(most) else None
    strata = [
        SumPlan(total, size_of_sum, drawn_of_sum, round(rates[total], 4))
        for (total, size_of_sum), drawn_of_sum in zip(sizes.items(), drawn, strict=True)
    ]
    return AcceptancePlan(strata, wrong, confidence, odds, needed)


def allocate(sizes: Mapping[int, int], size: int) -> dict[int, int]:
    """Return sum -> number of pairs to draw: equally many; if a sum has too few, the others get more."""
    by_stratum = {stratum(total): count for total, count in sizes.items()}
    drawn = sampling_design.apportion(by_stratum, dict.fromkeys(by_stratum, 1.0), size)
    return {total: drawn[stratum(total)] for total in sizes}


def anticipated(run: Path, framed: pl.DataFrame) -> dict[int, float]:
    """Return sum -> anticipated share of its pairs that assessors judge not relevant."""
    verdicts, pool = read_table(run / "consensus", "verdicts"), read_table(run / "pool", "pool")
    stratified = sampling_design.strata(verdicts, pool, read_scale(run / "judge"))
    guesses = planning.guesses(sampling_design.counts(stratified), relevance_desks(run))
    decided = {
        name: guess if sampling_design.verdict_of(name) == "relevant" else 1 - guess
        for name, (guess, _) in guesses.items()
    }
    share = pl.col("stratum").replace_strict(decided, return_dtype=pl.Float64)
    means = framed.join(stratified.with_columns(share=share), on=PAIR).group_by("sum").agg(pl.col("share").mean())
    read = [
        row for review in graded_desks(run) if review.sample.design.facts.get("of") == OF for row in checked(review)
    ]
    rates: dict[int, float] = {}
    for total, guess in means.iter_rows():
        wrong = [not row.relevant for row in read if row.settled and row.stratum == stratum(total)]
        rates[total] = sampling_design.learned(guess, len(wrong), sum(wrong))
    return rates


def refuse_hopeless(planned: AcceptancePlan, size: int) -> None:
    """Raise ConfigError if fewer than half of such reviews would find a threshold; it states the size needed."""
    if planned.odds.enough:
        return
    remedy = (
        f"give --size {planned.needed}"
        if planned.needed
        else "no size gives that: raise consensus.accept.wrong, or let better judges grade"
    )
    raise ConfigError(
        f"--target accept --size {size}: {planned.odds.found:.0%} of such reviews are expected to find a threshold "
        f"that keeps the wrong share at {planned.wrong:g} or below, and a threshold is announced only from {FOUND:.0%} "
        f"on, for what is seldom found is too often wrong; {remedy}"
    )


def draw(run: Path, order: SampleOptions, wrong: float, confidence: float) -> Sample:
    """Draw the review and freeze it with the sums of the complete frame; its threshold holds only for that frame."""
    folder = run / "reviews" / order.name
    Sample.refuse(folder)
    assert order.size is not None
    planned = plan(run, order.size, wrong, confidence, order.seed)
    refuse_hopeless(planned, order.size)
    framed = frame_of(run / "judge", run / "consensus")
    stratified = framed.select(*PAIR, stratum=pl.lit("sum ") + pl.col("sum").cast(pl.String))
    drawn = sampling_design.draw(stratified, {stratum(entry.sum): entry.drawn for entry in planned.strata}, order.seed)
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder, "frame", framed, voting.FRAME)  # before the design, whose presence marks a sample as complete
    strata = [Stratum(stratum(entry.sum), entry.size, entry.drawn) for entry in planned.strata]
    return frozen(run, order, drawn, strata, {"of": OF, "accept": planned.facts()})
