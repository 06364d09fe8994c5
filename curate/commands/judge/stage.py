"""The stage `judge`: every judge of the panel grades every pair of the pool; the ledger answers repeated requests.

First the panel grades a few whole queries, and warnings about them are shown before the other queries are paid for.
Batches, whose answers take up to a day, and cascades, which ask one judge after the other, have no such first look.
"""

from collections.abc import Collection, Iterator, Mapping

import polars as pl

from curate.ask import billing, build, collection, consent, engine, gate, panel_run, rating
from curate.ask.gate import trial
from curate.ask.judges.heuristic import Lexical, Similarity, guessing
from curate.ask.judges.llm import LlmJudge
from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import JudgeState, LlmState, PanelState, described
from curate.ask.seating import check_language, seated
from curate.ask.settling import validated
from curate.core.config import Json
from curate.core.errors import ConfigError, CurateError, UserError
from curate.core.progress import StepLabel, waiting
from curate.core.records import FILTERED, STATUSES, STOPPED
from curate.core.scale import FIVE, Scale
from curate.ledger import Ledger, default_path
from curate.llm import client
from curate.llm.client.canary import CANARY, CUT
from curate.llm.providers import provider
from curate.panel import cascade, sanity, voting
from curate.panel.controls import Accuracy
from curate.panel.sanity import Sanity
from curate.panel.voting import PAIR
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.stage import Context, Report, Stage
from curate.runs.pool_record import pool_record
from curate.system.files import frame, sha256, write_json, write_scale, write_table


def taken(run: PanelRun) -> PanelRun:
    """Have the panel grade the first queries and report warnings about them; return the run over the whole pool.

    UserError if fewer than a tenth of the queries would have a positive and `sanity.stop` is set.
    """
    table, config = run.table, run.config
    pairs = sanity.first(table.pool.pairs, config.sanity.ratings, run.context.seed)
    if pairs.is_empty() or config.cascade or run.context.consent.batch or not run.asked():
        return run
    collection.rate(run.of(pairs))
    _look(run.ratings().join(pairs, on=voting.PAIR, how="semi"), config.sanity, run.context, table.rubric.scale)
    return run.of(table.pool.pairs)


def _look(ratings: pl.DataFrame, limits: Sanity, context: Context, scale: Scale) -> None:
    names = ratings["judge"].unique().sort().to_list()
    verdicts = voting.decide(ratings, names, context.policy, scale)
    positive_queries = verdicts.filter(pl.col("verdict") == "relevant")["query_id"].n_unique()
    too_few = sanity.surely_few(positive_queries, verdicts["query_id"].n_unique())
    if too_few and limits.stop:
        raise UserError(
            f"judge: {too_few}, of those judged first; every answer is kept. Look at the pool and the rubric, or go on "
            "with --set judge.sanity.stop=false"
        )
    least = min(sanity.LEAST, limits.ratings)
    signs = [*sanity.judges(ratings, scale, least), *sanity.panel(ratings, names, scale, least)]
    for line in (*signs, *([too_few] if too_few else [])):
        context.tell(f"judge: after {len(verdicts):,} pairs: {line}")


def run(config: JudgeConfig, context: Context) -> Report:
    """Load the panel, ask for permission to spend, collect missing ratings, and write the snapshot."""
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        panel = seated(config, context, ledger)
        if not config.mixed_models:  # before a rating is asked for or reused
            for state in panel.paid():
                client.refuse_mixture(f"judges.{state.name}", _models(state, ledger))
        for order in panel.orders():
            client.refuse_unread(order.name, order.watch())
            if panel.watched and ledger.last_form(order.account.judge_digest, CANARY) == CUT:
                client.refuse_cut(order.name)
        unrated = panel.narrowed()
        engine.refuse_open(unrated.orders(), ledger, context)
        tried = trial(panel)
        payable = unrated.at(*(tried.asked().seats if tried else ()), *unrated.seats)
        consent.need_masked(payable.seats, context)
        consent.warn_of_windows(payable)
        consent.need_consent(payable)
        record = ledger.record(pool_record(panel))
        ledger.note(rating.noted(panel.table.pool))
        passed, calls_before = None, _calls(panel)
        try:
            passed = gate.passed(tried)
            panel = taken(panel)
            pairs_by_judge = collection.collect(panel)
        except CurateError as error:
            if _calls(panel) != calls_before:  # what was paid is kept as far as it goes
                reason = str(error).partition("\n")[0]
                context.partial(_snapshot(panel, record, {}, passed, gate.without_people(tried), reason))
            raise
        return _snapshot(panel, record, pairs_by_judge, passed, gate.without_people(tried))


