"""The review page in a real browser on other scales than the five grades: keys, buttons, colours, guide."""

from collections.abc import Iterator

import pytest

from curate.core.scale import Scale, declared
from curate.review import Desk, Sample
from tests import ROOT
from tests.conftest import need
from tests.support import browsing
from tests.support.browsing import Page
from tests.support.reviewing import TEXTS, Server, sample, served

CONTRAST = (ROOT / "tests" / "data" / "contrast.js").read_text(encoding="utf-8").partition("\n")[2]
LONG = "complete and correct answer to the query"
SEVEN = ("完全相关", "很相关", "较相关", "一般", "略相关", "不相关", "无效")
SCALES = {
    "0-3": (declared(["3", "2", "1", "0"], relevant_from="2"), "3210"),
    "yes-no": (declared(["yes", "no"], relevant_from="yes"), "12"),
    "seven": (declared(SEVEN, relevant_from="较相关"), "1234567"),
    "ten": (declared([str(number) for number in range(10, 0, -1)], relevant_from="7"), "0987654321"),
    "long": (declared([LONG, "<b>&'\"", "N"], relevant_from=LONG), "123"),
    "classes": (Scale(("heart", "lung", "none"), order="nominal", none="none"), "123"),
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    need(browsing.BROWSER.exists() and browsing.DRIVER.exists(), "chromium, or chromium-driver,")
    with browsing.browsing(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module", params=SCALES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    scale, keys = SCALES[request.param]
    meanings = {
        "zh": {label: f"{place} 级：{'段落回答了查询。' * 4}" for place, label in enumerate(scale.labels)},
        "en": {label: f"grade {place}" for place, label in enumerate(scale.labels)},
    }
    folder = tmp_path_factory.mktemp("reviews") / request.param
    sample(folder, TEXTS * 2, ("anna",), "zh", scale, meanings)
    with served(folder) as running:
        yield running, keys


@pytest.fixture
def page(server: tuple[Server, str], browser: Page) -> Iterator[Page]:
    for file in (server[0].folder / "answers").glob("*"):
        file.unlink()
    browser.size(1280, 800)
    browser.browser.get(f"{server[0].address}&lang=zh")
    browser.browser.find_element("css selector", ".people a").click()
    browser.wait("document.querySelector('form.row') !== null")
    yield browser
    assert browser.log("browser") == []
    browser.browser.get("about:blank")


def test_every_grade_has_a_key_which_its_button_shows(server: tuple[Server, str], page: Page) -> None:
    running, keys = server
    frozen = Sample.load(running.folder)
    shown = page.see("[...document.querySelectorAll('.answer')].map(x => (x.querySelector('kbd') ?? x).innerText)")
    assert [text[0] for text in shown] == list(keys)
    for key in keys:
        page.press(key)
    said = Desk(frozen).said("anna")
    assert [said[row.row_id].answer for row in frozen.of("anna")[: len(keys)]] == list(frozen.scale.labels)
    assert page.text(".told") == f"上一条已保存：{frozen.scale.labels[-1]}"


def test_nothing_is_cut_off_on_a_screen_or_a_phone(server: tuple[Server, str], page: Page) -> None:
    person = page.browser.current_url
    for width, height, phone in ((1280, 800, False), (390, 844, True)):
        page.size(width, height, phone=phone)
        for path in (person, f"{server[0].origin}/review/guide"):
            page.browser.get(path)
            assert page.see("document.documentElement.scrollWidth") == width, path
        page.browser.get(person)
        page.wait("[...document.querySelectorAll('link[rel=stylesheet]')].every(x => x.sheet)")
        boxes = "[...document.querySelectorAll('.answer')].map(x => x.getBoundingClientRect())"
        assert page.see(f"Math.min(...{boxes}.map(x => x.height))") >= 44
        assert page.see(f"Math.max(...{boxes}.map(x => x.bottom))") <= height, "every grade is seen without scrolling"
        inside = "[...document.querySelectorAll('.answer :is(b, span)')].every(x => x.scrollWidth <= x.clientWidth + 1 "
        assert page.see(f"{inside} || getComputedStyle(x).display === 'inline')")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_label_stands_out_from_its_colour(page: Page, theme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": theme}]
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    page.size(1280, page.see("document.documentElement.scrollHeight"))
    labels = set(page.see("[...document.querySelectorAll('.answer b')].map(x => x.innerText)"))
    measured = [each for each in page.see(CONTRAST) if each["text"] in labels and each["ratio"]]  # the guide is closed
    assert len(measured) >= len(labels)
    assert min(each["ratio"] for each in measured) >= 4.5
    colours = page.see("[...document.querySelectorAll('.answer b')].map(x => getComputedStyle(x).backgroundColor)")
    assert len(set(colours)) == len(labels)
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_the_guide_says_what_every_grade_means(server: tuple[Server, str], page: Page) -> None:
    scale = Sample.load(server[0].folder).scale
    page.browser.get(f"{server[0].origin}/review/guide")
    cells = page.see("[...document.querySelectorAll('tbody tr')].map(row => [...row.cells].map(x => x.innerText))")
    assert [row[0] for row in cells] == list(scale.labels)
    assert all(len(row) == 2 and "段落回答了查询。" in row[1] for row in cells), "in the reader's language alone"
    assert " / ".join(scale.positives) in page.text("main")
    assert ("算作相关" in page.text("main")) == bool(scale.positives)
