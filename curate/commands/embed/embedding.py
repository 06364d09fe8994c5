"""Embeddings of a run's texts, computed ahead of the stages on one machine or several.

Only the cache of embeddings is written, so several processes may work at the same time.
"""

from collections.abc import Sequence

from curate.ask import build
from curate.commands.diversify import Config as Diversify
from curate.core.config import Json
from curate.core.errors import UserError
from curate.core.records import FILTERED
from curate.pipeline.configs import PoolConfig as Pool
from curate.pipeline.stage import Context
from curate.retrieval.retrievers.dense import DenseRetriever
from curate.retrieval.vectors import encode_in_parts, encode_part, fill_texts
from curate.runs.runner import Run
from curate.system.corpus import TableCorpus
from curate.system.run_lock import enough_space


def embed(work: Run, encoders: Sequence[str] = (), part: tuple[int, int] = (0, 1)) -> list[dict[str, Json]]:
    """Encode the uncached texts of one shard of a run; return one row of counts per encoder.

    `part` is (index of the shard from 0, number of shards). Texts and encoders are those of the next stage:
    `diversify` with the tables of `mask` or, once that is up to date, `pool` with the tables of `diversify`. If the
    pipeline's engine has workers, they encode. UserError if no encoder is named and the stage needs none.
    """
    diversified = work.states().get(FILTERED, ("missing", None))[0] == "done"
    context = work.beside("pool" if diversified else FILTERED)
    tables = FILTERED if diversified else "mask"
    queries, corpus = context.read(tables, "queries")["text"].to_list(), TableCorpus(context.folder(tables))
    engine = build.engine(context) if build.workers(context) else None
    rows: list[dict[str, Json]] = []
    for name in encoders or _needed(work, context, diversified=diversified):
        encoder = build.encoder(context, name)
        with enough_space(encoder.folder):
            if engine is None:
                encoded_queries = fill_texts(encoder, queries, "query", part)
                encoded_docs = encode_part(encoder, corpus, context.progress, part)
            else:
                encoded_queries, encoded_docs = encode_in_parts(
                    engine, encoder, corpus, queries, context.progress, part
                )
        counts: dict[str, Json] = {"queries_encoded": encoded_queries, "documents_encoded": encoded_docs}
        rows.append({"encoder": name, "tables": tables, **counts, "folder": str(encoder.folder)})
    return rows


def _needed(work: Run, context: Context, *, diversified: bool) -> list[str]:
    """Return the encoders of the next stage; those of `pool` if `diversify` retains everything. UserError if none."""
    section, pool = work.pipeline.sections[FILTERED], work.pipeline.sections["pool"]
    assert isinstance(section, Diversify)
    assert isinstance(pool, Pool)
    if not diversified and section.enabled and (section.queries.by_cosine or section.corpus.by_cosine):
        return [section.encoder]
    retrievers = (build.retriever(context, name) for name in pool.retrievers)
    names = [retriever.encoder.name for retriever in retrievers if isinstance(retriever, DenseRetriever)]
    if not names:
        raise UserError("embed: no retriever of the pipeline encodes texts; name an encoder with --encoder")
    return list(dict.fromkeys(names))
