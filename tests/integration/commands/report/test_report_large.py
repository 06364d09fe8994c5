"""The report of a run as large as the paper's, 734 queries with 500 pairs each: small, quick, and whole on paper."""

import base64
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import polars as pl
import pytest
from selenium.webdriver.common.keys import Keys

from curate.commands.report import Config as ReportConfig
from curate.core.records import TABLES
from curate.core.scale import FIVE
from curate.panel.voting import decide
from curate.system.files import frame, write_table
from curate.view.words import strings
from tests.conftest import need
from tests.integration.commands.report.test_report import make
from tests.support import browsing
from tests.support.browsing import Page
from tests.support.report_pages import LANGUAGES, rows, visit, write

QUERIES, POOLED, DOCUMENTS = 734, 500, 5_000
PRINTED = """
window.printed = 0,
addEventListener("beforeprint", () => window.printed = document.querySelectorAll("#queries tbody tr").length)
"""
TYPED = """(() => {
  const search = document.querySelector("#search"), start = performance.now();
  search.value = "咖啡";
  search.dispatchEvent(new Event("input"));
  return document.body.offsetHeight && performance.now() - start;
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    need(browsing.BROWSER.exists() and browsing.DRIVER.exists(), "chromium, or chromium-driver,")
    with browsing.browsing(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the reports of 734 queries with 500 pairs each, graded by two judges."""
    target = tmp_path_factory.mktemp("large")
    run = target / "runs" / "tiny"
    make(target)
    queries = [
        {"query_id": f"query-{n:04}", "text": f"第{n}个患者能喝咖啡吗？" + "平时要注意什么，多久复查一次？" * 6}
        for n in range(QUERIES)
    ]
    texts = [
        {"doc_id": f"doc-{n:05}", "title": "", "text": f"第{n}篇。" + "咖啡因可使血压短暂升高，应少量饮用。" * 20}
        for n in range(DOCUMENTS)
    ]
    write_table(run / "diversify", "queries", frame("queries", queries))
    write_table(run / "diversify", "corpus", frame("corpus", texts))
    number = pl.int_range(QUERIES * POOLED, eager=True)
    pairs = pl.DataFrame({"query": number // POOLED, "at": number % POOLED}).select(
        query_id=pl.format("query-{}", pl.col("query").cast(pl.String).str.zfill(4)),
        doc_id=pl.format("doc-{}", ((pl.col("query") * 7 + pl.col("at")) % DOCUMENTS).cast(pl.String).str.zfill(5)),
        position=pl.col("at") + 1,
        chance=(pl.col("query") * POOLED + pl.col("at")).hash(seed=7) % 1000,
    )
    by = pl.when(pl.col("chance") % 3 == 0).then(pl.lit("words")).otherwise(pl.lit("pairs"))
    hit = pl.struct(retriever=by, rank=pl.col("position"), score=pl.lit(1.0))
    pool = pairs.with_columns(hits=pl.concat_list(hit))
    write_table(run / "pool", "pool", completed(pool, "pool"))
    ratings = pl.concat(rated(pairs, judge, spare) for judge, spare in (("lexical", 0), ("strict", 20)))
    write_table(run / "judge", "ratings", ratings)
    write_table(run / "consensus", "verdicts", decide(ratings, ["lexical", "strict"], "unanimous", FIVE))
    write(target, run, ReportConfig(lengths=50))
    return target


def rated(pairs: pl.DataFrame, judge: str, spare: int) -> pl.DataFrame:
    """Return one judge's ratings: 4 % S, and A, B, C of 4 % each; `spare` moves who gets which."""
    place = pl.min_horizontal((pl.col("chance") + spare) % 1000 // 40, len(FIVE.labels) - 1)
    grade = place.replace_strict(dict(enumerate(FIVE.labels)), return_dtype=pl.String)
    known = pairs.select("query_id", "doc_id", judge=pl.lit(judge), grade=grade, status=pl.lit("rated"))
    return completed(known, "ratings")


def completed(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return a table with the columns that it lacks, empty, in the order and types of its schema."""
    schema = pl.Schema(TABLES[name])
    rest = [pl.lit(None).alias(each) for each in schema if each not in table.columns]
    return table.with_columns(rest).select(schema.names()).cast(schema)


def test_a_page_of_paper_size_is_small_and_whole(browser: Page, large: Path) -> None:
    size = max((large / f"{language}.html").stat().st_size for language in LANGUAGES)
    assert size < 1_500_000, f"{size:,} bytes"
    visit(browser, large / "zh.html")
    assert browser.log("browser") == []
    assert len(rows(browser)) == 50
    browser.see("document.querySelector('#more').focus()")
    browser.keys(Keys.ENTER)
    assert len(rows(browser)) == 100
    browser.see("document.querySelector('#search').focus()")
    browser.keys("query-0733")
    browser.wait("document.querySelectorAll('#queries tbody th').length === 1")
    assert browser.text("#queries tbody td.n") == str(POOLED)
    browser.control("a")
    browser.keys(Keys.BACKSPACE)
    browser.see("document.querySelector('#readable').click()")
    assert browser.text("#found") == strings("zh")["matching"].format(found=60, all=QUERIES, shown=50)
    browser.see("document.querySelector('.open').click()")
    assert browser.see("document.querySelectorAll('.opened .pair').length") == 20
    shown = browser.see("[...document.querySelectorAll('.opened .passage')].map(x => x.innerText.length)")
    assert max(shown) == 201, "200 characters, and … for the rest"


def test_paper_shows_every_query_and_no_control(browser: Page, large: Path) -> None:
    visit(browser, large / "en.html")
    browser.see(PRINTED.strip())
    made = browser.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(made["data"]).startswith(b"%PDF")
    assert browser.see("window.printed") == QUERIES
    assert len(rows(browser)) == 50, "and the screen is as it was"
    browser.browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]},
    )
    assert browser.see("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not browser.see("[...document.querySelectorAll('.top, .controls, #more')].some(x => x.checkVisibility())")


@pytest.mark.accept
def test_a_page_of_paper_size_is_ready_within_a_second(browser: Page, large: Path) -> None:
    """The script stands at the end of the page, so that a page that is interactive has run it."""
    ready, answers = [], []
    for _ in range(5):
        visit(browser, large / "zh.html")
        ready.append(browser.see("performance.getEntriesByType('navigation')[0].domInteractive"))
        answers.append(browser.see(TYPED))
    assert median(ready) < 1000, "ms until it is interactive"
    assert median(answers) < 200, "ms for a search"
