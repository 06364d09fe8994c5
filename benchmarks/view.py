"""How long the pages of a run take at the size of the paper, and with a million documents: 734 queries, pools of 500.

A run of random grades and of texts made of common characters is written, then pages are asked for in a process of
their own, without a network between: seconds of CPU and kilobytes per page, the first start (which makes the index), a
later one with its imports, and the memory of the process at the end.

Run: python -m benchmarks.view [--documents 200000 1000000] [--queries 734] [--pool 500] [--judges 3] [--write]
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks import harness
from benchmarks.harness import Watch
from curate.core.records import FILTERED
from curate.system.files import frame, write_json, write_table

LENGTH = 314
"""Mean length of a document of the paper, in characters."""
RETRIEVERS = ("bge", "bm25", "e5")
GRADES = "SABCD"
SIGNS = np.array([chr(0x4E00 + number) for number in range(3000)])


def make(folder: Path, documents: int, queries: int, pool: int, judges: int) -> None:
    """Write the tables of a run."""
    random = np.random.default_rng(0)
    ids = [f"d{row}" for row in range(documents)]
    signs = SIGNS[random.zipf(1.3, documents * LENGTH) % len(SIGNS)]
    texts = ["".join(signs[row * LENGTH : (row + 1) * LENGTH]) for row in range(documents)]
    corpus = pl.DataFrame({"doc_id": ids, "title": "", "text": texts, "source": "made"})
    asked = pl.DataFrame({"query_id": [f"q{row}" for row in range(queries)], "text": texts[:queries], "source": "made"})
    asked = asked.with_columns(pl.col("text").str.slice(0, 20))
    found = np.stack([random.choice(documents, pool, replace=False) for _ in range(queries)])
    pairs = pl.DataFrame({"query": np.repeat(np.arange(queries), pool), "doc": found.ravel()})
    pairs = pairs.select(query_id="q" + pl.col("query").cast(pl.String), doc_id="d" + pl.col("doc").cast(pl.String))
    position = np.tile(np.arange(1, pool + 1), queries)
    hit = pl.struct(pl.lit("").alias("retriever"), pl.col("position").alias("rank"), pl.lit(0.5).alias("score"))
    hits = pl.concat_list([hit.struct.with_fields(retriever=pl.lit(name)) for name in RETRIEVERS])
    pools = pairs.with_columns(position=pl.Series(position, dtype=pl.Int32)).with_columns(hits=hits)
    grades = random.choice(list(GRADES), (judges, len(pairs)), p=(0.03, 0.03, 0.04, 0.1, 0.8))
    of_judge = [
        pairs.with_columns(
            judge=pl.lit(f"judge{number}"),
            grade=pl.Series(row),
            status=pl.lit("rated"),
            replicate=0,
            slot=0,
            batch_size=1,
        )
        for number, row in enumerate(grades)
    ]
    relevant = (grades == "S") | (grades == "A")
    verdict = np.where(relevant.all(axis=0), "relevant", np.where(~relevant.any(axis=0), "not relevant", "contested"))
    verdicts = pairs.with_columns(verdict=pl.Series(verdict), votes=pl.lit([]), policy=pl.lit("unanimous"))
    tables = {
        FILTERED: {"queries": asked, "corpus": corpus, "qrels": frame("qrels")},
        "pool": {"pool": pools},
        "judge": {"ratings": pl.concat(of_judge)},
        "consensus": {"verdicts": verdicts},
    }
    for stage, of_stage in tables.items():
        (folder / stage).mkdir(parents=True)
        write_json(folder / stage / "stage.json", {})
        for name, table in of_stage.items():
            write_table(folder / stage, name, table)
    (folder / "pipeline.yaml").write_text("version: 1\nname: paper\nlanguage: zh\n", encoding="utf-8")


PAGES = {
    "overview": "/",
    "queries": "/queries",
    "queries, most contested": "/queries?order=contested",
    "queries, failed by bm25": "/queries?order=fails&of=bm25",
    "a query's pool": "/q/q0",
    "contested pairs": "/pairs?verdict=contested",
    "one judge against the rest": "/pairs?against=judge0",
    "two or more grades apart": "/pairs?gap=2",
    "relevant, missed by bm25": "/pairs?missed=bm25",
    "a cell of a matrix": "/pairs?grade:judge0=S&grade:judge1=D",
    "judges": "/judges",
    "a document": "/doc/d0",
}


def measure(folder: Path) -> Iterator[dict[str, object]]:
    """Ask for every page twice, and yield what the second took."""
    with Watch() as started:
        from starlette.testclient import TestClient

        from curate.web.guard import Entrance
        from curate.web.serving import app
        from curate.web.view_pages import IndexSource, ViewPages

        source = IndexSource(folder)
        source.now()
    yield {"page": "start", "cpu": started.cpu, "wall": started.wall, "size": 0}
    client = TestClient(
        app(ViewPages(source, "0"), None, Entrance("secret", lambda _host: True)), base_url="http://127.0.0.1"
    )
    form = client.get("/?token=secret").text
    proof = form.split('name="proof" value="')[1].split('"')[0]
    pair = source.now().pool(0).row(0, named=True)
    doc_id = source.now().docs["doc_id"][pair["doc"]]
    for name, address in {**PAGES, "a pair": f"/q/q0/{doc_id}", "a pair of a list": f"/q/q0/{doc_id}?gap=0"}.items():
        yield {"page": name, **asked(partial(client.get, address))}
    origin = {"origin": "http://127.0.0.1"}
    for name, words in {"search, two characters": "的一", "search, two words": "的一 在不"}.items():
        form_data = {"proof": proof, "words": words}
        yield {"page": name, **asked(partial(client.post, "/search", data=form_data, headers=origin))}


def asked(ask: Callable[[], Any]) -> dict[str, float]:
    """Return CPU seconds, wall seconds and size of the second of two answers."""
    ask()
    with Watch() as watch:
        answer = ask()
    assert answer.status_code == 200, answer.text[:500]
    return {"cpu": watch.cpu, "wall": watch.wall, "size": len(answer.content)}


def memory() -> dict[str, int]:
    """Return megabytes of this process that are resident, and those of them that no file holds."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    held = {line.split(":")[0]: int(line.split()[1]) // 1024 for line in status.splitlines() if line.endswith("kB")}
    return {"resident": held["VmRSS"], "anonymous": held["RssAnon"]}


