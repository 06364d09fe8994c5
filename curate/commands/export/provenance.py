"""What the manifest of an export says of how its labels were made, so that they can be derived again."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from curate.ask.judged_labels import made_by_panel
from curate.ask.panel import ASKED
from curate.commands.export import Config
from curate.core.config import Json
from curate.core.protocols import Benchmark
from curate.panel.voting import EXPERTS, PAIR, SETTLED
from curate.pipeline.stage import Context
from curate.system.files import read_json
from curate.tables.exporters.ids import PublishedIds
from curate.tables.kinds import kinds


def made_from(
    context: Context, benchmark: Benchmark, judged: pl.DataFrame, config: Config, ids: PublishedIds
) -> dict[str, Json]:
    """Return what `curate verify` derives the labels from, beside the ledger; `judged` are all verdicts of the run."""
    experts = benchmark.verdicts.filter(pl.col("policy") == EXPERTS).height
    return {
        **made_by_panel(context, benchmark, judged, ids),
        "experts": experts,
        **_beyond(context, benchmark),
        "overridden": ids.of(context.read("resolve", "overrides")).join(benchmark.verdicts, on=PAIR, how="semi").height,
        **({} if config.gain is None else {"graded": {"labels": config.labels, **config.gain.model_dump()}}),
        "rerank": config.rerank.model_dump(),
    }


def _beyond(context: Context, benchmark: Benchmark) -> dict[str, Json]:
    """Return what decided besides the policy: a threshold on the sum of grades (`accept`), a judge (`settle`)."""
    resolved: Mapping[str, Any] = context.done("resolve").facts
    found: dict[str, Json] = {}
    if (accepted := resolved.get("accept")) and accepted["threshold"]:
        found["accept"] = {**accepted["threshold"], "promised": accepted["wrong"], "confidence": accepted["confidence"]}
    if settled := resolved.get("settle"):
        by = pl.col("policy") == SETTLED + settled["judge"]
        pairs = benchmark.verdicts.filter(by).height
        found["settle"] = {"name": settled["judge"], **settled["key"], "pairs": pairs}
    return found


def made_of_kinds(context: Context, benchmark: Benchmark) -> dict[str, Json]:
    """Return `kinds`, kind -> `asked`: which questions its stage has put to which judges; empty if none has asked.

    Judges are named as the pipeline names them. Addresses, keys and prices are in no question and in no digest.
    """
    found: dict[str, Json] = {}
    for each in kinds():
        path = context.folder(each.stage) / ASKED if each.stage and each.present(benchmark) else None
        if path is not None and path.is_file() and (asked := read_json(path)):
            found[each.name] = {"asked": asked}
    return {"kinds": found} if found else {}
