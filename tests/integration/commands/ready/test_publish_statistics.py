"""Descriptive statistics of every kind of task: those of mteb's public function, and mteb's folder stays as it is."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from curate.commands.ready import mteb as statistics
from curate.tables.exporters.mteb import load_task
from curate.tables.exporters.mteb_tasks import front_matter, task_folders
from curate.tables.kinds import KINDS
from tests.support.every_kind import every_kind


def installed() -> Path:
    import mteb

    assert mteb.__file__
    return Path(mteb.__file__).parent


def state(folder: Path) -> str:
    """Return a digest of every path below a folder, with size and time of its last change; compiled code apart."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if "__pycache__" not in path.parts:
            kept = path.stat()
            found.update(f"{path} {kept.st_mtime_ns} {0 if path.is_dir() else kept.st_size}\n".encode())
    return found.hexdigest()


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return every_kind(tmp_path_factory.mktemp("every") / "mteb")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let mteb take another folder for the one it is installed in, where its public function writes."""
    from mteb.abstasks import task_metadata

    (tmp_path / "abstasks").mkdir()
    monkeypatch.setattr(task_metadata, "__file__", str(tmp_path / "abstasks" / "task_metadata.py"))
    return tmp_path / "descriptive_stats"


def test_every_kind_has_the_statistics_of_mteb_and_mteb_is_left_alone(export: Path, tmp_path: Path) -> None:
    before = state(installed())
    folders = task_folders(export)
    assert {each.name for each in folders} == {*KINDS.builtin}, "a kind without a test"
    for folder in folders:
        metadata = front_matter(folder)["mteb"]
        found = statistics.of_folder(folder)
        assert set(found) == {"test"} | ({"train"} if metadata["type"] == "Classification" else set())
        statistics.write(found, tmp_path / statistics.place(metadata["type"], metadata["name"]))
    assert state(installed()) == before


def test_they_equal_those_of_mtebs_public_function_to_the_byte(export: Path, elsewhere: Path, tmp_path: Path) -> None:
    before = state(installed())
    for folder in task_folders(export):
        metadata = front_matter(folder)["mteb"]
        task: Any = load_task(folder)
        theirs = task.calculate_descriptive_statistics()
        path = elsewhere / metadata["type"] / f"{metadata['name']}.json"
        ours = statistics.of_folder(folder)
        assert ours == theirs, folder.name
        statistics.write(ours, tmp_path / "ours.json")
        assert (tmp_path / "ours.json").read_bytes() == path.read_bytes()
        path.write_text(json.dumps({"test": {"num_samples": 7}}), encoding="utf-8")
        assert load_task(folder).calculate_descriptive_statistics() == {"test": {"num_samples": 7}}, "what mteb reuses"
        assert statistics.of_folder(folder) == ours
    assert state(installed()) == before
