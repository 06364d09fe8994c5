"""`curate check mask --residual`: places are listed, decided by people, and the run goes on without them."""

import io
import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from curate.commands.check.check_residual import ask
from curate.commands.check.residual import ResidualDecisions, decide, listing
from curate.system import files
from tests.support import machine
from tests.support.runs import PIPELINE, Done, complaint, curate, ran, tiny
from tests.support.steps import beir, step

ONLY = ("--set", "mask.recognisers=[mobile]")
CHECK = ("check", "mask", "--residual")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run that stopped before its export: four places, in three documents."""
    folder = tmp_path_factory.mktemp("decisions")
    name, corpus = tiny(folder), folder / "data" / "corpus.jsonl"
    rows = [json.loads(line) for line in corpus.read_text("utf-8").splitlines()]
    rows[0]["text"] += "手机13912345678，加QQ 123456。\n电话号码\x1b[2J 7654321吧。"
    rows[1]["text"] += "姓名：王五。"
    rows[2]["text"] += "又加QQ 223456。"
    corpus.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    said = complaint(folder, "run", name, *ONLY)
    assert "curate check mask --residual --run" in " ".join(said.split())
    return folder


@pytest.fixture
def work(stopped: Path, tmp_path: Path) -> Path:
    shutil.copytree(stopped, tmp_path / "w")
    return tmp_path / "w"


def places(work: Path) -> list[tuple[str, str]]:
    """Return id and state of every place, by the numbers of the list."""
    said = ran(work, *CHECK, "--json")
    return [(place["id"], place["state"]) for place in machine.data(said.stdout)["places"]]


def test_places_of_a_pattern_are_accepted_together_and_a_code_shares_none_with_a_telephone(work: Path) -> None:
    listed = machine.data(ran(work, *CHECK, "--json").stdout)["places"]
    assert [place["pattern"] for place in listed] == ["QQ 999999", "J 9999999", "姓名：aa", "QQ 999999"]
    curate(work, *CHECK, "--accept-pattern", "QQ 999999")
    assert [state for _, state in places(work)] == ["accepted", "open", "open", "accepted"]


def text(work: Path, name: str) -> str:
    corpus = files.read_table(work / "runs" / "tiny" / "mask", "corpus")
    return str(corpus.filter(pl.col("doc_id") == name)["text"].item())


def again(work: Path) -> Done:
    return curate(work, "run", "tiny.yaml", *ONLY)


def test_places_are_listed_by_reason_with_their_surroundings(work: Path) -> None:
    said = curate(work, *CHECK).stdout
    assert "account: 2 places (2 open)" in said
    assert "digits: 1 places (1 open)" in said
    assert "name: 1 places (1 open)" in said
    assert "»123456«。 电话号码 [2J 7654321吧。" in said  # on one line, and no order to the terminal
    assert "\x1b" not in said
    assert places(work) == [("d00", "open"), ("d00", "open"), ("d01", "open"), ("d02", "open")]
    assert "123456" not in curate(work, *CHECK, "--json").stdout


def test_a_run_goes_on_once_every_place_is_decided(work: Path) -> None:
    some = curate(work, *CHECK, "--mask", "1", "--accept", "3", "--set", "by=wang")
    assert "1 places will be masked by the next run, 1 were accepted" in some.stdout
    assert places(work) == [("d00", "to be masked"), ("d00", "open"), ("d01", "accepted"), ("d02", "open")]
    assert again(work).returncode == 2
    assert text(work, "d00").endswith("手机[电话]，加QQ [号码]。\n电话号码\x1b[2J 7654321吧。")
    assert places(work) == [("d00", "masked"), ("d00", "open"), ("d01", "accepted"), ("d02", "open")]  # same numbers
    rest = curate(work, *CHECK, "--accept", "2", "--mask-all", "account")
    assert "every place is decided" in rest.stdout
    done = again(work)
    assert done.returncode == 0, done.stderr
    assert text(work, "d02").endswith("又加QQ [号码]。")
    run = work / "runs" / "tiny"
    card = (run / "export" / "mteb" / "README.md").read_text("utf-8")
    assert "Of the places that it listed, 2 were accepted and 2 masked by people." in card
    page = (run / "report.html").read_text("utf-8")
    assert "people accepted 2 and had 2 masked" in page
    assert "2 处由人确认无个人信息，2 处由人补充遮盖" in page
    spans = files.read_table(run / "mask", "spans").filter(pl.col("recogniser") == "person")
    assert spans.select("id", "kind").rows() == [("d00", "number"), ("d02", "number")]
    kept = (run / "checks" / "residual.jsonl").read_text("utf-8")
    assert len(kept.splitlines()) == 4
    assert json.loads(kept.splitlines()[0])["by"] == "wang"
    assert "23456" not in kept
    assert "王五" not in kept
    before = files.digests(run / "mask")
    assert "mask: up to date, skipped" in again(work).stderr
    shutil.rmtree(run / "mask")
    assert again(work).returncode == 0
    after = files.digests(run / "mask")
    assert {name: each for name, each in after.items() if name != "stage.json"} == {
        name: each for name, each in before.items() if name != "stage.json"
    }


def test_a_decision_can_be_taken_back_and_one_on_a_changed_text_counts_no_more(work: Path) -> None:
    curate(work, *CHECK, "--mask-all", "account", "--accept-pattern", "姓名：aa", "--accept-pattern", "J 9999999")
    assert again(work).returncode == 0
    curate(work, *CHECK, "--accept", "4")
    assert again(work).returncode == 0
    assert text(work, "d02").endswith("又加QQ 223456。")
    corpus = work / "data" / "corpus.jsonl"
    corpus.write_text(corpus.read_text("utf-8").replace("223456", "323456").replace("加QQ 123", "再加QQ 123"), "utf-8")
    changed = again(work)
    assert changed.returncode == 2
    assert "1 decisions to mask a place belong to texts that have changed" in changed.stderr
    assert places(work) == [("d00", "open"), ("d00", "open"), ("d01", "accepted"), ("d02", "open")]
    assert "3 decisions belong to places that are no more" in curate(work, *CHECK).stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--mask", "9"), "found the number 9, expected one of the list: 1 to 4"),
        (("--mask", "1-x"), "found '1-x', expected numbers"),
        (("--mask", "3-1"), "found '3-1', expected a range from the lower number on, such as 1-3"),
        (("--mask", "1,2", "--accept", "2"), "2: found both"),
        (("--accept-pattern", "nmae"), "no listed place has the pattern 'nmae'"),
        (("--accept-all", "name"), "--accept-pattern"),
    ],
)
def test_what_cannot_be_decided_decides_nothing(work: Path, words: tuple[str, ...], said: str) -> None:
    found = complaint(work, *CHECK, *words)
    assert said in found
    assert not (work / "runs" / "tiny" / "checks" / "residual.jsonl").exists()


def test_half_a_line_that_a_kill_has_left_is_none(work: Path) -> None:
    curate(work, *CHECK, "--mask", "1")
    kept = work / "runs" / "tiny" / "checks" / "residual.jsonl"
    kept.write_bytes(kept.read_bytes() + kept.read_bytes()[:40])
    curate(work, *CHECK, "--accept", "2")
    assert [state for _, state in places(work)] == ["to be masked", "accepted", "open", "open"]
    kept.write_text("no decision\n")
    damaged = curate(work, *CHECK)
    assert damaged.returncode != 0
    assert "residual.jsonl:1: no decision that can be read" in damaged.stderr


def test_a_text_that_was_merged_goes_with_the_one_that_people_decided_on(tmp_path: Path) -> None:
    same = "手机{}，加QQ {}吧"
    values = (("13912345678", "123456"), ("13812345678", "123456"), ("13712345678", "223456"))
    corpus = [{"_id": f"d{n}", "title": "", "text": same.format(*each)} for n, each in enumerate(values)]
    step(tmp_path / "run", "ingest", {"source": str(beir(tmp_path / "b", [{"_id": "q1", "text": "病"}], corpus))})
    only = {"recognisers": ["mobile"]}
    step(tmp_path / "run", "mask", only)
    (tmp_path / "run" / "pipeline.yaml").write_text(PIPELINE, "utf-8")
    assert [place.id for place in listing(tmp_path / "run").places] == ["d0", "d2"]
    decide(listing(tmp_path / "run"), ResidualDecisions(mask_all=["account"], by="wang"))
    shutil.rmtree(tmp_path / "run" / "mask")
    step(tmp_path / "run", "mask", only)
    assert [place.state for place in listing(tmp_path / "run").places] == ["masked", "masked"]
    assert files.read_table(tmp_path / "run" / "mask", "corpus")["text"].to_list() == ["手机[电话]，加QQ [号码]吧"]
    aliases = files.read_table(tmp_path / "run" / "mask", "aliases")
    assert aliases.rows() == [("corpus", "d1", "d0"), ("corpus", "d2", "d0")]


class Terminal(io.StringIO):
    """Says that somebody sits at it."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_is_asked_place_by_place(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Terminal("s\nx\nm\nA\nq\n")  # skip, mistype, mask, accept all names, stop
    shown = Terminal()
    monkeypatch.chdir(work)
    monkeypatch.setenv("CURATE_HOME", str(work / "home"))
    monkeypatch.setattr("sys.stdin", answers)
    monkeypatch.setattr("sys.stdout", shown)
    ask(work / "runs" / "tiny", "wang")
    monkeypatch.undo()
    assert [state for _, state in places(work)] == ["open", "to be masked", "accepted", "open"]
    assert "»7654321«" in shown.getvalue()
