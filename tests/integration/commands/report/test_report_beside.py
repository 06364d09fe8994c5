"""What was done beside the stages is on the page as long as it is of today's tables; else what to type stands there."""

from pathlib import Path
from typing import Any

import pytest

from curate.commands.report import Config as ReportConfig
from curate.commands.report.figures import Shown
from curate.commands.report.page import page
from curate.commands.report.stage import fingerprint, gather
from curate.core.config import read_yaml
from curate.pipeline.facts import MADE_FROM, made_from, rated
from curate.pipeline.stage import Context
from curate.runs.checks import CHECKS
from curate.runs.leaks import digests
from curate.system.files import read_json, write_json
from curate.view.words import strings
from tests.integration.commands.report.test_report import Read, make

BANDS: dict[str, Any] = {
    "queries": 5,
    "share": 1.0,
    "overlap": {"value": 0.12345, "low": None, "high": None},
    "length": {"value": 9.0, "low": None, "high": None},
    "median_rank": None,
}


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    folder = tmp_path_factory.mktemp("beside")
    make(folder)
    run = folder / "runs" / "tiny"
    return Context(run=run, out=run, home=folder, name="tiny", settings=read_yaml(run / "pipeline.yaml"))


def read(context: Context, language: str = "en") -> tuple[Shown, Read]:
    shown = gather(ReportConfig(), context)
    return shown, Read(page(shown, language))


def write(context: Context, file: str, figures: dict[str, Any]) -> Path:
    path = context.run / "checks" / file
    path.parent.mkdir(exist_ok=True)
    write_json(path, figures)
    return path


@pytest.mark.parametrize("language", ["zh", "en"])
def test_what_was_not_done_is_named_with_its_command(context: Context, language: str) -> None:
    shown, html = read(context, language)
    words = strings(language)
    for name in ("judge", "pool", "analyze", "circular", "evaluation", "reasons"):
        assert html.row(words["done"]["names"][name]) == [CHECKS[name].command], name
    unread = f"{words['state']['report']['reasons']['sample']} ({words['todo']['needed']})"
    assert html.row(unread)[0].startswith("curate review export")
    assert shown.asked >= len(shown.queries)


def test_figures_are_shown_until_the_tables_they_saw_change(context: Context) -> None:
    labels = "consensus" if context.report("resolve") is None else "resolve"
    figures = {"all": {**BANDS, "name": "all"}, "by_bm25_rank": [{**BANDS, "name": "1"}], "questions": {}}
    before = fingerprint(ReportConfig(), context)
    path = write(context, "analyze.json", {**figures, MADE_FROM: made_from(context, "consensus", labels)})
    assert fingerprint(ReportConfig(), context) != before, "the page is made again"
    own = strings("en")["done"]
    shown, html = read(context)
    assert shown.beside["analyze"].state == "current"
    assert html.row(own["names"]["analyze"]) == [own["said"]["easy"].format(5, 5)]
    assert "0.123" in html.row("1"), html.row("1")

    mark = context.folder("consensus") / "stage.json"
    known = read_json(mark)
    write_json(mark, {**known, "outputs": {**known["outputs"], "verdicts.parquet": "another"}})
    shown, html = read(context)
    assert shown.beside["analyze"].state == "older"
    assert html.row(f"{own['names']['analyze']} ({own['older']})") == [CHECKS["analyze"].command]
    assert "0.123" not in html.text
    write_json(mark, known)
    path.unlink()


def test_a_training_set_that_was_compared_stands_there_until_labels_change(context: Context) -> None:
    path = context.run / "checks" / "leaks" / "leaks.json"
    path.parent.mkdir(parents=True)
    own, before = strings("en")["done"], fingerprint(ReportConfig(), context)
    for counts, said in (((0, 0), own["said"]["no_leak"]), ((2, 1), own["said"]["leaking"].format(2, 1))):
        compared = {"test": digests(context.run), "leaking_queries": counts[0], "leaking_pairs": counts[1]}
        write_json(path, compared)
        assert read(context)[1].row(own["names"]["leaks"]) == [said]
    assert fingerprint(ReportConfig(), context) != before, "the page is made again"
    write_json(path, {**compared, "test": {}})
    assert CHECKS["leaks"].result(context).state == "older"
    path.unlink()


def test_figures_that_do_not_name_their_tables_are_not_shown(context: Context) -> None:
    path = write(context, "pool.json", {"capture": None})
    shown, _ = read(context)
    assert shown.beside["pool"].state == "older"
    path.unlink()


def test_a_check_of_judges_is_older_once_people_are_listened_to(context: Context) -> None:
    path = write(context, "judge.json", {"people": 0, MADE_FROM: made_from(context, *rated(context))})
    assert CHECKS["judge"].result(context).state == "current"
    mark = context.folder("resolve") / "stage.json"
    known = read_json(mark)
    write_json(mark, {**known, "outputs": {**known["outputs"], "verdicts.parquet": "another"}})
    assert CHECKS["judge"].result(context).state == "older"
    write_json(mark, known)
    path.unlink()
