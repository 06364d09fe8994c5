"""`curate init` asks where it cannot decide: at a terminal with choices, elsewhere with commands to copy."""

import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.support.runs import complaint, ran

ASKED = ("init", "--queries", "q.csv", "--corpus", "c.jsonl", "--name", "mine")
OWN = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Takes the terminal, so that Ctrl-C reaches the command, which a shell may have told to ignore it."""
PERSON = "我叫张伟，电话13912345678，"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write queries, and documents whose column `id` repeats in two of thirty rows, as no other column does."""
    (tmp_path / "q.csv").write_text("id,text\n1,头痛怎么办\n2,发烧怎么办\n", encoding="utf-8")
    rows = [{"id": f"A{n % 28}", "doc_no": f"d{n}", "text": f"Rest and water, {n} times."} for n in range(30)]
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return tmp_path


def offered(said: str) -> list[list[str]]:
    """Return the commands that an error offers, as words behind `curate`."""
    return [shlex.split(line)[1:] for line in re.findall(r"^ +(curate init .*)$", said, re.MULTILINE)]


def test_an_id_that_repeats_is_asked_about(files: Path) -> None:
    said = complaint(files, *ASKED)
    assert said.startswith("error: c.jsonl: id looks like the id of the corpus, but 2 of 30 rows repeat one ('A0' in")
    assert not (files / "mine.yaml").exists()
    ends = [words[-2:] for words in offered(said)]
    assert ends == [
        ["--column", "corpus.id=doc_no"],
        ["--column", "corpus.id=<line>"],
        ["--set", "ingest.on_error=drop"],
    ]


@pytest.mark.parametrize(
    ("choice", "kept"), [(0, "'doc_no': 30"), (1, "'<line>': 30"), (2, "'id': 28")], ids=["other", "line", "drop"]
)
def test_every_command_that_is_offered_leads_to_a_run(choice: int, kept: str, files: Path) -> None:
    ran(files, *offered(complaint(files, *ASKED))[choice])
    settings = yaml.safe_load((files / "mine.yaml").read_text(encoding="utf-8"))["ingest"]
    column = settings.get("columns", {}).get("corpus", {}).get("id", "id")
    said = ran(files, "run", "mine.yaml", "--run", "run", "--set", "stages=[ingest]").stderr
    taken = int(said.partition(" out")[0].rpartition(" ")[2]) - 2
    assert f"{column!r}: {taken}" == kept


def test_line_numbers_do_not_match_qrels(files: Path) -> None:
    (files / "r.tsv").write_text("query-id\tcorpus-id\tscore\n1\tA0\t1\n")
    assert "take line numbers for ids; the qrels will not match them:" in complaint(files, *ASKED, "--qrels", "r.tsv")


def test_two_columns_that_may_be_the_text(files: Path) -> None:
    (files / "q.csv").write_text(f"id,问题,内容\n1,头痛,{PERSON}头痛\n2,发烧,{PERSON}发烧\n", encoding="utf-8")
    said = complaint(files, *ASKED)
    assert "q.csv: 问题 and 内容 may each hold the text of a query; type one of these" in said
    assert "take 内容, 21 characters on average, such as '我叫[姓名]，电话[电话]，头痛':" in said
    assert not set("张伟") & set(said)
    assert "13912345678" not in said
    again = complaint(files, *offered(said)[0])
    assert "corpus, but 2 of 30" in again, "what was chosen is settled, the next doubt is asked"
    assert [words[-4:-2] for words in offered(again)][:2] == [["--column", "queries.text=问题"]] * 2


def test_a_title_beside_a_text_is_no_doubt(files: Path) -> None:
    (files / "q.csv").write_text("id,标题,内容\n1,头痛,头痛怎么办\n2,发烧,发烧怎么办\n", encoding="utf-8")
    said = ran(files, *ASKED, "--column", "corpus.id=doc_no").stdout
    assert "text  内容  named like the text\n             not used: 标题" in said
    assert "id    doc_no  as you said" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--column", "corpus.idd=x"), "--column 'corpus.idd=x': expected TABLE.FIELD=NAME; did you mean 'corpus.id'?"),
        (("--column", "corpus.id"), "--column 'corpus.id': expected TABLE.FIELD=NAME"),
        (("--column", "corpus.id=nope"), "nope"),
        (
            ("--set", "pool.deep=3", "--column", "corpus.id=doc_no"),
            "init: pool.deep: unknown key; did you mean 'depth'",
        ),
        (("--set", "pool"), "--set 'pool': expected section.key=value"),
    ],
)
def test_options_that_cannot_be(words: tuple[str, ...], said: str, files: Path) -> None:
    assert said in complaint(files, *ASKED, *words)
    assert not (files / "mine.yaml").exists()


