"""The drawn rows of a sample beside what people and panel said of them; planted controls are none of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curate.core.config import Json
from curate.core.scale import Scale
from curate.review.desk import Desk
from curate.stats.sample_estimates import Estimate, StratumCounts


@dataclass(frozen=True)
class CheckedRow:
    """A drawn row: what the panel said (of an item, what is published), and what every person did."""

    row_id: str
    ids: Sequence[str]
    stratum: str
    verdict: str
    votes: Mapping[str, str | None]
    said: Mapping[str, str]
    """Person -> grade."""
    settled: str | None
    """The grade that counts; None if nobody has given one."""
    scale: Scale
    of_items: bool = False
    """Whether it is an item of a kind: its `verdict` is the published label."""

    @property
    def relevant(self) -> bool | None:
        """Say whether the grade that counts makes the passage relevant; None on a scale without a cut."""
        return self.settled in self.scale.relevant if self.scale.relevant else None

    @property
    def irrelevant(self) -> bool | None:
        """Say whether the grade that counts makes the passage not relevant; None on a scale without a cut."""
        return None if self.relevant is None else not self.relevant

    @property
    def confirmed(self) -> bool | None:
        """Say whether people and a panel that decided are on the same side; None on a scale without a cut.

        Of an item: whether people give it the published label.
        """
        if self.of_items:
            return self.settled == self.verdict
        return None if self.relevant is None else self.relevant == (self.verdict == "relevant")


def checked(desk: Desk) -> list[CheckedRow]:
    """Return every drawn row of a sample, in the order of the sample."""
    return [
        CheckedRow(
            row["row_id"],
            row["ids"],
            row["stratum"],
            row["verdict"],
            {vote["judge"]: vote["grade"] for vote in row["votes"] or ()},
            given,
            settled,
            desk.sample.scale,
            desk.sample.of_items,
        )
        for row, given, settled in desk.answered()
        if row["expected"] is None
    ]


def part(name: str, size: int, read: Sequence[CheckedRow], hit: str) -> StratumCounts:
    """Return a stratum as far as it was read; hits are the rows of which the property `hit` is true."""
    mine = [row for row in read if row.stratum == name]
    return StratumCounts(size, len(mine), sum(bool(getattr(row, hit)) for row in mine) if hit else 0)


def shown(figure: Estimate | None) -> dict[str, Json] | None:
    """Return a figure's value, bounds and number of answers for JSON, rounded; None where it is not defined."""
    if figure is None:
        return None
    return {**figure.bounds(4), "answered": figure.answered}
