"""Folders of others' results as they really are: what is used, with which score, and what is left out by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import spearmanr

from tests.support.evaluating import benchmark, written
from tests.support.others import GOOD, OLD, RERANK, RETRIEVAL, SECOND, STS, Bench, Told, good, put, row, task


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("results")
    return Bench(folder, written(benchmark(), folder / "small"))


def hold_good(told: Told, name: str = RETRIEVAL) -> None:
    """Hold that the ordinary models are there, beside any other files."""
    assert {model: told.score(f"maker/{model}", name) for model in GOOD} == pytest.approx(GOOD)


# What is used

VERSIONS = {
    "the text None": {"dataset_revision": "None"},
    "null": {"dataset_revision": None},
    "empty": {"dataset_revision": ""},
    "said to be unknown": {"dataset_revision": "dataset revision not available"},
}


def test_most_files_without_a_version_do_not_push_out_those_with_one(bench: Bench) -> None:
    """No version is no version of its own that a majority could have."""
    root = bench.root()
    for at in range(5):
        put(root, f"none{at}", score=0.1 * at, dataset_revision="None")
    good(root)
    told = bench.told(root, RETRIEVAL)
    hold_good(told)
    assert [told.score(f"maker/none{at}", RETRIEVAL) for at in range(5)] == pytest.approx([0.1 * at for at in range(5)])


ORDINARY: dict[str, dict[str, Any]] = {
    "no model_meta.json": {"meta": None},
    "a revision that nobody knows": {"revision": "no_revision_available"},
    "an external revision": {"revision": "external"},
    "another split beside the right one": {
        "splits": {"train": [row(0.01)], "dev": [row(0.78)], "test": [row(0.02)]},
    },
    "another subset beside the right one": {"splits": {"dev": [row(0.79), row(0.03, "en")]}},
}


@pytest.fixture(scope="module")
def used(bench: Bench) -> Told:
    """Return what came out of one folder of models each of which has an oddity of its own."""
    root = bench.root()
    good(root)
    oddities: dict[str, Any] = {**VERSIONS, **ORDINARY}
    for at, more in enumerate(oddities.values()):
        put(root, f"odd{at}x", score=0.71 + at / 100, **more)
    return bench.told(root, RETRIEVAL)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_result_that_names_no_version_of_the_data_is_used(version: str, used: Told) -> None:
    """A model is not lost because its file does not know the version of the data (two of the four today too)."""
    at = list(VERSIONS).index(version)
    hold_good(used)
    assert used.score(f"maker/odd{at}x", RETRIEVAL) == pytest.approx(0.71 + at / 100)
    assert not used.names(f"maker__odd{at}x")


@pytest.mark.parametrize("oddity", ORDINARY)
def test_what_does_not_matter_changes_no_score(oddity: str, used: Told) -> None:
    """A file with something beside what is needed is used as it is (today too)."""
    at = list(VERSIONS | ORDINARY).index(oddity)
    assert used.score(f"maker/odd{at}x", RETRIEVAL) == pytest.approx(0.71 + at / 100)


def test_a_folder_is_found_from_above_and_from_inside(bench: Bench) -> None:
    """It does not matter whether the folder `results` or the one around it is named (today too)."""
    root = bench.root()
    good(root)
    hold_good(bench.told(root, RETRIEVAL))
    hold_good(bench.told(root / "results", RETRIEVAL))


def test_other_files_of_a_repository_are_no_obstacle(bench: Bench) -> None:
    """A checkout with a history, a page, lists and hidden files is read for its results (today too)."""
    root = bench.root()
    good(root)
    (root / ".git" / "objects" / "ab").mkdir(parents=True)
    (root / ".git" / "objects" / "ab" / "cd.json").write_text("{", encoding="utf-8")
    (root / "README.md").write_text("# results", encoding="utf-8")
    (root / "results" / "paths.json").write_text("{}", encoding="utf-8")
    (root / "results" / "maker__m1" / ".DS_Store").write_bytes(b"\0")
    (root / "results" / "maker__empty" / "r1").mkdir(parents=True)
    hold_good(bench.told(root, RETRIEVAL))


def test_a_correlation_may_be_negative(bench: Bench) -> None:
    """Sentence pairs have scores from -1 to 1, and 0 is a score (today too)."""
    root = bench.root()
    good(root, STS)
    put(root, "odd", STS, -0.2)
    put(root, "zero", STS, 0.0)
    told = bench.told(root, STS)
    hold_good(told, STS)
    assert told.score("maker/odd", STS) == pytest.approx(-0.2)
    assert told.score("maker/zero", STS) == 0


def test_several_splits_are_averaged_as_mteb_does(bench: Bench) -> None:
    """A task of two splits has the score that mteb gives for its file (today too)."""
    from mteb.results import TaskResult

    root = bench.root()
    good(root, STS)
    path = put(root, "odd", STS, splits={"validation": [row(0.4)], "test": [row(0.9)]})
    expected = TaskResult.from_disk(path).get_score(splits=task(STS).metadata.eval_splits)
    assert expected == pytest.approx(0.65)
    assert bench.told(root, STS).score("maker/odd", STS) == pytest.approx(expected)


def test_subsets_are_averaged_as_mteb_does(bench: Bench) -> None:
    """A task of several languages has the mean of them all, each counted once (today too)."""
    from mteb.results import TaskResult

    name = "XPQARetrieval"
    root = bench.root()
    subsets = task(name).hf_subsets
    rows = [row(at / 100, subset) for at, subset in enumerate(subsets)]
    path = put(root, "odd", name, splits={"test": rows[::-1]})
    for model in GOOD:
        put(root, model, name, GOOD[model])
    expected = TaskResult.from_disk(path).get_score(splits=["test"])
    assert expected == pytest.approx(sum(range(len(subsets))) / 100 / len(subsets))
    assert bench.told(root, name).score("maker/odd", name) == pytest.approx(expected)


def test_files_of_before_version_1_11_are_used(bench: Bench) -> None:
    """The first form of a result, in which splits stand beside the task's name, has its score (today too)."""
    root = bench.root()
    good(root, OLD)
    whole = {"mteb_dataset_name": OLD, "mteb_version": "1.1.1", "test": {"map_at_1000": 0.84, "mrr": 0.87}}
    put(root, "odd", OLD).write_text(json.dumps(whole), encoding="utf-8")
    told = bench.told(root, OLD)
    hold_good(told, OLD)
    assert told.score("maker/odd", OLD) == pytest.approx(0.84)


