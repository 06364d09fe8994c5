"""Consent to spend: cost estimates of asking models, checked against the budget."""

from collections.abc import Callable, Mapping, Sequence

from curate.ask import billing, engine, planned_pool, privacy_guard, rating
from curate.ask.panel_run import JudgeOrder, PanelRun
from curate.ask.panel_state import HeuristicState, JudgeState, LlmState
from curate.core.errors import BudgetError, UserError
from curate.llm.budget import CostEstimate, together
from curate.llm.cost import estimate
from curate.llm.exchange_rates import rounded_up
from curate.llm.providers import addresses
from curate.llm.providers.settings import ProviderConfig
from curate.pipeline.stage import Context
from curate.system import egress

TOKENS_BESIDE = 100
"""Most tokens that a prompt adds to a passage, for its markers and its grade."""


def plans(run: PanelRun) -> dict[str, CostEstimate]:
    """Return label -> cost estimate of all missing ratings of each language model; in a cascade an upper bound."""
    return _plans(run, run.orders())


def _plans(run: PanelRun, orders: Sequence[JudgeOrder]) -> dict[str, CostEstimate]:
    return {order.state.label: engine.plan(order, run.table.ledger, run.context) for order in orders if order.work}


def _rest(run: PanelRun) -> dict[str, CostEstimate]:
    """Return the plans of what the ledger lacks now, which has got answers since the states were made."""
    return _plans(run, [order.of(order.left(order.work)) for order in run.orders()])


def need_consent(run: PanelRun) -> None:
    """Raise BudgetError or UserError with the plan of unpaid calls, unless the user set a budget that can be kept."""
    models = {state.name: state.settings for state in run.asked()}
    try:
        permit("judging", models, lambda: plans(run), lambda: _rest(run), run.context)
    except BudgetError as error:
        if error.planned:
            planned_pool.remember(run.context)
        raise
    if models:
        planned_pool.need_same(run.context)


def warn_of_windows(run: PanelRun) -> None:
    """Notify judges whose longest prompt, with its answer, may exceed the context window of their settings."""
    longest = max((text.tokens for text in run.table.pool.shown), default=0) + TOKENS_BESIDE
    for state in run.asked():
        window, thinking = state.settings.context_tokens, state.judge.thinking_tokens
        bound = rating.prefix_tokens(state.judge) + (run.config.batch + 2) * longest + thinking
        if window is None or bound <= window:  # an upper bound, so that most runs need not build every prompt
            continue
        used = [estimate(task.request) for task in run.table.tasks(state, state.work)]
        if (most := max((usage.prompt + usage.output for usage in used), default=0)) > window:
            run.context.tell(
                f"judges.{state.name}: a prompt and its answer may have {most:,} tokens, and its context_tokens are "
                f"{window:,}: what is beyond is not read; show less text with judge.batch or judge.passage_tokens"
            )


def permit(
    verb: str,
    models: Mapping[str, ProviderConfig],
    planned: Callable[[], Mapping[str, CostEstimate]],
    rest: Callable[[], Mapping[str, CostEstimate]],
    context: Context,
) -> None:
    """Raise an error with the plan of unpaid calls, unless the user set a budget.

    ConfigError for a host that may not be reached, UserError offline; BudgetError without a budget, or if not all
    prices can be converted into its currency, which is settled here and notified. `rest` plans what is left to ask when
    the budget is reached.
    """
    if not models:
        return
    for name, model in models.items():
        privacy_guard.reach(f"judges.{name}", addresses(model), context)
    if context.consent.offline:
        lines = _listed(planned(), context)
        raise UserError("\n".join(["the ledger lacks these answers, and --offline sends none:", *lines]))
    budget, prices = context.consent.budget, {f"judges.{name}.price": model.price for name, model in models.items()}
    budget.settle(prices, context.rates, context.currency)
    budget.shared = context.name

    def left() -> tuple[list[str], list[billing.PlanRow]]:
        estimates = rest()
        return _listed(estimates, context), _rows(estimates, context)

    budget.rest = left
    if budget.policy.currency:
        context.tell(f"cap: {budget.policy.clause(prices)}")
    if remedy := budget.policy.remedy(prices):
        estimates = planned()
        raise BudgetError(
            "\n".join([f"{verb} would send:", *_listed(estimates, context), remedy]), _rows(estimates, context)
        )


def planned_rows(run: PanelRun) -> list[billing.PlanRow]:
    """Return a row per language model that still has to be asked: calls, tokens, cost at most."""
    return _rows(plans(run), run.context)


def _listed(estimates: Mapping[str, CostEstimate], context: Context) -> list[str]:
    """Return plans as lines of text, followed by their total if there are several."""
    lines = [f"  {name}: {estimate.said()}" for name, estimate in estimates.items()]
    if len(estimates) > 1:
        total = billing.planned([(estimate.cost, estimate.currency) for estimate in estimates.values()], context)
        lines.append(f"  in all: {together(list(estimates.values()), total).said()}{billing.by(total)}")
    return lines


def _rows(estimates: Mapping[str, CostEstimate], context: Context) -> list[billing.PlanRow]:
    """Return plans as rows in the columns of `quote`, followed by their total if there are several."""
    rows = [
        billing.PlanRow(
            judge=name,
            calls=estimate.calls,
            prompt_tokens=estimate.prompt_tokens,
            answer_tokens=estimate.output_tokens,
            online=None if estimate.cost is None else rounded_up(estimate.cost, 4),
            currency=None if estimate.cost is None else estimate.currency,
        )
        for name, estimate in estimates.items()
    ]
    return billing.in_all(rows, context, ("online",))


def need_masked(panel: Sequence[JudgeState], context: Context) -> None:
    """Raise UserError if a judge could send texts elsewhere that still hold what looks like personal data."""
    for state in panel:
        who = f"judges.{state.name}"
        if isinstance(state, LlmState) and state.work:
            privacy_guard.may_ask(who, state.settings, context)
        elif isinstance(state, HeuristicState) and state.work:
            privacy_guard.reach(who, egress.addresses(state.judge), context)
            privacy_guard.ask(who, egress.beyond(who, state.judge), context)
