"""Effects of corrected labels on a comparison of systems: scores and ranks under both, and their correlation."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np
import polars as pl

from curate.ask import build, seating
from curate.commands.audit import Config, page
from curate.commands.audit import labels as audit
from curate.commands.audit.correction import corrected_counts
from curate.commands.audit.labels import mean
from curate.core.config import Json, check
from curate.core.duplicates import same_text
from curate.core.errors import ConfigError, DataError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Benchmark
from curate.core.records import Query
from curate.ledger import Ledger, default_path
from curate.panel.audit_design import strata
from curate.panel.voting import PAIR
from curate.pipeline import stages
from curate.pipeline.judge_config import Config as JudgeConfig
from curate.pipeline.stage import Context, Report, Stage
from curate.retrieval import ranking
from curate.review import Desk
from curate.review.desk import graded_desks, relevance_desks
from curate.runs import card_facts
from curate.stats import rank_correlation
from curate.stats.bootstrap import FEW
from curate.stats.tally import Floats
from curate.system.corpus import TableCorpus
from curate.system.files import frame, read_json, write_json, write_table, write_text
from curate.tables.exporters import EXPORTERS, manifest
from curate.view import run_figures

TOP = 10
DIGITS = 5
Labels = Mapping[str, Collection[str]]
"""Query -> its relevant documents."""


@dataclass(frozen=True)
class Effect:
    """One system under the old and the new labels: means over the queries that have a positive under both."""

    system: str
    ndcg_old: float
    ndcg_new: float
    change: float
    low: float | None
    """Bounds of the 95 % interval of the change of nDCG@10, which resamples queries."""
    high: float | None
    recall_old: float
    recall_new: float
    judged: float | None
    """Share of its first ten documents that the panel judged: what was not counts as not relevant."""
    rank_old: int = 0
    rank_new: int = 0
    circular: bool = False
    """Whether its encoder is also a judge: the new labels are then its own, and its score proves nothing."""


def compare(
    rankings: pl.DataFrame,
    old: pl.DataFrame,
    new: pl.DataFrame,
    judged: pl.DataFrame,
    *,
    depth: int,
    seed: int,
    judges: Collection[str] = (),
) -> dict[str, Json]:
    """Return `queries` (how many are compared), `systems` (`Effect`s, best first under the new labels), and `tau_b`.

    `rankings` is a table of that name; recall is at `depth`, which stands in its keys: `recall_at_50_old`. The
    orders are those by nDCG@10. `judges` are the encoders that are judges.
    """
    before, after, seen = _by_query(old), _by_query(new), _by_query(judged)
    queries = sorted(before.keys() & after.keys())
    found = []
    for (system,), part in rankings.sort("retriever", "query_id", "rank").group_by("retriever", maintain_order=True):
        lists = {str(key[0]): hits["doc_id"].to_list() for key, hits in part.group_by("query_id", maintain_order=True)}
        if queries:
            ranked = {query: lists.get(query, []) for query in queries}
            found.append(_effect(str(system), ranked, before, after, seen, depth, seed))
    ranks = [_ranks([each.ndcg_old for each in found]), _ranks([each.ndcg_new for each in found])]
    placed = [
        replace(each, rank_old=one, rank_new=two, circular=each.system in judges)
        for each, one, two in zip(found, *ranks, strict=True)
    ]
    scores = [{each.system: getattr(each, side) for each in found} for side in ("ndcg_old", "ndcg_new")]
    return {
        "queries": len(queries),
        "recall_depth": depth,
        "systems": [_named(each, depth) for each in sorted(placed, key=lambda each: (each.rank_new, each.system))],
        "tau_b": rank_correlation.tau_b(*scores),
    }


def _named(effect: Effect, depth: int) -> dict[str, Json]:
    """Return an effect with the depth of recall in its keys."""
    return {name.replace("recall_", f"recall_at_{depth}_"): value for name, value in asdict(effect).items()}


def _effect(
    system: str, ranked: Mapping[str, Sequence[str]], old: Labels, new: Labels, seen: Labels, depth: int, seed: int
) -> Effect:
    """Return what the labels do to one system, its ranks left out."""
    before, after = (_each(ranked, labels) for labels in (old, new))
    change, low, high = mean(after - before, seed)
    shown = [doc in seen.get(query, ()) for query, docs in ranked.items() for doc in docs[:TOP]]
    return Effect(
        system=system,
        ndcg_old=_rounded(before.mean()),
        ndcg_new=_rounded(after.mean()),
        change=_rounded(change),
        low=None if low is None else _rounded(low),
        high=None if high is None else _rounded(high),
        recall_old=_rounded(np.mean([recall(docs, old[query], depth) for query, docs in ranked.items()])),
        recall_new=_rounded(np.mean([recall(docs, new[query], depth) for query, docs in ranked.items()])),
        judged=_rounded(np.mean(shown)) if shown else None,
    )


def _each(ranked: Mapping[str, Sequence[str]], labels: Labels) -> Floats:
    """Return the nDCG@10 of every query."""
    return np.array([ranking.ndcg(docs, labels[query], TOP) for query, docs in ranked.items()])


def recall(docs: Sequence[str], relevant: Collection[str], depth: int) -> float:
    """Return the share of the relevant documents among the first `depth` of a ranking; `relevant` is not empty."""
    return len(set(docs[:depth]) & set(relevant)) / len(relevant)


def _ranks(scores: Sequence[float]) -> list[int]:
    """Return the rank of every score, 1 for the highest; equal scores share the better one."""
    return [1 + sum(other > score for other in scores) for score in scores]


def _rounded(figure: float | np.floating) -> float:
    return round(float(figure), DIGITS)


def _by_query(pairs: pl.DataFrame) -> dict[str, set[str]]:
    return {str(key[0]): set(part["doc_id"]) for key, part in pairs.group_by("query_id")}


# Audit: compare the labels that a set came with to what the panel says of the documents retrieved for its queries.

NAMED = 20
"""Labels of unknown texts that are named."""
LABELS = (
    "These are the labels that the set came with, less those that every judge found not relevant, and with the pairs "
    "that the panel found relevant. Labels that it left open, or whose text was not judged, are unchanged."
)
SCORES = (
    "Scores are those of the set: {0} and above mean relevant, what was added has {0}, lower ones are as they were. "
    "MTEB's nDCG takes every score as a gain, also one below {0}; its MAP and recall take every score above 0 as "
    "relevant and mean nothing here."
)
"""What is said besides where scores of the set are below the cut."""


def run(config: Config, context: Context) -> Report:
    """Compare, measure, repair and show."""
    labels, cut = context.legacy_positives(), context.relevant_from or 1
    if labels.is_empty():
        raise DataError(
            f"audit: found no label above {cut - 1}, expected the labels to audit; give ingest.qrels, or another set"
        )
    queries, verdicts = context.read("diversify", "queries"), context.read("consensus", "verdicts")
    documents = _firsts(context, "corpus", "doc_id")
    compared = audit.compare(verdicts, labels, _firsts(context, "queries", "query_id"), documents)
    counts = audit.count(compared, queries["query_id"].to_list())
    patches = _with_calls(audit.patch(compared, documents, context.scale), context)
    given = labels if context.relevant_from is None else context.read("diversify", "qrels")
    repaired = audit.repaired(given, patches, cut)
    positives = repaired.filter(pl.col("score") >= cut)
    depth = _depth(config, context)
    rankings = _rankings(config, context, depth)
    with waiting(context.progress, StepLabel("measuring labels and systems")):
        found: dict[str, Any] = {
            **_set(context, counts),
            **({} if context.relevant_from is None else {"relevant_from": cut}),
            "dependence": card_facts.dependence(context),
            "measures": audit.measures(counts, context.seed),
            "patch": audit.sizes(patches),
            "masking": _masking(context, patches),
            "corrected": [
                corrected_counts(desk, strata(verdicts, labels), queries["query_id"].to_list())
                for desk in _desks(context)
            ],
            "systems": compare(
                rankings, labels, positives, verdicts, depth=depth, seed=context.seed, judges=_encoders(context)
            ),
        }
    _write(context, compared, counts, patches, repaired)
    _export(context, repaired, positives, found)
    write_json(context.out / "audit.json", found)
    write_text(context.out / "audit.html", _page(config, context, found, compared, counts))
    return Report(len(compared), len(repaired), facts={"labels": len(labels), **found["patch"]}, notes=_notes(found))


def _firsts(context: Context, table: str, column: str) -> pl.DataFrame:
    """Return every id, in a column of that name, and the `first` one whose text was the same before masking."""
    same = same_text(context.read("mask", "classes"), table)
    return same.select(pl.col("id").alias(column), first=pl.col("id").first().over("class"))


def _set(context: Context, counts: pl.DataFrame) -> dict[str, Json]:
    """Return what audit.json says of the set and the panel."""
    panel = read_json(context.folder("judge") / "panel.json")
    lost = context.read("mask", "dropped").filter(pl.col("table") == "qrels").sort("id")
    return {
        "name": context.name,
        "queries": len(counts),
        "queries_without_label": int((counts["labels"] == 0).sum()),
        "pairs": len(context.read("consensus", "verdicts")),
        "panel": sorted(panel),
        "heuristic": all("heuristic" in identity for identity in panel.values()),
        "unknown": {
            "labels": len(lost),
            "reasons": dict(lost.group_by("reason").len().sort("reason").iter_rows()),
            "named": lost["id"].head(NAMED).to_list(),
        },
    }


def _masking(context: Context, patches: pl.DataFrame) -> dict[str, Json]:
    """Return how many texts masking made equal to others or took much of, and how many lines of a patch name one."""
    altered, facts = context.read("mask", "altered"), context.done("mask").facts
    named = [
        pl.col(column).is_in(altered.filter(pl.col("table") == table)["id"].implode())
        for table, column in (("queries", "query_id"), ("corpus", "doc_id"))
    ]
    counts: dict[str, Json] = {
        fact: sum(int(cast("int", facts.get(f"{fact}_{table}", 0))) for table in ("queries", "corpus"))
        for fact in ("made_equal", "shortened")
    }
    return {**counts, "patched": patches.filter(pl.any_horizontal(named)).height}


def _encoders(context: Context) -> set[str]:
    """Return the encoders whose similarity is a judge of the panel."""
    panel = read_json(context.folder("judge") / "panel.json")
    return {str(identity["encoder"]) for identity in panel.values() if "encoder" in identity}


def _with_calls(patches: pl.DataFrame, context: Context) -> pl.DataFrame:
    """Return the patch with the ledger's ids of the calls in which language models graded its pairs."""
    panel = read_json(context.folder("judge") / "panel.json")
    asked = tuple(name for name, identity in panel.items() if "rubric" in identity)
    calls = pl.DataFrame(schema={**dict.fromkeys(PAIR, pl.String), "calls": pl.String})
    if asked:
        section = check(JudgeConfig, context.settings.get("judge") or {}, "judge")
        with Ledger(context.ledger or default_path(context.home)) as ledger:
            run = seating.seated(section.model_copy(update={"models": asked}), context, ledger)
            found = [
                run.table.pool.pairs.join(run.table.standing(seat), on=["query_digest", "passage_digest"])
                .filter(pl.col("call_id").is_not_null())
                .select(*PAIR, calls=pl.concat_str(pl.lit(f"{seat.name}="), "call_id"))
                for seat in run.paid()
            ]
        calls = pl.concat(found).sort(*PAIR, "calls").group_by(PAIR).agg(pl.col("calls").str.join(" "))
    return patches.join(calls, on=PAIR, how="left", maintain_order="left")


