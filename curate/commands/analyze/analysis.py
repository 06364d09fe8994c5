"""Analyze a finished run: label-free difficulty of queries, and a model's labels of sampled pairs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import polars as pl

from curate.ask import build
from curate.ask.billing import PlanRow
from curate.ask.panel import AskedModel, Panel, packaged_question
from curate.ask.task import LLMTask
from curate.core.config import text_digest
from curate.core.errors import ConfigError
from curate.core.figures import Record, figure
from curate.core.messages import Reply, Request
from curate.core.records import Query
from curate.core.sampling import shuffled
from curate.ledger import Ledger, default_path
from curate.llm import passages, questions
from curate.llm.questions import STATUSES, Question, Said
from curate.llm.recorded_votes import Missing
from curate.panel.voting import PAIR
from curate.pipeline.configs import JudgeConfig, PoolConfig
from curate.pipeline.facts import heuristic, label_stage, made_from
from curate.pipeline.stage import Context
from curate.retrieval.id_mapping import IdMapping, ranked
from curate.retrieval.retrievers.bm25 import Bm25, Config, cutter
from curate.runs.checks import CHECKS
from curate.runs.runner import Run
from curate.stats import difficulty, sample_estimates
from curate.stats.difficulty import Measured, QueryGroup
from curate.system.run_lock import locked

PURPOSE = "analyze"


@dataclass(frozen=True)
class SampledPair:
    """A sampled pair with its texts as shown to the model."""

    query_id: str
    doc_id: str
    query: str
    passage: str
    grades: tuple[str, ...] = ()
    """Judges' grades in random order."""


@dataclass(frozen=True)
class Inquiry:
    """A question about each pair of a sample."""

    question: Question
    items: tuple[SampledPair, ...]
    population: int
    """Number of pairs or queries that the sample was drawn from."""


class InquiryTask(LLMTask[SampledPair, Said]):
    """The question of an inquiry about a pair, with the grades that judges gave it."""

    def __init__(self, question: Question) -> None:
        self.question, self.digest = question, question.digest

    def label(self, _model: str) -> str:
        """Return the name of the question: one model answers all of them."""
        return self.question.name

    def request(self, item: SampledPair, thinking_tokens: int) -> Request:
        """Return the question about a pair."""
        return questions.build(
            self.question, item.query, item.passage, grades=item.grades, thinking_tokens=thinking_tokens
        )

    def read(self, _item: SampledPair, reply: Reply) -> Said:
        """Return label and reason."""
        return questions.read(self.question, reply)

    def none(self, status: Missing) -> Said:
        """Return a result without a label."""
        return Said(status)

    def digests(self, item: SampledPair) -> tuple[str, tuple[str, ...]]:
        """Return the digests of query and passage."""
        return text_digest(item.query), (text_digest(item.passage),)


def ask_inquiries(inquiries: Sequence[Inquiry], panel: Panel) -> list[list[tuple[SampledPair, Said]]]:
    """Return (pair, reply) lists, one per inquiry, asked one after the other.

    A dry panel only plans unanswered questions, and omits their pairs.
    """
    replies = []
    for inquiry in inquiries:
        pairs = {str(position): pair for position, pair in enumerate(inquiry.items)}
        answers = panel.ask(InquiryTask(inquiry.question), pairs)
        replies.append([(pairs[name], said) for name, by_model in answers.items() for said in by_model.values()])
    return replies


# Label-free measures of queries: words shared with positives, best BM25 rank of a positive, length.

COMPUTED = "computed"
"""Name of the retriever if no pooled one is a BM25."""


class UsedBm25(Record, schema_name="bm25"):
    """The BM25 whose ranks are counted."""

    retriever: str = figure("name in the pool, or `computed`")
    tokens: str = figure("words or bigrams")
    depth: int = figure("documents ranked per query, at most")


def count_label_free(context: Context, pool: PoolConfig, qrels: pl.DataFrame) -> tuple[list[Measured], UsedBm25]:
    """Measure every query with a positive, in table order; BM25 ranks are from the pool, or computed if it has none."""
    corpus = context.corpus
    name, config = _bm25(context, pool)
    cut = cutter(config.tokens, build.kit(context).cache)
    rankings = context.read("pool", "rankings").filter(pl.col("retriever") == name)
    labelled_queries = context.queries.join(qrels, on="query_id", how="semi", maintain_order="left")
    queries = [Query(*row) for row in labelled_queries.select("query_id", "text").iter_rows()]
    if name == COMPUTED:
        same = IdMapping(corpus.ids().to_frame("id").with_columns(now="id"))
        retriever = Bm25(COMPUTED, config, build.kit(context))
        rankings = pl.concat(ranked(retriever, corpus, queries, pool.depth, same, context.progress))
    ranks = difficulty.best_ranks(rankings, qrels)
    positives = dict(qrels.group_by("query_id").agg("doc_id").iter_rows())
    labelled = set(qrels["doc_id"])
    tokens = {  # of labelled documents alone, while the corpus is streamed
        doc.doc_id: frozenset(cut(doc.shown())) for batch in corpus.batches() for doc in batch if doc.doc_id in labelled
    }
    measured = [
        difficulty.measure(
            query.query_id,
            query.text,
            frozenset(cut(query.text)),
            [tokens[doc_id] for doc_id in positives[query.query_id]],
            ranks.get(query.query_id),
        )
        for query in queries
    ]
    return measured, UsedBm25(name, config.tokens, pool.depth)


