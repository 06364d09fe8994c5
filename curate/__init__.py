"""Turn raw queries and documents into a retrieval benchmark whose labels can be trusted.

The names below are the public ones; each is imported when it is first used, so that `import curate` costs nothing.
"""

from importlib import import_module

TYPE_CHECKING = False  # `typing` takes longer to import than all the rest before Ctrl-C is heard
if TYPE_CHECKING:
    from curate.api.asking import ask_models
    from curate.api.commands import *  # noqa: F403
    from curate.api.cost_plan import ConsentNeeded, CostPlan
    from curate.api.results import AuditResult, EvaluationResult, audit, evaluate
    from curate.api.run_view import RunView, open  # noqa: A004 - read as `curate.open`
    from curate.api.running import bill, plan, run
    from curate.ask.task import LLMTask
    from curate.commands.agree.result import AgreementResult, agree
    from curate.commands.anonymise.result import AnonymisedTexts, anonymise
    from curate.commands.run.plan import RunPlan
    from curate.core.config import Json, Section
    from curate.core.errors import ConfigError, CurateError, DataError, Interrupted, RunFailed, UserError
    from curate.core.messages import Message, Reply, Request
    from curate.core.protocols import (
        Benchmark,
        Corpus,
        Encoder,
        Exporter,
        Hits,
        Judge,
        Kit,
        Progress,
        Provider,
        Retriever,
        Vectors,
    )
    from curate.core.records import Columns, Document, Hit, Outcome, Query, Role, Span
    from curate.ledger import Ledger
    from curate.llm.providers.settings import ProviderConfig
    from curate.pipeline.pipeline import Pipeline
    from curate.runs.runner import Run
    from curate.stats.agreement import Agreement, measure
    from curate.tables.exporters.mteb import load_task, load_tasks
    from curate.tables.kinds.benchmark_kind import (
        BenchmarkKind,
        ExportTable,
        KindCheck,
        MtebClass,
        ReviewItems,
        TaskContent,
    )

__version__ = "0.3.0"

_NAMES = {
    "commands.agree.result": "AgreementResult agree",
    "api.asking": "ask_models",
    "api.commands": "analyze anonymise_file check_circular check_judge check_leaks check_mask check_pool consensus "
    "diff diversify "
    "doctor embed erase export extend gradient ingest init judge label ledger_check ledger_export "
    "ledger_import ledger_stats mask models models_test notes paper paraphrase pilot_export "
    "pilot_report pool queries ready recognisers report resolve review_adjudicate review_export "
    "review_flags review_import review_invite review_log review_report review_serve schema show status sts tokens "
    "train train_set verify "
    "view_run",
    "ask.task": "LLMTask",
    "api.results": "AuditResult EvaluationResult audit evaluate",
    "commands.anonymise.result": "AnonymisedTexts anonymise",
    "api.run_view": "RunView open",
    "api.cost_plan": "ConsentNeeded CostPlan",
    "api.running": "bill plan run",
    "core.config": "Json Section",
    "core.errors": "ConfigError CurateError DataError Interrupted RunFailed UserError",
    "core.messages": "Message Reply Request",
    "core.protocols": "Benchmark Corpus Encoder Exporter Hits Judge Kit Progress Provider Retriever Vectors",
    "core.records": "Columns Document Hit Outcome Query Role Span",
    "tables.exporters.mteb": "load_task load_tasks",
    "tables.kinds.benchmark_kind": "BenchmarkKind ExportTable KindCheck MtebClass ReviewItems TaskContent",
    "ledger": "Ledger",
    "llm.providers.settings": "ProviderConfig",
    "pipeline.pipeline": "Pipeline",
    "commands.run.plan": "RunPlan",
    "runs.runner": "Run",
    "stats.agreement": "Agreement measure",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Agreement",
    "AgreementResult",
    "AnonymisedTexts",
    "AuditResult",
    "Benchmark",
    "BenchmarkKind",
    "Columns",
    "ConfigError",
    "ConsentNeeded",
    "Corpus",
    "CostPlan",
    "CurateError",
    "DataError",
    "Document",
    "Encoder",
    "EvaluationResult",
    "ExportTable",
    "Exporter",
    "Hit",
    "Hits",
    "Interrupted",
    "Json",
    "Judge",
    "KindCheck",
    "Kit",
    "LLMTask",
    "Ledger",
    "Message",
    "MtebClass",
    "Outcome",
    "Pipeline",
    "Progress",
    "Provider",
    "ProviderConfig",
    "Query",
    "Reply",
    "Request",
    "Retriever",
    "ReviewItems",
    "Role",
    "Run",
    "RunFailed",
    "RunPlan",
    "RunView",
    "Section",
    "Span",
    "TaskContent",
    "UserError",
    "Vectors",
    "agree",
    "anonymise",
    "ask_models",
    "audit",
    "bill",
    "evaluate",
    "load_task",
    "load_tasks",
    "measure",
    "open",
    "plan",
    "run",
]
__all__ += _NAMES["api.commands"].split()  # noqa: PLE0605 - the commands, one function each


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'curate' has no attribute {name!r}")
    return getattr(import_module(f"curate.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """Return every public name too, those not imported yet among them."""
    return sorted({*globals(), *__all__})
