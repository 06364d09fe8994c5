"""Settings, names and places that are refused before anything is paid or written, with the way out."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.support.printed import sentences
from tests.support.runs import complaint, curate, ran, tiny
from tests.vendor import Vendor, vendor


@pytest.fixture
def server() -> Iterator[Vendor]:
    with vendor(lambda query, passage: "S" if query[:2] in passage else "D") as running:
        yield running


def finished(folder: Path) -> str:
    """Run the small pipeline; return its file."""
    name = tiny(folder)
    ran(folder, "run", name)
    return name


def files(folder: Path) -> dict[str, bytes]:
    """Return the files of runs, and their bytes."""
    return {str(path): path.read_bytes() for path in sorted((folder / "runs").rglob("*")) if path.is_file()}


SETTINGS = [
    (["consensus.settle=nosuch"], "consensus.settle: unknown judge 'nosuch'"),
    (["consensus.settle=use", "export.labels=graded"], "export.labels: graded keeps contested pairs"),
    (["seed=-5"], "seed: expected greater than or equal to 0"),
    (["pool.depth=99999999999999999999"], "pool.depth"),
]


@pytest.mark.parametrize(("settings", "message"), SETTINGS)
def test_every_command_refuses_settings_that_contradict(settings: list[str], message: str, tmp_path: Path) -> None:
    name = finished(tmp_path)
    before = files(tmp_path)
    changes = [word for each in settings for word in ("--set", each)]
    for command in (["run", name], ["run", name, "--plan"], ["judge", "--plan"], ["judge"], ["consensus"], ["mask"]):
        words = [*command, *(["--run", "runs/tiny"] if command[0] != "run" else [])]
        assert message in complaint(tmp_path, *words, *changes), words
    assert files(tmp_path) == before


def test_stages_without_one_that_others_read(tmp_path: Path) -> None:
    said = complaint(tmp_path, "run", tiny(tmp_path), "--set", "stages=[ingest, mask, pool, judge, consensus]")
    assert said.endswith("error: stages: pool reads what diversify writes; name that too\n")
    assert not (tmp_path / "runs").exists()


def test_a_set_that_the_plan_showed_is_what_is_paid_for(tmp_path: Path, server: Vendor) -> None:
    """The printed command carries the settings; without them the pool is another, and nothing is sent."""
    name = tiny(tmp_path)
    price = "{input: 2, output: 8, currency: CNY, date: 2026-11-01}"
    model = f"judges.paid={{kind: openai, base_url: '{server.url}', model: m, price: {price}}}"
    judged = ["--set", model, "--set", "judge.models=[paid]", "--set", "judge.allow_weak_judges=true"]
    refused = curate(tmp_path, "run", name, *judged, "--set", "pool.size=3")
    [printed] = [line for line in refused.stderr.splitlines() if line.startswith("try: ")]
    another = curate(tmp_path, "run", name, *judged, "--max-cost", "5")
    assert another.returncode == 2
    assert "pool.size: 3 in the plan, 10 now" in sentences(another.stderr)
    assert server.calls == []
    ran(tmp_path, *shlex.split(printed.removeprefix("try: curate ")))
    assert len(server.calls) == 5
    assert pl.read_parquet(tmp_path / "runs/tiny/pool/pool.parquet").group_by("query_id").len()["len"].max() == 3
    ran(tmp_path, "run", name, *judged, "--plan")
    ran(tmp_path, "run", name, *judged, "--max-cost", "5")


def test_a_bare_stage_does_not_take_a_finished_run_apart(tmp_path: Path) -> None:
    finished(tmp_path)
    before = files(tmp_path)
    said = complaint(tmp_path, "pool", "--depth", "3")
    assert "judge, consensus, resolve, export, report are up to date" in said
    assert files(tmp_path) == before
    ran(tmp_path, "pool")
    ran(tmp_path, "pool", "--depth", "3", *said.strip().rpartition("name the run: ")[2].split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["judge", "--run", "runs/tiny", "--models", "gpt4o", "--plan"], "did you mean 'gpt-4o' or 'gpt-4o-mini'?"),
        (["status", "--run", "runs/tni"], "no such run folder; did you mean 'runs/tiny'?"),
        (["status", "--run", "tiny"], "known: runs/tiny"),
        (["tokens", "runs/tiny", "--models", "use", "--set", "seed=-5"], "seed"),
        (["tokens", "runs/tiny", "--models", "use", "--set", "limit=99999999999999999999"], "limit"),
        (["tokens", "runs/tiny", "--models", "use", "--out", "runs/tiny/pool"], "--out runs/tiny/pool: inside the run"),
        (["diff", "runs/tiny", "runs/tiny", "--out", "runs/tiny/consensus/verdicts.parquet"], "--out runs/tiny/cons"),
        (["diff", "runs/tiny", "runs/tiny", "--out", "notes.csv"], "not empty"),
        (["paper", "runs/tiny", "--out", "/"], "--out /: not empty"),
        (["paper", "runs/tiny", "--out", "/proc/x"], "--out /proc/x: nothing can be written"),
        (["paper", "runs/tiny", "--out", "runs/tiny/export/mteb/x"], "inside the export"),
        (["extend", "runs/tiny", "--encoder", "nosuch"], "unknown retriever 'nosuch'"),
    ],
)
def test_names_and_places(words: list[str], message: str, tmp_path: Path) -> None:
    finished(tmp_path)
    (tmp_path / "notes.csv").write_text("a,b\n")
    before = files(tmp_path)
    said = complaint(tmp_path, *words)
    assert message in said
    assert "kind: dense" not in said or words[0] == "extend"
    assert files(tmp_path) == before, "nothing is written, and no folder is left behind"


def test_agreement_takes_a_run_by_its_folder(tmp_path: Path) -> None:
    finished(tmp_path)
    assert ran(tmp_path, "agree", "runs/tiny").stdout == ran(tmp_path, "agree", "--run", "runs/tiny").stdout


def test_a_task_that_cannot_be_loaded_names_the_command_for_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request of a few seconds, and one sentence."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    done = curate(tmp_path, "audit", "CmedqaRetrieval", "--models", "lexical")
    assert done.returncode == 1, done.stderr
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "hf download mteb/CmedqaRetrieval --repo-type dataset" in line
    assert "Retrying" not in done.stderr


@pytest.mark.parametrize("beside", [True, False])
def test_the_older_layout_of_c_mteb_is_read(beside: bool, tmp_path: Path) -> None:
    texts = tmp_path / "CmedqaRetrieval" / "data"
    labels = (tmp_path / "CmedqaRetrieval-qrels" / "data") if beside else texts
    for folder in {texts, labels}:
        folder.mkdir(parents=True)
    pl.DataFrame({"id": ["q1", "q2"], "text": ["咳嗽怎么办", "发热怎么办"]}).write_parquet(
        texts / "queries-00000-of-00001-abc.parquet"
    )
    pl.DataFrame({"id": ["d1", "d2"], "text": ["多喝水休息", "物理降温"]}).write_parquet(
        texts / "corpus-00000-of-00001-abc.parquet"
    )
    name = "dev-00000-of-00001-abc.parquet" if beside else "qrels-00000-of-00001-abc.parquet"
    pl.DataFrame({"qid": ["q1", "q2"], "pid": ["d1", "d2"], "score": [1, 1]}).write_parquet(labels / name)
    (tmp_path / "old.yaml").write_text("version: 1\nname: old\ningest: {source: CmedqaRetrieval}\n", encoding="utf-8")
    ran(tmp_path, "ingest", "--pipeline", "old.yaml", "--run", "runs/old")
    assert pl.read_parquet(tmp_path / "runs/old/ingest/qrels.parquet").select("query_id", "doc_id").rows() == [
        ("q1", "d1"),
        ("q2", "d2"),
    ]
