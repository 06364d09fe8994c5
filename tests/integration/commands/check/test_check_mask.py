"""`curate check mask`: the sample, its sheets out and back, and the figures, also where the truth is known."""

import csv
import io
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import polars as pl
import pytest
import yaml

from curate.commands.check import mask as checks
from curate.commands.check.mask_sample import LEAST, MASKED, MOST, Wish, draw, newest
from curate.core.errors import ConfigError, DataError, UserError
from curate.panel import sampling_design
from curate.review import Answer, Desk, Sample
from curate.review.forms import form, meanings
from curate.system import files, resources
from tests.conftest import need
from tests.integration.review.test_libreoffice import SAVED, convert
from tests.support import machine
from tests.support.defined import defined
from tests.support.reviewing import served
from tests.support.runs import Done, curate, ran

SECRET = "13912345678"
LEFT = "微信laowang1987"
"""Personal data that the recognisers here do not know."""
MASK = "mask: {recognisers: [mobile]}\n"


def run(folder: Path, queries: int = 60, documents: int = 400, every: int = 4, settings: str = MASK) -> Path:
    """Return a run whose stage `mask` is done: every so many texts hold a number; two hold more than was found."""
    data = folder / "data"
    data.mkdir(parents=True)
    for name, count in (("queries", queries), ("corpus", documents)):
        texts = [f"{name}第{n}条" + (f"请打{SECRET}" if n % every == 0 else "少吃盐") for n in range(count)]
        texts[1] += LEFT
        rows = [{"_id": f"{name[0]}{n}", "text": text} for n, text in enumerate(texts)]
        (data / f"{name}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    (folder / "p.yaml").write_text(f"version: 1\nname: p\nseed: 5\ningest: {{source: data}}\n{settings}")
    for stage in ("ingest", "mask"):
        ran(folder, stage, "--pipeline", "p.yaml")
    return folder / "runs" / "p"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    run(folder)
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "work"))


def rows(sheet: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(sheet.read_text(encoding="utf-8-sig"), newline="")))


def save(path: Path, table: list[list[str]]) -> Path:
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=";").writerows(table)
    path.write_bytes(stream.getvalue().encode("gb18030"))
    return path


def filled(sheet: Path, answer: Callable[[str, str], str]) -> Path:
    """Answer every row of a sheet by its text and what was masked in it, and save it as a spreadsheet would."""
    head, *table = rows(sheet)
    for row in table:
        row[3] = answer(row[1], row[2])
    return save(sheet.with_name("back.csv"), [head, *table])


def truth(text: str, _masked: str) -> str:
    return "leak" if LEFT in text else "clean"


def figures(done: Done) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = machine.data(done.stdout)
    return found


def test_a_sheet_out_and_back_and_what_is_said(folder: Path) -> None:
    out = ran(folder, "check", "mask")
    sheet = folder / "runs/p/checks/mask/1/sheets/assessor.csv"
    assert out.stdout == (
        "sheet: runs/p/checks/mask/1/sheets/assessor.csv\nsample 1: 0 of 100 texts read\n"
        "fill in the sheets, then: curate check mask SHEET\n"
    )
    head, *table = rows(sheet)
    assert head == ["编号", "文本", "已遮盖", "判断", "备注", "评审人"]
    assert len(table) == 100
    assert {row[2] for row in table if "[电话]" in row[1]} == {"[电话] 1"}
    assert {row[2] for row in table if "[电话]" not in row[1]} == {""}
    assert SECRET not in sheet.read_text(encoding="utf-8-sig")
    assert "PRIVACY" in resources.find("annotations", "PRIVACY.md").name
    assert "隐私检查指南" in (sheet.parent / "GUIDE.html").read_text()

    clean = filled(sheet, lambda _text, _masked: "无问题")
    back = curate(folder, "check", "mask", str(clean))
    assert "back.csv: assessor: 100 answers; 100 new" in back.stdout
    said = json.loads((folder / "runs/p/checks/mask.json").read_text())
    high = f"{100 * said['leak']['high']:.1f}"
    assert f"texts in which personal data is left: 0 of 100 read: at most {high} % at 95 %" in back.stdout
    assert curate(folder, "check", "mask", str(clean)).stdout.count("100 answers; 0 new") == 1

    signed = filled(sheet, lambda text, _masked: "！" if LEFT in text else "clean")
    found = figures(curate(folder, "check", "mask", str(signed), "--json"))
    leaks = sum(LEFT in row[1] for row in table)
    assert found["leak"]["hits"] == leaks == len(found["faulty"])
    assert set(found["faulty"].values()) <= {"leak"}
    assert found["changed"]["hits"] == 0