def _calls(panel: PanelRun) -> int:
    digests = [state.key.judge_digest for state in panel.paid()]
    return sum(panel.table.ledger.bill(panel.context.run_id, digests)["calls"])


def _snapshot(
    panel: PanelRun,
    pool_digest: str,
    pairs_by_judge: collection.Wanted,
    passed: Mapping[str, Accuracy] | None,
    read: Mapping[str, Mapping[str, tuple[int, int]]],
    stopped: str = "",
) -> Report:
    """Write the tables from the ratings in the ledger, and return the report; `stopped`: the error that ended it."""
    pool, ledger, config, context = panel.table.pool, panel.table.ledger, panel.config, panel.context
    with waiting(context.progress, StepLabel("gathering the ratings")):
        ratings = pl.concat([_judge_ratings(panel.table, state, pairs_by_judge) for state in panel.seats])
    digests = {state.name: (state.key.judge_digest, state.settings.price) for state in panel.paid()}
    bills = billing.bills(ledger, context, digests)
    total = billing.total(bills, context)
    forms = ledger.forms(context.run_id, [digest for digest, _ in digests.values()])
    rubrics = [state.judge.rubric for state in panel.paid()]
    models: dict[str, Json] = {state.name: _models(state, ledger) for state in panel.paid()}
    write_table(context.out, "ratings", ratings.sort("query_id", "doc_id", "judge"))
    write_table(context.out, "samples", panel.sample() if pairs_by_judge else frame("samples"))
    rubric = panel.table.rubric
    write_scale(context.out, rubric.scale, rubric.all_meanings)
    write_json(context.out / "panel.json", {state.name: described(state) for state in panel.seats})
    count_by_status, missing = dict(ratings.group_by("status").len().iter_rows()), _without_grade(panel, ratings)
    lost = [line for _, line in missing.values()]
    too_many = [judge for judge, (share, _) in missing.items() if share > config.sanity.missing]
    counts: dict[str, int] = {status: count_by_status.get(status, 0) for status in (*STATUSES, STOPPED)}
    facts: dict[str, Json] = {
        **counts,
        "bill": bills,
        **billing.facts(total),
        "heuristic": [state.name for state in panel.seats if "heuristic" in state.judge.identity],
        "models": models,
        "replies": {state.name: forms.get(state.key.judge_digest, {}) for state in panel.paid()},
        "rubric": next((f"{rubric.name} ({rubric.digest[:12]})" for rubric in rubrics), None),
        "shown": {"query_tokens": config.query_tokens, "passage_tokens": config.passage_tokens},
        "record": pool_digest,
        "cascade": _savings(config, pairs_by_judge, len(pool.pairs)),
        "gate": gate.facts(passed, config),
        **({"controls": {name: dict(counts) for name, counts in read.items()}} if read else {}),
        **({"lost": lost} if lost else {}),
        **({"too_many_lost": ", ".join(too_many)} if too_many else {}),
    }
    return Report(
        len(pool.pairs) * len(panel.seats),
        counts["rated"],
        len(ratings) - counts["rated"],
        cost=total.amount,
        unfinished=stopped or _unfinished(ratings, digests),
        facts=facts,
        notes=[
            *gate.notes(passed, config),
            *(gate.reads(name, counts) for name, counts in read.items()),
            *sanity.judges(ratings, panel.table.rubric.scale),
            *_guesses(panel),
            *_useless(panel),
            *lost,
        ],
    )


def fingerprint(config: JudgeConfig, context: Context) -> Json:
    """Return judges' identities and digests of their rubrics; ConfigError if a judge, file or rubric is missing."""
    rubric = validated(config, context)
    if config.gate.positives is not None and not config.gate.positives.is_file():
        raise ConfigError(f"judge.gate.positives: {config.gate.positives}: no such file; give a table of known grades")
    identities: dict[str, Json] = {}
    rubrics: dict[str, Json] = {}
    for name in config.models:
        judge, _ = build.judge(context, name, rubric)
        if isinstance(judge, LlmJudge):
            rubrics[name] = judge.rubric.digest
        for earlier, identity in identities.items():
            if identity == judge.identity:
                raise ConfigError(
                    f"judge.models: {earlier} and {name} are the same judge; a panel needs different ones"
                )
        identities[name] = judge.identity
    controls_digest = None if config.gate.positives is None else sha256(config.gate.positives)
    extra: dict[str, Json] = {} if rubric.scale == FIVE else {"scale": rubric.scale.to_json()}
    if config.cascade and context.policy != "unanimous":
        extra["cascade"] = voting.dumped(context.policy)
    return {"judges": identities, "rubrics": rubrics, "controls": controls_digest, **extra}


