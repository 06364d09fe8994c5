"""Labels of an export: graded relevance, candidates for a reranker, and contributors of the benchmark."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import polars as pl
from pydantic import Field

from curate.core import sampling
from curate.core.config import Json, Section, Settings
from curate.core.records import TABLES
from curate.core.scale import Scale
from curate.panel.voting import PAIR


class Rerank(Section):
    """How a reranker's candidates are drawn."""

    enabled: bool = True
    positives: int = Field(default=10, ge=1, description="of a query, at most; beyond 10 MAP@10 cannot reach 1")
    negatives: int = Field(default=20, ge=1, description="negatives of a query, exactly")
    draw: Literal["uniform", "by_grade", "by_rank"] = Field(
        default="uniform", description="by_grade takes the best-graded negatives first, by_rank the best-ranked"
    )
    queries: int | None = Field(
        default=None,
        ge=1,
        exclude_if=lambda value: value is None,  # so that no manifest and no digest of before is another one
        description="size of a query set of its own, drawn by the seed, whose queries are in no retrieval task; "
        "by default both tasks share their queries",
    )

    @property
    def apart(self) -> bool:
        """Return whether reranking uses separate queries."""
        return self.enabled and self.queries is not None


def candidates(
    verdicts: pl.DataFrame, pool: pl.DataFrame, rerank: Rerank, seed: int, scale: Scale
) -> tuple[pl.DataFrame, list[str]]:
    """Return a reranker's candidates (query_id, doc_id, score 1 or 0), and the queries that have too few negatives.

    A query contributes at most `rerank.positives` positives and exactly `rerank.negatives` negatives. Positives are
    drawn by seed, negatives as `rerank.draw` says. Contested and incomplete pairs are never candidates. With
    `rerank.queries`, that many of these queries are drawn by seed, or all if there are fewer.
    """
    position = pool.select("query_id", "doc_id", "position")
    judged = verdicts.filter(pl.col("verdict").is_in(["relevant", "not relevant"])).join(
        position, on=["query_id", "doc_id"]
    )
    rows: list[dict[str, object]] = []
    short: list[str] = []
    for (query_id,), pairs in judged.sort("query_id", "doc_id").group_by("query_id", maintain_order=True):
        kinds = {
            bool(key[0]): group for key, group in pairs.group_by(pl.col("verdict") == "relevant", maintain_order=True)
        }
        if True not in kinds:
            continue
        if False not in kinds or len(kinds[False]) < rerank.negatives:
            short.append(str(query_id))
            continue
        positives = sampling.shuffled(kinds[True]["doc_id"].to_list(), seed, "rerank", "positives", str(query_id))
        negatives = _ordered(kinds[False], rerank.draw, seed, str(query_id), scale)
        for score, chosen in ((1, positives[: rerank.positives]), (0, negatives[: rerank.negatives])):
            rows.extend({"query_id": query_id, "doc_id": doc_id, "score": score} for doc_id in sorted(chosen))
    qrels = pl.DataFrame(rows, TABLES["qrels"]).sort("query_id", "doc_id")
    if rerank.queries is not None:
        query_ids = qrels["query_id"].unique().sort().to_list()
        drawn = sampling.shuffled(query_ids, seed, "rerank", "queries")[: rerank.queries]
        qrels = qrels.filter(pl.col("query_id").is_in(drawn))
    return qrels, short


def _ordered(negatives: pl.DataFrame, draw: str, seed: int, query_id: str, scale: Scale) -> list[str]:
    """Return a query's negatives in the order in which they are drawn; ties are broken by seed."""
    rows = sampling.shuffled(
        list(negatives.select("doc_id", "votes", "position").iter_rows()), seed, "rerank", query_id
    )
    if draw == "by_grade":
        rows.sort(key=lambda row: sum(scale.place(vote["grade"]) for vote in row[1] if vote["grade"]))
    elif draw == "by_rank":
        rows.sort(key=lambda row: row[2])
    return [row[0] for row in rows]


# Contributors of a benchmark: its retrievers and judges, under every name by which one may come back.

ROLES = ("retriever", "reranker", "judge", "generator")
"""Roles of contributors (models that had a part in the benchmark); a generator wrote texts, such as paraphrases."""