def test_every_stratum_is_drawn_from_and_the_same_seed_draws_the_same(folder: Path) -> None:
    one = draw(folder / "runs/p", Wish(seed=3))
    two = draw(folder / "runs/p", Wish(seed=3))
    other = draw(folder / "runs/p", Wish(seed=4))
    assert one.survey["ids"].to_list() == two.survey["ids"].to_list() != other.survey["ids"].to_list()
    assert set(one.rows).isdisjoint(two.rows)  # a sheet of one is no sheet of the other
    sizes = {stratum.name: stratum.size for stratum in one.design.strata}
    assert sizes == {
        "corpus, nothing masked": 300,
        "corpus, something masked": 100,
        "queries, nothing masked": 45,
        "queries, something masked": 15,
    }
    counts = dict(one.survey.group_by("stratum").len().iter_rows())
    assert counts == {stratum.name: stratum.drawn for stratum in one.design.strata}
    assert sum(counts.values()) == LEAST
    assert min(counts.values()) >= 10
    masked = one.survey.filter(pl.col("stratum").str.ends_with(MASKED))["texts"].to_list()
    assert all(SECRET not in text and "[电话]" in text for text, _ in masked)


@pytest.mark.parametrize(
    ("wish", "texts", "drawn"),
    [
        (Wish(), 50, 50),
        (Wish(), 5_000, LEAST),
        (Wish(), 50_000, 500),
        (Wish(), 10_000_000, MOST),
        (Wish(most=300), 50_000, 300),
        (Wish(most=60), 50_000, 60),
        (Wish(size=7), 50_000, 7),
    ],
)
def test_one_per_cent_within_its_bounds(wish: Wish, texts: int, drawn: int) -> None:
    assert wish.of(texts) == drawn


def answered(sample: Sample, answers: Mapping[str, str]) -> Desk:
    desk = Desk(sample)
    desk.record("assessor", [Answer(row, answer) for row, answer in answers.items()])
    return desk


def test_nothing_of_a_hundred_is_at_most_three_point_seven_per_cent(tmp_path: Path) -> None:
    found = run(tmp_path, queries=2, documents=5_000, every=10**6)
    sample = draw(found, Wish())
    said = checks.check(found, answered(sample, dict.fromkeys(sample.rows, "clean"))).to_json()
    leak: Any = said["leak"]
    assert leak["hits"] == leak["value"] == 0
    assert leak["high"] == pytest.approx(0.037, abs=0.002)
    back = curate(tmp_path, "check", "mask")
    assert f"0 of 100 read: at most {100 * leak['high']:.1f} % at 95 %" in back.stdout


def test_faults_are_weighted_by_their_strata(folder: Path) -> None:
    found = folder / "runs/p"
    sample = draw(found, Wish())
    placed = dict(sample.survey.select("row_id", "stratum").iter_rows())
    wrong = next(row for row, stratum in placed.items() if stratum == f"corpus, {MASKED}")
    both = next(row for row, stratum in placed.items() if stratum == f"queries, {MASKED}")
    strange = next(row for row, stratum in placed.items() if stratum == "corpus, nothing masked")
    answers = {**dict.fromkeys(placed, "clean"), wrong: "changed", both: "both", strange: "changed"}
    said: Any = checks.check(found, answered(sample, answers)).to_json()
    drawn = {stratum.name: stratum.drawn for stratum in sample.design.strata}
    corpus, queries = 100 / drawn[f"corpus, {MASKED}"], 15 / drawn[f"queries, {MASKED}"]
    assert said["changed"]["value"] == pytest.approx((corpus + queries) / 460, abs=1e-6)
    assert said["changed_of_masked"]["value"] == pytest.approx((corpus + queries) / 115, abs=1e-6)
    assert said["leak"]["value"] == pytest.approx(queries / 460, abs=1e-6)
    assert said["changed"]["read"] == drawn[f"corpus, {MASKED}"] + drawn[f"queries, {MASKED}"]
    assert said["contradictions"] == [strange]


