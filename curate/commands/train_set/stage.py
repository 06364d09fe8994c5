"""Stage `train_set`: chooses positives and hard negatives from graded pairs, and excludes leaks of the test set."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from curate.ask import build, privacy_guard
from curate.ask.seating import load_rubric
from curate.ask.settling import made_by_panel
from curate.commands.train_set.settings import Config, Negatives
from curate.core.config import Json, check
from curate.core.errors import ConfigError, DataError, UserError
from curate.core.figures import Record, figure
from curate.core.protocols import Benchmark
from curate.core.records import FILTERED
from curate.core.scale import Scale
from curate.panel import sanity, voting
from curate.panel.voting import PAIR
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.facts import pooled
from curate.pipeline.stage import Context, Report, Stage
from curate.runs import leaks as splits
from curate.runs.leaks import compare, counts
from curate.stats import ratios
from curate.system.files import frame, read_json, write_json, write_table
from curate.tables.exporters import manifest, triples
from curate.view import run_figures

NAME = "train_set.json"
"""File of the figures in the folder of the stage."""
BAND = 10
"""Number of pool positions per band of the reported shares."""


class MinedBand(Record, schema_name="band"):
    """Candidates without a label, which were taken as negatives if nobody judged them, at some positions of a pool."""

    positions: str = figure("first and last position in the pool, or all")
    pairs: int = figure("decided pairs without a label")
    relevant: int = figure("pairs that the judge found relevant")
    share: float | None = figure("share of relevant ones; null without pairs")
    low: float | None = figure("lower bound of the 95 % interval, which resamples queries")
    high: float | None = figure("upper bound")


class LeakCounts(Record, schema_name="leaks"):
    """Thresholds and result of the check for leaks of the test set."""

    encoder: str = figure("encoder that compares texts")
    queries: float = figure("similarity above which two queries are near-duplicates")
    documents: float = figure("similarity above which two documents are near-duplicates")
    overlap: float = figure("share of common words above which texts are near-duplicates")
    related: float = figure("similarity of queries whose positives are compared")
    leaking_queries: int = figure("queries that are near-duplicates of a test query")
    leaking_pairs: int = figure("positives that are near-duplicates, of queries near to a test query")
    shared_pairs: int = figure("more positives that are documents of the test set too")


class TrainSetFigures(Record, schema_name="figures"):
    """Figures of the train set, or the plan of judging (--plan)."""

    test: str | None = figure("name of the test set that was checked for leaks")
    leaks: LeakCounts | None = figure("result of the leak check; null without one")
    queries: Mapping[str, int] = figure("queries before and after, and reason -> queries that were left out")
    panel: tuple[str, ...] = figure("judges that graded the candidates")
    heuristic: bool = figure("whether heuristics alone judged")
    verdicts: Mapping[str, int] = figure("verdict -> candidates")
    positives: int = figure("positives of all queries")
    negatives: int = figure("negatives of all queries")
    negatives_by_grade: Mapping[str, int] = figure("best grade -> negatives")
    mined: tuple[MinedBand, ...] = figure("negatives mined without a judge, by position in the pool, then all")


def mined(verdicts: pl.DataFrame, pool: pl.DataFrame, labels: pl.DataFrame, seed: int) -> tuple[MinedBand, ...]:
    """Return the share of false negatives if mined without a judge, per band of pool positions and in total."""
    decided = verdicts.filter(pl.col("verdict").is_in(["relevant", "not relevant"]))
    pairs = decided.join(labels, on=PAIR, how="anti").join(pool.select(*PAIR, "position"), on=PAIR)
    pairs = pairs.with_columns(band=(pl.col("position") - 1) // BAND).sort("band", "query_id", "doc_id")
    bands = (
        _band(f"{band['band'][0] * BAND + 1}-{band['band'][0] * BAND + BAND}", band, seed)
        for band in pairs.partition_by("band", maintain_order=True)
    )
    return (*bands, _band("all", pairs, seed))


def _band(positions: str, pairs: pl.DataFrame, seed: int) -> MinedBand:
    relevant = pairs["verdict"] == "relevant"
    ratio = ratios.mean(relevant.to_numpy(), ratios.numbered(pairs["query_id"]), seed)
    bounds = (ratio.value, ratio.low, ratio.high) if ratio else (None, None, None)
    rounded = (None if bound is None else round(bound, 5) for bound in bounds)
    return MinedBand(positions, len(pairs), int(relevant.sum()), *rounded)


def best(scale: Scale) -> pl.Expr:
    """Return an expression for the rank of a pair's best grade, 0 for the highest of the scale; null without grades."""
    ranks = {label: rank for rank, label in enumerate(scale.labels)}
    graded = pl.element().struct.field("grade").replace_strict(ranks, default=None, return_dtype=pl.Int64)
    return pl.col("votes").list.eval(graded).list.min()


