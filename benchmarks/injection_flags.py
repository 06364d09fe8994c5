"""How many attacks on a grader carry a flag, and how many texts carry one that are none.

The sets were written one after the other and tried before words were added for them; their heads say how many were
flagged at first sight. The shares here are of attacks that the words are known to: what strangers write is flagged
less often, and who knows the words writes around them. Flags are no defence. Corpora are JSON lines with `text` and
perhaps `title`.

Run: python -m benchmarks.injection_flags [CORPUS.jsonl ...]
"""

import argparse
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from curate.llm.prompt_injection.sieve import flags_all
from curate.stats.sample_estimates import wilson

FOLDER = Path(__file__).parent / "injection"
SETS = ("attacks.tsv", "later.tsv", "third.tsv", "fourth.tsv")


@dataclass(frozen=True)
class Example:
    """A text of a set."""

    language: str
    attack: bool
    text: str


def examples(name: str) -> Iterator[Example]:
    """Yield the texts of a set; escapes are read."""
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        language, kind, text = line.split("\t")
        text = re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), text).replace("\\n", "\n")
        yield Example(language, kind == "attack", text)


def share(flagged: Sequence[bool]) -> str:
    """Return a share with its interval."""
    found = wilson(sum(flagged), len(flagged))
    if found is None:
        return "none | | "
    return f"{sum(flagged)} of {len(flagged)} | {found.value:.2%} | {found.low:.2%} to {found.high:.2%}"


def rows() -> Iterator[str]:
    """Yield the rows of each set, and of each language in all sets."""
    pairs: list[tuple[Example, bool]] = []
    for name in SETS:
        texts = list(examples(name))
        flagged = flags_all([each.text for each in texts])
        found = [(each, bool(flags)) for each, flags in zip(texts, flagged, strict=True)]
        yield from _both(name, found)
        pairs += found
    for language in sorted({each.language for each, _ in pairs}):
        yield from _both(language, [pair for pair in pairs if pair[0].language == language])


def _both(name: str, pairs: Sequence[tuple[Example, bool]]) -> Iterator[str]:
    for attack, kind in ((True, "attacks"), (False, "clean texts")):
        yield f"| {name}, {kind} | {share([hit for each, hit in pairs if each.attack == attack])} |"


def corpora(paths: Iterable[Path]) -> Iterator[str]:
    """Yield one row per corpus, with the speed in CPU time."""
    for path in paths:
        lines = path.read_text(encoding="utf-8").splitlines()
        texts = [f"{row.get('title') or ''}\n{row['text']}".strip() for row in map(json.loads, lines)]
        start = time.process_time()
        flagged = [bool(found) for found in flags_all(texts)]
        speed = sum(len(text.encode()) for text in texts) / (time.process_time() - start) / 1e6
        yield f"| {path.parent.name}/{path.name}, {speed:.1f} MB/s | {share(flagged)} |"


def main() -> None:
    """Print a table in Markdown."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("corpora", nargs="*", type=Path)
    paths = options.parse_args().corpora
    print("| texts | flagged | share | 95 % |\n| --- | --: | --: | --- |")
    for row in (*rows(), *corpora(paths)):
        print(row)


if __name__ == "__main__":
    main()
