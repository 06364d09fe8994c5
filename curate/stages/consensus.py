"""Consensus: turn ratings into verdicts, measure agreement, and say which pairs make the benchmark.

In: queries of `diversify`, rankings, ratings and panel. Out: `verdicts` (every judged pair), `qrels` (the
unanimous positives), `contested` and `incomplete` pairs in tables of their own, `dropped` (documents that a
refined corpus leaves out), and agreement.json: the panel's agreement on all pairs and on the top of the pool, each
figure with a 95 % interval that resamples queries. After a cascade it is measured on the pairs that everybody rated.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import polars as pl

from curate import measures, ranking, voting
from curate.config import Json, Section
from curate.context import Context, Report, Stage
from curate.files import frame, read_json, write_json, write_table
from curate.records import VERDICTS

TOP = 50
"""Positions of the pool on which agreement is measured apart: it depends on depth and on how common positives are."""


class Config(Section):
    """How votes become verdicts."""

    policy: Literal["unanimous"] = "unanimous"
    corpus: Literal["full", "refined"] = "full"
    """refined drops documents that are contested or incomplete somewhere and positive nowhere."""


def consensus(ratings: pl.DataFrame, panel: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the verdicts of a panel's ratings, and the qrels of the unanimous positives."""
    verdicts = voting.unanimous(ratings, panel)
    positive = verdicts.filter(pl.col("verdict") == "relevant")
    return verdicts, positive.select("query_id", "doc_id", score=pl.lit(1))


def refine(verdicts: pl.DataFrame) -> list[str]:
    """Return the documents that a refined corpus leaves out: in doubt for some query, positive for none."""
    doubtful = verdicts.filter(pl.col("verdict").is_in(["contested", "incomplete"]))["doc_id"]
    positive = verdicts.filter(pl.col("verdict") == "relevant")["doc_id"]
    return sorted(set(doubtful) - set(positive))


def run(config: Config, context: Context) -> Report:
    """Decide every pair, measure agreement, and write what the benchmark is made of."""
    ratings = context.read("judge", "ratings")
    panel = sorted(read_json(context.folder("judge") / "panel.json"))
    verdicts, qrels = consensus(ratings, panel)
    removed = refine(verdicts) if config.corpus == "refined" else []
    _write(context.out, verdicts, qrels, removed)
    facts = _counts(verdicts, qrels, queries=len(context.read("diversify", "queries")))
    if removed:
        facts["ndcg_at_10"] = _effect(context.read("pool", "rankings"), qrels, set(removed))
    sample = context.read("judge", "samples")
    rated = (
        ratings if sample.is_empty() else ratings.join(sample, on=voting.PAIR, how="semi")
    )  # whoever a cascade asked
    figures: dict[str, Json] = {
        "panel": panel,
        "policy": config.policy,
        "counts": facts,
        "grades": _grades(ratings),
        **measures.measure(rated, panel, context.seed),
        "top_50": _on_top(rated, context.read("pool", "pool"), panel, context.seed),
    }
    write_json(context.out / "agreement.json", figures)
    decided = len(verdicts.filter(pl.col("verdict").is_in(["relevant", "not relevant"])))
    return Report(len(verdicts), decided, len(verdicts) - decided, facts=facts)


def _write(out: Path, verdicts: pl.DataFrame, qrels: pl.DataFrame, removed: Sequence[str]) -> None:
    write_table(out, "verdicts", verdicts)
    write_table(out, "qrels", qrels)
    for name in ("contested", "incomplete"):
        write_table(out, name, verdicts.filter(pl.col("verdict") == name))
    reason = "refined corpus: contested or incomplete somewhere, positive nowhere"
    rows = ({"table": "corpus", "id": name, "stage": "consensus", "reason": reason} for name in removed)
    write_table(out, "dropped", frame("dropped", rows))


def _counts(verdicts: pl.DataFrame, qrels: pl.DataFrame, queries: int) -> dict[str, Json]:
    """Return pairs by verdict, in all and a query; means are None without queries."""
    counts: dict[str, int] = {name: len(verdicts.filter(pl.col("verdict") == name)) for name in VERDICTS}
    return {
        **counts,
        "queries": queries,
        "queries_with_a_positive": qrels["query_id"].n_unique(),
        **{f"{name}_per_query": round(count / queries, 4) if queries else None for name, count in counts.items()},
    }


def _on_top(ratings: pl.DataFrame, pool: pl.DataFrame, panel: Sequence[str], seed: int) -> dict[str, Json] | None:
    """Return the agreement on the first `TOP` positions of the pool, None where no pool goes deeper."""
    top = pool.filter(pl.col("position") <= TOP)
    if len(top) == len(pool):
        return None
    return measures.measure(ratings.join(top, on=voting.PAIR, how="semi"), panel, seed)


def _grades(ratings: pl.DataFrame) -> dict[str, Json]:
    """Return judge -> grade or status -> count."""
    said = pl.coalesce("grade", "status").alias("said")
    counted = ratings.group_by("judge", said).len().sort("judge", "said")
    grades: dict[str, dict[str, Json]] = {}
    for judge, word, count in counted.iter_rows():
        grades.setdefault(judge, {})[word] = count
    return dict(grades)


def _effect(rankings: pl.DataFrame, qrels: pl.DataFrame, removed: set[str]) -> dict[str, Json]:
    """Return mean nDCG@10 of every pooled retriever on the full and on the refined corpus; None without a positive."""
    relevant = {str(key[0]): set(part["doc_id"]) for key, part in qrels.group_by("query_id")}
    effect: dict[str, Json] = {}
    for (retriever,), part in rankings.sort("retriever", "query_id", "rank").group_by("retriever", maintain_order=True):
        lists = {str(key[0]): hits["doc_id"].to_list() for key, hits in part.group_by("query_id", maintain_order=True)}
        kept = {query: [doc for doc in hits if doc not in removed] for query, hits in lists.items()}
        effect[str(retriever)] = {"full": _ndcg(lists, relevant), "refined": _ndcg(kept, relevant)}
    return effect


def _ndcg(lists: Mapping[str, list[str]], relevant: Mapping[str, set[str]]) -> float | None:
    scores = [ranking.ndcg(lists.get(query, []), wanted) for query, wanted in sorted(relevant.items())]
    return round(sum(scores) / len(scores), 4) if scores else None


STAGE = Stage("consensus", Config, ("diversify", "pool", "judge"), run, head=("seed",))
