"""`curate train-set` as a user types it: chosen by grades, without what the test set knows, and read by trainers."""

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.ingest import SampledSplit
from curate.commands.train_set.settings import Negatives
from curate.commands.train_set.stage import mined, train_set
from curate.core.protocols import Benchmark
from curate.core.scale import FIVE
from curate.system.files import frame
from curate.tables.exporters.triples import export
from curate.testing import ListCorpus
from tests.support import machine
from tests.support.pools import table
from tests.support.runs import Done, curate, tiny
from tests.support.small import minilm

TEST = ["贫血患者能喝咖啡吗", "痛风患者 能喝咖啡吗？"]
"""One query of its own, and one of the training queries, written otherwise."""
RULE = ["--set", "train_set.leaks.related=0.99"]


def write_test_set(folder: Path) -> None:
    """Write a BEIR folder `held` whose documents are two of the training corpus, and one that only it has."""
    held = folder / "held"
    (held / "qrels").mkdir(parents=True)
    corpus = [json.loads(line) for line in (folder / "data/corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = {"queries": [{"_id": f"t{n}", "text": text} for n, text in enumerate(TEST)], "corpus": corpus[:20]}
    for name, each in rows.items():
        lines = [json.dumps(row, ensure_ascii=False) for row in each]
        (held / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (held / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nt0\td00\t1\nt1\td16\t1\n", encoding="utf-8")


def made(folder: Path, *words: str, **variables: str) -> Done:
    """Make a training set from the tiny folder, graded by one heuristic."""
    options = ["--set", "retrievers.words={kind: bm25}", "--set", "diversify.enabled=false"]
    return curate(
        folder, "train-set", "data", "--retrievers", "words", "--depth", "12", *options, *RULE, *words, **variables
    )


def figures(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "runs/train-data/train_set/train_set.json").read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    tiny(folder)
    write_test_set(folder)
    done = made(folder, "--test", "held")
    assert done.returncode == 0, done.stderr
    assert "THE JUDGES ARE HEURISTICS" in done.stdout
    assert (
        "3 of 5 queries, 20 positives, 16 negatives\nleft out, resembles a test query: 2\nleaks: 2 queries"
        in done.stdout
    )
    assert ["1-10", "45", "27"] in [line.split()[:3] for line in done.stdout.splitlines()]
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "work"))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_it_is_a_run_of_its_own_that_is_not_done_twice(folder: Path) -> None:
    rows = machine.data(curate(folder, "status", "--json").stdout)
    stages = ["ingest", "mask", "diversify", "pool", "judge", "train_set"]
    assert [(row["stage"], row["state"]) for row in rows] == [(name, "done") for name in stages]
    again = made(folder, "--test", "held")
    assert again.stderr.count("up to date") == len(stages)
    bare = curate(folder, "train-set", "--json")
    assert bare.returncode == 0, bare.stderr
    assert machine.data(bare.stdout) == figures(folder)


def test_what_the_test_set_knows_is_taken_out(folder: Path) -> None:
    run = folder / "runs" / "train-data"
    gone = table(run, "train_set", "leaks").filter("removed")
    assert gone.filter(pl.col("kind") == "query").select("query_id", "test_query_id", "overlap").rows() == [
        ("q3", "t1", None),
        ("q4", "t1", 1.0),
    ]
    used = lines(run / "train_set/triples/triples.jsonl")
    assert len(used) == 3
    assert not {"偏头痛患者能喝咖啡吗", "痛风患者能喝咖啡吗"} & {row["query"] for row in used}
    dropped = table(run, "train_set", "dropped").select("id", "reason").rows()
    assert dropped == [("q3", "resembles a test query"), ("q4", "resembles a test query")]
    found = figures(folder)
    assert found["queries"] == {"before": 5, "after": 3, "resembles a test query": 2}
    assert found["leaks"]["leaking_queries"] == 2


def test_the_check_finds_what_the_stage_took_out_and_nothing_afterwards(folder: Path) -> None:
    raw = curate(folder, "check", "leaks", "data", "held", "--out", "found", "--json")
    assert raw.returncode == 1
    assert "data leaks into held" in raw.stderr
    found = machine.data(raw.stdout)
    assert (found["train_queries"], found["test_queries"], found["leaking_queries"]) == (5, 2, 2)
    rows = pl.read_parquet(folder / "found/leaks.parquet").filter("removed", kind="document")
    assert found["leaking_pairs"] == len(rows) == 3  # the document of t0, and two that differ from it in a name
    nearest = [("q0", "d00", "t0", "d00"), ("q1", "d04", "t1", "d16"), ("q2", "d08", "t1", "d16")]
    assert rows.select("query_id", "doc_id", "test_query_id", "test_doc_id").rows() == nearest
    strict = curate(folder, "check", "leaks", "data", "held", "--t", "0.95", "--json")
    assert machine.data(strict.stdout)["leaking_queries"] == 1
    clean = curate(folder, "check", "leaks", "runs/train-data", "held", "--set", "leaks.related=0.99")
    assert clean.returncode == 0, clean.stderr
    assert "leaks: 0 queries" in clean.stdout


def test_positives_near_to_a_test_query_go_when_that_is_asked_for(folder: Path) -> None:
    done = made(folder, "--test", "held", "--set", "train_set.leaks.related=0.7")
    assert done.returncode == 0, done.stderr
    run = folder / "runs" / "train-data"
    gone = table(run, "train_set", "leaks").filter(pl.col("kind") == "document", "removed")
    assert gone["similarity"].min() > 0.7  # type: ignore[operator]
    chosen = table(run, "train_set", "qrels")
    assert len(gone)
    assert chosen.join(gone, on=["query_id", "doc_id"], how="semi").is_empty()
    clean = curate(folder, "check", "leaks", "runs/train-data", "held")
    assert clean.returncode == 0, clean.stderr


def test_the_triples_have_a_manifest_that_notices_an_edit(folder: Path) -> None:
    triples = folder / "runs/train-data/train_set/triples"
    assert machine.envelope(curate(folder, "verify", str(triples), "--json").stdout)["error"]["code"] == "UNCHECKED"
    done = curate(folder, "verify", str(triples))
    assert done.returncode == 3, done.stdout + done.stderr
    assert "not checked: which of the judged pairs became triples" in done.stdout
    assert "what the READMEs say of the run, which stands in MANIFEST.json and in no table" in done.stdout
    (triples / "triples.jsonl").write_text("", encoding="utf-8")
    edited = curate(folder, "verify", str(triples), "--json")
    assert edited.returncode == 1
    found = machine.envelope(edited.stdout)
    assert "triples.jsonl: it is not the file that was exported" in found["data"][0]["differences"][0]
    assert found["error"]["code"] == "CHECK_FAILED"


def test_another_test_set_is_checked_again(folder: Path) -> None:
    path = folder / "held/queries.jsonl"
    path.write_text(
        path.read_text(encoding="utf-8").replace("贫血患者能喝咖啡吗", "高血压患者能喝咖啡吗"), encoding="utf-8"
    )
    done = curate(folder, "train-set")
    assert done.returncode == 0, done.stderr
    assert "train_set: started again, changed: files, models or answers" in done.stderr
    assert figures(folder)["leaks"]["leaking_queries"] == 3


def test_without_a_test_set_it_stops_or_says_so(tmp_path: Path) -> None:
    tiny(tmp_path)
    refused = made(tmp_path)
    assert refused.returncode == 2
    assert "check nothing for leaks with --test none" in refused.stderr
    done = made(tmp_path, "--test", "none")
    assert done.returncode == 0, done.stderr
    assert "NOT CHECKED FOR LEAKS" in done.stdout
    assert figures(tmp_path)["leaks"] is None
    missing = made(tmp_path, "--test", "runs/nowhere")
    assert missing.returncode == 2
    assert "runs/nowhere: no such folder; give a run folder" in missing.stderr


def test_a_run_divided_by_part_never_meets_its_other_part(tmp_path: Path) -> None:
    name = tiny(tmp_path)
    part = "ingest.part={take: test, test: 0.4, seed: 9}"
    test = curate(tmp_path, "run", name, "--set", part)
    assert test.returncode == 0, test.stderr
    done = made(tmp_path, "--test", "runs/tiny", "--set", part.replace("take: test", "take: train"))
    assert done.returncode == 0, done.stderr
    halves = [table(tmp_path / "runs" / each, "mask", "queries")["query_id"] for each in ("tiny", "train-data")]
    assert sorted([*halves[0], *halves[1]]) == [f"q{n}" for n in range(5)]
    assert len(halves[0])
    assert figures(tmp_path)["test"] == "tiny"


def test_a_part_is_decided_by_the_text_alone() -> None:
    texts = [f"问题 {n} 号" for n in range(5000)]
    parts = {"train": SampledSplit(take="train", test=0.1), "test": SampledSplit(take="test", test=0.1)}
    held = [text for text in texts if parts["test"].holds(text)]
    assert len(held) == pytest.approx(500, abs=64)  # three standard deviations
    assert [text for text in texts if not parts["train"].holds(text)] == held
    assert all(parts["test"].holds(f" {text}？") for text in held)
    assert held != [text for text in texts if SampledSplit(take="test", test=0.1, seed=8).holds(text)]


def pairs(*rows: tuple[str, str, str | None, str]) -> pl.DataFrame:
    verdicts = [
        {"query_id": q, "doc_id": d, "verdict": word, "votes": [{"judge": "j", "grade": grade}], "policy": "unanimous"}
        for q, d, grade, word in rows
    ]
    return frame("verdicts", verdicts)


GRADED = pairs(
    ("a", "d1", "B", "not relevant"),
    ("a", "d2", "A", "relevant"),
    ("a", "d3", "S", "relevant"),
    ("a", "d4", None, "incomplete"),
    ("a", "d5", "D", "not relevant"),
    ("a", "d6", "C", "not relevant"),
    ("b", "d1", "D", "not relevant"),
    ("c", "d1", "S", "relevant"),
)
RANKED = frame(
    "pool", [{"query_id": q, "doc_id": d, "position": int(d[1])} for q, d in GRADED.select("query_id", "doc_id").rows()]
)


@pytest.mark.parametrize(
    ("negatives", "expected"),
    [
        (Negatives(), ["d1", "d5", "d6"]),
        (Negatives(number=2, draw="by_grade"), ["d1", "d6"]),
        (Negatives(grades=("C", "D")), ["d5", "d6"]),
        (Negatives(number=1, grades=("D",)), ["d5"]),
    ],
)
def test_grades_decide_what_is_a_positive_and_a_negative(negatives: Negatives, expected: list[str]) -> None:
    chosen, dropped = train_set(GRADED, RANKED, 10, negatives, FIVE)
    rows = chosen.rows()
    assert [doc for _, doc, score in rows if score == 1] == ["d2", "d3"]
    assert [doc for _, doc, score in rows if score == 0] == expected
    assert {query for query, *_ in rows} == {"a"}
    assert dropped == {"b": "no positive", "c": "too few negatives"}


def test_a_failed_rating_is_neither_positive_nor_negative() -> None:
    chosen, _ = train_set(GRADED, RANKED, 10, Negatives(), FIVE)
    assert "d4" not in chosen["doc_id"]
    assert [row.pairs for row in mined(GRADED, RANKED, frame("qrels"), 7)] == [7, 7]


def test_the_share_of_mined_negatives_that_are_relevant() -> None:
    labels = frame("qrels", [{"query_id": "a", "doc_id": "d3", "score": 1}])
    whole = mined(GRADED, RANKED, labels, 7)[-1]
    assert (whole.pairs, whole.relevant) == (6, 2)
    assert whole.share == pytest.approx(2 / 6, abs=1e-5)
    assert mined(GRADED.clear(), RANKED, labels, 7)[-1].share is None


def benchmark(**facts: Any) -> Benchmark:
    chosen, _ = train_set(GRADED, RANKED, 10, Negatives(), FIVE)
    queries = frame("queries", [{"query_id": name, "text": f"what is {name}?"} for name in "abc"])
    corpus = ListCorpus({f"d{n}": f"text {n}" for n in range(1, 9)})
    positives = chosen.filter(pl.col("score") == 1)
    return Benchmark("set", "en", queries, corpus, positives, chosen, GRADED, {"judges": ["j"], **facts})


def test_flag_embedding_lines_carry_scores_and_prompt_when_asked(tmp_path: Path) -> None:
    plain, full = tmp_path / "plain", tmp_path / "full"
    for folder, facts in ((plain, {}), (full, {"scores": True, "instruction": "Find it"})):
        folder.mkdir()
        export(benchmark(**facts), folder)
    row = {"query": "what is a?", "pos": ["text 3", "text 2"], "neg": ["text 1", "text 6", "text 5"]}
    assert lines(plain / "triples.jsonl") == [row]
    scores = {"pos_scores": [4.0, 3.0], "neg_scores": [2.0, 1.0, 0.0], "prompt": "Find it"}
    assert lines(full / "triples.jsonl") == [{**row, **scores}]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # raised inside datasets
def test_sentence_transformers_reads_and_trains_on_it(tmp_path: Path) -> None:
    from datasets import load_dataset
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.util import resolve_ids

    folder = tmp_path / "triples"
    folder.mkdir()
    export(benchmark(), folder)
    train, queries, documents = (
        load_dataset(str(folder), name, split="train") for name in ("train", "queries", "documents")
    )
    train.set_transform(resolve_ids({"query_id": queries, "positive_id": documents, "negative_id": documents}))
    assert train[:] == {
        "query": ["what is a?"] * 3,
        "positive": ["text 3", "text 2", "text 3"],
        "negative": ["text 1", "text 6", "text 5"],
    }
    lists = load_dataset("json", data_files=str(folder / "triples.jsonl"), split="train")
    assert lists.column_names == ["query", "pos", "neg"]
    model = SentenceTransformer(minilm(), device="cpu")
    batch = SentenceTransformerDataCollator(model.preprocess)([train[at] for at in range(3)])
    columns = [
        {key.removeprefix(f"{name}_"): value for key, value in batch.items() if key.startswith(f"{name}_")}
        for name in ("query", "positive", "negative")
    ]
    loss = MultipleNegativesRankingLoss(model)(columns, None)
    loss.backward()
    assert loss.item() > 0
    assert any(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in model.parameters())


def test_an_export_of_any_benchmark_has_triples_too(tiny_run: Path, tmp_path: Path) -> None:
    done = curate(tmp_path, "export", "--set", "export.formats=[triples]")
    assert done.returncode == 0, done.stderr
    chosen = pl.read_parquet(next((tiny_run / "export/triples").glob("train-*.parquet")))
    labels = table(tiny_run, "resolve", "verdicts").select("query_id", "doc_id", "verdict")
    verdicts = {(query, doc): word for query, doc, word in labels.rows()}
    assert {verdicts[query, doc] for query, doc in chosen.select("query_id", "positive_id").rows()} == {"relevant"}
    assert {verdicts[query, doc] for query, doc in chosen.select("query_id", "negative_id").rows()} == {"not relevant"}
    none = curate(tmp_path, "export", "--set", "export.formats=[triples]", "--set", "export.rerank.enabled=false")
    assert none.returncode == 2
    assert "triples: found 0 queries with candidates" in none.stderr


def test_a_paid_judge_is_planned_and_not_asked_without_consent(tmp_path: Path) -> None:
    tiny(tmp_path)
    planned = made(tmp_path, "--test", "none", "--judge", "deepseek-v3", "--plan", "--json")
    assert planned.returncode == 0, planned.stderr
    assert [row["judge"] for row in machine.data(planned.stdout)] == ["deepseek-v3"]
    assert not (tmp_path / "runs/train-data/train_set").exists()
    refused = made(tmp_path, "--test", "none", "--judge", "deepseek-v3", LKEAP_API_KEY="key-of-a-test")
    assert refused.returncode == 2
    assert "--max-cost" in refused.stderr


def test_a_set_that_most_queries_fall_out_of_is_not_written(folder: Path) -> None:
    done = made(folder, "--test", "held", "--set", "train_set.least=0.9")
    assert done.returncode == 2
    assert "queries are left (2 resembles a test query); look at" in done.stderr
    assert "--set train_set.least=0" in done.stderr


def test_a_set_without_a_query_says_why_in_a_sentence(folder: Path) -> None:
    done = made(folder, "--test", "held", "--set", "train_set.negatives.least=99")
    assert done.returncode == 2
    assert "none of 5 queries has a positive and a negative (2 resembles a test query, 3 too few" in done.stderr
    assert "{" not in done.stderr


def test_negatives_above_the_cut_are_refused(tmp_path: Path) -> None:
    tiny(tmp_path)
    done = made(tmp_path, "--test", "none", "--set", "train_set.negatives.grades=[A, B]")
    assert done.returncode == 2
    assert "expected grades below the cut" in done.stderr