def parts(
    retrievers: Iterable[str],
    panel: Mapping[str, Mapping[str, Json]],
    definitions: Mapping[str, Mapping[str, Settings]],
) -> dict[str, list[str]]:
    """Return role -> sorted names of contributors: retrievers, rerankers, judges, their encoders, and models.

    `panel` is judge -> identity, `definitions` the encoders and retrievers that the pipeline defines.
    """
    names_of: dict[str, set[str]] = {"retriever": set(), "judge": set(panel)}
    for name in retrievers:
        settings = definitions.get("retrievers", {}).get(name, {})
        model = _published_name(str(settings.get("model") or name))
        names_of["retriever"] |= {name, model, str(settings.get("encoder") or settings.get("kind", name))}
        if settings.get("kind", name) == "reranker":
            names_of.setdefault("reranker", set()).update((name, model))
    names_of["judge"] |= {str(identity["encoder"]) for identity in panel.values() if "encoder" in identity}
    for names in names_of.values():
        encoders = definitions.get("encoders", {})
        settings_of = (encoders.get(name, {}) for name in list(names))
        names |= {_published_name(model) for settings in settings_of for model in _models(settings, encoders)}
    return {role: sorted(names) for role, names in names_of.items()}


def _models(settings: Mapping[str, Json], encoders: Mapping[str, Settings]) -> Iterator[str]:
    """Yield the model of an encoder, or those of its separate query and document encoders (settings or names)."""
    if "model" in settings:
        yield str(settings["model"])
    for side in (settings.get("query"), settings.get("document")):
        if isinstance(side, Mapping):
            yield from _models(side, encoders)
        elif isinstance(side, str):
            yield side
            if "model" in (definition := encoders.get(side, {})):
                yield str(definition["model"])


def _published_name(model: str) -> str:
    """Return a model's name on the hub; of a local path only the last component, because paths are not published."""
    return model if model.count("/") == 1 and model[0] not in "./~" else model.rstrip("/").rpartition("/")[2]


# Graded relevance labels: one whole number per pair, the gain of the panel's lower median or minimum grade.

Labels = Literal["binary", "graded", "both"]
LABELLED = ("relevant", "not relevant", "contested")
"""Verdicts of pairs that have a graded label."""


class Gain(Section):
    """How a pair's grade is chosen from the panel's, and the gain of grades below the relevance threshold."""

    grade: Literal["lower-median", "minimum"] = Field(
        default="lower-median", description="of the judges' grades; of an even number the worse of the middle two"
    )
    gain_below_cut: bool = Field(default=True, description="grades below the cut keep their gain; else they gain 0")


def gains(verdicts: pl.DataFrame, scale: Scale, gain: Gain, settled: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return query_id, doc_id, score (gain) and contested (bool) of the labelled pairs of a `verdicts` table, sorted.

    `settled` (query_id, doc_id, grade) has the pairs that assessors graded differently from the panel; these grades
    replace the panel's. A pair without a grade is omitted.
    """
    ranks = {label: rank for rank, label in enumerate(scale.labels)}
    rank_of_vote = pl.element().struct.field("grade").replace_strict(ranks, default=None, return_dtype=pl.Int64)
    graded = pl.col("votes").list.eval(rank_of_vote.drop_nulls().sort())  # best first
    chosen = graded.list.len() // 2 if gain.grade == "lower-median" else graded.list.len() - 1
    worth = {
        rank: amount if gain.gain_below_cut or rank < len(scale.positives) else 0
        for rank, amount in enumerate(scale.gains)
    }
    rank = graded.list.get(chosen, null_on_oob=True)
    rows = verdicts.filter(pl.col("verdict").is_in(LABELLED)).with_columns(rank=rank)
    if settled is not None:
        people = settled.select(*PAIR, people=pl.col("grade").replace_strict(ranks, return_dtype=pl.Int64))
        rows = rows.join(people, on=PAIR, how="left").with_columns(rank=pl.coalesce("people", "rank"))
    score = pl.col("rank").replace_strict(worth, default=None, return_dtype=pl.Int32)
    contested = pl.col("verdict") == "contested"
    return rows.select(*PAIR, score=score, contested=contested).drop_nulls("score").sort(PAIR)
