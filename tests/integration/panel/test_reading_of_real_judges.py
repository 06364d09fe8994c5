"""False alarms of the test of reading: grades of real judges and of people, put into prompts in random order."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from curate.core.scale import FIVE, Scale, declared
from curate.ledger import Rating
from curate.panel.reading import ReadingTest

pytestmark = pytest.mark.accept
FOUR = declared(["3", "2", "1", "0"], "ordinal", "2", None)


def runs(table: pl.DataFrame, size: int, seeds: int) -> Iterator[list[list[Rating]]]:
    """Yield the prompts of whole runs: queries and, within each, passages in an order of the seed."""
    by_query = [list(part.select("query_id", "doc_id", "grade").iter_rows()) for _, part in table.group_by("query_id")]
    for seed in range(seeds):
        chance, prompts = np.random.default_rng([seed, size]), list[list[Rating]]()
        for pairs in by_query:
            order = [pairs[number] for number in chance.permutation(len(pairs))]
            for start in range(0, len(order), size):
                group = order[start : start + size]
                prompts.append(
                    [
                        Rating(query, doc, "j", "r", 0, grade, "rated", slot, len(group))
                        for slot, (query, doc, grade) in enumerate(group)
                    ]
                )
        chance.shuffle(prompts)
        yield prompts


def alarms(table: pl.DataFrame, scale: Scale, lengths: Mapping[str, int], size: int, seeds: int) -> list[str]:
    """Return what was found in runs of an honest judge."""
    said = []
    for prompts in runs(table, size, seeds):
        test = ReadingTest(scale, lengths)
        for prompt in prompts:
            test.add(prompt)
            if finding := test.finding():
                said.append(finding)
                break
    return said


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("size", [8, 10])
def test_no_honest_run_of_hundreds_is_stopped(size: int, shared_data: Path) -> None:
    graded = pl.read_csv(shared_data / "multirater" / "llmjudge_8queries_5judges.csv")
    found, asked = list[str](), 0
    for rater in graded.columns[2:]:
        grades = graded.select("query_id", "doc_id", grade=pl.col(rater).cast(pl.String)).drop_nulls()
        grades = grades.filter(pl.col("grade").is_in(list(FOUR.labels)))
        found += alarms(grades, FOUR, {}, size, 60)
        asked += 60
    panel = pl.read_csv(shared_data / "panel" / "ratings.tsv", separator="\t")
    lines = (shared_data / "panel" / "corpus.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(line) for line in lines]
    lengths = {text["_id"]: len(text["text"]) for text in texts}
    for _, part in panel.group_by("assessor"):
        found += alarms(part, FIVE, lengths, size, 60)
        asked += 60
    assert asked >= 500
    assert not found, found