def _depth(config: Config, context: Context) -> int:
    """Return the depth to which every system was asked: below it the pooled ones have nothing."""
    pooled: Any = check(stages.config("pool"), context.settings.get("pool") or {}, "pool")
    return min(config.recall, int(pooled.depth))


def _rankings(config: Config, context: Context, depth: int) -> pl.DataFrame:
    """Return what the pooled retrievers found, and what further systems rank."""
    pooled = context.read("pool", "rankings")
    queries = [Query(*row) for row in context.read("diversify", "queries").select("query_id", "text").iter_rows()]
    corpus = TableCorpus(context.folder("diversify"))
    parts = [pooled]
    for name in config.systems:
        retriever = build.retriever(context, name)
        found = ranking.ask(retriever, corpus, queries, depth, context.progress)
        parts += [ranking.frame(name, asked, hits, depth) for asked, hits in found]
    return pl.concat(parts)


def _desks(context: Context) -> list[Desk]:
    """Return the samples of this audit that people were given, by name."""
    return [desk for desk in graded_desks(context.run) if desk.sample.design.facts.get("of") == "audit"]


def _write(
    context: Context, compared: pl.DataFrame, counts: pl.DataFrame, patches: pl.DataFrame, repaired: pl.DataFrame
) -> None:
    for name, table in (("compared", compared), ("audited", counts), ("patch", patches), ("qrels", repaired)):
        write_table(context.out, name, table)
    patches.write_csv(context.out / "patch.tsv", separator="\t")
    named = repaired.select(pl.col("query_id").alias("query-id"), pl.col("doc_id").alias("corpus-id"), "score")
    named.write_csv(context.out / "qrels.tsv", separator="\t")


