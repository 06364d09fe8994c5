"""The stage `queries`: a model writes, rules and another family filter, lengths are matched; the vendor is scripted.

Scripted models prove the plumbing alone: nothing here says how good queries of a real model are.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from curate.commands.queries.task import RULES, WHY
from curate.core.config import Settings
from curate.core.errors import BudgetError, ConfigError, DataError, UserError
from curate.pipeline.stage import Report
from curate.system.files import digests, frame, write_table
from tests import ROOT
from tests.support.pools import grades_file, step, table
from tests.support.runs import curate
from tests.support.steps import jsonl
from tests.vendor import Call, Fault, Vendor, error, refusal, says, vendor

THINGS = ("胃溃疡", "痛风", "偏头痛", "白内障", "青光眼", "高血压", "糖尿病", "肺炎", "湿疹", "贫血", "哮喘", "痔疮")
CORPUS = {f"d{n}": f"{thing}患者应当定期复查，饮食以清淡为主，遵照医嘱服药。" for n, thing in enumerate(THINGS)}
REAL = {"r1": "痛风能吃豆腐吗", "r2": "高血压头晕怎么办呢，要不要去医院看", "r3": "肺炎传染吗"}
PRICE: Settings = {"input": 2.0, "output": 10.0, "date": "2026-01-01"}
MODELS = (("g", "gpt-1"), ("a", "claude-1"), ("b", "glm-1"), ("kin", "gpt-2"))
Behaviour = Callable[[Call], Fault | None]


def prepared(folder: Path, real: Mapping[str, str] = REAL, corpus: Mapping[str, str] = CORPUS) -> Path:
    """Return a run folder that stands before the stage."""
    run = folder / "run"
    (run / "diversify").mkdir(parents=True)
    queries = ({"query_id": name, "text": text, "source": "test"} for name, text in real.items())
    documents = ({"doc_id": name, "title": "", "text": text, "source": "test"} for name, text in corpus.items())
    write_table(run / "diversify", "queries", frame("queries", queries))
    write_table(run / "diversify", "corpus", frame("corpus", documents))
    return run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return prepared(tmp_path)


@pytest.fixture
def serve() -> Iterator[Callable[[Behaviour], Vendor]]:
    with ExitStack() as running:
        yield lambda faults: running.enter_context(vendor(lambda _query, _text: "S", faults))


def judges(server: Vendor) -> dict[str, Settings]:
    return {
        name: {"kind": "openai", "model": model, "base_url": server.url, "price": PRICE, "concurrency": 2}
        for name, model in MODELS
    }


def make(run: Path, server: Vendor, consent: Mapping[str, Any] | None = None, **settings: Any) -> Report:
    known = {"generator": "g", "panel": ["a"], "wanted": 8, "documents": 12, "length": 0.9, **settings}
    return step(run, "queries", known, judges(server), **(consent if consent is not None else {"yes": True}))


def query(text: object) -> Fault:
    return says(json.dumps({"query": text}, ensure_ascii=False))


def vote(label: str) -> Fault:
    return says(json.dumps({"label": label, "reason": "因为如此。"}, ensure_ascii=False))


def thing(call: Call) -> str:
    """Return the disease that a prompt is about, in a document or a passage."""
    document = call.passages.get("document") or call.passages["passage"]
    return next(each for each in THINGS if document.startswith(each))


def asked_length(call: Call) -> int:
    return int(call.body["messages"][1]["content"].split("大约 ")[1].split(" ")[0])


def write(call: Call) -> Fault:
    """Write a query of the length that is asked for."""
    text = f"{thing(call)}要多久去一趟医院呢我很想问问有没有人知道呀"
    return query(text[: max(asked_length(call), 5)])


def honest(call: Call) -> Fault:
    return vote("good") if "passage" in call.passages else write(call)


def written(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "queries" / "queries.jsonl").read_text("utf-8").splitlines()]


def test_written_filtered_marked_and_paid_once(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    server = serve(honest)
    report = make(run, server)
    rows, every = written(run), table(run, "queries", "synthetic")
    assert len(rows) == 8
    assert {row["source"] for row in rows} == {"synthetic:gpt-1"} == set(every["source"])
    assert all(row["metadata"]["doc_id"] in CORPUS for row in rows)
    assert rows[0]["metadata"]["filters"] == {"a": "claude-1"}
    assert rows[0]["metadata"]["prompts"] == report.facts["prompts"]
    assert (rows[0]["metadata"]["writer"], rows[0]["metadata"]["family"]) == ("gpt-1", "gpt")
    found: Any = report.facts
    assert found["planned"] == found["built"] + sum(found["dropped"].values()) == 12
    lost = table(run, "queries", "dropped")
    assert Counter(lost["reason"]) == found["dropped"]
    assert {row["metadata"]["doc_id"] for row in rows} | set(lost["id"]) == set(CORPUS)
    asked = [call for call in server.calls if "document" in call.passages]
    assert all({*call.passages} == {"document", "example1", "example2", "example3"} for call in asked)
    assert max(Counter(json.dumps(call.body) for call in server.calls).values()) == 1
    kept, before = digests(run / "queries"), len(server.calls)
    again = make(run, server, {"offline": True})
    assert (len(server.calls), again.spent, digests(run / "queries")) == (before, 0, kept)


NONSENSE: dict[str, tuple[Any, Callable[[Call], Fault]]] = {
    "not JSON": ("reply", lambda _call: says("好的，我来写")),
    "another key": ("reply", lambda _call: says('{"question": "痛风能吃肉吗"}')),
    "two lines": ("reply", lambda _call: query("痛风能吃\n豆腐干吗")),
    "a list": ("reply", lambda _call: query(["痛风能吃肉吗"])),
    "empty": ("empty", lambda _call: query("  。 ")),
    "the document itself": ("copied", lambda call: query(call.passages["document"][: asked_length(call)])),
    "3,000 letters": ("length", lambda _call: query("痛" * 3000)),
    "another language": ("language", lambda _call: query("gout?")),
    "a real query": ("duplicate", lambda _call: query("痛风 能吃豆腐吗？")),
    "personal data": ("personal", lambda _call: query("a@b.com痛风")),
    "a placeholder": ("personal", lambda _call: query("[电话]痛风怎么办")),
}


def test_nonsense_is_asked_again_then_dropped_with_its_reason(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    odd = dict(zip(THINGS, NONSENSE.values(), strict=False))

    def nonsense(call: Call) -> Fault:
        if "passage" in call.passages:
            return vote("good")
        return odd[thing(call)][1](call) if thing(call) in odd else write(call)

    server = serve(nonsense)
    found: Any = make(run, server, again=1, copied=0.7).facts
    lost = dict(table(run, "queries", "dropped").select("id", "reason").iter_rows())
    assert lost == {f"d{THINGS.index(name)}": WHY[rule] for name, (rule, _) in odd.items()}
    assert {rule for rule, _ in odd.values()} == set(RULES) == set(WHY)
    assert found["broken_rules"] == {name: 2 * n for name, n in Counter(rule for rule, _ in odd.values()).items()}
    assert [row["text"][:2] for row in written(run)] == ["痔疮"]
    asked = [call for call in server.calls if "document" in call.passages and thing(call) in odd]
    assert len(asked) == 2 * len(odd)
    long = [call.body["messages"][1]["content"] for call in asked if thing(call) == "贫血"]
    assert len(long[1]) > len(long[0]), "the second time with what was wrong"


def test_a_query_is_written_once(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    """Every document gets the same query: one is kept, the others are asked for again and given up."""
    server = serve(lambda call: vote("good") if "passage" in call.passages else query("我该怎么办呢"))
    report = make(run, server, again=1)
    assert [row["text"] for row in written(run)] == ["我该怎么办呢"]
    assert report.facts["dropped"] == {WHY["duplicate"]: 11}
    assert len(server.calls) == 12 + 11 + 1


def test_what_a_filter_objects_to_is_no_query(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    fates = {"贫血": "unanswered", "湿疹": "unnatural", "肺炎": "copied"}

    def doubting(call: Call) -> Fault:
        if "document" in call.passages:
            return write(call)
        said = fates.get(thing(call), "good")
        if call.model == "glm-1" and thing(call) == "痛风":
            return says("不知道")
        return vote("good" if call.model == "claude-1" and said == "copied" else said)

    found: Any = make(run, serve(doubting), panel=["a", "b"], wanted=12).facts
    lost = dict(table(run, "queries", "dropped").select("id", "reason").iter_rows())
    by_name = {f"d{THINGS.index(name)}": f"a filter says: {said}" for name, said in fates.items()}
    assert lost == {**by_name, "d1": "a filter gave no answer"}, "one filter against it is enough"
    assert found["filters"]["b"]["unparsed"] == 1


def test_refusals_and_failures(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    down = True

    def odd(call: Call) -> Fault:
        if "document" in call.passages and thing(call) == "贫血":
            return refusal
        if "document" in call.passages and thing(call) == "湿疹" and down:
            return error(429, retry_after=86_400)
        return honest(call)

    server = serve(odd)
    report = make(run, server)
    assert report.unfinished == "1 questions failed; run `curate queries` again to retry"
    lost = dict(table(run, "queries", "dropped").select("id", "reason").iter_rows())
    assert (lost["d9"], lost["d8"]) == ("the writer refused", "the writer gave no reply")
    down, before = False, len(server.calls)
    assert make(run, server).unfinished == ""
    assert len(server.calls) == before + 2, "the failed question and its filter alone"


def test_a_corpus_alone(tmp_path: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    server = serve(honest)
    report = make(prepared(tmp_path, real={}), server, lengths=[8, 12])
    found: Any = report.facts
    assert {*server.calls[0].passages} == {"document"}
    assert all(8 <= asked_length(call) <= 12 for call in server.calls if "document" in call.passages)
    assert found["style"]["apart"] is None
    assert found["style"]["real"] == {"queries": 0, "characters": None, "questions": None}
    assert any("no real query" in note for note in report.notes)
    with pytest.raises(DataError, match="no document of 500 characters among 12"):
        make(tmp_path / "run", server, shortest=500)


def test_nothing_is_sent_without_permission(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    server = serve(honest)
    with pytest.raises(BudgetError, match=r"would send:\n  queries.generator=g: 12 calls[\s\S]*judges.a.*: 12 calls"):
        make(run, server, {})
    with pytest.raises(UserError, match="--offline sends none"):
        make(run, server, {"offline": True})
    assert server.calls == []
    with pytest.raises(BudgetError):
        make(run, server, {"max_cost": 0.001})
    assert 0 < make(run, server, {"max_cost": 5.0}).spent < 5


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no writer": ({"generator": None}, "queries.generator: found no model"),
    "nobody filters": ({"panel": []}, "queries.panel: found nobody"),
    "the family alone": ({"panel": ["kin"]}, r"generator's family \(gpt\)"),
    "a heuristic": ({"panel": ["lexical"]}, "queries.panel: 'lexical' is no language model"),
    "lengths": ({"lengths": [9, 3]}, "give the least first"),
}


@pytest.mark.parametrize(("settings", "said"), WRONG.values(), ids=WRONG)
def test_what_is_refused_before_anything_is_sent(
    run: Path, serve: Callable[[Behaviour], Vendor], settings: dict[str, Any], said: str
) -> None:
    server = serve(honest)
    with pytest.raises(ConfigError, match=said):
        make(run, server, **settings)
    assert server.calls == []


def test_places_that_look_like_personal_data_stay(
    run: Path, serve: Callable[[Behaviour], Vendor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vendor far away is asked nothing while the residual scan lists a place."""
    monkeypatch.setenv("FAR_KEY", "k")
    (run / "mask").mkdir()
    left = {"table": "corpus", "id": "d1", "field": "text", "start": 0, "end": 2, "reason": "digits", "link": "x"}
    write_table(run / "mask", "residual", frame("residual", [left]))
    far: Settings = {"kind": "openai", "model": "m", "base_url": "https://models.example", "key_env": "FAR_KEY"}
    known: Settings = {"generator": "far", "panel": ["a"]}
    with pytest.raises(UserError, match="still hold what looks like personal data"):
        step(run, "queries", known, {**judges(serve(honest)), "far": far}, yes=True)


