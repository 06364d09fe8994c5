"""What the vendor knows: whom it obeys, what it was asked, what it was paid for, and how hard it was pressed."""

import json
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from tests.vendor.faults import error, limited
from tests.vendor.records import Answer, Call, Fault, Script, tokens

Pairs = Counter[tuple[str, str, str]]
"""(model, query, passage) -> times."""


@dataclass(frozen=True)
class Rate:
    """How many requests and tokens a vendor takes in any window of time."""

    requests: int | None = None
    tokens: int | None = None
    window_s: float = 60.0
    enforce: bool = True
    """Answer 429 to what is beyond; else only the arrivals are written down."""
    weigh: Callable[[Call], int] = lambda call: call.prompt_tokens
    """Tokens of a request as the vendor counts them on arrival."""


@dataclass(frozen=True)
class Arrival:
    """When a request came, by `time.monotonic`, and what it weighed."""

    at: float
    tokens: int
    refused: bool = False
    """Beyond the rate, and therefore told to come back."""


@dataclass
class Vendor:
    """The running server, and what it has seen."""

    script: Script
    faults: Callable[[Call], Fault | None]
    key: str | None = None
    latency: float = 0.0
    """Seconds that every answer takes."""
    rate: Rate = field(default_factory=Rate)
    keep: bool = True
    """Keep every call with its texts; without it a long run needs no memory here."""
    url: str = ""
    calls: list[Call] = field(default_factory=list)
    """Every online call in order of arrival, refused ones too."""
    arrivals: list[Arrival] = field(default_factory=list)
    """The same calls, as the rate limit sees them."""
    answers: int = 0
    """Online calls that were answered, in whole, and are paid."""
    paid: Pairs = field(default_factory=Counter)
    """In how many paid online answers a pair stood."""
    paid_in_batches: Pairs = field(default_factory=Counter)
    """In how many succeeded items of batches it stood."""
    lost: Pairs = field(default_factory=Counter)
    """In how many answers it stood that broke on the way: a vendor may bill them, and the caller never sees them."""
    usage: Counter[str] = field(default_factory=Counter)
    """Tokens that paid online answers reported, by kind."""
    busy: int = 0
    peak: int = 0
    """Most calls that were open at the same time."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Count a call as open while the block lasts."""
        with self.lock:
            self.busy += 1
            self.peak = max(self.peak, self.busy)
        try:
            yield
        finally:
            with self.lock:
                self.busy -= 1

    def answer(self, call: Call) -> Answer:
        """Return the scripted answer to an online call, after its fault."""
        with self.lock:
            if self.keep:
                self.calls.append(call)
            fault = self._pressed(call) or self.faults(call)
        denied = self.denied(call.headers)
        if denied is not None:
            return denied
        given = self.scripted(call, fault)
        with self.lock:
            if given.paid:
                self.answers += 1
                self.paid.update(call.pairs)
                self.usage.update(given.usage or {})
            elif given.status == 200 and given.page is None:
                self.lost.update(call.pairs)
        return given

    def scripted(self, call: Call, fault: Fault | None) -> Answer:
        """Return what the script says to a call, after a fault."""
        grades = {label: self.script(call.query, text) for label, text in call.passages.items()}
        text = json.dumps(grades or dict(zip(("first", "last"), call.codes, strict=False)))
        usage = {"prompt": call.prompt_tokens, "output": tokens(text)}
        plain = Answer(text, model=call.model, usage=usage, delay=self.latency)
        return fault(plain) if fault else plain

    def denied(self, headers: Mapping[str, str]) -> Answer | None:
        """Return the refusal of a wrong key, which repeats it as some vendors do; None if the key is right."""
        shown = headers.get("authorization", "") + headers.get("x-api-key", "")
        if self.key is None or self.key in shown:
            return None
        return error(401, "invalid_api_key", f"wrong key: {shown}")(Answer(None))

    def heaviest(self, window_s: float | None = None) -> tuple[int, int]:
        """Return the most requests and the most tokens that came in any window of so many seconds."""
        window = self.rate.window_s if window_s is None else window_s
        with self.lock:
            arrived = sorted(self.arrivals, key=lambda each: each.at)
        times, sums = [each.at for each in arrived], [0, *accumulate(each.tokens for each in arrived)]
        last = [(first, bisect_right(times, time_ + window)) for first, time_ in enumerate(times)]
        return max((end - first for first, end in last), default=0), max(
            (sums[end] - sums[first] for first, end in last), default=0
        )

    def counters(self) -> dict[str, Any]:
        """Return what was counted, as JSON can hold it."""
        with self.lock:
            found = {name: getattr(self, name) for name in ("answers", "busy", "peak")}
            pairs = {name: getattr(self, name).items() for name in ("paid", "paid_in_batches", "lost")}
            listed = {name: [[*pair, times] for pair, times in items] for name, items in pairs.items()}
            arrivals = [[each.at, each.tokens, each.refused] for each in self.arrivals]
            return {**found, "usage": dict(self.usage), "arrivals": arrivals, **listed}

    def pressed(self) -> dict[str, int]:
        """Return the few counters that are cheap to ask for many times."""
        with self.lock:
            return {"calls": len(self.arrivals), "answers": self.answers, "busy": self.busy, "peak": self.peak}

    def _pressed(self, call: Call) -> Fault | None:
        """Write an arrival down; return the refusal if it is beyond the rate."""
        rate, now = self.rate, time.monotonic()
        weight = rate.weigh(call)
        wait = self._wait(weight, now) if rate.enforce else 0.0
        self.arrivals.append(Arrival(now, weight, refused=wait > 0))
        return limited(wait, "milliseconds") if wait > 0 else None

    def _wait(self, weight: int, now: float) -> float:
        """Return the seconds until a request of that weight is within the rate; refused ones weigh nothing."""
        rate = self.rate
        if rate.requests is None and rate.tokens is None:
            return 0.0
        taken = 0
        for number, each in enumerate(self._recent(now), start=1):
            taken += each.tokens
            many = rate.requests is not None and number >= rate.requests
            heavy = rate.tokens is not None and taken + weight > rate.tokens
            if many or heavy:
                return each.at + rate.window_s - now
        return 0.0

    def _recent(self, now: float) -> list[Arrival]:
        """Return the requests taken in the last window, newest first."""
        recent = []
        for each in reversed(self.arrivals):
            if each.at <= now - self.rate.window_s:
                break
            if not each.refused:
                recent.append(each)
        return recent


def merged(counters: Mapping[str, Any], name: str) -> Pairs:
    """Return a counter of pairs that came as JSON."""
    return Counter({(model, query, passage): times for model, query, passage, times in counters[name]})
