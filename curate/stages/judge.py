"""Judge: every judge of the panel grades every pair of the pool; what the ledger holds is not asked again.

In: queries, corpus of `diversify`, pool. Out: `ratings`, a row for every pair and judge: a snapshot of the ledger,
which replayed grades, known by id, do not pass through; `samples`, in a cascade the pairs that everybody rated; and
panel.json (judge -> what changes its grades). The stage is done only when no rating is `failed`: failed ones are tried
again on the next run. Refused and unparsed ones were answered and paid, so they are asked again only if the user
consents to retry. In a cascade a pair that a judge was not asked for is `stopped`.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import polars as pl
from pydantic import Field

from curate import ask, cascade, judging, passages, resources
from curate.cascade import PAIR, Mode
from curate.config import Json, Section, read_yaml
from curate.context import Context, Report, Stage
from curate.controls import Accuracy
from curate.corpus import TableCorpus
from curate.errors import ConfigError, CurateError
from curate.files import frame, sha256, write_json, write_table
from curate.judges.heuristic import Lexical, Similarity, guessing
from curate.judges.llm import LlmJudge
from curate.judging import Pool
from curate.ledger import Ledger, default_path
from curate.ledger.ids import Ids
from curate.panel import sanity
from curate.panel.sanity import Sanity
from curate.passages import Passage
from curate.prompts import Rubric, rubric
from curate.providers import provider
from curate.records import STATUSES, STOPPED, Document, Query
from curate.stages import batching, billing, build, first_look, gate, language, spending
from curate.stages.gate import Gate
from curate.stages.seats import AnySeat, PaidSeat, Table, described, paid


class Config(Section):
    """The panel and what it is asked."""

    models: tuple[str, ...] = ("lexical", "e5", "use")
    rubric: str | None = Field(default=None, description="name of a rubric in prompts/; by default rubric-LANGUAGE")
    batch: int = Field(default=10, ge=1, le=100, description="passages in one prompt")
    passage_tokens: int | None = Field(
        default=1500, ge=50, description="a longer passage is cut at the end of a sentence; null never cuts"
    )
    query_tokens: int | None = Field(default=500, ge=20, description="the same for queries")
    language: str | None = Field(
        default=None, description="what the texts are taken for, where they look like another language; see --language"
    )
    mixed_models: bool = Field(default=False, description="go on though the replies to one judge name several models")
    cascade: Mode | None = Field(default=None, description="ask dear judges only what cheap ones leave open")
    cascade_sample: float = Field(default=0.05, ge=0, le=1, description="share of pairs that a cascade judges in full")
    gate: Gate = Gate()
    sanity: Sanity = Sanity()
    allow_weak_judges: bool = Field(default=False, description="go on with judges that do not pass the gate")


def run(config: Config, context: Context) -> Report:
    """Seat the panel, ask for permission to spend, collect what is missing, and take the snapshot."""
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        table, panel = seated(config, context, ledger)
        pool = table.pool
        _refuse_mixtures(panel, config, ledger)
        left = spending.narrowed(table, panel, config, context)
        batching.refuse_open(left, ledger, context.consent)
        tried = trial(config, context, table)
        asked = [*(tried.asked() if tried else []), *left]
        spending.need_masked(asked, context)
        spending.need_consent(table, asked, context)
        ledger.note(judging.noted(pool))
        passed, before = gate.passed(tried, config, context), _calls(panel, ledger, context)
        try:
            panel = first_look.taken(table, panel, config, context)
            wanted = spending.collect(table, panel, config, context)
        except CurateError as error:
            if _calls(panel, ledger, context) != before:  # what was paid is kept as far as it goes
                context.partial(_snapshot(table, panel, {}, passed, config, context, str(error)))
            raise
        return _snapshot(table, panel, wanted, passed, config, context)


def _calls(panel: Sequence[AnySeat], ledger: Ledger, context: Context) -> int:
    return sum(ledger.bill(context.run_id, [seat.key.judge_digest for seat in paid(panel)])["calls"])


def _snapshot(
    table: Table,
    panel: Sequence[AnySeat],
    wanted: spending.Wanted,
    passed: Mapping[str, Accuracy] | None,
    config: Config,
    context: Context,
    stopped: str = "",
) -> Report:
    """Write the tables by what the ledger holds now, and return the report; `stopped` says why there is not more."""
    pool, ledger = table.pool, table.ledger
    ratings = pl.concat([_said(table, seat, wanted) for seat in panel])
    digests = {seat.name: (seat.key.judge_digest, seat.settings.price) for seat in paid(panel)}
    bills = billing.bills(ledger, context, digests)
    total = billing.total(bills, context)
    forms = ledger.forms(context.run_id, [digest for digest, _ in digests.values()])
    models: dict[str, Json] = {seat.name: _models(seat, ledger) for seat in paid(panel)}
    write_table(context.out, "ratings", ratings.sort("query_id", "doc_id", "judge"))
    write_table(context.out, "samples", spending.sample(pool.pairs, config, context) if wanted else frame("samples"))
    write_json(context.out / "panel.json", {seat.name: described(seat) for seat in panel})
    found = dict(ratings.group_by("status").len().iter_rows())
    counts: dict[str, int] = {status: found.get(status, 0) for status in (*STATUSES, STOPPED)}
    facts: dict[str, Json] = {
        **counts,
        "bill": bills,
        **billing.facts(total),
        "heuristic": [seat.name for seat in panel if "heuristic" in seat.judge.identity],
        "models": models,
        "replies": {seat.name: forms.get(seat.key.judge_digest, {}) for seat in paid(panel)},
        "rubric": next((f"{asked.name} ({asked.digest[:12]})" for asked in _rubrics(panel)), None),
        "shown": {"query_tokens": config.query_tokens, "passage_tokens": config.passage_tokens},
        "cascade": _savings(config, wanted, len(pool.pairs)),
        "gate": gate.facts(passed, config),
    }
    return Report(
        len(pool.pairs) * len(panel),
        counts["rated"],
        len(ratings) - counts["rated"],
        cost=total.amount,
        unfinished=stopped or _unfinished(ratings),
        facts=facts,
        notes=[*gate.notes(passed, config), *sanity.judges(ratings), *_guesses(panel, context.language)],
    )


def seated(config: Config, context: Context, ledger: Ledger) -> tuple[Table, list[AnySeat]]:
    """Return the panel at its table, each judge with what it still has to rate."""
    since = Ids().next() if context.consent.retry else ""
    pairs = context.read("pool", "pool").select("query_id", "doc_id")
    table = Table(shown(pairs, config, context), ledger, config.batch, context.seed, since)
    return table, [table.seat(name, context, lambda: load_rubric(config, context)) for name in config.models]


def trial(config: Config, context: Context, table: Table) -> gate.Trial | None:
    """Return the panel before the controls of the gate; None without any, DataError if none is of this run."""
    if config.gate.positives is None:
        return None
    known = gate.known(config.gate.positives, context)
    found = before(known, config, context, table)
    found.need_positives(len(known))
    return found


def before(known: pl.DataFrame, config: Config, context: Context, table: Table) -> gate.Trial:
    """Return the panel before controls drawn from pairs that people graded: query_id, doc_id, grade."""
    texts = partial(shown, config=config, context=context)
    return gate.lay(known, config, context, table, texts, lambda: load_rubric(config, context))


def fingerprint(config: Config, context: Context) -> Json:
    """Return what identifies each judge, and the rubric's digest; raises if a judge, a file or a rubric is missing."""
    if not config.models or len(set(config.models)) < len(config.models):
        raise ConfigError("judge.models: expected one or more different names")
    if config.gate.positives is not None and not config.gate.positives.is_file():
        raise ConfigError(f"judge.gate.positives: {config.gate.positives}: no such file; give a table of known grades")
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
    known = None if config.gate.positives is None else sha256(config.gate.positives)
    return {"judges": identities, "rubrics": rubrics, "controls": known}


