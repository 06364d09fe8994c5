"""The commands of the docs run: page by page, as they stand there, in a folder with what a reader has."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from tests import ROOT
from tests.support import postgres
from tests.support.hubbing import hub
from tests.support.reader import Reader, left, library, models, shown
from tests.vendor import vendor

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(?:console|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOT_RUN = {
    r"make (demo|test)": "installs from the network; the second is what runs this",
    r"(python3 -m venv|pip install ').*": "installs from the network",
    r"createdb curate": "wants a server of one's own; the tests make a database beforehand",
    r"pip install \.": "done beforehand, into a folder of its own",
    r"curate evaluate .* BAAI/bge-m3 .*": "downloads models, and wants a GPU",
    r"curate run zh-legacy .*": "wants data that are not packaged, and 45 minutes",
}
"""Commands that are not run, and why."""
ENDS = {
    r"curate run my-benchmark\.yaml": (2, "judging would send"),
    r"curate judge --models \S+": (2, "judging would send"),
    r"curate verify .*": (3, ""),
}
"""Commands that are meant to end otherwise than with 0: exit code, and what they complain of."""


def typed(page: Path) -> Iterator[str]:
    """Yield what a page has its reader type, without comments: of lines behind a `$` only those."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        lines = block.replace("\\\n", " ").splitlines()
        prompted = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        plain = (re.sub(r"(^|\s+)#.*", "", line) for line in prompted or lines)
        yield from filter(None, plain)


def listed(line: str) -> bool:
    """Say whether a line is one of those that are not run."""
    return any(re.fullmatch(pattern, line) for pattern in NOT_RUN)


TYPED = {page: list(typed(page)) for page in PAGES}
RUN = {page: lines for page, every in TYPED.items() if (lines := [line for line in every if not listed(line)])}


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run of the demo and more, which is made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "docs"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            made = tmp_path_factory.mktemp("docs")
            library(made)
            made.rename(folder)
    return folder


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page: Path, shelf: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder = Path(shutil.copytree(shelf, tmp_path / "work", symlinks=True))
    values = {"SLURM_ARRAY_TASK_ID": "0", "PROJECT": str(folder / "project")}
    if any("CURATE_LEDGER=" in line for line in RUN[page]):
        values["CURATE_LEDGER"] = postgres.database(request.getfixturevalue("postgres_server"))
    variables: dict[str, str] = {}
    if "pip install ." in TYPED[page]:
        variables["PYTHONPATH"] = f"{request.getfixturevalue('plugin')}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    with vendor(lambda query, passage: "S" if query[:2] in passage else "D") as models_server, hub() as data_server:
        models(folder, models_server.url, keyed=any("curate init" in line for line in TYPED[page]))
        shown(folder, page.read_text(encoding="utf-8"), models_server.url)
        if page.stem == "privacy":
            left(folder)
        if page.stem == "export":
            variables = {"HF_ENDPOINT": data_server.url, "HF_HUB_OFFLINE": "0", "HF_TOKEN": "hf_secret"}
            variables |= {"HF_HOME": str(folder / "hf"), "HF_HUB_DISABLE_TELEMETRY": "1"}
        reader = Reader(folder, values, variables)
        for line in RUN[page]:
            done = reader.type(line)
            code, complaint = next((end for pattern, end in ENDS.items() if re.fullmatch(pattern, line)), (0, ""))
            assert (done.returncode, complaint in done.stderr) == (code, True), f"{line}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("pattern", [*NOT_RUN, *ENDS])
def test_what_is_listed_is_somewhere(pattern: str) -> None:
    assert any(re.fullmatch(pattern, line) for lines in TYPED.values() for line in lines)


def test_there_are_commands_to_run() -> None:
    assert len(RUN) >= 12
    assert sum(map(len, RUN.values())) > 50