def test_settings_are_written_into_the_file_and_priced(files: Path) -> None:
    extra = ("--column", "corpus.id=doc_no", "--set", "pool.size=20", "--set", "judge.models=[gpt-4o]")
    said = ran(files, *ASKED, *extra, "--set", "judge.batch=5").stdout
    settings = yaml.safe_load((files / "mine.yaml").read_text(encoding="utf-8"))
    assert (settings["pool"]["size"], settings["judge"]) == (
        20,
        {"models": ["gpt-4o"], "rubric": "relevance-en", "batch": 5},
    )
    assert re.search(r"price +all 2 queries\n +gpt-4o +8 calls  about 0\.\d+ USD\n", said)


def test_without_a_terminal_nothing_is_prompted(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = complaint(files, "init")
    assert said.endswith("two files: curate init --queries FILE --corpus FILE\n")


class Terminal:
    """A person at a real terminal."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._ours, theirs = pty.openpty()
        environment = {**os.environ, "CURATE_HOME": str(folder / "home"), "TERM": "xterm", "COLUMNS": "100"}
        command = [sys.executable, "-c", OWN, sys.executable, "-m", "curate", *words]
        self._process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self.said = ""

    def until(self, words: str, seconds: float = 60) -> None:
        """Read until words appear."""
        end = time.monotonic() + seconds
        while words not in self.said:
            assert time.monotonic() < end, self.said
            self.said += self._read()

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def code(self, again: str = "", seconds: float = 60) -> int:
        """Read to the end and return the exit code.

        again is typed every five seconds: CPython forgets a press of Ctrl-C that comes between its last look for one
        and the wait for a line, until the next press.
        """
        begun, typed = time.monotonic(), 0
        while self._process.poll() is None:
            waited = time.monotonic() - begun
            assert waited < seconds, self.said
            if waited > 5 * (typed + 1):
                self.type(again)
                typed += 1
            self.said += self._read()
        self.said += self._read()
        os.close(self._ours)
        return self._process.returncode

    def _read(self) -> str:
        if not select.select([self._ours], [], [], 0.2)[0]:
            return ""
        try:
            return os.read(self._ours, 65536).decode("utf-8", "replace")
        except OSError:  # the other end is closed
            return ""


def test_at_a_terminal_a_doubt_is_a_choice(files: Path) -> None:
    person = Terminal(files, "init")
    person.until("(empty: two files)")
    person.type("\n")
    person.until("File of the queries")
    person.type("q.csv\n")
    person.until("File of the documents")
    person.type("c.jsonl\n")
    person.until("Your choice [4]")
    assert "1  take doc_no for the id, which differs in every row   (--column corpus.id=doc_no)" in person.said
    assert "4  stop, and write nothing" in person.said
    person.type("9\n")
    person.until("expected a number from 1 to 4")
    person.type("1\n")
    assert person.code() == 0, person.said
    assert "as you said" in person.said
    (made,) = files.glob("*.yaml")
    assert yaml.safe_load(made.read_text())["ingest"]["columns"]["corpus"]["id"] == "doc_no"


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        ("\n", 2, "nothing was written; c.jsonl: id looks like"),
        ("\x03", 130, "curate: stopped"),
        ("\x04", 2, "nothing was"),
    ],
    ids=["stop", "ctrl-c", "ctrl-d"],
)
def test_at_a_terminal_whoever_leaves_has_written_nothing(typed: str, code: int, said: str, files: Path) -> None:
    person = Terminal(files, *ASKED)
    person.until("Your choice [4]")
    person.type(typed)
    assert (person.code(again=typed if code == 130 else ""), said in person.said) == (code, True), person.said
    assert not list(files.glob("*.yaml"))
