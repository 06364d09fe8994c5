"""How fast personal data is found, and what is found where it touches Chinese characters, beside presidio-analyzer.

Equal patterns: seven regular expressions, asked for by `curate` (one scan, then only where something can be), by
plain `re` one pattern at a time, and by presidio's PatternRecognizer; all must give the same spans. All rules: every
recogniser of `curate`, and the built-in recognisers of presidio that need no language model. Contenders take turns in
one process on one core; medians of five. Quality: how many of 200 planted values per kind each finds whole, Chinese
characters on both sides. Growth: the time of one line of 10 KB, 100 KB and 1 MB.

Texts are made of the packaged demo's, one in a hundred with something planted; `--texts FILE` takes JSONL with `text`.
With `--real FOLDER ...` sets (queries.jsonl and corpus.jsonl) are masked as they are, and nothing else is measured.

Run, in an environment that has presidio-analyzer too: python -m benchmarks.pii [--texts FILE] [--megabytes 5]
Run without it: python -m benchmarks.pii --real FOLDER [FOLDER ...]
"""

import argparse
import json
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from curate.core.records import Span
from curate.pii import RECOGNISERS, Recogniser
from curate.pii.patterns import trigger
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all, suspects
from curate.system import resources

REPEATS, PLANTED = 5, 200
Places = list[list[tuple[int, int]]]

PATTERNS = {
    "mobile": (r"(?<![0-9])1[3-9][0-9]{9}(?![0-9])", r"1[3-9][0-9]{9}"),
    "landline": (r"(?<![0-9])0[1-9][0-9]{1,2}-[2-9][0-9]{6,7}(?![0-9])", r"0[1-9][0-9]{1,2}-[2-9][0-9]{6}"),
    "resident": (r"(?<![0-9])[1-9][0-9]{16}[0-9Xx](?![0-9])", r"[1-9][0-9]{16}[0-9Xx]"),
    "email": (
        r"(?<![A-Za-z0-9])[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}",
        r"[A-Za-z0-9._%+-]@[A-Za-z0-9-]",
    ),
    "plate": (r"[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼][A-HJ-NP-Z][A-HJ-NP-Z0-9]{5}", ""),
    "bank": (r"(?<![0-9])62[0-9]{14,17}(?![0-9])", r"62[0-9]{14}"),
    "ip": (r"(?<![0-9.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9.])", r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]"),
}
"""Name -> pattern, and what must occur for it to match."""

VALUES: dict[str, tuple[str, Callable[[random.Random], str]]] = {
    "PHONE_NUMBER": ("mobile", lambda draw: f"1{draw.choice('3589')}{draw.randrange(10**9):09d}"),
    "EMAIL_ADDRESS": ("email", lambda draw: f"user{draw.randrange(10**6)}@mail{draw.randrange(99)}.com"),
    "CREDIT_CARD": ("bank_card", lambda draw: _luhn(f"4{draw.randrange(10**14):014d}")),
    "URL": ("url", lambda draw: f"https://weibo.com/u/{draw.randrange(10**10):010d}"),
}
"""Presidio's entity -> our recogniser, and how a value is made."""


def _luhn(number: str) -> str:
    digits = [int(digit) for digit in reversed(number)]
    total = sum(sum(divmod(2 * digit, 10)) if place % 2 == 0 else digit for place, digit in enumerate(digits))
    return f"{number}{-total % 10}"


def texts(path: Path | None, megabytes: float) -> list[str]:
    """Return so many megabytes of texts, one in a hundred with a value planted in its middle."""
    folder = resources.demo()
    files = [path] if path else [folder / "queries.jsonl", folder / "corpus.jsonl"]
    known = [str(json.loads(line)["text"]) for file in files for line in file.read_text("utf-8").splitlines()]
    draw, found, size = random.Random(1), [], 0
    for number, text in enumerate(cycle(known)):
        if size > megabytes * 1e6:
            return found
        if number % 100 == 0:
            _, make = draw.choice(list(VALUES.values()))
            text = f"{text[: len(text) // 2]}{make(draw)}{text[len(text) // 2 :]}"  # noqa: PLW2901
        found.append(text)
        size += len(text.encode())
    raise AssertionError


def rule(name: str) -> Recogniser:
    """Return a pattern as a recogniser of `curate`."""
    source, seen = PATTERNS[name]
    pattern = re.compile(source)

    def found(text: str) -> list[Span]:
        return [Span(*match.span(), name, name) for match in pattern.finditer(text)]

    return trigger(seen or source)(found)


RULES = [rule(name) for name in PATTERNS]


def ours(data: Sequence[str]) -> Places:
    """Find by a scan first, then by each pattern where something can be."""
    hits = suspects(RULES, pl.Series(data))
    return [
        sorted({(span.start, span.end) for each in hits.get(row, ()) for span in each(text)})
        for row, text in enumerate(data)
    ]


def plain(data: Sequence[str]) -> Places:
    """Find by `re`, one pattern at a time."""
    patterns = [re.compile(source) for source, _ in PATTERNS.values()]
    return [sorted({match.span() for pattern in patterns for match in pattern.finditer(text)}) for text in data]


def presidio(recognisers: Sequence[Any]) -> Callable[[Sequence[str]], Places]:
    """Return a function that finds by recognisers of presidio, without a language model."""

    def found(data: Sequence[str]) -> Places:
        return [
            sorted(
                {
                    (each.start, each.end)
                    for recogniser in recognisers
                    for each in recogniser.analyze(text, recogniser.supported_entities, None)
                }
            )
            for text in data
        ]

    return found


