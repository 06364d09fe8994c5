"""The page of an audit: complete, escaped, without requests, and what is shown of the worst queries."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from curate.commands.audit import page as audit_page
from curate.commands.audit.page import KINDS, STYLES, strings
from curate.core.records import AUDITED
from curate.core.scale import FIVE
from curate.system.files import read_json, read_table
from tests.integration.commands.report.test_report import HOSTILE, Read
from tests.support.auditing import audited, labelled


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    labelled(folder)
    with (folder / "data" / "corpus.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"_id": "d<b>", "title": "", "text": HOSTILE}) + "\n")
    done = audited(folder)
    assert done.returncode == 0, done.stderr
    return folder / "runs" / "audit-data"


@pytest.fixture
def found(run: Path) -> dict[str, Any]:
    return read_json(run / "audit" / "audit.json")


def page(run: Path, found: dict[str, Any], language: str = "zh", most: int = 100) -> str:
    """Return the page of a run with other figures or words."""
    counts, compared = read_table(run / "audit", "audited"), read_table(run / "audit", "compared")
    queries = audit_page.worst(counts, most)
    pairs = audit_page.examples(compared, queries, 5)
    texts = dict(read_table(run / "mask", "queries").select("query_id", "text").iter_rows())
    passages = dict(read_table(run / "mask", "corpus").select("doc_id", "text").iter_rows())
    return audit_page.page(found, audit_page.cards(queries, pairs, counts, texts, passages), language, FIVE)


def test_the_page_lies_in_the_run_folder_and_asks_nothing_of_any_network(run: Path) -> None:
    html = (run / "audit.html").read_text(encoding="utf-8")
    assert html == (run / "audit" / "audit.html").read_text(encoding="utf-8")
    read = Read(html)
    assert all(link.startswith(("#", "data:")) for link in read.links), read.links
    assert not read.tags & {"script", "iframe", "object", "embed", "img", "video", "form", "base"}
    assert "default-src 'none'" in html
    style = html[html.index("<style>") : html.index("</style>")]
    assert not re.search(r"url\(|@import", style)
    assert str(run.parents[1]) not in html


def test_texts_stay_texts(run: Path, found: dict[str, Any]) -> None:
    read = Read(page(run, found))
    assert HOSTILE in read.text, "a document is shown as it is"
    assert not read.tags & {"script", "img", "b>"}


@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_measure_has_its_row(run: Path, found: dict[str, Any], language: str) -> None:
    words, read = strings(language), Read(page(run, found, language))
    for name in AUDITED:
        each = found["measures"][name]
        row, head = read.row(words["measures"][name]), words["head"].get(name)
        if head:
            assert f"{head}{each['mean']:.2f} (" in re.sub(r"\s*\n\s*", "", read.text)
            assert words["head"]["total"].format(each["total"]) in read.text
        assert (row[0], row[-1]) == (f"{each['mean']:.2f}", str(each["total"]))
    assert words["weak_title"] in read.text
    assert words["few"] in read.text
    assert read.tables == read.captions == 2


def test_corrected_figures_and_what_is_not_defined(run: Path, found: dict[str, Any]) -> None:
    figure = {"value": 3.25, "low": 2.5, "high": 4.0, "answered": 500}
    names = ("false_negatives", "false_positives", "positives", "precision")
    good = {"sample": "audit", "outdated": False, "answered": 500, **dict.fromkeys(names, figure), "precision": None}
    words = strings("en")
    html = page(run, {**found, "corrected": [good, {"sample": "old", "outdated": True}], "heuristic": False}, "en")
    read = Read(html)
    assert read.row(words["corrected"]["false_negatives"]) == ["3.25", "2.50–4.00", "500"]
    assert read.row(words["corrected"]["precision"])[0] == words["undefined"]
    assert words["corrected_outdated"] in read.text
    assert words["corrected_none"] not in read.text
    assert words["weak_title"] not in read.text
    assert words["corrected_worst"] not in read.text
    bounds = {**{name: {"low": 1.25, "high": 9.0} for name in names}, "precision": None}
    many_open = {**found, "corrected": [{**good, "worst_case": bounds}], "heuristic": False}
    assert "1.25–9.00" in Read(page(run, many_open, "en")).text
    assert words["corrected_worst"] in Read(page(run, many_open, "en")).text


def test_a_system_that_is_a_judge_is_marked(run: Path, found: dict[str, Any]) -> None:
    first, *others = found["systems"]["systems"]
    systems = {**found["systems"], "systems": [{**first, "circular": True}, *others]}
    assert strings("en")["circular_note"] not in Read(page(run, found, "en")).text
    assert strings("en")["circular_note"] in Read(page(run, {**found, "systems": systems}, "en")).text
    none = {**found["systems"], "systems": []}
    assert strings("en")["systems_none"] in Read(page(run, {**found, "systems": none}, "en")).text


def test_the_worst_queries_come_first(run: Path) -> None:
    counts = read_table(run / "audit", "audited")
    errors = {row["query_id"]: row["false_negatives"] + row["false_positives"] for row in counts.to_dicts()}
    worst = audit_page.worst(counts, 100)
    assert [errors[name] for name in worst] == sorted((each for each in errors.values() if each), reverse=True)
    assert audit_page.worst(counts, 2) == worst[:2]
    pairs = audit_page.examples(read_table(run / "audit", "compared"), worst, 1)
    assert pairs.group_by("query_id", "kind").len()["len"].max() == 1
    assert set(pairs["kind"]) <= set(KINDS)


def test_both_languages_have_the_same_words() -> None:
    def keys(value: object) -> object:
        return {name: keys(each) for name, each in value.items()} if isinstance(value, dict) else None

    assert keys(strings("zh")) == keys(strings("en"))
    for language in ("zh", "en"):
        words = strings(language)
        assert set(words["measures"]) == set(AUDITED)
        assert set(words["kinds"]) == set(STYLES)
    assert strings("fr") == strings("en")
