"""The report of a run as large as the paper's, 734 queries with 500 pairs each: small, quick, and whole on paper."""

import base64
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import polars as pl
import pytest

from curate.commands.report import Config as ReportConfig
from curate.core.records import TABLES
from curate.core.scale import FIVE
from curate.panel.voting import decide
from curate.system.files import frame, read_table, write_table
from tests.conftest import need
from tests.integration.commands.report.test_report import make
from tests.support import browsing
from tests.support.browsing import Page
from tests.support.report_pages import LANGUAGES, rows, unfold, visit, write

QUERIES, POOLED, DOCUMENTS = 734, 500, 5_000
SCRIPT_MS = """(() => {
  const code = document.querySelector('script').textContent, start = performance.now();
  for (let turn = 0; turn < 5; turn += 1) new Function(code)();
  return (performance.now() - start) / 5;
})()"""
A4 = (210 - 2 * 13, 297 - 2 * 14)
"""Width and height of what is printed on a page, in mm."""
PIXEL = 25.4 / 96


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


def test_a_page_of_paper_size_is_small_and_names_the_hardest_queries(browser: Page, large: Path) -> None:
    size = max((large / f"{language}-scored.html").stat().st_size for language in LANGUAGES)
    assert size < 1_000_000, f"{size:,} bytes"
    visit(browser, large / "zh.html")
    assert browser.log("browser") == []
    table = read_table(large / "runs" / "tiny" / "consensus", "verdicts")
    counted = table.group_by("query_id").agg(
        positives=(pl.col("verdict") == "relevant").sum(), contested=(pl.col("verdict") == "contested").sum()
    )
    hardest = counted.sort(pl.col("positives") > 0, -pl.col("contested").cast(pl.Int64), "query_id")
    assert rows(browser) == hardest["query_id"].head(20).to_list()
    unfold(browser)
    assert browser.text("#per_query tbody td.n") == str(POOLED)


def test_paper_has_what_counts_on_its_first_page_and_every_section_open(browser: Page, large: Path) -> None:
    visit(browser, large / "en-scored.html")
    count = "document.querySelectorAll('details[open]').length"
    browser.see(f"window.opened = 0, addEventListener('beforeprint', () => window.opened = {count})")
    made = browser.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})
    assert base64.b64decode(made["data"]).startswith(b"%PDF")
    sections = browser.see("document.querySelectorAll('details').length")
    assert browser.see("window.opened") == sections >= 8
    assert browser.see(count) == 0, "and the screen is as it was"
    browser.browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]},
    )
    browser.size(round(A4[0] / PIXEL), 1000)
    assert browser.see("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not browser.see("[...document.querySelectorAll('.top, .takes')].some(x => x.checkVisibility())")
    assert browser.see("document.querySelector('#scores .facts-list').getBoundingClientRect().bottom") * PIXEL <= A4[1]
    assert browser.see("getComputedStyle(document.querySelector('#tests')).breakBefore") == "page"
    assert browser.see("getComputedStyle(document.querySelector('thead')).display") == "table-header-group"
    closed = "[...document.querySelectorAll('details > :not(summary)')].filter(x => !x.checkVisibility()).length"
    assert browser.see(closed) == 0, "without the script, too"


def test_the_script_of_a_page_of_paper_size_takes_no_time(browser: Page, large: Path) -> None:
    """The policy of the page allows no other script, so its text is run in a copy without a policy."""
    html = (large / "zh.html").read_text(encoding="utf-8")
    free = large / "free.html"
    free.write_text(html.replace("Content-Security-Policy", "X-None"), encoding="utf-8")
    visit(browser, free)
    assert browser.see(SCRIPT_MS) < 60


@pytest.mark.accept
def test_a_page_of_paper_size_is_ready_within_a_second(browser: Page, large: Path) -> None:
    """The script stands at the end of the page, so that a page that is interactive has run it."""
    ready = []
    for _ in range(5):
        visit(browser, large / "zh.html")
        ready.append(browser.see("performance.getEntriesByType('navigation')[0].domInteractive"))
    assert median(ready) < 1000, "ms until it is interactive"
