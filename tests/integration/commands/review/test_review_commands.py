"""`curate review` as a user types it, on a run that was really made."""

import csv
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest

from curate.core.scale import FIVE
from curate.system.files import read_meanings
from curate.web.run_state import state_of
from tests.support import machine
from tests.support.pools import table
from tests.support.runs import Done, curate, tiny


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    tiny(folder)
    done = curate(folder, "run", "tiny.yaml", "--set", "export.formats=[beir]")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "work"))


def filled(path: Path, grade: str) -> None:
    """Write one grade into every row of a sheet, as a spreadsheet in GB18030 would save it."""
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
    at = rows[0].index("等级")
    for row in rows[1:]:
        row[at] = grade
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=";").writerows(rows)
    path.write_bytes(stream.getvalue().encode("gb18030"))


def test_out_and_back_and_what_it_proves(folder: Path) -> None:
    plan = curate(folder, "review", "export", "--size", "30", "--plan")
    assert plan.returncode == 0, plan.stderr
    assert plan.stdout.startswith("30 of 40 pairs; half widths are those of 95% intervals\n")
    lines = plan.stdout.splitlines()
    assert lines[1] == "drawn for: precision of the positives; recall of relevant pairs in the pool"
    at = next(place for place, line in enumerate(lines) if line.startswith("share of"))
    assert [line.split("  ")[0] for line in lines[at + 1 : at + 4]] == [
        "precision of the positives",
        "recall of relevant pairs in the pool",
        "agreement with the panel, of all decided pairs",
    ]
    design = machine.data(curate(folder, "review", "export", "--size", "30", "--plan", "--json").stdout)
    assert sum(each["drawn"] for each in design["strata"]) == 30
    assert list(design["aims"]) == ["precision", "recall"]
    margins = curate(folder, "review", "export", "--margin", "precision=0.3", "--margin", "recall=0.35", "--plan")
    assert "drawn for: precision of the positives (half width 0.3 at most); recall of" in margins.stdout, margins.stderr
    assert not (folder / "runs" / "tiny" / "reviews").exists(), "a plan writes nothing"

    order = ["--size", "30", "--assessors", "wang,李", "--overlap", "0.5", "--controls", "2", "--format", "csv,xlsx"]
    out = curate(folder, "review", "export", *order)
    assert out.returncode == 0, out.stderr
    sheets = [folder / line for line in out.stdout.split()]
    assert [path.name for path in sheets] == ["wang.csv", "wang.xlsx", "李.csv", "李.xlsx", "GUIDE.html"]
    blind = sheets[0].read_text(encoding="utf-8-sig")
    meanings = read_meanings(folder / "runs" / "tiny" / "judge")
    guide = sheets[-1].read_text(encoding="utf-8")
    assert meanings
    assert all(text in guide for by_grade in meanings.values() for text in by_grade.values()), "as the judges read them"
    assert re.search(r"^rows to read: wang \d+, 李 \d+, 1\d by both; each fills in one file$", out.stderr, re.MULTILINE)
    assert not any(word in blind for word in ("lexical", "strict", "contested", "relevant", "stratum"))

    handed = machine.data(curate(folder, "review", "export", "--format", "csv,xlsx", "--json").stdout)
    assert [folder / each for each in handed["files"]] == sheets, "the sheets of the sample that there is"

    filled(sheets[0], "ｓ")
    filled(sheets[2], "D")
    taken = curate(folder, "review", "import", str(sheets[0]), str(sheets[2]))
    assert taken.returncode == 0, taken.stderr
    assert taken.stdout.count("answers") == 2
    again = machine.data(curate(folder, "review", "import", str(sheets[0]), str(sheets[2]), "--json").stdout)
    assert [each["new"] for each in again] == [0, 0], "the same file twice says nothing new"

    proof = machine.data(curate(folder, "review", "report", "--json").stdout)
    assert (proof["rows"], proof["read"]) == (30, 30)
    assert proof["people"]["wang"]["controls"]["value"] == 0.0
    assert proof["people"]["李"]["controls"]["value"] == 1.0
    shown = curate(folder, "review", "report").stdout
    assert "kappa of lexical and people, cut" in shown
    counts = [proof[f"disagreements{which}"] for which in ("", "_with_panel", "_between_people")]
    assert counts[2] == 15, "of the half that both read, one said S and the other D"
    sides = "{} of wang and 李 with the panel, {} of people with each other; a row can be both".format(*counts[1:])
    assert f"open disagreements: {counts[0]} ({sides})\n" in shown

    disputed = machine.data(curate(folder, "review", "adjudicate", "--json").stdout)
    sheet = folder / disputed["file"]
    assert "李: D" in sheet.read_text(encoding="utf-8-sig"), "an adjudicator sees what was said"
    filled(sheet, "A")
    final = curate(folder, "review", "adjudicate", str(sheet), "--json")
    assert [each["assessor"] for each in machine.data(final.stdout)] == ["adjudicated"], final.stderr
    done = curate(folder, "resolve", "--set", "resolve.policy=expert-over-panel")
    assert done.returncode == 0, done.stderr
    overrides = table(folder / "runs" / "tiny", "resolve", "overrides")
    assert len(overrides) > 0
    assert set(overrides["verdict"]) <= {"relevant", "not relevant", "contested"}
    settled = overrides.filter(overrides["assessors"].list.contains("adjudicated"))
    assert all(set(grades) <= FIVE.relevant for grades in settled["grades"].to_list())