def test_the_oldest_form_of_sentence_pairs_is_read_by_spearman(bench: Bench) -> None:
    """In the first form the score of sentence pairs is that which mteb takes: Spearman of cosines (today too)."""
    root = bench.root()
    good(root, STS)
    part = {"cos_sim": {"pearson": 0.1, "spearman": 0.77}, "euclidean": {"pearson": 0.2, "spearman": 0.3}}
    whole = {"mteb_dataset_name": STS, "mteb_version": "1.1.1", "validation": part, "test": part}
    put(root, "odd", STS).write_text(json.dumps(whole), encoding="utf-8")
    assert bench.told(root, STS).score("maker/odd", STS) == pytest.approx(0.77)


# Revisions of a model


def joined(root: Path, model: str, name: str) -> float | None:
    """Return the score that mteb itself has for a model and a task when it joins revisions."""
    from mteb.cache import ResultCache

    loaded = ResultCache(root).load_results(tasks=[name], require_model_meta=False).join_revisions()
    found = [
        result.get_score(splits=task(name).metadata.eval_splits)
        for each in loaded.model_results
        if each.model_name == model
        for result in each.task_results
        if result.task_name == name
    ]
    assert len(found) <= 1
    return found[0] if found else None


Write = Callable[[Path], None]
Merge = Callable[[Path, str], None]


def two_tasks(root: Path, model: str) -> None:
    put(root, model, RETRIEVAL, 0.31, "a" * 40)
    put(root, model, SECOND, 0.32, "b" * 40)


def three_revisions(root: Path, model: str) -> None:
    put(root, model, RETRIEVAL, 0.31, "r1", mteb_version="1.14.0")
    put(root, model, RETRIEVAL, 0.41, "r2", mteb_version="1.38.0")
    put(root, model, SECOND, 0.32, "r1", mteb_version="2.1.0")
    put(root, model, SECOND, 0.42, "r3", mteb_version="1.38.0")


def released_after_development(root: Path, model: str) -> None:
    put(root, model, RETRIEVAL, 0.31, "r1", mteb_version="2.1.0.dev3")
    put(root, model, RETRIEVAL, 0.41, "r2", mteb_version="2.1.0")
    put(root, model, SECOND, 0.32, "r1")


