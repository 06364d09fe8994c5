"""The report in a real browser: nothing leaves the file, everything can be read, reached, searched and opened."""

import csv
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from selenium.webdriver.common.keys import Keys

from curate.commands.report import Config as ReportConfig
from curate.system.files import read_meanings, read_table
from curate.view.words import strings
from tests import ROOT
from tests.conftest import need
from tests.integration.commands.report.test_report import HOSTILE, make
from tests.support import browsing
from tests.support.browsing import Page
from tests.support.report_pages import LANGUAGES, MODELS, THEMES, requested, unfold, visit, write

CONTRAST = (ROOT / "tests" / "data" / "contrast.js").read_text(encoding="utf-8")
FIGURES = "document.querySelectorAll('figure').length"
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
    """Wait until something holds, for two minutes at most."""
    end = time.monotonic() + 120
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    assert holds()


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_leaves_the_file_and_the_console_is_silent(folder: Path, browser: Page, language: str) -> None:
    requested(browser)
    visit(browser, folder / f"{language}.html")
    unfold(browser)
    assert HOSTILE in browser.text("#settings"), "a setting stays a text"
    assert browser.see("document.querySelectorAll('img').length") == 0
    assert browser.log("browser") == []
    asked = requested(browser)
    assert asked
    assert all(url.startswith(("file:", "data:")) for url in asked), asked


def test_a_button_turns_the_page_into_the_other_language_and_back(folder: Path, browser: Page) -> None:
    visit(browser, folder / "zh.html")
    zh, en = strings("zh"), strings("en")
    browser.see("document.querySelector('#judges').open = true")
    browser.see("document.querySelector('#theme').click()")
    counts = "[...document.querySelectorAll('#per_query td.n')].map(cell => cell.textContent).join()"
    before = browser.see(counts)
    assert browser.text("#language") == "English"
    for words, tag, button in ((en, "en", "中文"), (zh, "zh-CN", "English"), (en, "en", "中文")):
        browser.see("document.querySelector('#language').click()")
        assert browser.see("[document.documentElement.lang, document.title]") == [tag, f"tiny · {words['title']}"]
        assert browser.text("main h2") == words["scores"]["legend"]
        assert browser.text("#judges h2") == words["sections"]["judges"]
        assert browser.text("#language") == button
        assert browser.see("document.activeElement.id") == "language"
        assert browser.see("document.querySelector('#theme').getAttribute('aria-pressed')") == "true"
        assert browser.see("[...document.querySelectorAll('details[open]')].map(x => x.id)") == ["judges"]
        assert browser.see("document.querySelectorAll('figure .takes').length") == browser.see(FIGURES)
        assert browser.see(counts) == before
    assert browser.log("browser") == []


def test_no_other_script_runs(folder: Path, browser: Page, tmp_path: Path) -> None:
    """A script that got into the page all the same is refused by the page's policy."""
    html = (folder / "zh.html").read_text(encoding="utf-8")
    (tmp_path / "x.html").write_text(html.replace("<main", "<script>window.hacked = 1</script><main"), encoding="utf-8")
    visit(browser, tmp_path / "x.html")
    assert browser.see("window.hacked ?? null") is None
    assert "Content Security Policy" in str(browser.log("browser"))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("theme", THEMES)
def test_every_text_stands_out_from_what_is_behind_it(folder: Path, browser: Page, language: str, theme: str) -> None:
    visit(browser, folder / f"{language}.html", theme=theme)
    unfold(browser)
    browser.size(1280, browser.see("document.documentElement.scrollHeight"))
    found = browser.see(CONTRAST.partition("\n")[2])
    measured = [each for each in found if each["ratio"] is not None]
    hidden = {each["text"] for each in found if each["ratio"] is None}
    assert len(measured) > 450
    assert not hidden, "what is behind a text was looked up where it stands"
    assert not [each for each in measured if each["ratio"] < 4.5]
    paper = browser.see("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(251, 250, 247)") == (theme == "light")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_control_is_reached_by_keyboard_and_shows_it(folder: Path, browser: Page, language: str) -> None:
    visit(browser, folder / f"{language}.html")
    unfold(browser)
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
    assert count > 20


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_screen_reader_has_a_name_for_everything(folder: Path, browser: Page, language: str) -> None:
    visit(browser, folder / f"{language}.html")
    unfold(browser)
    nodes = browser.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles: dict[str, list[str]] = {}
    for node in nodes:
        if not node["ignored"]:
            roles.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    for role in ("button", "image", "table", "region", "DisclosureTriangle"):
        assert roles.get(role), f"there is no {role}"
        assert all(roles[role]), f"a {role} has no name"
    levels = browser.see("[...document.querySelectorAll('h1, h2')].map(x => x.localName)")
    words = strings(language)["sections"]
    shown = [name for name in words if browser.see(f"!!document.querySelector('details#{name}')")]
    assert levels == ["h1"] + ["h2"] * (3 + len(shown)), "grades, scores, next steps, and a section each"
    assert set(words) - set(shown) <= {"audit", "evaluation", "done"}, "what was not done has no section"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_person_has_five_answers_before_the_first_section(folder: Path, browser: Page, language: str) -> None:
    """May I publish, how many positives, what does A mean, which judge is odd, what do I type next."""
    visit(browser, folder / f"{language}.html")
    words, run = strings(language), folder / "runs" / "tiny"
    upto = browser.see(
        "(() => { const range = document.createRange(); range.setStart(document.body, 0);"
        " range.setEndBefore(document.querySelector('details')); return range.toString(); })()"
    )
    state = words["state"]
    assert state["sentence"].format(state["report"]["names"]["red"], state["report"]["reasons"]["judged"]) in upto
    positives = len(read_table(run / "resolve", "qrels").filter(pl.col("score") > 0))
    assert f"{positives:,} {'个正例' if language == 'zh' else 'positives'}" in upto
    assert read_meanings(run / "judge")[language]["A"] in upto
    assert words["head"]["even"] in upto, "of two judges neither is odd"
    assert f"{state['next']} curate judge --models" in upto
    first_screen = browser.see("document.querySelector('.page-head').getBoundingClientRect().bottom")
    assert first_screen <= 800
    assert browser.see("document.querySelector('#todo').getBoundingClientRect().top") <= 2 * 800


