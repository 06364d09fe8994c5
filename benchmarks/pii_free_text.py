"""Recall of names, hospitals and addresses in free text that was written to be hard, and what is masked wrongly.

The sets lie in benchmarks/free_text: one row per line, a class, a tab, and a text in which every value is marked as
{name|...}, {hospital|...} or {address|...}. They were written from a description of the classes by people who did not
write the rules. `open` was used to mend the rules; `first` and `second` were measured before anything was mended with
them. A value is found if exactly its place is masked as its kind; rows of class `neg` hold nothing to mask.

With --model, a language model that speaks OpenAI's API at --base-url reads every text too, and what it finds alone
is counted beside it (--rows rows that hold a value and as many that do not, spread evenly).

Run: python -m benchmarks.pii_free_text [SET ...] [--misses] [--model NAME --base-url URL --rows 20]
"""

import argparse
import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from curate.commands.mask import model as asking
from curate.core.config import read_yaml
from curate.llm.providers import provider
from curate.llm.providers.presets import LanguageModel
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all
from curate.stats.sample_estimates import wilson
from curate.system import resources

FOLDER = Path(__file__).with_name("free_text")
SETS = ("open", "first", "second")
CLASSES: Mapping[str, tuple[str, str]] = {
    "n1": ("name", "spaced, given name of two characters"),
    "n2": ("name", "after a family word"),
    "n3": ("name", "surname that is also a word, with nickname or title"),
    "n4": ("name", "title, and a word ends in front of the surname"),
    "n5": ("name", "given name with a rare character"),
    "n6": ("name", "minority or transliterated, with separators"),
    "h1": ("hospital", "without a trigger word in front"),
    "h2": ("hospital", "place within place"),
    "h3": ("hospital", "short and army names"),
    "a1": ("address", "goes on after a crossing and a direction"),
}
"""Class -> the kind that it measures, and what it holds."""
_MARK = re.compile(r"\{(name|hospital|address)\|([^{}|]*)\}")
Place = tuple[int, int, str]
"""Start, end, kind."""


@dataclass(frozen=True)
class Row:
    """A text and the values in it."""

    name: str
    text: str
    places: tuple[Place, ...]


def rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file."""
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, marked = line.partition("\t")
        places, done, shift = list[Place](), 0, 0
        for match in _MARK.finditer(marked):
            start = match.start() - shift
            places.append((start, start + len(match[2]), match[1]))
            shift, done = shift + len(match[0]) - len(match[2]), match.end()
        if "{" in marked[done:] or name not in {*CLASSES, "neg"}:
            raise ValueError(f"{path}: {line}")
        yield Row(name, _MARK.sub(r"\2", marked), tuple(places))


def by_rules(read: Sequence[Row]) -> list[set[Place]]:
    """Return what all recognisers find in each row."""
    masked = mask_all(masker(Masking(), "zh", b""), [row.text for row in read])
    return [{(span.start, span.end, span.kind) for span in each.spans} for each in masked]


async def by_model(read: Sequence[Row], settings: LanguageModel) -> tuple[list[set[Place]], Counter[str]]:
    """Return what a language model finds alone in each row, and how many quotations were rejected, by reason."""
    prompt = asking.prompt(read_yaml(path := resources.find("prompts", "mask-zh.yaml")), str(path))
    found, rejected, asked = list[set[Place]](), Counter[str](), provider(settings)
    for row in read:
        spotted = asking.read(await asked.answer(asking.build(prompt, row.text)), row.text)
        found.append({(span.start, span.end, span.kind) for span in spotted.spans})
        rejected.update({**spotted.rejected, spotted.status: 1})
    await asked.close()
    return found, rejected


def table(read: Sequence[Row], found: Sequence[set[Place]]) -> Iterator[str]:
    """Yield a Markdown table of recall per class and kind, and of rows without personal data that were changed."""
    hits, of = Counter[str](), Counter[str]()
    for row, places in zip(read, found, strict=True):
        for place in row.places:
            own = row.name in CLASSES and CLASSES[row.name][0] == place[2]
            for key in (place[2], row.name) if own else (place[2],):
                of[key] += 1
                hits[key] += place in places
    yield from ("| class | found | recall | 95 % |", "| --- | --: | --: | --- |")
    for key in (*CLASSES, *sorted({kind for kind, _ in CLASSES.values()})):
        yield _line(f"{key}: {CLASSES[key][1]}" if key in CLASSES else f"every {key}", hits[key], of[key])
    clean = [places for row, places in zip(read, found, strict=True) if not row.places]
    yield _line("changed, of texts without personal data", sum(map(bool, clean)), len(clean))


def _line(said: str, hits: int, of: int) -> str:
    share = wilson(hits, of)
    figures = f"{share.value:.3f} | {share.low:.3f} to {share.high:.3f}" if share else "- | -"
    return f"| {said} | {hits} of {of} | {figures} |"


def misses(read: Iterable[Row], found: Iterable[set[Place]]) -> Iterator[str]:
    """Yield the rows in which something was overlooked or masked beside the values."""
    for row, places in zip(read, found, strict=True):
        if places != set(row.places):
            told = [f"{sign}{row.text[s:e]}:{kind}" for sign, each in (("-", set(row.places) - places),
                    ("+", places - set(row.places))) for s, e, kind in sorted(each)]  # fmt: skip
            yield f"{row.name}\t{row.text}\t{' '.join(told)}"


def main() -> None:
    """Print a table in Markdown per set."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sets", nargs="*", default=SETS, help="names in free_text/, or files")
    options.add_argument("--misses", action="store_true")
    options.add_argument("--model")
    options.add_argument("--base-url")
    options.add_argument("--rows", type=int, default=20)
    given = options.parse_args()
    for name in given.sets:
        read = list(rows(Path(name) if Path(name).suffix else FOLDER / f"{name}.tsv"))
        if given.model:
            parts = ([row for row in read if bool(row.places) is some] for some in (True, False))
            full, empty = (part[:: max(len(part) // given.rows, 1)][: given.rows] for part in parts)
            read = [*full, *empty]
            settings = LanguageModel(kind="openai", model=given.model, base_url=given.base_url, timeout_s=600)
            found, rejected = asyncio.run(by_model(read, settings))
            print(f"\n{name}: the model alone; replies and rejected quotations {dict(rejected)}\n")
        else:
            found = by_rules(read)
            print(f"\n{name}: {len(read)} rows\n")
        print("\n".join(table(read, found)))
        if given.misses:
            print("\n".join(misses(read, found)))


if __name__ == "__main__":
    main()
