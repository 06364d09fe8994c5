"""The language of the texts: detected in one way by every command, said, and never at odds with a paid rubric."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from curate.core.config import check
from curate.system.resources import find
from curate.tables.readers.settings import Input, language, spoken
from tests.support.runs import Done, curate
from tests.support.steps import beir
from tests.vendor import Vendor, vendor

QUERIES = [{"_id": "q0", "text": "Can I drink coffee with hypertension?"}, {"_id": "q1", "text": "What causes gout?"}]
CORPUS = [
    {"_id": "d0", "title": "", "text": "Coffee raises blood pressure; write to a.b@clinic.org about hypertension."},
    {"_id": "d1", "title": "", "text": "Gout is caused by crystals of uric acid."},
]
PIPELINE = """\
version: 1
name: mine
language: zh
ingest: {source: data}
diversify: {enabled: false}
stages: [ingest, mask, diversify, pool, judge]
pool: {retrievers: [words], depth: 2, size: 2}
retrievers: {words: {kind: bm25, tokens: bigrams}}
"""


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["高血压患者能喝咖啡吗"], "zh"),
        (["COVID-19 mRNA vaccine 的不良反应是什么，需要注意吗"], "zh"),
        (["What causes gout, and what helps?", "", "痛风"], "en"),
        (["Was verursacht Gicht?"], "en"),
        (["高血圧の人はコーヒーを飲めますか"], "ja"),
        (["고혈압 환자가 커피를 마셔도 되나요"], "ko"),
        ([], "en"),
    ],
)
def test_script_decides(texts: list[str], expected: str) -> None:
    assert language(texts) == expected


def test_tables_that_differ_are_both_named(tmp_path: Path) -> None:
    data = beir(tmp_path / "data", [{"_id": "q", "text": "咖啡会升高血压吗"}], CORPUS)
    found = spoken(check(Input, {"source": str(data)}, "ingest"))
    assert str(found) == "en (queries zh, corpus en)"
    assert [found.fits(tag) for tag in ("zh-CN", "en", "de")] == [True, True, False]


@pytest.fixture(scope="module")
def server() -> Iterator[Vendor]:
    with vendor(lambda _query, _passage: "S") as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, server: Vendor) -> Path:
    """Return a folder with English data and a pipeline that says that they are Chinese; nobody was asked yet."""
    server.calls.clear()
    beir(tmp_path / "data", QUERIES, CORPUS, ["q0 d0 1", "q1 d1 1"])
    judge = {
        "kind": "openai",
        "model": "m",
        "base_url": server.url,
        "price": {"input": 1, "output": 1, "date": "2026-01-01"},
    }
    (tmp_path / "mine.yaml").write_text(f"{PIPELINE}judges: {{m: {json.dumps(judge)}}}\n", encoding="utf-8")
    return tmp_path


def paid(folder: Path, *words: str) -> Done:
    return curate(folder, *words, "--max-cost", "5")


def rubrics(server: Vendor) -> set[str]:
    """Return the languages of the rubrics that the vendor was sent."""
    told = json.dumps([call.body for call in server.calls], ensure_ascii=False)
    return {tag for tag, words in (("zh", "主题一致"), ("en", "Same subject and same intent")) if words in told}


def frozen(folder: Path, name: str) -> str:
    return str(yaml.safe_load((folder / "runs" / name / "pipeline.yaml").read_text(encoding="utf-8"))["language"])


@pytest.mark.parametrize(("command", "more"), [("audit", []), ("train-set", ["--test", "none"])])
def test_english_data_get_the_english_rubric(folder: Path, server: Vendor, command: str, more: list[str]) -> None:
    own = yaml.safe_load((folder / "mine.yaml").read_text(encoding="utf-8"))["judges"]["m"]
    options = [
        "--set",
        f"judges.m={json.dumps(own)}",
        "--set",
        "retrievers.words={kind: bm25, tokens: bigrams}",
        "--retrievers",
        "words",
    ]
    panel = "--models" if command == "audit" else "--judge"
    done = paid(folder, command, "data", panel, "m", *options, "--set", "diversify.enabled=false", *more)
    assert done.returncode in {0, 2}, done.stderr  # of a train set so small nothing is left
    assert "language: en, detected in the texts" in done.stderr
    assert rubrics(server) == {"en"}
    assert "[EMAIL]" in json.dumps([call.body for call in server.calls])
    assert frozen(folder, f"{command.partition('-')[0]}-data") == "en"


def test_a_rubric_of_another_language_stops_before_anything_is_sent(folder: Path, server: Vendor) -> None:
    stopped = paid(folder, "run", "mine.yaml", "--set", "judge.models=[m]")
    assert stopped.returncode == 2
    assert "the texts look en, and the rubric 'rubric-zh' is zh; give --language en for" in stopped.stderr
    assert not (folder / "runs").exists()
    assert not server.calls

    right = paid(folder, "run", "mine.yaml", "--set", "judge.models=[m]", "--language", "en", "--run", "runs/right")
    assert right.returncode == 0, right.stderr
    assert rubrics(server) == {"en"}


def test_the_language_that_is_said_wins_and_is_remembered(folder: Path, server: Vendor) -> None:
    words = ["run", "mine.yaml", "--set", "judge.models=[m]", "--language", "zh"]
    said = paid(folder, *words)
    assert said.returncode == 0, said.stderr
    assert "language: zh, as you say; the texts look en" in said.stderr
    assert rubrics(server) == {"zh"}
    again = paid(folder, "judge", "--force")
    assert again.returncode == 0, again.stderr
    assert frozen(folder, "mine") == "zh"


def test_heuristics_are_not_stopped_and_a_panel_that_is_named_later_is(folder: Path, server: Vendor) -> None:
    done = curate(folder, "run", "mine.yaml", "--set", "judge.models=[lexical]")
    assert done.returncode == 0, done.stderr
    assert "judge: note: the language of the run is zh, and the texts look en" in done.stderr
    for words in (["judge", "--models", "m"], ["judge", "--models", "m", "--plan"]):
        stopped = curate(folder, *words)
        assert stopped.returncode == 2
        assert "the texts look en, and the rubric 'rubric-zh' is zh" in stopped.stderr
    assert "give --language en to `curate run runs/mine/pipeline.yaml --run runs/mine` for" in stopped.stderr
    (folder / "data").rename(folder / "elsewhere")
    gone = curate(folder, "judge", "--models", "m")
    assert "the texts look en, and the rubric" in gone.stderr, "as `ingest` found them"
    (folder / "elsewhere").rename(folder / "data")
    again = ["run", "runs/mine/pipeline.yaml", "--run", "runs/mine", "--set", "judge.models=[m]", "--language", "en"]
    assert paid(folder, *again).returncode == 0
    assert rubrics(server) == {"en"}
    (folder / "data").rename(folder / "elsewhere")
    said = paid(folder, "judge", "--language", "en", "--set", "judge.rubric=rubric-zh", "--force")
    assert "give --set judge.rubric=rubric-en for" in said.stderr


def test_a_language_without_a_rubric_is_judged_by_the_english_one_which_is_said(folder: Path, server: Vendor) -> None:
    done = paid(folder, "run", "mine.yaml", "--set", "judge.models=[m]", "--set", "language=de")
    assert done.returncode == 0, done.stderr
    assert "language: de, as you say; the texts look en" in done.stderr
    assert "note: the language of the run is de, and the rubric 'rubric-en' en" in done.stderr
    assert rubrics(server) == {"en"}


def test_a_rubric_that_is_named_must_be_of_the_texts_language_too(folder: Path, server: Vendor) -> None:
    words = ["run", "mine.yaml", "--set", "judge.models=[m]", "--set", "judge.rubric=rubric-zh-paraphrase"]
    (folder / "mine.yaml").write_text(
        (folder / "mine.yaml").read_text(encoding="utf-8").replace("language: zh", "language: en"), encoding="utf-8"
    )
    stopped = paid(folder, *words)
    assert stopped.returncode == 2
    assert "give --set judge.rubric=rubric-en for the rubric 'rubric-en', or --language zh" in stopped.stderr
    assert not server.calls


def test_what_cannot_be_read_is_said_before_there_is_a_run_folder(tmp_path: Path) -> None:
    own = find("pipelines", "audit.yaml").read_text(encoding="utf-8")
    (tmp_path / "zh.yaml").write_text(f"{own}language: zh\n", encoding="utf-8")
    known, misspelt, unknown = "CmedqaRetrieval", "CmedqaRetrievall", "nowhere/at-all"
    for source, *more in ([known, "--language", "zh"], [misspelt], [unknown], [unknown, "--pipeline", "zh.yaml"]):
        done = curate(tmp_path, "audit", source, "--models", "lexical", "--retrievers", "bm25", *more)
        assert done.returncode in {1, 2}
        assert source in done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "runs").exists()


def test_a_first_stage_that_fails_leaves_no_newest_run(tmp_path: Path) -> None:
    beir(tmp_path / "data", QUERIES, [{"_id": "d0", "title": "", "text": " "}], ["q0 d0 1"])
    done = curate(tmp_path, "audit", "data", "--models", "lexical", "--retrievers", "bm25")
    assert (done.returncode, "got no corpus with text" in done.stderr) == (2, True)
    assert not list((tmp_path / "runs").glob("*/pipeline.yaml"))


def test_init_says_what_it_detects(folder: Path) -> None:
    done = curate(folder, "init", "data", "--name", "new", "--models", "lexical")
    assert "language   en, in 2 of 2 queries and" in done.stdout
    assert yaml.safe_load((folder / "new.yaml").read_text(encoding="utf-8"))["language"] == "en"
