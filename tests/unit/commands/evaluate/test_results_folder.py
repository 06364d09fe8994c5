"""Result folders of mteb: its own files, old and broken ones, two revisions, subsets, other versions of the data."""

import json
from pathlib import Path
from typing import Any

import pytest

from curate.commands.evaluate.results_folders import ExpectedTask, expected_by_name, notes, read, task_names
from curate.core.errors import UserError

pytestmark = pytest.mark.slow  # mteb joins the results

LEGACY = "CMedQAv1-reranking"
SUPERSEDED, SUCCESSOR = "Banking77Classification", "Banking77Classification.v2"


def result(
    folder: Path, model: str = "a__b", revision: str = "r1", task: str = "T", score: Any = 0.5, **more: Any
) -> Path:
    """Write one result as mteb 2 does."""
    row = {"hf_subset": "default", "languages": ["cmn-Hans"], "main_score": score, "ndcg_at_10": score}
    whole = {
        "task_name": task,
        "dataset_revision": "d1",
        "mteb_version": "2.26.0",
        "evaluation_time": 1.0,
        "scores": {"test": [row]},
    }
    path = folder / model / revision / f"{task}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole | more), encoding="utf-8")
    return path


def rows(**scores: float) -> dict[str, Any]:
    return {"test": [{"hf_subset": name, "languages": [], "main_score": score} for name, score in scores.items()]}


def test_what_mteb_writes_is_read_with_the_name_of_its_model(tmp_path: Path) -> None:
    from mteb.cache import ResultCache
    from mteb.models.model_meta import ModelMeta
    from mteb.results import TaskResult

    meta = ModelMeta.create_empty({"name": "maker/model_x", "revision": "abc", "n_parameters": 70})
    saved = TaskResult.from_disk(result(tmp_path / "first"))
    ResultCache(tmp_path).save_to_cache(saved, meta)
    for folder in (tmp_path, tmp_path / "results"):
        [model], left = read([folder], [ExpectedTask("T")])
        assert (model.name, model.revision, dict(model.scores), left) == ("maker/model_x", "abc", {"T": 0.5}, [])
        assert model.parameters.query.total == 70


def test_without_a_model_meta_the_folder_names_the_model(tmp_path: Path) -> None:
    result(tmp_path, "maker__model_x")
    assert read([tmp_path], [ExpectedTask("T")])[0][0].name == "maker/model_x"
    (tmp_path / "maker__model_x" / "r1" / "model_meta.json").write_text("{")
    [model], [left] = read([tmp_path], [ExpectedTask("T")])
    assert (model.name, model.revision) == ("maker/model_x", "r1")
    assert "taken from the folder's" in left.reason


def test_results_of_before_version_1_11_are_read(tmp_path: Path) -> None:
    path = tmp_path / "maker__old" / f"{LEGACY}.json"
    path.parent.mkdir()
    old = {
        "mteb_dataset_name": LEGACY,
        "mteb_version": "1.1.1",
        "test": {"map_at_1000": 0.84, "mrr": 0.87, "evaluation_time": 9},
    }
    path.write_text(json.dumps(old))
    [model], left = read([tmp_path], [ExpectedTask(LEGACY)])
    assert (model.name, dict(model.scores), left) == ("maker/old", {LEGACY: 0.84}, [])
    result(tmp_path, "maker__new", task=LEGACY, score=0.8, dataset_revision="dataset revision not available")
    assert [each.name for each in read([tmp_path], [ExpectedTask(LEGACY)])[0]] == ["maker/new", "maker/old"]
    path.write_text(json.dumps(old | {"test": {"map": 0.84}}))
    assert "no main_score" in read([tmp_path], [ExpectedTask(LEGACY)])[1][0].reason


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("{", "not a result"),
        ("[]", "not a result"),
        ('{"scores": 1, "mteb_version": "2.0.0"}', "not a result"),
        ("\udcff", "not a result"),
    ],
)
def test_a_broken_file_is_named_and_the_others_count(tmp_path: Path, written: str, why: str) -> None:
    result(tmp_path, "good")
    result(tmp_path, "bad").write_bytes(written.encode("utf-8", "surrogateescape"))
    models, left = read([tmp_path], [ExpectedTask("T")])
    assert [each.name for each in models] == ["good"]
    [note] = notes(left)
    assert why in note
    assert "bad/r1/T.json" in note


