"""Limits of one judge: requests and tokens per minute, a circuit breaker, and the number of open calls."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

PARTS = 10
"""A tenth of a minute holds a tenth of the limit, so that a minute's share is not sent in one burst."""
TRAVEL = 1 / 8
"""Assumed maximum time of a request to reach the vendor, as a share of a minute."""


@dataclass
class Sent:
    """A sent request: its weight, and the latest time at which it reached the provider."""

    weight: float
    arrived: float


@dataclass
class Window:
    """Sliding-window limit on the weight of requests that arrive within any `seconds`.

    A provider counts arrivals, which are between sending and reply. So a request counts from its sending until
    `seconds` after its reply, or after the assumed maximum travel time.
    """

    limit: float
    seconds: float
    travel: float = 0.0
    weight: float = 0.0
    """Weight of all requests that count now."""
    _counted: deque[Sent] = field(default_factory=deque)

    def pause(self, weight: float, now: float) -> float:
        """Return the seconds until the next check, 0 if a request of this weight may be sent now.

        A request above the limit is sent alone: the provider decides.
        """
        while self._counted and self._counted[0].arrived + self.seconds <= now:
            self.weight -= self._counted.popleft().weight
        if not self._counted:
            self.weight = 0.0  # removes rounding errors
            return 0.0
        free = self.weight + weight <= self.limit
        return 0.0 if free else self._counted[0].arrived + self.seconds - now

    def sent(self, weight: float, now: float) -> Sent:
        """Count a request that is sent."""
        request = Sent(weight, now + self.travel)
        self._counted.append(request)
        self.weight += weight
        return request

    def replied(self, request: Sent, weight: float, now: float) -> None:
        """Record that a request has arrived, and its final weight."""
        if request.arrived + self.seconds > now:
            self.weight += weight - request.weight
            request.weight = weight
        request.arrived = min(request.arrived, now)


@dataclass
class RateLimit:
    """Both limits of a provider; None is no limit."""

    requests_per_minute: int | None
    tokens_per_minute: int | None
    minute_s: float = 60.0

    def __post_init__(self) -> None:
        self._windows = [(window, False) for window in _windows(self.requests_per_minute, self.minute_s)]
        self._windows += [(window, True) for window in _windows(self.tokens_per_minute, self.minute_s)]

    def pause(self, tokens: float, now: float) -> float:
        """Return the seconds to wait before a request of so many tokens; 0 if it may be sent now."""
        return max((window.pause(tokens if by_token else 1.0, now) for window, by_token in self._windows), default=0.0)

    def sent(self, tokens: float, now: float) -> list[Sent]:
        """Count a request, and return what `replied` needs."""
        return [window.sent(tokens if by_token else 1.0, now) for window, by_token in self._windows]

    @property
    def limited(self) -> bool:
        """Return whether there is a limit."""
        return bool(self._windows)

    def count(self, arrived: float, tokens: int | None) -> None:
        """Count a request of an earlier process that arrived by `arrived`; unknown tokens count as the whole limit."""
        for window, by_token in self._windows:
            weight = 1.0 if not by_token else window.limit if tokens is None else tokens
            window.replied(window.sent(weight, arrived), weight, arrived)

    def replied(self, request: list[Sent], tokens: float, now: float) -> None:
        """Count its reply, with the tokens that it used."""
        for sent, (window, by_token) in zip(request, self._windows, strict=True):
            window.replied(sent, tokens if by_token else 1.0, now)


def _windows(limit: int | None, minute_s: float) -> list[Window]:
    if limit is None:
        return []
    return [Window(limit, minute_s, minute_s * TRAVEL), Window(max(limit / PARTS, 1.0), minute_s / PARTS)]


# A circuit breaker: after many failed attempts in a row nothing is sent for a while, then one request probes.

FEWEST = 10
"""Minimum failed attempts in a row to open; at least twice the number of slots, too."""
MOST_PROBES = 5
LONGEST_PAUSE_S = 60.0


@dataclass
class Breaker:
    """Circuit breaker: whether a provider may be asked now. Times are seconds of one clock."""

    cool_s: float
    """First pause; it doubles up to a minute."""
    failed: int = 0
    """Tries in a row without an answer."""
    opened: int = 0
    """Pauses in a row without an answer between them; 0 is closed."""
    until: float = 0.0
    probing: bool = False

    def pause(self, now: float) -> float:
        """Return the seconds to wait before an attempt; 0 allows it. An open breaker allows one request at a time."""
        if now < self.until:
            return self.until - now
        if not self.opened:
            return 0.0
        if self.probing:
            return self.cool_s / 10
        self.probing = True
        return 0.0

    def hold(self, seconds: float, now: float) -> None:
        """Send nothing for so long, because the provider asks for it."""
        self.until = max(self.until, now + seconds)

    def good(self) -> None:
        """Record an answer: the provider can be reached."""
        self.failed = self.opened = 0
        self.probing = False

    def bad(self, now: float, slots: int) -> None:
        """Record an attempt without an answer; `slots` is how many calls may be open at once."""
        self.failed += 1
        if self.probing or (not self.opened and self.failed >= max(FEWEST, 2 * slots)):
            self.probing = False
            self.opened += 1
            self.hold(min(self.cool_s * 2 ** (self.opened - 1), LONGEST_PAUSE_S), now)

    def spared(self) -> None:
        """Record that a probe was given up before it was answered: another one may be sent."""
        self.probing = False

    @property
    def broken(self) -> bool:
        """Return whether more than MOST_PROBES probes in a row failed."""
        return self.opened > MOST_PROBES


# How many calls may be open at once: as many as were asked for, fewer while the vendor is overloaded.


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
