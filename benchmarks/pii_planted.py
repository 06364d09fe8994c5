r"""Recall of values in families, handles, staff numbers, IP addresses and disguises, and what is masked wrongly.

The sets lie in benchmarks/planted, all values made up: one row per line, a class, a tab, and a text in which every
value is marked as {kind|...}; \n and \r are line ends. `first` was written and measured before the rules were,
`second` after them, by the same hand, `third` by another who did not know them; both were measured before anything was
mended with them. `fourth` adds families in five more languages, home words, and numbers that are cut and hidden.
`bare` holds names that nothing around them vouches for: rules cannot find them, and the rate says how many they do.
A value is found if exactly its place is masked as its kind, touched if any of its characters is masked at all; rows of
class `neg` hold nothing to mask.

Run: python -m benchmarks.pii_planted [SET ...] [--misses]
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all
from curate.stats.sample_estimates import wilson

FOLDER = Path(__file__).with_name("planted")
SETS = ("first", "second", "third", "fourth", "bare")
_MARK = re.compile(r"\{([a-z_]+)\|([^{}|]*)\}")
Place = tuple[int, int, str]
"""Start, end, kind."""


@dataclass(frozen=True)
class Row:
    """A text of a class and the values in it."""

    name: str
    text: str
    places: frozenset[Place]


def rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file."""
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, marked = line.partition("\t")
        marked = marked.replace(r"\n", "\n").replace(r"\r", "\r")
        places, shift = set[Place](), 0
        for match in _MARK.finditer(marked):
            start = match.start() - shift
            places.add((start, start + len(match[2]), match[1]))
            shift += len(match[0]) - len(match[2])
        if bool(places) is (name == "neg"):
            raise ValueError(f"{path}: {line}")
        yield Row(name, _MARK.sub(r"\2", marked), frozenset(places))


def found(read: Sequence[Row]) -> list[set[Place]]:
    """Return what all recognisers find in each row."""
    masked = mask_all(masker(Masking(), "zh", b""), [row.text for row in read])
    return [{(span.start, span.end, span.kind) for span in each.spans} for each in masked]


def touched(place: Place, places: set[Place]) -> bool:
    """Say whether any character of a place is masked."""
    return any(start < place[1] and place[0] < end for start, end, _ in places)


def table(read: Sequence[Row], masked: Sequence[set[Place]]) -> Iterator[str]:
    """Yield a Markdown table of recall per class, and of rows without personal data that were changed."""
    both = list(zip(read, masked, strict=True))
    yield from ("| class | found | recall | 95 % | touched |", "| --- | --: | --: | --- | --: |")
    for name in dict.fromkeys(row.name for row in read if row.places):
        each = [(place, places) for row, places in both if row.name == name for place in row.places]
        hits = sum(place in places for place, places in each)
        yield f"{_line(name, hits, len(each))} {sum(touched(*pair) for pair in each)} |"
    clean = [bool(places) for row, places in both if not row.places]
    if clean:
        yield f"{_line('changed, of texts without personal data', sum(clean), len(clean))} |"


def _line(said: str, hits: int, of: int) -> str:
    share = wilson(hits, of)
    figures = f"{share.value:.3f} | {share.low:.3f} to {share.high:.3f}" if share else "- | -"
    return f"| {said} | {hits} of {of} | {figures} |"


def misses(read: Sequence[Row], masked: Sequence[set[Place]]) -> Iterator[str]:
    """Yield the rows in which something was overlooked or masked beside the values."""
    for row, places in zip(read, masked, strict=True):
        wrong = [("-", row.places - places), ("+", places - row.places)]
        told = [f"{sign}{row.text[s:e]!r}:{kind}" for sign, each in wrong for s, e, kind in sorted(each)]
        if told:
            yield f"{row.name}\t{row.text!r}\t{' '.join(told)}"


def main() -> None:
    """Print a table in Markdown per set."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sets", nargs="*", default=SETS, help="names in planted/")
    options.add_argument("--misses", action="store_true")
    given = options.parse_args()
    for name in given.sets:
        read = list(rows(FOLDER / f"{name}.tsv"))
        masked = found(read)
        print("\n".join([f"\n{name}: {len(read)} rows\n", *table(read, masked)]))
        if given.misses:
            print("\n".join(misses(read, masked)))


if __name__ == "__main__":
    main()
