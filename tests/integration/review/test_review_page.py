"""The review page in a real browser: by keyboard, through a crash, for two at once, on a phone, for everybody."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from curate.review import Answer, Desk, Sample
from curate.review import desk as answers
from curate.review.access import Access, Role
from tests.conftest import need
from tests.support import browsing
from tests.support.browsing import Page
from tests.support.reviewing import TEXTS, Server, sample, served

ZHANG, LI = "张医生", "李医生"
NASTY = ("\"quotes\" & 'more' <b>", '<script>document.title = "taken"</script><img src=x onerror="document.title=1">')


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, Page]]:
    """Return two people's browsers."""
    need(browsing.BROWSER.exists() and browsing.DRIVER.exists(), "chromium, or chromium-driver,")
    folder = tmp_path_factory.mktemp("profiles")
    with browsing.browsing(folder / "one") as one, browsing.browsing(folder / "other") as other:
        yield one, other


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("reviews") / "page"
    sample(folder, [*TEXTS * 4, NASTY], (ZHANG, LI))
    with served(folder) as running:
        yield running


@pytest.fixture
def page(server: Server, two: tuple[Page, Page]) -> Iterator[Page]:
    """Return the page of the first row, opened by the address and a name, nothing answered."""
    for file in (server.folder / "answers").glob("*"):
        file.unlink()
    opened = entered(two[0], server, ZHANG)
    opened.size(1280, 800)
    yield opened
    complaints = opened.log("browser")
    assert not [text for text in complaints if "net::ERR_" not in text]  # of a killed server
    opened.browser.get("about:blank")


def entered(page: Page, server: Server, person: str) -> Page:
    """Choose a name on the page that the address leads to."""
    page.browser.get(f"{server.address}&lang=zh")
    assert page.browser.current_url == f"{server.origin}/review?lang=zh"
    page.browser.find_element("xpath", f"//a[contains(., '{person}')]").click()
    page.wait("document.querySelector('form.row') !== null")
    return page


def said(server: Server, person: str) -> list[str]:
    """Return the answers of a person in reading order, as they are on the disk, `-` where there is none."""
    desk = Desk(Sample.load(server.folder))
    found = desk.said(person)
    return [(found[row.row_id].answer or "-") if row.row_id in found else "-" for row in desk.rows(person)]


def test_thirty_pairs_by_keyboard_and_a_crash_in_the_middle(server: Server, page: Page) -> None:
    grades = list("SABCDDCBASABCDSSABBCCDDABSACDS")
    for number, grade in enumerate(grades[:14], start=1):
        page.press(grade.lower())
        assert "".join(said(server, ZHANG)[:number]) == "".join(grades[:number])  # kept before the next is shown
    page.keys("n", "写到一半 SAD", Keys.ESCAPE)
    server.kill()
    page.keys("a")
    page.wait("!document.getElementById('trouble').hidden")
    assert "没有保存" in page.text("#trouble")
    assert page.see("document.getElementById('note').value") == "写到一半 SAD"
    assert said(server, ZHANG).count("-") == len(TEXTS) * 4 + 1 - 14
    server.start()
    page.browser.find_element("css selector", "#trouble button").click()
    page.wait("document.title.startsWith('第 16 /')")
    assert page.see("document.getElementById('trouble').hidden")
    for grade in grades[15:20]:
        page.press(grade)
    page.browser.refresh()
    server.kill()
    server.start()
    page.browser.get(f"{server.origin}/review/by/{ZHANG}")
    assert page.text(".place").startswith("第 21 /")
    for grade in grades[20:]:
        page.press(grade)
    grades[14] = "A"
    assert said(server, ZHANG)[:31] == [*grades, "-"]
    assert "已评 30" in page.text(".counts")
    noted = [answer for answer in answers.history(server.folder, ZHANG) if answer.note]
    assert [(answer.answer, answer.note) for answer in noted] == [("A", "写到一半 SAD")]
    assert len(list(answers.history(server.folder, ZHANG))) == 30


def test_keys_move_take_back_and_leave_the_note_alone(server: Server, page: Page) -> None:
    page.press(Keys.RIGHT)
    page.press(Keys.RIGHT)
    page.press(Keys.LEFT)
    assert page.text(".place").startswith("第 2 /")
    assert set(said(server, ZHANG)) == {"-"}
    page.press("b")
    page.press("c")
    page.press("u")
    assert page.text(".place").startswith("第 3 /")
    assert page.text(".told") == "已撤销：C"
    page.control("z")
    page.wait("document.title.startsWith('第 2 /')")
    assert set(said(server, ZHANG)) == {"-"}
    page.keys("n", "su", Keys.LEFT, "d")
    page.control("a")
    page.keys("ab")
    assert page.see("document.getElementById('note').value") == "ab"
    page.keys(Keys.ESCAPE)
    page.press(Keys.RIGHT)
    page.press(Keys.LEFT)
    assert page.see("document.getElementById('note').value") == "ab"
    page.control("s")  # a browser's own keys are no grades
    assert page.see("document.querySelector('[aria-busy]') === null")
    assert set(said(server, ZHANG)) == {"-"}