def _bm25(context: Context, pool: PoolConfig) -> tuple[str, Config]:
    """Return name and settings of the first pooled BM25; `COMPUTED` and default settings if there is none."""
    defined = context.definitions.get("retrievers", {})
    for name in pool.retrievers:
        settings = dict(defined.get(name, {}))
        if settings.pop("kind", name) == "bm25":
            return name, Config.model_validate(settings)
    return COMPUTED, Config()


# Analysis of a run: label-free measures, and a model's labels of a seeded sample.

REASONS, DIFFICULTY = "reasons", "difficulty"


class LabelShare(Record, schema_name="label"):
    """Share of a label among the labelled, with Wilson's interval."""

    label: str = figure("label of the question")
    count: int = figure("items that were given it")
    value: float | None = figure("share of the labelled")
    low: float | None = figure("lower bound of the 95 % interval")
    high: float | None = figure("upper bound")


class SampledLabel(Record, schema_name="row"):
    """A model's answer about one item."""

    query_id: str = figure("id of the query")
    doc_id: str | None = figure("id of the document")
    status: Literal["labelled", "refused", "unparsed", "failed"] = figure("outcome of the question")
    label: str | None = figure("label, if it is labelled")
    reason: str | None = figure("reason in the model's own words")


class QuestionFigures(Record, schema_name="question"):
    """A model's answers to one question."""

    model: str = figure("model that was asked")
    prompt: str = figure("name and digest of the question")
    population: int = figure("items that the sample was drawn from")
    drawn: int = figure("items of the sample")
    statuses: Mapping[str, int] = figure("status -> items")
    shares: tuple[LabelShare, ...] = figure("a row per label")
    groups: tuple[QueryGroup, ...] = figure("queries by label; empty for reasons")
    rows: tuple[SampledLabel, ...] = figure("sampled items, a row each")


class AnalysisFigures(Record, schema_name="figures"):
    """Why judges disagree and how hard queries are, or the plan (--plan)."""

    made_from: str | None = figure(
        "identifies the tables that it saw, so that the figures are not shown as those of others"
    )
    labels: str = figure("stage whose labels count")
    heuristic: bool = figure("whether heuristics alone judged")
    bm25: UsedBm25 = figure("BM25 whose ranks are counted")
    all: QueryGroup | None = figure("means over all queries with a positive; null without one")
    by_bm25_rank: tuple[QueryGroup, ...] = figure("queries by the best rank of a positive")
    queries: tuple[Measured, ...] = figure("a row per query with a positive")
    questions: Mapping[str, QuestionFigures] = figure("reasons and difficulty; empty without --model")


def planned(run: Run, model_name: str | None, sample_size: int) -> list[PlanRow]:
    """Return a row per question with unasked pairs: calls, tokens and most cost; nothing is sent."""
    context = run.beside("resolve")
    if model_name is None:
        raise ConfigError("--plan: without a model nothing is sent; name one with --model")
    model = _model(context, model_name)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        inquiries = _inquiries(run, context, sample_size)
        return Panel(ledger, context, [model]).planned(lambda panel: ask_inquiries(inquiries, panel))


def analyze(run: Run, model_name: str | None, sample_size: int) -> AnalysisFigures:
    """Return all figures, and write them to `checks/analyze.json`.

    A model, if one is named, is asked about `sample_size` contested pairs and as many queries; the ledger's answers are
    not asked for again.
    """
    context = run.beside("resolve")
    model = None if model_name is None else _model(context, model_name)
    with locked(run.folder):  # so that two processes do not pay for the same sample
        stage, seed = label_stage(run.folder), context.seed
        qrels = context.read(stage, "qrels")
        queries, bm25 = count_label_free(context, cast("PoolConfig", run.pipeline.sections["pool"]), qrels)
        figures = AnalysisFigures(
            made_from=made_from(context, "consensus", stage),
            labels=stage,
            heuristic=heuristic(context),
            bm25=bm25,
            all=difficulty.group("all", queries, len(queries), seed) if queries else None,
            by_bm25_rank=tuple(difficulty.by_rank(queries, seed)),
            queries=tuple(queries),
            questions={} if model is None else _question_figures(run, context, sample_size, model, queries),
        )
        CHECKS["analyze"].write(context.run, figures.to_json())
    return figures


