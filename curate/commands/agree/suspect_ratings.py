"""Ratings of a file that look like slips: values that a rater hardly uses, and numbers beyond a gap in the scale.

A model that was to answer 0 to 3 and once said 10 adds a category to the scale, and moves every ordinal figure.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

RARE = 0.001
"""Share of a rater's ratings below which a value is named."""

Counts = Mapping[str, Counter[str]]
"""Rater -> rating -> how often."""


def warnings(counts: Counts, order: Sequence[str], places: Mapping[str, str]) -> list[str]:
    """Return a sentence per rating that a rater gives rarely, and one for numbers beyond a gap; none if all is well.

    `order` are all ratings in their order, `places` rating -> where it stands first.
    """
    rare = [
        (rater, rating, number, said.total())
        for rater, said in counts.items()
        for rating, number in said.items()
        if number < RARE * said.total()
    ]
    beyond = _beyond_gaps(sum(counts.values(), Counter[str]()), order)
    left = [rating for rating in order if rating not in {*beyond, *(rating for _, rating, _, _ in rare)}]
    remedy = f"--order {','.join(left)} refuses what is not on the scale, --order {','.join(order)} says that all is"
    found = [
        f"WARNING: {rater} rates {number:,} of {whole:,} items {rating}, first at {places[rating]}; {remedy}"
        for rater, rating, number, whole in rare
    ]
    if beyond:
        named = ", ".join(f"{rating} (first at {places[rating]})" for rating in beyond)
        found.append(f"WARNING: the ratings {', '.join(order)} leave a gap, with {named} beyond it; {remedy}")
    return found


def _beyond_gaps(counts: Counter[str], order: Sequence[str]) -> list[str]:
    """Return the whole numbers that stand apart from the run of consecutive ones with the most ratings."""
    numbers = {rating: int(rating) for rating in order if rating.removeprefix("-").isdecimal()}
    if len(numbers) < len(order) or not order:
        return []
    runs = list(_runs(sorted(order, key=numbers.__getitem__), numbers))
    main = max(runs, key=lambda run: sum(counts[rating] for rating in run))
    return [rating for run in runs if run is not main for rating in run]


def _runs(order: Sequence[str], numbers: Mapping[str, int]) -> Iterator[list[str]]:
    run = [order[0]]
    for one, other in pairwise(order):
        if numbers[other] > numbers[one] + 1:
            yield run
            run = []
        run.append(other)
    yield run