@pytest.mark.parametrize("language", LANGUAGES)
def test_scores_are_sorted_and_say_which_are_biased_and_which_are_not_told_apart(
    folder: Path, browser: Page, language: str
) -> None:
    visit(browser, folder / f"{language}-scored.html")
    words = strings(language)["scores"]
    assert browser.see("[...document.querySelectorAll('#scores svg .label')].map(x => x.textContent)") == list(MODELS)
    assert browser.see("[...document.querySelectorAll('#scores svg rect > title')].map(x => x.textContent)") == [
        *MODELS[:3]
    ]
    hollow = "[...document.querySelectorAll('#scores svg circle')].map(x => x.getAttribute('class') === 'hollow')"
    assert browser.see(hollow) == [model in ("e5", "bm25") for model in MODELS]
    text = browser.text("#scores")
    assert words["hollow"].split("{")[0] in text
    assert words["detectable"].format(3.12) in text
    assert words["floor"].format("overlap", 12.34) in text
    assert browser.see("document.querySelector('#tests').open") is False, "the tests of differences are folded"
    unfold(browser)
    verdicts = browser.see("[...document.querySelectorAll('#tests tbody tr')].map(x => x.cells[5].textContent)")
    assert (verdicts.count(words["apart"][0]), verdicts.count(words["apart"][1])) == (3, 25)
    once = browser.see("document.body.textContent").count("90.0 (86.0–94.0)")
    assert once == 2 + 1, "drawn, its hint, and the other task in the table"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_fits_a_phone(folder: Path, browser: Page, language: str) -> None:
    for name in (language, f"{language}-scored"):
        visit(browser, folder / f"{name}.html", size=(390, 844))
        unfold(browser)
        assert browser.see("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_structure_is_one_that_assistive_technology_reads(folder: Path, browser: Page, language: str) -> None:
    """Ids are unique, lists and tables are whole, what scrolls can be focused, and no heading level is left out."""
    visit(browser, folder / f"{language}.html", size=(390, 844))
    unfold(browser)
    ids = browser.see("[...document.querySelectorAll('[id]')].map(x => x.id)")
    assert len(ids) == len(set(ids))
    assert not browser.see("[...document.querySelectorAll('dl > *, ul > *')].filter(x => !x.matches('div, li')).length")
    assert not browser.see("document.querySelectorAll('dl > div:not(:has(> dt + dd))').length")
    assert not browser.see("document.querySelectorAll('table:not(:has(caption)), th:not([scope])').length")
    scrolled = "x.scrollWidth > x.clientWidth + 1 && getComputedStyle(x).overflowX !== 'visible' && x.tabIndex < 0"
    assert browser.see(f"[...document.querySelectorAll('main *')].filter(x => {scrolled}).map(x => x.outerHTML)") == []
    levels = browser.see("[...document.querySelectorAll('h1, h2, h3, h4')].map(x => Number(x.localName[1]))")
    assert all(after - before <= 1 for before, after in pairwise([0, *levels]))


@pytest.mark.accept
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_no_serious_fault(folder: Path, browser: Page, language: str, theme: str) -> None:
    axe = Path(os.environ.get("AXE_CORE", "node_modules/axe-core/axe.min.js"))
    need(axe.is_file(), "axe-core (AXE_CORE names its axe.min.js)")
    visit(browser, folder / f"{language}.html", theme=theme)
    unfold(browser)
    browser.browser.execute_script(axe.read_text(encoding="utf-8"))
    faults = browser.browser.execute_async_script(
        "const done = arguments[0];"
        "axe.run().then(found => done(found.violations.map(fault => [fault.impact, fault.id])))"
    )
    assert not [fault for fault in faults if fault[0] in ("serious", "critical")]


def test_every_figure_is_taken_away_as_drawing_and_as_rows(folder: Path, browser: Page, tmp_path: Path) -> None:
    visit(browser, folder / "en.html")
    way = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.browser.execute_cdp_cmd("Browser.setDownloadBehavior", way)
    figures = browser.see("document.querySelectorAll('figure').length")
    assert browser.see("document.querySelectorAll('figure .take').length") == 2 * figures
    browser.see("document.querySelector('figure').querySelectorAll('.take').forEach(button => button.click())")
    name = "-".join(re.findall(r"\w+", strings("en")["charts"]["positives"]))
    drawing, rows_ = tmp_path / f"{name}.svg", tmp_path / f"{name}.csv"
    until(lambda: drawing.is_file() and rows_.is_file())
    assert "var(" not in drawing.read_text(encoding="utf-8")
    assert ET.fromstring(drawing.read_bytes()).tag.endswith("svg")
    read = list(csv.reader(rows_.read_text(encoding="utf-8-sig").splitlines()))
    verdicts = read_table(folder / "runs" / "tiny" / "consensus", "verdicts").filter(pl.col("verdict") == "relevant")
    queries_by_positives = Counter(verdicts.group_by("query_id").len()["len"])
    assert {row[0]: row[1] for row in read[1:] if row[1] != "0"} == {
        str(positives): str(queries) for positives, queries in queries_by_positives.items()
    }


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
