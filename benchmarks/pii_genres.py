"""What masking takes for personal data in medicine: every term of a lexicon in sentences of five genres.

The sentences hold none (`genres.yaml`), so every span is wrong unless the term itself names a person (a lexicon of
medicine has 李时珍) or a hospital: `--spans` writes them for reading, a line per genre and span with its sentence.

Run: python -m benchmarks.pii_genres --terms LEXICON.tsv [--column term] [--spans spans.tsv]
"""

import argparse
from collections import Counter
from pathlib import Path

import polars as pl
import yaml

from curate.pii.masking import placeholders
from curate.pii.residual import scan
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all

KEY = b"key of the benchmark, of 32 byte"


def main() -> None:
    """Print counts by genre, and write the spans for reading."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--terms", type=Path, required=True)
    parser.add_argument("--column", default="term")
    parser.add_argument("--spans", type=Path)
    arguments = parser.parse_args()
    separator = "\t" if arguments.terms.suffix == ".tsv" else ","
    terms = pl.read_csv(arguments.terms, separator=separator, columns=[arguments.column], infer_schema=False)
    genres = yaml.safe_load(Path(__file__).with_name("genres.yaml").read_text("utf-8"))
    lines = []
    for genre, sentences in genres.items():
        texts = [sentence.format(term) for sentence in sentences for term in terms[arguments.column].unique().sort()]
        masked = mask_all(masker(Masking(), "zh", KEY), texts)
        found = [
            (text, text[span.start : span.end]) for text, one in zip(texts, masked, strict=True) for span in one.spans
        ]
        listed = Counter(value for _, value in found)
        suspicious = len({row for row, _ in scan([one.text for one in masked], placeholders())})
        print(f"{genre}: {len(texts):,} texts, {len(found):,} spans ({len(listed):,} different), {suspicious} listed")
        shown = {value: text for text, value in reversed(found)}
        lines += [f"{genre}\t{value}\t{count}\t{shown[value]}" for value, count in listed.most_common()]
    if arguments.spans:
        arguments.spans.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
