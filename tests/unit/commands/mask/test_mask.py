"""The stage mask: no raw value leaves it, qrels and aliases follow what it merges."""

from pathlib import Path
from typing import Any

import pytest

from curate.commands.mask import Config
from curate.commands.mask.stage import STAGE, TABLES
from curate.core.config import check
from curate.core.errors import ConfigError
from curate.pipeline.stage import Context
from curate.system import files, resources
from tests.support.steps import beir, step

PHONES = ("13912345678", "13812345678", "010-61234870")
QUERIES = [{"_id": "q1", "text": f"请打{PHONES[0]}"}, {"_id": "q2", "text": f"请打{PHONES[1]}"}]
CORPUS = [
    {"_id": "d1", "title": f"电话{PHONES[2]}", "text": "少吃盐"},
    {"_id": "d2", "title": "", "text": f"专家热线{PHONES[0]}"},
    {"_id": "d3", "title": "", "text": f"专家热线{PHONES[0]} "},
    {"_id": "d4", "title": "", "text": f"专家热线{PHONES[1]}"},
    {"_id": "d5", "title": "", "text": "没有号码"},
]
QRELS = ["q1 d2 1", "q2 d4 2", "q2 d1 1"]


def table(run: Path, name: str) -> list[Any]:
    return files.read_table(run / "mask", name).rows()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run folder whose ingest is done; d3 was merged into d2 there."""
    step(tmp_path / "run", "ingest", {"source": str(beir(tmp_path / "b", QUERIES, CORPUS, QRELS))})
    return tmp_path / "run"


@pytest.mark.slow
def test_texts_titles_and_spans(run: Path) -> None:
    report = step(run, "mask", {})
    assert table(run, "queries") == [("q1", "请打[电话]", "queries.jsonl")]
    assert [row[:3] for row in table(run, "corpus")] == [
        ("d1", "电话[电话]", "少吃盐"),
        ("d2", "", "专家热线[电话]"),
        ("d5", "", "没有号码"),
    ]
    assert [row[:7] for row in table(run, "spans")] == [
        ("corpus", "d1", "title", 2, 14, "phone", "landline"),
        ("corpus", "d2", "text", 4, 15, "phone", "mobile"),
        ("corpus", "d4", "text", 4, 15, "phone", "mobile"),
        ("queries", "q1", "text", 2, 13, "phone", "mobile"),
        ("queries", "q2", "text", 2, 13, "phone", "mobile"),
    ]
    assert (report.rows_in, report.rows_out, report.dropped) == (6, 4, 0)
    assert report.facts == {
        "spans_phone": 5,
        "masked_queries": 2,
        "merged_queries": 1,
        "made_equal_queries": 2,
        "shortened_queries": 2,
        "masked_corpus": 3,
        "merged_corpus": 1,
        "made_equal_corpus": 2,
        "shortened_corpus": 3,
        "residual": 0,
    }


def test_qrels_and_aliases_follow_what_became_equal(run: Path) -> None:
    step(run, "mask", {})
    assert table(run, "aliases") == [("corpus", "d3", "d2"), ("corpus", "d4", "d2"), ("queries", "q2", "q1")]
    assert table(run, "qrels") == [("q1", "d1", 1), ("q1", "d2", 2)]


def test_no_raw_value_is_in_any_file(run: Path) -> None:
    step(run, "mask", {})
    cells = "".join(str(table(run, name)) for name in (*TABLES, "spans"))
    content = b"".join(path.read_bytes() for path in (run / "mask").iterdir())
    for phone in PHONES:
        assert phone not in cells
        assert phone.encode() not in content


def test_texts_that_masking_made_equal_or_shortened_are_named(run: Path) -> None:
    report = step(run, "mask", {})
    rows = [(kind, name, round(lost, 2), equal) for kind, name, lost, equal in table(run, "altered")]
    assert rows == [
        ("corpus", "d1", 0.71, None),
        ("corpus", "d2", 0.73, "d4"),
        ("corpus", "d4", 0.73, "d2"),
        ("queries", "q1", 0.85, "q2"),
        ("queries", "q2", 0.85, "q1"),
    ]
    assert table(run, "classes") == [
        ("queries", "q1", 0),
        ("corpus", "d1", 0),
        ("corpus", "d2", 1),
        ("corpus", "d5", 3),
    ]
    (note,) = [note for note in report.notes if "equal" in note]
    assert note.startswith(
        "masking made 2 queries and 2 documents equal to others that they were not equal to and took"
    )


def test_kept_duplicates_stay_apart(tmp_path: Path) -> None:
    section = {"source": str(beir(tmp_path / "b", QUERIES, CORPUS, QRELS)), "duplicates": "keep"}
    step(tmp_path / "run", "ingest", section)
    report = step(tmp_path / "run", "mask", {}, {"ingest": section})
    assert [row[0] for row in table(tmp_path / "run", "corpus")] == ["d1", "d2", "d3", "d4", "d5"]
    assert table(tmp_path / "run", "aliases") == []
    classes = [row[1:] for row in table(tmp_path / "run", "classes") if row[0] == "corpus"]
    assert classes == [("d1", 0), ("d2", 1), ("d3", 1), ("d4", 2), ("d5", 3)]
    assert report.facts["made_equal_corpus"] == 3, "d2 and d3 were one text, and d4 another"


def test_disabled_copies_the_tables(run: Path) -> None:
    report = step(run, "mask", {"enabled": False})
    for name in TABLES:
        assert (run / "mask" / f"{name}.parquet").read_bytes() == (run / "ingest" / f"{name}.parquet").read_bytes()
    assert [row[:7] for row in table(run, "spans")] == []
    assert (report.rows_in, report.rows_out) == (6, 6)


def test_only_the_named_recognisers_look(run: Path) -> None:
    step(run, "mask", {"recognisers": ["landline", "email"]})
    assert [row[:7] for row in table(run, "spans")] == [("corpus", "d1", "title", 2, 14, "phone", "landline")]


def test_fingerprint(tmp_path: Path) -> None:
    context = Context(run=tmp_path, out=tmp_path, home=tmp_path)
    keeping = Context(run=tmp_path, out=tmp_path, home=tmp_path, settings={"ingest": {"duplicates": "keep"}})
    every = STAGE.fingerprint(check(Config, {}, "mask"), context)
    assert every != STAGE.fingerprint(check(Config, {"recognisers": ["email"]}, "mask"), context)
    assert every != STAGE.fingerprint(check(Config, {}, "mask"), keeping)
    with pytest.raises(ConfigError, match="unknown recogniser 'emial': did you mean 'email'"):
        STAGE.fingerprint(check(Config, {"recognisers": ["emial"]}, "mask"), context)


def test_the_same_input_gives_the_same_bytes(run: Path, tmp_path: Path) -> None:
    step(run, "mask", {})
    first = files.digests(run / "mask")
    (run / "mask").rename(run / "before")
    step(run, "mask", {})
    assert files.digests(run / "mask") == first


@pytest.mark.slow
def test_demo_keeps_its_texts_but_for_what_was_planted(tmp_path: Path) -> None:
    step(tmp_path / "run", "ingest", {"source": str(resources.demo())})
    report = step(tmp_path / "run", "mask", {})
    assert [report.facts[f"spans_{kind}"] for kind in ("phone", "email", "id_card")] == [24, 9, 7]
    assert report.rows_in == report.rows_out
