"""Self-preference of the judges of a run, from grades of the run and the ledger; nothing is sent.

The figures are also written to `checks/circular.json` of the run folder, from which report, dataset card and evaluation
read them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from curate.ask import seating
from curate.ask.panel_run import LEAST as SAMPLED
from curate.commands.check.circularity import SelfFavour, self_favour
from curate.core.errors import ConfigError
from curate.core.figures import Record, figure
from curate.ledger import Ledger, default_path
from curate.llm.providers.presets import families
from curate.panel import cascade, voting
from curate.panel.voting import PAIR
from curate.pipeline import facts
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.facts import heuristic
from curate.pipeline.stage import Context
from curate.runs.checks import CHECKS, grade_outside
from curate.runs.runner import Run
from curate.system.files import read_json
from curate.system.run_lock import enough_space, locked
from curate.view.record_words import RecordWords


class Circularity(Record):
    """What each judge of a run gains by judging itself, from its own grades as a ranking."""

    made_from: str = figure("identifies the grades and the rule, so that the figures are not shown beside other labels")
    policy: str = figure("rule that makes labels of grades")
    heuristic: bool = figure("whether heuristics alone judged")
    fourth: str | None = figure("judge that takes each judge's place; null where that one is left out")
    others: tuple[str, ...] = figure(
        "judges of neither panel, whose mean change is subtracted; if empty the panel's others"
    )
    pairs: int = figure("compared pairs")
    pool: int = figure("pairs of the pool")
    graded: Mapping[str, int] = figure("judge -> pairs of those that it graded")
    judges: tuple[SelfFavour, ...] = figure("a row per judge that is scored")
    not_scored: tuple[str, ...] = figure("judges that no query can be scored for")
    warnings: tuple[str, ...] = figure("caveats, one sentence each", default=())


def check(run: Run, fourth: str | None = None, others: Sequence[str] = ()) -> Circularity:
    """Return the self-preference of every judge of a run's panel, and write it to `checks/circular.json`.

    `fourth` replaces each judge of the panel in turn, which is left out without it. `others` are the judges of the
    control rankings, by default the others of the panel. After a cascade only the sampled pairs count, which every
    judge graded; with `fourth`, only pairs that it graded.
    """
    with locked(run.folder), enough_space(run.folder):
        context, config = run.beside("consensus"), run.pipeline.sections["judge"]
        assert isinstance(config, JudgeConfig)
        identities = read_json(context.folder("judge") / "panel.json")
        panel = sorted(identities)
        _refuse(panel, fourth, others)
        grade = partial(grade_outside, run.folder, run.pipeline.head.stages)
        ratings, pairs = _ratings(config, context, fourth, others, grade)
        rows = self_favour(ratings, panel, context.policy, context.scale, context.seed, fourth)
        family_by_judge = families(identities, context.definitions.get("judges", {}))
        graded = ratings.drop_nulls("grade").group_by("judge").len().sort("judge")
        figures = Circularity(
            made_from=facts.circularity_made_from(context.folder("judge"), context.policy),
            policy=voting.name_of(context.policy),
            heuristic=heuristic(context),
            fourth=fourth,
            others=tuple(others),
            pairs=ratings.select(PAIR).n_unique(),
            pool=pairs,
            graded=dict(graded.iter_rows()),
            judges=tuple(replace(row, family=family_by_judge[row.judge]) for row in rows),
            not_scored=tuple(name for name in panel if name not in {row.judge for row in rows}),
        )
        figures = replace(figures, warnings=tuple(_warnings(figures, grade())))
        CHECKS["circular"].write(run.folder, figures.to_json())
    return figures


def _refuse(panel: Sequence[str], fourth: str | None, others: Sequence[str]) -> None:
    """Raise ConfigError for a judge in two roles (panel, `fourth`, `others`), or one judge without a replacement."""
    in_two_roles = [name for name in _named(fourth, others) if name in panel or (name == fourth and name in others)]
    if in_two_roles:
        raise ConfigError(
            f"check circular: found {', '.join(in_two_roles)} in two parts, expected judges outside of the panel "
            f"({', '.join(panel)}), each in one; name others with --fourth and --other"
        )
    if len(panel) < 2 and not fourth:
        raise ConfigError(
            f"check circular: found a panel of one judge ({', '.join(panel)}), from which nobody can be left out; "
            "name a judge with grades for this pool that takes its place: --fourth NAME"
        )


def _named(fourth: str | None, others: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*([fourth] if fourth else []), *others]))


def _ratings(
    config: JudgeConfig, context: Context, fourth: str | None, others: Sequence[str], grade: Callable[[str], str]
) -> tuple[pl.DataFrame, int]:
    """Return the grades of the panel, `fourth` and `others` on the pairs that count, and the pool's number of pairs.

    `grade` returns the command that has a judge grade the pool, for the message on one without grades.
    """
    pool = context.read("pool", "pool").select(PAIR)
    panel_ratings = context.read("judge", "ratings").select(*PAIR, "judge", "grade", "status")
    ratings = pl.concat([panel_ratings, *_recorded(config, context, _named(fourth, others), grade)])
    if config.cascade is not None:
        ratings = ratings.join(cascade.sample(pool, config.cascade_sample, SAMPLED, context.seed), on=PAIR, how="semi")
    if fourth:
        graded = ratings.filter(pl.col("judge") == fourth).drop_nulls("grade")
        ratings = ratings.join(graded, on=PAIR, how="semi")
    return ratings, len(pool)


def _recorded(
    config: JudgeConfig, context: Context, names: Sequence[str], grade: Callable[[str], str]
) -> Iterator[pl.DataFrame]:
    """Yield the ratings of each judge, from the ledger or its file of recorded grades; ConfigError if it has none."""
    if not names:
        return
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        run = seating.seated(config.model_copy(update={"models": tuple(names)}), context, ledger)
        for judge in run.seats:
            rows = run.table.snapshot(judge).select(*PAIR, "judge", "grade", "status")
            if rows["grade"].null_count() == len(rows):
                raise ConfigError(
                    f"check circular: found no grade of {judge.name!r} for the pairs of this pool, expected some in "
                    f"the ledger or in a file of its own; let it judge them in a run of its own first "
                    f"(`{grade(judge.name)}`), or name another judge"
                )
            yield rows


def _warnings(figures: Circularity, grade: str) -> Iterator[str]:
    say = RecordWords("check/circular")
    yield from (say("warned", judge) for judge in figures.judges if judge.warned)
    yield from (say("not_scored", judge=judge) for judge in figures.not_scored)
    if figures.pairs < figures.pool:
        yield say("sampled", figures)
    if not figures.fourth:
        key = "range" if any(judge.effect.value is None for judge in figures.judges) else "not_replaced"
        yield say(key, grade=grade)
