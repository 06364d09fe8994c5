"""`curate embed`: encode a run's texts into the cache before its stages run, on one machine or several."""

import re
from typing import Annotated

import typer

from curate.runs.options import AsJson, Assign, File, Folder
from curate.runs.running import open_run
from curate.view.answers import answer
from curate.view.output_mode import reporting
from curate.view.text import as_table


@reporting
def embed(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option("--encoder", help="Name of an encoder; may be repeated; default: those of the next stage."),
    ] = None,
    shard: Annotated[
        str, typer.Option(help="Part of the texts to encode, as I/N: 0/3, 1/3 and 2/3 together are all.")
    ] = "0/1",
    as_json: AsJson = False,
) -> None:
    """Encode queries and documents into the cache ahead of diversify or pool; cached texts are skipped."""
    from curate.commands.embed.embedding import embed as fill
    from curate.view.progress import bars

    work, shard_numbers = open_run(pipeline, run, assign or []), _parsed_shard(shard)
    with bars() as (work.progress, work.tell):
        rows = fill(work, encoder or [], shard_numbers)
    answer(rows, [as_table(rows)], as_json=as_json)


def _parsed_shard(text: str) -> tuple[int, int]:
    from curate.core.errors import ConfigError

    match = re.fullmatch(r"(\d+)/(\d+)", text)
    number, shards = (int(group) for group in match.groups()) if match else (0, 0)
    if number >= shards:
        raise ConfigError(f"--shard: found {text!r}, expected I/N with I from 0 to N - 1, for example 0/3")
    return number, shards