def cells(row: dict[str, float]) -> tuple[str, str]:
    """Return milliseconds of CPU and kilobytes of a page."""
    return f"{1000 * row['cpu']:,.0f}", f"{row['size'] / 1000:,.0f}"


def main(given: argparse.Namespace) -> None:
    """Make a run of each size, measure it, and publish one table."""
    columns = []
    for documents in given.documents:
        with tempfile.TemporaryDirectory() as name:
            run = Path(name) / "run"
            sizes = [f"--queries={given.queries}", f"--pool={given.pool}", f"--judges={given.judges}"]
            harness.child("view", "--make", run, "--documents", documents, *sizes)
            first, later = harness.child("view", "--measure", run), harness.child("view", "--measure", run)
            rows = {row["page"]: row for row in later["rows"]}
            rows = {"first start": first["rows"][0], "later start": rows.pop("start"), **rows}
            columns.append((documents, rows, later["memory"]))
    heads = ["page", *(f"{figure}, {documents:,}" for documents, _, _ in columns for figure in ("CPU ms", "kB"))]
    lines = [[page, *(cell for _, rows, _ in columns for cell in cells(rows[page]))] for page in columns[0][1]]
    held = "; ".join(
        f"{documents:,} documents: {memory['resident']:,} MB resident, {memory['anonymous']:,} MB of it anonymous"
        for documents, _, memory in columns
    )
    head = f"{given.queries:,} queries, pools of {given.pool}, {given.judges} judges, by number of documents."
    body = [head, harness.table(heads, lines), f"Memory after all pages: {held}."]
    harness.publish("view", "\n\n".join(body), given.write)


def arguments() -> argparse.Namespace:
    """Return what was typed."""
    options = harness.parser(__doc__)
    options.add_argument("--documents", type=int, nargs="+", default=[200_000, 1_000_000])
    options.add_argument("--queries", type=int, default=734)
    options.add_argument("--pool", type=int, default=500)
    options.add_argument("--judges", type=int, default=3)
    options.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    return options.parse_args()


if __name__ == "__main__":
    typed = arguments()
    if typed.make:
        make(typed.make, typed.documents[0], typed.queries, typed.pool, typed.judges)
        print("{}")
    elif typed.measure:
        rows = list(measure(typed.measure))
        print(json.dumps({"rows": rows, "memory": memory()}))
    else:
        main(typed)
