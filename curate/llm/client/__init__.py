"""Online requests, the only way to a model: send, retry, keep limits and budget, write each reply to the ledger."""

from curate.llm.client.accounting import (
    MOST_FRUITLESS,
    MOST_UNREADABLE,
    JudgeTally,
    Unreadable,
    refuse_cut,
    refuse_mixture,
    refuse_unread,
)
from curate.llm.client.online import ask
from curate.llm.client.requests import Account, Bill, Job, ReplyResult, RequestLimits, Task, Watch, pace

__all__ = [
    "MOST_FRUITLESS",
    "MOST_UNREADABLE",
    "Account",
    "Bill",
    "Job",
    "JudgeTally",
    "ReplyResult",
    "RequestLimits",
    "Task",
    "Unreadable",
    "Watch",
    "ask",
    "pace",
    "refuse_cut",
    "refuse_mixture",
    "refuse_unread",
]
