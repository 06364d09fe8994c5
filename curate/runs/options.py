"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from curate.runs import completing

AllowWeak = Annotated[
    bool, typer.Option("--allow-weak-judges", help="Continue with judges that did not pass their controls.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object, which `curate schema` describes, instead of text.")
]
Assessor = Annotated[str | None, typer.Option(help="Who filled in the files, if the files do not name a person.")]
Assessors = Annotated[str, typer.Option(help="Names of the people who read, separated by commas.")]
Assign = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Change a setting: section.key=value; may be repeated.", autocompletion=completing.settings
    ),
]
Depth = Annotated[int | None, typer.Option(min=1, help="Documents that each retriever returns per query.")]
File = Annotated[
    str | None,
    typer.Option(
        "--pipeline", help="Pipeline file, or the name of a packaged one.", autocompletion=completing.pipelines
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option("--run", help="Run folder; default: runs/NAME, or the newest run.", autocompletion=completing.runs),
]
Force = Annotated[bool, typer.Option("--force", help="Run again even if up to date.")]
Formats = Annotated[str, typer.Option("--format", help="File format: csv, xlsx, or csv,xlsx.")]
Language = Annotated[
    str | None, typer.Option("--language", help="Language of the texts, such as zh; default: detected.")
]
Batch = Annotated[
    bool, typer.Option("--batch", help="Send through batch APIs, at about half the price, where a vendor has one.")
]
MaxCost = Annotated[
    str | None,
    typer.Option("--max-cost", metavar="<50 or 50USD>", help="Stop before the calls cost more than this."),
]
Offline = Annotated[bool, typer.Option("--offline", help="Send nothing; take every answer from the ledger.")]
Panel = Annotated[
    str | None,
    typer.Option("--models", help="The panel: names of judges, separated by commas.", autocompletion=completing.judges),
]
Plan = Annotated[bool, typer.Option("--plan", help="Print calls, tokens and cost; send nothing.")]
PlanAsJson = Annotated[bool, typer.Option("--json", help="Print the plan as one JSON object; with --plan.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port of the web page; 0 takes a free one.")]
Queries = Annotated[int | None, typer.Option(min=1, help="Size of a random sample of queries; default: all.")]
Retrievers = Annotated[
    str | None,
    typer.Option(
        "--retrievers",
        help="Names of retrievers, separated by commas: bm25,e5,use.",
        autocompletion=completing.retrievers,
    ),
]
Retry = Annotated[
    bool, typer.Option("--retry", help="Ask again where a model refused or its answer could not be parsed.")
]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the random sample; default: the pipeline's.")]
Source = Annotated[
    str | None, typer.Argument(help="Folder in BEIR or MTEB layout, or name of an MTEB task; default: the run's.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Spend without a cap.")]
