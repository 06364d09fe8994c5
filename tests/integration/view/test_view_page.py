"""The pages of a run in a real browser: twenty questions answered by clicks, by keyboard, on a phone, for everybody."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from curate.review import Answer, Desk, Sample
from curate.web.filters import PairFilter
from curate.web.index import RunIndex, opened
from curate.web.shown import matrices
from tests.conftest import need
from tests.integration.view.test_any_pair import JUDGES, RETRIEVERS, Tables
from tests.support import browsing
from tests.support.browsing import Page
from tests.support.runs import ran

PAGES = ("/", "/queries", "/q/q00", "/q/q00/d000", "/pairs?verdict=contested", "/doc/d000", "/judges", "/search")


@dataclass
class Site:
    """A running server, the run that it shows, and a browser that has entered."""

    page: Page
    origin: str
    index: RunIndex

    def go(self, path: str) -> None:
        """Open an address."""
        self.page.browser.get(f"{self.origin}{path}")

    def click(self, *labels: str) -> None:
        """Click links by what they say, one after the other."""
        for label in labels:
            links = self.page.browser.find_elements(By.TAG_NAME, "a")
            link = next(each for each in links if label == each.text.strip() or label == each.get_attribute("title"))
            self.page.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", link)
            link.click()

    def first(self, selector: str) -> None:
        """Click the first link of a selector."""
        link = self.page.browser.find_element(By.CSS_SELECTOR, selector)
        self.page.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", link)
        link.click()

    @property
    def text(self) -> str:
        """Return what stands on the page once its script has run: a driver returns before that on a busy machine."""
        self.page.wait("document.readyState === 'complete'")
        return self.page.text("main")

    @property
    def path(self) -> str:
        """Return the address without the server."""
        return str(self.page.browser.current_url).removeprefix(self.origin)


@pytest.fixture(scope="module")
def site(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    need(browsing.BROWSER.exists() and browsing.DRIVER.exists(), "chromium, or chromium-driver,")
    command = [sys.executable, "-m", "curate", "view", "runs/shown", "--port", "0"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        address = server.stdout.readline().strip()
        with browsing.browsing(tmp_path_factory.mktemp("profile")) as page:
            page.browser.get(f"{address}&lang=en")
            run = folder / "runs" / "shown"
            yield Site(page, address.partition("/?")[0], opened(run))
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def test_assessors_stand_against_every_judge_once_they_have_answered(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    run = tmp_path / "runs" / "shown"
    ran(tmp_path, "review", "export", "--size", "60", "--assessors", "wang", "--run", str(run))
    judges_only = len(list(combinations(JUDGES, 2)))
    assert len(matrices(opened(run))) == judges_only, "an open sample gives away nothing"
    desk = Desk(Sample.find(run))
    desk.record("wang", [Answer(row.row_id, "B") for row in desk.rows("wang")])
    index = opened(run)
    of_people = matrices(index)[judges_only:]
    assert [(matrix.first, matrix.second) for matrix in of_people] == [("", judge) for judge in index.judges]
    answered = PairFilter(index, {"people": "B"}).pairs
    assert len(answered) == 60, "a planted control is no pair of the sample"
    graded = answered[f"grade:{index.judges[0]}"].is_in(index.scale.labels).sum()
    row_of_b = of_people[0].counts[index.scale.labels.index("B")]
    assert sum(row_of_b) == sum(map(sum, of_people[0].counts)) == graded


# What a search lead asks


def shown_pairs(site: Site) -> set[tuple[str, str]]:
    """Return the pairs that a list leads to, over all its pages."""
    found: set[tuple[str, str]] = set()
    while True:
        links = site.page.see("[...document.querySelectorAll('table.pairs a')].map(a => new URL(a.href).pathname)")
        found |= {(path.split("/")[2], path.split("/")[3]) for path in links if path.count("/") == 3}
        if not site.page.see("!!document.querySelector('.turn [rel=next]')"):
            return found
        site.first(".turn [rel=next]")


def shown_queries(site: Site) -> list[str]:
    """Return the queries of a list, in its order."""
    paths = site.page.see("[...document.querySelectorAll('table.queries a')].map(a => new URL(a.href).pathname)")
    return [path.split("/")[2] for path in paths]


def tops(tables: Tables, retriever: str) -> dict[str, int]:
    """Return query -> number of relevant documents in a retriever's top 10, for queries that have one."""
    relevant = tables.having("relevant")
    queries = sorted({query for query, _ in relevant})
    ranks = tables.ranks
    return {
        query: sum(ranks[pair].get(retriever, 99) <= 10 for pair in relevant if pair[0] == query) for query in queries
    }


