"""`curate notes`: evaluate embeddings of labelled texts, by recall of texts of one group and by label."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from curate.runs.options import AsJson
from curate.view.answers import answer
from curate.view.text import as_table

Column = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD=NAME",
        help="Column of id, title, text, group, order, label or style, such as group=patient_id; may be repeated.",
    ),
]
Delimiter = Annotated[str | None, typer.Option(help="Between the cells of TABLE, such as ';'; found without it.")]
Models = Annotated[
    list[str] | None,
    typer.Option("--models", "-m", help="minilm, use, e5, a folder, or a model of the hub; separated by commas."),
]


def notes(
    table: Annotated[Path, typer.Argument(help="Texts, a row each: CSV, TSV, .xlsx, JSON lines, Parquet or Arrow.")],
    models: Models = None,
    column: Column = None,
    floors: Annotated[bool, typer.Option(help="Measure text length, shared characters and chance too.")] = True,
    folds: Annotated[int, typer.Option(help="Parts that the probe of the label is fitted on in turn.")] = 2,
    seeds: Annotated[int, typer.Option(help="How often the texts are parted anew for the probe.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of resamples and parts.")] = 0,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Longest input in tokens, of all models but use and e5.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1.")] = None,
    delimiter: Delimiter = None,
    sheet: Annotated[str | None, typer.Option(help="Sheet of an .xlsx TABLE; default: the only one with data.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for figures.json and README.md.")] = None,
    export: Annotated[Path | None, typer.Option(help="Folder for two masked tasks that stock mteb scores.")] = None,
    language: Annotated[str | None, typer.Option(help="Language of the exported texts; default: detected.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print what each model has left to encode.")] = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate embeddings of labelled texts, such as notes of patients: recall along chains, AUROC, silhouettes."""
    from curate.commands.notes import evaluate as evaluating
    from curate.commands.notes.table import NotesLayout, named
    from curate.view.progress import bars

    order = evaluating.NotesRequest(
        table,
        [name for names in models or [] for name in names.split(",") if name],
        NotesLayout(named(column or []), delimiter, sheet),
        floors=floors,
        folds=folds,
        seeds=seeds,
        seed=seed,
        max_length=max_length,
        device=device,
        out=out,
        export=export,
        language=language,
    )
    if plan:
        with bars() as (progress, _):
            rows = evaluating.planned(order, progress)
        answer({"plan": rows}, [as_table(rows) if rows else "nothing is to be encoded"], as_json=as_json)
        return
    with bars() as (progress, _):
        summary = evaluating.evaluate(order, progress)
    answer(summary, _text(summary), as_json=as_json, warnings=summary["notes"])


def _text(summary: Mapping[str, Any]) -> Iterator[str]:
    from curate.commands.notes import figures

    yield figures.head(summary)
    if summary["figures"]:
        yield "\nRecall, AUROC and silhouettes, with 95 % intervals over groups; floors with ties by chance"
        yield as_table(figures.overview(summary))
    if summary["differences"]:
        yield "\nDifferences between models\n" + as_table(figures.apart(summary))
    yield ""
    yield from figures.undefined(summary)
    yield from summary["notes"]
    yield from figures.exported(summary)
    if summary["folder"]:
        yield f"all figures: {summary['folder']}/README.md"