def test_two_people_at_once(server: Server, page: Page, two: tuple[Page, Page]) -> None:
    other = entered(two[1], server, LI)
    for mine, theirs in zip("SABCD", "DDCBA", strict=True):
        page.keys(mine)
        other.press(theirs)
    page.wait("document.title.startsWith('第 6 /')")
    assert "".join(said(server, ZHANG)[:6]) == "SABCD-"
    assert "".join(said(server, LI)[:6]) == "DDCBA-"
    other.browser.get("about:blank")


def test_a_phone_needs_no_scrolling_sideways_and_has_large_buttons(server: Server, page: Page) -> None:
    page.size(390, 844, phone=True)
    for path in (
        "/review",
        "/review/guide",
        f"/review/by/{ZHANG}",
        f"/review/by/{ZHANG}/{Sample.load(server.folder).of(ZHANG)[-1].row_id}",
    ):
        page.browser.get(server.origin + path)
        assert page.see("document.documentElement.scrollWidth") == 390, path
    sizes = page.see(
        "[...document.querySelectorAll('button:not(#trouble *)')].map(b => b.getBoundingClientRect().height)"
    )
    assert len(sizes) == 10
    assert min(sizes) >= 44
    page.browser.find_element("css selector", "button[value=A]").click()
    page.wait("document.querySelector('.told') !== null")
    assert said(server, ZHANG)[-1] == "A"


def test_texts_run_nothing(server: Server, page: Page) -> None:
    last = Sample.load(server.folder).of(ZHANG)[-1]
    page.browser.get(f"{server.origin}/review/by/{ZHANG}/{last.row_id}")
    assert page.see("document.querySelector('.query p').textContent") == NASTY[0]
    assert page.see("document.querySelector('.passage p').textContent") == NASTY[1]
    assert page.see("document.scripts.length") == 1
    page.press("s")
    assert page.browser.title.startswith("第 1 /")


def test_what_a_screen_reader_finds(page: Page) -> None:
    assert page.see("document.documentElement.lang") == "zh"
    page.press("s")
    assert "上一条已保存：S" in page.see("document.getElementById('told').textContent")
    assert page.see("document.activeElement.tagName") == "ARTICLE"
    assert page.see("document.getElementById('note').labels.length") == 1
    button = page.browser.find_element("css selector", "button[value=S]")
    assert "回答直接、完整、正确" in button.accessible_name
    assert button.get_attribute("aria-pressed") == "false"


def test_without_scripts_the_forms_still_work(server: Server, page: Page) -> None:
    off = {"value": True}
    page.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", off)
    try:
        page.browser.get(f"{server.origin}/review/by/{ZHANG}")
        page.browser.find_element("css selector", "button[value=B]").click()
        assert page.text_of(".told") == "上一条已保存：B"
    finally:
        page.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert said(server, ZHANG)[0] == "B"


def test_a_link_on_another_site_opens_it(server: Server, page: Page, tmp_path: Path) -> None:
    page.browser.delete_all_cookies()
    mail = tmp_path / "mail.html"
    mail.write_text(f'<a href="{server.address}">review</a>', encoding="utf-8")
    page.browser.get(mail.as_uri())
    page.browser.find_element("css selector", "a").click()
    page.wait("document.querySelector('.people') !== null")
    assert page.browser.current_url == f"{server.origin}/review"


@pytest.mark.accept
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_axe_finds_no_serious_fault_in_the_pages_of_a_team(
    two: tuple[Page, Page], tmp_path: Path, theme: str, language: str
) -> None:
    axe = Path(os.environ.get("AXE_CORE", "node_modules/axe-core/axe.min.js"))
    need(axe.is_file(), "axe-core (AXE_CORE names its axe.min.js)")
    desk = Desk(sample(tmp_path / "reviews" / "team", TEXTS, (ZHANG, LI)))
    rows = [row.row_id for row in desk.rows(ZHANG)]
    desk.record(ZHANG, [Answer(row, "S", "note") for row in rows[:2]])
    desk.record(LI, [Answer(row, "D") for row in rows[:2]])
    pages: list[tuple[str, Role, list[str]]] = [
        (ZHANG, "assessor", ["/enter", f"/review/{rows[3]}"]),
        ("chen", "adjudicator", [f"/review/decide/{rows[0]}"]),
        ("boss", "lead", ["/review/progress"]),
    ]
    page = two[0]
    features = [{"name": "prefers-color-scheme", "value": theme}]
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    with served(desk.sample.folder) as server:
        for person, role, paths in pages:
            _, token = Access(desk).invite(person, role)
            page.browser.get(f"{server.origin}/enter?lang={language}#{token}")
            page.browser.find_element("css selector", "form button").click()
            page.wait("location.pathname.startsWith('/review')")
            for path in paths:
                page.browser.get(f"{server.origin}{path}")
                page.see("document.querySelectorAll('details').forEach(each => { each.open = true; })")
                page.browser.execute_script(axe.read_text(encoding="utf-8"))
                faults = page.browser.execute_async_script(
                    "const done = arguments[0];"
                    "axe.run().then(found => done(found.violations.map(x => [x.impact, x.id, x.nodes[0].html])))"
                )
                assert [fault for fault in faults if fault[0] in ("serious", "critical")] == [], (path, theme)
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
