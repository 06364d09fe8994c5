"""`curate anonymise` and `curate recognisers`: personal data in anybody's files, and what is looked for."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from curate.cli.group import Stopped

if TYPE_CHECKING:
    from curate.pii.files import Done, MaskRequest


Field = Annotated[
    list[str] | None,
    typer.Option(help="A field of texts, such as note or messages.content; may be repeated. Else text, title."),
]
Form = Annotated[
    str | None,
    typer.Option("--format", help="jsonl, csv, tsv, parquet or text (a line per text); else by the ending."),
]
Mode = Annotated[
    str | None, typer.Option(help="placeholder, pseudonym (invented, alike for alike) or tag (of the same length).")
]
Recognisers = Annotated[
    str | None,
    typer.Option(help="Names, separated by commas; `curate recognisers` lists all, which is the default."),
]
Config = Annotated[
    Path | None, typer.Option(help="YAML with the settings of the stage `mask`: patterns and words of your own.")
]
Spans = Annotated[bool, typer.Option("--spans", help="Say where: a key `spans` in JSONL, else a file OUT.spans.jsonl.")]
SpansKey = Annotated[
    str | None, typer.Option(help="Another key; without it `pii_spans` where a row has `spans` of its own.")
]
AllowResidual = Annotated[
    bool, typer.Option("--allow-residual", help="Write OUT though something still looks like personal data.")
]
Context = Annotated[bool, typer.Option("--context", help="Show what stands around such places, on standard error.")]
Processes = Annotated[int | None, typer.Option(min=1, help="How many mask at once; all cores for long files.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command("anonymise")(anonymise)
    app.command("recognisers")(recognisers)


def anonymise(
    source: Annotated[str, typer.Argument(metavar="IN", help="The file to mask; - for standard input.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="Where to write it; - for standard output.")],
    field: Field = None,
    form: Form = None,
    mode: Mode = None,
    placeholders: Annotated[str | None, typer.Option(help="Their language: zh or en.")] = None,
    recognisers: Recognisers = None,
    without: Annotated[str | None, typer.Option(help="Names of those to leave out.")] = None,
    words: Annotated[Path | None, typer.Option(help="A text file of words to mask as well, one a line.")] = None,
    config: Config = None,
    spans: Spans = False,
    spans_key: SpansKey = None,
    allow_residual: AllowResidual = False,
    context: Context = False,
    encoding: Annotated[str, typer.Option(help="utf-8, utf-16, gb18030 or big5, if it is not found out.")] = "auto",
    on_error: Annotated[str, typer.Option(help="stop, or drop rows that cannot be read.")] = "stop",
    allow_missing: Annotated[bool, typer.Option("--allow-missing", help="Let rows without a field pass.")] = False,
    processes: Processes = None,
    force: Annotated[bool, typer.Option("--force", help="Write over OUT.")] = False,
) -> None:
    """Mask personal data in a file: JSONL, CSV, TSV, Parquet or text; everything else in it stays as it was."""
    from curate.core.errors import ConfigError
    from curate.formats.readers.encoding import Encoding
    from curate.pii.files import Fields, MaskRequest
    from curate.pii.files.request import Format, listed, masking

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
    """Carry a request out, and say on standard error what was masked and what may have been missed."""
    from curate.cli.progress import bars
    from curate.pii.files import WithheldError, anonymise
    from curate.pii.secret import secret
    from curate.stages.context import home

    key = secret(home()) if order.masking.mode == "pseudonym" else b""
    try:
        with bars() as (progress, _):
            done = anonymise(order, key, progress)
    except WithheldError as error:
        _list(error.done, context=context)
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at its end
        typer.echo("curate: whoever read the output closed it; it is not whole", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise Stopped("stopped; nothing was written" if order.target != "-" else "stopped half-way") from None
    _list(done, context=context)
    typer.echo(_said(done), err=True)


def _list(done: "Done", *, context: bool) -> None:
    """Say which places still look like personal data, on standard error."""
    for each in done.left:
        name = f", {each.field}" if each.field else ""
        shown = f"  {each.excerpt}" if context else ""
        typer.echo(f"{each.row}{name}, {each.start}-{each.end}: {each.reason}{shown}", err=True)
    if more := done.reasons.total() - len(done.left):
        typer.echo(f"and {more:,} places more", err=True)


def _said(done: "Done") -> str:
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(done.spans.items()))
    parts = [f"{done.texts:,} texts, {done.changed:,} of them changed", f"spans: {kinds or 'none'}"]
    parts += [f"{done.numbers:,} numbers in their place stay as they are"] if done.numbers else []
    parts += [f"{done.dropped:,} rows dropped that could not be read"] if done.dropped else []
    parts += [f"{done.spared:,} rows had a key `spans`, so theirs is `pii_spans`"] if done.spared else []
    parts += [f"{done.reasons.total():,} places still look like personal data"] if done.reasons else []
    return "; ".join(parts)


def recognisers(as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False) -> None:
    """List what personal data is looked for: the recognisers by name, their kinds, what each of them finds."""
    from curate.pii.listing import listing

    rows = listing()
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=1))
        return
    widths = [max(len(row[column]) for row in rows) for column in ("recogniser", "kind")]
    for row in rows:
        typer.echo(f"{row['recogniser']:{widths[0]}}  {row['kind']:{widths[1]}}  {row['finds']}")
