"""Export of a benchmark of the paper's size and its verification: how long, and in how much memory.

229,457 documents of about 470 tokens, put together from sentences of the packaged demo; 734 queries x 500 pairs x three
judges, who agree about as often as the paper's; a ledger with all 1.1 million ratings; pairs of sentences, 5,000 and
10,000. The stage `export` writes mteb, BEIR and TREC in one process, `curate verify` derives all labels again in
another. Their steps and greatest memory are shown.

Run: python -m benchmarks.export [--documents 229457] [--queries 734] [--depth 500] [--folder KEEP] [--write]
"""

import argparse
import json
import random
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks import harness, paper
from benchmarks.harness import share
from curate.commands.consensus import stage as consensus
from curate.commands.export import stage as export
from curate.commands.resolve import stage as resolve
from curate.commands.verify.verification import verify
from curate.core.config import canonical, digest, text_digest
from curate.ledger import Ledger
from curate.llm import passages
from curate.pipeline.stage import Context
from curate.system.files import TableWriter, frame, write_json, write_table

LENGTH = 335
"""Characters of a document on the average: 470 tokens of cl100k_base."""
PANEL = {name: {"kind": "openai", "vendor": name, "model": name} for name in ("one", "two", "three")}
RUBRIC = digest("rubric")
SHOWN = {"query_tokens": 500, "passage_tokens": 1500}


def texts(run: Path, documents: int, queries: int) -> None:
    """Write the tables of `diversify`; no two texts are equal."""
    (run / "diversify").mkdir(parents=True)
    draw, known = random.Random(1), [each for text in paper.sentences(None) for each in text]
    mean = sum(map(len, known)) / len(known)
    with TableWriter(run / "diversify", "corpus") as writer:
        for number in range(documents):
            size = max(1, round(draw.expovariate(mean / LENGTH)))
            text = f"{number}：" + "".join(draw.choices(known, k=size))
            writer.add({"doc_id": f"d{number:07d}", "title": "", "text": text, "source": "drawn"})
    rows = [
        {"query_id": f"q{n:05d}", "text": f"{draw.choice(known)[:30]}（{n}）", "source": ""} for n in range(queries)
    ]
    write_table(run / "diversify", "queries", frame("queries", rows))


def grades(documents: int, queries: int, depth: int) -> pl.DataFrame:
    """Return query_id, doc_id, position and one column of grades per judge: the first documents are better."""
    draw = np.random.default_rng(7)
    place = np.tile(np.arange(depth), queries)
    rows = np.concatenate([draw.choice(documents, depth, replace=False) for _ in range(queries)])
    right = draw.random(len(rows)) < 0.5 / (1 + place / 5)
    truth = np.where(right, draw.integers(0, 2, len(rows)), draw.integers(2, 5, len(rows)))
    letters = np.array(list("SABCD"))
    said = {
        name: letters[np.where(draw.random(len(rows)) < 0.08, draw.integers(0, 5, len(rows)), truth)] for name in PANEL
    }
    asked = np.repeat(np.array([f"q{n:05d}" for n in range(queries)]), depth)
    docs = np.array([f"d{n:07d}" for n in range(documents)])[rows]
    return pl.DataFrame({"query_id": asked, "doc_id": docs, "position": (place + 1).astype(np.int32), **said})


def judged(run: Path, home: Path, table: pl.DataFrame) -> None:
    """Write what pool, judge, consensus and resolve leave, and the ledger that it comes from."""
    long = table.unpivot(on=list(PANEL), index=["query_id", "doc_id"], variable_name="judge", value_name="grade")
    ratings = long.with_columns(status=pl.lit("rated"), replicate=pl.lit(0), slot=pl.lit(0), batch_size=pl.lit(10))
    rubric = {"name": "rubric-zh", "version": 1, "digest": RUBRIC}
    facts = {
        "judge": {"shown": SHOWN, "cascade": None, "heuristic": [], "rubric": "rubric-zh", "gate": None, "models": {}},
    }
    tables = {
        "pool": {
            "pool": table.select("query_id", "doc_id", "position", hits=pl.lit([], pl.List(pl.Null))),
            "rankings": frame("rankings"),
        },
        "judge": {"ratings": ratings.sort("query_id", "doc_id", "judge"), "samples": frame("samples")},
    }
    for stage, each in tables.items():
        (run / stage).mkdir()
        write_json(run / stage / "stage.json", {"report": {"rows_in": 0, "rows_out": 0, "facts": facts.get(stage, {})}})
        for name, rows in each.items():
            write_table(run / stage, name, rows)
    write_json(run / "judge" / "panel.json", {name: {**each, "rubric": rubric} for name, each in PANEL.items()})
    for name, module in (("consensus", consensus), ("resolve", resolve)):
        (run / name).mkdir()
        report = module.run(module.Config(), Context(run, run / name, home, name="paper", seed=7))
        write_json(run / name / "stage.json", {"report": asdict(report)})
    fill(run, home, table)


