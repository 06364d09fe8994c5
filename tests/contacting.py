"""What the tests of telephones, addresses and names on the net share."""

import re
import time
from itertools import pairwise
from pathlib import Path

import polars as pl
import yaml

from curate.pii import RECOGNISERS
from tests.recognising import trigger_of

NAMES = ("mobile", "landline", "overseas", "spoken", "email", "wechat", "qq", "url")
ALL = {name: RECOGNISERS.load(name) for name in NAMES}

_DATA = yaml.safe_load((Path(__file__).parent / "data/contacts.yaml").read_text("utf-8"))
FORMS: dict[str, list[str]] = {kind: entries.splitlines() for kind, entries in _DATA.items()}


def found(text: str, *names: str) -> set[str]:
    """Return what the recognisers find, and check their promises: order, offsets, names, triggers."""
    values = set()
    for name in names or NAMES:
        spans = ALL[name](text)
        assert spans == sorted(spans, key=lambda span: span.start)
        assert all(before.end <= after.start for before, after in pairwise(spans))
        assert all(0 <= span.start < span.end <= len(text) and span.recogniser == name for span in spans)
        assert not spans or triggered(name, text), name
        values |= {text[span.start : span.end] for span in spans}
    return values


def triggered(name: str, text: str) -> bool:
    """Say whether Python and Rust both see the recogniser's trigger in a text."""
    trigger = trigger_of(ALL[name])
    rust = bool(pl.Series([text]).str.contains(trigger).item())
    return re.search(trigger, text) is not None and rust


def covered(text: str, value: str) -> bool:
    """Say whether what is found covers the value in the text, once, and nothing but it."""
    return found(text) == {value}


def places(value: str) -> list[str]:
    """Return the value alone, at the start, at the end, in Chinese without spaces, and beside full-width signs."""
    return [value, f"{value}谢谢", f"大夫请回{value}", f"大夫请回{value}谢谢", f"你好，{value}，麻烦了", f"（{value}）"]


def seconds(name: str, text: str) -> float:
    """Return the shortest of three times that a recogniser takes for a text."""
    times = []
    for attempt in range(3):
        started = time.perf_counter()
        ALL[name](text + " " * attempt)  # another text: what is kept for the same one does not count
        times.append(time.perf_counter() - started)
    return min(times)