def unknown_versions(root: Path, model: str) -> None:
    put(root, model, RETRIEVAL, 0.31, "z", mteb_version="mteb version not available")
    put(root, model, RETRIEVAL, 0.41, "a", mteb_version="1.14.0")
    put(root, model, SECOND, 0.32, "z")


def external(root: Path, model: str) -> None:
    put(root, model, RETRIEVAL, 0.31, "external", mteb_version="2.20.0")
    put(root, model, RETRIEVAL, 0.41, "c" * 40, mteb_version="1.14.0")
    put(root, model, SECOND, 0.32, "external", mteb_version="2.20.0")


def nobody_knows(root: Path, model: str) -> None:
    put(root, model, RETRIEVAL, 0.31, "no_revision_available", mteb_version="2.20.0")
    put(root, model, RETRIEVAL, 0.41, "c" * 40, mteb_version="1.14.0")
    put(root, model, SECOND, 0.32, "no_revision_available", mteb_version="2.20.0")


def nothing_in_the_newest(root: Path, model: str) -> None:
    put(root, model, RETRIEVAL, 0.31, "r1", mteb_version="2.20.0", splits={})
    put(root, model, RETRIEVAL, 0.41, "r2", mteb_version="1.14.0")
    put(root, model, SECOND, 0.32, "r1", mteb_version="2.20.0")


def two_folders_of_one_name(root: Path, model: str) -> None:
    other = json.dumps({"name": f"maker/{model}", "revision": "r7"})
    put(root, model, RETRIEVAL, 0.31, "r1", mteb_version="1.14.0")
    put(root, f"{model}-of-before", RETRIEVAL, 0.41, "r7", mteb_version="2.3.0", meta=other)
    put(root, f"{model}-of-before", SECOND, 0.42, "r7", mteb_version="2.3.0", meta=other)


MERGED: dict[str, tuple[Merge, dict[str, float]]] = {
    "tasks in different revisions": (two_tasks, {RETRIEVAL: 0.31, SECOND: 0.32}),
    "the newest version of mteb, task by task": (three_revisions, {RETRIEVAL: 0.41, SECOND: 0.32}),
    "a release is newer than its development": (released_after_development, {RETRIEVAL: 0.41, SECOND: 0.32}),
    "a version that is none comes last": (unknown_versions, {RETRIEVAL: 0.41, SECOND: 0.32}),
    "external comes after a named revision": (external, {RETRIEVAL: 0.41, SECOND: 0.32}),
    "no revision comes after a named one": (nobody_knows, {RETRIEVAL: 0.41, SECOND: 0.32}),
    "a file without scores is none": (nothing_in_the_newest, {RETRIEVAL: 0.41, SECOND: 0.32}),
    "one name in two folders": (two_folders_of_one_name, {RETRIEVAL: 0.41, SECOND: 0.42}),
}


@pytest.fixture(scope="module")
def merged(bench: Bench) -> tuple[Path, Told]:
    """Return a folder of models with several revisions, and what came out of it."""
    root = bench.root()
    good(root, RETRIEVAL, SECOND)
    for at, (write, _) in enumerate(MERGED.values()):
        write(root, f"odd{at}")
    return root, bench.told(root, groups=(f"both={RETRIEVAL},{SECOND}",))


@pytest.mark.parametrize("case", MERGED)
def test_revisions_are_merged_as_mteb_merges_them(case: str, merged: tuple[Path, Told]) -> None:
    """Every task of a model has the score of the revision that mteb's `join_revisions` takes (one case today too)."""
    root, told = merged
    model, expected = f"maker/odd{list(MERGED).index(case)}", MERGED[case][1]
    assert {name: joined(root, model, name) for name in expected} == pytest.approx(expected), "mteb itself"
    assert {name: told.score(model, name) for name in expected} == pytest.approx(expected)
    (group,) = told.data["averages"]
    means = {each["model"]: each["value"] for each in group["models"]}
    assert means[model] == pytest.approx(sum(expected.values()) / 2)


