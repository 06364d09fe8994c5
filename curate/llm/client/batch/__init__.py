"""Providers' batch APIs: cheaper requests, answered within a day, and paid once even if this process dies.

A batch is in the ledger before it is first polled, so the next process collects it if this one dies. Each reply is
written with its ratings in one transaction. Unanswered requests go into another batch, a few times; the caller asks
the rest online.
"""

from curate.llm.client.batch.judge_batches import ask_batches, no_batch
from curate.llm.client.batch.session import BatchJob, PollingPolicy, Reader

__all__ = ["BatchJob", "PollingPolicy", "Reader", "ask_batches", "no_batch"]
