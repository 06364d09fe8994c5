"""Files that are not a run's own: no command deletes or replaces one, and a sentence says where it stands."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from curate.commands.pool import stage
from tests.support.runs import Done, curate, tiny

RUN = ("run", "tiny.yaml", "--run", "runs/t")
AGAIN = ("pool", "--run", "runs/t", "--force")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    tiny(folder)
    done = curate(folder, *RUN)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def work(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "work", symlinks=True)
    return tmp_path / "work"


def mine(path: Path, text: str = "mine") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def kept(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file, and what every link points to."""
    paths = sorted(folder.rglob("*"))
    return {
        str(path.relative_to(folder)): str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        for path in paths
        if path.is_symlink() or path.is_file()
    }


def refused(folder: Path, *words: str) -> str:
    """Run a command that must be refused in a sentence and change no file; return what it said."""
    before = kept(folder)
    done: Done = curate(folder, *words)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    after = kept(folder)
    assert {name: each for name, each in after.items() if name in before} == before
    assert all("home" in name or Path(name).name == ".lock" for name in after.keys() - before.keys())
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "words", [("ingest", "--pipeline", "tiny.yaml", "--run", "."), ("run", "tiny.yaml", "--run", ".")]
)
def test_a_folder_with_files_of_the_user_becomes_no_run(tmp_path: Path, words: tuple[str, ...]) -> None:
    tiny(tmp_path)
    mine(tmp_path / "ingest/mine.txt")
    mine(tmp_path / ".git.old/HEAD")
    mine(tmp_path / "pipeline.yaml", "version: 1  # mine\n")
    assert ".: no run folder, and not empty (data, ingest, pipeline.yaml and 1 more)" in refused(tmp_path, *words)
    assert "not one that a run wrote" in refused(tmp_path, "status", "--run", ".")
    assert "not one that a run wrote" in refused(tmp_path, "ingest", "--run", ".")


def test_a_folder_of_pipelines_beside_the_runs_is_not_the_newest_run(work: Path) -> None:
    mine(work / "runs/mine/pipeline.yaml", "version: 1\nname: mine\n")
    done = curate(work, *AGAIN[:1], "--force")
    assert done.returncode == 0
    assert "working in runs/t\n" in done.stderr
    assert kept(work / "runs/mine") == {"pipeline.yaml": b"version: 1\nname: mine\n"}


@pytest.mark.parametrize(
    "name", [".", "..", "...", ".git", "a/b", "../x", "", "con", "Nul.txt", "x" * 81, "a\nb", "a\0b"]
)
def test_a_name_that_is_no_folder_of_its_own_is_refused(tmp_path: Path, name: str) -> None:
    tiny(tmp_path)
    assert "--set name: " in refused(tmp_path, "run", "tiny.yaml", "--set", f"name={json.dumps(name)}")


def no_mark(run: Path) -> None:
    shutil.rmtree(run / "pool")
    mine(run / "pool/mine.txt")


def a_file(run: Path) -> None:
    shutil.rmtree(run / "pool")
    mine(run / "pool")


def a_table_without_mark(run: Path) -> None:
    shutil.rmtree(run / "pool")
    mine(run / "pool/pool.parquet")


def a_damaged_mark_and_another_table(run: Path) -> None:
    mine(run / "pool/stage.json", "{")
    mine(run / "pool/pool.parquet")


def a_mark_of_others(run: Path) -> None:
    shutil.rmtree(run / "pool")
    mine(run / "pool/stage.json", '{"scene": 1}')
    (run / "manifest.json").unlink()


def beside_ours(run: Path) -> None:
    mine(run / "pool/notes.txt")


def below_ours(run: Path) -> None:
    mine(run / "pool/deep/.hidden/notes.txt")


def link_beside_ours(run: Path) -> None:
    (run / "pool/mine").symlink_to(mine(run.parents[1] / "elsewhere/mine.txt"))


KINDS = (
    no_mark,
    a_file,
    a_table_without_mark,
    a_damaged_mark_and_another_table,
    a_mark_of_others,
    beside_ours,
    below_ours,
    link_beside_ours,
)


@pytest.mark.parametrize("put", KINDS)
def test_what_a_stage_did_not_write_is_not_replaced(work: Path, put: Callable[[Path], None]) -> None:
    put(work / "runs/t")
    said = refused(work, *AGAIN)
    assert said.startswith("error: runs/t/pool: ")
    assert "move it elsewhere" in said
    assert refused(work, *RUN, "--force") == said


def test_what_came_while_a_stage_ran_is_not_replaced(work: Path) -> None:
    inner = stage.STAGE.run

    def slow(*given: object) -> object:
        mine(work / "runs/t/pool/notes.txt")
        return inner(*given)  # type: ignore[arg-type]

    object.__setattr__(stage.STAGE, "run", slow)
    try:
        before = kept(work / "runs/t")
        done = curate(work, *AGAIN)
    finally:
        object.__setattr__(stage.STAGE, "run", inner)
    assert (done.returncode, done.stderr.count("notes.txt")) == (2, 1), done.stderr
    assert kept(work / "runs/t") == {**before, "pool/notes.txt": b"mine"}


def test_what_programs_leave_by_themselves_is_in_nobodys_way(work: Path) -> None:
    for name in (".DS_Store", "__pycache__/tasks.cpython-311.pyc", ".pool.parquet.4711"):
        mine(work / "runs/t/pool" / name)
    done = curate(work, *AGAIN)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("place", ["ingest", "pool", "report"])
def test_a_link_in_the_place_of_a_stage_is_refused_every_time(work: Path, place: str) -> None:
    (work / "runs/t" / place).rename(work / "elsewhere")
    (work / "runs/t" / place).symlink_to(work / "elsewhere")
    first = refused(work, *RUN)
    assert first.startswith(f"error: runs/t/{place}: a link")
    assert refused(work, *RUN) == first
    assert refused(work, *AGAIN) == first
    (work / "runs/t" / place).unlink()
    (work / "runs/t" / place).symlink_to(work / "nowhere")
    assert refused(work, *RUN) == first


def test_links_of_the_names_that_a_run_uses_for_itself_lead_nowhere(work: Path) -> None:
    target = mine(work / "elsewhere/mine.txt")
    for name in (".pool.new", ".pool.old"):
        (work / "runs/t" / name).symlink_to(target.parent)
    (work / "runs/t/.held").symlink_to(target)
    (work / "runs/t/pipeline.yaml").rename(work / "settings.yaml")
    (work / "runs/t/pipeline.yaml").symlink_to(work / "settings.yaml")
    settings = (work / "settings.yaml").read_bytes()
    done = curate(work, *AGAIN, "--set", "pool.depth=3")
    assert done.returncode == 0, done.stderr
    assert target.read_text() == "mine"
    assert (work / "settings.yaml").read_bytes() == settings


def test_a_run_may_be_a_link_or_a_copy_without_hidden_files(work: Path) -> None:
    (work / "runs/t").rename(work / "elsewhere")
    (work / "runs/t").symlink_to(work / "elsewhere")
    (work / "elsewhere/.id").unlink()
    assert curate(work, *AGAIN).returncode == 0
    assert (work / "elsewhere/.id").is_file()


def test_hidden_folders_of_others_stay(work: Path) -> None:
    mine(work / "runs/t/.git.old/HEAD")
    mine(work / "runs/t/.mine.new/HEAD")
    assert curate(work, *AGAIN).returncode == 0
    assert (work / "runs/t/.git.old/HEAD").is_file()
    assert (work / "runs/t/.mine.new/HEAD").is_file()