def test_the_revision_that_mteb_knows_comes_before_newer_ones(bench: Bench) -> None:
    """Of a model that mteb has in its list the revision of that list counts, also where another was run later."""
    import mteb

    name = "intfloat/multilingual-e5-small"
    main = mteb.get_model_meta(name).revision
    root = bench.root()
    good(root, RETRIEVAL, SECOND)
    for revision, version, score in ((main, "1.14.0", 0.21), ("f" * 40, "2.26.0", 0.91)):
        path = put(root, "x", RETRIEVAL, score, revision, mteb_version=version)
        (path.parent / "model_meta.json").write_text(json.dumps({"name": name, "revision": revision}))
    path = put(root, "x", SECOND, 0.92, "f" * 40)
    (path.parent / "model_meta.json").write_text(json.dumps({"name": name, "revision": "f" * 40}))
    assert joined(root, name, RETRIEVAL) == pytest.approx(0.21)
    told = bench.told(root, RETRIEVAL, SECOND)
    assert told.score(name, RETRIEVAL) == pytest.approx(0.21)
    assert told.score(name, SECOND) == pytest.approx(0.92)


def test_an_experiment_is_not_the_model(bench: Bench) -> None:
    """What a model scored in an experiment of mteb's never stands as its own score (today too)."""
    root = bench.root()
    good(root)
    put(root, "odd", score=0.31, mteb_version="1.14.0")
    own = root / "results" / "maker__odd" / "r1"
    inner = own / "experiments" / "dims_64"
    inner.mkdir(parents=True)
    whole = json.loads((own / f"{RETRIEVAL}.json").read_text("utf-8"))
    whole["scores"]["dev"][0] |= {"main_score": 0.99, "ndcg_at_10": 0.99}
    (inner / f"{RETRIEVAL}.json").write_text(json.dumps(whole | {"mteb_version": "2.26.0"}), encoding="utf-8")
    meta = {"name": "maker/odd", "revision": "r1", "experiment_kwargs": {"dims": 64}}
    (inner / "model_meta.json").write_text(json.dumps(meta), encoding="utf-8")
    assert bench.told(root, RETRIEVAL).score("maker/odd", RETRIEVAL) == pytest.approx(0.31)


# Old names of tasks


def oldest_form(root: Path) -> None:
    whole = {"mteb_dataset_name": "CMedQAv1", "mteb_version": "1.1.1", "test": {"map_at_1000": 0.71}}
    put(root, "odd", OLD, file="CMedQAv1").write_text(json.dumps(whole), encoding="utf-8")


def later_form(root: Path) -> None:
    put(root, "odd", OLD, 0.71, file="CMedQAv1", task_name="CMedQAv1", dataset_revision="None")


@pytest.mark.parametrize("write", [oldest_form, later_form])
def test_a_model_under_an_old_name_of_a_task_is_used_or_listed(write: Write, bench: Bench) -> None:
    """A model whose result lies under a name that mteb has changed is used, or a line names it."""
    root = bench.root()
    good(root, OLD)
    write(root)
    told = bench.told(root, OLD)
    hold_good(told, OLD)
    used = told.score("maker/odd", OLD)
    if used is None:
        assert told.names("maker__odd") or told.names("maker/odd")
    else:
        assert used == pytest.approx(0.71)


@pytest.mark.parametrize(("old", "new"), [("STSBenchmark", "STSBenchmark.v2")])
def test_a_model_with_a_result_of_a_superseded_task_is_used_or_listed(old: str, new: str, bench: Bench) -> None:
    """A model that was scored on the task's predecessor alone does not vanish without a line."""
    root = bench.root()
    good(root, new)
    put(root, "odd", old, 0.71)
    told = bench.told(root, new)
    hold_good(told, new)
    used = told.score("maker/odd", new)
    assert used is not None or told.names("maker__odd") or told.names("maker/odd")


# What is left out

