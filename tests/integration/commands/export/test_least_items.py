"""A task with fewer items than an order of models needs is not exported, unless the user asks and all can see it."""

import re
import shutil
from pathlib import Path

import polars as pl
import pytest
import yaml

from curate.tables.kinds.documents import OfDocuments
from curate.tables.kinds.sts import Sts
from tests.support.runs import Done, curate, ran
from tests.support.sized import sized

STAGES = ("ingest", "mask", "diversify", "pool", "judge", "consensus", "resolve")
SAYS_SMALL = re.compile(r"small|few|tiny|under", re.IGNORECASE)


def made(folder: Path, queries: int) -> Path:
    """Write a run before its export, in which 20 queries have one negative less than the others."""
    doubt = {(n, 4 * n + 3): "S" for n in range(20)}
    name = sized(folder, queries, grades={"one": doubt})
    for stage in STAGES:
        ran(folder, stage, "--pipeline", name)
    return folder


@pytest.fixture(scope="module")
def under(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run of 49 queries before its export."""
    return made(tmp_path_factory.mktemp("under"), 49)


@pytest.fixture(scope="module")
def enough(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run of 50 queries before its export."""
    return made(tmp_path_factory.mktemp("enough"), 50)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run of 80 queries before its export."""
    return made(tmp_path_factory.mktemp("many"), 80)


def export(made: Path, folder: Path, *settings: str) -> Done:
    """Export a copy of what was made, since a run remembers its settings."""
    shutil.copytree(made, folder, dirs_exist_ok=True)
    words = [word for setting in settings for word in ("--set", setting)]
    return curate(folder, "export", "--run", "runs/bench", "--force", *words)


def tasks(folder: Path) -> dict[str, str]:
    """Return task -> its name for mteb, of the tasks that lie in the export."""
    found = {}
    for card in (folder / "runs/bench/export/mteb").glob("*/README.md"):
        found[card.parent.name] = yaml.safe_load(card.read_text("utf-8").split("---")[1])["mteb"]["name"]
    return found


def asked(folder: Path, task: str) -> int:
    (path,) = (folder / f"runs/bench/export/mteb/{task}").glob("queries-*.parquet")
    return pl.read_parquet(path).height


def test_fifty_queries_are_enough(enough: Path, tmp_path: Path) -> None:
    """Retrieval, graded or not, and reranking of 50 queries are exported without a word (today too)."""
    done = export(enough, tmp_path, "export.labels=both")
    assert done.returncode == 0, done.stderr
    assert set(tasks(tmp_path)) == {"retrieval", "graded", "reranking"}
    assert asked(tmp_path, "retrieval") == 50
    assert "export.small" not in done.stdout + done.stderr


def test_a_run_whose_every_task_is_too_small_stops(under: Path, tmp_path: Path) -> None:
    """49 queries make no export; the command fails and does not just warn."""
    done = export(under, tmp_path)
    assert done.returncode not in (0, None)
    assert not tasks(tmp_path)


def test_the_sentence_names_the_number_the_least_and_the_setting(under: Path, tmp_path: Path) -> None:
    """Who is refused reads how many there are, how many it takes, and what to set."""
    done = export(under, tmp_path)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    for word in (r"\b49\b", r"\b50\b", r"export\.small"):
        assert re.search(word, said), word
    assert "Traceback" not in said


def test_a_whole_run_stops_there_too(tmp_path: Path) -> None:
    """`curate run` of few queries ends with the same sentence, once everything before is done."""
    done = curate(tmp_path, "run", sized(tmp_path, 12))
    assert done.returncode != 0
    assert re.search(r"\b12\b", done.stderr)
    assert "export.small" in done.stderr
    assert (tmp_path / "runs/bench/resolve/stage.json").exists()


@pytest.mark.parametrize("labels", ["binary", "both"])
def test_what_is_asked_for_is_exported_and_its_name_says_so(labels: str, under: Path, tmp_path: Path) -> None:
    """With export.small: true 49 queries are exported, under names that say that they are few."""
    done = export(under, tmp_path, "export.small=true", f"export.labels={labels}")
    assert done.returncode == 0, done.stderr
    found = tasks(tmp_path)
    assert set(found) == {"retrieval", "reranking"} | ({"graded"} if labels == "both" else set())
    assert asked(tmp_path, "retrieval") == 49
    card = (tmp_path / "runs/bench/export/mteb/README.md").read_text("utf-8")
    pretty = str(yaml.safe_load(card.split("---")[1])["pretty_name"])
    for name in found.values():
        assert SAYS_SMALL.search(name) or SAYS_SMALL.search(pretty), name


def test_the_card_says_so(under: Path, tmp_path: Path) -> None:
    """The card of such an export says that it has fewer items than the least number, 50."""
    assert export(under, tmp_path, "export.small=true").returncode == 0
    folder = tmp_path / "runs/bench/export/mteb"
    card = (folder / "README.md").read_text("utf-8") + (folder / "retrieval" / "README.md").read_text("utf-8")
    body = re.sub(r"\A---.*?---\n", "", card, flags=re.DOTALL)
    assert [line for line in body.splitlines() if re.search(r"\b50\b", line) and re.search(r"small|fewer|under", line)]


def test_small_is_said_of_small_tasks_alone(enough: Path, tmp_path: Path) -> None:
    """The setting changes nothing for a task that has enough."""
    plain = export(enough, tmp_path / "plain")
    done = export(enough, tmp_path / "asked", "export.small=true")
    assert (plain.returncode, done.returncode) == (0, 0), done.stderr
    assert tasks(tmp_path / "asked") == tasks(tmp_path / "plain")


def test_a_reranking_of_few_queries_stays_out_and_retrieval_does_not(many: Path, tmp_path: Path) -> None:
    """Of a run with 60 queries for retrieval and 20 for reranking only retrieval is exported, and a line says why."""
    done = export(many, tmp_path, "export.rerank.queries=20")
    assert done.returncode == 0, done.stderr
    assert set(tasks(tmp_path)) == {"retrieval"}
    said = done.stdout + done.stderr
    assert re.search(r"reranking[^\n]*\b20\b", said) or re.search(r"\b20\b[^\n]*reranking", said)
    assert "export.small" in said


def test_a_retrieval_of_few_queries_stays_out_and_reranking_does_not(many: Path, tmp_path: Path) -> None:
    """Of a run with 25 queries for retrieval and 55 for reranking only reranking is exported."""
    done = export(many, tmp_path, "export.rerank.queries=55")
    assert done.returncode == 0, done.stderr
    assert set(tasks(tmp_path)) == {"reranking"}
    assert asked(tmp_path, "reranking") >= 50
    assert "export.small" in done.stdout + done.stderr


def test_a_reranking_that_loses_queries_is_counted_as_it_is(enough: Path, tmp_path: Path) -> None:
    """What counts is what would be published: queries without enough negatives are in no reranking."""
    done = export(enough, tmp_path, "export.rerank.negatives=4")
    assert done.returncode == 0, done.stderr
    assert set(tasks(tmp_path)) == {"retrieval"}


WORDS = ("胃溃疡", "痛风", "偏头痛", "白内障", "青光眼")
SYNONYMS = ("消化性胃溃", "尿酸病", "偏头疼", "白内之障", "绿光眼")
BODIES = ("能喝酒抽烟吃辣吗", "早期疼起来怎么办")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run of 60 queries, a few sentence pairs, and a few edits that nobody confirmed."""
    folder = tmp_path_factory.mktemp("pairs")
    name = sized(
        folder,
        60,
        stages=[*STAGES, "sts", "gradient", "export"],
        gradient={"kind": ["edit"], "panel": [], "dictionary": "words.tsv", "faults": "drop"},
        sts={"generator": "templates", "panel": [], "dictionary": "words.tsv", "faults": "drop", "test": 4, "train": 2},
    )
    rows = [f"{word}\t{other}\texact\ttest\tboth\n" for word, other in zip(WORDS, SYNONYMS, strict=True)]
    (folder / "words.tsv").write_text("term\tsynonym\tkind\tsource\tunseen\n" + "".join(rows), encoding="utf-8")
    path = folder / "data" / "queries.jsonl"
    lines = path.read_text("utf-8").splitlines()
    for at, body in enumerate(word + body for word in WORDS for body in BODIES):
        lines[at] = re.sub(r'"text": ".*?"', f'"text": "{body}"', lines[at])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for stage in (*STAGES, "sts", "gradient"):
        ran(folder, stage, "--pipeline", name)
    return folder


def test_few_sentence_pairs_stay_out(pairs: Path, tmp_path: Path) -> None:
    """Fewer than 100 pairs make no task, though the run's queries do; the line names the least number."""
    done = export(pairs, tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(tasks(tmp_path)) == {"retrieval", "reranking"}
    said = done.stdout + done.stderr
    assert "export.small" in said
    assert re.search(r"\b100\b", said)


def test_few_sentence_pairs_are_exported_when_asked_for(pairs: Path, tmp_path: Path) -> None:
    """With export.small: true they are there, and say that they are few."""
    done = export(pairs, tmp_path, "export.small=true")
    assert done.returncode == 0, done.stderr
    found = tasks(tmp_path)
    card = (tmp_path / "runs/bench/export/mteb/sts/README.md").read_text("utf-8")
    assert SAYS_SMALL.search(found["sts"]) or re.search(r"\b100\b", card)


def test_few_edits_stay_out(pairs: Path, tmp_path: Path) -> None:
    """Edits of which fewer than 50 a kind are confirmed make no task."""
    done = export(pairs, tmp_path)
    assert done.returncode == 0, done.stderr
    assert not [task for task in tasks(tmp_path) if "edit" in task]
    assert re.search(r"edit", done.stdout + done.stderr)


RECORDED = ("--recorded", "one=one.tsv", "--recorded", "two=two.tsv")


def unverified(folder: Path) -> str:
    """Return what `verify` says of an export in which nothing differs but some things cannot be checked."""
    done = curate(folder, "verify", "runs/bench/export", *RECORDED)
    assert done.returncode == 3, done.stdout
    assert "differ" not in done.stdout.replace("nothing differs", "")
    return done.stdout


def test_an_export_of_reranking_alone_is_verified(many: Path, tmp_path: Path) -> None:
    assert export(many, tmp_path, "export.rerank.queries=55").returncode == 0
    assert "judged pairs looked up" in unverified(tmp_path)


def test_sentence_pairs_are_exported_without_the_queries(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With enough pairs and too few queries, sts is exported alone; every following command takes that."""
    monkeypatch.setattr(OfDocuments, "least", 61)
    monkeypatch.setattr(Sts, "least", 2)
    done = export(pairs, tmp_path)
    assert done.returncode == 0, done.stderr
    assert tasks(tmp_path) == {"sts": "bench-sts"}
    assert "queries: 0 of 60 are exported; left out: 60 too few queries for a task" in done.stdout
    assert "not written, for too few items: beir, trec" in done.stderr
    unverified(tmp_path)
    ran(tmp_path, "report", "--run", "runs/bench")
    ran(tmp_path, "evaluate", "runs/bench", "use")
