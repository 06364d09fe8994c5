"""`curate notes`: evaluate embeddings of labelled texts, by recall of texts of one group and by label."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curate.runs.command import Command, Names, argument, option, setting
from curate.view.answers import Result
from curate.view.text import as_table


class NotesCommand(Command):
    """Test embeddings of notes.

    Of patients, or of other labelled texts: recall along chains, AUROC, silhouettes.
    """

    words = "notes"
    examples = (
        "notes notes.csv --models e5 --column group=patient_id",
        "notes notes.xlsx --models minilm,e5 --column label=ward --out figures",
    )

    table: Path = argument("Texts, a row each: CSV, TSV, .xlsx, JSON lines, Parquet or Arrow.")
    models: Names = option(
        "minilm, use, e5, a folder, or a model of the hub; separated by commas.",
        (),
        flag="--models,-m",
        metavar="NAMES",
    )
    column: tuple[str, ...] = option(
        "Column of id, title, text, group, order, label or style, such as group=patient_id; may be repeated.",
        (),
        metavar="FIELD=NAME",
    )
    floors: bool = option("Measure text length, shared characters and chance too.", True)
    out: Path | None = option("Folder for figures.json and README.md.", None, metavar="FOLDER")
    export: Path | None = option("Folder for two masked tasks that stock mteb scores.", None, metavar="FOLDER")
    device: str | None = option("Where to compute.", None, metavar="cpu|cuda|cuda:1")
    plan: bool = option("Print what each model has left to encode.", False)
    folds: int = setting("Parts that the probe of the label is fitted on in turn.", 2)
    seeds: int = setting("How often the texts are parted anew for the probe.", 3)
    seed: int = setting("Seed of resamples and parts.", 0, ge=0)
    max_length: int | None = setting("Longest input in tokens, of all models but use and e5.", None, ge=1)
    delimiter: str | None = setting("Between the cells of the table, such as ';'; found without it.", None)
    sheet: str | None = setting("Sheet of an .xlsx file; default: the only one with data.", None)
    language: str | None = setting("Language of the exported texts; default: detected.", None)

    def result(self) -> Result[Any]:
        """Return the figures; with `plan`, a row per model with the texts that are left to encode."""
        from curate.commands.notes import evaluate as evaluating
        from curate.commands.notes.table import NotesLayout, named

        request = evaluating.NotesRequest(
            self.table,
            self.models,
            NotesLayout(named(self.column), self.delimiter, self.sheet),
            floors=self.floors,
            folds=self.folds,
            seeds=self.seeds,
            seed=self.seed,
            max_length=self.max_length,
            device=self.device,
            out=self.out,
            export=self.export,
            language=self.language,
        )
        if self.plan:
            rows = evaluating.planned(request, self.progress)
            return Result({"plan": rows}, [as_table(rows) if rows else "nothing is to be encoded"])
        summary = evaluating.evaluate(request, self.progress)
        return Result(summary, _text(summary), summary["notes"])


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
