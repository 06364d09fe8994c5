"""`curate embed`: encode a run's texts into the cache before its stages run, on one machine or several."""

import re
from typing import Any

from curate.core.errors import ConfigError
from curate.runs.command import Names, option
from curate.runs.options import OnPipeline
from curate.view.answers import Result
from curate.view.text import as_table


class EmbedCommand(OnPipeline):
    """Precompute embeddings.

    Queries and documents are encoded into the cache ahead of diversify or pool; cached texts are skipped.
    """

    words = "embed"
    examples = ("embed --encoder e5", "embed --shard 0/3")

    encoder: Names = option("Name of an encoder; default: those of the next stage.", (), metavar="NAMES")
    shard: str = option("Part of the texts to encode: 0/3, 1/3 and 2/3 together are all.", "0/1", metavar="I/N")

    def result(self) -> Result[Any]:
        """Encode the texts that the cache lacks, and return a row per encoder and table."""
        from curate.commands.embed.embedding import embed

        rows = embed(self.open_run(), self.encoder, _parsed_shard(self.shard))
        return Result(rows, [as_table(rows)])


def _parsed_shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    number, shards = (int(group) for group in match.groups()) if match else (0, 0)
    if number >= shards:
        raise ConfigError(f"--shard: found {text!r}, expected I/N with I from 0 to N - 1, for example 0/3")
    return number, shards