def by_grade(chosen: pl.DataFrame, verdicts: pl.DataFrame, scale: Scale) -> dict[str, int]:
    """Return best grade -> number of negatives, for the grades that occur."""
    negatives = verdicts.join(chosen.filter(pl.col("score") == 0), on=PAIR, how="semi")
    counted = negatives.select(best=best(scale))["best"].value_counts().sort("best")
    return {scale.labels[rank]: count for rank, count in counted.iter_rows()}


# Train set: graded candidates become triples, without leaks from the test set.

UNCHECKED = "none"
"""Value of `test` that skips the leak check."""


def train_set(
    verdicts: pl.DataFrame, pool: pl.DataFrame, positives: int, negatives: Negatives, scale: Scale
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the chosen pairs (query_id, doc_id, score), sorted, and query -> reason for dropped queries.

    Positives are relevant pairs, by best grade, then by position. Negatives are pairs judged not relevant, with one of
    `negatives.grades` (default: any below the relevance threshold) as their best grade. Contested and ungraded pairs
    are neither.
    """
    pairs = verdicts.join(pool.select(*PAIR, "position"), on=PAIR).with_columns(best=best(scale))
    grades = below_cut(scale) if negatives.grades is None else negatives.grades
    has_negative_grade = pl.col("best").is_in([scale.place(grade) for grade in grades])
    order = ["position", "best"] if negatives.draw == "by_rank" else ["best", "position"]
    chosen_by_score = [
        pairs.filter(condition)
        .sort("query_id", *order_columns, "doc_id")
        .group_by("query_id", maintain_order=True)
        .head(number)
        .select(*PAIR, score=pl.lit(score, pl.Int32))
        for score, condition, order_columns, number in (
            (1, pl.col("verdict") == "relevant", ["best", "position"], positives),
            (0, (pl.col("verdict") == "not relevant") & has_negative_grade, order, negatives.number),
        )
    ]
    counts = [dict(table.group_by("query_id").len().iter_rows()) for table in chosen_by_score]
    dropped: dict[str, str] = {}
    for query_id in verdicts["query_id"].unique().sort():
        if query_id not in counts[0]:
            dropped[query_id] = "no positive"
        elif counts[1].get(query_id, 0) < negatives.least:
            dropped[query_id] = "too few negatives"
    chosen = pl.concat(chosen_by_score).filter(~pl.col("query_id").is_in(list(dropped)))
    return chosen.sort(PAIR), dropped


def run(config: Config, context: Context) -> Report:
    """Decide every pair, exclude texts that resemble the test set, choose triples, and write them."""
    panel = sorted(read_json(context.folder("judge") / "panel.json"))
    judged: dict[str, Any] = dict(context.done("judge").facts)
    ratings = context.read("judge", "ratings")
    _check_judges(ratings, config, context)
    verdicts = voting.decide(ratings, panel, context.policy, context.scale)
    queries, pool = pooled(context), context.read("pool", "pool")
    leaking = _leaks(config, context, queries, verdicts)
    removed = leaking.filter("removed")
    leaked = removed.filter(pl.col("kind") == "query")["query_id"]
    remaining = verdicts.filter(~pl.col("query_id").is_in(leaked.implode())).join(removed, on=PAIR, how="anti")
    chosen, why = train_set(remaining, pool, config.positives, config.negatives, context.scale)
    dropped = _dropped(queries, chosen, why, leaked)
    labels = context.legacy_positives()
    figures = TrainSetFigures(
        test=Path(config.test).name if config.test != UNCHECKED else None,
        leaks=None if config.test == UNCHECKED else LeakCounts(**config.leaks.model_dump() | counts(leaking)),
        queries={"before": len(queries), "after": chosen["query_id"].n_unique(), **_reasons(dropped)},
        panel=tuple(panel),
        heuristic=run_figures.only_heuristics(panel, judged["heuristic"]),
        verdicts=dict(verdicts.group_by("verdict").len().sort("verdict").iter_rows()),
        positives=int((chosen["score"] == 1).sum()),
        negatives=int((chosen["score"] == 0).sum()),
        negatives_by_grade=by_grade(chosen, verdicts, context.scale),
        mined=mined(verdicts, pool, labels, context.seed),
    )
    losses = ", ".join(f"{count:,} {reason}" for reason, count in _reasons(dropped).items())
    if chosen.is_empty():
        raise DataError(
            f"train_set: none of {len(queries):,} queries has a positive and a negative ({losses}); look at the "
            "ratings with `curate show ratings`"
        )
    if figures.queries["after"] < config.least * len(queries):
        raise UserError(
            f"train_set: only {figures.queries['after']:,} of {len(queries):,} queries are left ({losses}); look at "
            "judges and pool, or write the set all the same with --set train_set.least=0"
        )
    suspicious = _suspicious(context, chosen)
    for name, table in (("leaks", leaking), ("dropped", dropped), ("verdicts", verdicts)):
        write_table(context.out, name, table)
    write_table(context.out, "qrels", chosen)
    entries = figures.to_json()
    write_json(context.out / NAME, entries)
    _export(config, context, entries, chosen, verdicts)
    facts = {name: entries[name] for name in ("queries", "positives", "negatives")}
    facts["mined"] = figures.mined[-1].to_json()
    return Report(len(queries), figures.queries["after"], len(dropped), facts=facts, notes=_notes(figures, suspicious))


def _check_judges(ratings: pl.DataFrame, config: Config, context: Context) -> None:
    """Raise UserError if a judge gives nearly all pairs the same relevant grade and thus cannot identify negatives."""
    if uniform := sanity.uniform(ratings, context.scale, config.most):
        raise UserError(
            f"train_set: {'; '.join(uniform)}, more than {100 * config.most:g} %: it does not tell relevant documents "
            "from others, perhaps because it was made for another language; name another --judge, or "
            "write the set all the same with --set train_set.most=1"
        )


def _leaks(config: Config, context: Context, queries: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    """Return the table `leaks`; empty if the leak check is skipped."""
    if config.test == UNCHECKED:
        return frame("leaks")
    positives = verdicts.filter(pl.col("verdict") == "relevant").select(PAIR)
    documents = chain.from_iterable(context.corpus.batches())
    train = splits.split(queries.select("query_id", "text"), positives, documents)
    return compare(train, splits.read(Path(config.test)), config.leaks, context)


def _dropped(queries: pl.DataFrame, chosen: pl.DataFrame, why: Mapping[str, str], leaked: pl.Series) -> pl.DataFrame:
    """Return the table `dropped`: queries without a triple, with reasons."""
    reasons = dict.fromkeys(leaked, "resembles a test query") | dict(why)
    missing = queries.join(chosen, on="query_id", how="anti")["query_id"].sort()
    rows = [
        {"table": "queries", "id": name, "stage": "train_set", "reason": reasons.get(name, "not judged")}
        for name in missing
    ]
    return frame("dropped", rows)


def _reasons(dropped: pl.DataFrame) -> dict[str, int]:
    return dict(dropped.group_by("reason").len().sort("reason").iter_rows())


def _suspicious(context: Context, chosen: pl.DataFrame) -> int:
    """Return the number of chosen texts with suspected personal data; UserError unless the settings permit them."""
    residual = privacy_guard.residual(context)
    queries, documents = (
        (pl.col("table") == table) & pl.col("id").is_in(chosen[key].unique().implode())
        for table, key in (("queries", "query_id"), ("corpus", "doc_id"))
    )
    return privacy_guard.stop("train-set", residual.filter(queries | documents), context)


def _export(
    config: Config, context: Context, figures: Mapping[str, Any], chosen: pl.DataFrame, verdicts: pl.DataFrame
) -> None:
    folder = context.out / "triples"
    folder.mkdir()
    queries = context.queries.join(chosen, on="query_id", how="semi", maintain_order="left")
    benchmark = Benchmark(
        name=context.name,
        language=context.language,
        queries=queries,
        corpus=context.corpus,
        qrels=chosen.filter(pl.col("score") == 1),
        candidates=chosen,
        verdicts=verdicts,
        facts={
            **{name: getattr(config, name) for name in ("license", "source", "instruction", "scores")},
            "judges": figures["panel"],
            "weak_judges": figures["heuristic"],
            **{name: figures[name] for name in ("test", "leaks", "queries", "negatives_by_grade", "mined")},
        },
        duplicates=context.duplicates,
    )
    used = triples.alone(benchmark)
    triples.export(used, folder)
    write_table(folder, "verdicts", used.verdicts.sort(PAIR))
    labels = made_by_panel(context, used, verdicts)
    manifest.write(folder, {**manifest.described(used, "triples"), "labels": labels})


def _notes(figures: TrainSetFigures, suspicious: int) -> list[str]:
    notes = []
    if figures.leaks is None:
        notes.append("no test set was named, so nothing was checked for leaks; set train_set.test")
    if figures.heuristic:
        notes.append(
            "all judges are heuristics, whose thresholds were set on the Chinese and the English demo alone: the set "
            "is for testing only; do not train on it"
        )
    if suspicious:
        notes.append(f"{suspicious:,} texts hold what looks like personal data and was allowed; see mask/residual")
    return notes


def fingerprint(config: Config, context: Context) -> Json:
    """Return the digests and settings that identify the inputs; ConfigError without a test set."""
    if not config.test:
        raise ConfigError(
            "train_set.test: found nothing, expected the folder of the test set's run, or of an export of it; name it "
            "with --test FOLDER, or check nothing for leaks with --test none"
        )
    _check_grades(config.negatives.grades, context)
    inputs: dict[str, Json] = {"residual": privacy_guard.allowed(context), "duplicates": context.duplicates}
    if config.test != UNCHECKED:
        inputs["encoder"] = build.encoder(context, config.leaks.encoder).revision
        inputs["test"] = splits.digests(Path(config.test))
    if context.policy != "unanimous":
        inputs["policy"] = voting.dumped(context.policy)
    if context.relevant_from is not None:
        inputs["relevant_from"] = context.relevant_from
    return inputs


def _check_grades(grades: Sequence[str] | None, context: Context) -> None:
    """Raise ConfigError unless the grades of negatives are below the rubric's relevance threshold."""
    scale = load_rubric(check(JudgeConfig, context.settings.get("judge") or {}, "judge"), context).scale
    if grades is not None and not {*grades} <= {*below_cut(scale)}:
        raise ConfigError(
            f"train_set.negatives.grades: found {', '.join(grades)}, expected grades below the cut: "
            f"{', '.join(below_cut(scale))}"
        )


def below_cut(scale: Scale) -> list[str]:
    """Return the labels below the relevance threshold, best first."""
    return [label for label in scale.labels if label not in scale.relevant]


STAGE = Stage("train_set", Config, ("mask", FILTERED, "pool", "judge"), run, fingerprint, version=3)
