"""Everything that can go wrong, drawn by a seed: a request fails in the same way at the same try, in any order."""

import hashlib
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.vendor import faults
from tests.vendor.records import Call, Fault

KINDS: Mapping[str, Fault] = {
    "slow": faults.slow(0.1),
    "dribbled": faults.dribbled(0.1),
    "limited, seconds": faults.limited(0.02),
    "limited, date": faults.limited(1.0, "date"),
    "limited, milliseconds": faults.limited(0.02, "milliseconds"),
    "unavailable": faults.unavailable,
    "overloaded": faults.overloaded,
    "reset before the head": faults.reset_before_head,
    "reset after the head": faults.reset_after_head,
    "broken body": faults.drop,
    "truncated body": faults.truncated,
    "html": faults.page("<html><body>502 Bad Gateway</body></html>"),
    "fenced": faults.fenced,
    "fenced and cut": faults.fenced_and_cut,
    "cut": faults.cut(17),
    "halved": faults.halved,
    "chatty": faults.chatty,
    "missing label": faults.missing("P1", "P3"),
    "extra label": faults.extra("P99"),
    "repeated label": faults.repeated("P1"),
    "contradicted label": faults.repeated("P2", "Z"),
    "wrong letter": faults.wrong("P1", "E"),
    "refusal": faults.refusal,
    "filtered": faults.filtered,
    "filtered midway": faults.filtered_midway,
    "null content": faults.null_content,
    "empty": faults.says(""),
    "no usage": faults.no_usage,
    "too long": faults.too_long,
    "renamed": faults.renamed("another-model"),
    "no money": faults.no_money,
}
"""Every kind of fault of an online call."""
RARE: Mapping[str, float] = {"limited, date": 0.2, "no money": 0.2}
"""Kinds that cost the most time, by how often they come beside the others: a whole second, or the whole asking."""


@dataclass
class Chaos:
    """A function of calls that draws a fault for a share of them: each try of a request draws afresh."""

    seed: int
    share: float = 0.2
    kinds: Sequence[str] = tuple(KINDS)
    tries: Counter[str] = field(default_factory=Counter)
    """How often a request was sent, by its digest."""
    drawn: Counter[str] = field(default_factory=Counter)
    """How often a kind was drawn."""

    def __call__(self, call: Call) -> Fault | None:
        """Return the fault of this call, None for most."""
        request = hashlib.sha256(repr((call.api, call.model, call.query, list(call.passages.values()))).encode())
        name = request.hexdigest()
        self.tries[name] += 1
        chance = random.Random(f"{self.seed} {self.tries[name]} {name}")
        if chance.random() >= self.share:
            return None
        [kind] = chance.choices(self.kinds, [RARE.get(kind, 1.0) for kind in self.kinds])
        self.drawn[kind] += 1
        return KINDS[kind]


def chaos(seed: int, share: float = 0.2, kinds: Sequence[str] = tuple(KINDS)) -> Chaos:
    """Return faults for a share of all tries, of all kinds or of those named."""
    return Chaos(seed, share, kinds)
