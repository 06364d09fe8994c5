"""Judge: every judge of the panel grades every pair of the pool; what the ledger holds is not asked again.

In: queries, corpus of `diversify`, pool. Out: `ratings`, a row for every pair and judge: a snapshot of the ledger,
which replayed grades, known by id, do not pass through; and panel.json (judge -> what changes its grades). The stage is
done only when no rating is `failed`: failed ones are tried again on the next run. Refused and unparsed ones were
answered and paid, so they are asked again only if the user consents to retry.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from pydantic import Field

from curate import ask, judging, resources, sampling
from curate.budget import Plan, plan
from curate.config import Json, Section, read_yaml, text_digest
from curate.context import Consent, Context, Report, Stage
from curate.corpus import TableCorpus
from curate.errors import BudgetError, ConfigError
from curate.files import write_json, write_table
from curate.judges.llm import LlmJudge
from curate.judges.replay import Replay
from curate.judging import TEXTS, Key, Pool, Work
from curate.ledger import Ledger, default_path
from curate.prompts import Rubric, rubric
from curate.protocols import Judge
from curate.providers import provider
from curate.providers.settings import ProviderConfig
from curate.records import STATUSES, Query
from curate.stages import build


class Config(Section):
    """The panel and what it is asked."""

    models: tuple[str, ...] = ("lexical", "e5", "use")
    rubric: str | None = Field(default=None, description="name of a rubric in prompts/; by default rubric-LANGUAGE")
    batch: int = Field(default=10, ge=1, le=100, description="passages in one prompt")
    mixed_models: bool = Field(default=False, description="go on though the replies to one judge name several models")


@dataclass(frozen=True)
class ReplaySeat:
    """The seat of recorded grades, with the rows that they come to."""

    name: str
    judge: Replay
    rows: pl.DataFrame


@dataclass(frozen=True)
class Seat:
    """The seat of a heuristic: what it is, how its ratings are keyed, and what it still has to rate."""

    name: str
    judge: Judge
    key: Key
    work: list[Work]


@dataclass(frozen=True)
class PaidSeat:
    """The seat of a language model, with the settings of its provider."""

    name: str
    judge: LlmJudge
    key: Key
    work: list[Work]
    settings: ProviderConfig


Panel = Sequence[ReplaySeat | Seat | PaidSeat]


def run(config: Config, context: Context) -> Report:
    """Seat the panel, ask for permission to spend, collect what is missing, and take the snapshot."""
    pool = _pool(context)
    with Ledger(default_path(context.home)) as ledger:
        panel = [_seat(name, config, context, ledger, pool) for name in config.models]
        _refuse_mixtures(panel, config, ledger)
        _need_consent(panel, context.consent)
        _collect(panel, config, context, ledger)
        ratings = pl.concat([_snapshot(seat, ledger, pool.pairs) for seat in panel])
        bill = ledger.bill(context.run_id, [seat.key.judge_digest for seat in _paid(panel)])
        models: dict[str, Json] = {seat.name: _models(seat, ledger) for seat in _paid(panel)}
    write_table(context.out, "ratings", ratings.sort("query_id", "doc_id", "judge"))
    write_json(context.out / "panel.json", {seat.name: _described(seat) for seat in panel})
    counts: dict[str, int] = {status: len(ratings.filter(pl.col("status") == status)) for status in STATUSES}
    names = {seat.key.judge_digest: seat.name for seat in _paid(panel)}
    facts: dict[str, Json] = {
        **counts,
        "bill": {names[row.pop("judge_digest")]: row for row in bill.to_dicts()},
        "heuristic": [seat.name for seat in panel if "heuristic" in seat.judge.identity],
        "models": models,
        "rubric": next((f"{asked.name} ({asked.digest[:12]})" for asked in _rubrics(panel)), None),
    }
    return Report(
        len(pool.pairs) * len(panel),
        counts["rated"],
        len(ratings) - counts["rated"],
        cost=None if bill["cost"].has_nulls() else float(bill["cost"].sum()),
        unfinished=_unfinished(ratings),
        facts=facts,
    )


def fingerprint(config: Config, context: Context) -> Json:
    """Return what identifies each judge, and the rubric's digest; raises if a judge, a file or a rubric is missing."""
    if not config.models or len(set(config.models)) < len(config.models):
        raise ConfigError("judge.models: expected one or more different names")
    identities: dict[str, Json] = {}
    rubrics: dict[str, Json] = {}
    for name in config.models:
        judge, _ = build.judge(context, name, lambda: load_rubric(config, context))
        if isinstance(judge, LlmJudge):
            rubrics[name] = judge.rubric.digest
        for other, identity in identities.items():
            if identity == judge.identity:
                raise ConfigError(f"judge.models: {other} and {name} are the same judge; a panel needs different ones")
        identities[name] = judge.identity
    return {"judges": identities, "rubrics": rubrics}