def preflight(config: Config, context: Context) -> None:
    """Check the rubric's language and the keys of the language models; ConfigError says what to type."""
    if context.consent.offline:
        return
    check_language(config, context)
    for name in config.models:
        settings = build.language_model(context, name)
        if settings is not None:
            provider(settings)


def check_language(config: Config, context: Context) -> None:
    """Raise ConfigError if language models would judge by a rubric of another language than the texts."""
    asked = any(build.language_model(context, name) is not None for name in config.models)
    language.refuse(load_rubric(config, context) if asked else None, context, said=config.language)


def load_rubric(config: Config, context: Context) -> Rubric:
    """Return the rubric that the panel reads."""
    path = resources.find("prompts", f"{config.rubric or language.rubric_name(context.language)}.yaml")
    return rubric(read_yaml(path), str(path))


def shown(pairs: pl.DataFrame, config: Config, context: Context) -> Pool:
    """Return pairs (query_id, doc_id) with their texts as the whole panel is shown them."""
    queries = context.read("diversify", "queries")
    asked = dict(zip(queries["query_id"], passages.bounded_all([*queries["text"]], config.query_tokens), strict=True))
    wanted, corpus = set(pairs["doc_id"]), TableCorpus(context.folder("diversify"))
    texts: dict[str, Passage] = {}
    for batch in corpus.batches():
        docs = {doc.doc_id: doc.shown() for doc in batch if doc.doc_id in wanted}
        texts |= dict(zip(docs, passages.bounded_all([*docs.values()], config.passage_tokens), strict=True))
    pairs = pairs.with_columns(
        query_digest=pl.col("query_id").replace_strict(_digests(asked), return_dtype=pl.String),
        passage_digest=pl.col("doc_id").replace_strict(_digests(texts), return_dtype=pl.String),
    )
    return Pool(
        pairs,
        {query_id: Query(query_id, each.text) for query_id, each in asked.items()},
        {doc_id: Document(doc_id, "", each.text) for doc_id, each in texts.items()},
        [*asked.values(), *texts.values()],
    )


