"""Write the reference pages from the program itself: commands, settings, tables. `make docs` runs it.

Run: python docs/reference/make.py [--check]
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from curate.ask.judges import JUDGES
from curate.cli.app import app
from curate.core import records
from curate.core.registry import Registry
from curate.llm.providers.presets import LanguageModel
from curate.pipeline import stages
from curate.pipeline.pipeline import Head
from curate.retrieval.encoders import ENCODERS
from curate.retrieval.engines import ENGINES
from curate.retrieval.retrievers import RETRIEVERS
from curate.runs.index import command_class, load
from curate.view import answers

HERE = Path(__file__).parent
MADE = "<!-- Made by docs/reference/make.py from the program: change that, not this. -->\n"
FAMILIES: dict[str, Registry[Any]] = {
    "encoders": ENCODERS,
    "retrievers": RETRIEVERS,
    "judges": JUDGES,
    "engine": ENGINES,
}


def commands() -> str:
    """Return every command with its help, as the program prints it."""
    lines = [MADE, "# Commands\n", "Every command has `--help`. `--set section.key=value` reaches every setting.\n"]
    entries = {entry["words"]: entry for entry in load()}
    for path, command in _walk(typer.main.get_command(app), "curate"):
        context = click.Context(command, info_name=path, terminal_width=100, max_content_width=100)
        lines.append(f"## {path}\n\n```text\n{command.get_help(context)}\n```\n")
        entry = entries.get(path.removeprefix("curate "))
        if entry and entry["settings"]:
            lines += ["| `--set` | type | default | |", "| --- | --- | --- | --- |", *_command_settings(entry)]
            lines.append("")
    return "\n".join([*lines, *_error_codes()])


def _error_codes() -> Iterator[str]:
    yield "## Error codes\n"
    yield "The field `code` of an error with `--json`; the exit code is 0 if there is none.\n"
    yield from ("| code | exit code | meaning |", "| --- | ---: | --- |")
    yield from (f"| `{code}` | {entry['exit']} | {entry['means']} |" for code, entry in answers.listed().items())
    yield ""


def _command_settings(entry: Mapping[str, Any]) -> Iterator[str]:
    fields = command_class(entry["class"]).model_fields
    for name, key in entry["settings"].items():
        field = fields[name]
        row = (f"`{key}`", _cell(_type(field.annotation)), _cell(_default(field)), _cell(field.description or ""))
        yield f"| {' | '.join(row)} |"


def _walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _walk(child, f"{path} {name}")


def settings() -> str:
    """Return every setting of a pipeline file: key, type, default, what it is."""
    lines = [MADE, "# Settings\n", "What a pipeline file may say. A key that is not here is an error.\n"]
    lines += ["## The head of the file\n", _fields(Head)]
    for name in stages.KNOWN:
        config = stages.config(name)
        lines += [f"## {name}\n", _said(config), _fields(config)]
    for family, registry in FAMILIES.items():
        for kind in sorted(registry.builtin):  # not what others have installed here
            config = import_module(registry.load(kind).__module__).Config
            lines += [f"## {family}, kind: {kind}\n", _said(config), _fields(config)]
    lines += ["## judges, a language model\n", _said(LanguageModel), _fields(LanguageModel)]
    return "\n".join(lines)


def _said(model: type[BaseModel]) -> str:
    return f"{(model.__doc__ or '').strip().splitlines()[0] if model.__doc__ else ''}\n"


def _fields(model: type[BaseModel]) -> str:
    rows = ["| key | type | default | |", "| --- | --- | --- | --- |", *_rows(model, "")]
    return "\n".join(rows) + "\n" if len(rows) > 2 else "No settings.\n"


def _rows(model: type[BaseModel], prefix: str) -> Iterator[str]:
    described = _described(model)
    for name, field in model.model_fields.items():
        nested = _section(field.annotation)
        if nested is None or nested is model or field.default.__class__ not in (nested, PydanticUndefined.__class__):
            said = " ".join((field.description or described.get(name, "")).split())
            yield f"| `{prefix}{name}` | {_cell(_type(field.annotation))} | {_cell(_default(field))} | {_cell(said)} |"
        if nested is not None and nested is not model:
            yield from _rows(nested, f"{prefix}{name}.")


def _described(model: type[BaseModel]) -> dict[str, str]:
    """Return the texts that stand below the fields of a model, and of those that it extends, by field."""
    found: dict[str, str] = {}
    for kind in (each for each in reversed(model.__mro__) if each.__module__.startswith("curate.")):
        body = ast.parse(dedent(inspect.getsource(kind))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, text in pairwise(body.body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(words))):
                    found[name] = words
    return found


def _section(annotation: object) -> type[BaseModel] | None:
    inner = [get_args(each)[0] if get_origin(each) is Annotated else each for each in get_args(annotation)]
    found = [each for each in (annotation, *inner) if isinstance(each, type) and issubclass(each, BaseModel)]
    return found[0] if len(found) == 1 and get_origin(annotation) not in (list, tuple, dict) else None


def _type(annotation: object) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(inner[0])
    if origin is Literal:
        return " \\| ".join(f"`{each}`" for each in inner)
    if origin in (Union, UnionType):
        return " \\| ".join("null" if each is type(None) else _type(each) for each in inner)
    if origin in (list, tuple, Sequence):
        return f"list of {_type(inner[0])}" if inner else "list"
    section = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    if origin in (dict, Mapping) or annotation is dict or section:
        return "mapping"
    names = {"str": "text", "int": "whole number", "float": "number", "bool": "true \\| false"}
    return names.get(getattr(annotation, "__name__", ""), getattr(annotation, "__name__", "value"))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default if field.default is not PydanticUndefined else field.default_factory()  # type: ignore[misc,call-arg]
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple | dict):
        return f"`{', '.join(map(str, value))}`" if value else "empty"
    return f"`{value}`" if str(value) else "empty"


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|").replace("\\\\|", "\\|")


def tables() -> str:
    """Return every table of a run with its columns and their types."""
    lines = [
        MADE,
        "# Tables\n",
        "Parquet files in the folder of the stage that writes them; `curate show TABLE` prints one.\n",
    ]
    for name, columns in records.TABLES.items():
        rows = "\n".join(f"| `{column}` | {kind} |" for column, kind in columns.items())
        lines.append(f"## {name}\n\n| column | type |\n| --- | --- |\n{rows}\n")
    return "\n".join(lines)


PAGES = {"commands.md": commands, "settings.md": settings, "tables.md": tables}


def main() -> int:
    """Write the pages, or with --check say which are out of date."""
    old = [name for name, make in PAGES.items() if not (HERE / name).is_file() or (HERE / name).read_text() != make()]
    if "--check" in sys.argv:
        print("\n".join(f"{name}: out of date; run make docs" for name in old) or "the reference is up to date")
        return bool(old)
    for name, make in PAGES.items():
        (HERE / name).write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