def fill(run: Path, home: Path, table: pl.DataFrame) -> None:
    """Write all ratings into a new ledger."""
    corpus = pl.read_parquet(run / "diversify" / "corpus.parquet", columns=["doc_id", "text"])
    asked = dict(pl.read_parquet(run / "diversify" / "queries.parquet").select("query_id", "text").iter_rows())
    queries = {key: text_digest(passages.cut(text, SHOWN["query_tokens"])) for key, text in asked.items()}
    shown = {key: text_digest(passages.cut(text, SHOWN["passage_tokens"])) for key, text in corpus.iter_rows()}
    with Ledger(home / "ledger.db") as ledger:
        ledger.merge("judges", [(digest(each), canonical(each)) for each in PANEL.values()])
        for name, identity in PANEL.items():
            judge, rows = digest(identity), table.select("query_id", "doc_id", name).iter_rows()
            ledger.merge(
                "ratings",
                [
                    (f"{name}{number:08d}", queries[query], shown[doc], judge, RUBRIC, 0, grade, "rated", 0, 10, None)
                    for number, (query, doc, grade) in enumerate(rows)
                ],
            )


def sentences(run: Path) -> None:
    """Write 15,000 pairs of sentences as the stage `sts` does."""
    draw, rows = random.Random(3), []
    for number in range(15_000):
        kind = draw.choices(["positive", "hard", "easy"], [48, 26, 26])[0]
        row = {"pair_id": f"p{number:05d}", "query_id": f"s{number:05d}", "term": "注意", "synonym": "当心"}
        row |= {"sentence1": f"第{number}个问题要注意什么", "sentence2": f"第{number}个问题该当心什么"}
        split = "test" if number < 5_000 else "train"
        rows.append({**row, "kind": kind, "label": int(kind == "positive"), "split": split})
    (run / "sts").mkdir()
    write_json(run / "sts" / "stage.json", {"report": {"rows_in": 0, "rows_out": len(rows)}})
    write_table(run / "sts", "pairs", frame("pairs", rows))


def make(folder: Path, documents: int, queries: int, depth: int) -> None:
    """Write all data into a folder, unless it is there."""
    if (folder / "done").exists():
        return
    texts(folder / "run", documents, queries)
    judged(folder / "run", folder / "home", grades(documents, queries, depth))
    sentences(folder / "run")
    (folder / "done").touch()


def exported(folder: Path) -> dict[str, dict[str, float]]:
    """Export, and return the steps."""
    clock, out = paper.Clock(), folder / "run" / "export"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    context = Context(folder / "run", out, folder / "home", name="paper", seed=7, progress=clock)
    export.run(export.Config(license="cc-by-nc-sa-4.0"), context)
    clock.book("export")
    return clock.steps


def verified(folder: Path) -> dict[str, dict[str, float]]:
    """Verify what was exported, and return the steps; an assertion fails if anything differs."""
    clock = paper.Clock()
    with Ledger(folder / "home" / "ledger.db") as ledger:
        found = verify(folder / "run" / "export", ledger)
    clock.book("verify")
    assert not [line for each in found for line in each.differences], found
    assert all(each.pairs for each in found)
    return clock.steps


def main(folder: Path, given: argparse.Namespace) -> None:
    """Make what is missing, measure in a process for each, and publish a table."""
    make(folder, given.documents, given.queries, given.depth)
    rows = []
    for what in ("export", "verify"):
        found = harness.child("export", "--child", what, "--folder", folder)
        for name, step in found["steps"].items():
            cells = [f"{step['s']:.1f}", f"{step['cpu']:.1f}", f"{step['mb']:,.0f}", share(found["foreign"])]
            rows.append([name, *cells])
    pairs = f"{given.queries:,} queries x {given.depth} pairs x {len(PANEL)} judges"
    words = f"{given.documents:,} documents, {pairs}, once; foreign CPU of the whole process."
    heads = ["step", "s", "CPU s", "peak MB so far", "foreign CPU"]
    harness.publish("export", f"{words}\n\n{harness.table(heads, rows)}", given.write)


def arguments() -> argparse.Namespace:
    """Return what was typed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--documents", type=int, default=229_457)
    parser.add_argument("--queries", type=int, default=734)
    parser.add_argument("--depth", type=int, default=500)
    parser.add_argument("--folder", type=Path, help="where the data is, or is made and left")
    parser.add_argument("--child", choices=("export", "verify"), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    typed = arguments()
    if typed.child:
        print(json.dumps({"steps": {"export": exported, "verify": verified}[typed.child](typed.folder)}))
    else:
        with tempfile.TemporaryDirectory() as made:
            place = typed.folder or Path(made)
            place.mkdir(parents=True, exist_ok=True)
            main(place, typed)
