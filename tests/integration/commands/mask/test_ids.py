"""Ids that hold personal data: renamed by the key in every table, joined by whoever still has them, kept if asked."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.ask import build
from curate.ask.gate import known_pairs
from curate.ask.judges.replay import Config as Recorded
from curate.ask.judges.replay import Replay
from curate.core.errors import DataError
from curate.core.records import Document, Query
from curate.core.scale import FIVE
from curate.pii import pseudonyms
from curate.pii.pseudonyms import PREFIX, IdNames, name, secret
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all
from curate.retrieval.retrievers.runfile import Config as Ranked
from curate.retrieval.retrievers.runfile import RunFile
from curate.testing import ListCorpus, listed
from tests.support.auditing import audited, figures, labelled
from tests.support.runs import curate
from tests.support.small import context
from tests.support.steps import beir, step
from tests.vendor import vendor

PHONE, OTHER, MAIL = "13812345678_3", "13987654321", "zhang.san@qq.com#2"
CALLED = {
    "q0": PHONE,
    "q5": "patient-13511112222",
    "d00": OTHER,
    "d07": MAIL,
    "d20": "d-13700001111",
    "gone": "18600002222",
}
"""Id of the labelled set -> one with personal data."""
RAW = ("13812345678", "13511112222", "13987654321", "zhang.san", "13700001111", "18600002222")
TABLES = ("queries", "corpus", "classes", "qrels", "aliases", "dropped", "residual", "spans", "altered")


def small(folder: Path, **settings: Any) -> tuple[Path, Any]:
    """Run ingest and mask on three documents, two of them equal; return the run and the report of `mask`."""
    texts = {"d1": "多喝水。", PHONE: "少吃盐。", OTHER: "少吃盐。", MAIL: "多运动。"}
    corpus = [{"_id": doc_id, "title": "", "text": text} for doc_id, text in texts.items()]
    queries = [{"_id": PHONE, "text": "发热怎么办"}, {"_id": "q2", "text": "高血压吃什么"}]
    qrels = [f"{PHONE} d1 1", f"q2 {OTHER} 1", f"q2 {MAIL} 1", "q2 18600002222 1"]
    run = folder / "run"
    step(run, "ingest", {"source": str(beir(folder / "data", queries, corpus, qrels)), "on_error": "drop"})
    return run, step(run, "mask", settings)


def everything(folder: Path) -> str:
    """Return all that files below a folder say, tables as JSON, and the names of the files."""
    return "\n".join(_said(path) for path in sorted(folder.rglob("*")))


def _said(path: Path) -> str:
    if path.suffix == ".parquet":
        return f"{path} {pl.read_parquet(path).write_json()}"
    return f"{path} {path.read_bytes().decode('utf-8', 'replace') if path.is_file() else ''}"


# The stage


def test_a_number_in_an_id_stands_in_no_table(tmp_path: Path) -> None:
    run, report = small(tmp_path)
    said = everything(run / "mask")
    assert not [raw for raw in RAW if raw in said]
    assert (report.facts["renamed_queries"], report.facts["renamed_corpus"]) == (1, 3)
    assert report.notes[0].startswith("the ids of 1 queries and 3 documents look like personal data")
    assert "mask.ids: keep" in report.notes[0]


def test_tables_still_join(tmp_path: Path) -> None:
    run, _ = small(tmp_path)
    read = {table: pl.read_parquet(run / "mask" / f"{table}.parquet") for table in TABLES}
    queries, documents = set(read["queries"]["query_id"]), set(read["corpus"]["doc_id"])
    key = secret(run / "home")
    phone, other, mail = (name(key, raw) for raw in (PHONE, OTHER, MAIL))
    assert queries == {phone, "q2"}
    assert documents == {"d1", phone, mail}
    pairs = {(phone, "d1"), ("q2", phone), ("q2", mail)}
    assert set(read["qrels"].select("query_id", "doc_id").iter_rows()) == pairs, "a merged label follows"
    assert read["aliases"].rows() == [("corpus", other, phone)]
    assert set(read["classes"]["id"]) == queries | documents
    assert read["dropped"]["id"].to_list() == [f"q2 {name(key, '18600002222')}"]


def test_a_name_is_the_same_wherever_the_key_is(tmp_path: Path) -> None:
    key = b"0" * 16
    assert name(key, PHONE) == name(key, PHONE) != name(b"1" * 16, PHONE)
    spellings = ("138-1234-5678", "138 1234 5678", "13812345678", "１3812345678", "D1", "d1")
    assert len({name(key, each) for each in spellings}) == len(spellings), "each id keeps its own documents"
    drawn = [name(key, str(number)) for number in range(20_000)]
    assert len(set(drawn)) == len(drawn)
    assert not [each for each in mask_all(masker(Masking(), "zh", key), drawn) if each.spans], "none is renamed again"


def test_ids_are_kept_if_the_user_says_so(tmp_path: Path) -> None:
    run, report = small(tmp_path, ids="keep")
    assert set(pl.read_parquet(run / "mask" / "corpus.parquet")["doc_id"]) == {"d1", PHONE, MAIL}
    assert pl.read_parquet(run / "mask" / "dropped.parquet")["id"].to_list() == ["q2 18600002222"]
    assert not [fact for fact in report.facts if fact.startswith("renamed") or fact == pseudonyms.MARK]
    assert report.facts["residual"] == 0


def test_a_set_beside_its_masked_copy_is_refused(tmp_path: Path) -> None:
    run, _ = small(tmp_path)
    twice = [PHONE, name(secret(run / "home"), PHONE)]
    corpus = [{"_id": doc_id, "title": "", "text": f"文{doc_id}"} for doc_id in twice]
    again = tmp_path / "again"
    again.mkdir()
    (run / "home").rename(again / "home")
    step(again, "ingest", {"source": str(beir(tmp_path / "b", [{"_id": "q", "text": "问"}], corpus))})
    with pytest.raises(DataError, match="beside the id that it stands for"):
        step(again, "mask", {})


def test_what_is_dropped_for_its_id_is_not_quoted(tmp_path: Path) -> None:
    corpus = [{"_id": PHONE, "title": "", "text": text} for text in ("一", "二")]
    source = beir(tmp_path / "data", [{"_id": "q", "text": "问"}], corpus)
    run = tmp_path / "run"
    step(run, "ingest", {"source": str(source), "on_error": "drop"})
    step(run, "mask", {})
    assert "13812345678" not in everything(run / "mask")
    assert "again" in pl.read_parquet(run / "mask" / "dropped.parquet")["reason"][0]


def test_the_residual_scan_looks_at_ids_and_people_decide(tmp_path: Path) -> None:
    """An account beside a word is listed; a long number is not, for most numbered documents have one."""
    corpus = [{"_id": each, "title": "", "text": f"文{each[0]}"} for each in ("QQ号:123456", "NIDDK_0000001_Sec1")]
    source = beir(tmp_path / "data", [{"_id": "q", "text": "问"}], corpus)
    run = tmp_path / "run"
    step(run, "ingest", {"source": str(source)})
    step(run, "mask", {"recognisers": ["mobile"]})
    listed_ = pl.read_parquet(run / "mask" / "residual.parquet")
    assert listed_.select("id", "field", "reason").rows() == [("QQ号:123456", "id", "account")]
    (run / "pipeline.yaml").write_text("version: 1\nname: t\ningest: {source: data}\n", encoding="utf-8")
    from curate.commands.check.residual import ResidualDecisions, decide, excerpts, listing

    found = listing(run)
    assert "123456" in str(excerpts(found)[1])
    decide(found, ResidualDecisions(mask=[1], by="me"))
    (run / "mask").rename(run / "before")
    step(run, "mask", {"recognisers": ["mobile"]})
    assert "123456" not in everything(run / "mask")
    after = listing(run)
    assert [(place.state, place.field) for place in after.places] == [("masked", "id")]
    assert after.gone == 0


# What comes from outside


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("masked"))[0]


def test_recorded_grades_still_count(masked: Path, tmp_path: Path) -> None:
    path = tmp_path / "grades.tsv"
    path.write_text(f"query_id\tdoc_id\tgrade\n{PHONE}\t{MAIL}\tA\nq2\td1\tB\n", encoding="utf-8")
    names = IdNames(masked / "mask", masked / "home")
    judge = Replay("r", Recorded(path=path), build.kit(context(masked)))
    (said,) = judge.rate(Query(names(PHONE), ""), [Document(names(MAIL), "", "")])
    assert said.grade == "A"
    assert judge.recorded("q2", "d1").grade == "B"
    graded = known_pairs(path, context(masked), FIVE)
    assert graded.select("query_id", "doc_id").rows() == [(names(PHONE), names(MAIL)), ("q2", "d1")]


@pytest.mark.parametrize("kind", ["trec", "json"])
def test_a_run_file_still_ranks(masked: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"ranked.{kind}"
    trec = f"{PHONE} Q0 {MAIL} 1 2.0 t\n{PHONE} Q0 d1 2 1.0 t\n"
    path.write_text(trec if kind == "trec" else json.dumps({"s": {"test": {PHONE: {MAIL: 2.0, "d1": 1.0}}}}))
    names = IdNames(masked / "mask", masked / "home")
    retriever = RunFile("r", Ranked(path=path), build.kit(context(masked)))
    (hits,) = listed(retriever, ListCorpus({}), {names(PHONE): "发热"}, 5)
    assert [hit.doc_id for hit in hits] == [names(MAIL), "d1"]


def test_another_key_is_named(masked: Path, tmp_path: Path) -> None:
    made = tmp_path / "mask"
    made.mkdir()
    (made / "corpus.parquet").write_bytes((masked / "mask" / "corpus.parquet").read_bytes())
    facts = {pseudonyms.MARK: pseudonyms.mark(secret(masked / "home"))}
    (made / "stage.json").write_text(json.dumps({"report": {"facts": facts}}))
    assert IdNames(made, masked / "home")(MAIL).startswith(PREFIX)
    with pytest.raises(DataError, match="renamed by another key"):
        IdNames(made, tmp_path / "elsewhere")(MAIL)


def test_without_a_renamed_id_nothing_is_looked_up(tmp_path: Path) -> None:
    assert IdNames(tmp_path / "mask", tmp_path / "home")(PHONE) == PHONE
    assert not (tmp_path / "home").exists(), "no key is drawn for it"
    assert build.kit(context(tmp_path)).named(PHONE) == PHONE


# Whole runs


def renamed(folder: Path) -> None:
    """Give some queries and documents of the labelled set ids with personal data."""
    labelled(folder)
    for path in (folder / "data").rglob("*.*"):
        text = path.read_text(encoding="utf-8")
        for old, new in CALLED.items():
            for before, after in (('"', '"'), ("\t", "\t"), ("\n", "\t")):
                text = text.replace(f"{before}{old}{after}", f"{before}{new}{after}")
        path.write_text(text, encoding="utf-8")


def test_an_audit_says_the_same_and_names_nobody(tmp_path: Path) -> None:
    plain, secretive = tmp_path / "plain", tmp_path / "secretive"
    for folder, write in ((plain, labelled), (secretive, renamed)):
        folder.mkdir()
        write(folder)
        done = audited(folder)
        assert done.returncode == 0, done.stderr
    assert "the ids of 2 queries and 3 documents look like personal data" in " ".join(done.stderr.split())
    one, other = figures(plain), figures(secretive)
    for part in ("measures", "patch", "queries", "pairs"):
        assert one[part] == other[part], part
    said = everything(secretive / "runs" / "audit-data")
    assert not [raw for raw in RAW if raw in said], "nor in what is left of the raw tables"


def test_an_id_that_is_only_dropped_is_kept_nowhere(tmp_path: Path) -> None:
    labelled(tmp_path)
    labels = tmp_path / "data" / "qrels" / "test.tsv"
    labels.write_text(labels.read_text("utf-8").replace("\tgone\t", "\t18600002222\t"), "utf-8")
    for words in (["ingest", "--pipeline", "tiny.yaml", "--set", "ingest.on_error=drop"], ["mask"]):
        done = curate(tmp_path, *words)
        assert done.returncode == 0, done.stderr
    assert "18600002222" not in everything(tmp_path / "runs")


def test_an_export_holds_no_number_and_no_call_is_made_again_for_a_name(tmp_path: Path) -> None:
    renamed(tmp_path)
    with vendor(lambda _query, passage: "S" if "少量" in passage else "D") as server:
        judge = f"judges.m={{kind: openai, model: m, base_url: '{server.url}'}}"
        words = [
            "run",
            "tiny.yaml",
            "--yes",
            "--set",
            judge,
            "--set",
            "judge.models=[m]",
            "--set",
            "ingest.on_error=drop",
        ]
        kept = curate(tmp_path, *words, "--set", "mask.ids=keep")
        assert kept.returncode == 0, kept.stderr
        asked = len(server.calls)
        assert "13812345678" in everything(tmp_path / "runs" / "tiny" / "export")
        done = curate(tmp_path, *words, "--set", "mask.ids=mask")
        assert done.returncode == 0, done.stderr
        assert len(server.calls) == asked > 0
    run = tmp_path / "runs" / "tiny"
    said = everything(run) + "".join(map(_said, (tmp_path / "home").glob("ledger*")))
    assert not [raw for raw in RAW if raw in said], "nor in the ledger"


# Real ids


@pytest.mark.parametrize("folder", ["zh_legacy", "medquad_legacy_en", "panel"])
def test_no_id_of_a_real_set_is_renamed(folder: str, shared_data: Path) -> None:
    rows = [
        json.loads(line)["_id"]
        for table in ("queries", "corpus")
        for line in (shared_data / folder / f"{table}.jsonl").read_text("utf-8").splitlines()
    ]
    assert not [row for row in mask_all(masker(Masking(), "zh", b"0" * 16), rows) if row.spans]


def test_labels_follow_ids_that_are_renamed_and_texts_that_masking_made_equal(tmp_path: Path) -> None:
    texts = {PHONE: "电话13812345678，多喝水。", OTHER: "电话13987654321，多喝水。", "d3": "少吃盐。"}
    corpus = [{"_id": doc_id, "title": "", "text": text, "ward": "内科"} for doc_id, text in texts.items()]
    run = tmp_path / "run"
    source = str(beir(tmp_path / "data", [{"_id": "q1", "text": "发热怎么办"}], corpus))
    step(run, "ingest", {"source": source, "labels": {"side": "corpus", "columns": {"label": "ward", "group": "_id"}}})
    step(run, "mask", {})
    labels = pl.read_parquet(run / "mask" / "labels.parquet")
    kept = pl.read_parquet(run / "mask" / "corpus.parquet")["doc_id"].to_list()
    assert labels["item_id"].to_list() == sorted(kept)
    assert len(kept) == 2
    assert not any(value in str(labels.to_dicts()) for value in RAW)
    again = tmp_path / "again"
    step(again, "ingest", {"source": source, "labels": {"side": "corpus", "columns": {"label": "ward"}}})
    step(again, "mask", {"enabled": False})
    assert pl.read_parquet(again / "mask" / "labels.parquet").height == 3
