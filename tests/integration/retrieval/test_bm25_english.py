"""BM25 for English: lower case, stop words, Porter's stems, and the constants of the published baseline."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from curate.core.records import Hit
from curate.system.files import read_table
from tests.support.rankers import ids, search
from tests.support.runs import ran, tiny

ENGLISH = {"en": {"kind": "bm25", "tokens": "english"}}
TEXTS = {
    "d1": "The running child is treated for infections",
    "d2": "Infection of the heart",
    "d3": "Treating a cold in children",
    "d4": "Vaccines and the treatment of diseases",
    "d5": "Disease: a runner runs and runs",
    "d6": "Not to be",
}
TOKENS = {
    "d1": ["run", "child", "treat", "infect"],
    "d2": ["infect", "heart"],
    "d3": ["treat", "cold", "children"],
    "d4": ["vaccin", "treatment", "diseas"],
    "d5": ["diseas", "runner", "run", "run"],
    "d6": [],
}
"""What a reader of Porter's paper makes of the texts."""
QUERY = "Treated INFECTIONS of running"


def shares(hits: Sequence[Hit]) -> dict[str, float]:
    """Return every score as a share of the best one."""
    return {hit.doc_id: hit.score / hits[0].score for hit in hits}


def by_formula(query: Sequence[str], k1: float, b: float) -> dict[str, float]:
    """Return Lucene's BM25 over tokens, as shares of the best."""
    mean = sum(map(len, TOKENS.values())) / len(TOKENS)
    scores = dict.fromkeys(TOKENS, 0.0)
    for token in query:
        n = sum(token in tokens for tokens in TOKENS.values())
        idf = math.log(1 + (len(TOKENS) - n + 0.5) / (n + 0.5))
        for doc, tokens in TOKENS.items():
            tf = tokens.count(token)
            scores[doc] += idf * tf / (tf + k1 * (1 - b + b * len(tokens) / mean))
    best = max(scores.values())
    return {doc: score / best for doc, score in scores.items() if score > 0}


def found(
    folder: Path, queries: Mapping[str, str], texts: Mapping[str, str] = TEXTS, **more: float
) -> dict[str, list[Hit]]:
    return search(folder, {"en": {**ENGLISH["en"], **more}}, "en", texts=texts, queries=queries)


def test_forms_of_a_word_are_one_word(tmp_path: Path) -> None:
    """A query finds a document with other endings and another case of its words."""
    forms = ("infection", "infections", "Infected", "INFECTING")
    hits = found(tmp_path, {form: form for form in forms} | {"vaccine": "vaccinated", "run": "runs"})
    for form in forms:
        assert sorted(ids(hits)[form]) == ["d1", "d2"]
    assert ids(hits)["vaccine"] == ["d4"]
    assert ids(hits)["run"] == ["d5", "d1"]


def test_the_default_constants_are_those_of_the_published_baseline(tmp_path: Path) -> None:
    """Without k1 and b the scores are BM25's with .9 and .4 over stems without stop words."""
    hits = found(tmp_path, {"q": QUERY})["q"]
    expected = by_formula(["treat", "infect", "run"], 0.9, 0.4)
    other = by_formula(["treat", "infect", "run"], 1.5, 0.75)
    assert max(abs(expected[doc] - other[doc]) for doc in expected) > 0.01
    assert shares(hits) == pytest.approx(expected, abs=1e-4)


def test_constants_that_are_given_are_taken(tmp_path: Path) -> None:
    """k1 and b of the pipeline win over the defaults of the English tokens."""
    for k1, b in ((1.5, 0.75), (1.2, 0.0)):
        hits = found(tmp_path, {"q": QUERY}, k1=k1, b=b)["q"]
        assert shares(hits) == pytest.approx(by_formula(["treat", "infect", "run"], k1, b), abs=1e-4)


def test_other_tokens_keep_their_constants(tmp_path: Path) -> None:
    """A pipeline of before, with words or bigrams and no constants, has the scores of 1.5 and .75 (today too)."""
    for tokens in ("words", "bigrams"):
        hits = [
            search(tmp_path, {"x": {"kind": "bm25", "tokens": tokens, **more}}, "x", texts=TEXTS, queries={"q": QUERY})
            for more in ({}, {"k1": 1.5, "b": 0.75}, {"k1": 0.9, "b": 0.4})
        ]
        assert hits[0] == hits[1] != hits[2]


def test_stop_words_find_nothing_and_weigh_nothing(tmp_path: Path) -> None:
    """A query of stop words alone has no hit and is no error; beside others they change no score."""
    queries = {"none": "the of and", "be": "Not to be", "bare": "infection heart", "full": "the infection of a heart"}
    hits = found(tmp_path, queries)
    assert hits["none"] == hits["be"] == []
    assert hits["bare"] == hits["full"] != []


def test_numbers_are_words(tmp_path: Path) -> None:
    """A number of one digit, of several, and one with letters decide between texts that are otherwise equal."""
    texts = {"d1": "type 1 diabetes", "d2": "type 2 diabetes", "d3": "covid 19 of 2020", "d4": "covid of 2021"}
    hits = ids(found(tmp_path, {"two": "type 2 diabetes", "year": "covid 2021"}, texts))
    assert hits["two"][0] == "d2"
    assert hits["year"][0] == "d4"


def test_apostrophes_do_not_part_what_belongs_together(tmp_path: Path) -> None:
    """A name with an apostrophe is found by itself, and finds no other name."""
    texts = {"d1": "Crohn's disease of adults", "d2": "Parkinson's disease of adults", "d3": "don't smoke"}
    hits = ids(found(tmp_path, {"c": "Crohn's disease", "p": "parkinson's", "d": "don't"}, texts))
    assert hits["c"] == ["d1", "d2"]
    assert hits["p"][0] == "d2"
    assert hits["d"][0] == "d3"


def test_english_words_in_chinese_texts_are_found(tmp_path: Path) -> None:
    """Texts in two languages break nothing, and their English words are found by their stems."""
    texts = {"d1": "高血压患者 taking aspirins 能喝咖啡吗", "d2": "高血压患者能喝茶吗", "d3": "aspirin"}
    hits = ids(found(tmp_path, {"a": "aspirin", "zh": "，。", "m": "高血压 aspirin"}, texts))
    assert set(hits["a"]) == {"d1", "d3"}
    assert hits["zh"] == []
    assert {"d1", "d3"} <= set(hits["m"])


def test_it_is_a_source_of_a_pool_of_its_own(tmp_path: Path) -> None:
    """A run pools by English BM25, and by other tokens it is another pool."""
    path = tmp_path / tiny(tmp_path)
    settings = yaml.safe_load(path.read_text("utf-8"))
    for name, text in (("queries", "infections of q"), ("corpus", "an infected child d")):
        file = tmp_path / "data" / f"{name}.jsonl"
        file.write_text(re.sub(r'("text": ").*?(")', rf"\g<1>{text}\g<2>", file.read_text("utf-8")), "utf-8")
    settings |= {"language": "en", "retrievers": ENGLISH, "pool": {"retrievers": ["en"], "depth": 3, "size": 3}}
    settings["ingest"] = {"source": "data", "duplicates": "keep"}
    settings["mask"] = {"enabled": False}
    path.write_text(yaml.safe_dump(settings), "utf-8")
    for stage in ("ingest", "mask", "diversify", "pool"):
        ran(tmp_path, stage, "--pipeline", "tiny.yaml")
    rankings = read_table(tmp_path / "runs/tiny/pool", "rankings")
    assert set(rankings["retriever"]) == {"en"}
    assert rankings.height == 15
