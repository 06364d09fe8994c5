"""Kappa and alpha of people, judges and panel on the rows of a sample."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import cast

from curate.core.config import Json
from curate.core.scale import Scale
from curate.panel import sampling_design
from curate.panel.agreement_figures import kind_of
from curate.panel.sampling_design import DECIDED
from curate.review.answers import ADJUDICATED
from curate.review.checked_rows import CheckedRow, shown
from curate.review.desk import Desk
from curate.stats import agreement, bootstrap, sample_estimates
from curate.stats.agreement import Scheme
from curate.stats.tally import tally

_Pairs = Sequence[tuple[str, str | None, str | None]]
"""Stratum of a row, and the grades that two have given it."""


def with_people(desk: Desk, read: Sequence[CheckedRow], sizes: Mapping[str, int]) -> dict[str, Json]:
    """Return Cohen's kappa of people with the panel and with every judge in the pool, and of people with each other.

    `grades` has quadratic weights by the gains of the scale, none on a nominal one; `cut` is None there, and so is the
    panel's. Those of two people are of the rows which both read, not weighted: small strata seldom hold one of them.
    Judges come in the order in which they agree with people at the cut, the best first.
    """
    scale = desk.sample.scale
    decided = [row for row in read if row.verdict in DECIDED and row.relevant is not None]
    panel = [(row.stratum, int(row.verdict != "relevant"), int(not row.relevant)) for row in decided]
    ruled = {name: size for name, size in sizes.items() if name in sampling_design.decided(sizes)}
    judges: dict[str, dict[str, Json]] = {}
    for judge in sorted({name for row in read for name in row.votes}):
        judges[judge] = _both([(row.stratum, row.votes.get(judge), row.settled) for row in read], sizes, scale)
    ranked = dict(sorted(judges.items(), key=lambda each: _value(each[1]["cut"]), reverse=True))
    said = between(desk, read, sum(sizes.values()))
    return {"panel": _kappa(panel, ruled, 2), "judges": cast("Json", ranked), "people": said}


def between(desk: Desk, read: Sequence[CheckedRow], size: int) -> dict[str, Json]:
    """Return two people -> their Cohen's kappas on the rows that both read, of `size` in all; not weighted."""
    found: dict[str, Json] = {}
    for one, other in combinations(desk.assessors, 2):
        both = [("all", row.said[one], row.said[other]) for row in read if one in row.said and other in row.said]
        if both:
            found[f"{one}, {other}"] = _both(both, {"all": size}, desk.sample.scale)
    return found


def alpha(desk: Desk, read: Sequence[CheckedRow]) -> Json:
    """Return Krippendorff's alpha of all people's grades, on the rows that two or more read; not weighted.

    Ordinal, or nominal on a nominal scale. Its 95 % interval resamples queries. None where fewer than two people read
    one row, or all gave one grade.
    """
    twice = [row for row in read if len(row.said.keys() - {ADJUDICATED}) > 1]
    if not twice:
        return None
    scale = desk.sample.scale
    codes = [[_place(row.said.get(person), scale) for person in desk.assessors] for row in twice]
    ratings = tally(codes, len(scale.labels))
    queries, measure = [row.ids[0] for row in twice], partial(agreement.alpha, level=scale.order)
    value = agreement.scalar(measure(ratings.sums()))
    if value is None:
        return None
    found = bootstrap.interval(ratings.by_cluster(queries), measure, seed=desk.sample.design.seed)
    low, high = (round(found.low, 4), round(found.high, 4)) if found else (None, None)
    return {"value": round(value, 4), "low": low, "high": high, "answered": len(twice), "queries": len(set(queries))}


def _both(pairs: _Pairs, sizes: Mapping[str, int], scale: Scale) -> dict[str, Json]:
    """Return the kappa of two on the grades and, where there is one, at the cut."""
    cut = [(stratum, _side(one, scale), _side(other, scale)) for stratum, one, other in pairs] if scale.relevant else []
    return {"grades": of_grades(pairs, sizes, scale), "cut": _kappa(cut, sizes, 2)}


def of_grades(pairs: _Pairs, sizes: Mapping[str, int], scale: Scale) -> Json:
    """Return Cohen's kappa of two on the labels of a scale, from their grades of rows of a stratum each."""
    grades = [(stratum, _place(one, scale), _place(other, scale)) for stratum, one, other in pairs]
    return _kappa(grades, sizes, len(scale.labels), scale)


def _kappa(
    rows: Sequence[tuple[str, int, int]], sizes: Mapping[str, int], categories: int, scale: Scale | None = None
) -> Json:
    if not rows:
        return None
    strata, first, second = zip(*rows, strict=True)
    steps = kind_of(scale).steps if scale else None
    scheme: Scheme = "quadratic" if steps else "nominal"
    found = sample_estimates.kappa(strata, first, second, sizes, categories, scheme=scheme, steps=steps)
    return shown(found)


def _value(figure: Json) -> float:
    """Return the value of a figure to sort by, less than every kappa for one that is not defined."""
    return cast("Mapping[str, float]", figure)["value"] if figure else -2.0


def _place(grade: str | None, scale: Scale) -> int:
    """Return where a grade stands on the scale, from 0; -1 for none, which leaves a row in its stratum."""
    return -1 if grade is None else scale.place(grade)


def _side(grade: str | None, scale: Scale) -> int:
    """Return 0 for a grade that makes a passage relevant, else 1; -1 for none."""
    return -1 if grade is None else int(grade not in scale.relevant)
