"""A judged run with known truth, of any size, from which samples are drawn."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.scale import FIVE
from curate.panel.voting import unanimous
from curate.system.files import frame, write_table

JUDGES = ("one", "two", "three")


def judged(run: Path, queries: int, depth: int, *, seed: int = 5) -> pl.DataFrame:
    """Write what `diversify`, `pool` and `consensus` leave: `depth` pairs per query, graded by three erring judges.

    Returns query_id, doc_id and `truth`, the grade that a faultless assessor gives: the first documents are better.
    """
    random = np.random.default_rng(seed)
    count = queries * depth
    rank = np.tile(np.arange(depth), queries)
    truth = np.where(
        random.random(count) < 0.5 / (1 + rank / 5), random.integers(0, 2, count), random.integers(2, 5, count)
    )
    names = pl.DataFrame(
        {
            "query_id": np.repeat([f"q{n:04}" for n in range(queries)], depth),
            "doc_id": [f"d{n:06}" for n in random.permutation(count)],
            "truth": np.array(list("SABCD"))[truth],
        }
    )
    seen = np.where(random.random(count) < 0.06, random.integers(0, 5, count), truth)  # errors that all judges share
    votes = [
        names.select("query_id", "doc_id", judge=pl.lit(judge), grade=pl.Series(_erring(seen, random)))
        for judge in JUDGES
    ]
    for stage in ("diversify", "pool", "consensus"):
        (run / stage).mkdir(parents=True)
    asked = [{"query_id": f"q{n:04}", "text": f"高血压患者能喝第{n}种茶吗", "source": "t"} for n in range(queries)]
    write_table(run / "diversify", "queries", frame("queries", asked))
    spare = pl.DataFrame({"doc_id": [f"e{n:04}" for n in range(100)]})
    corpus = (
        pl.concat([names.select("doc_id"), spare])
        .sort("doc_id")
        .with_columns(
            title=pl.lit(""),
            text=pl.concat_str(pl.lit("血压偏高时应当少量饮茶，不宜过浓，"), "doc_id"),
            source=pl.lit("t"),
        )
    )
    write_table(run / "diversify", "corpus", corpus)
    pool = names.select("query_id", "doc_id", position=pl.Series(rank + 1)).with_columns(
        hits=pl.lit([], pl.List(pl.Null))
    )
    write_table(run / "pool", "pool", pool.sort("query_id", "doc_id"))
    write_table(run / "consensus", "verdicts", unanimous(pl.concat(votes), JUDGES, FIVE))
    return names


def _erring(truth: npt.NDArray[np.int64], random: np.random.Generator) -> list[str]:
    """Return grades that are one step off in a tenth of the cases."""
    step = random.choice([-1, 0, 1], len(truth), p=[0.05, 0.9, 0.05])
    return ["SABCD"[code] for code in np.clip(truth + step, 0, 4)]
