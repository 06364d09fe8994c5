"""A small run folder that stands before the judge stage, and single stages run on it."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from curate.core import config
from curate.core.config import Settings
from curate.core.protocols import PaidProgress, quiet
from curate.pipeline.stage import Consent, Context, Report, ledger_place
from curate.pipeline.stages import stage
from curate.system.files import frame, write_table

QUERIES = {"q1": "高血压患者能喝咖啡吗", "q2": "痛风能吃豆腐吗"}


def pooled(run: Path, documents: Mapping[str, str], queries: Mapping[str, str] = QUERIES, pairs: Any = None) -> Path:
    """Write what the judge stage reads: texts by id, and a pool of the pairs given, by default of every pair.

    No retriever ranked them, so none is probably relevant.
    """
    pairs = pairs or [(query_id, doc_id) for query_id in queries for doc_id in documents]
    for folder in ("diversify", "pool"):
        (run / folder).mkdir(parents=True)
    asked = ({"query_id": query_id, "text": text, "source": "test"} for query_id, text in queries.items())
    shown = ({"doc_id": doc_id, "title": "", "text": text, "source": "test"} for doc_id, text in documents.items())
    write_table(run / "diversify", "queries", frame("queries", asked))
    write_table(run / "diversify", "corpus", frame("corpus", shown))
    places = (
        {"query_id": query_id, "doc_id": doc_id, "position": n, "hits": []}
        for n, (query_id, doc_id) in enumerate(pairs, 1)
    )
    write_table(run / "pool", "pool", frame("pool", places))
    write_table(run / "pool", "rankings", frame("rankings"))
    write_table(run / "diversify", "qrels", frame("qrels"))
    return run


def step(
    run: Path,
    name: str,
    settings: Settings | None = None,
    judges: Mapping[str, Settings] | None = None,
    progress: PaidProgress = quiet,
    tell: Callable[[str], None] = lambda _line: None,
    **consent: Any,
) -> Report:
    """Run one stage into `run/<name>`, over what stands there; its home is `run/home`, its id the folder's path."""
    found = stage(name)
    checked = config.check(found.config, settings or {}, name)
    out = run / name
    definitions = {"judges": dict(judges or {})}
    allowed = Consent(**consent)
    context = Context(
        run=run,
        out=out,
        home=run / "home",
        ledger=ledger_place() if "CURATE_LEDGER" in os.environ else None,
        run_id=str(run),
        definitions=definitions,
        consent=allowed,
        progress=progress,
        tell=tell,
    )
    found.fingerprint(checked, context)
    found.preflight(checked, context)
    out.mkdir(exist_ok=True)
    return found.run(checked, context)


def table(run: Path, stage_name: str, name: str) -> pl.DataFrame:
    """Return a stage's table."""
    return pl.read_parquet(run / stage_name / f"{name}.parquet")


def said(run: Path, judge: str) -> dict[tuple[str, str], str]:
    """Return pair -> grade or status in the ratings of a run."""
    rows = table(run, "judge", "ratings").filter(pl.col("judge") == judge).iter_rows(named=True)
    return {(row["query_id"], row["doc_id"]): row["grade"] or row["status"] for row in rows}


def grades_file(path: Path, grades: Sequence[tuple[str, str, str]], header: str = "query_id\tdoc_id\tgrade") -> Path:
    """Write a file for a replay judge."""
    path.write_text("\n".join([header, *("\t".join(row) for row in grades)]) + "\n", encoding="utf-8")
    return path
