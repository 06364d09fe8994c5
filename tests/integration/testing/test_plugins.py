"""Plug-ins of other packages: the example is installed as a user would, and keeps the contracts that ours keep."""

import csv
import json
import re
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

import curate as package_itself
from curate.ask import build
from curate.ask.judges.llm import LlmJudge
from curate.ask.seating import load_rubric
from curate.ask.task import TASKS
from curate.core import registry
from curate.core.config import parse_yaml
from curate.core.errors import ConfigError
from curate.core.messages import Message, Request
from curate.core.protocols import Judge
from curate.core.records import Document, Query
from curate.llm.client.batch import judge_batches
from curate.pii import RECOGNISERS
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.pipeline import Pipeline
from curate.retrieval.retrievers import RETRIEVERS
from curate.retrieval.retrievers.bm25 import Bm25
from curate.tables.exporters import EXPORTERS
from curate.testing import (
    CORPUS,
    ListCorpus,
    check_encoder,
    check_exporter,
    check_judge,
    check_recogniser,
    check_retriever,
    check_task,
    listed,
)
from tests.conftest import EXAMPLE
from tests.support import machine
from tests.support.batching import FAST
from tests.support.runs import curate, tiny
from tests.support.small import context
from tests.vendor import says, vendor

PRICE = {"input": 2.0, "output": 10.0, "date": "2026-01-01"}
PIPELINE = """\
version: 1
name: mine
ingest: {source: data}
diversify: {enabled: false}
pool: {retrievers: [bm25, ngrams, pairs], depth: 8, size: 10}
retrievers: {pairs: {kind: ngrams, size: 2}}
judges: {mild: {kind: longest, S: 0.6, A: 0.4, B: 0.3, C: 0.1}}
judge: {models: [longest, mild]}
export: {small: true, formats: [csv, beir], rerank: {negatives: 1}}
"""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Have entry points and modules of a test found by this test alone."""
    registry._all_points.cache_clear()
    before = set(sys.modules)
    yield
    registry._all_points.cache_clear()
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("curate_example", "others"):
            del sys.modules[name]


@pytest.fixture
def example(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the installed package on the path."""
    monkeypatch.syspath_prepend(str(plugin))


def judge(folder: Path) -> Judge:
    found, _ = build.judge(context(folder), "longest", load_rubric(JudgeConfig(), context(folder)))
    assert not isinstance(found, LlmJudge)
    return found


def labels(folder: Path) -> list[tuple[str, str, int]]:
    with (folder / "qrels.csv").open(encoding="utf-8", newline="") as stream:
        return [(row["query_id"], row["doc_id"], int(row["score"])) for row in csv.DictReader(stream)]


@pytest.mark.usefixtures("example")
def test_the_examples_retriever_keeps_the_contract(tmp_path: Path) -> None:
    check_retriever(lambda: build.retriever(context(tmp_path), "ngrams"))
    [hits] = listed(build.retriever(context(tmp_path), "ngrams"), ListCorpus(CORPUS), {"q": "小儿发热"}, 5)
    assert [(hit.doc_id, hit.score) for hit in hits] == [("d10", 2 * 2 / (2 + 14)), ("d2", 2 * 2 / (2 + 14))]


@pytest.mark.usefixtures("example")
def test_the_examples_judge_keeps_the_contract(tmp_path: Path) -> None:
    check_judge(lambda: judge(tmp_path))
    texts = ["0123456789", "012345678", "01234567", "0123456", "01234 56789", "012 345", "0 1 2"]
    passages = [Document(str(number), "", text) for number, text in enumerate(texts)]
    said = judge(tmp_path).rate(Query("q", "0123456789"), passages)
    assert [outcome.grade for outcome in said] == list("SSAABCD")
    assert [outcome.status for outcome in judge(tmp_path).rate(Query("q", ""), passages[:1])] == ["failed"]


