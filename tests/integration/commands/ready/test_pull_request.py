"""The folder for a pull request to mteb: what it holds, what it leaves to a person, and what it never overwrites."""

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from curate.commands.ready import mteb
from curate.commands.ready.mteb import HubPlace, TaskSource, hub_place, placeholders
from curate.system.files import read_json
from curate.tables.exporters.mteb import load_task
from curate.tables.exporters.mteb_tasks import front_matter, task_folders
from tests.integration.commands.ready.test_publish_statistics import installed
from tests.support import machine
from tests.support.every_kind import every_kind
from tests.support.runs import complaint, curate, ran

RANDOM = "mteb/baseline-random-encoder"


@pytest.fixture(scope="module")
def run(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run with all metadata, which nobody evaluated yet."""
    folder = tmp_path_factory.mktemp("request")
    return shutil.copytree(published.parents[1], folder, dirs_exist_ok=True) / "runs" / "full"


def written(run: Path, folder: str = "pr") -> tuple[dict[str, Any], str]:
    """Return what the command says, and the text of the pull request."""
    done = curate(run.parents[1], "ready", str(run), "--out", folder, "--json")
    assert done.returncode == 1, done.stderr
    assert "is not ready" in done.stdout, done.stderr
    text = (run.parents[1] / folder / "PULL_REQUEST.md").read_text(encoding="utf-8")
    return machine.data(done.stdout), text


def line(text: str, part: str) -> str:
    [found] = [each.strip() for each in text.splitlines() if "- [" in each and part in each]
    return found


def test_the_file_of_every_kind_is_a_task_of_mteb_with_the_same_texts(tmp_path: Path) -> None:
    from mteb.abstasks import AbsTask

    for folder in task_folders(every_kind(tmp_path / "mteb")):
        source = TaskSource(front_matter(folder))
        assert (installed().parent / source.folder / "__init__.py").is_file(), "where mteb has tasks of that sort"
        path = tmp_path / f"{source.module}.py"
        path.write_text(source.text(HubPlace(str(folder), "main")), encoding="utf-8")
        assert hub_place(path) == HubPlace(str(folder), "main")
        spec = importlib.util.spec_from_file_location(source.module, path)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        task: AbsTask = getattr(module, source.class_name)()
        exported = load_task(folder)
        of_both = [each.metadata.model_dump(exclude={"dataset"}) for each in (task, exported)]
        assert of_both[0] == of_both[1]
        assert type(task).__mro__[1] is type(exported).__mro__[1]
        task.load_data()
        assert mteb.of_task(task)["test"]["num_samples"], folder.name


def test_without_an_evaluation_nothing_of_scores_is_ticked_and_nothing_is_invented(run: Path) -> None:
    found, text = written(run, "early")
    for part in ("which gap", "runs with", "multilingual-e5-small", RANDOM, "neither trivial", "on the hub"):
        assert line(text, part).startswith("- [ ]"), part
    for part in ("metadata is filled", "no text is empty", "of this name yet", "size was considered"):
        assert line(text, part).startswith("- [x]"), part
    assert "No model was scored on the data as it is exported now." in text
    assert not any(each.startswith("results/") for each in found["files"])
    states = {each["name"]: each for each in found["points"]}
    assert states["hub"]["state"] == "not ok"
    assert states["hub"]["next"].startswith("hf upload ORGANISATION/full-retrieval-small ")
    source = (run.parents[1] / "early" / "mteb" / "tasks" / "retrieval" / "zho" / "full_retrieval_small.py").read_text()
    assert all(f'"{each}"' in source for each in placeholders().values())
    assert (
        "- `from .full_retrieval_small import FullRetrievalSmall` into `mteb/tasks/retrieval/zho/__init__.py`, and"
        in text
    )


def test_results_come_with_it_until_the_export_is_another(run: Path) -> None:
    from mteb.cache import ResultCache

    ran(run.parents[1], "evaluate", str(run), "--models", RANDOM, "--no-baselines", "--no-floors")
    found, text = written(run)
    assert line(text, RANDOM).startswith("- [x]")
    assert line(text, "runs with").startswith("- [x]")
    assert line(text, "multilingual-e5-small` (").startswith("- [ ]")
    [read] = ResultCache(run.parents[1] / "pr").load_results().model_results
    assert {each.task_name for each in read.task_results} == {"full-retrieval-small", "full-reranking-small"}
    figures = read_json(
        run.parents[1] / "pr" / "mteb" / "descriptive_stats" / "Retrieval" / "full-retrieval-small.json"
    )
    assert figures["test"]["num_queries"] == 5
    assert "| test | num queries | 5 |" in text
    with_results = {each for each in found["files"] if each.startswith("results/")}
    assert len(with_results) == 4
    ran(run.parents[1], "export", "--run", str(run), "--set", "export.mteb.contributed_by=Others")
    found, text = written(run)
    assert not any((run.parents[1] / "pr" / each).exists() for each in with_results), "they are of another export"
    assert line(text, RANDOM).startswith("- [ ]")


def test_what_a_person_wrote_stays(run: Path) -> None:
    written(run, "edited")
    folder = run.parents[1] / "edited"
    task, pull = folder / "mteb/tasks/retrieval/zho/full_retrieval_small.py", folder / "PULL_REQUEST.md"
    said = task.read_text(encoding="utf-8")
    for name, value in (("path", "lab/full-retrieval-small"), ("revision", "0a1b2c")):
        said = said.replace(placeholders()[name], value)
    task.write_text(said, encoding="utf-8")
    found, text = written(run, "edited")
    assert found["edited"] == []
    assert hub_place(task) == HubPlace("lab/full-retrieval-small", "0a1b2c")
    assert "full_retrieval_small.py" not in line(text, "on the hub"), "the other task is left"
    pull.write_text(text.replace("WRITE HERE", "Chinese clinics"), encoding="utf-8")
    (task.parents[2] / "reranking/zho/full_reranking_small.py").write_text("broken (", encoding="utf-8")
    found, text = written(run, "edited")
    assert found["edited"] == ["PULL_REQUEST.md", "mteb/tasks/reranking/zho/full_reranking_small.py"]
    assert "Chinese clinics" in text
    assert "WRITE HERE" in (folder / "PULL_REQUEST.new.md").read_text(encoding="utf-8")
    assert hub_place(task).known


def test_bad_days(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    assert "not empty, and not written by this command" in complaint(
        run.parents[1], "ready", str(run), "--out", str(tmp_path / "mine")
    )
    assert [each.name for each in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    (tmp_path / "mine" / ".curate.json").write_text(json.dumps({"../x": "0"}))
    (tmp_path / "x").write_text("")
    written(run, str(tmp_path / "mine"))
    assert (tmp_path / "x").exists()
    assert "give the run: an export does not hold" in complaint(run.parents[1], "ready", str(run / "export" / "mteb"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("clinic-retrieval", ("ClinicRetrieval", "clinic_retrieval")),
        ("病-retrieval", ("Retrieval", "retrieval")),
        ("2024 set", ("Task2024Set", "task2024_set")),
        ("CMedQAv2-reranking", ("CMedQAv2Reranking", "cmed_qav2_reranking")),
    ],
)
def test_names_of_class_and_file(name: str, expected: tuple[str, str]) -> None:
    source = TaskSource({"mteb": {"name": name, "type": "PairClassification", "eval_langs": ["vie-Latn"]}})
    assert (source.class_name, source.module) == expected
    assert source.folder == "mteb/tasks/pair_classification/vie"
