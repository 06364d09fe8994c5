"""Leaks between splits: every near-duplicate that was planted is found, by text, by vector, and by shared documents."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.leaks import EDITS, lines
from curate.ask.build import encoder
from curate.core.errors import DataError
from curate.core.protocols import Vectors
from curate.retrieval.similarity import leaks
from curate.retrieval.similarity.exact_search import unit
from curate.retrieval.similarity.leaks import LeakSplit, Rule, SplitTexts, alike, find, form
from curate.retrieval.vectors import CachedEncoder
from curate.runs import leaks as splits
from curate.runs.leaks import Leaks
from curate.system import resources
from tests.support.runs import tiny
from tests.support.small import context

RULE = Leaks()
WORDS = st.text("abc", max_size=7)


def texts(prefix: str, vectors: Vectors) -> SplitTexts:
    """Return texts whose forms all differ, so that vectors alone decide."""
    names = [f"{prefix}{number}" for number in range(len(vectors))]
    return SplitTexts(names, names, vectors)


def near(left: SplitTexts, right: SplitTexts, t: float) -> pl.DataFrame:
    """Return what is alike by vectors, for no form is another's."""
    return alike(left, right, t, 1, 99)


def vectors(*angles: float) -> Vectors:
    """Return vectors in a plane; the similarity of two is the cosine of the difference of their angles."""
    return unit(np.array([[np.cos(angle), np.sin(angle)] for angle in angles]).reshape(-1, 2))


def pairs(*rows: tuple[str, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String}, orient="row")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("高血压能吃党参吗？", "高血压 能吃党参吗", True),
        ("ＩgA肾病, 怎么办", "iga肾病怎么办！", True),
        ("血压140/90高吗", "血压 140 90 高吗", True),
        ("高血压能吃党参吗", "低血压能吃党参吗", False),
        ("？？", "！！", False),
    ],
)
def test_a_form_is_letters_and_digits(one: str, other: str, same: bool) -> None:
    assert (form(one) == form(other)) is same


def test_twenty_thousand_and_734_queries_and_their_documents() -> None:
    """All that is planted is found, whatever surrounds it: the rows are those of a plain float64 product."""
    chance = np.random.default_rng(7)
    test, train = (unit(chance.standard_normal((size, 64))) for size in (734, 20_000))
    planted = chance.choice(20_000, 600, replace=False)
    copied = chance.choice(734, 600)
    train[planted] = unit(test[copied] + 0.02 * chance.standard_normal((600, 64)))
    found = near(texts("a", train), texts("b", test), RULE.queries)
    assert {f"a{row}" for row in planted} <= set(found["left"])
    exact = np.round(train.astype(np.float64) @ test.astype(np.float64).T, 5) > RULE.queries
    assert set(zip(found["left"], found["right"], strict=True)) == {
        (f"a{row}", f"b{column}") for row, column in np.argwhere(exact).tolist()
    }


@given(
    st.lists(st.integers(-40, 40), min_size=1, max_size=8),
    st.lists(st.integers(-40, 40), min_size=1, max_size=8),
    st.sampled_from([0.5, 0.83867, 0.99985]),
)
def test_a_threshold_decides_as_exact_arithmetic_does(left: list[int], right: list[int], t: float) -> None:
    one, other = vectors(*(0.01745329 * angle for angle in left)), vectors(*(0.01745329 * angle for angle in right))
    found = near(texts("a", one), texts("b", other), t)
    exact = np.round(np.einsum("id,jd->ij", one.astype(np.float64), other.astype(np.float64)), 5)
    assert found.select("left", "right").rows() == [(f"a{i}", f"b{j}") for i, j in np.argwhere(exact > t).tolist()]


