"""First look: the panel judges a few whole queries, and warnings are shown before the rest is paid for.

There is no first look in batches, whose answers come within a day, or in a cascade, whose judges are asked one after
the other: there the ratings are checked at the end.
"""

from collections.abc import Iterator, Mapping

import polars as pl

from curate.ask import batching, billing, build, collection, consent, gate, panel_run, rating
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
from curate.core.records import STATUSES, STOPPED
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
from curate.system.files import frame, sha256, write_json, write_scale, write_table


def taken(run: PanelRun) -> PanelRun:
    """Have the panel rate a first part of the pool and report warnings; return the run with the pairs left to rate.

    UserError if fewer than a tenth of the queries would have a positive, and `sanity.stop` is set.
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
    kept = verdicts.filter(pl.col("verdict") == "relevant")["query_id"].n_unique()
    few = sanity.surely_few(kept, verdicts["query_id"].n_unique())
    if few and limits.stop:
        raise UserError(
            f"judge: {few}, of those judged first; every answer is kept. Look at the pool and the rubric, or go on "
            "with --set judge.sanity.stop=false"
        )
    least = min(sanity.LEAST, limits.ratings)
    signs = [*sanity.judges(ratings, scale, least), *sanity.panel(ratings, names, scale, least)]
    for line in (*signs, *([few] if few else [])):
        context.tell(f"judge: after {len(verdicts):,} pairs: {line}")


# Judge: every judge of the panel grades every pair of the pool; what the ledger holds is not asked again.


def run(config: JudgeConfig, context: Context) -> Report:
    """Load the panel, ask for permission to spend, collect missing ratings, and write the snapshot."""
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        panel = seated(config, context, ledger)
        _refuse_mixtures(panel)
        for seat in panel.paid():
            client.refuse_unread(f"judges.{seat.name}", panel.watch(seat))
            if panel.watched and ledger.last_form(seat.key.judge_digest, CANARY) == CUT:
                client.refuse_cut(f"judges.{seat.name}")
        left = panel.narrowed()
        batching.refuse_open(left)
        tried = trial(panel)
        asked = left.at(*(tried.asked().seats if tried else ()), *left.seats)
        consent.need_masked(asked.seats, context)
        consent.warn_of_windows(asked)
        consent.need_consent(asked)
        ledger.note(rating.noted(panel.table.pool))
        passed, before = None, _calls(panel)
        try:
            passed = gate.passed(tried)
            panel = taken(panel)
            wanted = collection.collect(panel)
        except CurateError as error:
            if _calls(panel) != before:  # what was paid is kept as far as it goes
                context.partial(_snapshot(panel, {}, passed, gate.without_people(tried), str(error)))
            raise
        return _snapshot(panel, wanted, passed, gate.without_people(tried))


def _calls(panel: PanelRun) -> int:
    digests = [seat.key.judge_digest for seat in panel.paid()]
    return sum(panel.table.ledger.bill(panel.context.run_id, digests)["calls"])


def _snapshot(
    panel: PanelRun,
    wanted: collection.Wanted,
    passed: Mapping[str, Accuracy] | None,
    read: Mapping[str, Mapping[str, tuple[int, int]]],
    stopped: str = "",
) -> Report:
    """Write the tables from the current ledger and return the report; `stopped` is the reason for an incomplete run."""
    pool, ledger, config, context = panel.table.pool, panel.table.ledger, panel.config, panel.context
    with waiting(context.progress, StepLabel("gathering the ratings")):
        ratings = pl.concat([_said(panel.table, seat, wanted) for seat in panel.seats])
    digests = {seat.name: (seat.key.judge_digest, seat.settings.price) for seat in panel.paid()}
    bills = billing.bills(ledger, context, digests)
    total = billing.total(bills, context)
    forms = ledger.forms(context.run_id, [digest for digest, _ in digests.values()])
    rubrics = [seat.judge.rubric for seat in panel.paid()]
    models: dict[str, Json] = {seat.name: _models(seat, ledger) for seat in panel.paid()}
    write_table(context.out, "ratings", ratings.sort("query_id", "doc_id", "judge"))
    write_table(context.out, "samples", panel.sample() if wanted else frame("samples"))
    rubric = panel.table.rubric
    write_scale(context.out, rubric.scale, rubric.all_meanings)
    write_json(context.out / "panel.json", {seat.name: described(seat) for seat in panel.seats})
    found, missing = dict(ratings.group_by("status").len().iter_rows()), _without_grade(panel, ratings)
    lost = [line for _, line in missing.values()]
    too_many = [judge for judge, (share, _) in missing.items() if share > config.sanity.missing]
    counts: dict[str, int] = {status: found.get(status, 0) for status in (*STATUSES, STOPPED)}
    facts: dict[str, Json] = {
        **counts,
        "bill": bills,
        **billing.facts(total),
        "heuristic": [seat.name for seat in panel.seats if "heuristic" in seat.judge.identity],
        "models": models,
        "replies": {seat.name: forms.get(seat.key.judge_digest, {}) for seat in panel.paid()},
        "rubric": next((f"{rubric.name} ({rubric.digest[:12]})" for rubric in rubrics), None),
        "shown": {"query_tokens": config.query_tokens, "passage_tokens": config.passage_tokens},
        "cascade": _savings(config, wanted, len(pool.pairs)),
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
        unfinished=stopped or _unfinished(ratings),
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
    """Return each judge's identity and the rubric's digest; raises if a judge, a file or a rubric is missing."""
    rubric = validated(config, context)
    if config.gate.positives is not None and not config.gate.positives.is_file():
        raise ConfigError(f"judge.gate.positives: {config.gate.positives}: no such file; give a table of known grades")
    identities: dict[str, Json] = {}
    rubrics: dict[str, Json] = {}
    for name in config.models:
        judge, _ = build.judge(context, name, rubric)
        if isinstance(judge, LlmJudge):
            rubrics[name] = judge.rubric.digest
        for other, identity in identities.items():
            if identity == judge.identity:
                raise ConfigError(f"judge.models: {other} and {name} are the same judge; a panel needs different ones")
        identities[name] = judge.identity
    known = None if config.gate.positives is None else sha256(config.gate.positives)
    more: dict[str, Json] = {} if rubric.scale == FIVE else {"scale": rubric.scale.to_json()}
    if config.cascade and context.policy != "unanimous":
        more["cascade"] = voting.dumped(context.policy)
    return {"judges": identities, "rubrics": rubrics, "controls": known, **more}


def preflight(config: JudgeConfig, context: Context) -> None:
    """Check the rubric's language and the API keys of the language models; ConfigError names the remedy."""
    if context.consent.offline:
        return
    check_language(config, context)
    for name in config.models:
        settings = build.language_model(context, name)
        if settings is not None:
            provider(settings)