def test_from_a_corpus_to_a_marked_run(tmp_path: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    """By the commands: a corpus alone, queries of a run that is killed and goes on, then read by another run."""
    server = serve(honest)
    jsonl(tmp_path / "corpus.jsonl", [{"_id": name, "text": text} for name, text in CORPUS.items()])
    models = {name: {**each, "concurrency": 1} for name, each in judges(server).items()}
    head = {"version": 1, "judges": models, "diversify": {"enabled": False}}
    alone = {
        **head,
        "name": "alone",
        "ingest": {"corpus": {"path": "corpus.jsonl"}, "no_queries": "allow"},
        "queries": {"wanted": 6, "length": 0.9},
        "stages": ["ingest", "mask", "diversify", "queries"],
    }
    (tmp_path / "alone.yaml").write_text(json.dumps(alone), encoding="utf-8")
    named = ["--set", "queries.generator=g", "--set", "queries.panel=[a]"]
    assert curate(tmp_path, "run", "alone.yaml", "--set", "stages=[ingest, mask, diversify]").returncode == 0
    environment = {**os.environ, "CURATE_HOME": str(tmp_path / "home")}
    words = ["queries", *named, "--max-cost", "5"]
    command = [sys.executable, str(ROOT / "tests/support/killer.py"), "after", "12", *words]
    killed = subprocess.run(command, cwd=tmp_path, env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert 0 < len(server.calls) < 18, "killed in the midst of the stage"
    done = curate(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    asked = Counter(json.dumps(call.body, sort_keys=True) for call in server.calls)
    assert sorted(asked.values()) == [1] * 18, "nine documents and nine filters, each paid once"
    assert "6 synthetic queries: runs/alone/queries/queries.jsonl" in done.stderr
    with pytest.raises(DataError, match="have `curate queries` write some"):
        step(tmp_path / "runs" / "alone", "pool", {"retrievers": ["bm25"]})
    paths = ["real.jsonl", "runs/alone/queries/queries.jsonl"]
    jsonl(tmp_path / "real.jsonl", [{"_id": name, "text": text, "source": "log"} for name, text in REAL.items()])
    grades = tmp_path / "grades.tsv"
    made = [(row["_id"], row["metadata"]["doc_id"]) for row in written(tmp_path / "runs" / "alone")]
    good = {*made[1:], ("r1", "d1")}
    every = [(one, doc) for one in [*REAL, *(name for name, _ in made)] for doc in CORPUS]
    grades_file(grades, [(*pair, "S" if pair in good else "D") for pair in every])
    replay: Settings = {"kind": "replay", "path": str(grades)}
    both = {
        **head,
        "name": "both",
        "judges": {"gpt-4o": replay},
        "ingest": {"corpus": {"path": "corpus.jsonl"}, "queries": {"path": paths}},
        "pool": {"retrievers": ["bm25"]},
        "judge": {"models": ["gpt-4o"], "allow_weak_judges": True},
        "export": {"small": True, "formats": ["mteb", "beir"], "rerank": {"enabled": False}},
    }
    (tmp_path / "both.yaml").write_text(json.dumps(both), "utf-8")
    ran = curate(tmp_path, "run", "both.yaml", "--allow-weak-judges")
    assert ran.returncode == 0, ran.stderr
    run = tmp_path / "runs" / "both"
    assert Counter(table(run, "diversify", "queries")["source"]) == {"real.jsonl": 3, "synthetic:gpt-1": 6}
    assert table(run, "diversify", "qrels").is_empty(), "the source document is no label"
    for name in ("mteb", "beir"):
        out = run / "export" / name
        sources = table(run / "export", name, "sources")
        assert set(sources["query_id"]) == {query_id for query_id, _ in made[1:]}
        manifest = json.loads((out / "MANIFEST.json").read_text("utf-8"))
        assert manifest["synthetic"] == [{"writer": "gpt-1", "family": "gpt", "queries": 6, "of": 9, "kin": ["gpt-4o"]}]
    checked = curate(tmp_path, "verify", str(run / "export" / "mteb"), "--recorded", f"gpt-4o={grades}", "--json")
    assert json.loads(checked.stdout)["data"][0]["differences"] == [], checked.stdout
    card = (run / "export" / "mteb" / "README.md").read_text("utf-8")
    assert "6 of 9 queries were written by the model gpt-1 and are no user's" in card
    assert "gpt-4o are of the writer's family (gpt)" in card
    assert "9 个查询中有 6 个由模型 gpt-1 写成" in (run / "report.html").read_text("utf-8")
    for place in ("beir", "mteb/retrieval"):
        again = tmp_path / place.replace("/", "-")
        again.mkdir()
        step(again, "ingest", {"source": str(run / "export" / place)})
        read = table(again, "ingest", "queries")
        marked = read.filter(read["source"] == "synthetic:gpt-1")
        assert set(marked["query_id"]) == {name for name, _ in made[1:]}, "those of people have the name of their file"
