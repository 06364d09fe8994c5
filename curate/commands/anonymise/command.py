"""`curate anonymise`: mask personal data in a user's files; `curate recognisers`: list what is searched for."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from curate.runs.group import Stopped
from curate.runs.options import AsJson
from curate.view import output_mode
from curate.view.answers import answer
from curate.view.output_mode import reporting

if TYPE_CHECKING:
    from curate.commands.anonymise.file import Done
    from curate.commands.anonymise.settings import MaskRequest


Field = Annotated[
    list[str] | None,
    typer.Option(help="Field with text, such as note or messages.content; may be repeated. Default: text, title."),
]
Form = Annotated[
    str | None,
    typer.Option("--format", help="jsonl, csv, tsv, parquet or text (one text per line); default: by the file name."),
]
Mode = Annotated[
    str | None,
    typer.Option(help="placeholder, pseudonym (invented; equal values get equal ones) or tag (same length)."),
]
Recognisers = Annotated[
    str | None,
    typer.Option(help="Names of recognisers, separated by commas; default: all that `curate recognisers` lists."),
]
Config = Annotated[
    Path | None, typer.Option(help="YAML with the settings of the stage `mask`: patterns and words of your own.")
]
Spans = Annotated[
    bool, typer.Option("--spans", help="Write the masked spans: a key `spans` in JSONL, else a file OUT.spans.jsonl.")
]
SpansKey = Annotated[
    str | None, typer.Option(help="Key of the spans; default: `spans`, or `pii_spans` where a row has `spans` already.")
]
AllowResidual = Annotated[
    bool, typer.Option("--allow-residual", help="Write OUT even if something still looks like personal data.")
]
Context = Annotated[bool, typer.Option("--context", help="Print the text around such places, on standard error.")]
Processes = Annotated[
    int | None, typer.Option(min=1, help="Number of parallel processes; default: all cores for long files.")
]


@reporting
def anonymise(
    source: Annotated[str, typer.Argument(metavar="IN", help="The file to mask; - for standard input.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="Where to write it; - for standard output.")],
    field: Field = None,
    form: Form = None,
    mode: Mode = None,
    placeholders: Annotated[str | None, typer.Option(help="Language of the placeholders: zh or en.")] = None,
    recognisers: Recognisers = None,
    without: Annotated[str | None, typer.Option(help="Names of recognisers to leave out, separated by commas.")] = None,
    words: Annotated[Path | None, typer.Option(help="Text file with more words to mask, one per line.")] = None,
    config: Config = None,
    spans: Spans = False,
    spans_key: SpansKey = None,
    allow_residual: AllowResidual = False,
    context: Context = False,
    encoding: Annotated[str, typer.Option(help="utf-8, utf-16, gb18030 or big5; auto detects it.")] = "auto",
    on_error: Annotated[str, typer.Option(help="What to do with rows that cannot be read: stop or drop.")] = "stop",
    allow_missing: Annotated[bool, typer.Option("--allow-missing", help="Allow rows that lack a field.")] = False,
    processes: Processes = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT.")] = False,
) -> None:
    """Mask personal data in a file: JSONL, CSV, TSV, Parquet or text; all else in it stays unchanged."""
    from curate.commands.anonymise.settings import Fields, Format, MaskRequest, listed, masking
    from curate.core.errors import ConfigError
    from curate.tables.readers.encoding import Encoding

    if output_mode.json_lines() and target == "-":
        raise ConfigError("--json-lines: both the events and OUT would go to standard output; give a file for OUT")
    if on_error not in ("stop", "drop"):
        raise ConfigError(f"--on-error: found {on_error!r}, expected stop or drop")
    order = MaskRequest(
        source,
        target,
        masking=masking(
            config,
            words,
            mode=mode,
            placeholders=placeholders,
            recognisers=listed(recognisers),
            without=listed(without),
        ),
        fields=Fields.of(tuple(field or ()), missing=allow_missing),
        format=cast("Format | None", form),  # checked by the order
        encoding=cast("Encoding", encoding),
        spans=spans,
        spans_key=spans_key,
        allow_residual=allow_residual,
        drop=on_error == "drop",
        force=force,
        processes=processes,
    )
    _mask(order, context=context)


def _mask(order: "MaskRequest", *, context: bool) -> None:
    """Mask the file, and print counts and possible residual PII to standard error; `context` adds excerpts."""
    from curate.commands.anonymise.file import WithheldError, anonymise
    from curate.pii.pseudonyms import secret
    from curate.pipeline.stage import home
    from curate.view.progress import bars

    key = secret(home()) if order.masking.mode == "pseudonym" else b""
    try:
        with bars() as (progress, _):
            summary = anonymise(order, key, progress)
    except WithheldError as error:
        _list(error.done, context=context)
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at its end
        typer.echo("curate: the reader of the output closed it; it is not whole", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise Stopped("stopped; nothing was written" if order.target != "-" else "stopped half-way") from None
    _list(summary, context=context)
    counts = {name: getattr(summary, name) for name in ("texts", "changed", "numbers", "dropped", "spared")}
    result = {"out": order.target, **counts, "spans": dict(summary.spans), "residual": summary.reasons.total()}
    output_mode.put(result, _sentence(summary), err=True)


def _list(summary: "Done", *, context: bool) -> None:
    """Print the passages with possible residual PII to standard error; `context` adds excerpts."""
    for residue in summary.left:
        name = f", {residue.field}" if residue.field else ""
        text_around = f"  {residue.excerpt}" if context else ""
        typer.echo(f"{residue.row}{name}, {residue.start}-{residue.end}: {residue.reason}{text_around}", err=True)
    if unlisted := summary.reasons.total() - len(summary.left):
        typer.echo(f"and {unlisted:,} places more", err=True)


def _sentence(summary: "Done") -> str:
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(summary.spans.items()))
    clauses = [f"{summary.texts:,} texts, {summary.changed:,} of them changed", f"spans: {kinds or 'none'}"]
    clauses += [f"{summary.numbers:,} numbers in their place stay as they are"] if summary.numbers else []
    clauses += [f"{summary.dropped:,} rows dropped that could not be read"] if summary.dropped else []
    clauses += [f"{summary.spared:,} rows had a key `spans`, so theirs is `pii_spans`"] if summary.spared else []
    clauses += [f"{summary.reasons.total():,} places still look like personal data"] if summary.reasons else []
    return "; ".join(clauses)


def recognisers(as_json: AsJson = False) -> None:
    """List the recognisers of personal data: their names, their kinds, and what each of them matches."""
    from curate.pii.settings import listing

    rows = listing()
    widths = [max(len(row[column]) for row in rows) for column in ("recogniser", "kind")]
    lines = (f"{row['recogniser']:{widths[0]}}  {row['kind']:{widths[1]}}  {row['finds']}" for row in rows)
    answer(rows, lines, as_json=as_json)
