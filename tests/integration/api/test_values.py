"""`curate.agree`, `curate.anonymise`, `curate.audit`: the figures of the commands, from frames and lists too."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import curate
from curate.commands.evaluate.command import EvaluateCommand
from curate.commands.evaluate.figures import EvaluationFigures, ModelScore, ScoredModel, TaskFigures
from tests.support.auditing import OPTIONS, figures, labelled
from tests.support.records import partly
from tests.support.runs import ran

WIDE = {
    "query_id": [f"q{number // 3}" for number in range(12)],
    "doc_id": [f"d{number}" for number in range(12)],
    "gpt": list("SABCDSABCDSA"),
    "claude": list("SABCDSABBDSB"),
    "qwen": list("SBBCDAABCDSA"),
}
LONG = [
    {"query_id": query, "doc_id": doc, "judge": name, "grade": WIDE[name][row]}
    for row, (query, doc) in enumerate(zip(WIDE["query_id"], WIDE["doc_id"], strict=True))
    for name in ("gpt", "claude", "qwen")
]
RAW = ["患者电话13912345678，住在北京市海淀区中关村大街1号", "没有什么", "call me at 13912345678"]


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what `curate agree` prints of the table in a file."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(WIDE).write_csv("wide.csv")
    words = ("agree", "wide.csv", "--order", "S,A,B,C,D", "--positive", "S,A", "--set", "seed=3", "--json")
    found: dict[str, Any] = json.loads(ran(tmp_path, *words).stdout)
    data: dict[str, Any] = found.get("data", found)
    return data


@pytest.mark.parametrize(
    "table",
    [pl.DataFrame(WIDE), pl.DataFrame(WIDE).to_pandas(), WIDE, "wide.csv", Path("wide.csv")],
    ids=lambda each: type(each).__name__,
)
def test_ratings_give_the_figures_of_the_command(theirs: dict[str, Any], table: object) -> None:
    mine = curate.agree(table, order=list("SABCD"), positive=["S", "A"], seed=3)
    assert mine.figures.to_json() == theirs
    value = mine.measure("alpha_ordinal")
    assert (value.value, [value.low, value.high]) == (
        theirs["ratings"]["alpha_ordinal"],
        theirs["ratings"]["intervals"]["alpha_ordinal"],
    )
    assert set(mine.frame["level"]) == {"all ratings", "cut"}
    assert len(mine.pairs) == 6
    assert mine.policies.is_empty()
    assert mine.ratings["prevalence"].sum() == pytest.approx(2)


def test_a_row_per_rating_is_the_same_table(theirs: dict[str, Any]) -> None:
    categories = pl.DataFrame(LONG).with_columns(pl.col("grade").cast(pl.Enum(list("SABCD"))))
    mine = curate.agree(categories, order=list("SABCD"), positive=["S", "A"], seed=3)
    assert mine.figures.to_json()["ratings"] == theirs["ratings"]


def test_mistakes_in_a_frame_name_the_row(tmp_path: Path) -> None:
    twice = pl.DataFrame([*LONG, LONG[0]])
    with pytest.raises(curate.UserError, match=r"^the frame:37: found a second rating of an item by one rater"):
        curate.agree(twice)
    with pytest.raises(curate.UserError, match="found object, expected a path or a frame"):
        curate.agree(object())
    with pytest.raises(curate.UserError, match="did you mean 'fleiss'"):
        curate.agree(pl.DataFrame(WIDE)).measure("fleis")
    with pytest.raises(curate.UserError, match=r"no level 'cut'"):
        curate.agree(pl.DataFrame(WIDE)).measure("fleiss", "cut")


def test_agreement_of_a_run_is_that_of_the_command(tiny_run: Path) -> None:
    found = json.loads(ran(tiny_run.parent.parent, "agree", "--run", "runs/tiny", "--json").stdout)
    mine = curate.open(tiny_run).agreement()
    assert mine.figures.to_json() == found.get("data", found)
    assert list(mine.levels.figures) == ["grades", "cut"]
    assert set(mine.policies["policy"]) == {row["policy"] for row in found.get("data", found)["policies"]}
    assert any("heuristic" in note for note in mine.notes)


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ([], {}),
        (["--set", "placeholders=en"], {"language": "en"}),
        (["--mode", "tag"], {"mode": "tag"}),
        (["--mode", "pseudonym"], {"mode": "pseudonym"}),
    ],
)
def test_texts_are_masked_as_in_a_file(
    tmp_path: Path, words: list[str], given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CURATE_PII_KEY", "k" * 32)
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in RAW]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ran(tmp_path, "anonymise", "in.jsonl", "out.jsonl", *words)
    theirs = [json.loads(line)["text"] for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    mine = curate.anonymise(pl.Series(RAW), **given)
    assert mine.texts == theirs
    assert mine.kinds["phone"] == 2
    row, start, end, kind, _ = mine.spans.row(0)
    assert (RAW[row][start:end], kind) == ("13912345678", "phone")


def test_words_and_what_may_be_left_are_told() -> None:
    found = curate.anonymise(["蓝鲸计划", "工号 88345612907734"], words=["蓝鲸"], recognisers=[])
    assert "蓝鲸" not in found.texts[0]
    assert found.residual["text"].to_list() == [1]
    assert "1 places still look like" in repr(found)


def test_what_is_no_text_is_named() -> None:
    with pytest.raises(curate.UserError, match=r"text 1: found NoneType, expected str"):
        curate.anonymise(["a", None])  # type: ignore[list-item]
    with pytest.raises(curate.UserError, match=r"write \[text\]"):
        curate.anonymise("13912345678")
    with pytest.raises(curate.UserError, match="did you mean 'mobile'"):
        curate.anonymise(["a"], recognisers=["mobil"])


def test_an_audit_is_that_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labelled(tmp_path)
    monkeypatch.chdir(tmp_path)
    ran(tmp_path, "audit", "data", "--run", "runs/theirs", "--models", "lexical,strict", *OPTIONS)
    judge = {"kind": "lexical", "thresholds": {"S": 0.9, "A": 0.7, "B": 0.4, "C": 0.2}}
    words = {"words": {"kind": "bm25"}, "pairs": {"kind": "bm25", "tokens": "bigrams"}}
    mine = curate.audit(
        "data",
        models=["lexical", "strict"],
        retrievers=["words", "pairs"],
        depth=8,
        settings={"retrievers": words, "judges": {"strict": judge}},
    )
    assert mine.figures.to_json() == figures(tmp_path) == figures(tmp_path, "theirs")
    assert mine.run.folder == Path("runs/audit-data")
    assert mine.run.compared.height == mine.figures.pairs
    assert mine.frame["measure"].to_list()[0] in mine.figures.measures
    assert mine.run.report_path.name == "audit.html"
    assert "no evidence" in mine._repr_html_()
    with pytest.raises(curate.UserError, match="no run of an audit"):
        curate.audit(pipeline="tiny.yaml")


def test_models_are_scored_as_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curate.commands.evaluate.command.evaluate", _scores)
    found = curate.evaluate(tmp_path, ["m"])
    assert found.frame.rows() == [("task", "m", "ndcg_at_10", 0.5, False)]
    assert found.folder == tmp_path
    assert "<td" in found._repr_html_()


def _scores(command: EvaluateCommand) -> EvaluationFigures:
    """Stand for mteb, which takes half a minute; its figures are tried in tests/integration/commands/evaluate."""
    scores = tuple(
        partly(ModelScore, model=name, main=0.5, lead=0.5, best=True, queries_a_second=1.0) for name in command.models
    )
    task = partly(
        TaskFigures, name="task", measure="ndcg_at_10", shown="nDCG@10", scores=scores, floors=(), lead="stock"
    )
    models = tuple(partly(ScoredModel, model=name, circular=False) for name in command.models)
    return partly(EvaluationFigures, models=models, tasks=(task,), notes=(), folder=str(command.folder))