def test_a_single_assessor_disagrees_with_the_panel_and_nobody_else(folder: Path) -> None:
    out = curate(folder, "review", "export", "--size", "30", "--assessors", "anna", "--controls", "0")
    sheet = folder / out.stdout.split()[0]
    filled(sheet, "D")
    assert curate(folder, "review", "import", str(sheet)).returncode == 0
    proof = machine.data(curate(folder, "review", "report", "--json").stdout)
    against = proof["disagreements"]
    assert against == proof["disagreements_with_panel"] > proof["disagreements_between_people"] == 0
    advice, shown = curate(folder, "review", "report").stdout.split("\n", 1)
    assert advice.startswith("sample expert: do not publish: the readers confirmed 0 %")
    assert advice.endswith("of the panel's positives")
    assert f"sample expert: {proof['advice']}" == advice
    assert shown.startswith(f"30 of 30 rows read\nopen disagreements: {against} ({against} of anna with the panel)\n")


def test_who_has_read_nothing_disagrees_with_nobody(folder: Path) -> None:
    out = curate(folder, "review", "export", "--size", "30", "--assessors", "anna,li", "--controls", "0")
    said = curate(folder, "review", "report").stdout.splitlines()
    assert said[0].startswith("sample expert: do not publish: nobody has read a row of this sample")
    assert said[2].endswith("(0 of nobody with the panel)")
    sheet = next(folder / line for line in out.stdout.split() if line.endswith("anna.csv"))
    filled(sheet, "D")
    assert curate(folder, "review", "import", str(sheet)).returncode == 0
    later = curate(folder, "review", "report").stdout.splitlines()[2]
    assert later.endswith(" of anna with the panel)"), later


def marked(sheet: Path, first: str, second: str) -> None:
    """Answer the first two rows of a sheet with these, all others with D."""
    filled(sheet, "D")
    text = sheet.read_bytes().decode("gb18030").replace(";D;", f";{first};", 1).replace(";D;", f";{second};", 1)
    sheet.write_bytes(text.encode("gb18030"))


def next_of(said: str) -> str:
    """Return the command behind `next`."""
    return next(line for line in said.splitlines() if line.startswith("next: ")).removeprefix("next: ")


def typed(folder: Path, line: str) -> Done:
    """Run a printed command."""
    return curate(folder, *shlex.split(line)[1:])


