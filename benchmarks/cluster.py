"""A Ray cluster of two nodes on this machine, and a trial that kills a worker in the middle of each stage.

`python -m benchmarks.cluster` starts the nodes, says how to reach them, and stops them at Ctrl-C. `python -m
benchmarks.cluster trial` masks, embeds and searches in one process, on the two nodes, and on them with a worker that is
killed by SIGKILL in each stage; it compares every byte and prints a Markdown table.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster

DOCUMENTS, QUERIES, SHARDS = 4_500, 100, 4
PIPELINE = """\
version: 1
name: trial
ingest: {source: data}
mask: {mode: pseudonym}
diversify: {enabled: false}
pool: {retrievers: [use], depth: 100, size: 100}
"""
STAGES = ("mask", "embed", "pool")
TITLE = b"ray::_call"
"""What Ray calls a worker that is at a part."""


@contextmanager
def two_nodes(folder: Path, cpus: int = 1) -> Iterator["Cluster"]:
    """Give a running cluster of two nodes that listen on loopback and take no task without a token."""
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        os.environ["RAY_AUTH_TOKEN_PATH"] = str(folder / "token")
        (folder / "token").write_text(os.urandom(32).hex())
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # elsewhere too this means: an address of loopback
        "RAY_TMPDIR": str(folder),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": cpus, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=cpus)
        yield cluster
    finally:
        ray.shutdown()  # a node that this process is connected to is not removed
        cluster.shutdown()


def working(cluster: "Cluster") -> list[int]:
    """Return the processes of a cluster that are at a part."""
    found = []
    for node in cluster.list_all_nodes():
        raylet = node.all_processes["raylet"][0].process.pid
        for children in Path(f"/proc/{raylet}/task").glob("*/children"):
            found += [int(child) for child in children.read_text().split() if _title(child).startswith(TITLE)]
    return found


def _title(process: str) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:  # it has just ended
        return b""


@contextmanager
def one_killed(cluster: "Cluster", after: float = 0.0) -> Iterator[list[int]]:
    """Kill one worker meanwhile, so many seconds after it was first seen at a part; give a list with its process."""
    killed, over = list[int](), Event()

    def watch() -> None:
        while not (killed or over.wait(0.02)):
            for process in working(cluster)[:1]:
                if not over.wait(after) and process in working(cluster):
                    os.kill(process, signal.SIGKILL)
                    killed.append(process)

    watching = Thread(target=watch)
    watching.start()
    try:
        yield killed
    finally:
        over.set()
        watching.join()


def made(run: Path, home: Path) -> dict[str, str]:
    """Return a digest of what each stage made: its tables, and the rows of the cache of embeddings."""
    files = {stage: sorted((run / stage).glob("*.parquet")) for stage in ("mask", "pool")}
    files["embed"] = sorted((home / "vectors").rglob("*.rows"))
    return {stage: _digest(paths) for stage, paths in files.items()}


def _digest(paths: list[Path]) -> str:
    whole = hashlib.sha256()
    for path in paths:
        whole.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def write_texts(folder: Path, documents: int = DOCUMENTS, queries: int = QUERIES) -> None:
    """Write a BEIR folder of shuffled sentences of the demo, with telephone numbers and addresses in some."""
    from curate.system.resources import demo

    drawn, demos = random.Random(5), (demo() / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    sentences = [part for line in demos for part in json.loads(line)["text"].split("。") if part]
    (folder / "data" / "qrels").mkdir(parents=True)
    for name, count in (("corpus", documents), ("queries", queries)):
        with (folder / "data" / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for number in range(count):
                text = "。".join(drawn.choices(sentences, k=6 if name == "corpus" else 1))
                contact = f"电话13{drawn.randrange(10**9):09}，邮箱u{drawn.randrange(10**6)}@example.com"
                row = {
                    "_id": f"{name[0]}{number}",
                    "title": "",
                    "text": f"{text}。{contact if number % 9 == 0 else ''}",
                }
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    (folder / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\tc0\t1\n", encoding="utf-8")
    (folder / "trial.yaml").write_text(PIPELINE, encoding="utf-8")


def trial(folder: Path) -> Iterator[str]:
    """Yield the lines of a table: how many workers were killed in each stage, and whether all bytes are the same."""
    write_texts(folder)
    os.environ["CURATE_PII_KEY"] = os.urandom(16).hex()
    with two_nodes(folder) as cluster:
        engine = f"engine={{kind: ray, address: '{cluster.address}', shards: {SHARDS}}}"
        _, one = _stages(folder, "here")
        _, two = _stages(folder, "nodes", engine)
        killed, three = _stages(folder, "killed", engine, cluster)
    yield "| stage | shards | workers killed | one process, two nodes, two nodes with a worker killed |"
    yield "| --- | ---: | ---: | --- |"
    for stage in STAGES:
        same = one[stage] == two[stage] == three[stage]
        yield f"| {stage} | {SHARDS} | {killed[stage]} | {'the same bytes' if same else 'OTHER BYTES'} |"


def _stages(
    folder: Path, name: str, engine: str = "engine={}", cluster: "Cluster | None" = None
) -> tuple[dict[str, int], dict[str, str]]:
    """Run all stages in a run and home of their own; return workers killed, and digests."""
    run, home, killed = folder / "runs" / name, folder / f"home-{name}", dict[str, int]()
    around = {**os.environ, "CURATE_HOME": str(home)}
    _curate(folder, around, "ingest", "--pipeline", "trial.yaml", "--run", str(run), "--set", engine)
    for stage in (*STAGES[:-1], "diversify", STAGES[-1]):
        after = 0.0 if stage == STAGES[-1] else 1.0  # a search is soon over
        with one_killed(cluster, after) if cluster and stage in STAGES else nullcontext([]) as dead:
            _curate(folder, around, stage, "--run", str(run))
        killed[stage] = len(dead)
    return killed, made(run, home)


def _curate(folder: Path, around: Mapping[str, str], *words: str) -> None:
    command = [sys.executable, "-m", "curate", *words]
    done = subprocess.run(command, cwd=folder, env=dict(around), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"curate {' '.join(words)}\n{done.stderr}")


def hold(folder: Path) -> None:
    """Start two nodes, say how to reach them, and keep them until Ctrl-C."""
    with two_nodes(folder) as cluster:
        names = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH")
        print("two nodes are running, until Ctrl-C; in another terminal, in the folder of your runs:\n")
        print("export", *(f"{name}={os.environ[name]}" for name in names))
        print(f"curate doctor --cluster {cluster.address}")
        print(f"curate mask --run runs/mine --set 'engine={{kind: ray, shards: 8, address: \"{cluster.address}\"}}'")
        try:
            signal.pause()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="nodes-") as place:
        if sys.argv[1:] == ["trial"]:
            for line in trial(Path(place)):
                print(line, flush=True)
        else:
            hold(Path(place))
