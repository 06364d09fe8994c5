"""Limit of concurrent calls: the number that the settings allow, fewer while the provider is overloaded."""

import asyncio
from collections import deque


class ConcurrencyLimit:
    """Slots for calls: halved if the provider is overloaded, one more after each round of good answers.

    Additive increase, multiplicative decrease (Chiu and Jain, 1989). Calls that were open when the slots were halved
    report the same overload, so they do not halve the slots again.
    """

    def __init__(self, most: int, first: int | None = None) -> None:
        """Open `most` slots at once; only the `first` few of them until `widen`."""
        self.most = most if first is None else min(first, most)
        self.limit = float(self.most)
        self.open = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._cut_at = 0
        self._entered = 0

    async def enter(self) -> int:
        """Wait for a slot, first come first served, and return the number of this entry."""
        if self._waiting or self.open >= int(self.limit):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # the slot was given at the same moment
                    self.leave()
                raise
        else:
            self.open += 1
        self._entered += 1
        return self._entered

    def leave(self) -> None:
        """Free a slot, for the call that has waited longest."""
        self.open -= 1
        self._admit()

    def good(self) -> None:
        """Count a good answer; after as many answers as slots, add a slot."""
        self.limit = min(self.limit + 1 / self.limit, float(self.most))
        self._admit()

    def widen(self, most: int) -> None:
        """Set the maximum number of slots; a limit lowered by an overload grows towards it step by step, as usual."""
        if self.limit == self.most:
            self.limit = float(most)
        self.most = most
        self._admit()

    def overloaded(self, entry: int) -> None:
        """Count a call that the provider rejected as overloaded: halve the slots, but keep at least one."""
        if entry > self._cut_at:
            self.limit, self._cut_at = max(self.limit / 2, 1.0), self._entered

    def _admit(self) -> None:
        while self._waiting and self.open < int(self.limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self.open += 1
                turn.set_result(None)
