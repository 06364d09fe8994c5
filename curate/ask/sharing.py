"""Work sharing: each process claims prompts before it sends them and leaves others' claims alone."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from curate.ask.rating import TEXTS, Key, Work, settled, shown_digest
from curate.core.sampling import chunks
from curate.ledger import Ledger
from curate.ledger.claims import Claims
from curate.llm.client import Task
from curate.system.processes import gone, owner

__all__ = ["AT_ONCE", "LEASE_S", "PAUSE_S", "Share", "bury", "owner", "rest"]
LEASE_S = 120.0
"""Seconds until a claim expires that is not renewed: the longest wait for a killed process."""
AT_ONCE = 200
"""Prompts that are claimed together."""
PAUSE_S = 1.0
"""Seconds between polls of other processes' claims."""


def bury(claims: Claims) -> None:
    """Release claims of dead processes on this machine, so that nobody waits for their leases to expire."""
    for process in claims.owners():
        if gone(process):
            claims.forget(process)


@dataclass
class Share:
    """Iterator over the prompts of one judge that this process may send: not claimed or rated by other processes."""

    ledger: Ledger
    claims: Claims
    key: Key
    work: Sequence[Work]
    since: str = ""
    """Id of a call: pairs refused or unparsed before it are sent again."""
    check: Callable[[], None] = lambda: None
    """Called when prompts have been claimed; raises if they must not be sent."""
    taken: dict[str, Work] = field(default_factory=dict)
    """Name of the claim -> prompt that this process claimed."""
    elsewhere: list[Work] = field(default_factory=list)
    """Prompts that other processes had claimed."""
    waited: bool = False
    """Whether these prompts were `elsewhere` in an earlier share."""

    def __iter__(self) -> Iterator[Work]:
        """Yield the prompts that may be sent, claimed `AT_ONCE` at a time; the others go to `elsewhere`."""
        for chunk in chunks(self.work, AT_ONCE):
            by_claim = {self._name(prompt.place): prompt for prompt in chunk}
            granted = self.claims.take(by_claim)
            claimed = {name: prompt for name, prompt in by_claim.items() if name in granted}
            self.taken |= claimed
            self.elsewhere += [prompt for name, prompt in by_claim.items() if name not in granted]
            if claimed:
                self.check()
            yield from self._unrated(list(claimed.values()))

    async def keeps(self, task: Task) -> bool:
        """Return whether a task may still be sent.

        False if another process took its prompt over while this machine slept; the prompt moves to `elsewhere`.
        """
        if not self.claims.sure():
            await asyncio.to_thread(self.claims.renew)
        name = self._name(task.place)
        if name in self.claims.held:
            return True
        lost = self.taken.pop(name, None)
        self.elsewhere += [] if lost is None else [lost]
        return False

    def _unrated(self, claimed: Sequence[Work]) -> Iterator[Work]:
        """Yield prompts without passages that others have rated meanwhile."""
        query_digests = {prompt.query.query_id: shown_digest(prompt.query.text) for prompt in claimed}
        standing = self.ledger.ratings(
            self.key.judge_digest,
            self.key.rubric_digest,
            self.key.replicate,
            queries=sorted(set(query_digests.values())),
        )
        rated = set(settled(standing, self.since).select(TEXTS).iter_rows())
        for prompt in claimed:
            query = query_digests[prompt.query.query_id]
            unrated = tuple(
                passage for passage in prompt.passages if (query, shown_digest(passage.shown())) not in rated
            )
            if unrated:
                yield replace(prompt, passages=unrated)

    def _name(self, prompt_name: str) -> str:
        key = self.key
        return ":".join([key.judge_digest[:16], key.rubric_digest[:16], str(key.replicate), prompt_name])


def rest(shares: Sequence[Share], tell: Callable[[str], None]) -> list[Share]:
    """Pause, then return shares of the prompts that other processes had claimed; [] if there are none.

    First releases the claims of this process, whose prompts have been sent, so that others need not wait for them.
    """
    for share in shares:
        share.claims.release(share.taken)
    waiting = sum(len(share.elsewhere) for share in shares)
    if not waiting:
        return []
    if not any(share.waited for share in shares):
        tell(f"other processes are asking {waiting:,} prompts of this pool; waiting for them")
    time.sleep(PAUSE_S)
    bury(shares[0].claims)
    return [replace(share, work=share.elsewhere, taken={}, elsewhere=[], waited=True) for share in shares]
