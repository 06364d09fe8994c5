"""Exports are read again by the tools they are for: mteb and `datasets` offline, pytrec_eval, ir_measures, JSON."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from curate import testing
from curate.commands.export.integrity import check
from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.core.records import Document
from curate.tables.exporters import EXPORTERS
from curate.tables.exporters.card import markdown
from curate.tables.exporters.mteb import load_task, load_tasks, mteb_language
from curate.testing import FEVER, ListCorpus

WORDS = "热咳痛疹药"
# What the encoder below ranks, by eye: 热 -> 007 (1), 009 (0.89), 008 (0.71); 咳 -> d4 (1), d5 (0.89), 008 (0.71).
NDCG = ((1 / log2(3) + 1 / 2) / (1 + 1 / log2(3)) + 1) / 2  # query 001 has its positives at ranks 2 and 3, 002 at 1
MAP = ((1 / 2 + 2 / 3) / 2 + 1) / 2


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    """Two queries of seven documents; ids look like numbers; at most one contested and one incomplete pair each."""
    made = replace(
        testing.benchmark(),
        facts={
            "license": "cc-by-nc-sa-4.0",
            "agreement": {"fleiss kappa": {"five grades": 0.7313, "cut": None}},
            "judges": [{"name": "judge-a", "model": "m|1"}, {"name": "judge-b"}],
            "prompts": [{"name": "rubric-zh", "digest": "abc"}],
            "pool": {"depth": 500, "retrievers": ["bm25", "e5"]},
        },
    )
    check(made)
    return made


def write(name: str, benchmark: Benchmark, folder: Path) -> Path:
    folder.mkdir(parents=True)
    EXPORTERS.load(name)(benchmark, folder)
    return folder


SENTENCES = [
    ("t1", "热咳", "热咳", 1, "positive", "test"),
    ("t2", "热咳", "热痛", 0, "hard", "test"),
    ("t3", "药", "疹", 0, "easy", "test"),
    ("u1", "疹", "疹", 1, "positive", "train"),
]


@pytest.fixture(scope="module")
def with_pairs(benchmark: Benchmark) -> Benchmark:
    """The benchmark with pairs of sentences, the last one first; the encoder below knows cosines 1, 1/2 and 0."""
    names = ("pair_id", "sentence1", "sentence2", "label", "kind", "split")
    rows = [
        {
            **dict(zip(names, row, strict=True)),
            "query_id": "002" if row[-1] == "train" else "001",
            "term": "热",
            "synonym": "烧",
        }
        for row in reversed(SENTENCES)
    ]
    made = replace(benchmark, tables={"pairs": pl.DataFrame(rows)})
    check(made)
    return made


@pytest.fixture(scope="module")
def mteb_folder(benchmark: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write("mteb", benchmark, tmp_path_factory.mktemp("mteb") / "export")


@pytest.fixture(scope="module")
def pairs_folder(with_pairs: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write("mteb", with_pairs, tmp_path_factory.mktemp("pairs") / "export" / "mteb")


def counts(texts: Sequence[str]) -> Any:
    """Return a normalised count of each of the five words a text: an encoder whose ranking can be read by eye."""
    rows = np.array([[text.count(word) for word in WORDS] for text in texts], dtype=np.float32)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def evaluate(folder: Path) -> dict[str, float]:
    """Return the scores that stock mteb gives the counting encoder on a written folder."""
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ModelMeta

    class Counting(AbsEncoder):  # type: ignore[misc]
        mteb_model_meta = ModelMeta.create_empty({"name": "test/counting", "revision": "1"})

        def encode(self, inputs: Any, **_: Any) -> Any:
            return counts([text for batch in inputs for text in batch["text"]])

    return score(Counting(), load_task(folder))


def score(model: Any, task: Any) -> dict[str, float]:
    import mteb

    result = mteb.evaluate(model, [task], cache=None, show_progress_bar=False)
    scores: dict[str, float] = result.task_results[0].scores["test"][0]
    return scores


def load(folder: Path, config: str) -> list[dict[str, Any]]:
    import datasets

    rows: list[dict[str, Any]] = datasets.load_dataset(str(folder), config, split="test").to_list()
    return rows


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def labelled_by_mteb(folder: Path) -> list[tuple[str, str, int]]:
    rows = load(folder / "retrieval", "qrels") + load(folder / "reranking", "qrels")
    return [(row["query-id"], row["corpus-id"], row["score"]) for row in rows]


def labelled_in(file: Path) -> list[tuple[str, str, int]]:
    rows = [line.split() for line in lines(file)]
    return [(row[0], row[-2], int(row[-1])) for row in rows if row[-1].isdigit()]


def labelled_by_triples(folder: Path) -> list[tuple[str, str, int]]:
    (path,) = folder.glob("train-*.parquet")
    rows = pl.read_parquet(path).iter_rows()
    return [(query, doc, int(place == 0)) for query, *docs in rows for place, doc in enumerate(docs)]


LABELLED: dict[str, Callable[[Path], list[tuple[str, str, int]]]] = {
    "beir": lambda folder: labelled_in(folder / "qrels" / "test.tsv"),
    "mteb": labelled_by_mteb,
    "trec": lambda folder: labelled_in(folder / "qrels.txt"),
    "triples": labelled_by_triples,
}


@pytest.mark.parametrize("name", EXPORTERS.builtin)
def test_the_contract(name: str) -> None:
    testing.check_exporter(EXPORTERS.load(name), LABELLED[name])


def test_mteb_evaluates_the_retrieval_folder(mteb_folder: Path) -> None:
    scores = evaluate(mteb_folder / "retrieval")
    assert scores["ndcg_at_10"] == pytest.approx(NDCG, abs=1e-5)
    assert scores["main_score"] == scores["ndcg_at_10"]


def test_mteb_evaluates_the_reranking_folder_on_its_candidates_only(mteb_folder: Path) -> None:
    scores = evaluate(mteb_folder / "reranking")
    assert scores["map_at_10"] == pytest.approx(MAP, abs=1e-5)
    assert scores["main_score"] == scores["map_at_10"]
    # Document d5 would rank between d4 and the rest for query 002; it is contested and no candidate.
    assert [row["id"] for row in load(mteb_folder / "reranking", "corpus")] == ["007", "008", "009", "d4", "d6"]


def test_mteb_evaluates_the_pairs_of_sentences(pairs_folder: Path) -> None:
    scores = evaluate(pairs_folder / "sts")
    assert scores["cosine_pearson"] == pytest.approx(np.corrcoef([1, 1 / 2, 0], [1, 0, 0])[0, 1], abs=1e-5)
    assert scores["main_score"] == scores["cosine_spearman"]


def test_datasets_reads_both_splits_of_the_pairs(pairs_folder: Path) -> None:
    import datasets

    found = datasets.load_dataset(str(pairs_folder / "sts"))
    assert {name: part["pair-id"] for name, part in found.items()} == {"test": ["t1", "t2", "t3"], "train": ["u1"]}
    assert found["test"].features["score"].dtype == "int32"
    assert found["test"][1] == {
        "sentence1": "热咳",
        "sentence2": "热痛",
        "score": 0,
        "kind": "hard",
        "pair-id": "t2",
        "query-id": "001",
        "term": "热",
        "synonym": "烧",
    }


def test_load_tasks_finds_all_tasks_in_any_folder_above_them(pairs_folder: Path) -> None:
    types = ("Retrieval", "Reranking", "STS")
    expected = [(f"fever-{task_type.lower()}-small", task_type) for task_type in types]
    for place in (pairs_folder, pairs_folder.parent):
        assert [(task.metadata.name, task.metadata.type) for task in load_tasks(place)] == expected
    [one] = load_tasks(str(pairs_folder / "sts"))
    assert (one.metadata.name, one.metadata.main_score) == ("fever-sts-small", "cosine_spearman")
    assert one.metadata.prompt == "检索意思相同的问句"


ALONE = """
import sys
import mteb
import tasks
assert not [name for name in sys.modules if name.split(".")[0] == "curate"]
for name in ("fever-retrieval-small", "fever-reranking-small", "fever-sts-small"):
    task = mteb.get_task(name)
    task.load_data()
    print(name, task.metadata.type, task.metadata.main_score)