def _export(context: Context, repaired: pl.DataFrame, positives: pl.DataFrame, found: Mapping[str, Any]) -> None:
    """Write the repaired set, its queries with a positive, as a folder that stock mteb loads; ids stay as they were."""
    queries = context.read("diversify", "queries").join(positives, on="query_id", how="semi", maintain_order="left")
    rubric = context.done("judge").facts.get("rubric")
    benchmark = Benchmark(
        name=f"{context.name}-repaired",
        language=context.language,
        queries=queries,
        corpus=TableCorpus(context.folder("diversify")),
        qrels=repaired.join(queries, on="query_id", how="semi", maintain_order="left"),
        candidates=frame("qrels"),
        verdicts=context.read("consensus", "verdicts").join(queries, on="query_id", how="semi"),
        scale=context.scale,
        relevant_from=context.relevant_from or 1,
        facts={
            "weak_judges": found["heuristic"],
            "judges": found["panel"],
            "dependence": card_facts.warned(found["dependence"]),
            "prompts": [rubric] if rubric else [],
            "parts": card_facts.had_a_part(context),
            "repaired": LABELS if (cut := context.relevant_from or 1) == 1 else f"{LABELS} {SCORES.format(cut)}",
        },
        duplicates="keep",
    )
    (context.out / "mteb").mkdir()
    EXPORTERS.load("mteb")(benchmark, context.out / "mteb")
    manifest.write(context.out / "mteb", {"name": benchmark.name, "language": context.language, "format": "repaired"})