@pytest.mark.usefixtures("example")
def test_the_examples_exporter_keeps_the_contract() -> None:
    check_exporter(EXPORTERS.load("csv"), labels)


@pytest.mark.usefixtures("example")
def test_the_examples_encoder_keeps_the_contract_and_retrieves(tmp_path: Path) -> None:
    folders = count()
    check_encoder(lambda: build.encoder(context(tmp_path / str(next(folders))), "bigrams"))  # a cache for each
    check_retriever(lambda: build.retriever(context(tmp_path), "bigrams"))
    one, half, none = build.encoder(context(tmp_path), "bigrams").encode(["发热", "发热咳", "痛"], "query")
    assert (one @ half, none @ none) == (pytest.approx(0.5**0.5), 0)


@pytest.mark.usefixtures("example")
def test_the_examples_task_keeps_the_contract_and_is_paid_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_task(TASKS.load("answerable"), answer='{"answerable": "no"}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATE_HOME", str(tmp_path / "home"))
    pairs = {f"pair {n}": (f"How to water plant {n}?", f"Water plant {n} daily.") for n in range(120)}
    with vendor(lambda _query, _passage: "", lambda _call: says('{"answerable": "yes"}')) as server:
        model = {"kind": "openai", "model": "m-1", "base_url": server.url, "local": True, "batch": True, "price": PRICE}
        file = tmp_path / tiny(tmp_path)
        pipeline = parse_yaml(file.read_text(encoding="utf-8"))
        assert isinstance(pipeline, dict)
        changed = {**pipeline, "judges": {"m": model}, "stages": ["ingest", "mask", "diversify"]}
        file.write_text(json.dumps(changed), encoding="utf-8")
        run = package_itself.run(file).folder
        with pytest.raises(package_itself.ConsentNeeded) as asked:
            package_itself.ask_models("answerable", pairs, ["m"], run=run)
        assert asked.value.plan.calls == 120
        answers: dict[str, dict[str, Any]] = package_itself.ask_models("answerable", pairs, ["m"], run=run, max_cost=1)
        assert {name: by_model["m"].answerable for name, by_model in answers.items()} == dict.fromkeys(pairs, True)
        again: dict[str, dict[str, Any]] = package_itself.ask_models("answerable", pairs, ["m"], run=run, offline=True)
        assert (len(server.calls), again) == (120, answers)
        others = {name: (f"{query} Why?", passage) for name, (query, passage) in pairs.items()}
        monkeypatch.setattr(judge_batches, "PollingPolicy", lambda: FAST)
        assert len(package_itself.ask_models("answerable", others, ["m"], run=run, yes=True, batch=True)) == 120
        assert len(server.calls) == 120, "what is new went in a batch"


@pytest.mark.parametrize(
    ("bad", "promise"),
    [
        ({"what": ""}, "in the plural"),
        ({"request": lambda self, item, thinking: Request((Message("user", item[1]),), 50)}, "on top of the room"),
        ({"request": lambda self, item, thinking: Request((Message("user", "?"),), 50 + thinking)}, "different items"),
        ({"read": lambda self, item, reply: self.none("failed")}, "is refused, found failed"),
    ],
)
@pytest.mark.usefixtures("example")
def test_a_task_that_breaks_a_promise_is_told_which(bad: dict[str, Any], promise: str) -> None:
    broken: Any = type("Broken", (cast("type", TASKS.load("answerable")),), bad)
    with pytest.raises(AssertionError, match=promise):
        check_task(broken)


@pytest.mark.usefixtures("example")
def test_a_pipeline_of_plugins_runs_to_its_report(tmp_path: Path) -> None:
    tiny(tmp_path)
    (tmp_path / "mine.yaml").write_text(PIPELINE, encoding="utf-8")
    done = curate(tmp_path, "run", "mine.yaml", "--run", "run")
    assert done.returncode == 0, done.stderr
    found = pl.read_parquet(tmp_path / "run" / "pool" / "pool.parquet")["hits"].explode().struct.unnest()
    assert set(found["retriever"]) == {"bm25", "ngrams", "pairs"}
    rows = labels(tmp_path / "run" / "export" / "csv")
    beir = (tmp_path / "run" / "export" / "beir" / "qrels" / "test.tsv").read_text().splitlines()[1:]
    assert [f"{query}\t{doc}\t{score}" for query, doc, score in rows] == beir
    assert json.loads((tmp_path / "run" / "judge" / "stage.json").read_text())["report"]["facts"]["heuristic"] == [
        "longest",
        "mild",
    ]
    wrong = curate(tmp_path, "run", "mine.yaml", "--run", "run", "--set", "retrievers.pairs={kind: ngrams, sise: 2}")
    assert (wrong.returncode, "retrievers.pairs.sise" in wrong.stderr) == (2, True)


def test_the_example_is_short() -> None:
    files = sorted((EXAMPLE / "curate_example").glob("*.py"))
    assert [path.stem for path in files] == ["__init__", "encoder", "exporter", "judge", "retriever", "task"]
    assert all(len(path.read_text(encoding="utf-8").splitlines()) < 70 for path in files)


def test_the_page_names_the_example_its_groups_and_a_pipeline_that_loads() -> None:
    page = EXAMPLE.parents[1].joinpath("docs", "integrate.md").read_text(encoding="utf-8")
    page = page.partition("## Write a plugin")[2]
    assert "`tests/plugin`" in page
    groups = re.findall(r'entry-points\."([\w.]+)"', (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))
    assert groups
    assert all(f"`{group}`" in page for group in groups)
    [pipeline] = [parse_yaml(text) for text in re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)]
    assert isinstance(pipeline, dict)
    assert Pipeline.check(pipeline, "integrate.md").head.retrievers["pairs"] == {"kind": "ngrams", "size": 2}


