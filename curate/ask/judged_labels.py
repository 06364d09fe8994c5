"""Provenance of labels that follow from a panel's grades, in a manifest, so that they can be recomputed."""

from collections import Counter
from collections.abc import Mapping

import polars as pl

from curate.core.config import Json, digest
from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.core.scale import FIVE
from curate.panel import voting
from curate.panel.voting import FITTED, PAIR
from curate.pipeline.stage import Context
from curate.system.files import read_json
from curate.tables.exporters.ids import AS_THEY_ARE, PublishedIds


def made_by_panel(
    context: Context, benchmark: Benchmark, judged: pl.DataFrame, ids: PublishedIds = AS_THEY_ARE
) -> dict[str, Json]:
    """Return judges, prompt settings and consensus rule of a run; `judged` are all its verdicts."""
    panel, facts = read_json(context.folder("judge") / "panel.json"), context.done("judge").facts
    policies = judged.filter(voting.by_policy())["policy"].unique().sort().to_list()
    if len(policies) > 1:
        raise DataError(f"export: found verdicts by the policies {', '.join(policies)}; run `curate consensus` again")
    return {
        "panel": {name: ledger_key(identity) for name, identity in panel.items()},
        "shown": facts["shown"],
        "cascade": facts["cascade"] is not None,
        "policy": voting.dumped(context.policy),
        "outside": _outside(judged, benchmark, ids) if FITTED.keys() & policies else [],
        "experts": 0,
        **({} if context.scale == FIVE else {"scale": context.scale.to_json()}),
        "seed": context.seed,
        "prefixed": ids.prefixed,
        **({} if ids.key is None else {"ids": "new"}),
    }


def ledger_key(identity: Mapping[str, Json]) -> dict[str, Json]:
    """Return the ledger key of a judge's ratings; recorded grades are in no ledger."""
    read = identity.get("rubric")
    judge = digest({name: parameter for name, parameter in identity.items() if name != "rubric"})
    rubric = read["digest"] if isinstance(read, Mapping) else ""
    recorded = {"assessor": identity["assessor"]} if "replay" in identity else None
    return {"judge": judge, "rubric": rubric, "recorded": recorded}


def _outside(judged: pl.DataFrame, benchmark: Benchmark, ids: PublishedIds) -> list[Json]:
    """Return the vote patterns of pairs that were judged but not exported, each with its number of pairs."""
    votes_outside = ids.of(judged).join(benchmark.verdicts, on=PAIR, how="anti")["votes"]
    patterns = Counter(tuple((vote["judge"], vote["grade"]) for vote in votes) for votes in votes_outside)
    return [{"votes": dict(votes), "pairs": count} for votes, count in sorted(patterns.items(), key=str)]