def _page(
    config: Config, context: Context, found: Mapping[str, Any], compared: pl.DataFrame, counts: pl.DataFrame
) -> str:
    """Return the page; of the documents only the beginnings of its examples are held."""
    worst = page.worst(counts, config.worst)
    pairs = page.examples(compared, worst, config.examples)
    wanted = set(pairs["doc_id"])
    corpus = TableCorpus(context.folder("diversify"))
    passages = {
        doc.doc_id: run_figures.excerpt(doc.shown(), config.excerpt)
        for batch in corpus.batches()
        for doc in batch
        if doc.doc_id in wanted
    }
    asked = dict(context.read("diversify", "queries").select("query_id", "text").iter_rows())
    cards = page.cards(worst, pairs, counts, asked, passages)
    return page.page(found, cards, context.language, context.scale)


def _notes(found: Mapping[str, Any]) -> list[str]:
    """Return what must be known before a figure is used."""
    notes = [f"WARNING: {said}" for said in found["dependence"]["warnings"]]
    if found["heuristic"]:
        notes.append("all judges are heuristics: the means show the machinery and are no evidence about the labels")
    if found["queries"] < FEW:
        notes.append(f"with fewer than {FEW} queries the intervals are too narrow")
    if lost := found["unknown"]["labels"]:
        notes.append(
            f"{lost:,} labels name texts that are not there, and are in no figure: see `unknown` in audit.json"
        )
    if lines := found["masking"]["patched"]:
        notes.append(
            f"{lines:,} lines of the patch are about texts that masking made equal to others or took more than a third "
            "of, so the panel did not see what they said: see `curate show mask/altered`"
        )
    old = [each["sample"] for each in found["corrected"] if each["outdated"]]
    notes += [f"the sample {name!r} was drawn of other verdicts and corrects nothing" for name in old]
    return notes


def fingerprint(config: Config, context: Context) -> Json:
    """Check that equal and similar texts are kept; return what systems are scored and what people said."""
    diversify = context.settings.get("diversify")
    if context.duplicates != "keep" or not isinstance(diversify, Mapping) or diversify.get("enabled") is not False:
        raise ConfigError(
            "audit: expected every text of the set under its own id; set ingest.duplicates: keep and "
            "diversify.enabled: false, as pipelines/audit.yaml does"
        )
    pool = context.settings.get("pool")
    if isinstance(pool, Mapping) and pool.get("queries"):
        raise ConfigError("audit: found pool.queries, expected all queries judged; take a sample with ingest.sample")
    desks = [*_desks(context), *relevance_desks(context.run)]  # these tell of the judges too
    answers: dict[str, Json] = {desk.sample.design.name: desk.digest for desk in desks}
    scores: dict[str, Json] = {} if context.relevant_from is None else {"relevant_from": context.relevant_from}
    systems = {name: build.retriever(context, name).identity for name in config.systems}
    return {"systems": systems, "answers": answers, **scores}


STAGE = Stage("audit", Config, ("mask", "diversify", "pool", "judge", "consensus"), run, fingerprint, version=3)