def preflight(config: Config, context: Context) -> None:
    """Check the keys of the language models; ConfigError names the variable that holds none."""
    for name in config.models:
        _, settings = build.judge(context, name, lambda: load_rubric(config, context))
        if settings is not None:
            provider(settings)


def load_rubric(config: Config, context: Context) -> Rubric:
    """Return the rubric that the panel reads."""
    path = resources.find("prompts", f"{config.rubric or f'rubric-{context.language}'}.yaml")
    return rubric(read_yaml(path), str(path))


def _pool(context: Context) -> Pool:
    pairs = context.read("pool", "pool").select("query_id", "doc_id")
    wanted = set(pairs["doc_id"])
    rows = context.read("diversify", "queries").select("query_id", "text").iter_rows()
    queries = {query_id: Query(query_id, text) for query_id, text in rows}
    corpus = TableCorpus(context.folder("diversify"))
    documents = {doc.doc_id: doc for batch in corpus.batches() for doc in batch if doc.doc_id in wanted}
    asked = {query_id: text_digest(query.text) for query_id, query in queries.items()}
    shown = {doc_id: text_digest(document.shown()) for doc_id, document in documents.items()}
    pairs = pairs.with_columns(
        query_digest=pl.col("query_id").replace_strict(asked, return_dtype=pl.String),
        passage_digest=pl.col("doc_id").replace_strict(shown, return_dtype=pl.String),
    )
    return Pool(pairs, queries, documents)


def _seat(name: str, config: Config, context: Context, ledger: Ledger, pool: Pool) -> ReplaySeat | Seat | PaidSeat:
    judge, settings = build.judge(context, name, lambda: load_rubric(config, context))
    if isinstance(judge, Replay):
        return ReplaySeat(name, judge, judging.replayed(judge, pool))
    key = Key(ledger.register(judge.identity), judge.rubric.digest if isinstance(judge, LlmJudge) else "")
    standing = ledger.ratings(key.judge_digest, key.rubric_digest, key.replicate)
    if isinstance(judge, LlmJudge):
        assert settings is not None
        return PaidSeat(name, judge, key, _work(name, pool, standing, context, config.batch), settings)
    return Seat(name, judge, key, _work(name, pool, standing, context, batch=None))


def _work(name: str, pool: Pool, standing: pl.DataFrame, context: Context, batch: int | None) -> list[Work]:
    """Cut the whole pool of each query into prompts, of any size without `batch`, and keep what is missing of each.

    A prompt does not depend on what was rated before, so a run that goes on sends what it would have sent at once.
    """
    pairs = pool.pairs.unique(TEXTS, keep="first", maintain_order=True)  # equal texts are rated once
    left = judging.missing(pairs, standing, retry=context.consent.retry)
    wanted = {str(query_id): set(group["doc_id"]) for (query_id,), group in left.group_by("query_id")}
    work = []
    for (query_id,), group in pairs.group_by("query_id", maintain_order=True):
        asked = str(query_id)
        order = sampling.shuffled(sorted(group["doc_id"]), context.seed, "passages", name, asked)
        passages = [pool.documents[doc_id] for doc_id in order]
        work += judging.prompts(pool.queries[asked], passages, batch or len(order), wanted.get(asked, set()))
    return work


def _paid(panel: Panel) -> list[PaidSeat]:
    return [seat for seat in panel if isinstance(seat, PaidSeat)]


def _rubrics(panel: Panel) -> list[Rubric]:
    return [seat.judge.rubric for seat in _paid(panel)]


