"""`egress.allow` names the only hosts that judges, encoders, indexes and writers may reach."""

import importlib.util
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import need
from tests.support.http_server import serving
from tests.support.runs import Done, curate, tiny
from tests.support.small import embedding_server
from tests.vendor import Vendor, vendor

ELSEWHERE = "elsewhere.example.org"
PRICE = "price: {currency: USD, input: 1.0, output: 1.0, date: '2026-11-01'}"


def run(folder: Path, allow: str | None, *settings: str, yes: bool = True) -> Done:
    """Run the small pipeline with a list of allowed hosts in its file, and settings."""
    name = tiny(folder)
    if allow is not None:
        path = folder / name
        path.write_text(f"{path.read_text('utf-8')}egress: {{allow: {allow}}}\n", "utf-8")
    words = [word for each in settings for word in ("--set", each)]
    return curate(folder, "run", name, *(["--yes"] if yes else []), *words)


def said(done: Done) -> str:
    return " ".join((done.stdout + done.stderr).split())


def judge(url: str, name: str = "asked", model: str = "m") -> str:
    return f"judges.{name}={{kind: openai, model: {model}, base_url: '{url}', {PRICE}}}"


def refused(done: Done, host: str) -> None:
    """Hold that a host was refused in a sentence that names it and the setting."""
    assert done.returncode == 2, done.stderr
    assert host in said(done).lower()
    assert "egress.allow" in said(done)
    assert "unknown key" not in said(done)


@contextmanager
def judging() -> Iterator[Vendor]:
    with vendor(lambda _query, text: "S" if "咖啡" in text else "D") as server:
        yield server


def port(server: Vendor) -> str:
    return server.url.split("//", 1)[1].partition("/")[0].rpartition(":")[2]


def test_a_judge_elsewhere_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    """A hospital can rely on it that no judge but those on its list is reached; loopback is no exception."""
    with judging() as server:
        refused(run(tmp_path, f"[{ELSEWHERE}]", judge(server.url), "judge.models=[asked]"), "127.0.0.1")
        assert server.calls == []


def test_one_judge_of_a_panel_elsewhere_stops_all_of_them(tmp_path: Path) -> None:
    """A hospital can rely on it that nothing is sent to an allowed judge either while another one is not allowed."""
    with judging() as server:
        judges = (judge(server.url), judge("https://judge.invalid/v1", "other"))
        refused(run(tmp_path, "['127.0.0.1']", *judges, "judge.models=[asked, other]"), "judge.invalid")
        assert server.calls == []


def test_an_empty_list_allows_nobody(tmp_path: Path) -> None:
    """A hospital can rely on it that an empty list lets nothing out."""
    with judging() as server:
        refused(run(tmp_path, "[]", judge(server.url), "judge.models=[asked]"), "127.0.0.1")
        assert server.calls == []


@pytest.mark.parametrize("allow", ["['127.0.0.1']", "['127.0.0.1:{port}']", f"[{ELSEWHERE}, '127.0.0.1']"])
def test_a_judge_on_the_list_is_asked(tmp_path: Path, allow: str) -> None:
    """A user can rely on it that a host on the list is reached, with or without its port."""
    with judging() as server:
        done = run(tmp_path, allow.format(port=port(server)), judge(server.url), "judge.models=[asked]")
        assert done.returncode == 0, done.stderr
        assert server.calls


def test_another_port_than_the_one_on_the_list_is_refused(tmp_path: Path) -> None:
    """A user can rely on it that a port on the list holds for that port alone."""
    with judging() as server:
        refused(run(tmp_path, "['127.0.0.1:1']", judge(server.url), "judge.models=[asked]"), "127.0.0.1")
        assert server.calls == []


@pytest.mark.parametrize(
    ("allow", "host"),
    [
        ("[Judge.Example.ORG]", "judge.example.org"),
        ("[judge.example.org]", "JUDGE.Example.Org"),
        ("['*.example.org']", "api.example.org"),
        ("['judge.example.org:8443']", "judge.example.org:8443"),
    ],
)
def test_a_host_that_matches_goes_on_to_the_question_of_costs(tmp_path: Path, allow: str, host: str) -> None:
    """A user can rely on it that case does not matter, and that *.example.org holds for what ends so."""
    done = run(tmp_path, allow, judge(f"https://{host}/v1"), "judge.models=[asked]", yes=False)
    assert "judging would send" in said(done)
    assert "egress.allow" not in said(done)


@pytest.mark.parametrize(
    ("allow", "host"),
    [
        ("['*.example.org']", "notexample.org"),
        ("['*.example.org']", "api.example.org.invalid"),
        ("[example.org]", "api.example.org"),
    ],
)
def test_a_host_that_only_looks_alike_is_refused(tmp_path: Path, allow: str, host: str) -> None:
    """A hospital can rely on it that no cleverly named host slips through."""
    refused(run(tmp_path, allow, judge(f"https://{host}/v1"), "judge.models=[asked]"), host)