def with_patterns() -> list[Any]:
    """Return presidio's recognisers for our patterns."""
    from presidio_analyzer import Pattern, PatternRecognizer

    return [
        PatternRecognizer(name, supported_language="zh", patterns=[Pattern(name, source, 0.9)], global_regex_flags=0)
        for name, (source, _) in PATTERNS.items()
    ]


def built_in() -> list[Any]:
    """Return those of presidio's own recognisers that fit Chinese text and need no language model."""
    import tldextract
    from presidio_analyzer import predefined_recognizers as known

    tldextract.tldextract.TLD_EXTRACTOR.suffix_list_urls = ()  # else every address looks for a list on the network
    names = ("CreditCardRecognizer", "EmailRecognizer", "IpRecognizer", "PhoneRecognizer", "UrlRecognizer")
    return [getattr(known, name)() for name in names]


def speeds(tasks: dict[str, Callable[[Sequence[str]], object]], data: Sequence[str]) -> dict[str, float]:
    """Return megabytes a second of each, medians of rounds in which they take turns."""
    size = sum(len(text.encode()) for text in data) / 1e6
    taken: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(REPEATS):
        for name, task in tasks.items():
            start = time.process_time()
            task(data)
            taken[name].append(time.process_time() - start)
    return {name: size / median(each) for name, each in taken.items()}


def real(folders: Sequence[Path]) -> Iterator[str]:
    """Yield a table in Markdown of how fast whole sets are masked, by the scans alone and by all recognisers."""
    mask = masker(Masking(), "zh", b"")
    yield from ("| set | texts | changed | MB | scans alone, MB/s | all recognisers, MB/s |", f"| --- |{' --: |' * 5}")
    for folder in folders:
        files = [folder / "queries.jsonl", folder / "corpus.jsonl"]
        data = [str(json.loads(line)["text"]) for file in files for line in file.read_text("utf-8").splitlines()]
        changed = sum(bool(each.spans) for each in mask_all(mask, data))
        found = speeds(
            {
                "scans": lambda data: suspects(mask.recognisers, pl.Series(data)),
                "all": lambda data: mask_all(mask, data),
            },
            data,
        )
        size = sum(len(text.encode()) for text in data) / 1e6
        yield (
            f"| {folder.name} | {len(data):,} | {changed} | {size:.1f} | {found['scans']:.1f} | {found['all']:.1f} |"
        )


def recalls(recognisers: Sequence[Any]) -> list[tuple[str, int, int]]:
    """Return kind, found by us and by presidio, of values between Chinese characters."""
    draw, rows = random.Random(2), list[tuple[str, int, int]]()
    for entity, (name, make) in VALUES.items():
        values = [make(draw) for _ in range(PLANTED)]
        wanted = [[(2, 2 + len(value))] for value in values]
        data = [f"联系{value}谢谢" for value in values]
        own = [[(span.start, span.end) for span in RECOGNISERS.load(name)(text)] for text in data]
        theirs = presidio([each for each in recognisers if entity in each.supported_entities])(data)
        us, them = (sum(a == b for a, b in zip(got, wanted, strict=True)) for got in (own, theirs))
        rows.append((entity, us, them))
    return rows


def growth() -> list[tuple[str, list[float]]]:
    """Return the milliseconds of one line of 10 KB, 100 KB and 1 MB, for the slowest of some nasty parts."""
    mask, rows = masker(Masking(), "zh", b""), []
    for part in ("1-3-", "王小明医生", "北京市朝阳区建国路", "a@b.", "一三八", "患者姓名：", "13912345678 "):
        taken = []
        for size in (10**4, 10**5, 10**6):
            text = part * (size // len(part.encode()))
            start = time.process_time()
            mask.mask(text)
            taken.append(1000 * (time.process_time() - start))
        rows.append((part, taken))
    return rows


def main() -> None:
    """Measure, check that equal patterns give equal spans, and print tables in Markdown."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--texts", type=Path)
    options.add_argument("--megabytes", type=float, default=5.0)
    options.add_argument("--real", type=Path, nargs="+", metavar="FOLDER")
    given = options.parse_args()
    if given.real:
        print("\n".join(real(given.real)))
        return
    data = texts(given.texts, given.megabytes)
    library, own = built_in(), presidio(with_patterns())
    sample = list(islice(data, 5_000))
    assert ours(sample) == plain(sample) == own(sample), "equal patterns gave other spans"
    mask = masker(Masking(), "zh", b"")
    found = speeds(
        {
            "seven patterns: curate": ours,
            "seven patterns: plain re": plain,
            "seven patterns: presidio-analyzer": own,
            f"all {len(RECOGNISERS.names())} recognisers: curate": lambda data: mask_all(mask, data),
            f"{len(library)} built-in recognisers: presidio-analyzer": presidio(library),
        },
        data,
    )
    print("| MB/s on one core | |\n| --- | --: |")
    for name, speed in found.items():
        print(f"| {name} | {speed:.1f} |")
    ratio = found["seven patterns: curate"] / found["seven patterns: presidio-analyzer"]
    print(f"\nequal patterns: {ratio:.1f} x presidio")
    print("\n| found of 200 between Chinese characters | curate | presidio |\n| --- | --: | --: |")
    for kind, us, them in recalls(library):
        print(f"| {kind} | {us} | {them} |")
    print("\n| one line, ms | 10 KB | 100 KB | 1 MB |\n| --- | --: | --: | --: |")
    for part, taken in growth():
        print(f"| {part} | {' | '.join(f'{each:.1f}' for each in taken)} |")


if __name__ == "__main__":
    main()
