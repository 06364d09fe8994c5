"""Cost quote of judging, online, in batches and in a cascade; and the progress of judging."""

from dataclasses import replace
from pathlib import Path

import polars as pl

from curate.ask import billing, build, consent, gate, rating, seating
from curate.ask.billing import PlanRow
from curate.ask.panel_state import LlmState, PanelState
from curate.core.config import digest
from curate.ledger import Ledger, default_path
from curate.llm.budget import plan
from curate.llm.exchange_rates import rounded_up
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.stage import Context

MONEY = ("online", "batches", "cascade_least")


def quote(config: JudgeConfig, context: Context) -> list[PlanRow]:
    """Return one row per language model with missing ratings, in the order of a cascade; control pairs come first.

    `prefix_tokens` can come out of a provider's cache. `cascade_least` is the minimum cost in a cascade, whose maximum
    is `online`. The last of several rows is their total.
    """
    seating.check_language(config, context)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        panel = seating.seated(config, context, ledger).in_order()
        sample = len(panel.sample()) / max(len(panel.table.pool.pairs), 1)
        rows = [row(panel.table, state) for state in panel.asked()]
        consent.warn_of_windows(panel)
        trial = gate.trial(panel)
        control_rows = [row(trial.panel.table, state) for state in trial.asked().asked()] if trial else []
    asked_all = {panel.seats[0].name, *(row.judge for row in control_rows)}  # the first judge, and all for controls
    quoted = [
        replace(
            row,
            cascade_least=None
            if row.online is None
            else round(row.online * (1 if row.judge in asked_all else sample), 4),
        )
        for row in (*control_rows, *rows)
    ]
    return billing.in_all(quoted, context, MONEY)


def row(table: PanelState, state: LlmState) -> PlanRow:
    """Return the cost estimate of a judge's missing ratings."""
    settings = state.settings
    estimate = plan((task.request for task in table.tasks(state, state.work)), settings.price, table.token_rate(state))
    tokens = estimate.prompt_tokens + estimate.output_tokens
    price = settings.price
    batches = estimate.cost * price.batch if estimate.cost is not None and price and settings.batch else None
    return PlanRow(
        judge=state.label,
        calls=estimate.calls,
        prompt_tokens=estimate.prompt_tokens,
        prefix_tokens=rating.prefix_tokens(state.judge) * estimate.calls,
        answer_tokens=estimate.output_tokens,
        online=None if estimate.cost is None else rounded_up(estimate.cost, 4),
        batches=None if batches is None else rounded_up(batches, 4),
        currency=estimate.currency if price else None,
        minutes=billing.minutes(table.ledger, state.key.judge_digest, settings, estimate.calls, tokens),
    )


def progress(config: JudgeConfig, context: Context) -> tuple[float | None, dict[str, float] | None]:
    """Return the share of the language models' ratings that the run's calls gave, and the amounts paid by currency.

    None before the first call. Earlier ratings in the ledger are not counted, nor repeated texts.
    """
    from curate.ledger import stats

    rubric = seating.load_rubric(config, context)
    models = [build.judge(context, name, rubric) for name in config.models]
    judges = {judge.name: (digest(judge.identity), settings.price) for judge, settings in models if settings}
    path = context.ledger or default_path(context.home)
    if not judges or (isinstance(path, Path) and not path.exists()):
        return None, None
    with Ledger(path) as ledger:
        bills = billing.bills(ledger, context, judges)
        settled = stats.settled(ledger, context.run_id, [name for name, _ in judges.values()])
    pairs = pl.scan_parquet(context.folder("pool") / "pool.parquet").select(pl.len()).collect().item()
    expected = pairs * len(judges)
    return (settled / expected if bills and expected else None), billing.by_currency(bills) or None
