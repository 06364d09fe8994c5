"""`curate tokens`: tokens per word, unknown words and truncation of a collection, by model."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from curate.runs.options import AsJson
from curate.view.answers import answer
from curate.view.output_mode import reporting
from curate.view.text import as_table

Models = Annotated[
    list[str] | None,
    typer.Option("--models", "-m", help="minilm, use, e5, a folder, or a model of the hub; separated by commas."),
]
SHOWN = 5
"""Number of terms per model in the terminal."""


@reporting
def tokens(
    folder: Annotated[Path, typer.Argument(help="A run folder, an export, a folder of queries and corpus, or a file.")],
    others: Annotated[
        list[str] | None, typer.Argument(help="More models, as after --models.", metavar="[MODEL]...")
    ] = None,
    models: Models = None,
    column: Annotated[str | None, typer.Option(help="Column of a file's texts; default: text or query.")] = None,
    terms: Annotated[int, typer.Option(min=0, help="Split terms listed per model.")] = 20,
    limit: Annotated[
        int | None, typer.Option(min=1, max=2**63 - 1, help="Read the first texts alone, of queries and documents.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resamples.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for tokens.json and README.md.")] = None,
    as_json: AsJson = False,
) -> None:
    """Count what tokenizers make of texts: tokens per word, split words, unknown ones, texts that would be cut."""
    from curate.commands.tokens.report import TokenRequest, report
    from curate.view.progress import bars

    names = [name for option in [*(models or []), *(others or [])] for name in option.split(",") if name]
    order = TokenRequest(folder, names, column, terms, limit, out, seed)
    with bars() as (progress, _):
        figures = report(order, progress)
    answer(figures, _text(figures), as_json=as_json, warnings=figures["notes"])


def _text(figures: Mapping[str, Any]) -> Iterator[str]:
    from curate.commands.tokens import report as page

    for collection in figures["parts"]:
        yield page.head(collection)
        yield as_table(page.overview(collection, figures["lengths"]))
        for model, rows in page.terms(collection, SHOWN):
            yield f"split terms that cost most, {model}"
            yield as_table(rows)
        yield ""
    yield from figures["notes"]
    if figures["folder"]:
        yield f"all figures: {figures['folder']}/README.md"
