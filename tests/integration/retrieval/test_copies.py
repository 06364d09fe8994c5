"""Copies by their sentences: what is found of planted copies, and that no edit of the meaning is taken for one."""

import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from curate.retrieval.similarity.contradictions import assertions, contradict
from curate.retrieval.similarity.copies import contained, copies, sentences

COPIES = [
    ("Take 5 ml twice a day. Call a doctor if it hurts.", "take 5ml twice a day! Call a doctor, if it hurts"),
    ("每天服用两次，饭后服用。如有不适请就医。", "每天服用两次，饭后服用。如有不适，请就医！"),
    (
        "The knee swells. Rest it, and put ice on it. Then see a doctor.",
        "The knee swells. Rest it, and put ice on it. Then see",
    ),
    (
        "The knee swells. Rest it, and put ice on it for an hour.",
        "The knee swells. Rest it, and put ice on it for an hour. Ad.",
    ),
]
DIFFERENT = [
    ("Take 5 ml twice a day. Call a doctor.", "Take 15 ml twice a day. Call a doctor."),
    ("Pain in the left kidney. What helps?", "Pain in the right kidney. What helps?"),
    ("You may drive a car. Drink water.", "You may not drive a car. Drink water."),
    ("体温 38.5 度。要紧吗", "体温 385 度。要紧吗"),
    ("结果为 Rh+。要紧吗", "结果为 Rh-。要紧吗"),
    ("血压 >140。要紧吗", "血压 <140。要紧吗"),
    ("HBsAg (-). Is it bad", "HBsAg (+). Is it bad"),
    ("Doses: 10-20 mg. Take with milk", "Doses: 1020 mg. Take with milk"),
    ("Take tablets 1 2. Take with milk", "Take tablets 12. Take with milk"),
    ("Count 10² cells. Take with milk", "Count 102 cells. Take with milk"),
    ("The dose is in the leaflet. Take 1", "The dose is in the leaflet. Take 15"),
    ("什么是糖尿病", "什么是糖尿病足"),
    (
        "A short text. It ends here.",
        "A short text. It ends here. But this other one goes on and says a lot that is new.",
    ),
]


@pytest.mark.parametrize(("left", "right"), COPIES)
def test_copies_are_found(left: str, right: str) -> None:
    decided = copies(2, lambda: [left, right], np.zeros(2, bool))
    assert decided.kept.sum() == 1
    [dropped] = np.flatnonzero(~decided.kept)
    assert (decided.nearest[dropped], len(sentences([left, right][dropped])) > 0) == (1 - dropped, True)
    assert 0.8 <= decided.similarity[dropped] <= 1
    assert copies(2, lambda: [left, right], ~decided.kept).kept.sum() >= 1, "a protected text is kept"
    both = copies(2, lambda: [left, right], np.ones(2, bool))
    assert (both.kept.sum(), both.spared) == (2, 1)


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_what_changes_the_meaning_is_no_copy(left: str, right: str) -> None:
    for texts in ([left, right], [right, left]):
        assert not contained(sentences(texts[0]), sentences(texts[1]))
        assert copies(2, lambda: texts, np.zeros(2, bool)).kept.all()  # noqa: B023 - called at once


def test_the_copy_of_a_copy_falls_with_it_and_a_sentence_counts_as_often_as_it_stands() -> None:
    text = "One sentence that is long enough. Another one that is long enough."
    assert copies(3, lambda: [text, f"{text} End.", text.upper()], np.zeros(3, bool)).nearest.tolist() == [1, -1, 1]
    twice = "Yes, it is so. Yes, it is so. A third sentence to fill the text up."
    assert copies(2, lambda: [twice, twice.replace("Yes, it is so. ", "", 1)], np.zeros(2, bool)).kept.tolist() == [
        True,
        False,
    ]
    boilerplate = [f"No data. Page {number}." for number in range(60)]
    assert copies(60, lambda: boilerplate, np.zeros(60, bool)).kept.all()
    assert copies(60, lambda: ["No data."] * 60, np.zeros(60, bool)).kept.sum() == 1
    assert copies(0, list, np.zeros(0, bool)).kept.tolist() == []


def _lost_end(text: str, _draw: random.Random) -> str:
    return text[: int(len(text) * 0.9)]


def _lost_sentence(text: str, draw: random.Random) -> str:
    parts = [part for part in re.split(r"(?<=[。！？!?；;\n])|(?<=\.)\s", text) if part.strip()]
    del parts[draw.randrange(len(parts))]
    return " ".join(parts)


EDITS: dict[str, Callable[[str, random.Random], str]] = {
    "punctuation": lambda text, _: re.sub(r"(?<=\D)[,，、](?=\D)", " ", text).rstrip(" .。") + "!",
    "added line": lambda text, _: f"{text}\n更多内容请见网站",
    "cut end": _lost_end,
    "lost sentence": _lost_sentence,
}
LEAST = {"punctuation": 0.98, "added line": 0.98, "cut end": 0.92, "lost sentence": 0.37}
"""Share found, at least."""
CHANGES = [
    (r"\d+", lambda match: str(int(match[0]) + 1)),
    ("左", lambda _: "右"),
    (r"\bmay\b", lambda _: "may not"),
    ("可以", lambda _: "不可以"),
    (r"\b(is|are)\b", lambda match: f"{match[0]} not"),
    ("高", lambda _: "低"),
    ("女", lambda _: "男"),
    (r"\bhyper", lambda _: "hypo"),
]


def _texts(path: Path) -> Sequence[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in random.Random(7).sample(lines, 700)]
    return [text for text in dict.fromkeys(texts) if len(sentences(text)) > 2][:400]


@pytest.mark.parametrize("name", ["zh_legacy", "medquad_legacy_en"])
def test_planted_copies_of_real_texts_are_found_and_edits_of_meaning_are_not(name: str, shared_data: Path) -> None:
    texts, draw = _texts(shared_data / name / "corpus.jsonl"), random.Random(3)
    assert len(texts) > 300
    shares = {}
    for kind, least in LEAST.items():
        copied = [EDITS[kind](text, draw) for text in texts]
        whole = [*texts, *copied]
        kept = copies(len(whole), lambda: whole, np.zeros(len(whole), bool)).kept  # noqa: B023 - called at once
        share = shares[kind] = np.mean([not (kept[row] and kept[row + len(texts)]) for row in range(len(texts))])
        assert share >= least, (kind, share)
    tried = taken = 0
    for pattern, change in CHANGES:
        for text in texts:
            edited = re.sub(pattern, change, text, count=1)
            if edited != text:
                tried += 1
                taken += contained(sentences(text), sentences(edited)) or contained(sentences(edited), sentences(text))
    # what is not found lost more than a fifth of its characters with the sentence
    assert shares["lost sentence"] > (0.37 if name == "zh_legacy" else 0.75)
    assert tried > 300
    assert taken == 0


def test_contradictions() -> None:
    for left, right in [
        ("Take 5 ml daily", "Take 15 ml daily"),
        ("左肾结石", "右肾结石"),
        ("孕妇可以服用", "孕妇不可以服用"),
        ("type 1 diabetes", "type 2 diabetes"),
        ("in newborns", "in adults"),
        ("male patients", "female patients"),
    ]:
        assert contradict(assertions(left), assertions(right), statements=False), left
        assert not contradict(assertions(left), assertions(left), statements=True), left
        assert not contradict(assertions(left), assertions("something else"), statements=False), left
    assert contradict(assertions("It is safe."), assertions("It is not safe."), statements=True)
    assert not contradict(assertions("Is it safe?"), assertions("Is it not safe?"), statements=False)
