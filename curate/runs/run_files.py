"""Rankings of external systems: TREC run files, and predictions of mteb."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from curate.ask.build import kit
from curate.core.errors import UserError
from curate.core.records import TABLES, Query
from curate.pipeline.facts import known_ids, pooled
from curate.pipeline.stage import Context
from curate.retrieval.id_mapping import ranked
from curate.retrieval.retrievers import runfile
from curate.runs import unjudged
from curate.system.corpus import TableCorpus


def system_name(path: Path) -> str:
    """Return the name of a run file's system."""
    return f"file {path.stem}"


def rankings(
    context: Context, files: Sequence[Path], subset: str | None = None, split: str | None = None
) -> pl.DataFrame:
    """Return the rankings of run files as a table `rankings`; a file's stem is the system's name.

    `subset` and `split` choose in a file of mteb. UserError if a file is missing or two have one name.
    """
    tables = [pl.DataFrame(schema=TABLES["rankings"])]
    names = [path.stem for path in files]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"--run-file: found several files named {', '.join(twice)}; rename them, for names are shown")
    if absent := [str(path) for path in files if not path.exists()]:
        raise UserError(
            f"--run-file: {', '.join(absent)}: no such file; give a TREC run, or <task>_predictions.json of mteb"
        )
    if files:
        corpus = TableCorpus(context.folder("diversify"))
        ids = known_ids(context, corpus)
        queries = [Query(*row) for row in pooled(context).select("query_id", "text").iter_rows()]
        for path in files:
            system = runfile.RunFile(
                system_name(path), runfile.Config(path=path, subset=subset, split=split), kit(context)
            )
            tables += ranked(system, corpus, queries, unjudged.DEEPEST, ids, context.progress)
    return pl.concat(tables)
