"""A circuit breaker: after many failed attempts in a row nothing is sent for a while, then one request probes."""

from dataclasses import dataclass

FEWEST = 10
"""Minimum failed attempts in a row to open; at least twice the number of slots, too."""
MOST_PROBES = 5
LONGEST_S = 60.0


@dataclass
class Breaker:
    """Whether a vendor may be asked now. Times are seconds of one clock."""

    cool_s: float
    """First pause; it doubles up to a minute."""
    failed: int = 0
    """Tries in a row without an answer."""
    opened: int = 0
    """Pauses in a row without an answer between them; 0 is closed."""
    until: float = 0.0
    probing: bool = False

    def pause(self, now: float) -> float:
        """Return the seconds to wait before an attempt; 0 allows it, while open only to one request at a time."""
        if now < self.until:
            return self.until - now
        if not self.opened:
            return 0.0
        if self.probing:
            return self.cool_s / 10
        self.probing = True
        return 0.0

    def hold(self, seconds: float, now: float) -> None:
        """Send nothing for so long, because the vendor asks for it."""
        self.until = max(self.until, now + seconds)

    def good(self) -> None:
        """Note an answer: the vendor is there."""
        self.failed = self.opened = 0
        self.probing = False

    def bad(self, now: float, slots: int) -> None:
        """Note a try without an answer; `slots` is how many calls may be open at once."""
        self.failed += 1
        if self.probing or (not self.opened and self.failed >= max(FEWEST, 2 * slots)):
            self.probing = False
            self.opened += 1
            self.hold(min(self.cool_s * 2 ** (self.opened - 1), LONGEST_S), now)

    def spared(self) -> None:
        """Note that a probe was given up before it was answered: another one may go."""
        self.probing = False

    @property
    def broken(self) -> bool:
        """Return whether more than MOST_PROBES probes in a row failed."""
        return self.opened > MOST_PROBES