def test_an_encoder_elsewhere_gets_no_text(tmp_path: Path) -> None:
    """A hospital can rely on it that no encoder but those on its list gets a text, be it called local or not."""
    with embedding_server() as server:
        encoder = f"encoders.far={{kind: api, base_url: '{server.url}', model: m, dim: 64, local: true}}"
        near = "retrievers.near={kind: dense, encoder: far}"
        refused(run(tmp_path, f"[{ELSEWHERE}]", encoder, near, "pool.retrievers=[words, near]"), "127.0.0.1")
        assert server.bodies == []


def test_an_encoder_on_the_list_is_asked(tmp_path: Path) -> None:
    """A user can rely on it that an encoder on the list encodes."""
    with embedding_server() as server:
        encoder = f"encoders.far={{kind: api, base_url: '{server.url}', model: m, dim: 64, local: true}}"
        near = "retrievers.near={kind: dense, encoder: far}"
        done = run(tmp_path, "['127.0.0.1']", encoder, near, "pool.retrievers=[words, near]")
        assert done.returncode == 0, done.stderr
        assert server.bodies


def test_an_index_elsewhere_gets_no_query(tmp_path: Path) -> None:
    """A hospital can rely on it that no Qdrant server but those on its list is asked anything."""
    need(importlib.util.find_spec("qdrant_client") is not None, "the package qdrant-client")
    asked: list[str] = []

    def answer(method: str, path: str, _headers: object, _body: bytes) -> tuple[int, dict[str, str], bytes]:
        asked.append(f"{method} {path}")
        return 404, {}, b"{}"

    with serving(answer) as url, embedding_server() as server:
        encoder = f"encoders.near={{kind: api, base_url: '{server.url}', model: m, dim: 64, local: true}}"
        index = f"retrievers.index={{kind: qdrant, url: '{url}', collection: texts, encoder: near, attempts: 1}}"
        allowed = server.url.split("//", 1)[1].partition("/")[0]
        refused(run(tmp_path, f"['{allowed}']", encoder, index, "pool.retrievers=[words, index]"), "127.0.0.1")
        assert asked == []


WRITERS = {
    "paraphrase": "paraphrase={generator: writer, panel: [reader], retrievers: [words, use], test: 4, edits: 1}",
    "sts": "sts={generator: writer, panel: [reader], dictionary: words.tsv, faults: drop, test: 2, train: 1}",
    "queries": "queries={generator: writer, panel: [reader], wanted: 2, shortest: 5}",
}


@pytest.mark.parametrize("stage", WRITERS)
def test_a_writer_elsewhere_gets_no_text(tmp_path: Path, stage: str) -> None:
    """A hospital can rely on it that models which write are held to the list as those that judge are."""
    before = {"queries": "ingest, mask, diversify, queries", "sts": "ingest, mask, diversify, sts"}
    stages = before.get(stage, f"ingest, mask, diversify, pool, judge, consensus, resolve, {stage}")
    (tmp_path / "words.tsv").write_text(
        "term\tsynonym\tkind\tsource\tunseen\n痛风\t尿酸病\texact\ttest\tboth\n", "utf-8"
    )
    with judging() as server:
        models = (judge(server.url, "writer", "gpt-x"), judge(server.url, "reader", "qwen-x"))
        done = run(tmp_path, f"[{ELSEWHERE}]", *models, WRITERS[stage], f"stages=[{stages}]")
        refused(done, "127.0.0.1")
        assert server.calls == []


def test_without_the_section_all_is_as_before(tmp_path: Path) -> None:
    """A user who has no such section can rely on it that nothing is refused (today too)."""
    with judging() as server:
        done = run(tmp_path, None, judge(server.url), "judge.models=[asked]")
        assert done.returncode == 0, done.stderr
        assert "egress" not in said(done)
        assert server.calls


def test_what_names_no_host_is_refused(tmp_path: Path) -> None:
    """A user can rely on it that a list that names no host never lets a judge elsewhere through."""
    with judging() as server:
        for allow in ("''", "[7, 8]", "['https://judge.example.org/v1']"):
            done = run(tmp_path, allow, judge(server.url), "judge.models=[asked]")
            assert done.returncode == 2
            assert "egress.allow" in said(done)
            assert server.calls == []


def test_a_run_without_any_model_elsewhere_needs_no_host(tmp_path: Path) -> None:
    """A user can rely on it that heuristics and retrievers of this machine run with an empty list."""
    done = run(tmp_path, "[]", "export.formats=[beir]")
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "runs" / "tiny" / "export" / "beir" / "corpus.jsonl").read_text("utf-8").splitlines()
    assert json.loads(rows[0])["_id"] == "d00"
