"""The gate lists every problem at once, by id and never by text; prefixes appear only where ids clash."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl
import pytest

from curate.commands.export.integrity import check, problems
from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.core.records import Document
from curate.system.files import frame
from curate.tables.exporters.ids import prefixed


class Memory:
    """A corpus in a list, read in batches of two."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents, self.digest, self.passes = documents, "memory", 0

    def __len__(self) -> int:
        return len(self.documents)

    def batches(self) -> Iterator[Sequence[Document]]:
        self.passes += 1
        for start in range(0, len(self.documents), 2):
            yield self.documents[start : start + 2]


def pairs(*rows: tuple[str, str, int]) -> pl.DataFrame:
    return frame("qrels", [dict(zip(("query_id", "doc_id", "score"), row, strict=True)) for row in rows])


def decided(*rows: tuple[str, str, str]) -> pl.DataFrame:
    keys = ("query_id", "doc_id", "verdict")
    return frame("verdicts", [dict(zip(keys, row, strict=True)) | {"votes": [], "policy": "unanimous"} for row in rows])


def asked(*rows: tuple[str, str]) -> pl.DataFrame:
    return frame("queries", [{"query_id": key, "text": text, "source": "test"} for key, text in rows])


@pytest.fixture
def sound() -> Benchmark:
    return Benchmark(
        name="sound",
        language="zh",
        queries=asked(("1", "发热"), ("2", "咳嗽")),
        corpus=Memory([Document("a", "", "退热"), Document("b", "", "止咳"), Document("c", "止咳", "糖浆")]),
        qrels=pairs(("1", "a", 1), ("2", "b", 1)),
        candidates=pairs(("1", "a", 1), ("1", "b", 0)),
        verdicts=decided(
            ("1", "a", "relevant"), ("1", "b", "not relevant"), ("2", "b", "relevant"), ("2", "c", "contested")
        ),
        facts={},
    )


def test_a_sound_benchmark_has_no_problem_and_its_corpus_is_read_once(sound: Benchmark) -> None:
    assert problems(sound) == []
    check(sound)
    assert isinstance(sound.corpus, Memory)
    assert sound.corpus.passes == 2


def corpus(*rows: tuple[str, str, str]) -> Memory:
    """Return the sound corpus and some documents more."""
    base = [Document("a", "", "退热"), Document("b", "", "止咳"), Document("c", "止咳", "糖浆")]
    return Memory([*base, *(Document(*row) for row in rows)])


FAULTS: dict[str, tuple[dict[str, object], str]] = {
    "query id with a space": (
        {"queries": asked(("1", "发热"), ("2", "咳嗽"), ("q 3", "头痛")), "qrels_more": ("q 3", "a", 1)},
        "queries: 1 ids are empty or hold white space or control characters, for example 'q 3'; rename them",
    ),
    "empty document id": (
        {"corpus": corpus(("", "", "头痛"))},
        "corpus: 1 ids are empty or hold white space or control characters, for example ''; rename them",
    ),
    "ideographic space and byte-order mark": (
        {"corpus": corpus(("d\u30001", "", "头痛"), ("\ufeffd2", "", "头晕"))},
        (
            "corpus: 2 ids are empty or hold white space or control characters, "
            "for example 'd\\u30001', '\\ufeffd2'; rename them"
        ),
    ),
    "document id twice": (
        {"corpus": corpus(("a", "", "头痛"))},
        "corpus: 1 ids stand there twice, for example 'a'; give every row an id of its own",
    ),
    "empty text": ({"corpus": corpus(("d", "", " \n"))}, "corpus: 1 texts are empty, for example 'd'; drop them"),
    "same document text": (
        {"corpus": corpus(("d", "", "退热"), ("e", "", "止咳\n糖浆"))},
        "corpus: 2 texts stand there again under another id, for example 'a = d', 'c = e'; merge them",
    ),
    "same query text": (
        {"queries": asked(("1", "发热"), ("2", "发热"))},
        "queries: 1 texts stand there again under another id, for example '1 = 2'; merge them",
    ),
    "query id is a document id": (
        {"corpus": corpus(("2", "", "头痛"))},
        "queries: 1 ids are document ids too, for example '2'; export with prefixed ids",
    ),
    "unknown query in the candidates": (
        {"candidates": pairs(("9", "b", 0)), "verdicts_more": ("9", "b", "not relevant")},
        "candidates: 1 query ids are unknown, for example '9'; add the missing query texts or drop the pairs",
    ),
    "unknown document in the qrels": (
        {"qrels_more": ("1", "z", 1), "verdicts_more": ("1", "z", "relevant")},
        "qrels: 1 document ids are unknown, for example 'z'; add the missing document texts or drop the pairs",
    ),
    "pair twice": (
        {"qrels_more": ("1", "a", 1)},
        "qrels: 1 pairs stand there twice, for example '1 a'; keep one row per pair",
    ),
    "graded label": (
        {"qrels": pairs(("1", "a", 2), ("2", "b", 1))},
        "qrels: 1 scores are not 1, for example '1 a'; labels are binary; grades stand apart",
    ),
    "contested pair": (
        {"qrels_more": ("2", "c", 1)},
        (
            "qrels: 1 pairs contradict their verdict (contested 1), for example '2 c'; "
            "label only pairs that the panel decided so"
        ),
    ),
    "incomplete negative": (
        {"candidates": pairs(("1", "a", 1), ("1", "c", 0)), "verdicts_more": ("1", "c", "incomplete")},
        (
            "candidates: 1 pairs contradict their verdict (incomplete 1), for example '1 c'; "
            "label only pairs that the panel decided so"
        ),
    ),
    "pair that was never judged": (
        {"qrels_more": ("1", "c", 1)},
        (
            "qrels: 1 pairs contradict their verdict (never judged 1), for example '1 c'; "
            "label only pairs that the panel decided so"
        ),
    ),
    "no positive": (
        {"qrels": pairs(("1", "a", 1))},
        "queries: 1 queries have no positive in the qrels, for example '2'; leave them out",
    ),
}