# Packages that are made here, with what an installer leaves of them


def package(folder: Path, name: str, group: str, point: str, code: str | None = None) -> None:
    """Lay down a package `name` 0.3 with one entry point; the module `others` holds the code."""
    info = folder / f"{name}-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text(f"[curate.{group}]\n{point}\n")
    if code is not None:
        (folder / "others.py").write_text(code, encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


BROKEN = {
    "missing": (None, "ModuleNotFoundError: No module named 'others'"),
    "raises": ("raise RuntimeError('no licence key')", "RuntimeError: no licence key"),
    "lacks": ("", "AttributeError: module 'others' has no attribute 'Thing'"),
    "garbled": ("def", "SyntaxError"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_plugin_that_cannot_be_imported_is_a_sentence(name: str, site: Path, tmp_path: Path) -> None:
    code, found = BROKEN[name]
    package(site, "sadly", "retrievers", f"{name} = others:Thing", code)
    tiny(tmp_path)
    done = curate(tmp_path, "run", "tiny.yaml", "--run", "run", "--set", f"pool.retrievers=[words, {name}]")
    assert done.returncode == 2
    assert f"error: retriever '{name}': others:Thing cannot be imported ({found}" in done.stderr
    assert "repair the package sadly 0.3 or uninstall it" in done.stderr
    assert "Traceback" not in done.stderr


def test_other_names_work_beside_a_broken_plugin(site: Path, tmp_path: Path) -> None:
    package(site, "sadly", "retrievers", "broken = others:Thing")
    assert isinstance(build.retriever(context(tmp_path), "bm25"), Bm25)


def test_what_is_no_plugin_is_a_sentence(site: Path, tmp_path: Path) -> None:
    package(site, "number", "retrievers", "seven = others:SEVEN\nbare = others:Bare", "SEVEN = 7\nclass Bare: ...\n")
    with pytest.raises(ConfigError, match=r"retriever 'seven': others:SEVEN is 7, expected a class or a function; .*"):
        build.retriever(context(tmp_path), "seven")
    with pytest.raises(ConfigError, match=r"retrievers\.bare: others has no class Config\(curate\.Section\)"):
        build.retriever(context(tmp_path), "bare")


def test_a_built_in_name_wins(site: Path, tmp_path: Path) -> None:
    package(site, "greedy", "retrievers", "bm25 = others:Thing", "raise RuntimeError")
    assert isinstance(build.retriever(context(tmp_path), "bm25"), Bm25)
    assert RETRIEVERS.names().count("bm25") == 1


def test_two_packages_of_one_name_are_both_named(site: Path) -> None:
    package(site, "one", "exporters", "csv = others:Thing")
    package(site, "two", "exporters", "csv = others:Thing")
    expected = "exporter 'csv': found in one 0.3, two 0.3, expected one package; uninstall the other"
    with pytest.raises(ConfigError, match=expected):
        EXPORTERS.load("csv")


def test_an_unknown_name_says_what_is_installed(site: Path, tmp_path: Path) -> None:
    package(site, "maker", "retrievers", "splade = others:Thing")
    with pytest.raises(
        ConfigError, match=r"unknown retriever 'splad': did you mean 'splade'\? known: .*bm25, .*splade"
    ):
        build.retriever(context(tmp_path), "splad")


def test_the_doctor_names_plugins_and_says_which_is_broken(site: Path, tmp_path: Path) -> None:
    package(site, "maker", "encoders", "lengths = others:Lengths", "class Lengths: ...")
    package(site, "sadly", "judges", "gone = lost:Thing")
    found = {each["what"]: each for each in machine.data(curate(tmp_path, "doctor", "--json").stdout)}
    assert (found["encoder lengths"]["state"], found["encoder lengths"]["found"]) == ("good", "of maker 0.3")
    assert found["judge gone"]["state"] == "missing"
    assert "repair the package sadly 0.3" in found["judge gone"]["remedy"]


PROVIDER = """\
from curate import Reply

class Flatterer:
    '''A model that finds everything relevant.'''

    def __init__(self, config):
        self.name, self.identity = config.model, self.identify(config)

    @classmethod
    def identify(cls, config):
        return {"kind": "flatterer", "model": config.model}

    async def answer(self, request):
        return Reply('{"P1": "S"}', "stop", self.name, None)

    async def close(self):
        pass
"""


def test_a_provider_of_others_judges(site: Path, tmp_path: Path) -> None:
    package(site, "maker", "providers", "flatterer = others:Flatterer", PROVIDER)
    name = tiny(tmp_path)
    judges = ["--set", "judges.mine={kind: flatterer, model: m-1}", "--set", "judge.models=[lexical, mine]"]
    done = curate(tmp_path, "run", name, "--run", "run", *judges, "--set", "judge.batch=1", "--yes")
    assert done.returncode == 0, done.stderr
    ratings = pl.read_parquet(tmp_path / "run" / "judge" / "ratings.parquet").filter(pl.col("judge") == "mine")
    assert set(ratings["grade"]) == {"S"}


RECOGNISER = """\
import re
from curate import Span

def badge(text):
    '''Return badges of visitors, such as V-1234.'''
    return [Span(*each.span(), "permit", "badge") for each in re.finditer(r"V-\\d{4}(?!\\d)", text)]
"""


def test_a_recogniser_of_others_masks(site: Path, tmp_path: Path) -> None:
    package(site, "maker", "recognisers", "badge = others:badge", RECOGNISER)
    check_recogniser(RECOGNISERS.load("badge"), {"来访者V-1234已经登记，V-12345没有": ["V-1234"], "V1234": []})
    (tmp_path / "in.txt").write_text("来访者V-1234已经登记\n", encoding="utf-8")
    done = curate(tmp_path, "anonymise", "in.txt", "out.txt")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "来访者[证件号]已经登记\n"
    assert "badges of visitors" in curate(tmp_path, "recognisers").stdout
