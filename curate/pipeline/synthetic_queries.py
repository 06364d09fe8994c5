"""Synthetic queries of a run: their writers, and retrievers and judges of a writer's family."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from curate.core import synthetic
from curate.core.config import Json
from curate.core.model_family import begins_as, family
from curate.system.files import write_table

TABLE = "sources"
"""Table next to the files of an export: query and mark of every query that a model wrote."""


def marked(queries: pl.DataFrame) -> pl.DataFrame:
    """Return query_id and source of the queries that a model wrote."""
    rows = [row for row in queries.select("query_id", "source").iter_rows() if synthetic.writer(row[1])]
    return pl.DataFrame(rows, {"query_id": pl.String, "source": pl.String}, orient="row").sort("query_id")


def write(folder: Path, queries: pl.DataFrame) -> None:
    """Write the table `sources` into a folder; nothing where no model wrote a query."""
    if not (synthetic_queries := marked(queries)).is_empty():
        write_table(folder, TABLE, synthetic_queries)


def writers(queries: pl.DataFrame, parts: Mapping[str, Any], judges: Mapping[str, Any]) -> list[dict[str, Json]]:
    """Return a row per writer: `queries` of `of` are its own, `kin` are retrievers and judges of its family.

    `parts` is role -> names, `judges` judge -> family, which may be None. A writer, and models of its family more often
    than others, find the source document of a query relevant.
    """
    rows: list[dict[str, Json]] = []
    for (source,), written in sorted(marked(queries).group_by("source"), key=lambda group: str(group[0])):
        who = synthetic.writer(source)
        assert who is not None
        kin = {name for name, of in judges.items() if who.family and _of_judge(name, of) == who.family}
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


def _of_judge(name: str, declared: object) -> str | None:
    """Return the family of a judge; one that replays grades has none of its own and may be named after a model."""
    return family("", str(declared)) if declared else begins_as(name)
