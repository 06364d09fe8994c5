"""Printed lines of `curate agree`, and the levels of agreement: on ratings, and on binary labels (`cut`)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from curate.commands.agree.compare import RunAgreement
from curate.commands.agree.ratings_file import FileAgreement
from curate.core.figures import decimal
from curate.core.scale import Scale
from curate.panel import judge_dependence
from curate.panel.agreement_figures import AgreementFigures
from curate.panel.judge_dependence import Dependence
from curate.view.record_words import RecordWords
from curate.view.run_figures import between, ranged, stated
from curate.view.text import as_table, too_few
from curate.view.words import strings

UNDEFINED = "not defined"
MANY = 190
"""Maximum number of pairs of raters printed, that of 20 raters. With more, only near-identical raters are printed, and
`--json` has all."""


class MeasuredLevels(NamedTuple):
    """Agreement figures at several levels: on all ratings, or on binary labels."""

    figures: dict[str, AgreementFigures]
    labels: dict[str, Sequence[str]]
    """Level -> names of its categories, in the order of the scale."""


def of_ratings(figures: FileAgreement, positive: Sequence[str]) -> MeasuredLevels:
    """Return the levels of a file: `all ratings`, and `cut` if `positive` is given.

    `positive` are the ratings that count as positive; `cut` compares them with all others.
    """
    levels = {"all ratings": figures.ratings, **({"cut": figures.cut} if figures.cut else {})}
    return MeasuredLevels(levels, {"all ratings": figures.labels, "cut": [" ".join(positive), "others"]})


def of_comparison(figures: RunAgreement, scale: Scale) -> MeasuredLevels:
    """Return the levels of a run: `grades` and `cut` (binary), for all pairs.

    If a pool is deeper than 50, also both for the first 50 positions.
    """
    agreed, top = figures.agreement, figures.agreement.top_50
    levels = {"grades": agreed.all_grades, "cut": agreed.cut}
    levels |= {"grades, top 50": top.all_grades, "cut, top 50": top.cut} if top else {}
    cut = [" ".join(scale.positives), " ".join(scale.labels[len(scale.positives) :])]
    return MeasuredLevels(
        {name: level for name, level in levels.items() if level}, {"grades": scale.labels, "cut": cut}
    )


def of_file(file: Path, positive: Sequence[str], figures: FileAgreement) -> Iterator[str]:
    """Yield the printed lines on a file of ratings."""
    say = RecordWords("agree/agree", empty=UNDEFINED)
    who = say("ratings_by", raters=", ".join(figures.raters)) if figures.raters else say("counts_by")
    columns = ", ".join(figures.item) or say("row")
    yield say("file", figures, file=file, columns=columns, who=who, labels=", ".join(figures.labels))
    yield from figures.notes
    yield from _agreement(*of_ratings(figures, positive), say)
    if figures.dependence:
        yield from _dependence(figures.dependence, "raters", say)


def of_run(scale: Scale, figures: RunAgreement) -> Iterator[str]:
    """Yield the printed lines on a run; `scale` is that of its judges."""
    say = RecordWords("agree/agree", empty=UNDEFINED)
    yield say("panel", panel=", ".join(figures.panel))
    if figures.only_heuristics:
        yield say("heuristics")
    if figures.sampled is not None:
        yield say("sampled", figures)
    yield from _agreement(*of_comparison(figures, scale), say)
    yield from _dependence(figures.dependence, "judges", say)
    yield from _policies(figures, say)


def _agreement(
    levels: Mapping[str, AgreementFigures], labels: Mapping[str, Sequence[str]], say: RecordWords
) -> Iterator[str]:
    """Yield tables of measures, of ratings and of pairs of raters, with a column per level."""
    words, first = strings("en"), next(iter(levels.values()))
    titles = words["measures"] | words["further_measures"]
    measures = {level: figures.to_json() for level, figures in levels.items()}
    rows: list[dict[str, object]] = [
        {"measure": titles[name], **{level: stated(figures, name, words) for level, figures in measures.items()}}
        for name in first.intervals
    ]
    rows += [
        {"measure": say(name), **{level: f"{figures[name]:,}" for level, figures in measures.items()}}
        for name in ("items", "under_two", "unanimous", "clusters")
    ]
    estimators = {level: words["estimators"][figures.estimator] for level, figures in levels.items()}
    yield say("agreement", table=as_table([*rows, {"measure": words["estimator"], **estimators}]))
    ratings = [
        say.cells("rating", level=level, rating=label, prevalence=_figure(share), specific=_figure(same))
        for level, names in labels.items()
        if level in levels
        for label, share, same in zip(names, levels[level].prevalence, levels[level].specific, strict=True)
    ]
    yield from _table("ratings", ratings, say)
    pairs = [
        say.cells("pair", pair, names=" / ".join(pair.raters), level=level)
        | {scheme: ranged(vars(pair)[scheme], bounds) or UNDEFINED for scheme, bounds in pair.intervals.items()}
        for level, figures in levels.items()
        for pair in figures.pairs_of_raters or ()
    ]
    yield from _table("pairs", pairs, say)
    yield from (f"\n{line}" for line in too_few(first.clusters, "clusters"))


def _dependence(figures: Dependence, who: str, say: RecordWords) -> Iterator[str]:
    """Yield printed lines on dependent raters, with warnings and the effective number of raters."""
    words, pairs = strings("en")["dependence"], figures.together
    if len(pairs) > MANY:
        pairs = tuple(pair for pair in pairs if pair.near)
    yield from _table("together", [judge_dependence.row(pair) for pair in pairs], say, who=who)
    yield from judge_dependence.warnings(figures, words, who)
    yield judge_dependence.worth(figures, words, who)


def caveats(agreed: AgreementFigures, dependence: Dependence | None, who: str) -> list[str]:
    """Return warnings on agreement figures: too few clusters for intervals, dependent raters.

    `who` is the word for the raters.
    """
    warnings = judge_dependence.warnings(dependence, strings("en")["dependence"], who) if dependence else []
    return [*too_few(agreed.clusters, "clusters"), *warnings]


def _policies(figures: RunAgreement, say: RecordWords) -> Iterator[str]:
    """Yield tables of the figures of consensus rules, of the pairs that unanimity removes, and of system rankings."""
    cascade = ["not_positive"] if figures.policies[0].not_positive else []
    rows = [
        {heading: cell for key in ("policy", *cascade) for heading, cell in say.cells(key, row).items()}
        | {
            name.replace("_", " "): ranged(vars(row)[name], bounds) or UNDEFINED
            for name, bounds in row.intervals.items()
        }
        for row in figures.policies
    ]
    yield from _table("policies", rows, say)
    yield say("truth", figures.truth) if figures.truth else say("no_truth")
    if figures.policies[-1].policy.startswith("published"):
        yield say("published")
    if any(row.policy == "dawid-skene" for row in figures.policies):
        yield say("dawid_skene")
    yield from _table("removed", [say.cells("removed_pairs", row) for row in figures.removed], say)
    scores = [
        say.cells("system", policy=policy) | {name: _figure(mean) for name, mean in means.items()}
        for policy, means in figures.systems.ndcg_at_10.items()
    ]
    yield from _table("systems", scores, say)
    orders = [
        say.cells("order", order, policy=policy, tau=between(order.tau_b))
        for policy, order in figures.systems.against_unanimous.items()
    ]
    yield from _table("orders", orders, say)


def _table(key: str, rows: Sequence[Mapping[str, object]], say: RecordWords, **values: object) -> Iterator[str]:
    if rows:
        yield say(key, table=as_table(rows, digits=3), **values)


def _figure(figure: float | None) -> str:
    return UNDEFINED if figure is None else decimal(figure, 3)
