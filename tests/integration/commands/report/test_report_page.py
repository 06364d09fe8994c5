"""The report in a real browser: nothing leaves the file, everything can be read, reached, searched and opened."""

import csv
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from selenium.webdriver.common.keys import Keys

from curate.commands.report import Config as ReportConfig
from curate.system.files import read_table
from curate.view.words import strings
from tests import ROOT
from tests.conftest import need
from tests.integration.commands.report.test_report import HOSTILE, make
from tests.support import browsing
from tests.support.browsing import Page
from tests.support.report_pages import LANGUAGES, THEMES, requested, rows, visit, write

CONTRAST = (ROOT / "tests" / "data" / "contrast.js").read_text(encoding="utf-8")
CONTROLS = "a[href], button, input, select, summary, [tabindex]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the report of a small, hostile run in both languages."""
    need(browsing.BROWSER.exists() and browsing.DRIVER.exists(), "chromium, or chromium-driver,")
    folder = tmp_path_factory.mktemp("page")
    make(folder)
    write(folder, folder / "runs" / "tiny", ReportConfig())
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Page]:
    with browsing.browsing(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, for ten seconds at most."""
    end = time.monotonic() + 10
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    assert holds()


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_leaves_the_file_and_the_console_is_silent(folder: Path, browser: Page, language: str) -> None:
    requested(browser)
    visit(browser, folder / f"{language}.html")
    browser.see("document.querySelectorAll('.open').forEach(button => button.click())")
    browser.wait("document.querySelectorAll('.opened').length === 5")
    assert HOSTILE in browser.see("document.querySelector('#per_query').innerText"), "a passage stays a text"
    assert browser.see("document.querySelectorAll('img').length") == 0
    assert browser.log("browser") == []
    asked = requested(browser)
    assert asked
    assert all(url.startswith(("file:", "data:")) for url in asked), asked


def test_a_button_turns_the_page_into_the_other_language_and_back(folder: Path, browser: Page) -> None:
    visit(browser, folder / "zh.html")
    zh, en = strings("zh"), strings("en")
    browser.see("document.querySelector('.open').click()")
    browser.see("document.querySelector('#search').value = 'q'")
    browser.see("document.querySelector('#theme').click()")
    counts = "[...document.querySelectorAll('#queries td.n')].map(cell => cell.innerText).join()"
    before = browser.see(counts)
    assert browser.text("#language") == "English"
    for words, tag, button in ((en, "en", "中文"), (zh, "zh-CN", "English"), (en, "en", "中文")):
        browser.see("document.querySelector('#language').click()")
        assert browser.see("[document.documentElement.lang, document.title]") == [tag, f"tiny · {words['title']}"]
        assert browser.text("h2") == words["lead"]["title"]
        assert browser.text("main h2") == words["sections"]["done"]
        assert browser.text("#language") == button
        assert browser.see("document.activeElement.id") == "language"
        assert browser.see("document.querySelector('#search').value") == "q", "what was typed stays"
        assert browser.see("document.querySelector('#theme').getAttribute('aria-pressed')") == "true"
        assert browser.see("document.querySelectorAll('.opened').length") == 0, "a card holds words of one language"
        assert browser.see(counts) == before
        browser.see("document.querySelector('.open').click()")
        assert words["passage"] in browser.text(".opened")
        browser.see("document.querySelector('#queries .sort').click()")
    assert browser.log("browser") == []


def test_no_other_script_runs(folder: Path, browser: Page, tmp_path: Path) -> None:
    """A script that got into the page all the same is refused by the page's policy."""
    html = (folder / "zh.html").read_text(encoding="utf-8")
    (tmp_path / "x.html").write_text(html.replace("<main", "<script>window.hacked = 1</script><main"), encoding="utf-8")
    visit(browser, tmp_path / "x.html")
    assert browser.see("window.hacked ?? null") is None
    assert "Content Security Policy" in str(browser.log("browser"))


def test_an_id_that_javascript_knows_is_an_id_like_others(folder: Path, browser: Page, tmp_path: Path) -> None:
    html = (folder / "zh.html").read_text(encoding="utf-8")
    known = html.replace('<th scope="row"><code>q0<', '<th scope="row"><code>constructor<')
    (tmp_path / "x.html").write_text(known, encoding="utf-8")
    visit(browser, tmp_path / "x.html")
    assert rows(browser)[0] == "constructor"
    assert browser.see("document.querySelectorAll('#queries .open').length") == 4
    assert browser.log("browser") == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("theme", THEMES)
def test_every_text_stands_out_from_what_is_behind_it(folder: Path, browser: Page, language: str, theme: str) -> None:
    visit(browser, folder / f"{language}.html", theme=theme)
    browser.see("document.querySelectorAll('.open, summary').forEach(button => button.click())")
    browser.size(1280, browser.see("document.documentElement.scrollHeight"))
    found = browser.see(CONTRAST.partition("\n")[2])
    measured = [each for each in found if each["ratio"] is not None]
    hidden = {each["text"] for each in found if each["ratio"] is None}
    assert len(measured) > 600
    assert hidden <= {strings(language)["skip"]}, "what is behind a text was looked up where it stands"
    assert not [each for each in measured if each["ratio"] < 4.5]
    paper = browser.see("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(251, 250, 247)") == (theme == "light")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_control_is_reached_by_keyboard_and_shows_it(folder: Path, browser: Page, language: str) -> None:
    visit(browser, folder / f"{language}.html")
    count = browser.see(
        f"(window.all = [...document.querySelectorAll('{CONTROLS}')].filter(x => x.checkVisibility())).length"
    )
    reached = set()
    for _ in range(count):
        browser.keys(Keys.TAB)
        place, outlined = browser.see(
            "[window.all.indexOf(document.activeElement), getComputedStyle(document.activeElement).outlineStyle]"
        )
        assert outlined != "none"
        reached.add(place)
    assert reached == set(range(count))
    assert count > 40


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_screen_reader_has_a_name_for_everything(folder: Path, browser: Page, language: str) -> None:
    visit(browser, folder / f"{language}.html")
    nodes = browser.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles: dict[str, list[str]] = {}
    for node in nodes:
        if not node["ignored"]:
            roles.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    for role in (
        "button",
        "link",
        "searchbox",
        "combobox",
        "checkbox",
        "image",
        "table",
        "region",
        "navigation",
        "search",
    ):
        assert roles.get(role), f"there is no {role}"
        assert all(roles[role]), f"a {role} has no name"
    assert strings(language)["search"] in roles["searchbox"][0]
    assert len(roles["status"]) == 1, "how many queries match is said when it changes"
    levels = browser.see("[...document.querySelectorAll('h1, h2')].map(x => x.localName)")
    shown = [name for name in strings(language)["sections"] if browser.see(f"!!document.querySelector('#{name}')")]
    assert levels == ["h1", "h2"] + ["h2"] * len(shown), "what comes first, and a section each"
    assert set(strings(language)["sections"]) - set(shown) <= {"audit"}, "a set without labels has none to audit"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_overview_fits_a_screen_and_the_page_a_phone(folder: Path, browser: Page, language: str) -> None:
    visit(browser, folder / f"{language}.html")
    assert browser.see("document.querySelector('#overview').getBoundingClientRect().bottom") <= 800
    visit(browser, folder / f"{language}.html", size=(390, 844))
    assert browser.see("document.documentElement.scrollWidth") <= 390
    links = "[...document.querySelectorAll('#contents a')].filter(link => link.checkVisibility()).length"
    assert browser.see(links) == 0, "the contents are a menu"
    browser.see("document.querySelector('#menu').click()")
    assert browser.see(links) == browser.see("document.querySelectorAll('main > section').length") + 1
    browser.see("document.querySelector('#contents a[href=\"#bill\"]').click()")
    assert browser.see(links) == 0, "a chosen place closes it"


def test_every_figure_is_taken_away_as_drawing_and_as_rows(folder: Path, browser: Page, tmp_path: Path) -> None:
    visit(browser, folder / "en.html")
    way = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.browser.execute_cdp_cmd("Browser.setDownloadBehavior", way)
    figures = browser.see("document.querySelectorAll('figure').length")
    assert browser.see("document.querySelectorAll('figure .take').length") == 2 * figures
    browser.see("document.querySelector('figure').querySelectorAll('.take').forEach(button => button.click())")
    name = "-".join(re.findall(r"\w+", strings("en")["charts"]["pairs"]))
    drawing, rows_ = tmp_path / f"{name}.svg", tmp_path / f"{name}.csv"
    until(lambda: drawing.is_file() and rows_.is_file())
    assert "var(" not in drawing.read_text(encoding="utf-8")
    assert ET.fromstring(drawing.read_bytes()).tag.endswith("svg")
    read = list(csv.reader(rows_.read_text(encoding="utf-8-sig").splitlines()))
    pooled = len(read_table(folder / "runs" / "tiny" / "pool", "pool"))
    assert [row[1] for row in read if row[0] == strings("en")["funnel"]["pool"]] == [str(pooled)]


def test_queries_are_searched_filtered_ordered_and_opened_by_keyboard(folder: Path, browser: Page) -> None:
    visit(browser, folder / "zh.html")
    table = read_table(folder / "runs" / "tiny" / "consensus", "verdicts")
    assert rows(browser) == ["q0", "q1", "q2", "q3", "q4"]
    browser.see("document.querySelector('#search').focus()")
    browser.keys("痛风")
    browser.wait("document.querySelectorAll('#queries tbody th').length < 5")
    texts = browser.see("[...document.querySelectorAll('#queries tbody tr')].map(x => x.innerText)")
    assert "q4" in rows(browser)
    assert len(texts) < 5
    assert browser.text("#found") == strings("zh")["matching"].format(found=len(texts), all=5, shown=len(texts))
    browser.control("a")
    browser.keys("没有这样的查询")
    browser.wait("document.querySelectorAll('#queries tbody th').length === 0")
    browser.control("a")
    browser.keys(Keys.BACKSPACE, Keys.TAB, Keys.ARROW_DOWN)
    bare = set(table["query_id"]) - set(table.filter(pl.col("verdict") == "relevant")["query_id"])
    assert set(rows(browser)) == bare, "queries without a positive"
    browser.keys(Keys.ARROW_DOWN)
    assert set(rows(browser)) == set(table["query_id"]) - bare
    browser.keys(Keys.ARROW_UP, Keys.ARROW_UP)
    browser.see("document.querySelector('#queries thead button').focus()")
    browser.keys(Keys.ENTER)
    assert browser.see("document.querySelector('[aria-sort]').getAttribute('aria-sort')") == "ascending"
    browser.keys(Keys.ENTER)
    assert rows(browser) == ["q4", "q3", "q2", "q1", "q0"]
    browser.see("document.querySelector('#queries .open').focus()")
    browser.keys(Keys.ENTER)
    own = table.filter(pl.col("query_id") == "q4")
    assert browser.see("document.querySelectorAll('.opened .pair').length") == len(own)
    assert set(browser.see("[...document.querySelectorAll('.opened code')].map(x => x.innerText)")) == set(
        own["doc_id"]
    )
    assert browser.see("document.activeElement.getAttribute('aria-expanded')") == "true"
    browser.keys(Keys.ENTER)
    assert browser.see("document.querySelectorAll('.opened').length") == 0


@pytest.mark.parametrize("theme", THEMES)
def test_a_reader_may_choose_the_other_theme(folder: Path, browser: Page, theme: str) -> None:
    visit(browser, folder / "zh.html", theme=theme)
    colour = "getComputedStyle(document.body).backgroundColor"
    pressed = "document.querySelector('#theme').getAttribute('aria-pressed')"
    before = browser.see(colour)
    assert browser.see(pressed) == str(theme == "dark").lower()
    browser.see("document.querySelector('#theme').focus()")
    browser.keys(Keys.ENTER)
    assert browser.see(colour) != before
    browser.keys(Keys.ENTER)
    assert browser.see(colour) == before
