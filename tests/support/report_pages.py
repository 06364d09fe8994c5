"""Reports opened in a real browser: written in every language, visited, and read back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from curate.commands.report import Config as ReportConfig
from curate.commands.report.page import page
from curate.commands.report.stage import gather
from curate.core.config import read_yaml
from curate.pipeline.stage import Context
from curate.runs.checks import CheckResult
from tests.support.browsing import Page

MODELS = ("e5", "use", "bge", "gte", "bm25", "m3e", "tao", "piccolo")
"""Scored models, the best first; the first three are not told apart, and e5 and bm25 helped to build the set."""
LANGUAGES, THEMES = ("zh", "en"), ("light", "dark")


def write(folder: Path, run: Path, config: ReportConfig) -> None:
    """Write the report of a run in every language, with a text in every kind of place that tries to be markup."""
    context = Context(run=run, out=run, home=folder, name="tiny", settings=read_yaml(run / "pipeline.yaml"))
    shown = gather(config, context)
    for language in LANGUAGES:
        other = next(each for each in LANGUAGES if each != language)
        (folder / f"{language}.html").write_text(page(shown, language, other), encoding="utf-8")
        scored = replace(shown, beside={**shown.beside, "evaluation": CheckResult("current", evaluation())})
        (folder / f"{language}-scored.html").write_text(page(scored, language, other), encoding="utf-8")


def evaluation() -> dict[str, Any]:
    """Return the figures of an evaluation of `MODELS` on two tasks, as far as the report reads them."""
    rows = [
        {"model": model, "lead": 0.9 - place / 20, "median": interval(0.9 - place / 20)}
        for place, model in enumerate(MODELS)
    ]
    pairs = [
        {"one": one, "other": other, "difference": 0.05, "p": 0.01, "adjusted": adjusted, "smallest": 0.0312}
        for place, one in enumerate(MODELS)
        for other in MODELS[place + 1 :]
        for adjusted in (0.2 if {one, other} <= {*MODELS[:3]} else 0.01,)
    ]
    task = {"shown": "nDCG@10", "queries": 54, "lead": "median", "scores": rows, "pairs": pairs}
    task |= {"detectable": {"median": 0.0312}, "against_floors": {"best": "overlap", "score": 0.1234, "models": []}}
    return {
        "models": [{"model": model, "circular": model in ("e5", "bm25")} for model in MODELS],
        "tasks": [{**task, "name": "r", "kind": "Reranking"}, {**task, "name": "t", "kind": "Retrieval"}],
    }


def interval(value: float) -> dict[str, float]:
    return {"value": value, "low": value - 0.04, "high": value + 0.04}


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
    """Return the ids of the queries that are listed."""
    found: list[str] = browser.see("[...document.querySelectorAll('#per_query tbody th code')].map(x => x.textContent)")
    return found


def unfold(browser: Page) -> None:
    """Open every section."""
    browser.see("document.querySelectorAll('details').forEach(section => { section.open = true })")