def _question_figures(
    run: Run, context: Context, sample_size: int, model: AskedModel, queries: Sequence[Measured]
) -> dict[str, QuestionFigures]:
    inquiries = _inquiries(run, context, sample_size)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        config = cast("JudgeConfig", run.pipeline.sections["judge"])
        panel = Panel(ledger, context, [model], mixed_models=config.mixed_models)
        replies = panel.permitted("analyzing", lambda panel: ask_inquiries(inquiries, panel))
        names = (REASONS, DIFFICULTY)
        return {
            name: _label_figures(model, inquiry, inquiry_replies, queries if name == DIFFICULTY else (), context.seed)
            for name, inquiry, inquiry_replies in zip(names, inquiries, replies, strict=True)
        }


def _model(context: Context, name: str) -> AskedModel:
    return AskedModel.named(context, name, "--model", PURPOSE)


def _label_figures(
    model: AskedModel,
    inquiry: Inquiry,
    replies: Sequence[tuple[SampledPair, Said]],
    queries: Sequence[Measured],
    seed: int,
) -> QuestionFigures:
    """Return shares of labels among labelled pairs, counts by status, and groups of `queries` by label."""
    label_by_query = {pair.query_id: reply.label for pair, reply in replies if reply.label}
    counts = Counter(reply.label for _, reply in replies if reply.label)
    labels = list(inquiry.question.labels)
    return QuestionFigures(
        model=model.name,
        prompt=f"{inquiry.question.name} ({inquiry.question.digest[:12]})",
        population=inquiry.population,
        drawn=len(replies),
        statuses={name: sum(reply.status == name for _, reply in replies) for name in STATUSES},
        shares=tuple(_share(label, counts[label], counts.total()) for label in labels),
        groups=tuple(difficulty.grouped(queries, label_by_query, labels, seed)),
        rows=tuple(
            SampledLabel(pair.query_id, pair.doc_id, reply.status, reply.label, reply.reason) for pair, reply in replies
        ),
    )


def _share(label: str, count: int, labelled: int) -> LabelShare:
    interval = sample_estimates.wilson(count, labelled)
    return LabelShare(label, count, *(interval.bounds(4).values() if interval else (None, None, None)))


def _inquiries(run: Run, context: Context, sample_size: int) -> tuple[Inquiry, Inquiry]:
    """Return the inquiries why judges disagree (contested pairs) and how hard queries are (positives).

    A larger sample contains a smaller one, so earlier answers are reused. A query is shown with one random positive.
    """
    seed = context.seed
    verdicts = context.read("consensus", "verdicts").filter(pl.col("verdict") == "contested").sort(PAIR)
    contested = {(query, doc): votes for query, doc, votes in verdicts.select(*PAIR, "votes").iter_rows()}
    pairs = shuffled(list(contested), seed, PURPOSE, REASONS)[:sample_size]
    qrels = context.read(label_stage(run.folder), "qrels").sort(PAIR)
    positives = dict(qrels.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())
    queries = shuffled(list(positives), seed, PURPOSE, DIFFICULTY)[:sample_size]
    chosen = [(query, shuffled(positives[query], seed, PURPOSE, query)[0]) for query in queries]
    sampled = _pair_maker(context, cast("JudgeConfig", run.pipeline.sections["judge"]), [*pairs, *chosen])
    given = {pair: [grade for vote in contested[pair] if (grade := vote["grade"])] for pair in pairs}
    # in random order, which hides the judges
    grades = {pair: tuple(shuffled(given[pair], seed, PURPOSE, "grades", *pair)) for pair in pairs}
    return (
        Inquiry(
            packaged_question(context, f"analyze-{REASONS}"),
            tuple(sampled(*pair, grades[pair]) for pair in pairs),
            len(contested),
        ),
        Inquiry(
            packaged_question(context, f"analyze-{DIFFICULTY}"),
            tuple(sampled(*pair, ()) for pair in chosen),
            len(positives),
        ),
    )


def _pair_maker(
    context: Context, config: JudgeConfig, pairs: Sequence[tuple[str, str]]
) -> Callable[[str, str, tuple[str, ...]], SampledPair]:
    """Return a function from (query, document, grades) to a sampled pair with texts as shown to judges."""
    queries = dict(context.queries.select("query_id", "text").iter_rows())
    doc_ids = {doc for _, doc in pairs}
    batches = context.corpus.batches()
    passage_by_doc = {
        doc.doc_id: passages.cut(doc.shown(), config.passage_tokens)
        for batch in batches
        for doc in batch
        if doc.doc_id in doc_ids
    }

    def sampled_pair(query: str, doc: str, grades: tuple[str, ...]) -> SampledPair:
        return SampledPair(query, doc, passages.cut(queries[query], config.query_tokens), passage_by_doc[doc], grades)

    return sampled_pair
