"""Judges that are one judge twice, and judges of one family: said wherever their agreement or their labels stand."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curate.commands.report import Config as ReportConfig
from curate.commands.report import stage as report
from curate.commands.report.page import page
from curate.core.scale import FIVE
from curate.panel import agreement_figures
from curate.pipeline.pipeline import Pipeline
from curate.runs import card_facts
from curate.runs.runner import Run
from curate.view.words import strings
from tests.integration.commands.review.test_review_commands import filled
from tests.support import machine
from tests.support.pools import grades_file
from tests.support.runs import TOPICS, curate, tiny

NEAR = "near-identical judges: one and two: one family (kin), 100.0% of 40 ratings equal, kappa 1.000, at least 0."
KIN = "judges of one family (kin): one, two"
UNKNOWN = "effective number of judges: not measured (no grades by people of what all of them rated)"
PAGE = Path("runs/tiny/report.html")
CARD = Path("runs/tiny/export/mteb/README.md")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where a run lies: two judges of one family say the same, a third what it likes."""
    work, chance = tmp_path_factory.mktemp("alike"), random.Random(3)
    pairs = [(f"q{query}", f"d{doc:02}") for query in range(len(TOPICS)) for doc in range(4 * len(TOPICS))]
    name, said = tiny(work), [chance.choice("SABCD") for _ in pairs]
    panel = {"one": said, "two": said, "three": [chance.choice("SABCD") for _ in pairs]}
    rows = [(*pair, grade, judge) for judge, grades in panel.items() for pair, grade in zip(pairs, grades, strict=True)]
    header = "query_id\tdoc_id\tgrade\tjudge\n"
    (work / "said.tsv").write_text(header + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    of = {"one": ", family: kin", "two": ", family: kin", "three": ""}
    words = [f"judges.{who}={{kind: replay, path: said.tsv, assessor: {who}{kin}}}" for who, kin in of.items()]
    words.append("judge.models=[one, two, three]")
    done = curate(work, "run", name, *(f"--set={each}" for each in words))
    assert done.returncode == 0, done.stderr
    (work / "news").write_text(done.stdout + done.stderr, encoding="utf-8")
    return work


def found(folder: Path, *words: str) -> Any:
    return machine.data(curate(folder, *words, "--json").stdout)


def test_the_export_warns_and_writes_it_down(folder: Path) -> None:
    news = (folder / "news").read_text(encoding="utf-8")
    assert f"export: note: WARNING: {NEAR}" in news
    assert f"export: note: WARNING: {KIN}" in news
    for card in (CARD, CARD.parent / "retrieval/README.md"):
        head = (folder / card).read_text(encoding="utf-8").split("\n## ")[0]
        assert "> **Judges that are not independent.** " in head
        assert NEAR in head
        assert KIN in head
    assert f"\n{UNKNOWN.capitalize()}.\n" in (folder / CARD).read_text(encoding="utf-8")
    for kind in ("mteb", "beir", "trec"):
        written = json.loads((folder / "runs/tiny/export" / kind / "MANIFEST.json").read_text("utf-8"))["dependence"]
        assert (written["clones"], written["families"]) == ([["one", "two"]], {"kin": ["one", "two"]})
        assert written["effective"] is None
        assert written["warnings"][0].startswith(NEAR)


def test_agree_check_and_page_say_it_in_the_same_words(folder: Path) -> None:
    page = (folder / PAGE).read_text(encoding="utf-8")
    for words in (("agree",), ("check", "judge")):
        said = curate(folder, *words)
        assert said.returncode == 0, said.stderr
        assert {NEAR, KIN, UNKNOWN} == {text for text in (NEAR, KIN, UNKNOWN) if text in said.stdout}, words
    assert {NEAR, KIN, UNKNOWN} == {text for text in (NEAR, KIN, UNKNOWN) if text in page}
    assert "几乎相同的评审：one 与 two（同属 kin 模型系列、40 项中 100.0% 等级相同" in page
    common = found(folder, "agree")["dependence"]
    checked = found(folder, "check", "judge")["panel"]
    assert {name: checked[name] for name in ("clones", "families", "effective", "not_measured")} == {
        name: common[name] for name in ("clones", "families", "effective", "not_measured")
    }


def test_what_was_not_measured_is_not_no(folder: Path) -> None:
    """Replayed grades have no place in a prompt, nobody was asked controls, and there is no legacy set."""
    figures = found(folder, "check", "judge")
    assert {each["position"]["biased"] for each in figures["judges"].values()} == {None}
    assert figures["gate"]["failed"] is None
    said = curate(folder, "check", "judge").stdout
    rows = said.split("position in the prompt, as judged\n")[1].split("\n\n")[0].splitlines()[1:]
    assert [row.split()[:6] for row in rows] == [
        [name, *["not", "measured", "0", "not", "measured"]] for name in ("one", "two", "three")
    ]


def test_both_languages_have_the_same_words() -> None:
    zh, en = (strings(language)["dependence"] for language in ("zh", "en"))
    assert zh.keys() == en.keys()
    for name in ("who", "reasons"):
        assert zh[name].keys() == en[name].keys()


def test_one_category_is_by_definition_on_page_and_card(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run as it is, and the agreement of judges who all gave a D: nothing is told of them by a 1."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CURATE_HOME", str(folder / "home"))
    context = Run(folder / "runs/tiny", Pipeline.load(folder / "runs/tiny/pipeline.yaml")).beside("report")
    shown = report.gather(ReportConfig(), context)
    same = agreement_figures.on_grades(np.full((9, 3), 4), ["a", "b", "c"], np.arange(9) % 3, FIVE, seed=1)
    agreed = {**shown.agreed, **same.to_json()}
    written = page(replace(shown, agreed=agreed), "en", "zh")
    card = card_facts.facts(context, {**agreed, "rerank": None}, card_facts.dependence(context), 0)["agreement"]
    assert isinstance(card, dict)
    for level in ("grades", "relevant or not"):
        assert card[f"percent agreement, {level}"] == "1, by definition: one category only"
        assert card[f"Fleiss' kappa, {level}"] == "not defined"
    row = written.split('<th scope="row">percent agreement</th>')[1].split("</tr>")[0]
    assert row.count("1, by definition: one category only") == 2
    assert "1（按定义：只用到一个类别）" in written


def test_with_people_the_effective_number_stands_everywhere(folder: Path) -> None:
    """People make the page and the export stale, which both count errors against them."""
    assert curate(folder, "review", "export", "--size", "30", "--controls", "0").returncode == 0
    (sheet,) = (folder / "runs/tiny/reviews/expert/sheets").glob("*.csv")
    filled(sheet, "S")
    taken = curate(folder, "review", "import", str(sheet))
    assert taken.returncode == 0, taken.stderr
    for stage in ("export", "report"):
        assert curate(folder, stage).returncode == 0
    common = found(folder, "agree")["dependence"]
    worth = common["effective"]
    pairs = [each["errors"] for each in common["together"]]
    assert worth["judges"] == 3
    assert worth["rho"] == pytest.approx(sum(pairs) / 3, abs=1e-5)
    assert worth["value"] == pytest.approx(3 / (1 + 2 * worth["rho"]), abs=1e-4)
    said = f"effective number of judges: {worth['value']:.2f} of 3 (errors correlate at {worth['rho']:.2f})"
    checked = curate(folder, "check", "judge").stdout
    assert said in checked
    assert said in (folder / PAGE).read_text(encoding="utf-8")
    assert "near-identical judges: one and two: one family (kin), errors correlate at 1.00" in checked
    assert said.capitalize() in (folder / CARD).read_text(encoding="utf-8")
    truth = grades_file(folder / "truth.tsv", [("q0", f"d{doc:02}", "SD"[doc % 2]) for doc in range(20)])
    assert found(folder, "agree", "--truth", str(truth))["dependence"]["effective"]["value"] != worth["value"]


def test_a_file_with_clones_is_not_printed_bare(tmp_path: Path) -> None:
    """Three copies of which each differs once: kappa is .99, and that is said to prove little."""
    chance = random.Random(5)
    base = [chance.choice("0123") for _ in range(400)]
    copies = [[str(3 - int(each)) if row == place else each for row, each in enumerate(base)] for place in range(3)]
    lines = [",".join((str(row), *each)) for row, each in enumerate(zip(*copies, strict=True))]
    (tmp_path / "c.csv").write_text("\n".join(["item,a,b,c", *lines]), encoding="utf-8")
    said = curate(tmp_path, "agree", "c.csv").stdout
    assert said.count("near-identical raters: ") == 3
    assert "near-identical raters: a and b: 99.5% of 400 ratings equal, kappa 0.993, at least 0.97" in said
    assert "raters that err alike agree: kappa of such a panel says little of its quality" in said
    assert "effective number of raters: not measured (no grades by people of what all of them rated)" in said
    figures = found(tmp_path, "agree", "c.csv")
    assert figures["dependence"]["clones"] == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert len(figures["dependence"]["warnings"]) == 4


def test_a_file_with_two_models_of_one_family_warns(tmp_path: Path) -> None:
    rows = ["item,gpt-4o,openai/gpt-4o-mini,qwen-plus", "1,a,b,a", "2,b,b,b", "3,a,a,b"]
    (tmp_path / "f.csv").write_text("\n".join(rows), encoding="utf-8")
    assert "raters of one family (gpt): gpt-4o, openai/gpt-4o-mini\n" in curate(tmp_path, "agree", "f.csv").stdout
    (tmp_path / "f.csv").write_text("\n".join(["item,rater-1,rater-2", *(row[:5] for row in rows[1:])]), "utf-8")
    assert "family" not in curate(tmp_path, "agree", "f.csv").stdout


def test_errors_in_a_file_are_counted_against_its_people(tmp_path: Path, shared_data: Path) -> None:
    """Five real judges beside a person: on the cut three of them err alike, and together they are worth 1.3."""
    file = str(shared_data / "multirater" / "llmjudge_8queries_5judges.csv")
    bare = found(tmp_path, "agree", file)
    assert (bare["truth"], len(bare["raters"]), bare["dependence"]["warnings"]) == ("human", 5, [])
    cut = found(tmp_path, "agree", file, "--positive", "2,3,5")["dependence"]
    assert (round(cut["effective"]["rho"], 3), round(cut["effective"]["value"], 2)) == (0.684, 1.34)
    assert len(cut["clones"]) == 3
    steps = found(tmp_path, "agree", file, "--scale", "interval")["dependence"]
    assert round(steps["effective"]["rho"], 3) == 0.694