@given(st.lists(WORDS, max_size=6), st.lists(WORDS, max_size=6), st.sampled_from([0.3, 0.6, 1.0]), st.integers(1, 3))
def test_overlap_is_the_jaccard_index_of_runs(left: list[str], right: list[str], least: float, run: int) -> None:
    def runs(text: str) -> set[str]:
        return {text[at : at + run] for at in range(len(text) - run + 1)} or {text}

    far = [unit(np.tile(row, (len(forms), 1))) for row, forms in (([[1, 0]], left), ([[0, 1]], right))]
    sides = [
        SplitTexts([f"{mark}{n}" for n in range(len(forms))], forms, rows)
        for mark, forms, rows in zip("ab", (left, right), far, strict=True)
    ]
    found = alike(sides[0], sides[1], 0.9, least, run)
    expected = [
        (f"a{i}", f"b{j}", 0.0, round(len(runs(one) & runs(other)) / len(runs(one) | runs(other)), 5))
        for i, one in enumerate(left)
        for j, other in enumerate(right)
    ]
    assert found.rows() == [row for row in expected if row[3] >= least]


def test_signs_in_common_make_texts_alike_whatever_the_vectors_say() -> None:
    one, other, third = (
        SplitTexts([name], [text], vectors(at))
        for name, text, at in (("a", "abcdefghij", 0.0), ("b", "abcdefgij", 1.5), ("c", "klmnop", 0.1))
    )
    assert alike(one, other, 0.9, 0.6, 2).rows() == [("a", "b", pytest.approx(0.07074, abs=1e-5), 0.7)]
    assert alike(one, other, 0.9, 0.8, 2).is_empty()
    assert alike(one, third, 0.9, 0.6, 2).select("left", "right", "overlap").rows() == [("a", "c", None)]


def side(queries: Sequence[float], documents: Sequence[float], labels: pl.DataFrame, mark: str) -> LeakSplit:
    return LeakSplit(texts(f"{mark}q", vectors(*queries)), texts(f"{mark}d", vectors(*documents)), labels)


def test_a_shared_document_leaks_only_between_related_queries() -> None:
    # Angles: test queries at 0 and 1.2. Training: a copy of the first, one near to it, one near to neither.
    train = side(
        [0.1, 0.6, 2.4], [0.0, 3.0], pairs(("aq0", "ad0"), ("aq1", "ad0"), ("aq1", "ad1"), ("aq2", "ad0")), "a"
    )
    test = side([0.0, 1.2], [0.05, 1.5], pairs(("bq0", "bd0"), ("bq1", "bd1")), "b")
    found = find(train, test, Rule(0.9, 0.9, 1, 0.7))
    rows = found.select("query_id", "doc_id", "test_query_id", "test_doc_id", "kind", "removed").rows()
    assert rows == [
        ("aq0", None, "bq0", None, "query", True),
        ("aq1", "ad0", "bq0", "bd0", "document", True),  # cos 0.6 = 0.825
        ("aq2", "ad0", "bq0", "bd0", "document", False),
    ]
    assert find(train, test, Rule(0.9, 0.9, 1, 0.9))["removed"].to_list() == [True, False, False]
    assert find(train, test, Rule(0.9, 0.9, 1, -1))["removed"].all()


def test_the_nearest_test_query_is_named() -> None:
    train = side([0.0], [0.0], pairs(("aq0", "ad0")), "a")
    test = side([0.3, 0.1, 0.1], [2.0], pairs(), "b")
    assert find(train, test, Rule(0.9, 0.9, 1, 0.7)).select("test_query_id", "similarity").rows() == [
        ("bq1", pytest.approx(np.cos(0.1), abs=1e-5))
    ]


def test_nothing_leaks_into_or_out_of_nothing() -> None:
    full, empty = side([0.0], [0.0], pairs(("aq0", "ad0")), "a"), side([], [], pairs(), "b")
    for one, other in ((full, empty), (empty, full), (empty, empty)):
        assert find(one, other, Rule(0.9, 0.9, 1, 0.7)).is_empty()


