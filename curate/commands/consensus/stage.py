"""The stage `consensus`: ratings become verdicts and qrels, and the panel's agreement is measured.

In: queries of `diversify`, rankings, ratings and panel. Out: `verdicts` (every judged pair), `qrels` (the
positives), `contested` and `incomplete` pairs in tables of their own, `dropped` (documents that a
refined corpus leaves out), and agreement.json: the panel's agreement on all pairs and on the top of the pool, each
figure with a 95 % interval that resamples queries. After a cascade it is measured on the pairs that every judge rated.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from curate.core.config import Json, check
from curate.core.records import FILTERED, STOPPED
from curate.core.scale import Scale
from curate.panel import agreement_figures, position_bias, sanity, voting
from curate.panel.rules import ConsensusRule
from curate.panel.voting import Policy
from curate.pipeline.configs import ConsensusConfig as Config
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.facts import pooled
from curate.pipeline.stage import Context, Report, Stage
from curate.retrieval import ranking
from curate.system.files import frame, read_json, write_json, write_table


def consensus(
    ratings: pl.DataFrame, panel: Sequence[str], policy: Policy | ConsensusRule, scale: Scale
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the verdicts of a panel's ratings under a policy, and the qrels of the positives."""
    verdicts = voting.decide(ratings, panel, policy, scale)
    positive = verdicts.filter(pl.col("verdict") == "relevant")
    return verdicts, positive.select("query_id", "doc_id", score=pl.lit(1))


def run(config: Config, context: Context) -> Report:
    """Decide every pair, measure agreement, and write the tables of the benchmark."""
    ratings = context.read("judge", "ratings")
    identities = read_json(context.folder("judge") / "panel.json")
    panel = sorted(identities)
    verdicts, qrels = consensus(ratings, panel, config.policy, context.scale)
    removed = voting.refined_out(verdicts) if config.corpus == "refined" else []
    _write(context.out, verdicts, qrels, removed)
    facts = voting.counts(verdicts, len(pooled(context)))
    if removed:
        facts["ndcg_at_10"] = _mean_ndcg(context.read("pool", "rankings"), qrels, set(removed))
    sample, pool = context.read("judge", "samples"), context.read("pool", "pool")
    agreed = agreement_figures.on_parts(ratings, panel, sample, pool, context.seed, context.scale, context.progress)
    outcome = pl.coalesce("grade", "status").alias("outcome")
    counts = ratings.group_by("judge", outcome).len().sort("judge", "outcome")
    figures = {
        "panel": panel,
        "policy": voting.name_of(config.policy),
        "counts": facts,
        "grades": {
            str(judge): dict(rows.select("outcome", "len").iter_rows())
            for (judge,), rows in counts.group_by("judge", maintain_order=True)
        },
        **agreed.to_json(),
    }
    write_json(context.out / "agreement.json", figures)
    decided = len(verdicts.filter(pl.col("verdict").is_in(["relevant", "not relevant"])))
    if position_effects := _position_effects(
        ratings, [name for name in panel if "rubric" in identities[name]], context.scale
    ):
        facts["places"] = position_effects
    notes = [*_notes(config.policy, ratings, context), *sanity.panel(ratings, panel, context.scale)]
    positive_queries = facts["queries_with_a_positive"]
    assert isinstance(positive_queries, int)
    enough = len(ratings) >= sanity.LEAST
    if enough and (too_few := sanity.survivors(positive_queries, ratings["query_id"].n_unique())):
        notes.append(too_few)
    notes += [
        f"{name}: its grades depend on the place in the prompt"
        for name, (_, depends) in position_effects.items()
        if depends
    ]
    return Report(len(verdicts), decided, len(verdicts) - decided, facts=facts, notes=notes)


def _notes(policy: Policy | ConsensusRule, ratings: pl.DataFrame, context: Context) -> list[str]:
    """Return a note if ratings of a cascade, which stops once unanimity is decided, are used under another policy."""
    stopped = ratings.filter(pl.col("status") == STOPPED).select(voting.PAIR).n_unique()
    asked_by_policy = check(JudgeConfig, context.settings.get("judge") or {}, "judge").cascade is not None
    if policy == "unanimous" or asked_by_policy or not stopped:
        return []
    limit = (
        f"{voting.name_of(policy)} sees no more of {stopped:,} pairs than the cascade asked for, and that is what "
        "`unanimous` needs"
    )
    return [f"consensus.policy: {limit}; judge without a cascade to have it decide all of them"]


def _position_effects(
    ratings: pl.DataFrame, models: Sequence[str], scale: Scale
) -> dict[str, tuple[float | None, bool | None]]:
    """Return model -> share of its grades' variance explained by position in the prompt, and whether it matters."""
    shares = {
        name: position_bias.explained(ratings.filter(pl.col("judge") == name), scale)
        for name in models
        if ratings.filter((pl.col("judge") == name) & pl.col("slot").is_not_null()).height
    }
    return {name: (_four(share), position_bias.depends(share, p)) for name, (share, p) in shares.items()}


def _write(out: Path, verdicts: pl.DataFrame, qrels: pl.DataFrame, removed: Sequence[str]) -> None:
    write_table(out, "verdicts", verdicts)
    write_table(out, "qrels", qrels)
    for name in ("contested", "incomplete"):
        write_table(out, name, verdicts.filter(pl.col("verdict") == name))
    reason = "refined corpus: contested or incomplete somewhere, positive nowhere"
    rows = ({"table": "corpus", "id": name, "stage": "consensus", "reason": reason} for name in removed)
    write_table(out, "dropped", frame("dropped", rows))


def _mean_ndcg(rankings: pl.DataFrame, qrels: pl.DataFrame, removed: set[str]) -> dict[str, Json]:
    """Return mean nDCG@10 of every pooled retriever on the full and on the refined corpus; None without a positive."""
    relevant = {str(key[0]): set(rows["doc_id"]) for key, rows in qrels.group_by("query_id")}
    full, refined = (ranking.mean_ndcg(rankings, relevant, without=without) for without in (set[str](), removed))
    return {name: {"full": _four(mean), "refined": _four(refined[name])} for name, mean in full.items()}


def _four(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 4)


STAGE = Stage("consensus", Config, (FILTERED, "pool", "judge"), run, head=("seed",), version=4)
