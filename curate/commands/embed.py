"""`curate embed`: encode a run's texts into the cache before its stages run, on one machine or several.

Only the cache of embeddings is written, so several processes may work at the same time.
"""

import re
from collections.abc import Sequence

from curate.ask import build
from curate.commands.diversify import Config as Diversify
from curate.core.errors import ConfigError, UserError
from curate.core.figures import Record, figure
from curate.core.records import FILTERED
from curate.pipeline.configs import PoolConfig as Pool
from curate.pipeline.stage import Context
from curate.retrieval.retrievers.dense import DenseRetriever
from curate.retrieval.vectors import encode_in_parts, encode_part, fill_texts
from curate.runs.command import Names, option
from curate.runs.options import OnPipeline
from curate.runs.runner import Run
from curate.system.corpus import TableCorpus
from curate.system.run_lock import enough_space
from curate.view.answers import Result
from curate.view.text import as_table


class EncodedTexts(Record, schema_name="row"):
    """A row per encoder."""

    encoder: str = figure("name of the encoder")
    tables: str = figure("stage whose texts were encoded")
    queries_encoded: int = figure("queries that were not in the cache")
    documents_encoded: int = figure("documents that were not in the cache")
    folder: str = figure("folder of the cache")


class EmbedCommand(OnPipeline):
    """Precompute embeddings.

    Queries and documents are encoded into the cache ahead of diversify or pool; cached texts are skipped.
    """

    words = "embed"
    examples = ("embed --encoder e5", "embed --shard 0/3")

    encoder: Names = option("Name of an encoder; default: those of the next stage.", (), metavar="NAMES")
    shard: str = option("Part of the texts to encode: 0/3, 1/3 and 2/3 together are all.", "0/1", metavar="I/N")

    def result(self) -> Result[list[EncodedTexts]]:
        """Encode the texts that the cache lacks, and return a row per encoder and table."""
        rows = embed(self.open_run(), self.encoder, _parsed_shard(self.shard))
        return Result(rows, [as_table([row.to_json() for row in rows])])


def _parsed_shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    number, shards = (int(group) for group in match.groups()) if match else (0, 0)
    if number >= shards:
        raise ConfigError(f"--shard: found {text!r}, expected I/N with I from 0 to N - 1, for example 0/3")
    return number, shards


def embed(work: Run, encoders: Sequence[str] = (), part: tuple[int, int] = (0, 1)) -> list[EncodedTexts]:
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
    rows: list[EncodedTexts] = []
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
        rows.append(EncodedTexts(name, tables, encoded_queries, encoded_docs, str(encoder.folder)))
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
