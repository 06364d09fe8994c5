"""Vendors' batch APIs: requests for less money, answered within a day, and paid once even if this process dies.

A batch is in the ledger before it is first asked after, so the next process collects it if this one dies. Its replies
are written one at a time, each with its ratings in one transaction. What a batch did not answer goes into another one,
a few times; what is left then, the caller asks online.
"""

from curate.llm.client.batch.client import ask_batches, no_batch
from curate.llm.client.batch.records import BatchJob, PollingPolicy, Reader

__all__ = ["BatchJob", "PollingPolicy", "Reader", "ask_batches", "no_batch"]
