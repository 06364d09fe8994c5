"""The commands of the docs run: page by page, as they stand there, in a folder with what a reader has.

So do the examples of the page on Python, in order and in one process, and the notebook.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import nbformat
import pytest
from nbclient import NotebookClient

from curate.llm.client.batch import judge_batches
from tests import ROOT
from tests.support import postgres
from tests.support.batching import FAST
from tests.support.hubbing import hub
from tests.support.reader import Reader, left, models, shown
from tests.vendor import vendor

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(?:console|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PYTHON_PAGE, NOTEBOOK = ROOT / "docs" / "integrate.md", ROOT / "docs" / "first-hour.ipynb"
NOT_RUN = {
    r"make (demo|test)": "installs from the network; the second is what runs this",
    r"(python3 -m venv|pip install ').*": "installs from the network",
    r"createdb curate": "wants a server of one's own; the tests make a database beforehand",
    r"pip install \.": "done beforehand, into a folder of its own",
    r"curate evaluate .* BAAI/bge-m3 .*": "downloads models, and wants a GPU",
    r"\.venv/bin/python -m benchmarks\.cluster": "goes on until Ctrl-C; test_cluster has two nodes of its own",
    r"ray (start|get-auth-token) .*": "wants machines of a cluster",
    r"export RAY_AUTH_MODE=.*": "for the machines of a cluster",
    r"curate doctor --cluster .*": "wants a cluster",
    r"curate review serve --public-url .*": "wants a proxy; test_proxy has nginx in front",
    r"curate verify .* --digest .*": "wants the digest of an export of one's own; test_forgeries has them",
}
"""Commands that are not run, and why."""
ENDS = {
    r"curate run my-benchmark\.yaml": (2, "judging would send"),
    r"curate judge (--run \S+ )?--models \S+": (2, "judging would send"),
    r"curate verify .*": (3, ""),
    r"curate ready( runs/demo)?( --out \S+)?": (1, ""),
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


@patch.object(judge_batches, "PollingPolicy", lambda: FAST)  # batches are looked at again at once
@pytest.mark.timeout(1800)  # the page on evaluating models encodes a run by three of them
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
        if page.stem == "publish":
            variables = {"HF_ENDPOINT": data_server.url, "HF_HUB_OFFLINE": "0", "HF_TOKEN": "hf_secret"}
            variables |= {"HF_HOME": str(folder / "hf"), "HF_HUB_DISABLE_TELEMETRY": "1"}
        reader = Reader(folder, values, variables)
        for number, line in enumerate(RUN[page]):
            done = reader.type(line)
            code, complaint = next((end for pattern, end in ENDS.items() if re.fullmatch(pattern, line)), (0, ""))
            if complaint and line in RUN[page][:number]:  # what stopped before it was paid goes on once it is
                code, complaint = 0, ""
            assert (done.returncode, complaint in done.stderr) == (code, True), f"{line}\n{done.stdout}\n{done.stderr}"
        if page == PYTHON_PAGE:
            _examples(page, reader)
            assert not models_server.calls, "nothing was allowed"


def _examples(page: Path, reader: Reader) -> None:
    """Run a page's examples where its reader works."""
    values = {"CURATE_HOME": str(reader.folder / "home"), **reader.variables}
    names: dict[str, object] = {}
    with contextlib.chdir(reader.folder), patch.dict(os.environ, values):
        for block in PYTHON.findall(page.read_text(encoding="utf-8")):
            exec(compile(block, page.name, "exec"), names)


def test_the_notebook_runs(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept without outputs, which would grow old: seconds, paths and versions change."""
    folder = Path(shutil.copytree(shelf, tmp_path / "work", symlinks=True))
    for name, value in {
        "HOME": folder,
        "CURATE_HOME": folder / "home",
        "IPYTHONDIR": folder,
        "PYTHONPATH": ROOT,
    }.items():
        monkeypatch.setenv(name, str(value))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not [cell for cell in cells if cell.outputs or cell.execution_count]
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    shown = [output.data.get("text/html", "") for cell in cells for output in cell.outputs if "data" in output]
    for words in ("Run runs/demo", "<th>rows_in</th>", "Agreement of", "Plan: nothing is left to send", "masked: "):
        assert any(words in page for page in shown), words
    told = "".join(output.text for cell in cells for output in cell.outputs if output.output_type == "stream")
    assert "pool: up to date, skipped" in told


@pytest.mark.parametrize("pattern", [*NOT_RUN, *ENDS])
def test_what_is_listed_is_somewhere(pattern: str) -> None:
    assert any(re.fullmatch(pattern, line) for lines in TYPED.values() for line in lines)


def test_there_are_commands_to_run() -> None:
    assert len(RUN) >= 12
    assert sum(map(len, RUN.values())) > 50
