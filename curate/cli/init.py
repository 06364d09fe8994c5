"""`curate init`: a first pipeline file for one's own data."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from curate.cli import completing
from curate.cli.options import Language


def init(
    source: Annotated[
        str | None, typer.Argument(help="A folder with queries, corpus and perhaps qrels, or an mteb task's name.")
    ] = None,
    queries: Annotated[str | None, typer.Option(help="File of the queries.")] = None,
    corpus: Annotated[str | None, typer.Option(help="File of the documents.")] = None,
    qrels: Annotated[str | None, typer.Option(help="File of known relevant pairs, if there is one.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the benchmark and of its run folder.")] = None,
    language: Language = None,
    models: Annotated[
        str | None,
        typer.Option(help="Judges, separated by commas; default: those with a key.", autocompletion=completing.judges),
    ] = None,
    file: Annotated[Path | None, typer.Option(help="Pipeline file to write; default: NAME.yaml.")] = None,
) -> None:
    """Look at queries and documents, and write a pipeline file for them."""
    from curate.llm.exchange_rates import line
    from curate.runs.init import look, start

    if source is None and not (queries and corpus):
        source, queries, corpus = _asked(queries, corpus)
    found = look(source, queries, corpus, qrels)
    called = name or _name(source or queries or "")
    path = file or Path(f"{called}.yaml")
    made = start(found, path, called, language, models.split(",") if models else None)
    for table, count in made.counts.items():
        named = {**found.guesses[table].usual, **found.guesses[table].columns}
        columns = ", ".join(f"{field}: {column}" for field, column in named.items())
        typer.echo(f"{table:8} {count:>9,} rows   columns {columns}")
    typer.echo(f"language: {made.language}{'' if language else ', detected in the texts'}")
    for model, plan in made.quote:
        typer.echo(f"{model}: {plan.said()}")
    if len(currencies := {plan.currency for _, plan in made.quote if plan.cost}) > 1:
        rates = line(currencies, max(currencies))
        typer.echo(f"note: a cap (--max-cost) needs what these currencies are worth: `{rates}` in the file")
    if any(plan.cost is None for _, plan in made.quote):
        typer.echo("note: a cap (--max-cost) needs every judge's price: judges.NAME.price in the file")
    if not made.models:
        typer.echo("no key of a language model was found, so heuristics will grade: good for a trial, for nothing else")
    for problem in found.problems:
        typer.echo(f"note: {problem}")
    typer.echo(f"written: {path}; look at it, then: curate run {shlex.quote(str(path))}")


def _asked(queries: str | None, corpus: str | None) -> tuple[str | None, str | None, str | None]:
    """Ask for what the options left open."""
    if queries is None and corpus is None:
        place = typer.prompt("Folder with queries and corpus (empty: two files)", default="", show_default=False)
        if place:
            return place, None, None
    return None, queries or typer.prompt("File of the queries"), corpus or typer.prompt("File of the documents")


def _name(place: str) -> str:
    """Return a name for a run from the name of a folder or a file."""
    path = Path(place)
    stem = (path.parent if path.suffix else path).resolve().name or "benchmark"
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in stem)
