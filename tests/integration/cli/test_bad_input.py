"""Bad input: one sentence with the place and the remedy, nothing lost, exit code 2."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support import machine
from tests.support.printed import sentences
from tests.support.runs import curate, tiny

RUN = ("run", "tiny.yaml", "--run", "runs/t")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    tiny(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    tiny(folder)
    assert curate(folder, *RUN).returncode == 0
    return folder


@pytest.fixture
def ran(finished: Path, tmp_path: Path) -> Path:
    """Return a copy of a folder with a finished run."""
    return Path(shutil.copytree(finished, tmp_path / "work"))


def refused(folder: Path, *words: str, **variables: str) -> str:
    """Run, expect exit code 2 and no traceback, and return what was said."""
    result = curate(folder, *words, **variables)
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    return result.stderr


def complaint(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("error:")]


MISTAKES: list[tuple[str, str]] = [
    ("run no/such.yaml", r"no/such\.yaml.*demo"),
    ("run dem", "did you mean 'demo'"),
    ("status", "curate run PIPELINE"),
    ("pool --pipeline tiny.yaml --run runs/t", "run `curate ingest --run runs/t`"),
    ("show pool --run nowhere", "no such run folder"),
    ("status --run .", "not a run folder"),
    ("judge --pipeline tiny.yaml --run runs/t --max-cost nan", "max-cost"),
    ("judge --pipeline tiny.yaml --run runs/t --max-cost=-1", "max-cost"),
]
SETTINGS = [
    ("pool.depth=many", r"pool\.depth"),
    ("pool.depth=0", r"pool\.depth"),
    ("pool.method=best", "'equal-depth', 'rrf', 'round-robin' or 'union'"),
    ("pool", r"expected section\.key=value"),
    ("pool.retrievers=bm25", r"such as \[one, two\]"),
    ("pool=3", "expected a mapping of settings"),
    ("diversify.corpus.t=high", r"diversify\.corpus\.t: expected a valid number"),
    ("seed=often", "--set seed: expected a valid integer"),
    ("version=9", "version"),
    ("diversify.queries={k: 2, n: 2}", "n must be smaller than k"),
    ("judges.strict.thresholds.S=0.1", "expected S >= A >= B >= C"),
    ("pool.retrievers=[bm2]", "did you mean 'bm25'"),
    ("judge.models=[lexcal]", "did you mean 'lexical'"),
    ("diversify={encoder: usee, queries: {t: 0.9}}", "unknown encoder 'usee'"),
    ("export.formats=[bier]", "did you mean 'beir'"),
]


@pytest.mark.parametrize(
    ("words", "expected"),
    [(words.split(), said) for words, said in MISTAKES]
    + [((*RUN, "--set", setting), said) for setting, said in SETTINGS],
)
def test_a_mistake_is_named_with_the_remedy(work: Path, words: Sequence[str], expected: str) -> None:
    assert re.search(expected, refused(work, *words), re.DOTALL)


def test_broken_yaml_names_the_line(work: Path) -> None:
    (work / "tiny.yaml").write_text("version: 1\npool: [\n", encoding="utf-8")
    assert "tiny.yaml:3" in refused(work, *RUN)


def test_missing_data(work: Path) -> None:
    said = refused(work, *RUN, "--set", "ingest.source=nowhere")
    assert "nowhere" in said
    assert len(complaint(said)) == 1


def test_unknown_keys_are_all_listed_with_the_nearest_known_one(work: Path) -> None:
    said = refused(work, *RUN, "--set", "pool.depht=3", "--set", "jugde.models=[lexical]", "--set", "judge.bach=3")
    assert "pool.depht: unknown key; did you mean 'depth'?" in said
    assert "jugde: unknown key; did you mean 'judge'?" in said
    assert "judge.bach: unknown key; did you mean 'batch'?" in said
    assert not (work / "runs").exists()


def test_wrong_names_are_found_before_anything_is_read(work: Path) -> None:
    refused(work, *RUN, "--set", "judge.models=[lexcal]")
    assert not (work / "runs" / "t" / "ingest").exists()


def test_missing_key_names_the_variable_and_no_stage_has_run(work: Path) -> None:
    judge = "judges.paid={kind: openai, model: gpt-4o, key_env: NO_SUCH_KEY}"
    said = refused(work, *RUN, "--set", judge, "--set", "judge.models=[paid]")
    assert "export NO_SUCH_KEY=" in said
    assert not (work / "runs" / "t" / "ingest").exists()


def test_duplicate_ids_name_both_lines(work: Path) -> None:
    corpus = work / "data" / "corpus.jsonl"
    lines = corpus.read_text(encoding="utf-8").splitlines()
    corpus.write_text("\n".join([*lines, lines[2].replace("咖啡", "茶")]) + "\n", encoding="utf-8")
    said = refused(work, *RUN)
    assert "corpus.jsonl:21" in said
    assert "d02" in said


def test_qrels_to_unknown_ids(work: Path) -> None:
    with (work / "data" / "qrels" / "test.tsv").open("a") as qrels:
        qrels.write("q0\td99\t1\n")
    said = refused(work, *RUN)
    assert "test.tsv:7" in said
    assert "d99" in said


def test_malformed_line_then_drop(work: Path) -> None:
    with (work / "data" / "corpus.jsonl").open("a", encoding="utf-8") as corpus:
        corpus.write('{"_id": "d50", "text": \n')
    assert "corpus.jsonl:21" in refused(work, *RUN)
    result = curate(work, *RUN, "--set", "ingest.on_error=drop")
    assert result.returncode == 0, result.stderr


def test_wrong_encoding_names_file_and_remedy(work: Path) -> None:
    corpus = work / "data" / "corpus.jsonl"
    corpus.write_bytes(corpus.read_bytes() + b'{"_id": "d60", "text": "\xff\xfe\xfa"}\n')
    said = refused(work, *RUN, "--set", "ingest.encoding=utf-8")
    assert "corpus.jsonl" in said
    assert "encoding" in said


def test_errors_never_quote_a_text(work: Path) -> None:
    secret = "13912345678"
    with (work / "data" / "corpus.jsonl").open("a", encoding="utf-8") as corpus:
        corpus.write(json.dumps({"_id": "d00", "text": f"请打电话{secret}"}, ensure_ascii=False) + "\n")
        corpus.write(f'{{"_id": "d70", "text": "请打电话{secret}\n')
    assert secret not in refused(work, *RUN)


def test_run_folder_in_use(work: Path) -> None:
    code = "import sys, time\nfrom pathlib import Path\nfrom curate.system.run_lock import locked\n"
    code += "with locked(Path('runs/t')):\n    print('held', flush=True)\n    time.sleep(60)\n"
    holder = subprocess.Popen([sys.executable, "-c", code], cwd=work, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        said = refused(work, *RUN)
        assert f"in use by process {holder.pid}" in said
        assert "--run" in said
    finally:
        holder.kill()
        holder.communicate()


def test_no_disk_space_keeps_what_is_finished(work: Path) -> None:
    """A quota on file size stands in for a full disk: some table, or the ledger, cannot be written."""
    environment = {**os.environ, "CURATE_HOME": str(work / "home"), "PYTHONDONTWRITEBYTECODE": "1"}  # cut modules stay
    curate(work, "ingest", "--pipeline", "tiny.yaml", "--run", "runs/t")
    result = subprocess.run(
        [sys.executable, "-m", "curate", *RUN],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    assert len(complaint(result.stderr)) == 1
    again = curate(work, *RUN)
    assert again.returncode == 0, again.stderr
    assert "ingest: up to date" in sentences(again.stderr)


def test_full_disk(work: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    small = tmp_path_factory.mktemp("small")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(small)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        assert "no space left on the disk" in refused(work, "run", "tiny.yaml", "--run", str(small / "run"))
        assert "free some" in refused(work, *RUN, CURATE_HOME=str(small / "home"))
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert curate(work, *RUN).returncode == 0


def test_unknown_table_suggests_the_nearest(ran: Path) -> None:
    said = refused(ran, "show", "verdict")
    assert "did you mean 'verdicts'" in said
    assert "known: agreement, aliases, altered, classes, contested," in said, "figures in JSON files too"
    assert "stage" not in said
    assert "did you mean 'agreement'" in refused(ran, "show", "agrement")
    (ran / "runs/t/consensus/agreement.json").write_text("{")
    assert "`curate consensus --force`" in refused(ran, "show", "agreement")


@pytest.mark.parametrize("damage", ["{", '{"of_another": "version"}'])
def test_a_done_mark_that_cannot_be_read_is_made_again(ran: Path, damage: str) -> None:
    (ran / "runs/t/pool/stage.json").write_text(damage, encoding="utf-8")
    states = {row["stage"]: row["state"] for row in machine.data(curate(ran, "status", "--json").stdout)}
    assert (states["diversify"], states["pool"], states["judge"]) == ("done", "missing", "stale")
    again = curate(ran, *RUN)
    assert again.returncode == 0, again.stderr
    assert "pool: started" in again.stderr


def test_a_damaged_table_is_named(ran: Path) -> None:
    (ran / "runs/t/pool/pool.parquet").write_bytes(b"garbage")
    assert "`curate pool --force`" in refused(ran, "show", "pool")


def test_an_edited_table_is_noticed_and_made_again(ran: Path) -> None:
    table = ran / "runs/t/pool/pool.parquet"
    before = table.read_bytes()
    table.write_bytes(before[:-20])
    again = curate(ran, *RUN)
    assert again.returncode == 0, again.stderr
    assert "pool: started" in again.stderr
    assert table.read_bytes() == before