def test_every_command_of_a_review_names_the_next_one(folder: Path) -> None:
    ended = curate(folder, "run", "tiny.yaml", "--set", "export.formats=[beir]").stdout
    assert "curate judge --run runs/tiny" in next_of(ended), "heuristics alone judged, and nobody reads yet"
    plan = curate(folder, "review", "export", "--run", "runs/tiny", "--size", "40", "--plan", "--assessors", "anna,ben")
    drawn = typed(folder, next_of(plan.stdout))
    assert drawn.returncode == 0, drawn.stderr
    opened = next_of(drawn.stderr)
    assert opened == "curate review serve --run runs/tiny --sample expert"
    assert "    40 of 40 rows are open" in drawn.stderr
    sheets = [folder / line for line in drawn.stdout.split() if line.endswith(".csv")]
    blank = sheets[0].read_bytes()
    marked(sheets[0], "?", "")
    filled(sheets[1], "D")
    first = curate(folder, "review", "import", "--run", "runs/tiny", str(sheets[0]))
    rows = len(sheets[0].read_bytes().decode("gb18030").splitlines()) - 1
    assert f"anna: {rows - 2} answers, 1 cannot judge, 1 empty; {rows - 2} new\n" in first.stdout
    sheets[0].write_bytes(blank)
    filled(sheets[0], "S")
    both = curate(folder, "review", "import", "--run", "runs/tiny", *map(str, sheets))
    assert next_of(both.stdout) == "curate review adjudicate --run runs/tiny --sample expert"
    assert " labels become what people say" in both.stdout
    disputed = typed(folder, next_of(both.stdout))
    sheet = folder / disputed.stdout.partition(": ")[0]
    said = re.search(
        r": (\d+) rows: (\d+) on which readers differ, (\d+) on which only the panel does\n",
        disputed.stdout,
    )
    assert said, disputed.stdout
    assert int(said[1]) == int(said[2]) + int(said[3])
    assert f"readers differ on {said[2]} rows" in both.stdout
    refused = curate(folder, "review", "adjudicate")
    assert refused.returncode == 0, "the same sheet, not filled in"
    filled(sheet, "S")
    assert "perhaps filled in; read it (`curate review adjudicate" in curate(folder, "review", "adjudicate").stderr
    ruled = typed(folder, next_of(disputed.stdout))
    assert "final answers: " in ruled.stdout, ruled.stderr
    sheet.unlink()
    nothing = curate(folder, "review", "adjudicate")
    assert nothing.stdout.startswith("nothing is disputed"), nothing.stderr
    assert not sheet.exists()
    resolved = curate(folder, "resolve", "--run", "runs/tiny", "--set", "resolve.policy=expert-over-panel")
    assert next_of(resolved.stdout) == "curate run runs/tiny/pipeline.yaml --run runs/tiny"
    exported = curate(folder, "export", "--run", "runs/tiny")
    assert "report: " not in exported.stdout, "the page is of earlier labels"
    assert next_of(exported.stdout) == "curate report --run runs/tiny"
    reported = typed(folder, next_of(exported.stdout))
    assert "report: runs/tiny/report.html" in reported.stdout
    assert next_of(reported.stdout) == next_of(curate(folder, "review", "report").stdout)


def test_open_personal_data_is_named_before_every_other_step_and_shown_with_its_texts(folder: Path) -> None:
    drawn = curate(folder, "review", "export", "--size", "40", "--assessors", "anna,ben", "--controls", "0")
    sheets = [folder / line for line in drawn.stdout.split() if line.endswith(".csv")]
    marked(sheets[0], "!", "D")
    lines = sheets[0].read_bytes().decode("gb18030").splitlines()
    flagged = lines[1].partition(";")[0]
    lines[1] = lines[1].replace(";!;", ";!;a name;")
    sheets[0].write_bytes("\r\n".join(row.replace(";a name;;", ";a name;") for row in lines).encode("gb18030"))
    filled(sheets[1], "D")
    taken = curate(folder, "review", "import", *map(str, sheets))
    asked = "curate review flags --run runs/tiny --sample expert"
    assert next_of(taken.stdout) == asked, taken.stderr
    assert "    personal data that assessors flagged in 1 rows" in taken.stdout
    assert next_of(curate(folder, "review", "report").stdout).startswith(asked)
    shown = typed(folder, next_of(taken.stdout))
    survey = table(folder / "runs" / "tiny", "reviews/expert", "survey").filter(row_id=flagged)
    (ids,), (texts,) = survey["ids"].to_list(), survey["texts"].to_list()
    assert f"{flagged}  {ids[0]}  {ids[1]}\n  备注 (anna): a name\n  查询: {texts[0]}\n  段落: " in shown.stdout
    assert texts[1][:20] in shown.stdout
    ways = [f"{asked} --settle {flagged} --as {way}" for way in ("harmless", "masked")]
    assert [line[6:] for line in shown.stdout.splitlines()[-4::2]] == ways
    assert (False, "no open flag of personal data") in state_of(folder / "runs/tiny", "en").conditions
    settled = typed(folder, next_of(shown.stdout))
    assert settled.stdout.startswith(
        f"{flagged}: 1 flags settled as harmless\nno open flag\nnext: curate run runs/tiny/"
    )
    assert (True, "no open flag of personal data") in state_of(folder / "runs/tiny", "en").conditions


