"""The report of runs on other scales than the five grades, in a real browser and in both languages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from curate.commands.report import Config as ReportConfig
from curate.core.scale import Scale
from curate.system.files import read_meanings, read_scale
from curate.view.words import strings
from tests import ROOT
from tests.conftest import need
from tests.support import browsing
from tests.support.browsing import Page
from tests.support.report_pages import LANGUAGES, THEMES, unfold, visit, write
from tests.support.scale_runs import CASES, make

CONTRAST = (ROOT / "tests" / "data" / "contrast.js").read_text(encoding="utf-8").partition("\n")[2]
SAID = {
    "0-3": {"zh": "四个等级，以及 2 与 1 之间的二分阈值", "en": "On the four grades, and on the cut between 2 and 1."},
    "yes-no": {
        "zh": "两个等级，以及 yes 与 no 之间的二分阈值",
        "en": "On the two grades, and on the cut between yes and no.",
    },
    "seven": {
        "zh": "等级之间的距离取自增益（10、6、3、1、0、0、0）。",
        "en": "On the seven grades, and on the cut between 较相关 and 一般.",
    },
}
SIDES = """[...document.querySelectorAll('.grades > div')].map(
  side => [side.querySelector('h3').innerText, ...[...side.querySelectorAll('dt')].map(grade => grade.innerText)])"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    need(browsing.BROWSER.exists() and browsing.DRIVER.exists(), "chromium, or chromium-driver,")
    with browsing.browsing(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module", params=CASES)
def report(
    request: pytest.FixtureRequest, browser: Page, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Scale, dict[str, str]]:
    """Return a folder with the report in both languages, its scale, and what it must say in each."""
    folder = tmp_path_factory.mktemp("page")
    make(folder, CASES[request.param])
    write(folder, folder / "runs" / "tiny", ReportConfig())
    return folder, read_scale(folder / "runs" / "tiny" / "judge"), SAID[request.param]


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_names_the_grades_and_the_cut(
    report: tuple[Path, Scale, dict[str, str]], browser: Page, language: str
) -> None:
    folder, scale, said = report
    visit(browser, folder / f"{language}.html")
    words, above = strings(language)["scores"], len(scale.positives)
    assert browser.see(SIDES) == [
        [words["relevant"], *scale.labels[:above]],
        [words["not_relevant"], *scale.labels[above:]],
    ]
    meanings = read_meanings(folder / "runs" / "tiny" / "judge")
    told = browser.see("[...document.querySelectorAll('.grades dd')].map(x => x.innerText)")
    texts = meanings.get(language, meanings["zh"])
    assert told == [texts[label] for label in scale.labels], "the rubric's own words"
    unfold(browser)
    assert said[language] in browser.text("main")
    heads = browser.see("[...document.querySelectorAll('.matrix thead th')].map(x => x.innerText.replace(/\\s/g, ''))")
    assert heads == list(scale.labels)
    cut = browser.see("[...document.querySelector('.matrix thead tr').cells].findIndex(x => x.matches('.cut'))")
    assert cut == 1 + len(scale.positives)
    assert browser.log("browser") == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("theme", THEMES)
def test_every_grade_is_read_on_its_colour(
    report: tuple[Path, Scale, dict[str, str]], browser: Page, language: str, theme: str
) -> None:
    visit(browser, report[0] / f"{language}.html", theme=theme)
    unfold(browser)
    browser.size(1280, browser.see("document.documentElement.scrollHeight"))
    found = [each for each in browser.see(CONTRAST) if each["ratio"] is not None]
    assert len(found) > 200
    assert not [each for each in found if each["ratio"] < 4.5]
    legend = browser.see("[...document.querySelectorAll('.grades dt b')].map(x => getComputedStyle(x).backgroundColor)")
    assert len(set(legend)) == len(report[1].labels)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_phone_needs_no_scrolling_sideways(
    report: tuple[Path, Scale, dict[str, str]], browser: Page, language: str
) -> None:
    visit(browser, report[0] / f"{language}.html", size=(390, 844))
    unfold(browser)
    assert browser.see("document.documentElement.scrollWidth") == 390