def _models(seat: PaidSeat, ledger: Ledger) -> list[str]:
    return ledger.models(seat.key.judge_digest, seat.key.rubric_digest)


def _described(seat: ReplaySeat | Seat | PaidSeat) -> Json:
    """Return what changes a judge's grades; a language model reads the rubric, others do not."""
    if not isinstance(seat, PaidSeat):
        return seat.judge.identity
    read = seat.judge.rubric
    return {**seat.judge.identity, "rubric": {"name": read.name, "version": read.version, "digest": read.digest}}


def _refuse_mixtures(panel: Panel, config: Config, ledger: Ledger) -> None:
    """Stop before anything is asked or reused if a judge's ratings come from several models."""
    for seat in _paid(panel):
        mixed = ask.mixture(f"judges.{seat.name}", _models(seat, ledger))
        if mixed is not None and not config.mixed_models:
            raise mixed


def _need_consent(panel: Panel, consent: Consent) -> None:
    """Stop with the plan of what is not paid yet, unless the user allows to spend within a cap that can be kept."""
    seats = [seat for seat in _paid(panel) if seat.work]
    if not seats or consent.yes:
        return
    plans = {seat.name: _plan(seat) for seat in seats}
    unpriced = [name for name, each in plans.items() if each.cost is None]
    if consent.max_cost is None:
        remedy = "allow it with --max-cost AMOUNT, or with --yes"
    elif unpriced:
        keys = ", ".join(f"judges.{name}.price" for name in unpriced)
        remedy = f"a cap cannot be kept without prices: give {keys}, or add --yes to leave those without a cap"
    else:
        return
    lines = [f"  {name}: {each.said()}" for name, each in plans.items()]
    raise BudgetError("\n".join(["judging would send:", *lines, remedy]))


def _plan(seat: PaidSeat) -> Plan:
    requests = (task.request for task in judging.tasks(seat.judge, seat.work, seat.key))
    return plan(requests, seat.settings.price)


def _collect(panel: Panel, config: Config, context: Context, ledger: Ledger) -> None:
    """Have everybody rate what is missing, one judge after another; the cap holds for all of them together."""
    left = context.consent.max_cost
    for seat in panel:
        if isinstance(seat, Seat):
            judging.rate(seat.judge, seat.work, ledger, seat.key, context.progress)
        elif isinstance(seat, PaidSeat) and seat.work:
            bill = _ask(seat, config, context, ledger, left)
            left = None if left is None else left - bill.spent


def _ask(seat: PaidSeat, config: Config, context: Context, ledger: Ledger, left: float | None) -> ask.Bill:
    settings = seat.settings
    return ask.ask(
        judging.tasks(seat.judge, seat.work, seat.key),
        provider(settings),
        ledger,
        ask.Account(**vars(seat.key), run=context.run_id),
        ask.Limits(
            concurrency=settings.concurrency,
            price=settings.price,
            max_cost=None if settings.price is None else left,  # consent was asked for this
            mixed_models=config.mixed_models,
        ),
        total=sum(len(each.passages) for each in seat.work),
        progress=context.progress,
    )


def _snapshot(seat: ReplaySeat | Seat | PaidSeat, ledger: Ledger, pairs: pl.DataFrame) -> pl.DataFrame:
    if isinstance(seat, ReplaySeat):
        return seat.rows.with_columns(judge=pl.lit(seat.name), replicate=pl.lit(0))
    standing = ledger.ratings(seat.key.judge_digest, seat.key.rubric_digest, seat.key.replicate)
    rows = judging.snapshot(pairs, standing)
    return rows.with_columns(judge=pl.lit(seat.name), replicate=pl.lit(seat.key.replicate))


def _unfinished(ratings: pl.DataFrame) -> str:
    failed = ratings.filter(pl.col("status") == "failed").group_by("judge").len().sort("judge")
    if failed.is_empty():
        return ""
    each = ", ".join(f"{judge}: {count:,}" for judge, count in failed.iter_rows())
    return (
        f"{failed['len'].sum():,} ratings failed ({each}); run `curate judge` again to retry them; where a judge "
        "replays grades, complete its file first"
    )


STAGE = Stage("judge", Config, ("diversify", "pool"), run, fingerprint, preflight, head=("seed",))