def test_a_second_sample_has_other_rows_and_a_report_says_which_sample_it_is_of(folder: Path) -> None:
    first = curate(folder, "review", "export", "--size", "30", "--controls", "0", "--assessors", "anna")
    sheet = folder / first.stdout.split()[0]
    filled(sheet, "D")
    assert curate(folder, "review", "import", str(sheet)).returncode == 0
    again = curate(folder, "review", "export", "--size", "30", "--controls", "0", "--sample", "again")
    assert "no controls were planted: none were asked for" in again.stderr
    drawn = [
        table(folder / "runs" / "tiny", f"reviews/{name}", "survey")["ids"].to_list() for name in ("expert", "again")
    ]
    assert drawn[0] != drawn[1], "the same seed would draw the same rows"
    said = curate(folder, "review", "report").stdout.splitlines()
    assert said[0].startswith("sample again: do not publish: nobody has read a row")
    assert said[1].startswith(
        "sample expert holds answers to 30 rows: `curate review report --run runs/tiny --sample e"
    )
    assert not any(line.startswith("controls right") for line in said)
    assert "no controls were planted: none were asked for; nothing shows how carefully people read" in said


def test_sheets_of_a_sample_can_be_written_again_in_another_format(folder: Path) -> None:
    assert curate(folder, "review", "export", "--size", "30", "--sample", "first").returncode == 0
    again = curate(folder, "review", "export", "--sample", "first", "--format", "xlsx,csv", "--out", "more")
    assert again.returncode == 0, again.stderr
    assert again.stdout.split() == ["more/assessor.xlsx", "more/assessor.csv", "more/GUIDE.html"]
    before = folder / "runs" / "tiny" / "reviews" / "first" / "sheets" / "assessor.csv"
    assert (folder / "more" / "assessor.csv").read_bytes() == before.read_bytes()
    other = curate(folder, "review", "export", "--size", "40", "--sample", "first")
    assert other.returncode == 2
    assert "choose another --sample" in other.stderr


def test_what_is_wrong_with_a_sheet_is_said_by_line_and_nothing_is_taken(folder: Path) -> None:
    out = curate(folder, "review", "export", "--size", "30")
    sheet = folder / out.stdout.split()[0]
    filled(sheet, "E")
    refused = curate(folder, "review", "import", str(sheet))
    assert refused.returncode == 2
    signs = r"\? \(cannot judge\), ! \(personal data\)"
    assert re.search(
        rf":2 \(r00001-[a-z]{{6}}\), column 等级\nexpected one of S, A, B, C, D, {signs}, got 'E'\n",
        refused.stderr,
    )
    assert refused.stderr.endswith(f"try: curate review import {sheet} --keep-good-rows\n")
    assert "Traceback" not in refused.stderr
    assert machine.data(curate(folder, "review", "report", "--json").stdout)["read"] == 0


def test_a_size_that_is_too_small_names_the_least_that_works(folder: Path) -> None:
    order = ["review", "export", "--assessors", "wang,li", "--overlap", "0.5", "--controls", "2", "--size"]
    refused = curate(folder, *order, "1")
    assert refused.returncode == 2
    [least] = re.findall(r"use --size (\d+)$", refused.stderr.strip())
    one_less = curate(folder, *order, str(int(least) - 1))
    assert (one_less.returncode, f"use --size {least}" in one_less.stderr) == (2, True)
    assert curate(folder, *order, least).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["export"], "either --size N or --margin M"),
        (["export", "--size", "30", "--format", "pdf"], "known: csv, xlsx"),
        (["export", "--target", "recall"], "either --size N or --margin M"),
        (["report", "--sample", "nobody"], "no such sample"),
        (["serve", "--host", "0.0.0.0"], "no sample was drawn yet"),
        (["import", "nothing.csv"], "no sample was drawn yet"),
    ],
)
def test_a_mistake_is_a_sentence(folder: Path, words: list[str], said: str) -> None:
    done = curate(folder, "review", *words)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "runs" / "tiny" / "reviews").exists(), "no sample was frozen"
