"""Rate limits of requests and tokens per minute, kept so that the vendor counts no more in any minute."""

from collections import deque
from dataclasses import dataclass, field

PARTS = 10
"""A tenth of a minute holds a tenth of the limit, so that a minute's share is not sent in one burst."""
TRAVEL = 1 / 8
"""Assumed maximum time of a request to reach the vendor, as a share of a minute."""


@dataclass
class Sent:
    """A sent request: its weight, and the latest time at which it reached the vendor."""

    weight: float
    arrived: float


@dataclass
class Window:
    """Sliding-window limit on the weight of requests that arrive within any `seconds`.

    A vendor counts arrivals, which are between sending and reply. So a request counts from its sending until `seconds`
    after its reply, or after the assumed maximum travel time.
    """

    limit: float
    seconds: float
    travel: float = 0.0
    weight: float = 0.0
    """Weight of all requests that count now."""
    _counted: deque[Sent] = field(default_factory=deque)

    def pause(self, weight: float, now: float) -> float:
        """Return the seconds until the next check, 0 if a request of this weight may be sent now.

        A request above the limit is sent alone: the vendor decides.
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
        """Note that a request has arrived, and its final weight."""
        if request.arrived + self.seconds > now:
            self.weight += weight - request.weight
            request.weight = weight
        request.arrived = min(request.arrived, now)


@dataclass
class RateLimit:
    """Both limits of a vendor; None is no limit."""

    requests_per_minute: int | None
    tokens_per_minute: int | None
    minute_s: float = 60.0

    def __post_init__(self) -> None:
        self._windows = [(window, False) for window in _windows(self.requests_per_minute, self.minute_s)]
        self._windows += [(window, True) for window in _windows(self.tokens_per_minute, self.minute_s)]

    def pause(self, tokens: float, now: float) -> float:
        """Return the seconds to wait before a request of so many tokens; 0 for now."""
        return max((window.pause(tokens if by_token else 1.0, now) for window, by_token in self._windows), default=0.0)

    def sent(self, tokens: float, now: float) -> list[Sent]:
        """Count a request, and return what `replied` needs."""
        return [window.sent(tokens if by_token else 1.0, now) for window, by_token in self._windows]

    @property
    def limited(self) -> bool:
        """Return whether there is a limit."""
        return bool(self._windows)

    def count(self, arrived: float, tokens: int | None) -> None:
        """Count a request of an earlier process that arrived by then; unknown tokens count as the whole limit."""
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