@pytest.mark.parametrize("score", [None, float("nan"), 51.2, "0.5"])
def test_a_score_that_is_none_is_left_out_and_never_0(tmp_path: Path, score: Any) -> None:
    result(tmp_path, score=score)
    models, left = read([tmp_path], [ExpectedTask("T")])
    assert models == []
    assert len(left) == 1


def test_revisions_of_a_model_are_joined_task_by_task(tmp_path: Path) -> None:
    result(tmp_path, revision="old", score=0.1)
    result(tmp_path, revision="new", score=0.2)
    result(tmp_path, revision="new", task="U", score=0.3)
    result(tmp_path, revision="old", task="V", score=0.9)
    result(tmp_path, revision="new", task="V", score=float("nan"))
    result(tmp_path, revision="new", task="W", score=0.4)
    [model], left = read([tmp_path], [ExpectedTask(each) for each in "TUVW"])
    assert (model.revision, dict(model.scores)) == ("new, old", {"T": 0.2, "U": 0.3, "V": 0.9, "W": 0.4})
    assert dict(model.revisions) == {"T": "new", "U": "new", "V": "old", "W": "new"}
    assert ("a/b, revision old", "another revision of the model has a score of T, which mteb prefers") in {
        (each.file, each.reason) for each in left
    }
    assert dict(model.of_revision("old").scores) == {"V": 0.9}


def test_the_main_revision_counts_before_the_latest_version_of_mteb(tmp_path: Path) -> None:
    """As in mteb: the revision of its list of models, then the latest mteb, then any."""
    import mteb

    name = "sentence-transformers/all-MiniLM-L6-v2"
    main = str(mteb.get_model_meta(name).revision)
    result(tmp_path, name.replace("/", "__"), revision=main, score=0.1, mteb_version="1.30.0")
    result(tmp_path, name.replace("/", "__"), revision="later", score=0.2, mteb_version="2.1.0")
    result(tmp_path, name.replace("/", "__"), revision="later", task="U", score=0.3, mteb_version="1.30.0")
    result(tmp_path, name.replace("/", "__"), revision="last", task="U", score=0.4, mteb_version="2.1.0")
    [model], _ = read([tmp_path], [ExpectedTask("T"), ExpectedTask("U")])
    assert dict(model.scores) == {"T": 0.1, "U": 0.4}


@pytest.mark.parametrize("nothing", ["None", "", None, "dataset revision not available"])
def test_a_file_that_does_not_say_the_version_of_its_data_counts(tmp_path: Path, nothing: str | None) -> None:
    for model, version in (("a", "d1"), ("b", nothing)):
        result(tmp_path, model, dataset_revision=version)
    assert [each.name for each in read([tmp_path], [ExpectedTask("T", revision="d1")])[0]] == ["a", "b"]


def test_results_under_an_old_name_of_a_task_count_and_those_of_superseded_tasks_are_named(tmp_path: Path) -> None:
    result(tmp_path, task="CMedQAv2")
    assert task_names([tmp_path]) == ["CMedQAv2-reranking"]
    [model], _ = read([tmp_path], [expected_by_name("CMedQAv2-reranking")])
    assert dict(model.scores) == {"CMedQAv2-reranking": 0.5}
    result(tmp_path, task=SUPERSEDED)
    models, left = read([tmp_path], [ExpectedTask(SUCCESSOR)])
    assert models == []
    assert [each.reason for each in left] == [f"{SUPERSEDED} has other data than {SUCCESSOR}, which supersedes it"]