def _said(table: PanelState, seat: JudgeState, wanted: collection.Wanted) -> pl.DataFrame:
    """Return a judge's rows of `ratings`; pairs that a cascade did not ask it about are `stopped`, not `failed`."""
    rows = table.snapshot(seat)
    if seat.name not in wanted:
        return rows
    asked = wanted[seat.name].select(*PAIR, asked=pl.lit(1))
    spared = pl.col("asked").is_null() & (pl.col("status") == "failed")
    status = pl.when(spared).then(pl.lit(STOPPED)).otherwise("status")
    return rows.join(asked, on=PAIR, how="left").with_columns(status=status).drop("asked")


def _savings(config: JudgeConfig, wanted: collection.Wanted, pairs: int) -> Json:
    """Return the number of ratings a cascade asked of each judge, and the share it saved; None without a cascade."""
    if not wanted:
        return None
    asked = {name: len(each) for name, each in wanted.items()}
    return {"mode": config.cascade, "asked": dict(asked), "saved": cascade.saved(pairs, list(asked.values()))}


def _models(seat: LlmState, ledger: Ledger) -> list[str]:
    return ledger.models(seat.key.judge_digest, seat.key.rubric_digest)


def _refuse_mixtures(panel: PanelRun) -> None:
    """Stop before anything is asked or reused if a judge's ratings come from several models."""
    for seat in () if panel.config.mixed_models else panel.paid():
        client.refuse_mixture(f"judges.{seat.name}", _models(seat, panel.table.ledger))


def _guesses(panel: PanelRun) -> list[str]:
    """Return a sentence per heuristic that was calibrated on other languages."""
    heuristics = [seat.judge for seat in panel.seats if isinstance(seat.judge, Lexical | Similarity)]
    return [said for judge in heuristics if (said := guessing(judge, panel.context.language))]


def _useless(panel: PanelRun) -> Iterator[str]:
    """Yield a warning if a cascade saves nothing, because the sample for measuring agreement is the whole pool."""
    pairs = len(panel.table.pool.pairs)
    if panel.config.cascade and len(panel.sample()) == pairs:
        yield (
            f"judge.cascade: {panel.config.cascade} spared no rating, for every judge rates {panel_run.LEAST:,} pairs "
            f"at least, on which agreement is measured, and the pool has {pairs:,}"
        )


def _without_grade(panel: PanelRun, ratings: pl.DataFrame) -> dict[str, tuple[float, str]]:
    """Return judge -> (share of its pairs without a grade, sentence with the counts and the most frequent cause)."""
    ledger, run = panel.table.ledger, panel.context.run_id
    digests = {seat.name: seat.key.judge_digest for seat in panel.paid()}
    causes = ledger.refusals(run, list(digests.values()))
    asked = dict(ratings.filter(pl.col("status") != STOPPED).group_by("judge").len().iter_rows())
    lost = ratings.filter(pl.col("status").is_in(["refused", "unparsed", "failed"]))
    missing: dict[str, tuple[float, str]] = {}
    for (name,), rows in lost.group_by("judge", maintain_order=True):
        judge, share = str(name), rows.height / asked[name]
        counts = ", ".join(f"{count:,} {status}" for status, count in sorted(rows.group_by("status").len().iter_rows()))
        cause = causes.get(digests.get(judge, ""), "")
        said = f"; most often: {cause}" if cause else ""
        missing[judge] = (
            share,
            f"{judge}: {rows.height:,} of {asked[name]:,} pairs have no grade ({share:.1%}): {counts}{said}",
        )
    return missing


def _unfinished(ratings: pl.DataFrame) -> str:
    failed = ratings.filter(pl.col("status") == "failed").group_by("judge").len().sort("judge")
    if failed.is_empty():
        return ""
    each = ", ".join(f"{judge}: {count:,}" for judge, count in failed.iter_rows())
    return (
        f"{failed['len'].sum():,} ratings failed ({each}); run `curate judge` again to retry them; where a judge "
        "replays grades, complete its file first"
    )


STAGE = Stage("judge", JudgeConfig, ("diversify", "pool"), run, fingerprint, preflight, head=("seed",), version=2)
