"""What is put to a model about sampled pairs: planned, paid once, read again from the ledger by `llm_questions`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import polars as pl

from curate.ask import build
from curate.ask.llm_questions import Ask, AskedModel, QuestionClient, Talk
from curate.core.config import Json, plain, read_yaml, text_digest
from curate.core.errors import ConfigError
from curate.core.records import Query
from curate.core.sampling import shuffled
from curate.ledger import Ledger, default_path
from curate.llm import passages, questions
from curate.llm.questions import STATUSES, Question, Said, question
from curate.panel.voting import PAIR
from curate.pipeline.configs import PoolConfig
from curate.pipeline.freshness import MADE_FROM, label_stage, made_from
from curate.pipeline.judge_config import Config as JudgeConfig
from curate.pipeline.looked_up import heuristic
from curate.pipeline.stage import Context
from curate.retrieval.id_mapping import IdMapping, ranked
from curate.retrieval.retrievers.bm25 import Bm25, Config
from curate.retrieval.retrievers.tokens import cutter
from curate.runs.runner import Run
from curate.stats import difficulty, sample_estimates
from curate.stats.difficulty import Measured
from curate.system import resources
from curate.system.corpus import TableCorpus
from curate.system.files import write_json
from curate.system.run_lock import locked

PURPOSE = "analyze"


@dataclass(frozen=True)
class SampledPair:
    """A pair that is asked about, with its texts as they are shown."""

    query_id: str
    doc_id: str
    query: str
    passage: str
    grades: tuple[str, ...] = ()
    """What the judges gave, nameless."""


@dataclass(frozen=True)
class Inquiry:
    """One question about a sample."""

    question: Question
    items: tuple[SampledPair, ...]
    population: int
    """From how many pairs or queries the sample was drawn."""

    def talk(self, model: AskedModel) -> Talk[Said]:
        """Return what a model is asked, by the place of each item."""
        asks = {str(place): self._ask(item, model.settings.thinking_tokens) for place, item in enumerate(self.items)}
        return Talk(self.question.name, model, self.question.digest, asks, Said)

    def _ask(self, item: SampledPair, thinking_tokens: int) -> Ask[Said]:
        request = questions.build(
            self.question, item.query, item.passage, grades=item.grades, thinking_tokens=thinking_tokens
        )
        slots = (text_digest(item.passage),)
        return Ask(request, partial(questions.read, self.question), text_digest(item.query), slots)


def ask_inquiries(
    model: AskedModel, inquiries: Sequence[Inquiry], desk: QuestionClient
) -> list[list[tuple[SampledPair, Said]]]:
    """Return the items of each inquiry with what was said of them, one inquiry after the other.

    A dry desk plans what was never answered, and leaves it out.
    """
    found = []
    for inquiry in inquiries:
        (answers,) = desk.answers([inquiry.talk(model)])
        found.append([(item, answers[str(at)]) for at, item in enumerate(inquiry.items) if str(at) in answers])
    return found


# What can be counted of a run's queries: words shared with their positives, best BM25 rank of one, length.

COMPUTED = "computed"
"""Named in place of a retriever where none of the pooled ones is a BM25."""


@dataclass(frozen=True)
class Counted:
    """The queries with a positive, in the order of the table, and by which BM25 they were measured."""

    queries: list[Measured]
    bm25: str
    """Name of a pooled retriever, or `computed`."""
    tokens: str
    """`words` or `bigrams`, as that BM25 has them."""
    depth: int
    """Documents that it ranked for a query, at most."""


def count_label_free(context: Context, pool: PoolConfig, qrels: pl.DataFrame) -> Counted:
    """Return what can be counted of every query with a positive."""
    name, config = _bm25(context, pool)
    cut = cutter(config.tokens, build.kit(context).cache)
    rankings = context.read("pool", "rankings").filter(pl.col("retriever") == name)
    asked = context.read("diversify", "queries").join(qrels, on="query_id", how="semi", maintain_order="left")
    queries = [Query(*row) for row in asked.select("query_id", "text").iter_rows()]
    if name == COMPUTED:
        rankings = _ranked(context, config, queries, pool.depth)
    ranks = difficulty.best_ranks(rankings, qrels)
    positives = dict(qrels.group_by("query_id").agg("doc_id").iter_rows())
    tokens = _tokens(context, set(qrels["doc_id"]), cut)
    found = [
        difficulty.measure(
            query.query_id,
            query.text,
            frozenset(cut(query.text)),
            [tokens[doc_id] for doc_id in positives[query.query_id]],
            ranks.get(query.query_id),
        )
        for query in queries
    ]
    return Counted(found, name, config.tokens, pool.depth)


def _bm25(context: Context, pool: PoolConfig) -> tuple[str, Config]:
    """Return the first pooled retriever that is a BM25, and its settings; the usual settings if there is none."""
    defined = context.definitions.get("retrievers", {})
    for name in pool.retrievers:
        settings = dict(defined.get(name, {}))
        if settings.pop("kind", name) == "bm25":
            return name, Config.model_validate(settings)
    return COMPUTED, Config()


def _ranked(context: Context, config: Config, queries: list[Query], depth: int) -> pl.DataFrame:
    corpus = TableCorpus(context.folder("diversify"))
    same = IdMapping(corpus.ids().to_frame("id").with_columns(now="id"))
    retriever = Bm25(COMPUTED, config, build.kit(context))
    return pl.concat(ranked(retriever, corpus, queries, depth, same, context.progress))


def _tokens(context: Context, wanted: set[str], cut: Callable[[str], list[str]]) -> Mapping[str, frozenset[str]]:
    """Return the tokens of the wanted documents; the corpus streams."""
    batches = TableCorpus(context.folder("diversify")).batches()
    return {doc.doc_id: frozenset(cut(doc.shown())) for batch in batches for doc in batch if doc.doc_id in wanted}


# Analyze a finished run: measures that need no labels, and what a model says of a seeded sample.

SAMPLE = 100
REASONS, DIFFICULTY = "reasons", "difficulty"


@dataclass(frozen=True)
class AnalysisOptions:
    """What is to be asked of whom; without a model nothing is."""

    model: str | None = None
    sample: int = SAMPLE
    """Contested pairs, and queries, that are drawn at most."""


def planned(run: Run, order: AnalysisOptions) -> list[dict[str, Json]]:
    """Return a row per question that something is left to ask of: calls, tokens and cost at most; nothing is sent."""
    context = run.beside("resolve")
    if order.model is None:
        raise ConfigError("--plan: without a model nothing is sent; name one with --model")
    model = _model(context, order.model)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        desk = QuestionClient(ledger, context, dry=True)
        ask_inquiries(model, _inquiries(run, context, order), desk)
        return desk.rows()


def analyze(run: Run, order: AnalysisOptions) -> dict[str, Json]:
    """Return all figures as plain mappings, ask for what they lack, and write them to `checks/analyze.json`."""
    context = run.beside("resolve")
    model = None if order.model is None else _model(context, order.model)
    with locked(run.folder):  # so that two processes do not pay for the same sample
        stage = label_stage(run.folder)
        qrels = context.read(stage, "qrels")
        counted = count_label_free(context, cast("PoolConfig", run.pipeline.sections["pool"]), qrels)
        result: dict[str, Json] = {
            MADE_FROM: made_from(context, "consensus", stage),
            "labels": stage,
            "heuristic": heuristic(context),
            **_label_free(counted, context.seed),
            "questions": {} if model is None else _asked(run, context, order, model, counted),
        }
        context.out.mkdir(exist_ok=True)
        write_json(context.out / "analyze.json", result)
    return result


def _label_free(counted: Counted, seed: int) -> dict[str, Json]:
    queries = counted.queries
    whole = difficulty.group("all", queries, len(queries), seed) if queries else None
    return {
        "bm25": {"retriever": counted.bm25, "tokens": counted.tokens, "depth": counted.depth},
        "all": plain(whole),
        "by_bm25_rank": [plain(each) for each in difficulty.by_rank(queries, seed)],
        "queries": [plain(query) for query in queries],
    }


def _asked(run: Run, context: Context, order: AnalysisOptions, model: AskedModel, counted: Counted) -> dict[str, Json]:
    inquiries = _inquiries(run, context, order)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        dry = QuestionClient(ledger, context, dry=True)
        ask_inquiries(model, inquiries, dry)
        dry.permit("analyzing")
        config = cast("JudgeConfig", run.pipeline.sections["judge"])
        found = ask_inquiries(model, inquiries, QuestionClient(ledger, context, mixed_models=config.mixed_models))
        names = (REASONS, DIFFICULTY)
        return {
            name: _answered(model, inquiry, said, counted if name == DIFFICULTY else None, context.seed)
            for name, inquiry, said in zip(names, inquiries, found, strict=True)
        }


def _model(context: Context, name: str) -> AskedModel:
    return AskedModel.named(context, name, "--model", PURPOSE)


def _answered(
    model: AskedModel, inquiry: Inquiry, said: Sequence[tuple[SampledPair, Said]], counted: Counted | None, seed: int
) -> dict[str, Json]:
    """Return the shares of the labels among what was labelled, with Wilson intervals; the rest is counted apart."""
    given = [each.label for _, each in said if each.label]
    groups = {item.query_id: each.label for item, each in said if each.label}
    labels = list(inquiry.question.labels)
    return {
        "model": model.name,
        "prompt": f"{inquiry.question.name} ({inquiry.question.digest[:12]})",
        "population": inquiry.population,
        "drawn": len(said),
        "statuses": {name: sum(each.status == name for _, each in said) for name in STATUSES},
        "shares": [
            {"label": label, "count": given.count(label), **_share(given.count(label), len(given))} for label in labels
        ],
        "groups": []
        if counted is None
        else [plain(each) for each in difficulty.grouped(counted.queries, groups, labels, seed)],
        "rows": [
            {"query_id": item.query_id, "doc_id": item.doc_id, "status": e.status, "label": e.label, "reason": e.reason}
            for item, e in said
        ],
    }


def _share(hits: int, labelled: int) -> Mapping[str, Json]:
    found = sample_estimates.wilson(hits, labelled)
    return dict.fromkeys(("value", "low", "high")) if found is None else found.bounds(4)


def _inquiries(run: Run, context: Context, order: AnalysisOptions) -> tuple[Inquiry, Inquiry]:
    """Return the question why judges disagree about contested pairs, and how hard queries are about positives.

    A larger sample holds the smaller one, so what was asked before is not asked again. A query is asked about with one
    of its positives, drawn by chance.
    """
    seed = context.seed
    verdicts = context.read("consensus", "verdicts").filter(pl.col("verdict") == "contested").sort(PAIR)
    contested = {(query, doc): votes for query, doc, votes in verdicts.select(*PAIR, "votes").iter_rows()}
    pairs = shuffled(list(contested), seed, PURPOSE, REASONS)[: order.sample]
    qrels = context.read(label_stage(run.folder), "qrels").sort(PAIR)
    positives = dict(qrels.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())
    queries = shuffled(list(positives), seed, PURPOSE, DIFFICULTY)[: order.sample]
    chosen = [(query, shuffled(positives[query], seed, PURPOSE, query)[0]) for query in queries]
    item = _texts(context, cast("JudgeConfig", run.pipeline.sections["judge"]), [*pairs, *chosen])
    grades = {pair: _nameless(contested[pair], seed, pair) for pair in pairs}
    return (
        Inquiry(_question(context, REASONS), tuple(item(*pair, grades[pair]) for pair in pairs), len(contested)),
        Inquiry(_question(context, DIFFICULTY), tuple(item(*pair, ()) for pair in chosen), len(positives)),
    )


def _nameless(votes: Sequence[Mapping[str, str | None]], seed: int, pair: tuple[str, str]) -> tuple[str, ...]:
    """Return the grades of a pair in an order that says nothing of the judges; those that gave none are left out."""
    given = [grade for vote in votes if (grade := vote["grade"])]
    return tuple(shuffled(given, seed, PURPOSE, "grades", *pair))


def _texts(
    context: Context, config: JudgeConfig, pairs: Sequence[tuple[str, str]]
) -> Callable[[str, str, tuple[str, ...]], SampledPair]:
    """Return what makes an item of a pair and its grades, with the texts as judges are shown them."""
    queries = dict(context.read("diversify", "queries").select("query_id", "text").iter_rows())
    wanted = {doc for _, doc in pairs}
    batches = TableCorpus(context.folder("diversify")).batches()
    shown = {
        doc.doc_id: passages.cut(doc.shown(), config.passage_tokens)
        for batch in batches
        for doc in batch
        if doc.doc_id in wanted
    }

    def item(query: str, doc: str, grades: tuple[str, ...]) -> SampledPair:
        return SampledPair(query, doc, passages.cut(queries[query], config.query_tokens), shown[doc], grades)

    return item


def _question(context: Context, name: str) -> Question:
    path = resources.prompt(f"analyze-{name}", context.language)
    return question(read_yaml(path), str(path))