BROKEN: dict[str, bytes] = {
    "cut off": b'{"task_name": "Cmed',
    "a pointer of git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_named_and_the_others_count(kind: str, bench: Bench) -> None:
    """A file that cannot be read costs its own model a score and nobody else (today too)."""
    root = bench.root()
    good(root)
    put(root, "odd").write_bytes(BROKEN[kind])
    told = bench.told(root, RETRIEVAL)
    hold_good(told)
    assert told.score("maker/odd", RETRIEVAL) is None
    assert told.names("maker__odd")


@pytest.mark.parametrize("score", [float("nan"), 51.2])
def test_a_score_that_is_none_is_named_and_never_0(score: Any, bench: Bench) -> None:
    """A score that is no share is left out by name, and is never taken for 0 (today too)."""
    root = bench.root()
    good(root)
    put(root, "odd", score=score)
    told = bench.told(root, RETRIEVAL)
    hold_good(told)
    assert told.score("maker/odd", RETRIEVAL) is None
    assert told.names("maker__odd") or told.names("maker/odd")


ELSEWHERE: dict[str, tuple[str, dict[str, Any]]] = {
    "another split": (RETRIEVAL, {"splits": {"test": [row(0.71)]}}),
    "one of many subsets": ("XPQARetrieval", {"splits": {"test": [row(0.71, "ara-ara")]}}),
    "other data": (RETRIEVAL, {"dataset_revision": "0" * 40}),
}


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_a_result_of_something_else_is_named(kind: str, bench: Bench) -> None:
    """A score of another split, subset or version of the data stands for nothing, and a line says so (today too)."""
    name, more = ELSEWHERE[kind]
    root = bench.root()
    good(root, name)
    put(root, "odd", name, 0.71, **more)
    told = bench.told(root, name)
    hold_good(told, name)
    assert told.score("maker/odd", name) is None
    assert told.names("maker__odd") or told.names("maker/odd")


UNSURE: dict[str, dict[str, Any]] = {
    "a model without a name": {"meta": json.dumps({"name": None, "revision": "r1"})},
    "a name of a file that is not the task's": {"file": f"{RETRIEVAL}_rerun"},
}


@pytest.mark.parametrize("kind", UNSURE)
def test_what_is_unsure_is_used_or_named(kind: str, bench: Bench) -> None:
    """A result that mteb itself would hardly read is either used with its score or named (one of two today too)."""
    root = bench.root()
    good(root)
    put(root, "odd", score=0.71, **UNSURE[kind])
    told = bench.told(root, RETRIEVAL)
    hold_good(told)
    used = [each["scores"][RETRIEVAL] for each in told.data["results"] if each["scores"].get(RETRIEVAL) == 0.71]
    assert used == [0.71] or told.names("odd")


def test_every_file_that_is_left_out_is_named(bench: Bench) -> None:
    """Of five files that are left out for one reason a user can read all five names."""
    root = bench.root()
    good(root)
    for at in range(5):
        put(root, f"lost{at}").write_text("{", encoding="utf-8")
    told = bench.told(root, RETRIEVAL)
    hold_good(told)
    assert [at for at in range(5) if f"maker__lost{at}" not in told.text] == []


def test_nothing_that_was_used_is_said_to_be_left_out(bench: Bench) -> None:
    """A folder in order gives no line about files that are left out (today too)."""
    root = bench.root()
    good(root, RETRIEVAL, SECOND)
    told = bench.told(root, RETRIEVAL, SECOND)
    assert not [note for note in told.data["notes"] if "--results" in note and "left out" in note]


# All at once


def test_a_comparison_of_two_groups_comes_out_of_a_folder_of_all_oddities(bench: Bench) -> None:
    """Old against new tasks: means of 14 models and Spearman's correlation, with every kind of file in between."""
    root = bench.root()
    legacy, new = {}, {}
    for at in range(14):
        one, other = 0.3 + at / 50, 0.2 + (at * 5 % 14) / 40
        names = {"odd": [(RETRIEVAL, one), (SECOND, one + 0.1)], "even": [(RERANK, other), (OLD, other + 0.02)]}
        for place, (name, score) in enumerate(names["odd"] + names["even"]):
            more: dict[str, Any] = {"dataset_revision": [task(name).metadata.revision, "None", "", None][at % 4]}
            put(root, f"n{at:02}", name, score, f"r{place if at % 3 == 0 else 0}", **more)
        legacy[f"maker/n{at:02}"], new[f"maker/n{at:02}"] = one + 0.05, other + 0.01
    put(root, "broken").write_text("{", encoding="utf-8")
    put(root, "half", RETRIEVAL, 0.5)
    put(root, "wrong", RETRIEVAL, 77.0)
    told = bench.told(root, groups=(f"new={RERANK},{OLD}", f"legacy={RETRIEVAL},{SECOND}"))
    for name, expected in (("legacy", legacy), ("new", new)):
        group = next(each for each in told.data["averages"] if each["name"] == name)
        assert {each["model"]: each["value"] for each in group["models"]} == pytest.approx(expected)
    (order,) = told.data["orders"]
    models = sorted(legacy)
    expected = spearmanr([legacy[each] for each in models], [new[each] for each in models])[0]
    assert order["models"] == 14
    assert order["spearman"]["value"] == pytest.approx(expected, abs=1e-6)
    for lost in ("broken", "half", "wrong"):
        assert f"maker__{lost}" in told.text or f"maker/{lost}" in told.text
