"""Reports opened in a real browser: written in every language, visited, and read back."""

import json
from pathlib import Path

from curate.commands.report import Config as ReportConfig
from curate.commands.report.page import page
from curate.commands.report.stage import gather
from curate.core.config import read_yaml
from curate.pipeline.stage import Context
from tests.support.browsing import Page

LANGUAGES, THEMES = ("zh", "en"), ("light", "dark")


def write(folder: Path, run: Path, config: ReportConfig) -> None:
    """Write the report of a run in every language, with a text in every kind of place that tries to be markup."""
    context = Context(run=run, out=run, home=folder, name="tiny", settings=read_yaml(run / "pipeline.yaml"))
    shown = gather(config, context)
    for language in LANGUAGES:
        other = next(each for each in LANGUAGES if each != language)
        (folder / f"{language}.html").write_text(page(shown, language, other), encoding="utf-8")


def visit(browser: Page, path: Path, *, theme: str = "light", size: tuple[int, int] = (1280, 800)) -> None:
    """Open a page as it looks to a reader of a theme, on a screen of a size."""
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    browser.size(*size)
    browser.browser.get(path.as_uri())
    browser.wait("document.readyState === 'complete'")


def requested(browser: Page) -> list[str]:
    """Return the addresses that files asked for since this was asked last; the browser's own pages are not ours."""
    events = [json.loads(message)["message"] for message in browser.log("performance")]
    sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    return [each["request"]["url"] for each in sent if each["documentURL"].startswith("file:")]


def rows(browser: Page) -> list[str]:
    """Return the ids of the queries that are shown."""
    found: list[str] = browser.see("[...document.querySelectorAll('#queries tbody th')].map(x => x.innerText)")
    return found