def test_of_equal_revisions_the_one_evaluated_last_counts(tmp_path: Path) -> None:
    result(tmp_path, revision="b", score=0.1, date=2_000_000_000.0)
    result(tmp_path, revision="a", score=0.2, date=1_000_000_000.0)
    assert read([tmp_path], [ExpectedTask("T")])[0][0].revision == "b"


def test_subsets_are_averaged_and_all_must_be_there(tmp_path: Path) -> None:
    result(tmp_path, "both", scores=rows(en=0.2, zh=0.4))
    result(tmp_path, "one", scores=rows(zh=0.4))
    models, left = read([tmp_path], [ExpectedTask("T", subsets=["en", "zh"])])
    assert {each.name: each.scores["T"] for each in models} == {"both": pytest.approx(0.3)}
    assert "subset en" in left[0].reason


def test_the_split_is_the_tasks_own(tmp_path: Path) -> None:
    both = {"dev": rows(default=0.9)["test"], **rows(default=0.1)}
    result(tmp_path, scores=both)
    for splits, score in ((["dev"], 0.9), (["test"], 0.1), (None, 0.1)):
        assert read([tmp_path], [ExpectedTask("T", splits=splits)])[0][0].scores["T"] == score
    assert "split validation" in read([tmp_path], [ExpectedTask("T", splits=["validation"])])[1][0].reason


def test_scores_on_other_data_are_left_out(tmp_path: Path) -> None:
    for model, version in (("a", "d1"), ("b", "d1"), ("c", "d2")):
        result(tmp_path, model, dataset_revision=version)
    for task in (ExpectedTask("T"), ExpectedTask("T", revision="d1")):
        models, left = read([tmp_path], [task])
        assert [each.name for each in models] == ["a", "b"]
        assert "another version of T's data" in left[0].reason
    assert read([tmp_path], [ExpectedTask("T", revision="d9")])[0] == []


def test_an_older_version_of_the_data_serves_if_most_models_have_it(tmp_path: Path) -> None:
    known = expected_by_name(LEGACY)
    for model, version in (("a", "older"), ("b", "older"), ("c", str(known.latest)), ("d", "")):
        result(tmp_path, model, task=LEGACY, dataset_revision=version)
    assert [each.name for each in read([tmp_path], [known])[0]] == ["a", "b", "d"]
    result(tmp_path, "e", task=LEGACY, dataset_revision=str(known.latest))
    models, left = read([tmp_path], [known])
    assert [each.name for each in models] == ["c", "d", "e"]
    assert "another version" in left[0].reason


def test_subsets_that_nobody_states_are_those_of_most_models(tmp_path: Path) -> None:
    result(tmp_path, "a", scores=rows(de=0.2, ja=0.4))
    result(tmp_path, "b", scores=rows(ja=0.4, de=0.2))
    result(tmp_path, "less", scores=rows(de=0.2))
    result(tmp_path, "more", scores=rows(de=0.2, ja=0.4, es=0.9))
    models, left = read([tmp_path], [ExpectedTask("T")])
    assert {each.name: each.scores["T"] for each in models} == dict.fromkeys(("a", "b", "more"), pytest.approx(0.3))
    assert [(each.file, "subset ja" in each.reason) for each in left] == [("less, revision r1", True)]


def test_the_measure_is_that_of_the_task_that_is_scored_here(tmp_path: Path) -> None:
    result(tmp_path)
    models, left = read([tmp_path], [ExpectedTask("T", measure="map_at_10")])
    assert models == []
    assert "no map_at_10" in left[0].reason


def test_mteb_says_what_results_of_its_own_task_must_be() -> None:
    known = expected_by_name("CmedqaRetrieval")
    assert list(known.splits or ()) == ["dev"]
    assert known.latest
    assert known.revision is None
    assert expected_by_name("no task of mteb") == ExpectedTask("no task of mteb")


def test_a_folder_without_results_says_what_was_expected(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(UserError, match="MODEL/REVISION/TASK"):
            task_names([folder])
    result(tmp_path)
    assert task_names([tmp_path]) == ["T"]