def test_a_stratum_that_nobody_read_leaves_the_figure_undefined(folder: Path) -> None:
    found = folder / "runs/p"
    sample = draw(found, Wish())
    placed = dict(sample.survey.select("row_id", "stratum").iter_rows())
    some = {row: "clean" for row, stratum in placed.items() if stratum.endswith(MASKED)}
    said: Any = checks.check(found, answered(sample, some)).to_json()
    assert said["leak"] is None
    assert said["changed"]["high"] < 0.1
    assert (
        "personal data is left: not defined until a text of every stratum is read"
        in curate(folder, "check", "mask").stdout
    )


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ({1: "张三的电话是" + SECRET}, "文本: found a text that was edited, from character 1 on"),
        ({3: "张三"}, "判断: found a text of 2 characters, expected one of clean, leak, changed, both"),
        ({3: SECRET}, "判断: found a text of 11 characters"),
        ({5: "张三丰"}, "评审人: found a text of 3 characters, expected 'assessor'"),
        ({0: SECRET}, "编号: found a text of 11 characters"),
    ],
)
def test_a_mangled_row_is_held_back_and_nothing_of_it_is_said(folder: Path, damage: dict[int, str], said: str) -> None:
    curate(folder, "check", "mask")
    sheet = folder / "runs/p/checks/mask/1/sheets/assessor.csv"
    head, *table = rows(sheet)
    for row in table:
        row[3] = "clean"
    for column, cell in damage.items():
        table[0][column] = cell
    back = ran(folder, "check", "mask", str(save(folder / "back.csv", [head, *table])))
    assert re.search(rf"back\.csv:2(?: \(\S+\))?, column {said}", back.stderr)
    assert "held back" in back.stderr
    assert "99 of 100 texts read" in back.stdout
    assert not {"张三", SECRET} & {word for word in ("张三", SECRET) if word in back.stdout + back.stderr}


def test_answers_outlive_another_masking(folder: Path) -> None:
    curate(folder, "check", "mask")
    sheet = folder / "runs/p/checks/mask/1/sheets/assessor.csv"
    curate(folder, "check", "mask", str(filled(sheet, truth)))
    ran(folder, "mask", "--pipeline", "p.yaml", "--set", "mask.placeholders=en")
    back = curate(folder, "check", "mask", "--sample", "1")
    assert "gives other texts by now" in back.stdout
    assert "sample 1: 100 of 100 texts read" in back.stdout
    assert "sample 2: 0 of 100 texts read" in curate(folder, "check", "mask").stdout
    assert "sample 3: 0 of 120 texts read" in curate(folder, "check", "mask", "--new", "--size", "120").stdout
    old = curate(folder, "check", "mask", str(sheet.with_name("back.csv")))
    assert old.stderr.count("held back") == 100  # it is no sheet of the newest sample


def test_several_people_share_the_texts_in_both_formats(folder: Path) -> None:
    ran(folder, "check", "mask", "--assessors", "wang, 李", "--format", "csv,xlsx")
    sheets = folder / "runs/p/checks/mask/1/sheets"
    ids = [{row[0] for row in rows(sheets / f"{person}.csv")[1:]} for person in ("wang", "李")]
    assert [len(each) for each in ids] == [50, 50]
    assert not ids[0] & ids[1]
    assert openpyxl.load_workbook(sheets / "李.xlsx").active["D1"].value == "判断"
    typed = (sheets / "wang.csv").read_bytes()
    (sheets / "wang.csv").write_bytes(typed.replace(b",,wang", b",clean,wang"))
    ran(folder, "check", "mask", "--format", "csv")
    assert b"clean" in (sheets / "wang.csv").read_bytes()


def test_a_text_that_no_cell_shows_whole_is_announced(tmp_path: Path) -> None:
    found = run(tmp_path, queries=2, documents=3)
    corpus = files.read_table(found / "mask", "corpus")
    longer = corpus.with_columns(text=pl.when(pl.col("doc_id") == "c2").then(pl.lit("盐" * 40_000)).otherwise("text"))
    files.write_table(found / "mask", "corpus", longer)
    assert "1 texts are longer than a cell of a spreadsheet shows; read them with --serve" in (
        curate(tmp_path, "check", "mask").stdout
    )


def test_what_cannot_be_done(folder: Path, tmp_path: Path) -> None:
    back = curate(folder, "check", "mask", str(folder / "p.yaml"))
    assert "no sample was drawn yet" in back.stderr
    with pytest.raises(ConfigError, match="expected names that differ"):
        draw(folder / "runs/p", Wish(assessors=("a", "a")))
    with pytest.raises(UserError, match="no such sample"):
        checks.desk(folder / "runs/p", Wish(), 9)
    shutil.rmtree(folder / "runs/p/mask")
    with pytest.raises(DataError, match="run the stage `mask` first"):
        draw(folder / "runs/p", Wish())
    assert newest(folder / "runs/p") is None