"""


def test_tasks_py_registers_the_tasks_in_mteb_without_curate(pairs_folder: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    # Isolated, so that the folder of tasks.py is the only one of ours on the path.
    code = f"import sys; sys.path.insert(0, {str(pairs_folder)!r})\n{ALONE}"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], env=environment, cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == [
        "fever-retrieval-small Retrieval ndcg_at_10",
        "fever-reranking-small Reranking map_at_10",
        "fever-sts-small STS cosine_spearman",
    ]


@pytest.mark.parametrize("config", ["corpus", "qrels"])
def test_a_file_that_was_edited_in_place_is_noticed(benchmark: Benchmark, tmp_path: Path, config: str) -> None:
    mteb_folder = write("mteb", benchmark, tmp_path / "export")
    before = load(mteb_folder / "retrieval", config)
    [path] = (mteb_folder / "retrieval").glob(f"{config}-*.parquet")
    pl.read_parquet(path)[1:].write_parquet(path)
    assert load(mteb_folder / "retrieval", config) == before, "datasets alone does not notice it"
    for loaded in (lambda: load_tasks(mteb_folder), lambda: load_task(mteb_folder / "retrieval")):
        with pytest.raises(DataError, match=f"{path.name}: its content is not what its name says"):
            loaded()
    path.unlink()
    with pytest.raises(DataError, match="is missing; export again"):
        load_tasks(mteb_folder)


def test_every_table_is_a_configuration_of_the_whole_folder(pairs_folder: Path) -> None:
    for config, table in (("retrieval", "qrels"), ("reranking", "top_ranked")):
        assert load(pairs_folder, f"{config}-{table}") == load(pairs_folder / config, table)
    assert len(load(pairs_folder, "sts-pairs")) == 3


def test_contested_pairs_have_a_table_of_their_own(mteb_folder: Path) -> None:
    rows = load(mteb_folder / "retrieval", "contested")
    assert [(row["query-id"], row["corpus-id"]) for row in rows] == [("001", "d4"), ("002", "d5")]
    assert {vote["grade"] for vote in rows[0]["votes"]} == {"A", "B"}


def test_a_benchmark_without_contested_pairs_has_no_table_of_them(benchmark: Benchmark, tmp_path: Path) -> None:
    kept = benchmark.verdicts.filter(pl.col("verdict") != "contested")
    folder = write("mteb", replace(benchmark, verdicts=kept), tmp_path / "export")
    assert not list(folder.rglob("contested*")), "datasets cannot read a file without rows"
    evaluate(folder / "retrieval")


def test_mteb_agrees_with_trec_eval_on_the_trec_files(benchmark: Benchmark, mteb_folder: Path, tmp_path: Path) -> None:
    import pytrec_eval

    folder = write("trec", benchmark, tmp_path / "trec")
    with (folder / "qrels.txt").open(encoding="utf-8") as stream:
        qrels = pytrec_eval.parse_qrel(stream)
    documents = [json.loads(line) for line in lines(folder / "docs.jsonl")]
    topics = dict(line.split("\t") for line in lines(folder / "topics.tsv"))
    vectors = counts([item["title"] + item["text"] for item in documents])
    run = {
        key: {item["docno"]: float(score) for item, score in zip(documents, vectors @ counts([text])[0], strict=True)}
        for key, text in topics.items()
    }
    measured = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(run)
    mean = sum(row["ndcg_cut_10"] for row in measured.values()) / len(measured)
    assert mean == pytest.approx(NDCG)
    assert mean == pytest.approx(evaluate(mteb_folder / "retrieval")["ndcg_at_10"], abs=1e-5)


def test_ir_measures_reads_the_trec_qrels_with_negatives_as_zero(benchmark: Benchmark, tmp_path: Path) -> None:
    import ir_measures

    folder = write("trec", benchmark, tmp_path / "trec")
    found = [
        (row.query_id, row.doc_id, row.relevance) for row in ir_measures.read_trec_qrels(str(folder / "qrels.txt"))
    ]
    assert found == [("001", "007", 0), ("001", "008", 1), ("001", "009", 1), ("002", "d4", 1), ("002", "d6", 0)]


def test_trec_drops_negatives_that_a_refined_corpus_no_longer_holds(benchmark: Benchmark, tmp_path: Path) -> None:
    refined = replace(benchmark, corpus=ListCorpus([item for item in FEVER if item.doc_id != "d6"]))
    folder = write("trec", refined, tmp_path / "trec")
    assert lines(folder / "qrels.txt") == ["001 0 007 0", "001 0 008 1", "001 0 009 1", "002 0 d4 1"]


def test_trec_topics_stay_on_one_line_each(benchmark: Benchmark, tmp_path: Path) -> None:
    queries = benchmark.queries.with_columns(text=pl.lit("发热\t咳嗽\n怎么办"))
    folder = write("trec", replace(benchmark, queries=queries), tmp_path / "trec")
    assert lines(folder / "topics.tsv") == ["001\t发热 咳嗽 怎么办", "002\t发热 咳嗽 怎么办"]


def test_beir_files_hold_what_its_loader_expects(benchmark: Benchmark, tmp_path: Path) -> None:
    folder = write("beir", benchmark, tmp_path / "beir")
    assert json.loads(lines(folder / "corpus.jsonl")[2]) == {"_id": "009", "title": "热", "text": "咳热"}
    assert [json.loads(line) for line in lines(folder / "queries.jsonl")] == [
        {"_id": "001", "text": "热"},
        {"_id": "002", "text": "咳"},
    ]
    assert lines(folder / "qrels" / "test.tsv") == [
        "query-id\tcorpus-id\tscore",
        "001\t008\t1",
        "001\t009\t1",
        "002\td4\t1",
    ]


def test_datasets_reads_every_config_and_ids_stay_strings(mteb_folder: Path) -> None:
    folder = mteb_folder / "retrieval"
    assert load(folder, "corpus")[0] == {"id": "007", "title": "", "text": "热"}
    assert load(folder, "queries") == [{"id": "001", "text": "热"}, {"id": "002", "text": "咳"}]
    assert load(folder, "qrels")[0] == {"query-id": "001", "corpus-id": "008", "score": 1}
    assert load(mteb_folder / "reranking", "top_ranked") == [
        {"query-id": "001", "corpus-ids": ["007", "008", "009"]},
        {"query-id": "002", "corpus-ids": ["d4", "d6"]},
    ]


def test_types_are_those_mteb_wants(mteb_folder: Path) -> None:
    import datasets

    features = datasets.load_dataset(str(mteb_folder / "retrieval"), split="test").features
    assert {name: kind.dtype for name, kind in features.items()} == {
        "query-id": "string",
        "corpus-id": "string",
        "score": "int32",
    }


def test_grades_hold_every_judged_pair_with_every_judge_in_order(mteb_folder: Path) -> None:
    rows = load(mteb_folder / "retrieval", "grades")
    assert [(row["query-id"], row["corpus-id"], row["verdict"]) for row in rows] == [
        ("001", "007", "not relevant"),
        ("001", "008", "relevant"),
        ("001", "009", "relevant"),
        ("001", "d4", "contested"),
        ("002", "008", "incomplete"),
        ("002", "d4", "relevant"),
        ("002", "d5", "contested"),
        ("002", "d6", "not relevant"),
    ]
    votes = [
        {"judge": "judge-a", "grade": None},
        {"judge": "judge-b", "grade": "A"},
        {"judge": "judge-c", "grade": "A"},
    ]
    assert rows[4]["votes"] == votes


def test_exports_in_folders_of_one_name_do_not_share_a_cache(
    benchmark: Benchmark, mteb_folder: Path, tmp_path: Path
) -> None:
    before = evaluate(mteb_folder / "retrieval")["ndcg_at_10"]
    corpus = [replace(item, text="热") if item.doc_id == "d4" else item for item in FEVER]
    other = write("mteb", replace(benchmark, corpus=ListCorpus(corpus)), tmp_path / "other" / "export")
    after = evaluate(other / "retrieval")["ndcg_at_10"]
    assert load(other / "retrieval", "corpus")[3]["text"] == "热"
    assert load(mteb_folder / "retrieval", "corpus")[3]["text"] == "咳"
    assert after < before
    revisions = [load_task(folder / "retrieval").metadata.dataset["revision"] for folder in (mteb_folder, other)]
    assert revisions[0] != revisions[1]


def test_file_names_carry_the_hash_of_their_content(benchmark: Benchmark, mteb_folder: Path, tmp_path: Path) -> None:
    labels = benchmark.qrels.filter(pl.col("doc_id") != "008")
    other = write("mteb", replace(benchmark, qrels=labels), tmp_path / "other")
    names = [
        {path.name.split("-")[0]: path.name for path in (folder / "retrieval").glob("*.parquet")}
        for folder in (mteb_folder, other)
    ]
    assert {config for config in names[0] if names[0][config] != names[1][config]} == {"qrels"}


def test_a_corpus_of_several_batches_streams_whole(benchmark: Benchmark, tmp_path: Path) -> None:
    more = [Document(f"x{number}", "", f"药{number}") for number in range(4_500)]
    folder = write("mteb", replace(benchmark, corpus=ListCorpus([*FEVER, *more], size=999)), tmp_path / "export")
    ids = [row["id"] for row in load(folder / "retrieval", "corpus")]
    assert ids == [item.doc_id for item in (*FEVER, *more)]


def test_without_candidates_there_is_no_reranking_folder(benchmark: Benchmark, tmp_path: Path) -> None:
    folder = write("mteb", replace(benchmark, candidates=benchmark.candidates.clear()), tmp_path / "export")
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "retrieval", "tasks.py"]


def test_the_card_says_how_the_set_was_made_and_loaded(mteb_folder: Path) -> None:
    text, card = (
        (folder / "README.md").read_text(encoding="utf-8") for folder in (mteb_folder / "retrieval", mteb_folder)
    )
    assert "(../README.md#retrieval)" in text
    front = yaml.safe_load(text.split("---\n")[1])
    assert front["license"] == "cc-by-nc-sa-4.0"
    assert front["language"] == ["zh"]
    assert front["mteb"]["eval_langs"] == ["cmn-Hans"]
    assert [item["config_name"] for item in front["configs"]] == [
        "corpus",
        "queries",
        "qrels",
        "grades",
        "contested",
    ]
    for line in (
        "| fleiss kappa, five grades | 0.7313 |",
        "| fleiss kappa, cut | not defined |",
        "| judge-a | m\\|1 |",
        "| rubric-zh | abc |",
        "| retrievers of the pool | bm25, e5 |",
        "| `query-id` | identifier of the query, as in `queries` |",
        "Retrieval benchmark made by curate; see its README.md",
        "由 curate 构建的检索评测集，说明见 README.md",
        "| positives per query | 1.5 |",
        "| judged pairs, contested | 2 |",
        "[retrieval](retrieval/README.md) | [retrieval](#retrieval), Retrieval | `ndcg_at_10`",
    ):
        assert line in card
    for page in (text, card):
        assert "Heuristic judges only" not in page


def test_the_card_warns_of_heuristic_judges(benchmark: Benchmark, tmp_path: Path) -> None:
    folder = write("mteb", replace(benchmark, facts={"weak_judges": True}), tmp_path / "export")
    assert "None stated; ask the person who gave you this folder." in (folder / "README.md").read_text(encoding="utf-8")
    for page in ("README.md", "retrieval/README.md", "reranking/README.md"):
        text = (folder / page).read_text(encoding="utf-8")
        assert "**Heuristic judges only.**" in text
        assert "license" not in yaml.safe_load(text.split("---\n")[1])


def test_the_card_does_not_call_a_majority_unanimous(benchmark: Benchmark, tmp_path: Path) -> None:
    verdicts = benchmark.verdicts.with_columns(policy=pl.lit("majority"))
    folder = write("mteb", replace(benchmark, verdicts=verdicts), tmp_path / "export")
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "by the policy majority" in text
    assert "every judge of the panel" not in text


def test_load_task_takes_a_folder_as_text(mteb_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mteb_folder)
    named = load_task("retrieval").metadata
    assert named.dataset == load_task(mteb_folder / "retrieval").metadata.dataset


def test_load_task_refuses_a_folder_of_another_origin(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"README\.md: no YAML block with a key `mteb`"):
        load_task(tmp_path)
    (tmp_path / "README.md").write_text("---\nlanguage: zh\n---\ntext\n", encoding="utf-8")
    with pytest.raises(DataError, match="give a folder that the exporter `mteb` wrote"):
        load_task(tmp_path)


@pytest.mark.parametrize(
    ("language", "instruction", "asked", "described"),
    [
        ("zh-CN", None, "给定一个搜索查询，检索能够回答该查询的段落", "由 curate 构建的重排序评测集"),
        ("en", None, "Given a search query, retrieve the passages that answer it", "Reranking benchmark made by"),
        ("de", None, "Given a search query, retrieve the passages that answer it", "Reranking benchmark made by"),
        ("zh", "找出答案", "找出答案", "由 curate 构建的重排序评测集"),
    ],
)
def test_a_task_speaks_the_language_of_its_texts(
    benchmark: Benchmark, tmp_path: Path, language: str, instruction: str | None, asked: str, described: str
) -> None:
    facts = {**benchmark.facts, "instruction": instruction}
    folder = write("mteb", replace(benchmark, language=language, facts=facts), tmp_path / "export") / "reranking"
    task = load_task(folder).metadata
    assert task.prompt == {"query": asked}
    assert task.description.startswith(described)


def test_languages_become_codes_of_mteb_and_an_unknown_one_is_refused_with_the_remedy() -> None:
    languages = ("zh", "zh-CN", "zh-Hant-TW", "en", "vie-Latn")
    assert [*map(mteb_language, languages)] == ["cmn-Hans", "cmn-Hans", "cmn-Hant", "eng-Latn", "vie-Latn"]
    with pytest.raises(DataError, match="give ISO 639-3 and script"):
        mteb_language("xx")


def test_tables_of_the_card_hold_any_value_in_one_line() -> None:
    assert markdown([{"a": "x\ny", "b": True}, {"c": {"d": 1}}]).splitlines() == [
        "| a | b | c, d |",
        "| --- | --- | --- |",
        "| x y | yes |  |",
        "|  |  | 1 |",
    ]


def test_keys_of_the_card_are_words_and_an_estimate_is_one_cell() -> None:
    estimate = {"value": 0.5, "low": 0.25, "high": None}
    facts: Json = {
        "overlap": {"within": {**estimate, "high": 0.75}},
        "mean": {**estimate, "low": None},
        "keyword_f1": 0.5,
    }
    assert markdown({"pool.depth": 8, "whole_run": facts}).splitlines()[2:] == [
        "| depth of retrieval | 8 |",
        "| whole run, overlap, within | 0.5 (0.25–0.75) |",
        "| whole run, mean | 0.5 |",
        "| whole run, macro-F1 of the best keywords | 0.5 |",
    ]


def test_the_card_shows_a_positive_and_counts_in_words(benchmark: Benchmark, tmp_path: Path) -> None:
    """A text that tries to end the block of code, or to be a table, stays a line of it."""
    hostile = "````\n# a head | b\n" + "长" * 400
    queries = benchmark.queries.with_columns(text=pl.lit(hostile))
    folder = write("mteb", replace(benchmark, queries=queries), tmp_path / "export")
    text = (folder / "README.md").read_text(encoding="utf-8")
    [example] = re.findall(r"Example:\n\n````text\n(.*?)\n````", text, flags=re.DOTALL)
    query, document, label = example.splitlines()
    assert query.startswith(f"query: {chr(39) * 4} # a head | b 长")
    assert query.endswith("长…")
    assert len(query) <= len("query: ") + 301
    assert document.startswith("document: ")
    assert label == "label: relevant"
    assert re.search(r"^\d+ queries, \d+ documents and \d+ positives in `zh`\.$", text, flags=re.MULTILINE)
    assert "Nobody has checked the labels." in text
