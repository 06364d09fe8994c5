"""Collection of a panel's ratings: from heuristics, and from language models."""

import polars as pl

from curate.ask import consent, engine, rating
from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import HeuristicState

Wanted = dict[str, pl.DataFrame]
"""Judge -> the pairs that a cascade asked it for; empty without a cascade."""


def collect(run: PanelRun) -> Wanted:
    """Collect all missing ratings; return judge -> pairs that a cascade asked it for, {} without a cascade."""
    pairs_by_judge = Wanted()
    if run.config.cascade is None:
        rate(run)
        return pairs_by_judge
    for state, pairs in run.turns():
        pairs_by_judge[state.name] = pairs
        rate(run.at(state))
    return pairs_by_judge


def rate(run: PanelRun) -> None:
    """Collect the missing ratings of the judges, those of the language models concurrently."""
    table, context = run.table, run.context
    consent.need_masked(run.seats, context)
    for state in run.seats:
        if isinstance(state, HeuristicState):
            rating.rate(state.judge, state.work, table.ledger, state.key, table.rubric.scale, context.progress)
    engine.settle(run.orders(), table.ledger, context)