def test_vectors_that_say_nothing_are_an_error() -> None:
    broken = SplitTexts(["a"], ["a"], np.array([[np.nan, 0.0]], dtype=np.float32))
    with pytest.raises(DataError, match="NaN or infinity"):
        near(broken, texts("b", vectors(0.0)), 0.9)
    with pytest.raises(DataError, match="2 dimensions, of the other 3"):
        near(texts("a", vectors(0.0)), texts("b", unit([[1, 0, 0]])), 0.9)
    with pytest.raises(DataError, match="found 1 ids"):
        SplitTexts(["a"], ["a"], vectors(0.0, 1.0))


@pytest.fixture(scope="module")
def use(tmp_path_factory: pytest.TempPathFactory) -> CachedEncoder:
    return encoder(context(tmp_path_factory.mktemp("use")), "use")


@pytest.mark.parametrize("edit", EDITS)
def test_edited_copies_of_real_texts_are_found(use: CachedEncoder, edit: str) -> None:
    """By USE and the thresholds that are its own, on queries and documents of the demo of 8 letters or more."""
    demo = resources.demo()
    asked, answers = (
        [row for row in lines(demo / f"{name}.jsonl") if len(form(row["text"])) >= 8][:64]
        for name in ("queries", "corpus")
    )

    def copied(rows: list[dict[str, str]], role: str, *, changed: bool) -> SplitTexts:
        shown = [EDITS[edit](row["text"]) if changed else row["text"] for row in rows]
        return SplitTexts([row["_id"] for row in rows], [form(text) for text in shown], use.encode(shown, role))  # type: ignore[arg-type]

    for rows, role, t, run in ((asked, "query", RULE.queries, 2), (answers, "document", RULE.documents, 4)):
        found = alike(copied(rows, role, changed=True), copied(rows, role, changed=False), t, RULE.overlap, run)
        own = found.filter(pl.col("left") == pl.col("right"))["left"]
        assert set(own) == {row["_id"] for row in rows}


def test_a_split_is_read_alike_from_a_run_and_from_its_export(tiny_run: Path) -> None:
    whole = splits.read(tiny_run)
    labelled = whole.queries.join(whole.positives, on="query_id", how="semi")
    for layout in ("beir", "mteb/retrieval"):
        exported = splits.read(tiny_run / "export" / layout)
        assert exported.queries.sort("query_id").equals(labelled.sort("query_id"))
        assert exported.positives.equals(whole.positives)
        assert exported.documents.sort("doc_id").equals(whole.documents.sort("doc_id"))
        assert splits.digests(tiny_run / "export" / layout) != splits.digests(tiny_run)


def test_queries_of_other_splits_are_left_out(tmp_path: Path) -> None:
    tiny(tmp_path)
    data = tmp_path / "data"
    (data / "qrels/train.tsv").write_text("query-id\tcorpus-id\tscore\nq4\td01\t1\nq0\td01\t1\n", encoding="utf-8")
    (data / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td00\t1\nq1\td04\t0\n", encoding="utf-8")
    found = splits.read(data)
    assert found.queries["query_id"].to_list() == ["q0", "q1", "q2", "q3"]
    assert found.positives.rows() == [("q0", "d00")]
    assert found.documents["doc_id"].to_list() == ["d00"]


def test_what_is_wrong_in_a_split_names_its_place(tmp_path: Path) -> None:
    tiny(tmp_path)
    path = tmp_path / "data/queries.jsonl"
    path.write_text(path.read_text(encoding="utf-8") + '{"_id": "q9"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"queries.jsonl:6: found no text, expected"):
        splits.read(tmp_path / "data")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/pipeline.yaml").write_text("version: 1\n", encoding="utf-8")
    with pytest.raises(DataError, match="found no labels, expected qrels"):
        splits.read(tmp_path / "empty")


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(3)
    one, other = (texts(mark, unit(chance.standard_normal((size, 8)))) for mark, size in (("a", 90), ("b", 70)))
    whole = near(one, other, 0.5)
    monkeypatch.setattr(leaks, "BLOCK", 7)
    monkeypatch.setattr(leaks, "CHUNK", 11)
    assert near(one, other, 0.5).equals(whole)
    assert len(whole)
