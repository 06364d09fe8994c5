"""The one door to a model: sends, retries, keeps to limits and budget, writes each reply down as it arrives."""

from curate.llm.online.client import MOST_FAILED, MOST_FRUITLESS, ask, mixture
from curate.llm.online.tasks import Account, Bill, Job, ReplyResult, RequestLimits, Task, pace

__all__ = [
    "MOST_FAILED",
    "MOST_FRUITLESS",
    "Account",
    "Bill",
    "Job",
    "ReplyResult",
    "RequestLimits",
    "Task",
    "ask",
    "mixture",
    "pace",
]
