"""Index of all commands and their options, from which help and completion are made without importing a command.

`python -m curate.runs.index` writes `index.json` anew.
"""

import json
from collections.abc import Sequence
from importlib import import_module
from inspect import cleandoc
from pathlib import Path, PurePath
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from curate.runs.command import Command

INDEX = Path(__file__).with_name("index.json")
PANELS: dict[str, tuple[str, ...]] = {
    "Start": (
        "init.command:InitCommand",
        "run.command:RunCommand",
        "status:StatusCommand",
        "status:ShowCommand",
        "view:ViewCommand",
        "doctor:DoctorCommand",
        "models:ModelsCommand",
        "models:ModelsTestCommand",
    ),
    "Build": (
        "ingest:IngestCommand",
        "mask:MaskCommand",
        "diversify.command:DiversifyCommand",
        "embed:EmbedCommand",
        "queries:QueriesCommand",
        "pool:PoolCommand",
        "judge:JudgeCommand",
        "consensus:ConsensusCommand",
        "resolve:ResolveCommand",
        "sts:StsCommand",
        "label:LabelCommand",
        "paraphrase:ParaphraseCommand",
        "gradient:GradientCommand",
        "report:ReportCommand",
    ),
    "Check": (
        "audit.command:AuditCommand",
        "agree.command:AgreeCommand",
        "pilot.export:PilotExportCommand",
        "pilot.report:PilotReportCommand",
        "review:ReviewExportCommand",
        "review:ReviewImportCommand",
        "review:ReviewServeCommand",
        "review:ReviewInviteCommand",
        "review:ReviewFlagsCommand",
        "review:ReviewLogCommand",
        "review:ReviewReportCommand",
        "review:ReviewAdjudicateCommand",
        "check.judge:CheckJudgeCommand",
        "check.check_pool:CheckPoolCommand",
        "check.check_mask:CheckMaskCommand",
        "check.check_leaks:CheckLeaksCommand",
        "check.check_circular:CheckCircularCommand",
        "analyze:AnalyzeCommand",
    ),
    "Publish": (
        "export:ExportCommand",
        "verify:VerifyCommand",
        "ready:ReadyCommand",
        "paper:PaperCommand",
        "extend.command:ExtendCommand",
        "diff:DiffCommand",
    ),
    "Evaluate & train": (
        "evaluate.command:EvaluateCommand",
        "train_set.command:TrainSetCommand",
        "train.command:TrainCommand",
        "notes:NotesCommand",
        "tokens.command:TokensCommand",
    ),
    "Utilities": (
        "anonymise.command:AnonymiseCommand",
        "anonymise.command:RecognisersCommand",
        "erase:EraseCommand",
        "ledger:LedgerStatsCommand",
        "ledger:LedgerExportCommand",
        "ledger:LedgerImportCommand",
        "ledger:LedgerCheckCommand",
        "schema:SchemaCommand",
    ),
}
"""Heading in the help -> commands, as `MODULE:CLASS` below `curate.commands`, in the order of the help."""
GROUPS = {
    "models": "List and test LLM judges.",
    "pilot": "Choose judges on a human sample.\n\nPeople grade 100 to 200 pairs before the judges are paid; the "
    "cheapest panel and rule that agrees with them is proposed. Sheets come back by `curate review import`, the page "
    "is `curate review serve`.",
    "review": "Run a human review.\n\nExperts check a sample of the labels, from which precision and recall of all "
    "labels are estimated.",
    "check": "Test judges, pool, masking and leaks between two sets.",
    "ledger": "Inspect, copy, merge and check the ledger of all runs.",
}
"""First word of several commands -> its help."""
SET = {
    "name": "settings",
    "as": "option",
    "flag": "--set",
    "type": "text",
    "many": True,
    "help": "Change a setting below; may be repeated.",
    "metavar": "NAME=VALUE",
}
"""The option of a command with settings of its own, but none of a pipeline."""
TYPES = {bool: "flag", int: "integer", float: "number", str: "text", Path: "path"}

Entry = dict[str, Any]


def load() -> list[Entry]:
    """Return the index: an entry per command, in the order of the help."""
    entries: list[Entry] = json.loads(INDEX.read_text(encoding="utf-8"))
    return entries


def command_class(home: str) -> "type[Command]":
    """Import and return the class of a command, `MODULE:CLASS` below `curate.commands`."""
    module, _, name = home.partition(":")
    command: type[Command] = getattr(import_module(f"curate.commands.{module}"), name)
    return command


def entries() -> list[Entry]:
    """Return the index as the classes of the commands define it."""
    return [_entry(panel, home) for panel, homes in PANELS.items() for home in homes]


def _entry(panel: str, home: str) -> Entry:
    from curate.core import figures
    from curate.runs.command import described

    command = command_class(home)
    fields = {name: field for name, field in command.model_fields.items() if described(field)}
    options = [_option(name, field) for name, field in fields.items() if described(field)["as"] != "setting"]
    settings = {
        name: described(field)["key"] or name for name, field in fields.items() if described(field)["as"] == "setting"
    }
    return {
        "words": command.words,
        "panel": panel,
        "class": home,
        "help": cleandoc(command.__doc__ or ""),
        "examples": list(command.examples),
        "json": command.speaks_json,
        "answer": command.answers or figures.described(command.answer()),
        "options": options if "settings" in fields or not settings else [*options, SET],
        "pipeline": "settings" in fields,
        "settings": settings,
        "removed": {f"--{name.replace('_', '-')}": f"--set {key}=VALUE" for name, key in settings.items()}
        | dict(command.removed),
    }


def _option(name: str, field: "FieldInfo") -> Entry:
    """Return an option or an argument; what is not set, and a default of none, is left out."""
    from curate.runs.command import described

    access: dict[str, Any] = described(field)
    kind: Any = field.annotation
    inner = [alternative for alternative in get_args(kind) if alternative is not type(None)]
    if get_origin(kind) in (UnionType, Union):
        kind, inner = inner[0], list(get_args(inner[0]))
    values = len(inner) if get_origin(kind) is tuple and Ellipsis not in inner else None
    many = get_origin(kind) in (tuple, Sequence) and not values
    kind = inner[0] if many or values else kind
    choices = list(get_args(kind)) if get_origin(kind) is Literal else None
    flag = access.get("flag") or f"--{name.replace('_', '-')}"
    default = None if field.is_required() or field.default in ((), None) else field.default
    option = {
        "name": name,
        "as": access["as"],
        "flag": f"{flag}/--no-{flag[2:]}" if default is True else flag,
        "type": "text" if choices else TYPES[kind],
        "many": many or None,
        "values": values,
        "choices": choices,
        "required": field.is_required() or None,
        "default": str(default) if isinstance(default, PurePath) else default,
        "help": field.description,
        **{key: access.get(key) for key in ("metavar", "complete", "group", "ge", "le")},
    }
    return {key: entry for key, entry in option.items() if entry is not None and entry != ""}


if __name__ == "__main__":
    INDEX.write_text(json.dumps(entries(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
