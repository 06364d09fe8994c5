"""Graded labels: gains by hand for any scale, the files of every format, other tools' nDCG on them, and `verify`."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.commands.evaluate import item_scores
from curate.commands.verify.verification import verify
from curate.core.scale import Scale
from curate.ledger import Ledger
from curate.panel.voting import EXPERTS, PAIR, decide
from curate.runs import derive
from curate.system.files import frame, read_scale
from curate.tables.exporters import manifest
from curate.tables.exporters.labels import Gain, gains
from tests.support.pools import table
from tests.support.runs import card_section, complaint, ran, tiny
from tests.support.scales import scales

LACK = ("refused", "failed")


@st.composite
def judged(draw: st.DrawFn) -> tuple[Scale, list[list[str]]]:
    scale, size = draw(scales()), draw(st.integers(1, 6))
    said = st.sampled_from([*scale.labels] * 3 + [*LACK])
    return scale, draw(st.lists(st.lists(said, min_size=size, max_size=size), min_size=1, max_size=15))


@settings(max_examples=100)
@given(judged(), st.sampled_from(["lower-median", "minimum"]), st.booleans())
def test_gains_again_for_any_scale(panel: tuple[Scale, list[list[str]]], grade: Any, kept: bool) -> None:
    """Of grades in order, worst first, the lower median is the one at (n - 1) // 2."""
    scale, pairs = panel
    judges = [f"j{number}" for number in range(len(pairs[0]))]
    rows = [
        ("q", f"{at:02}", judge, None if said in LACK else said, said if said in LACK else "rated")
        for at, pair in enumerate(pairs)
        for judge, said in zip(judges, pair, strict=True)
    ]
    ratings = pl.DataFrame(rows, dict.fromkeys([*PAIR, "judge", "grade", "status"], pl.String), orient="row")
    verdicts = decide(ratings, judges, "unanimous", scale)
    expected = []
    for doc, verdict in verdicts.select("doc_id", "verdict").iter_rows():
        worst_first = sorted((said for said in pairs[int(doc)] if said not in LACK), key=scale.labels.index)[::-1]
        if verdict != "incomplete":
            chosen = worst_first[(len(worst_first) - 1) // 2 if grade == "lower-median" else 0]
            gain = dict(zip(scale.labels, scale.gains, strict=True))[chosen]
            above = scale.labels.index(chosen) <= scale.labels.index(scale.relevant_from)
            expected.append((doc, gain if kept or above else 0, verdict == "contested"))
    found = gains(verdicts, scale, Gain(grade=grade, gain_below_cut=kept))
    assert found.select("doc_id", "score", "contested").rows() == expected


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the tiny pipeline ran on the scale 0-3 with both kinds of labels."""
    folder = tmp_path_factory.mktemp("graded")
    tiny(folder)
    settings_ = yaml.safe_load((folder / "tiny.yaml").read_text(encoding="utf-8"))
    settings_["judges"]["strict"]["thresholds"] = {"3": 0.95, "2": 0.9, "1": 0.3}
    settings_["judge"]["rubric"] = "rubric-zh-trec"
    settings_["export"]["labels"] = "both"
    (folder / "tiny.yaml").write_text(yaml.safe_dump(settings_), encoding="utf-8")
    ran(folder, "run", "tiny.yaml")
    return folder


@pytest.fixture
def export(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "runs" / "tiny" / "export", tmp_path / "export")
    shutil.copytree(made / "home", tmp_path / "home")
    return tmp_path / "export"


def expected(run: Path) -> dict[tuple[str, str], int]:
    """Return the gain of every labelled pair of the exported queries: with two judges, of the worse grade."""
    scale = read_scale(run / "judge")
    verdicts = table(run, "resolve", "verdicts")
    wanted = set(table(run, "resolve", "qrels")["query_id"])
    return {
        (query, doc): scale.gains[max(scale.labels.index(vote["grade"]) for vote in votes)]
        for query, doc, votes in verdicts.select(*PAIR, "votes").iter_rows()
        if query in wanted
    }


def test_every_format_has_the_gains_and_the_binary_labels_as_ever(made: Path) -> None:
    run = made / "runs" / "tiny"
    known, export = expected(run), run / "export"
    contested = set(table(run, "consensus", "contested").select(PAIR).iter_rows())
    gaining = {pair: gain for pair, gain in known.items() if gain}
    assert contested & gaining.keys(), "the sample shows nothing of contested pairs"
    txt = [line.split() for line in (export / "trec" / "qrels-graded.txt").read_text(encoding="utf-8").splitlines()]
    assert {(query, doc): int(gain) for query, _, doc, gain in txt} == known
    tsv = [line.split("\t") for line in (export / "beir/qrels/graded.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    assert {(query, doc): int(gain) for query, doc, gain in tsv} == gaining
    [parquet] = (export / "mteb" / "graded").glob("qrels-*.parquet")
    assert {(query, doc): gain for query, doc, gain in pl.read_parquet(parquet).iter_rows()} == gaining
    positives = set(table(run, "resolve", "qrels").select(PAIR).iter_rows())
    [binary] = (export / "mteb" / "retrieval").glob("qrels-*.parquet")
    assert {row[:2] for row in pl.read_parquet(binary).iter_rows()} == positives
    assert not contested & positives
    [rerank] = (export / "mteb" / "reranking").glob("qrels-*.parquet")
    assert not contested & {row[:2] for row in pl.read_parquet(rerank).iter_rows()}


def test_the_card_says_which_labels_and_what_of_mteb_means_nothing(made: Path) -> None:
    mteb = made / "runs" / "tiny" / "export" / "mteb"
    graded, binary = (" ".join(card_section(mteb, name).split()) for name in ("graded", "retrieval"))
    assert "the lower median of the judges' grades: 3 3, 2 2, 1 1, 0 0" in graded
    assert (
        "Its MAP and recall mean nothing on this set, for they count every gain above 0 as a positive, also below"
        in graded
    )
    assert "labels with a gain, of contested pairs" in graded
    assert "Labels are binary" in binary
    assert "Graded labels" not in binary


def test_other_tools_and_ours_give_one_ndcg(made: Path) -> None:
    import ir_measures
    import pytrec_eval
    from ir_measures import nDCG

    run = made / "runs" / "tiny"
    path = run / "export" / "trec" / "qrels-graded.txt"
    with path.open(encoding="utf-8") as stream:
        qrels = pytrec_eval.parse_qrel(stream)
    labels = list(ir_measures.read_trec_qrels(str(path)))
    for (retriever,), part in table(run, "pool", "rankings").group_by("retriever"):
        rows = [row for row in part.select("query_id", "doc_id", "rank").iter_rows() if row[0] in qrels]
        found: dict[str, dict[str, float]] = {}
        for query, doc, rank in rows:
            found.setdefault(query, {})[doc] = -float(rank)
        ours = {query: item_scores.ndcg(item_scores.ordered(found.get(query, {})), qrels[query]) for query in qrels}
        theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(found)
        assert {query: row["ndcg_cut_10"] for query, row in theirs.items()} == pytest.approx(
            {query: ours[query] for query in theirs}, abs=1e-6
        ), retriever
        scored = [ir_measures.ScoredDoc(query, doc, -float(rank)) for query, doc, rank in rows]
        mean = ir_measures.calc_aggregate([nDCG @ 10], labels, scored)[nDCG @ 10]
        assert sum(ours.values()) / len(ours) == pytest.approx(mean, abs=1e-6)


def test_exponential_gain_and_the_mean_of_grades_are_named() -> None:
    found = item_scores.look_graded(["a", "b", "c"], {"a": 1, "b": 3}, {"a": "contested", "b": "relevant"}, {"a": 1.5})
    assert found.scores["stock"] == pytest.approx((1 + 3 / 1.5849625) / (3 + 1 / 1.5849625))
    assert found.scores["exponential"] == pytest.approx((1 + 7 / 1.5849625) / (7 + 1 / 1.5849625))
    assert found.scores["mean"] == pytest.approx(1.0)
    assert (found.shown, found.holes, found.doubtful) == (3, 1, 0)


def differences(export: Path, name: str) -> str:
    """Return what `verify` finds in one format whose manifest was written anew, as by one who wants to deceive."""
    body = manifest.read(export / name)
    manifest.write(export / name, {key: body[key] for key in body if key not in ("files", "version")})
    with Ledger(export.parent / "home" / "ledger.db") as ledger:
        [found] = verify(export / name, ledger)
    return "\n".join(found.differences)


def test_the_labels_are_derived_again(export: Path) -> None:
    assert [differences(export, name) for name in ("beir", "mteb", "trec")] == ["", "", ""]


def higher(line: str) -> list[str]:
    *before, gain = line.split(" ")
    return [" ".join([*before, str(3 - int(gain))])]


@pytest.mark.parametrize(
    ("change", "said"),
    [(higher, "rows say otherwise than the ledger"), (lambda _line: [], "rows are missing")],
)
def test_a_wrong_gain_and_a_missing_pair_are_found(export: Path, change: Callable[[str], list[str]], said: str) -> None:
    path = export / "trec" / "qrels-graded.txt"
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*change(first), *rest]) + "\n", encoding="utf-8")
    assert f"qrels-graded.txt: 1 {said}" in differences(export, "trec")


@pytest.mark.parametrize("name", ["beir", "mteb", "trec"])
def test_another_scale_in_the_manifest_is_found(export: Path, name: str) -> None:
    body = manifest.read(export / name)
    labels = json.loads(json.dumps(body["labels"]))
    labels["scale"]["gains"] = [5, 2, 1, 0]
    manifest.write(
        export / name, {**{key: body[key] for key in body if key not in ("files", "version")}, "labels": labels}
    )
    with Ledger(export.parent / "home" / "ledger.db") as ledger:
        [found] = verify(export / name, ledger)
    assert any("say otherwise" in each for each in found.differences)


def test_graded_labels_in_the_place_of_binary_ones(made: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "work"))
    ran(folder, "export", "--set", "export.labels=graded", "--set", "export.grade=minimum")
    export = folder / "runs" / "tiny" / "export"
    assert not (export / "mteb" / "graded").exists()
    txt = (export / "trec" / "qrels.txt").read_text(encoding="utf-8").split("\n")
    assert {line.split()[3] for line in txt if line} == {"0", "1", "3"}
    with Ledger(folder / "home" / "ledger.db") as ledger:
        assert [each.differences for each in verify(export, ledger)] == [[], [], []]


@pytest.mark.parametrize(
    ("written", "gain"),
    [({"graded": []}, 0), ({"graded": [("q", "d", 2)]}, 2), ({"graded judged": [("q", "d", 0)]}, 0)],
)
def test_a_label_of_experts_is_as_it_was_written(written: dict[str, list[tuple[str, str, int]]], gain: int) -> None:
    """No export holds what people said; a table of gains has no row for a gain of 0."""
    votes = [{"judge": "a", "grade": "S"}]
    rows = [{"query_id": "q", "doc_id": "d", "verdict": "not relevant", "votes": votes, "policy": EXPERTS}]
    columns = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Int32}
    tables = {kind: pl.DataFrame(each, columns, orient="row") for kind, each in written.items()}
    made_from = {"graded": {"labels": "both", "grade": "minimum", "gain_below_cut": True}}
    found = derive.graded(frame("verdicts", rows), tables, made_from)
    assert found is not None
    assert found["score"].to_list() == [gain]


def test_a_cascade_for_positives_is_refused(tmp_path: Path) -> None:
    tiny(tmp_path)
    words = ["--set", "judge.cascade=positives", "--set", "export.labels=graded"]
    assert "export.labels: graded needs every judge's grade" in complaint(tmp_path, "run", "tiny.yaml", *words)
    assert not (tmp_path / "runs" / "tiny" / "ingest").exists()
