"""Triples of any everyday file, what must not be trained on, and the dev queries that are held back."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.commands.train import DevSplit, TrainSettings, origin, triples
from curate.commands.train import triples as examples
from curate.commands.train.triples import TrainTriples, grouped, held_back
from curate.core.errors import ConfigError, DataError

ROWS: list[dict[str, Any]] = [
    {"anchor": "q one", "positive": "a", "negative_1": "b", "negative_2": "c"},
    {"anchor": "q two", "positive": "c", "negative_1": "a", "negative_2": "b"},
    {"anchor": "q one", "positive": "b", "negative_1": "c", "negative_2": "c"},
]


def written(folder: Path, ending: str) -> Path:
    path = folder / f"triples.{ending}"
    if ending == "parquet":
        pl.DataFrame(ROWS).write_parquet(path)
    elif ending == "jsonl":
        path.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    else:
        pl.DataFrame(ROWS).write_csv(path, separator="\t" if ending == "tsv" else ",")
    return path


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "csv", "tsv"])
def test_a_file_in_the_habit_of_sentence_transformers(tmp_path: Path, ending: str) -> None:
    found = triples.read(written(tmp_path, ending))
    assert found.queries == ["q one", "q two"]
    assert [found.documents[each] for each in found.positives[0]] == ["a", "b"]
    assert [found.documents[each] for each in found.negatives[0]] == ["c"], "b is relevant, so it is no negative"
    assert found.notes == ["1 negatives are also positives of their query and were left out"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("\n", "found no row"),
        ('{"anchor": "q"}', "expected one of positives"),
        ('{"positive": "d", "negative": "e"}', "expected one of queries"),
        ('{"query": "q", "pos": [], "neg": ["a"]}', ":1: found no text in pos"),
        ('{"query": "q", "pos": ["a"]', ":1: found a line that is not valid JSON"),
        ("[1]", ":1: found a list"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as error:
        triples.read(path)
    assert str(path) in str(error.value)
    assert said in str(error.value)


def test_rows_without_a_negative_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"query": "q", "pos": ["a"], "neg": []}', encoding="utf-8")
    (note,) = triples.read(path).notes
    assert note.startswith("1 rows have no negative, or an empty one (the first in line 1): they learn")


def test_a_spreadsheet_of_another_country_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pl.DataFrame(ROWS).write_csv(path, separator=";", include_bom=True)
    assert triples.read(path).documents == triples.read(written(tmp_path, "jsonl")).documents


def test_what_is_no_file_of_triples(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        triples.read(tmp_path / "x")
    with pytest.raises(DataError, match=r"found no triples\.jsonl there"):
        triples.read(tmp_path)
    (tmp_path / "t.docx").touch()
    with pytest.raises(DataError, match=r"'\.docx'"):
        triples.read(tmp_path / "t.docx")


def of_train_set(folder: Path, **facts: Any) -> TrainTriples:
    """Return triples beside the manifest of a train set."""
    body = {"version": 1, "format": "triples", "files": {}, "card": {"form": 1, "facts": json.dumps(facts)}}
    (folder / "MANIFEST.json").write_text(json.dumps(body), encoding="utf-8")
    return triples.read(written(folder, "jsonl"))


def test_heuristic_and_unchecked_triples_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"graded by heuristics \(lexical\)"):
        origin.origin(of_train_set(tmp_path, weak_judges=True, judges=["lexical"], test="t", leaks={}), tmp_path)
    with pytest.raises(ConfigError, match="not checked for leaks"):
        origin.origin(of_train_set(tmp_path, judges=["m"], test=None, leaks=None), tmp_path)
    found = origin.origin(of_train_set(tmp_path, judges=["m"], test="held", leaks={}), tmp_path / "held" / "export")
    assert (found.judges, found.checked_against, found.notes) == (("m",), "held", ())
    other = origin.origin(of_train_set(tmp_path, judges=["m"], test="held", leaks={}), tmp_path / "x")
    assert "leaks were looked for in held" in other.notes[0]


def test_a_query_of_the_test_set_is_refused(tmp_path: Path) -> None:
    found = triples.read(written(tmp_path, "jsonl"))
    origin.no_test_query(found, ["q three"], tmp_path)
    with pytest.raises(DataError, match="1 of 2 queries are also queries of the test set"):
        origin.no_test_query(found, ["Q  Two!"], tmp_path)


def made(positives: list[list[int]], groups: list[str] | None = None) -> TrainTriples:
    documents = max((max(each) for each in positives), default=0) + 1
    queries = [f"q{at}" for at in range(len(positives))]
    none: list[list[int]] = [[] for _ in positives]
    texts = [f"d{at}" for at in range(documents)]
    return TrainTriples(Path("t"), "", queries, texts, positives, none, groups or [""] * len(positives))


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=2), min_size=30, max_size=60), st.integers(0, 5))
def test_no_dev_query_shares_a_positive_with_training(positives: list[list[int]], seed: int) -> None:
    found = made(positives)
    try:
        held = held_back(found, DevSplit(), seed)
    except DataError:
        assert max(map(len, grouped(found))) > 4, "only where the groups are few and large"
        return
    own = {doc for query in held.dev for doc in positives[query]}
    assert not own & {doc for query in held.train for doc in positives[query]}
    assert sorted([*held.dev, *held.train]) == list(range(len(positives)))
    assert own <= {*held.documents}


def test_queries_of_a_group_stay_together() -> None:
    assert grouped(made([[0], [1], [2], [2]], ["x", "", "x", ""])) == [[0, 2, 3], [1]]


def test_too_few_queries_leave_nothing_to_hold_back() -> None:
    with pytest.raises(DataError, match="too few to hold some back"):
        held_back(made([[0], [0], [0], [0], [0], [0]]), DevSplit(), 1)


def test_examples_take_turns_and_fill_up() -> None:
    found = TrainTriples(Path("t"), "", ["q"], list("abcde"), [[0, 1]], [[2, 3, 4]], [""])
    assert examples.numbers(found, [0], 2) == [(0, [0, 2, 3]), (0, [1, 4, 2])]
    assert examples.spared(found) == {0: [1], 1: [0]}
    rows = examples.text_rows(found, [0], 4, -1)
    assert rows[0]["label"] == [0, 2, 3, 4, -1]
    assert rows[0]["negative_4"] == "a"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"documents": "m"}, "recipe contrastive has one model"),
        ({"part": "map"}, "needs recipe contrastive and freeze documents"),
        ({"part": "map", "freeze": "documents", "mrl": [8]}, "neither lora nor mrl"),
    ],
)
def test_settings_that_do_not_fit_one_another(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TrainSettings(**settings)