def test_which_queries_have_no_relevant_document(site: Site, tables: Tables) -> None:
    site.go("/")
    site.click("Queries: without a relevant document")
    assert set(shown_queries(site)) == set(tables.queries) - {query for query, _ in tables.having("relevant")}


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_for_which_queries_a_retriever_fails(site: Site, tables: Tables, retriever: str) -> None:
    site.go("/")
    site.click("Queries", f"no relevant document in the top 10 of {retriever}")
    assert set(shown_queries(site)) == {query for query, top in tops(tables, retriever).items() if not top}


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_which_relevant_documents_a_retriever_misses(site: Site, tables: Tables, retriever: str) -> None:
    site.go("/")
    site.click("Pairs", f"Relevant, missed by {retriever}")
    assert shown_pairs(site) == tables.missed(retriever)


def test_where_retrievers_differ_most(site: Site, tables: Tables) -> None:
    site.go("/")
    site.click("Queries", "largest gap between retrievers")
    by_retriever = [tops(tables, retriever) for retriever in RETRIEVERS]
    gaps = {
        query: max(top[query] for top in by_retriever) - min(top[query] for top in by_retriever)
        for query in by_retriever[0]
    }
    assert gaps.get(shown_queries(site)[0], 0) == max(gaps.values())


def test_how_a_query_fares_in_every_retriever(site: Site, tables: Tables) -> None:
    site.go("/")
    site.click("Queries")
    query, top = next(iter(tops(tables, RETRIEVERS[0]).items()))
    row = site.page.see(
        f"[...document.querySelectorAll('tr')].find(row => row.innerText.includes('{query}')).innerText"
    )
    relevant = len([pair for pair in tables.having("relevant") if pair[0] == query])
    assert f"{top}/{min(relevant, 10)}" in row


def test_at_which_ranks_a_document_was_found(site: Site, tables: Tables) -> None:
    site.go("/")
    site.click("Queries")
    site.first("table.queries a")
    site.first("table.pairs a")
    query, doc = site.path.split("/")[2:4]
    for retriever, rank in tables.ranks[query, doc].items():
        assert f"{retriever}: rank {rank}" in site.text


def test_what_a_document_says_in_full(site: Site, tables: Tables) -> None:
    site.go("/")
    site.click("Queries")
    site.first("table.queries a")
    site.first("table.pairs a")
    title, text = tables.documents[site.path.split("/")[3]]
    assert re.sub(r"\s", "", title + text) in re.sub(r"\s", "", site.text)


def test_in_which_pools_a_document_is(site: Site, tables: Tables) -> None:
    site.go("/pairs")
    site.first("table.pairs td:last-child a")
    site.first("article h3 a")
    doc = site.path.split("/")[2]
    assert shown_pairs(site) == {pair for pair in tables.pairs if pair[1] == doc}


def test_which_labels_of_the_data_are_rejected(site: Site, tables: Tables) -> None:
    site.go("/")
    site.click("Original labels rejected by the panel")
    assert shown_pairs(site) == tables.rejected()


def test_which_documents_mention_two_words(site: Site) -> None:
    site.go("/")
    site.page.browser.find_element(By.ID, "words").send_keys("感冒", Keys.ENTER)
    site.page.wait("location.pathname === '/search' && document.querySelector('.hits') !== null")
    assert "感冒" in site.page.text(".hits")
    assert "感冒" not in site.page.browser.current_url


# What an author asks


def test_what_state_a_run_is_in_and_by_which_rule(site: Site) -> None:
    site.go("/")
    assert site.page.text(".state .verdict")
    site.page.browser.find_element(By.CSS_SELECTOR, "details.rule summary").click()
    assert "queries" in site.page.text("details.rule p")


def test_what_two_judges_disagree_on_most(site: Site, tables: Tables) -> None:
    site.go("/")
    site.click("Judges")
    cells = site.page.see(
        "[...document.querySelectorAll('table.matrix')][0].querySelectorAll('tbody tr')[0].cells.length"
    )
    assert cells == 6
    site.first("table.matrix tbody tr:first-child td:last-of-type a, table.matrix tbody tr td:last-of-type a")
    asked = dict(part.split("=") for part in site.path.partition("?")[2].split("&"))
    assert shown_pairs(site) == tables.cell(asked)


def test_how_far_two_judges_agree(site: Site) -> None:
    site.go("/judges")
    assert re.search(r"κ -?\d\.\d\d \[-?\d\.\d\d, -?\d\.\d\d\]", site.text)


@pytest.mark.parametrize("judge", JUDGES)
def test_which_pairs_one_judge_alone_finds_relevant(site: Site, tables: Tables, judge: str) -> None:
    site.go("/")
    site.click("Pairs", f"Only {judge} says relevant")
    assert shown_pairs(site) == tables.only(judge)


@pytest.mark.parametrize("judge", JUDGES)
def test_where_one_judge_is_against_the_rest(site: Site, tables: Tables, judge: str) -> None:
    site.go("/")
    site.click("Pairs", f"{judge} against the rest")
    assert shown_pairs(site) == tables.against(judge)


def test_which_grades_are_far_apart(site: Site, tables: Tables) -> None:
    site.go("/")
    site.click("Pairs", "Two or more grades apart")
    assert shown_pairs(site) == tables.gap(2)


