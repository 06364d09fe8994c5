"""The commands of the program as functions: the same words, and options as keywords.

A function returns the data that the command prints with `--json`; what makes the command fail is raised. All take
`progress(label, total, done, money)` and `tell(line)` too.
"""

import re
from collections.abc import Callable
from inspect import getattr_static, signature
from typing import ParamSpec, Protocol, TypeVar

from curate.api.cost_plan import consenting
from curate.commands.analyze import AnalyzeCommand
from curate.commands.anonymise.command import RecognisersCommand
from curate.commands.check.check_circular import CheckCircularCommand
from curate.commands.check.check_leaks import CheckLeaksCommand
from curate.commands.check.check_mask import CheckMaskCommand
from curate.commands.check.check_pool import CheckPoolCommand
from curate.commands.check.command import CheckJudgeCommand
from curate.commands.consensus import ConsensusCommand
from curate.commands.diff import DiffCommand
from curate.commands.diversify.command import DiversifyCommand
from curate.commands.doctor import DoctorCommand
from curate.commands.embed import EmbedCommand
from curate.commands.export import ExportCommand
from curate.commands.extend import ExtendCommand
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
from curate.commands.pilot import PilotExportCommand, PilotReportCommand
from curate.commands.pool import PoolCommand
from curate.commands.queries import QueriesCommand
from curate.commands.ready import ReadyCommand
from curate.commands.report import ReportCommand
from curate.commands.resolve import ResolveCommand
from curate.commands.review import (
    ReviewAdjudicateCommand,
    ReviewExportCommand,
    ReviewImportCommand,
    ReviewReportCommand,
    ReviewServeCommand,
)
from curate.commands.schema import SchemaCommand
from curate.commands.status import ShowCommand, StatusCommand
from curate.commands.sts import StsCommand
from curate.commands.tokens import TokensCommand
from curate.commands.train.command import TrainCommand
from curate.commands.train_set.command import TrainSetCommand
from curate.commands.verify import VerifyCommand
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


def function(command: Callable[Options, Answering[Data_co]]) -> Callable[Options, Data_co]:
    """Return a function that runs a command; its errors name arguments instead of options."""

    def run(*arguments: Options.args, **options: Options.kwargs) -> Data_co:
        with consenting():
            return command(*arguments, **options)()

    run.__name__ = run.__qualname__ = re.sub(r"[ -]", "_", getattr_static(command, "words"))
    run.__doc__, run.__module__ = command.__doc__, __name__
    run.__signature__ = signature(command)  # type: ignore[attr-defined]
    return run


init = function(InitCommand)
status = function(StatusCommand)
show = function(ShowCommand)
doctor = function(DoctorCommand)
models = function(ModelsCommand)
models_test = function(ModelsTestCommand)
ingest = function(IngestCommand)
mask = function(MaskCommand)
diversify = function(DiversifyCommand)
embed = function(EmbedCommand)
queries = function(QueriesCommand)
pool = function(PoolCommand)
judge = function(JudgeCommand)
consensus = function(ConsensusCommand)
resolve = function(ResolveCommand)
sts = function(StsCommand)
label = function(LabelCommand)
paraphrase = function(ParaphraseCommand)
gradient = function(GradientCommand)
report = function(ReportCommand)
pilot_export = function(PilotExportCommand)
pilot_report = function(PilotReportCommand)
review_export = function(ReviewExportCommand)
review_import = function(ReviewImportCommand)
review_serve = function(ReviewServeCommand)
review_report = function(ReviewReportCommand)
review_adjudicate = function(ReviewAdjudicateCommand)
check_judge = function(CheckJudgeCommand)
check_pool = function(CheckPoolCommand)
check_mask = function(CheckMaskCommand)
check_leaks = function(CheckLeaksCommand)
check_circular = function(CheckCircularCommand)
analyze = function(AnalyzeCommand)
export = function(ExportCommand)
verify = function(VerifyCommand)
ready = function(ReadyCommand)
paper = function(PaperCommand)
extend = function(ExtendCommand)
diff = function(DiffCommand)
train_set = function(TrainSetCommand)
train = function(TrainCommand)
notes = function(NotesCommand)
tokens = function(TokensCommand)
recognisers = function(RecognisersCommand)
ledger_stats = function(LedgerStatsCommand)
ledger_export = function(LedgerExportCommand)
ledger_import = function(LedgerImportCommand)
ledger_check = function(LedgerCheckCommand)
schema = function(SchemaCommand)
