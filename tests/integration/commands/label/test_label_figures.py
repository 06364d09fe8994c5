"""Figures on real questions: what one keyword per class tells of departments, and of types of English questions."""

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.label.building import figures, learned

DEPARTMENTS = ("肝病科", "消化科", "神经科", "心血管科")
TYPES = {
    "information": "what is (are) ",
    "treatment": "what are the treatments for ",
    "symptoms": "what are the symptoms of ",
    "diagnosis": "how to diagnose ",
    "causes": "what causes ",
    "risk": "who is at risk for ",
    "research": "what research",
    "prevention": "how to prevent ",
    "diet": "what to do for ",
    "outlook": "what is the outlook for ",
}
"""Ten templates of questions, by what they begin with."""


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def split(texts: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """Return labelled texts of which the first 30 % of a shuffle are for tests."""
    order = list(range(len(texts)))
    random.Random(13).shuffle(order)
    test = set(order[: round(0.3 * len(texts))])
    return pl.DataFrame(
        [(text, label, "test" if at in test else "train") for at, (text, label) in enumerate(texts)],
        ["text", "label", "split"],
        orient="row",
    )


def test_one_keyword_per_department_nearly_suffices(shared_data: Path) -> None:
    asks: list[tuple[str, str]] = []
    seen: set[str] = set()
    for row in sorted(rows(shared_data / "zh_legacy" / "queries.jsonl"), key=lambda each: each["_id"]):
        ask, title = row["text"].strip(), row["metadata"]["title"].strip()
        if len(ask) >= 20 and ask != title and not {ask, title} & seen:
            seen |= {ask, title}
            asks.append((ask, row["metadata"]["department"]))
    assert len(asks) == 4_890
    random.Random(13).shuffle(asks)
    table = split([each for each in asks[:2_000] if each[1] in DEPARTMENTS])
    assert table.height == 1_946
    words = learned(table)
    assert {words.words[name][1] for name in DEPARTMENTS} == {"高血压", "癫", "肝", "胃"}
    found: Any = figures(table, words)
    assert (round(found["keyword_f1"], 3), round(found["commonest_f1"], 3)) == (0.953, 0.157)
    masked: Any = figures(table.with_columns(pl.col("text").map_elements(words.masked, pl.String)), words)
    assert (masked["share"], round(masked["keyword_f1"], 3)) == (0, 0.648)


@pytest.mark.parametrize(("column", "wanted"), [(0, 1.0), (1, 0.547)], ids=["question", "answer"])
def test_a_type_is_read_off_the_question_and_not_the_answer(shared_data: Path, column: int, wanted: float) -> None:
    folder = shared_data / "medquad_legacy_en"
    answers = {row["_id"]: row["text"].split() for row in rows(folder / "corpus.jsonl")}
    questions = {row["_id"]: row["text"] for row in rows(folder / "queries.jsonl")}
    pairs: list[tuple[str, str]] = []
    seen: set[str] = set()
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, *_ = line.split("\t")
        pair = questions[query], " ".join(answers[document][:60])
        if len(answers[document]) >= 60 and not {*pair} & seen:
            seen |= {*pair}
            pairs.append(pair)
    assert len(pairs) == 2_204
    random.Random(13).shuffle(pairs)
    typed = [
        (pair[column], name)
        for pair in pairs
        for name, start in TYPES.items()
        if re.match(re.escape(start), pair[0], re.IGNORECASE)
    ]
    assert len(typed) == 2_137
    table = split(typed)
    found: Any = figures(table, learned(table))
    assert round(found["keyword_f1"], 3) == wanted
