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
from curate.system.owners import gone, owner

__all__ = ["AT_ONCE", "LEASE_S", "PAUSE_S", "Share", "bury", "owner", "rest"]
LEASE_S = 120.0
"""A claim ends so long after it was last renewed: a process that was killed is waited for no longer."""
AT_ONCE = 200
"""Prompts that are claimed together."""
PAUSE_S = 1.0
"""Between two looks at what others do."""


def bury(claims: Claims) -> None:
    """Free what processes of this machine hold that are no more: nobody waits for the lease of a killed run."""
    for each in claims.owners():
        if gone(each):
            claims.forget(each)


@dataclass
class Share:
    """The prompts of one judge that this process may send: what no other process has claimed or rated meanwhile."""

    ledger: Ledger
    claims: Claims
    key: Key
    work: Sequence[Work]
    since: str = ""
    """Id of a call: what was refused or unparsed before it is sent again."""
    check: Callable[[], None] = lambda: None
    """Called when prompts have been claimed; raises if they must not be sent."""
    taken: dict[str, Work] = field(default_factory=dict)
    """What this process has claimed for it, by the name of the claim."""
    elsewhere: list[Work] = field(default_factory=list)
    """What others had claimed when it came to its turn."""
    waited: bool = False
    """Whether this is what was elsewhere before."""

    def __iter__(self) -> Iterator[Work]:
        """Yield what may be sent, claimed some at a time; what is `elsewhere` then comes to its turn the next time."""
        for chunk in chunks(self.work, AT_ONCE):
            named = {self._name(each.place): each for each in chunk}
            mine = self.claims.take(named)
            taken = {name: each for name, each in named.items() if name in mine}
            self.taken |= taken
            self.elsewhere += [each for name, each in named.items() if name not in mine]
            if taken:
                self.check()
            yield from self._unrated(list(taken.values()))

    async def keeps(self, task: Task) -> bool:
        """Say whether a task may still be sent; others may have taken its prompt over while this machine slept.

        Then that is `elsewhere`.
        """
        if not self.claims.sure():
            await asyncio.to_thread(self.claims.renew)
        name = self._name(task.place)
        if name in self.claims.held:
            return True
        lost = self.taken.pop(name, None)
        self.elsewhere += [] if lost is None else [lost]
        return False

    def _unrated(self, taken: Sequence[Work]) -> Iterator[Work]:
        """Yield prompts without what others have rated since this process looked."""
        asked = {each.query.query_id: shown_digest(each.query.text) for each in taken}
        standing = self.ledger.ratings(
            self.key.judge_digest, self.key.rubric_digest, self.key.replicate, queries=sorted(set(asked.values()))
        )
        known = set(settled(standing, self.since).select(TEXTS).iter_rows())
        for each in taken:
            query = asked[each.query.query_id]
            left = tuple(one for one in each.passages if (query, shown_digest(one.shown())) not in known)
            if left:
                yield replace(each, passages=left)

    def _name(self, place: str) -> str:
        key = self.key
        return ":".join([key.judge_digest[:16], key.rubric_digest[:16], str(key.replicate), place])


def rest(shares: Sequence[Share], tell: Callable[[str], None]) -> list[Share]:
    """Return the shares of what was elsewhere, after a pause; an empty list once nothing is.

    What this process had claimed is done with, so others need not wait for it.
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
