"""What the manifest of an export says of how its labels were made, so that they can be derived again."""

from collections import Counter
from collections.abc import Mapping

import polars as pl

from curate.core.config import Json, digest
from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.core.scale import FIVE
from curate.formats.kinds import kinds
from curate.panel import voting
from curate.panel.voting import EXPERTS, FITTED, PAIR
from curate.stages.asking.panel import ASKED
from curate.stages.context import Context
from curate.stages.export.config import Config
from curate.system.files import read_json


def made_from(
    context: Context, benchmark: Benchmark, judged: pl.DataFrame, config: Config, *, prefixed: bool
) -> dict[str, Json]:
    """Return what `curate verify` derives the labels from, beside the ledger; `judged` are all verdicts of the run."""
    panel, facts = read_json(context.folder("judge") / "panel.json"), context.done("judge").facts
    experts = pl.col("policy") == EXPERTS
    policies = judged.filter(~experts)["policy"].unique().sort().to_list()
    if len(policies) > 1:
        raise DataError(f"export: found verdicts by the policies {', '.join(policies)}; run `curate consensus` again")
    return {
        "panel": {name: _key(identity) for name, identity in panel.items()},
        "shown": facts["shown"],
        "cascade": facts["cascade"] is not None,
        "policy": voting.dumped(context.policy),
        "outside": _outside(judged, benchmark, prefixed=prefixed) if FITTED.keys() & policies else [],
        "experts": benchmark.verdicts.filter(experts).height,
        "overridden": _exported(context.read("resolve", "overrides"), benchmark, prefixed=prefixed).height,
        **({} if context.scale == FIVE else {"scale": context.scale.to_json()}),
        **({} if config.gain is None else {"graded": {"labels": config.labels, **config.gain.model_dump()}}),
        "rerank": config.rerank.model_dump(),
        "seed": context.seed,
        "prefixed": prefixed,
    }


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


def _key(identity: Mapping[str, Json]) -> dict[str, Json]:
    """Return under what the ledger keeps a judge's ratings; recorded grades are in none."""
    read = identity.get("rubric")
    judge = digest({name: value for name, value in identity.items() if name != "rubric"})
    rubric = read["digest"] if isinstance(read, Mapping) else ""
    recorded = {"assessor": identity["assessor"]} if "replay" in identity else None
    return {"judge": judge, "rubric": rubric, "recorded": recorded}


def _exported(pairs: pl.DataFrame, benchmark: Benchmark, *, prefixed: bool) -> pl.DataFrame:
    """Return those of a run's pairs that the export holds."""
    exported = benchmark.verdicts.select(pl.col(name).str.slice(2 if prefixed else 0) for name in PAIR)
    return pairs.join(exported, on=PAIR, how="semi")


def _outside(judged: pl.DataFrame, benchmark: Benchmark, *, prefixed: bool) -> list[Json]:
    """Return the votes on pairs that were judged and are in no export, each pattern with its number of pairs."""
    left = judged.join(_exported(judged, benchmark, prefixed=prefixed), on=PAIR, how="anti")["votes"]
    patterns = Counter(tuple((vote["judge"], vote["grade"]) for vote in votes) for votes in left)
    return [{"votes": dict(votes), "pairs": count} for votes, count in sorted(patterns.items(), key=str)]