def preflight(config: JudgeConfig, context: Context) -> None:
    """Check the rubric's language and the API keys of the language models; ConfigError names the remedy."""
    if context.consent.offline:
        return
    check_language(config, context)
    for name in config.models:
        settings = build.language_model(context, name)
        if settings is not None:
            provider(settings)


def _judge_ratings(table: PanelState, state: JudgeState, pairs_by_judge: collection.Wanted) -> pl.DataFrame:
    """Return a judge's rows of `ratings`; pairs that a cascade did not ask it about are `stopped`, not `failed`."""
    rows = table.snapshot(state)
    if state.name not in pairs_by_judge:
        return rows
    asked_pairs = pairs_by_judge[state.name].select(*PAIR, asked=pl.lit(1))
    spared = pl.col("asked").is_null() & (pl.col("status") == "failed")
    status = pl.when(spared).then(pl.lit(STOPPED)).otherwise("status")
    return rows.join(asked_pairs, on=PAIR, how="left").with_columns(status=status).drop("asked")


def _savings(config: JudgeConfig, pairs_by_judge: collection.Wanted, pairs: int) -> Json:
    """Return pairs per judge in a cascade, and the share of ratings that it saved; None without a cascade."""
    if not pairs_by_judge:
        return None
    count_by_judge = {name: len(judge_pairs) for name, judge_pairs in pairs_by_judge.items()}
    return {
        "mode": config.cascade,
        "asked": dict(count_by_judge),
        "saved": cascade.saved(pairs, list(count_by_judge.values())),
    }


def _models(state: LlmState, ledger: Ledger) -> list[str]:
    return ledger.models(state.key.judge_digest, state.key.rubric_digest)


def _guesses(panel: PanelRun) -> list[str]:
    """Return a sentence per heuristic that was calibrated on other languages."""
    heuristics = [state.judge for state in panel.seats if isinstance(state.judge, Lexical | Similarity)]
    return [warning for judge in heuristics if (warning := guessing(judge, panel.context.language))]


def _useless(panel: PanelRun) -> Iterator[str]:
    """Yield a note if a cascade saved nothing because the agreement sample is the whole pool."""
    pairs = len(panel.table.pool.pairs)
    if panel.config.cascade and len(panel.sample()) == pairs:
        yield (
            f"judge.cascade: {panel.config.cascade} spared no rating, for every judge rates {panel_run.LEAST:,} pairs "
            f"at least, on which agreement is measured, and the pool has {pairs:,}"
        )


def _without_grade(panel: PanelRun, ratings: pl.DataFrame) -> dict[str, tuple[float, str]]:
    """Return judge -> share of its pairs without a grade, and a sentence with the provider's most frequent error."""
    ledger, run = panel.table.ledger, panel.context.run_id
    digests = {state.name: state.key.judge_digest for state in panel.paid()}
    causes = ledger.refusals(run, list(digests.values()))
    count_by_judge = dict(ratings.filter(pl.col("status") != STOPPED).group_by("judge").len().iter_rows())
    lost = ratings.filter(pl.col("status").is_in(["refused", "unparsed", "failed"]))
    missing: dict[str, tuple[float, str]] = {}
    for (name,), rows in lost.group_by("judge", maintain_order=True):
        judge, share = str(name), rows.height / count_by_judge[name]
        counts = _counts(rows, asked=judge in digests)
        cause = causes.get(digests.get(judge, ""), "")
        cause = f"; most often: {cause}" if cause else ""
        missing[judge] = (
            share,
            f"{judge}: {rows.height:,} of {count_by_judge[name]:,} pairs have no grade ({share:.1%}): {counts}{cause}",
        )
    return missing


def _counts(rows: pl.DataFrame, *, asked: bool) -> str:
    """Return the number of pairs by status, as a clause; a pair without a call is no failure where a judge is `asked`.

    Only ratings of a call have a place in a prompt.
    """
    unasked = (pl.col("status") == "failed") & pl.col("slot").is_null() & asked
    words = rows.select(word=pl.when(unasked).then(pl.lit("not asked yet")).otherwise("status"))
    return ", ".join(f"{count:,} {word}" for word, count in sorted(words.group_by("word").len().iter_rows()))


def _unfinished(ratings: pl.DataFrame, asked: Collection[str]) -> str:
    lacking = ratings.filter(pl.col("status") == "failed")
    if lacking.is_empty():
        return ""
    counts = "; ".join(
        f"{judge}: {_counts(rows, asked=judge in asked)}" for (judge,), rows in sorted(lacking.group_by("judge"))
    )
    return (
        f"{len(lacking):,} ratings are missing ({counts}); run `curate judge` again to ask for them; where a judge "
        "replays grades, complete its file first"
    )


STAGE = Stage("judge", JudgeConfig, (FILTERED, "pool"), run, fingerprint, preflight, head=("seed",), version=2)
