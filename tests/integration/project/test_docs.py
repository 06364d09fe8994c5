"""What the docs say is what the program does: commands parse, pages are built, links lead on; they run next door."""

import ast
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import typer

from curate.cli.app import app
from tests import ROOT
from tests.conftest import need

PAGES = sorted([*ROOT.glob("README*.md"), ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(?:console|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`(curate [^`|]+)`")
MADE = {"demo-report.html", "demo-view/index.html"}
"""Pages of the site that are made when it is built."""
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)(#[^)]*)?\)|!\[[^\]]*\]\(([^)\s]+)\)")


def commands(page: Path) -> Iterator[str]:
    """Yield every line of a page's shell blocks, and of its text, that calls the program, without its comment."""
    text = page.read_text(encoding="utf-8")
    lines = [line for block in BLOCK.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    for line in [*lines, *INLINE.findall(BLOCK.sub("", text))]:
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
    assert len(SHOWN) > 80


PROGRAMS = [(page.stem, each) for page in PAGES for each in PYTHON.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in PROGRAMS])
def test_programs_name_what_there_is(code: str) -> None:
    """Those of the pages on exports and training data run in the tests of these; others want a model of the hub."""
    for found in ast.walk(ast.parse(code)):
        if isinstance(found, ast.ImportFrom) and str(found.module).partition(".")[0] == "curate":
            module = importlib.import_module(str(found.module))
            assert [each.name for each in found.names if not hasattr(module, each.name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page: Path) -> None:
    for link, _, picture in LINK.findall(page.read_text(encoding="utf-8")):
        target = link or picture
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists() or target in MADE, target


def test_the_reference_is_what_the_program_says() -> None:
    command = [sys.executable, str(ROOT / "docs" / "reference" / "make.py"), "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def build(checkout: Path, run: Path, site: Path) -> tuple[int, str]:
    """Build the site of a checkout as `make docs` does; return the exit code and what mkdocs wrote."""
    need(which("mkdocs", path=str(Path(sys.executable).parent)) is not None, "mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = os.environ | {"CURATE_DEMO_RUN": str(run), "NO_MKDOCS_2_WARNING": "1"}
    environment |= {"DISABLE_MKDOCS_2_WARNING": "true"}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def site(shelf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    code, output = build(ROOT, shelf / "runs" / "demo", folder)
    assert code == 0, output
    return folder


def test_the_site_holds_the_pages_and_the_demo(site: Path, shelf: Path) -> None:
    assert (site / "tutorial" / "index.html").is_file()
    assert (site / "demo-report.html").read_text() == (shelf / "runs" / "demo" / "report.html").read_text()
    assert list((site / "demo-view").rglob("*.html"))
    fetched = re.findall(r'(?:src|href)="(https?://[^"]+\.(?:js|css|woff2?))"', (site / "index.html").read_text())
    assert fetched == [], "a page fetches nothing from elsewhere"


def test_old_addresses_lead_to_the_new_pages(site: Path) -> None:
    for old, new in (("api", "integrate"), ("sts", "task-types"), ("performance", "evidence"), ("labels", "method")):
        assert f"../{new}/" in (site / old / "index.html").read_text(), old


def test_the_search_finds_chinese_words(site: Path) -> None:
    """Queries and texts are cut by the separator of mkdocs.yml; a page is found if it has all parts of a query."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    separator = re.compile(index["config"]["separator"])
    texts = [{*separator.split(row["text"])} for row in index["docs"]]
    for query in ("候选池", "有分歧", "一致性"):
        assert any({*separator.split(query)} <= parts for parts in texts), query


@pytest.mark.accept
def test_a_broken_link_fails_the_build(shelf: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "docs", checkout / "docs")
    shutil.copy(ROOT / "mkdocs.yml", checkout)
    page = checkout / "docs" / "index.md"
    page.write_text(page.read_text(encoding="utf-8") + "\n[broken](nowhere.md)\n", encoding="utf-8")
    code, output = build(checkout, shelf / "runs" / "demo", tmp_path / "site")
    assert (code, "nowhere.md" in output) == (1, True)


def test_a_site_without_the_demo_is_refused(tmp_path: Path) -> None:
    code, output = build(ROOT, tmp_path, tmp_path / "site")
    assert (code, "`make demo` first" in output) == (1, True)


def test_words_are_spelled() -> None:
    typos = Path(sys.executable).with_name("typos")
    need(typos.is_file(), "typos")
    done = subprocess.run([str(typos)], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_docs_stay_short() -> None:
    """Tables, pictures and generated blocks of the page of evidence are not counted, nor is the reference."""
    pages = {page.stem: page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")}
    assert len(pages) + len(list((ROOT / "docs" / "reference").glob("*.md"))) <= 22
    blocks = re.compile(r"<!-- bench:.*?<!-- /bench -->|^\|.*?$", re.DOTALL | re.MULTILINE)
    pages["evidence"] = blocks.sub("", pages["evidence"])
    words = {name: len(text.split()) for name, text in pages.items()}
    assert sum(words.values()) <= 26_000
    assert {name: count for name, count in words.items() if count > 2_400} == {}
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) < 600


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"\((\d{4}-[\w-]+\.md)\)", (folder / "index.md").read_text(encoding="utf-8"))
    assert listed == sorted(path.name for path in folder.glob("0*.md"))