def test_what_is_contested_pair_by_pair(site: Site, tables: Tables) -> None:
    site.go("/")
    site.click("Pairs", "contested")
    site.first("table.pairs td:last-child a")
    total, seen = len(tables.having("contested")), 1
    assert f"1 of {total} in the list" in site.text
    for _ in range(3):
        site.click("Next →")
        seen += 1
        assert f"{seen} of {total} in the list" in site.text
        assert tuple(site.path.partition("?")[0].split("/")[2:4]) in tables.having("contested")


def test_what_a_grade_means(site: Site) -> None:
    site.go("/q/q00/d000")
    assert all(f"{grade} " in site.page.text("footer .legend") for grade in "SABCD")


def test_what_was_masked(site: Site, tables: Tables) -> None:
    site.go("/")
    site.click("Masked texts")
    assert shown_pairs(site) == tables.masked()


def test_that_a_pair_can_be_cited(site: Site) -> None:
    site.go("/pairs")
    site.first("table.pairs td:last-child a")
    address, said = site.path, site.text
    assert "Copy link" in said
    site.go("/")
    site.go(address)
    assert site.text == said


# For everybody


def settled(site: Site, path: str, theme: str, language: str, size: tuple[int, int]) -> None:
    """Open a page on a screen."""
    features = [{"name": "prefers-color-scheme", "value": theme}]
    site.page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    site.page.size(*size, phone=size[0] < 500)
    site.go(f"{path}{'&' if '?' in path else '?'}lang={language}")


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_is_wider_than_the_screen(site: Site, path: str, width: int) -> None:
    settled(site, path, "light", "en", (width, 844))
    assert site.page.see("document.documentElement.scrollWidth") <= width
    if width == 390:
        small = (
            "[...document.querySelectorAll('nav a, button, .choices a, .turn a, .place a')]"
            ".filter(x => x.getBoundingClientRect().height < 36).map(x => x.outerHTML)"
        )
        assert site.page.see(small) == []


def test_everything_is_reached_by_the_keyboard(site: Site) -> None:
    settled(site, "/queries", "light", "en", (1280, 800))
    site.page.keys(Keys.TAB)
    assert site.page.see("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(40):
        site.page.keys(Keys.TAB)
        reached.add(site.page.see("document.activeElement.getAttribute('href') ?? document.activeElement.id"))
    assert {"/", "/queries", "/pairs", "/judges", "words", "/q/q00"} <= reached
    site.go("/queries")
    site.page.keys(Keys.TAB, Keys.ENTER)
    assert site.page.see("document.activeElement.id") == "main"


def test_keys_move_open_copy_and_go_back(site: Site) -> None:
    site.go("/pairs?verdict=contested")
    site.page.keys("j", "j", "k", Keys.ENTER)
    first = site.path
    assert first.startswith("/q/")
    site.page.keys("j")
    second = site.path
    assert second not in (first, "/pairs?verdict=contested")
    site.page.keys("k")
    assert site.path == first
    site.page.keys("r")
    assert site.path == first.partition("?")[0] + "/raw"
    site.page.keys(Keys.ESCAPE)
    assert site.path == first.partition("?")[0]
    site.page.keys("/", "r", "j")
    assert site.page.see("document.activeElement.value") == "rj", "letters in a field are letters"


def test_keys_can_be_switched_off_for_every_page(site: Site) -> None:
    site.go("/queries")
    site.page.keys("?")
    assert site.page.see("document.querySelector('details.keyboard').open")
    switch = site.page.browser.find_element(By.CSS_SELECTOR, "[data-keys]")
    assert switch.is_selected()
    switch.click()
    site.go("/pairs")
    before = site.page.see("document.activeElement.tagName")
    site.page.keys("j")
    assert site.page.see("document.activeElement.tagName") == before
    site.page.see("localStorage.setItem('keys', 'on')")


def test_nothing_is_loaded_from_elsewhere_and_no_page_complains(site: Site) -> None:
    site.page.log("browser")
    for path in PAGES:
        site.go(path)
        assert site.page.see(
            f"performance.getEntries().every(x => !x.name.includes('//') || x.name.startsWith('{site.origin}'))"
        )
    assert site.page.log("browser") == []


@pytest.mark.accept
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_axe_finds_no_serious_fault_in_the_pages_of_a_run(site: Site, theme: str, language: str) -> None:
    axe = Path(os.environ.get("AXE_CORE", "node_modules/axe-core/axe.min.js"))
    need(axe.is_file(), "axe-core (AXE_CORE names its axe.min.js)")
    for path in PAGES:
        settled(site, path, theme, language, (1280, 800))
        site.page.browser.execute_script(axe.read_text(encoding="utf-8"))
        faults = site.page.browser.execute_async_script(
            "const done = arguments[0];"
            "axe.run().then(found => done(found.violations.map(x => [x.impact, x.id, x.nodes[0].html])))"
        )
        assert not [fault for fault in faults if fault[0] in ("serious", "critical")], path