def test_the_page_asks_the_form_and_shows_its_guide(folder: Path) -> None:
    import httpx

    curate(folder, "check", "mask")
    with served(folder / "runs/p/checks/mask/1") as server, httpx.Client(follow_redirects=True) as client:
        client.get(server.address)
        page = client.get(f"{server.origin}/review/by/assessor").text
        assert re.findall(r'name="answer" value="(\w+)"', page) == ["clean", "leak", "changed", "both"]
        assert "仍有个人信息" in page
        assert "隐私检查指南" in client.get(f"{server.origin}/review/guide").text


def test_form_and_guide_speak_of_the_same_answers() -> None:
    for language in ("zh", "en"):
        asked = form("privacy", language)
        assert tuple(meanings(resources.guide(asked.guide), language)) == asked.answers
        assert asked.private


@pytest.mark.parametrize("name", SAVED)
def test_libreoffice_gives_back_what_was_typed(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    need(shutil.which("soffice") is not None, "LibreOffice (soffice)")
    ran(folder, "check", "mask", "--format", "xlsx")
    sheet = folder / "runs/p/checks/mask/1/sheets/assessor.xlsx"
    book = openpyxl.load_workbook(sheet)
    for row in defined(book.active).iter_rows(min_row=2):
        row[3].value = truth(str(row[1].value), "")
    book.save(folder / "assessor.xlsx")
    ending = Path(name).suffix
    saved = folder / f"saved{ending}"
    saved.write_bytes(convert(tmp_path_factory.mktemp("profile"), folder / "assessor.xlsx", SAVED[name], name))
    back = curate(folder, "check", "mask", str(saved))
    assert (back.returncode, back.stderr.replace("working in runs/p\n", "")) == (0, "")
    assert "100 answers; 100 new" in back.stdout


@pytest.mark.parametrize("size", [100, 500])
def test_the_intervals_hold_the_true_shares(size: int) -> None:
    """2,000 samples of 10,000 texts whose faults are known: at least 93 % of the 95 % intervals hold the truth."""
    texts = {
        f"corpus, {MASKED}": 900,
        "corpus, nothing masked": 8_100,
        f"queries, {MASKED}": 50,
        "queries, nothing": 950,
    }
    faults = {name: (texts[name] // 50, texts[name] // 20 if MASKED in name else 0) for name in texts}
    guesses = {name: 0.1 if MASKED in name else 0.02 for name in texts}
    drawn, chance, held = sampling_design.allocate(texts, guesses, size, 10), np.random.default_rng(3), Counter[str]()
    leaks, changes = (sum(fault[at] for fault in faults.values()) for at in (0, 1))
    truth = {"leak": leaks / 10_000, "changed": changes / 10_000, "changed_of_masked": changes / 950}
    for _ in range(2_000):
        parts = []
        for name, (leak, changed) in faults.items():
            counts = chance.multivariate_hypergeometric([leak, changed, texts[name] - leak - changed], drawn[name])
            answers = [
                word for word, count in zip(("leak", "changed", "clean"), counts, strict=True) for _ in range(count)
            ]
            parts.append(checks.Read(name, texts[name], answers))
        said: Any = checks.shares(parts)
        held.update(name for name, share in truth.items() if said[name].low <= share <= said[name].high)
    assert min(held.values()) >= 0.93 * 2_000, held


def test_a_fault_that_only_masked_texts_can_have_needs_masked_texts(tmp_path: Path) -> None:
    found = run(tmp_path, queries=3, documents=30, every=10**6, settings="mask: {enabled: false}\n")
    sample = draw(found, Wish())
    assert len(sample.rows) == 33
    said: Any = checks.check(found, answered(sample, dict.fromkeys(sample.rows, "clean"))).to_json()
    assert said["leak"]["high"] == 0  # everything was read
    assert said["changed"] is None


def test_the_settings_of_a_sample_are_in_its_design(folder: Path) -> None:
    curate(folder, "check", "mask", "--set", "seed=8")
    design = yaml.safe_load((folder / "runs/p/checks/mask/1/design.json").read_text())
    assert (design["form"], design["seed"], design["assessors"]) == ("privacy", 8, ["assessor"])


def test_no_secret_is_in_the_run_folder(folder: Path) -> None:
    curate(folder, "check", "mask")
    sheet = folder / "runs/p/checks/mask/1/sheets/assessor.csv"
    curate(folder, "check", "mask", str(filled(sheet, truth)))
    found = subprocess.run(["grep", "-ral", SECRET, str(folder / "runs")], capture_output=True, text=True, check=False)
    assert found.stdout == ""