def broken(sound: Benchmark, changes: dict[str, object]) -> Benchmark:
    """Return the sound benchmark with one fault; `x_more` adds a row to table x."""
    changes = dict(changes)
    qrel, verdict = changes.pop("qrels_more", None), changes.pop("verdicts_more", None)
    if isinstance(qrel, tuple):
        changes["qrels"] = pl.concat([sound.qrels, pairs(qrel)])
        if qrel[0] == "q 3":
            verdict = (qrel[0], qrel[1], "relevant")
    if isinstance(verdict, tuple):
        changes["verdicts"] = pl.concat([sound.verdicts, decided(verdict)])
    return replace(sound, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_gives_its_sentence_and_no_other(sound: Benchmark, fault: str) -> None:
    changes, sentence = FAULTS[fault]
    assert problems(broken(sound, changes)) == [sentence]


@pytest.mark.parametrize("fault", ["same document text", "same query text"])
def test_equal_texts_pass_where_duplicates_are_kept(sound: Benchmark, fault: str) -> None:
    changes, _ = FAULTS[fault]
    more = {"qrels": pairs(("1", "a", 1), ("2", "b", 1)), "duplicates": "keep"}
    assert problems(broken(sound, changes | more)) == []


def test_check_lists_all_problems_at_once_and_shows_no_text(sound: Benchmark) -> None:
    faulty = replace(
        sound,
        queries=asked(("1", "发热"), ("2", "发热"), ("a", "")),
        qrels=pairs(("1", "z", 1), ("2", "c", 1)),
    )
    with pytest.raises(DataError) as caught:
        check(faulty)
    lines = str(caught.value).splitlines()
    assert lines[0] == "benchmark 'sound': nothing was exported, because"
    assert [line.split(",")[0].split(" (")[0] for line in lines[1:]] == [
        "- queries: 1 texts are empty",
        "- queries: 1 texts stand there again under another id",
        "- queries: 1 ids are document ids too",
        "- qrels: 1 document ids are unknown",
        "- qrels: 2 pairs contradict their verdict",
        "- queries: 1 queries have no positive in the qrels",
    ]
    assert "(contested 1, never judged 1)" in str(caught.value)
    assert not any(text in str(caught.value) for text in ("发热", "退热", "止咳", "糖浆"))


def test_counts_are_whole_and_examples_are_few(sound: Benchmark) -> None:
    many = corpus(*((f"d{number}", "", "") for number in range(50)))
    assert problems(replace(sound, corpus=many)) == [
        "corpus: 50 texts are empty, for example 'd0', 'd1', 'd2'; drop them"
    ]


def test_ids_that_do_not_clash_keep_their_form(sound: Benchmark) -> None:
    assert prefixed(sound) == (sound, None)


def test_clashing_ids_get_prefixes_everywhere_and_a_map(sound: Benchmark) -> None:
    clash = replace(sound, corpus=corpus(("1", "", "头痛")))
    benchmark, id_map = prefixed(clash)
    assert problems(benchmark) == []
    assert benchmark.queries["query_id"].to_list() == ["q-1", "q-2"]
    assert [item.doc_id for batch in benchmark.corpus.batches() for item in batch] == ["d-a", "d-b", "d-c", "d-1"]
    assert len(benchmark.corpus) == 4
    assert benchmark.corpus.digest not in ("", clash.corpus.digest)
    for table in (benchmark.qrels, benchmark.candidates, benchmark.verdicts):
        assert table["query_id"].str.starts_with("q-").all()
        assert table["doc_id"].str.starts_with("d-").all()
    assert id_map is not None
    assert id_map.rows()[1:3] == [("queries", "2", "q-2"), ("corpus", "a", "d-a")]
    assert id_map.height == 6


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (("p1", "另一句", "又一句", 0, "hard", "test", "3"), "pairs: 1 ids stand there twice, for example 'p1'"),
        (("p3", "一句", " ", 0, "easy", "test", "3"), "pairs: 1 rows have an empty text, for example 'p3'"),
        (("p3", "一句", "二句", 1, "hard", "test", "3"), "pairs: 1 labels are not their kind's, for example 'p3'"),
        (("p3", "一句", "二句", 1, "positive", "train", "1"), "pairs: 1 queries are in both splits, for example '1'"),
    ],
)
def test_pairs_of_sentences_are_checked(
    sound: Benchmark, row: tuple[str, str, str, int, str, str, str], problem: str
) -> None:
    names = ("pair_id", "sentence1", "sentence2", "label", "kind", "split", "query_id")
    rows = [("p1", "发热", "发烧", 1, "positive", "test", "1"), ("p2", "咳嗽", "咳痰", 0, "hard", "train", "2")]
    assert problems(replace(sound, tables={"pairs": pl.DataFrame(rows, names, orient="row")})) == []
    [line] = problems(replace(sound, tables={"pairs": pl.DataFrame([*rows, row], names, orient="row")}))
    assert line.startswith(problem)
