"""Facts of a run for dataset card and report: indexes, stage of the labels, self-preference, query writers, cost."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import polars as pl

from curate.core import synthetic
from curate.core.config import Json, check, digest
from curate.core.model_family import begins_as, family
from curate.core.records import FILTERED
from curate.core.sampling import shuffled
from curate.llm.exchange_rates import shown
from curate.llm.providers import presets
from curate.panel import voting
from curate.panel.rules import ConsensusRule
from curate.panel.voting import Policy
from curate.pipeline.configs import PoolConfig
from curate.pipeline.stage import Context, Report
from curate.retrieval.id_mapping import IdMapping
from curate.system.corpus import TableCorpus
from curate.system.files import read_json, write_table
from curate.view.run_figures import only_heuristics


def on_card(context: Context) -> dict[str, Json]:
    """Return heading -> sentence per retriever with an approximate index of known recall: build, search, recall."""
    report = context.report("pool")
    indexes: Any = report.facts.get("indexes") if report else None
    return {
        f"documents that {name} looked at": _index_sentence(index)
        for name, index in (indexes or {}).items()
        if index.get("recall") is not None
    }


def _index_sentence(index: Mapping[str, Any]) -> str:
    numbers = ", ".join(f"{name} {parameter}" for name, parameter in index["parameters"].items())
    return (
        f"those that an approximate index finds ({index['engine']} {index['index']}: {numbers}); recall@"
        f"{index['recall_at']} against exact search is {index['recall']} on {index['recall_queries']} queries, "
        f"{index['lowest_recall']} on the worst of them"
    )


def heuristic(context: Context) -> bool:
    """Return whether all judges are heuristics, whose labels are for tests only; False before judging."""
    report = context.report("judge")
    panel = read_json(context.folder("judge") / "panel.json") if report else {}
    heuristics = cast("Sequence[str]", report.facts.get("heuristic") or ()) if report else ()
    return bool(panel) and only_heuristics(list(panel), heuristics)


# Freshness of checks: figures are current only while the tables that they were made from are unchanged.

MADE_FROM = "made_from"
"""Key in the result file of a check: the digest of the tables that it was computed from."""


def made_from(context: Context, *stages: str) -> str | None:
    """Return a digest of all output files of these stages; None unless all of them have run."""
    marks = [context.folder(stage) / "stage.json" for stage in dict.fromkeys(stages)]
    if not all(mark.is_file() for mark in marks):
        return None
    outputs: list[Json] = [read_json(mark)["outputs"] for mark in marks]
    return digest(outputs)


def rated(context: Context) -> tuple[str, ...]:
    """Return the stages whose tables contain grades: `judge` and, if it has run, `resolve` (answers of experts)."""
    return ("judge",) if context.report("resolve") is None else ("judge", "resolve")


def current(context: Context, figures: Mapping[str, Any], *stages: str) -> bool:
    """Return whether `figures`, the result of a check, were computed from the current tables of these stages.

    False for results of versions before 0.2, which store no digest.
    """
    seen = figures.get(MADE_FROM)
    return seen is not None and seen == made_from(context, *stages)


def label_stage(run: Path) -> str:
    """Return the stage with the final labels of a run folder: `resolve` if computed from the current `consensus`.

    Else `consensus`.
    """
    try:
        resolved_from = read_json(run / "resolve" / "stage.json")["made_from"]["inputs"]["consensus"]
        current_outputs = read_json(run / "consensus" / "stage.json")["outputs"]
    except (OSError, KeyError):
        return "consensus"
    return "resolve" if resolved_from == current_outputs else "consensus"


# Circularity of a run's judges, as written by `curate check circular`, while grades and rule are unchanged.

PLACE = Path("checks", "circular.json")
"""Result file of `curate check circular`, relative to the run folder."""


def circularity_made_from(judged: Path, policy: Policy | ConsensusRule) -> str:
    """Return a digest of the grades in `judged`, the folder of the stage `judge`, and of the consensus rule."""
    return digest([read_json(judged / "stage.json")["outputs"], voting.dumped(policy)])


def checked(context: Context) -> dict[str, Any] | None:
    """Return the result of `curate check circular`; None if not run, or if grades or consensus rule changed since."""
    path = context.run / PLACE
    if not path.is_file():
        return None
    written: dict[str, Any] = read_json(path)
    return (
        written if written.get("made_from") == circularity_made_from(context.folder("judge"), context.policy) else None
    )


def of_judges(context: Context) -> dict[str, dict[str, Json]]:
    """Return judge -> its model `family`, and `favour`: its self-preference as in `favours`, None if not measured."""
    favour_by_judge = favours(context)
    panel = read_json(context.folder("judge") / "panel.json")
    kin = presets.families(panel, context.definitions.get("judges", {}))
    return {judge: {"family": kin[judge], "favour": favour_by_judge.get(judge)} for judge in panel}


def favours(context: Context) -> dict[str, Json]:
    """Return judge -> its self-preference: effect (nDCG@10), ranks, queries, replaced_by, warned.

    Empty without a current result of `curate check circular`.
    """
    figures = checked(context)
    keys = ("effect", "ranks", "queries", "replaced_by", "warned")
    return {figure["judge"]: {name: figure[name] for name in keys} for figure in figures["judges"]} if figures else {}


# The queries with a pool: all that `diversify` kept, or a sample of `pool.queries`.


def pooled(context: Context) -> pl.DataFrame:
    """Return the queries that get a pool and are judged, in their order: all, or a sample of `pool.queries`."""
    size = check(PoolConfig, context.settings.get("pool") or {}, "pool").queries
    return drawn(context.queries, size, context.seed)


def drawn(queries: pl.DataFrame, size: int | None, seed: int) -> pl.DataFrame:
    """Return a random sample of `size` queries, in their order; all of them if `size` is None or not smaller."""
    if size is None or size >= len(queries):
        return queries
    chosen = shuffled(sorted(queries["query_id"]), seed, "pool", "queries")[:size]
    return queries.filter(pl.col("query_id").is_in(chosen))


def known_ids(context: Context, corpus: TableCorpus) -> IdMapping:
    """Return the mapping of document ids to those that survived `mask` and `diversify`, which merge and drop texts."""
    tables = [context.read(stage, "dropped") for stage in ("mask", FILTERED)]
    dropped = pl.concat(tables).filter(pl.col("table") == "corpus").select("id", now=pl.lit(None, pl.String))
    surviving = corpus.ids().to_frame("id").with_columns(now="id")
    now = pl.concat([surviving, dropped]).unique("id", keep="first")
    aliases = context.read("mask", "aliases").filter(pl.col("table") == "corpus").select(id="old_id", kept="kept_id")
    moved = aliases.join(now, left_on="kept", right_on="id").select("id", "now")
    return IdMapping(pl.concat([moved, now]).unique("id", keep="first", maintain_order=True))


# Synthetic queries of a run: their writers, and retrievers and judges of a writer's family.

TABLE = "sources"
"""Table next to the files of an export: query_id and source of every query written by a model."""


def marked(queries: pl.DataFrame) -> pl.DataFrame:
    """Return query_id and source of the queries written by a model, sorted by query_id."""
    rows = [row for row in queries.select("query_id", "source").iter_rows() if synthetic.writer(row[1])]
    return pl.DataFrame(rows, {"query_id": pl.String, "source": pl.String}, orient="row").sort("query_id")


def write(folder: Path, queries: pl.DataFrame) -> None:
    """Write the table `sources` into a folder; no file if no query was written by a model."""
    if not (synthetic_queries := marked(queries)).is_empty():
        write_table(folder, TABLE, synthetic_queries)


def writers(queries: pl.DataFrame, parts: Mapping[str, Any], judges: Mapping[str, Any]) -> list[dict[str, Json]]:
    """Return one row per model that wrote queries, with their number (`queries`, out of `of`) and its `kin`.

    `kin` are the retrievers and judges of its model family: they find a query's source document relevant more often
    than other models do. `parts` is role -> names, `judges` judge -> family or None.
    """
    # if a judge declares no family (recorded grades), it is the one that its name begins with
    family_by_judge = {name: family("", str(of)) if of else begins_as(name) for name, of in judges.items()}
    rows: list[dict[str, Json]] = []
    for (source,), written in sorted(marked(queries).group_by("source"), key=lambda group: str(group[0])):
        who = synthetic.writer(source)
        assert who is not None
        kin = {name for name, of in family_by_judge.items() if who.family and of == who.family}
        kin |= {name for name in parts.get("retriever", ()) if who.family and family(name) == who.family}
        rows.append(
            {
                "writer": who.model,
                "family": who.family,
                "queries": written.height,
                "of": queries.height,
                "kin": sorted(kin),
            }
        )
    return rows


# Outcome of a run: exported and dropped queries, and cost.

NO_GAIN = "no graded label gains anything"

MERGED = {"ingest": "equal to another", "mask": "equal to another once masked"}
"""Stage -> reason of the queries that it merged, which have no row in its table `dropped`."""
NO_POSITIVE = "no positive"
"""Reason of judged queries that are not exported, since they have no relevant document."""
TOO_FEW = "too few queries for a task"
NOT_EXPORTED = (NO_GAIN, NO_POSITIVE, TOO_FEW)
"""Reasons, in the table `dropped` of `export`, of queries that are in no task."""
Reports = Mapping[str, Report]


def left_out(reports: Reports, read: Callable[[str, str], pl.DataFrame]) -> Counter[str]:
    """Return reason -> number of queries dropped before judging; `read(stage, table)` returns a table."""
    reasons = Counter({MERGED[stage]: count(reports, stage, "merged_queries") for stage in MERGED if stage in reports})
    for stage in ("mask", FILTERED):
        if stage in reports:
            reasons.update(read(stage, "dropped").filter(pl.col("table") == "queries")["reason"].to_list())
    return reasons


def queries(kept: int, reasons: Counter[str]) -> str:
    """Return a line with the number of exported queries (`kept`) and of dropped ones by reason."""
    why = ", ".join(f"{number:,} {reason}" for reason, number in reasons.most_common() if number)
    return f"queries: {kept:,} of {kept + reasons.total():,} are exported{f'; left out: {why}' if why else ''}"


def paid(reports: Reports, further: Mapping[str, float]) -> list[str]:
    """Return a line with the total cost of all stages by currency, and the stages whose cost is unknown.

    A second one has the `further` amounts that were paid beside the stages, if any.
    """
    amounts = ", ".join(shown(cost, currency) for currency, cost in sorted(counted(reports).items()) if cost)
    unknown = ", ".join(name for name, report in reports.items() if report.cost is None)
    line = f"paid: {amounts or 'nothing'}{f', and what has no known price: {unknown}' if unknown else ''}"
    return [line, *further_paid(further)]


def counted(reports: Reports) -> dict[str, float]:
    """Return currency -> known cost of the stages."""
    spent: dict[str, float] = {}
    for report in reports.values():
        currency = str(report.facts.get("currency") or "")
        spent[currency] = spent.get(currency, 0.0) + (report.cost or 0.0)
    return spent


def further_paid(further: Mapping[str, float]) -> list[str]:
    """Return the line with what was paid beside the stages (currency -> amount); [] if nothing was."""
    amounts = " and ".join(shown(amount, currency) for currency, amount in further.items())
    return [f"further paid, for checks of judges and answers no longer used: {amounts}"] if amounts else []


def nothing_left(
    context: Context, stages: tuple[str, ...], beside: Callable[[Mapping[str, float]], Mapping[str, float]]
) -> list[str]:
    """Return lines that report a run without any positive: queries left out by reason, and cost.

    `stages` are those that have run; `beside` returns what was paid beside their cost, both by currency.
    """
    reports = {name: report for name in stages if (report := context.report(name)) is not None}
    judged = len(pooled(context))
    return [
        queries(0, left_out(reports, context.read) + Counter({NO_POSITIVE: judged})),
        *paid(reports, beside(counted(reports))),
    ]


def count(reports: Reports, stage: str, name: str) -> int:
    """Return the count `name` from the facts of a stage's report; 0 if it has none."""
    number = reports[stage].facts.get(name, 0)
    assert isinstance(number, int)
    return number