def _digests(texts: Mapping[str, Passage]) -> dict[str, str]:
    return {name: each.digest for name, each in texts.items()}


def _said(table: Table, seat: AnySeat, wanted: spending.Wanted) -> pl.DataFrame:
    """Return a judge's rows of `ratings`; in a cascade what it was not asked for is `stopped`, not `failed`."""
    rows = table.snapshot(seat)
    if seat.name not in wanted:
        return rows
    asked = wanted[seat.name].select(*PAIR, asked=pl.lit(1))
    spared = pl.col("asked").is_null() & (pl.col("status") == "failed")
    status = pl.when(spared).then(pl.lit(STOPPED)).otherwise("status")
    return rows.join(asked, on=PAIR, how="left").with_columns(status=status).drop("asked")


def _savings(config: Config, wanted: spending.Wanted, pairs: int) -> Json:
    """Return what a cascade asked of whom, and the share of ratings that it did without; None without a cascade."""
    if not wanted:
        return None
    asked = {name: len(each) for name, each in wanted.items()}
    return {"mode": config.cascade, "asked": dict(asked), "saved": cascade.saved(pairs, list(asked.values()))}


def _rubrics(panel: Sequence[AnySeat]) -> list[Rubric]:
    return [seat.judge.rubric for seat in paid(panel)]


def _models(seat: PaidSeat, ledger: Ledger) -> list[str]:
    return ledger.models(seat.key.judge_digest, seat.key.rubric_digest)


def _refuse_mixtures(panel: Sequence[AnySeat], config: Config, ledger: Ledger) -> None:
    """Stop before anything is asked or reused if a judge's ratings come from several models."""
    for seat in paid(panel):
        mixed = ask.mixture(f"judges.{seat.name}", _models(seat, ledger))
        if mixed is not None and not config.mixed_models:
            raise mixed


def _guesses(panel: Sequence[AnySeat], language: str) -> list[str]:
    """Return a sentence per heuristic that was calibrated on other languages."""
    said = [guessing(seat.judge, language) for seat in panel if isinstance(seat.judge, Lexical | Similarity)]
    return [each for each in said if each]


def _unfinished(ratings: pl.DataFrame) -> str:
    failed = ratings.filter(pl.col("status") == "failed").group_by("judge").len().sort("judge")
    if failed.is_empty():
        return ""
    each = ", ".join(f"{judge}: {count:,}" for judge, count in failed.iter_rows())
    return (
        f"{failed['len'].sum():,} ratings failed ({each}); run `curate judge` again to retry them; where a judge "
        "replays grades, complete its file first"
    )


STAGE = Stage("judge", Config, ("diversify", "pool"), run, fingerprint, preflight, head=("seed",), version=2)
