"""The commands of the program as functions: the same words, and options as keywords.

A function returns the data that the command prints with `--json`; what makes the command fail is raised. All take
`progress(label, total, done, money)` and `tell(line)` too.
"""

import re
from collections.abc import Callable
from inspect import getattr_static, signature
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast

from curate.api.cost_plan import consenting
from curate.runs.index import command_class, load
from curate.runs.python_errors import in_python
from curate.view.answers import Result

Options = ParamSpec("Options")
Data_co = TypeVar("Data_co", covariant=True)


class Answering(Protocol[Data_co]):
    """A command with its options."""

    def result(self) -> Result[Data_co]:
        """Run the command."""
        ...

    def __call__(self) -> Data_co:
        """Run the command and return its data."""
        ...


_OTHER_NAMES = {"anonymise": "anonymise_file", "view": "view_run"}
"""Command -> its function, where the command's name is that of a function that takes texts, or of a package."""


def python_name(words: str) -> str:
    """Return the name in Python of a command: `check_pool` for `check pool`."""
    return re.sub("[ -]", "_", words)


def function(command: Callable[Options, Answering[Data_co]]) -> Callable[Options, Data_co]:
    """Return a function that runs a command; its errors and its news name arguments instead of options."""

    def run(*arguments: Options.args, **options: Options.kwargs) -> Data_co:
        tell = cast("Callable[[str], None] | None", options.get("tell"))
        news = {"tell": lambda line: tell(in_python(line))} if tell else {}
        with consenting():
            return command(*arguments, **cast("Any", {**options, **news}))()

    run.__name__ = run.__qualname__ = python_name(getattr_static(command, "words"))
    run.__doc__, run.__module__ = command.__doc__, __name__
    call = signature(command)
    of_program = [call.parameters[name] for name in ("progress", "tell")]
    of_command = [
        parameter for name, parameter in call.parameters.items() if name not in ("progress", "tell", "notify")
    ]
    cast("Any", run).__signature__ = call.replace(parameters=[*of_command, *of_program])  # no type has it
    return run


if TYPE_CHECKING:
    from curate.commands.analyze import AnalyzeCommand
    from curate.commands.anonymise.command import AnonymiseCommand, RecognisersCommand
    from curate.commands.check.check_circular import CheckCircularCommand
    from curate.commands.check.check_leaks import CheckLeaksCommand
    from curate.commands.check.check_mask import CheckMaskCommand
    from curate.commands.check.check_pool import CheckPoolCommand
    from curate.commands.check.judge import CheckJudgeCommand
    from curate.commands.consensus import ConsensusCommand
    from curate.commands.diff import DiffCommand
    from curate.commands.diversify.command import DiversifyCommand
    from curate.commands.doctor import DoctorCommand
    from curate.commands.embed import EmbedCommand
    from curate.commands.erase import EraseCommand
    from curate.commands.export import ExportCommand
    from curate.commands.extend.command import ExtendCommand
    from curate.commands.gradient import GradientCommand
    from curate.commands.ingest import IngestCommand
    from curate.commands.init.command import InitCommand
    from curate.commands.judge import JudgeCommand
    from curate.commands.label import LabelCommand
    from curate.commands.ledger import LedgerCheckCommand, LedgerExportCommand, LedgerImportCommand, LedgerStatsCommand
    from curate.commands.mask import MaskCommand
    from curate.commands.models import ModelsCommand, ModelsTestCommand
    from curate.commands.notes import NotesCommand
    from curate.commands.paper import PaperCommand
    from curate.commands.paraphrase import ParaphraseCommand
    from curate.commands.pilot.export import PilotExportCommand
    from curate.commands.pilot.report import PilotReportCommand
    from curate.commands.pool import PoolCommand
    from curate.commands.queries import QueriesCommand
    from curate.commands.ready import ReadyCommand
    from curate.commands.report import ReportCommand
    from curate.commands.resolve import ResolveCommand
    from curate.commands.review import (
        ReviewAdjudicateCommand,
        ReviewExportCommand,
        ReviewFlagsCommand,
        ReviewImportCommand,
        ReviewInviteCommand,
        ReviewLogCommand,
        ReviewReportCommand,
        ReviewServeCommand,
    )
    from curate.commands.schema import SchemaCommand
    from curate.commands.status import ShowCommand, StatusCommand
    from curate.commands.sts import StsCommand
    from curate.commands.tokens.command import TokensCommand
    from curate.commands.train.command import TrainCommand
    from curate.commands.train_set.command import TrainSetCommand
    from curate.commands.verify import VerifyCommand
    from curate.commands.view import ViewCommand

    analyze = function(AnalyzeCommand)
    anonymise_file = function(AnonymiseCommand)
    check_circular = function(CheckCircularCommand)
    check_judge = function(CheckJudgeCommand)
    check_leaks = function(CheckLeaksCommand)
    check_mask = function(CheckMaskCommand)
    check_pool = function(CheckPoolCommand)
    consensus = function(ConsensusCommand)
    diff = function(DiffCommand)
    erase = function(EraseCommand)
    diversify = function(DiversifyCommand)
    doctor = function(DoctorCommand)
    embed = function(EmbedCommand)
    export = function(ExportCommand)
    extend = function(ExtendCommand)
    gradient = function(GradientCommand)
    ingest = function(IngestCommand)
    init = function(InitCommand)
    judge = function(JudgeCommand)
    label = function(LabelCommand)
    ledger_check = function(LedgerCheckCommand)
    ledger_export = function(LedgerExportCommand)
    ledger_import = function(LedgerImportCommand)
    ledger_stats = function(LedgerStatsCommand)
    mask = function(MaskCommand)
    models = function(ModelsCommand)
    models_test = function(ModelsTestCommand)
    notes = function(NotesCommand)
    paper = function(PaperCommand)
    paraphrase = function(ParaphraseCommand)
    pilot_export = function(PilotExportCommand)
    pilot_report = function(PilotReportCommand)
    pool = function(PoolCommand)
    queries = function(QueriesCommand)
    ready = function(ReadyCommand)
    recognisers = function(RecognisersCommand)
    report = function(ReportCommand)
    resolve = function(ResolveCommand)
    review_adjudicate = function(ReviewAdjudicateCommand)
    review_export = function(ReviewExportCommand)
    review_flags = function(ReviewFlagsCommand)
    review_import = function(ReviewImportCommand)
    review_invite = function(ReviewInviteCommand)
    review_log = function(ReviewLogCommand)
    review_report = function(ReviewReportCommand)
    review_serve = function(ReviewServeCommand)
    schema = function(SchemaCommand)
    show = function(ShowCommand)
    status = function(StatusCommand)
    sts = function(StsCommand)
    tokens = function(TokensCommand)
    train = function(TrainCommand)
    train_set = function(TrainSetCommand)
    verify = function(VerifyCommand)
    view_run = function(ViewCommand)
else:

    def __getattr__(name: str) -> Any:  # noqa: ANN401
        """Return the function of a command; the module of the command is imported now."""
        homes = {_OTHER_NAMES.get(entry["words"]) or python_name(entry["words"]): entry["class"] for entry in load()}
        if name not in homes:
            raise AttributeError(f"module 'curate' has no command {name!r}")
        globals()[name] = function(command_class(homes[name]))
        return globals()[name]
