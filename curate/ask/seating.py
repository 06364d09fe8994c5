"""Set-up of a pipeline's panel: judges, rubric, and the texts in the form shown to judges."""

from collections.abc import Mapping

import polars as pl

from curate.ask import build, language_guard
from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import PanelState
from curate.ask.rating import TEXTS, Pool
from curate.core.config import read_yaml
from curate.core.progress import StepLabel, waiting
from curate.core.records import Document, Query
from curate.ledger import Ledger
from curate.ledger.store import TimeOrderedIds
from curate.llm import passages, prompts
from curate.llm.passages import ShownText
from curate.llm.prompts import Rubric
from curate.panel import voting
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.stage import Context
from curate.system import resources

LIKELY_RANK = 3


def seated(config: JudgeConfig, context: Context, ledger: Ledger) -> PanelRun:
    """Return the panel run over the pool, each judge with its missing ratings."""
    since = TimeOrderedIds().next() if context.consent.retry else ""
    pairs = context.read("pool", "pool").select("query_id", "doc_id")
    rubric = load_rubric(config, context)
    pool = shown(pairs, config, context)
    likely = frozenset[tuple[str, str]]()
    if config.controls:
        likely_pairs = pool.pairs.join(likely_positives(context), on=voting.PAIR, how="semi")
        likely = frozenset(likely_pairs.select(TEXTS).iter_rows())
    table = PanelState(pool, ledger, rubric, config.batch, context.seed, since, likely=likely)
    with waiting(context.progress, StepLabel("reading what was rated before")):
        seats = [table.seat(name, context) for name in config.models]
    allowed = config.allow_weak_judges or context.consent.allow_weak_judges
    return PanelRun(table, seats, config, context, watched=not allowed)


def likely_positives(context: Context) -> pl.DataFrame:
    """Return pairs that are probably relevant, sorted: query_id, doc_id.

    Relevant pairs of the original labels; for a query without any, documents that every retriever ranks within
    LIKELY_RANK.
    """
    pool = context.read("pool", "pool").select(voting.PAIR)
    labelled = context.legacy_positives().select(voting.PAIR).join(pool, on=voting.PAIR, how="semi")
    rankings = context.read("pool", "rankings").filter(pl.col("rank") <= LIKELY_RANK)
    everywhere = rankings.group_by(voting.PAIR).agg(by=pl.col("retriever").n_unique())
    everywhere = everywhere.filter(pl.col("by") == rankings["retriever"].n_unique()).select(voting.PAIR)
    ranked = everywhere.join(labelled, on="query_id", how="anti").join(pool, on=voting.PAIR, how="semi")
    return pl.concat([labelled, ranked]).sort(voting.PAIR)


def check_language(config: JudgeConfig, context: Context) -> None:
    """Raise ConfigError if language models would judge by a rubric of another language than the texts."""
    has_models = any(build.language_model(context, name) is not None for name in config.models)
    language_guard.refuse(load_rubric(config, context) if has_models else None, context, said=config.language)


def load_rubric(config: JudgeConfig, context: Context) -> Rubric:
    """Return the rubric that the panel reads."""
    path = resources.find("prompts", f"{config.rubric or language_guard.rubric_name(context.language)}.yaml")
    return prompts.rubric(read_yaml(path), str(path))


def shown(pairs: pl.DataFrame, config: JudgeConfig, context: Context, made: Mapping[str, str] | None = None) -> Pool:
    """Return pairs (query_id, doc_id) with their texts in the form shown to all judges.

    `made` maps ids to passages that are in no corpus: adversarial controls.
    """
    queries = context.queries
    doc_ids, corpus = set(pairs["doc_id"]), context.corpus
    label, total = StepLabel("looking over queries and passages", "texts"), len(queries) + len(doc_ids)
    context.progress(label, total, 0)
    query_texts = dict(
        zip(queries["query_id"], passages.bounded_all([*queries["text"]], config.query_tokens), strict=True)
    )
    texts: dict[str, ShownText] = {}
    for batch in corpus.batches():
        docs = {doc.doc_id: doc.shown() for doc in batch if doc.doc_id in doc_ids}
        texts |= dict(zip(docs, passages.bounded_all([*docs.values()], config.passage_tokens), strict=True))
        context.progress(label, total, len(query_texts) + len(texts))
    added = made or {}
    texts |= dict(zip(added, passages.bounded_all([*added.values()], config.passage_tokens), strict=True))
    pairs = pairs.with_columns(
        query_digest=pl.col("query_id").replace_strict(_digests(query_texts), return_dtype=pl.String),
        passage_digest=pl.col("doc_id").replace_strict(_digests(texts), return_dtype=pl.String),
    )
    return Pool(
        pairs,
        {query_id: Query(query_id, text.text) for query_id, text in query_texts.items()},
        {doc_id: Document(doc_id, "", text.text) for doc_id, text in texts.items()},
        [*query_texts.values(), *texts.values()],
    )


def _digests(texts: Mapping[str, ShownText]) -> dict[str, str]:
    return {name: text.digest for name, text in texts.items()}
