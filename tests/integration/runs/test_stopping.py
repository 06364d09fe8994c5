"""Ctrl-C ends every command with a sentence and exit code 130, at whatever moment it comes."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from curate.pipeline import stages
from curate.pipeline.stage import Report
from curate.system import interrupts
from tests import vendor as fake
from tests.support.runs import curate, tiny
from tests.vendor import Call, Fault, vendor

RUN = ("run", "tiny.yaml", "--run", "runs/t")


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)  # Python hears it between two steps


def lost() -> None:
    """Press where a library takes the exception for its own, as a callback does."""
    try:
        press()
    except KeyboardInterrupt:
        return


def mistaken() -> None:
    """Press where a library makes another error of it, as some do while they are imported."""
    try:
        press()
    except KeyboardInterrupt:
        raise ImportError("numpy.core failed to import") from None


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    tiny(folder)
    assert curate(folder, *RUN).returncode == 0
    return folder


@pytest.fixture
def work(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "work"))


@pytest.fixture
def pressing() -> Iterator[Callable[[str, Callable[[], None]], None]]:
    """Return a function that has a stage begin with something; in the end all stages are as they were."""
    before = {name: stages.stage(name).run for name in stages.KNOWN}

    def begin(name: str, what: Callable[[], None]) -> None:
        def run(*given: object) -> Report:
            what()
            return before[name](*given)  # type: ignore[arg-type]

        object.__setattr__(stages.stage(name), "run", run)

    yield begin
    for name, run in before.items():
        object.__setattr__(stages.stage(name), "run", run)


@pytest.mark.parametrize("name", stages.NAMES)
def test_in_every_stage(work: Path, pressing: Callable[..., None], name: str) -> None:
    pressing(name, press)
    done = curate(work, name, "--force")
    assert (done.returncode, "Traceback" in done.stderr) == (130, False), done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"curate: stopped in the stage {name!r} of runs/t; ")


@pytest.mark.parametrize("how", [lost, mistaken])
@pytest.mark.parametrize("name", ["pool", "report"])
def test_where_a_library_swallows_it(
    work: Path, pressing: Callable[..., None], name: str, how: Callable[[], None]
) -> None:
    pressing(name, how)
    done = curate(work, name, "--force")
    assert (done.returncode, "Traceback" in done.stderr) == (130, False), done.stderr
    assert done.stderr.splitlines()[-1].startswith("curate: stopped")


def test_while_models_are_asked(work: Path) -> None:
    arrived = iter(range(1, 1000))

    def faults(_call: Call) -> Fault:
        if next(arrived) == 3:
            press()
        return fake.slow(0.1)

    price = "{input: 1, output: 1, date: '2026-01-01', currency: USD}"
    with vendor(lambda _query, _passage: "S", faults) as server:
        settings = f"  m: {{kind: openai, model: m-1, base_url: '{server.url}', price: {price}}}\n"
        plain = (work / "tiny.yaml").read_text("utf-8")
        (work / "tiny.yaml").write_text(plain.replace("judges:\n", f"judges:\n{settings}"), "utf-8")
        words = (*RUN, "--set", "judge={models: [m], batch: 1, controls: off}", "--yes")
        done = curate(work, *words)
        said = "curate: stopped; every answer that arrived is kept, and the same command goes on from there"
        assert (done.returncode, done.stderr.splitlines()[-1]) == (130, said)
        assert re.search(r"stopping: \d+ calls are in flight and may be paid, .* Ctrl-C again drops them", done.stderr)
        sent = len(server.calls)
        assert 3 <= sent < 40
        assert curate(work, *words).returncode == 0
        assert len(server.calls) == 40, "nothing was asked twice"


def test_before_anything_is_imported(tmp_path: Path) -> None:
    """The handler is there once the program's first module is; what comes behind it is announced by Python."""
    command = [sys.executable, "-X", "importtime", "-m", "curate", "status"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.split("|")[-1].strip().startswith(("typing", "click", "typer")):
            break
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert (process.returncode, said.splitlines()[-1]) == (130, "curate: stopped; nothing was begun")
    assert "Traceback" not in said


def test_whoever_ignores_it_goes_on_so(tmp_path: Path) -> None:
    """A shell starts what runs in the background so."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interrupts.listen()
        interrupts.begin()
        press()
        assert not interrupts.pressed()
    finally:
        signal.signal(signal.SIGINT, before)


def test_while_the_interpreter_is_taken_down() -> None:
    """All is done and said by then, so the exit code stays that of the command."""
    code = f"""
import os
from curate.system import interrupts as stopping

class Last:
    def __del__(self, kill=os.kill, own=os.getpid(), press={signal.SIGINT:d}):
        kill(own, press)

last = Last()
last.itself = last  # so that it ends with its module
stopping.listen()
stopping.begin()
stopping.end()
raise SystemExit(7)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 7


def test_a_press_that_is_lost_where_a_generator_is_closed_is_known_and_not_printed() -> None:
    code = f"""
import os
from curate.system import interrupts as stopping

def held(end):
    try:
        yield
    finally:
        end()

def closed(end):
    generator = held(end)
    next(generator)

stopping.listen()
stopping.begin()
closed(lambda: 1 / 0)
closed(lambda: os.kill(os.getpid(), {signal.SIGINT:d}))
print(stopping.pressed())
stopping.end()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
    assert ("ZeroDivisionError" in done.stderr, "KeyboardInterrupt" in done.stderr) == (True, False)


def test_a_press_while_a_string_is_executed_gives_the_exit_code(tmp_path: Path) -> None:
    """Under `-m` Python would end itself by the signal."""
    (tmp_path / "pressed.py").write_text(f"""
import sys
from curate.system import interrupts as stopping

stopping.listen()
stopping.begin()
try:
    exec("import os; os.kill(os.getpid(), {signal.SIGINT:d}); done = 1")
except KeyboardInterrupt:
    stopping.end()
    sys.exit(stopping.EXIT)
""")
    command = [sys.executable, "-m", "pressed"]
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    assert subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, check=False).returncode == interrupts.EXIT
