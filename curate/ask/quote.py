"""What judging would send and cost: online, in batches, and in a cascade; and how far it is, once it has begun."""

from pathlib import Path

import polars as pl

from curate.ask import billing, build, consent, gate, rating, seating
from curate.ask.panel_state import LlmState, PanelState
from curate.core.config import Json, digest
from curate.ledger import Ledger, default_path
from curate.llm.budget import plan
from curate.pipeline.judge_config import Config
from curate.pipeline.stage import Context

Row = dict[str, Json]
MONEY = ("online", "batches", "cascade_least")


def quote(config: Config, context: Context) -> list[Row]:
    """Return one row per language model that still has to be asked, in the order in which a cascade would.

    What the controls of the gate would cost stands before.

    `judge`, `calls`, `prompt_tokens` (an estimate; `prefix_tokens` of them, the same in every call, can come out of a
    vendor's cache), `answer_tokens` (at most), and what that costs at most in `currency`, None without a price:
    `online`, in `batches` where the vendor has them, and from `cascade_least` on in a cascade, which
    costs at most what `online` does. `minutes`: about how long it lasts online (see `billing.minutes`). The last of
    several rows is what they come to, all side by side.
    """
    seating.check_language(config, context)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        panel = seating.seated(config, context, ledger).in_order()
        sample = len(panel.sample()) / max(len(panel.table.pool.pairs), 1)
        rows = [row(panel.table, seat) for seat in panel.asked()]
        consent.warn_of_windows(panel)
        trial = gate.trial(panel)
        before = [row(trial.panel.table, seat) for seat in trial.asked().asked()] if trial else []
    first = panel.seats[0].name
    for each in (*before, *rows):
        whole = each in before or each["judge"] == first  # the first is asked for everything
        online = each["online"]
        each["cascade_least"] = round(online * (1.0 if whole else sample), 4) if isinstance(online, float) else None
    return billing.in_all([*before, *rows], context, MONEY)


def row(table: PanelState, seat: LlmState) -> Row:
    """Return what asking a language model for its work would send and cost; `quote` says what the columns are."""
    settings = seat.settings
    found = plan((task.request for task in table.tasks(seat, seat.work)), settings.price, table.token_rate(seat))
    tokens = found.prompt_tokens + found.output_tokens
    price = settings.price
    batches = found.cost * price.batch if found.cost is not None and price and settings.batch else None
    return {
        "judge": seat.label,
        "calls": found.calls,
        "prompt_tokens": found.prompt_tokens,
        "prefix_tokens": rating.prefix_tokens(seat.judge) * found.calls,
        "answer_tokens": found.output_tokens,
        "online": None if found.cost is None else round(found.cost, 4),
        "batches": None if batches is None else round(batches, 4),
        "currency": found.currency if price else None,
        "minutes": billing.minutes(table.ledger, seat.key.judge_digest, settings, found.calls, tokens),
    }


def progress(config: Config, context: Context) -> tuple[float | None, dict[str, Json] | None]:
    """Return the share of the language models' ratings that a run's calls gave so far, and what was paid by currency.

    None before the first call. What the ledger held before, and texts that are equal, are not counted.
    """
    from curate.ledger import stats

    rubric = seating.load_rubric(config, context)
    models = [build.judge(context, name, rubric) for name in config.models]
    asked = {each.name: (digest(each.identity), settings.price) for each, settings in models if settings}
    place = context.ledger or default_path(context.home)
    if not asked or (isinstance(place, Path) and not place.exists()):
        return None, None
    with Ledger(place) as ledger:
        bills = billing.bills(ledger, context, asked)
        settled = stats.settled(ledger, context.run_id, [name for name, _ in asked.values()])
    pairs = pl.scan_parquet(context.folder("pool") / "pool.parquet").select(pl.len()).collect().item()
    wanted = pairs * len(asked)
    return (settled / wanted if bills and wanted else None), billing.by_currency(bills) or None
