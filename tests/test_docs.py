"""What the docs say is what the program does: commands parse, the tutorial runs, pages are built, links lead on."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import polars as pl
import pytest
import typer

from curate import resources
from curate.cli.main import app
from tests.conftest import need
from tests.runs import curate

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(?:console|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)(#[^)]*)?\)|!\[[^\]]*\]\(([^)\s]+)\)")


def commands(page: Path) -> Iterator[str]:
    """Yield every line of a page's shell blocks that calls the program, without its comment."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words[:1] == ["curate"]:
                yield shlex.join(words[1:])


SHOWN = [pytest.param(line, id=f"{page.stem}: {line}") for page in PAGES for line in dict.fromkeys(commands(page))]


@pytest.mark.parametrize("line", SHOWN)
def test_the_program_knows_the_command(line: str) -> None:
    command: Any = typer.main.get_command(app)
    words, path = shlex.split(line), "curate"
    while hasattr(command, "commands"):
        context = command.make_context(path, words, resilient_parsing=True)
        left = [*context._protected_args, *context.args]  # click offers no other way to what it left
        if not left:
            return
        name, found, words = command.resolve_command(context, left)
        assert found is not None, f"{path}: no command {left[0]}"
        command, path = found, f"{path} {name}"
    command.make_parser(command.make_context(path, [], resilient_parsing=True)).parse_args(words)


def test_there_are_commands_to_look_at() -> None:
    assert len(SHOWN) > 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page: Path) -> None:
    for link, _, picture in LINK.findall(page.read_text(encoding="utf-8")):
        target = link or picture
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), target


def test_the_reference_is_what_the_program_says() -> None:
    command = [sys.executable, str(ROOT / "docs" / "reference" / "make.py"), "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_pages_are_built_without_a_warning(tmp_path: Path) -> None:
    need(which("mkdocs", path=str(Path(sys.executable).parent)) is not None, "mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "tutorial" / "index.html").is_file()
    fetched = re.findall(
        r'(?:src|href)="(https?://[^"]+\.(?:js|css|woff2?))"', (tmp_path / "site" / "index.html").read_text()
    )
    assert fetched == [], "a page fetches nothing from elsewhere"


def test_words_are_spelled() -> None:
    typos = Path(sys.executable).with_name("typos")
    need(typos.is_file(), "typos")
    done = subprocess.run([str(typos)], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path: Path) -> None:
    """Its commands, on a small part of the demo's data in the tutorial's folder."""
    (tmp_path / "data").mkdir()
    texts = {name: pl.read_ndjson(resources.demo() / f"{name}.jsonl") for name in ("queries", "corpus")}
    asked = texts["queries"].head(8)
    known = pl.read_csv(resources.demo() / "qrels" / "test.tsv", separator="\t").filter(
        pl.col("query-id").is_in(asked["_id"].implode())
    )
    answers = texts["corpus"].sort(~pl.col("_id").is_in(known["corpus-id"].implode()), maintain_order=True).head(60)
    asked.write_ndjson(tmp_path / "data" / "queries.jsonl")
    answers.write_ndjson(tmp_path / "data" / "corpus.jsonl")
    for line in commands(ROOT / "docs" / "tutorial.md"):
        if not line.startswith("review serve"):
            done = curate(tmp_path, *shlex.split(line))
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "runs" / "qa" / "report.html").is_file()


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"\((\d{4}-[\w-]+\.md)\)", (folder / "index.md").read_text(encoding="utf-8"))
    assert listed == sorted(path.name for path in folder.glob("0*.md"))
