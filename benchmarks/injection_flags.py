"""How many attacks on a grader carry a flag, and how many texts carry one that are none.

benchmarks/injection/attacks.tsv was written before the words that are looked for. Of every language and class each
second text is set aside: nobody looked at it while words were chosen. later.tsv has other wording; words were added for
it once it had been tried. Both are by the author of the words, who thinks of what was thought of: strangers' attacks
are flagged less often. Corpora are JSON lines with `text` and perhaps `title`.

Run: python -m benchmarks.injection_flags [CORPUS.jsonl ...]
"""

import argparse
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from curate.estimates import wilson
from curate.suspicion.sieve import flags_all

FOLDER = Path(__file__).parent / "injection"


@dataclass(frozen=True)
class Example:
    """A text of a set."""

    language: str
    attack: bool
    text: str
    aside: bool
    """True if it was set aside while words were chosen."""


def examples(name: str) -> Iterator[Example]:
    """Yield the texts of a set; escapes are read."""
    seen: dict[tuple[str, str], int] = {}
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        language, kind, text = line.split("\t")
        number = seen[language, kind] = seen.get((language, kind), -1) + 1
        text = re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), text).replace("\\n", "\n")
        yield Example(language, kind == "attack", text, number % 2 == 1)


def share(flagged: Sequence[bool]) -> str:
    """Return a share with its interval."""
    found = wilson(sum(flagged), len(flagged))
    if found is None:
        return "none"
    return f"{sum(flagged)} of {len(flagged)} | {found.value:.2%} | {found.low:.2%} to {found.high:.2%}"


def rows(name: str) -> Iterator[str]:
    """Yield the rows of a set: both halves, then the attacks by language."""
    texts = list(examples(name))
    flagged = [bool(found) for found in flags_all([each.text for each in texts])]
    pairs = list(zip(texts, flagged, strict=True))
    for attack, kind in ((True, "attacks"), (False, "clean texts")):
        yield f"| {name}, {kind} | {share([hit for each, hit in pairs if each.attack == attack])} |"
        if name == "attacks.tsv":
            aside = [hit for each, hit in pairs if each.attack == attack and each.aside]
            yield f"| {name}, {kind} set aside | {share(aside)} |"
    attacks = sorted((each.language, hit) for each, hit in pairs if each.attack)
    for language, group in groupby(attacks, key=lambda pair: pair[0]):
        yield f"| {name}, attacks in {language} | {share([hit for _, hit in group])} |"


def corpora(paths: Iterable[Path]) -> Iterator[str]:
    """Yield a row for each corpus, with the CPU time of a text."""
    for path in paths:
        lines = path.read_text(encoding="utf-8").splitlines()
        texts = [f"{row.get('title') or ''}\n{row['text']}".strip() for row in map(json.loads, lines)]
        start = time.process_time()
        flagged = [bool(found) for found in flags_all(texts)]
        spent = (time.process_time() - start) / max(len(texts), 1)
        yield f"| {path.parent.name}/{path.name}, {spent * 1e6:.0f} µs a text | {share(flagged)} |"


def main() -> None:
    """Print a table in Markdown."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("corpora", nargs="*", type=Path)
    paths = options.parse_args().corpora
    print("| texts | flagged | share | 95 % |\n| --- | --: | --: | --- |")
    for row in (*rows("attacks.tsv"), *rows("later.tsv"), *corpora(paths)):
        print(row)


if __name__ == "__main__":
    main()
