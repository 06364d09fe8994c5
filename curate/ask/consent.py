"""Consent to spend: what asking models would cost, and whether that is allowed."""

from collections.abc import Callable, Mapping, Sequence

from curate.ask import billing, planned_pool, privacy_guard, rating
from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import HeuristicState, JudgeState, LlmState
from curate.core.errors import BudgetError, UserError
from curate.llm import client
from curate.llm.budget import CostEstimate, plan, together
from curate.llm.cost import batch_price, estimate
from curate.llm.providers.settings import ProviderConfig
from curate.pipeline.stage import Context
from curate.system import egress

TOKENS_BESIDE = 100
"""Most tokens that a prompt has beside a passage for its markers and its grade."""


def plans(run: PanelRun) -> dict[str, CostEstimate]:
    """Return what asking each language model for all that is missing would come to; in a cascade it is the most."""
    batches = run.context.consent.batch
    return {
        seat.label: plan((task.request for task in run.table.tasks(seat, seat.work)), price, run.table.token_rate(seat))
        for seat in run.asked()
        for price in [batch_price(seat.settings.price) if batches and seat.settings.batch else seat.settings.price]
    }


def need_consent(run: PanelRun) -> None:
    """Stop with the plan of what is not paid yet, unless the user allows to spend within a cap that can be kept."""
    models = {seat.name: seat.settings for seat in run.asked()}
    try:
        permit("judging", models, lambda: plans(run), run.context)
    except BudgetError as error:
        if error.planned:
            planned_pool.remember(run.context)
        raise
    if models:
        planned_pool.need_same(run.context)


def warn_of_windows(run: PanelRun) -> None:
    """Tell whose longest prompt, with its answer, is about as long as the context window that its settings name."""
    longest = max((text.tokens for text in run.table.pool.shown), default=0) + TOKENS_BESIDE
    for seat in run.asked():
        window, thinking = seat.settings.context_tokens, seat.judge.thinking_tokens
        bound = rating.prefix_tokens(seat.judge) + (run.config.batch + 2) * longest + thinking
        if window is None or bound <= window:  # which spares most runs a look at every prompt
            continue
        used = [estimate(task.request) for task in run.table.tasks(seat, seat.work)]
        if (most := max((usage.prompt + usage.output for usage in used), default=0)) > window:
            run.context.tell(
                f"judges.{seat.name}: a prompt and its answer may have {most:,} tokens, and its context_tokens are "
                f"{window:,}: what is beyond is not read; show less text with judge.batch or judge.passage_tokens"
            )


def permit(
    verb: str,
    models: Mapping[str, ProviderConfig],
    planned: Callable[[], Mapping[str, CostEstimate]],
    context: Context,
) -> None:
    """Stop with the plan of what models are not paid for yet, unless the user allows to spend within a cap.

    The currency of the cap is settled and told; BudgetError if not all prices can be counted in it.
    """
    if not models:
        return
    if context.consent.offline:
        lines = _listed(planned(), context)
        raise UserError("\n".join(["the ledger lacks these answers, and --offline sends none:", *lines]))
    budget, prices = context.consent.budget, {f"judges.{name}.price": model.price for name, model in models.items()}
    budget.settle(prices, context.rates, context.currency)
    budget.shared = context.name
    if budget.policy.currency:
        context.tell(f"cap: {budget.policy.clause(prices)}")
    if remedy := budget.policy.remedy(prices):
        found = planned()
        raise BudgetError("\n".join([f"{verb} would send:", *_listed(found, context), remedy]), _rows(found, context))


def planned_rows(run: PanelRun) -> list[billing.Row]:
    """Return a row per language model that still has to be asked: calls, tokens, cost at most."""
    return _rows(plans(run), run.context)


def _listed(found: Mapping[str, CostEstimate], context: Context) -> list[str]:
    """Return plans as lines of text, of several also what they come to in all."""
    lines = [f"  {name}: {each.said()}" for name, each in found.items()]
    if len(found) > 1:
        total = billing.planned([(each.cost, each.currency) for each in found.values()], context)
        lines.append(f"  in all: {together(list(found.values()), total).said()}{billing.by(total)}")
    return lines


def _rows(found: Mapping[str, CostEstimate], context: Context) -> list[billing.Row]:
    """Return plans as rows in the columns of `quote`, of several also what they come to in all."""
    rows: list[billing.Row] = [
        {
            "judge": name,
            "calls": each.calls,
            "prompt_tokens": each.prompt_tokens,
            "answer_tokens": each.output_tokens,
            "online": None if each.cost is None else round(each.cost, 4),
            "currency": None if each.cost is None else each.currency,
        }
        for name, each in found.items()
    ]
    return billing.in_all(rows, context, ("online",))


def need_masked(panel: Sequence[JudgeState], context: Context) -> None:
    """Stop before a judge is given texts that may carry them away, unless all that looks like personal data may."""
    for seat in panel:
        who = f"judges.{seat.name}"
        if isinstance(seat, LlmState) and seat.work:
            privacy_guard.may_ask(who, seat.settings, context)
        elif isinstance(seat, HeuristicState) and seat.work:
            privacy_guard.ask(who, egress.beyond(who, seat.judge), context)


def limits(settings: ProviderConfig, *, mixed_models: bool = False) -> client.RequestLimits:
    """Return how a provider is asked."""
    return client.RequestLimits(
        concurrency=settings.concurrency,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
        price=settings.price,
        tokens_a_han=settings.tokens_a_han,
        mixed_models=mixed_models,
    )
