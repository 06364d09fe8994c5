"""A corpus of a million documents from ingest to report: time and memory of each stage, by the size of the corpus.

Documents are put together from sentences of a real corpus (`DATA/corpus.jsonl`), each of as many sentences as a real
one; queries are real ones (`DATA/queries.jsonl`). Every stage is the command that a user types, in a process of its
own. The vectors of the encoder `use` are drawn (unit length, two in five near another one) and put into its cache by
the project's own store: to encode a million texts would take longer than all else. Pool and diversify find them there.
Two judges replay drawn grades of the pools of `--judged` queries. `diversify` runs twice: approximate (an HNSW graph),
then off, and the later stages go on with the whole corpus.

Memory is that of the whole tree of processes: proportional set sizes, summed five times a second. With `--limit GB` the
system itself refuses more (RLIMIT_DATA): where a stage has workers each gets 1 GB, and the stage what they leave. The
figures are appended to `--figures`, of which the table is made: sizes may be measured one by one.

Run: python -m benchmarks.million DATA [--sizes 10000 30000 100000] [--limit 6] [--figures FILE] [--write]
"""

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks import growth, harness, paper
from benchmarks.process_tree import UNLIMITED, Cost, DataLimit, measured
from curate.core.config import digest
from curate.core.protocols import Vectors, quiet
from curate.core.records import Role
from curate.retrieval.encoders.use import Config, Use
from curate.retrieval.vectors import CachedEncoder, default_folder, encode_part, fill_texts
from curate.system.corpus import TableCorpus
from curate.system.files import digests, write_text
from curate.system.processes import cores

QUERIES, JUDGED, PANEL = 734, 200, ("first", "second")
SHARED = ("mask", "pool")
"""Stages that work in a process per core besides their own."""
APPROXIMATE = ["--set", "diversify.enabled=true", "--set", "diversify.approximate=true"]
OFF = ["--set", "diversify.enabled=false", "--set", "diversify.approximate=false"]
STEPS: dict[str, tuple[str, list[str]]] = {
    "ingest": ("ingest", []),
    "mask": ("mask", []),
    "diversify, approximate": ("diversify", APPROXIMATE),
    "diversify, off": ("diversify", OFF),
    **{name: (name, []) for name in ("pool", "judge", "consensus", "resolve", "export", "report")},
}
Figure = dict[str, Any]
TOLD = {"cpu": "CPU s", "pss": "peak MB"}
PIPELINE = """version: 1
name: million
language: zh
ingest:
  queries: {{path: queries.jsonl}}
  corpus: {{path: corpus.jsonl}}
mask: {{residual: allow}}
diversify:
  encoder: use
  queries: {{enabled: false}}
  corpus: {{t: near-duplicates}}
pool: {{retrievers: [bm25, use], queries: {judged}}}
judges:
{judges}
judge: {{models: [{panel}]}}
"""


class Drawn:
    """The encoder `use` by name, revision and length of its vectors, which are drawn."""

    name, dim = "use", Use.dim

    def __init__(self) -> None:
        self.revision = Use("use", Config()).revision
        self._draw = np.random.default_rng(1)

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:  # noqa: ARG002 - one space for both roles
        """Return a row of length 1 per text, of which two in five are near another one."""
        part = self._draw.standard_normal((len(texts), self.dim), dtype=np.float32)
        near = np.flatnonzero(self._draw.random(len(part)) < paper.NEAR)
        part[near] = 0.5 * part[near] + part[self._draw.integers(0, len(part), len(near))]
        found: Vectors = part / np.linalg.norm(part, axis=1, keepdims=True)
        return found


def make(folder: Path, data: Path, documents: int, judged: int) -> None:
    """Write the source and the pipeline."""
    draw, real = random.Random(1), [each for each in paper.sentences(data / "corpus.jsonl") if each]
    known = [sentence for each in real for sentence in each]
    texts = ("".join(draw.choices(known, k=len(draw.choice(real)))) for _ in range(documents))
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as stream:
        rows = ({"_id": f"d{number:07d}", "text": text} for number, text in enumerate(texts))
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    lines = (data / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    (folder / "queries.jsonl").write_text(
        "\n".join(draw.sample(lines, min(QUERIES, len(lines)))) + "\n", encoding="utf-8"
    )
    judges = "\n".join(f"  {name}: {{kind: replay, path: grades.tsv, assessor: {name}}}" for name in PANEL)
    text = PIPELINE.format(judged=judged, judges=judges, panel=", ".join(PANEL))
    (folder / "pipeline.yaml").write_text(text, encoding="utf-8")


def fill(folder: Path) -> None:
    """Put a vector of every masked text into the cache of embeddings."""
    encoder = CachedEncoder(Drawn(), default_folder(folder / "home"))
    encode_part(encoder, TableCorpus(folder / "run" / "mask"), quiet)
    fill_texts(encoder, pl.read_parquet(folder / "run" / "mask" / "queries.parquet")["text"].to_list(), "query")


def grade(folder: Path) -> None:
    """Draw a grade of every pooled pair for each judge: better ones in front, judges mostly of one mind."""
    draw, pool = random.Random(2), pl.read_parquet(folder / "run" / "pool" / "pool.parquet")
    with (folder / "grades.tsv").open("w", encoding="utf-8") as stream:
        stream.write("query_id\tdoc_id\tgrade\tassessor\n")
        for query, document, position in pool.select("query_id", "doc_id", "position").iter_rows():
            grade = draw.choice("SA" if draw.random() < 1 / (1 + position / 5) else "BCD")
            for name in PANEL:
                said = grade if draw.random() < 0.9 else draw.choice("SABCD")
                stream.write(f"{query}\t{document}\t{said}\t{name}\n")


def stages(folder: Path, limit: float | None, steps: Sequence[str]) -> Iterator[tuple[str, Cost]]:
    """Yield each step and what it took."""
    environment = {
        **harness.environment(),
        "CURATE_HOME": str(folder / "home"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    for step in steps:
        stage, options = STEPS[step]
        if step == "judge":
            grade(folder)
        workers = cores() if stage in SHARED else 0
        most = DataLimit(int((limit - workers) * 2**30), 2**30) if limit else UNLIMITED
        command = [sys.executable, "-m", "curate", stage, "--run", "run", "--quiet", *options]
        command += ["--pipeline", "pipeline.yaml"] if step == "ingest" else []
        yield step, measured(command, folder, environment, most)
        if step == "mask":
            fill(folder)


def measure(typed: argparse.Namespace, documents: int) -> Iterator[Figure]:
    """Yield what each step takes at one size."""
    with tempfile.TemporaryDirectory(dir=typed.folder) as made:
        folder = Path(made)
        make(folder, typed.data, documents, typed.judged)
        for step, cost in stages(folder, typed.limit, [step for step in STEPS if step not in typed.without]):
            rounded = {name: round(value, 3) for name, value in asdict(cost).items()}
            yield {"documents": documents, "step": step, "limit": typed.limit, **rounded}
        written = {path: each for path, each in digests(folder / "run" / "export").items() if path != "stage.json"}
        print(f"{documents:,} documents, digest of the export: {digest(written)}", file=sys.stderr)


def series(figures: Sequence[Figure], figure: str) -> dict[str, dict[int, float]]:
    """Return step -> size -> one of its figures; of a size that was measured twice the last one counts."""
    found: dict[str, dict[int, float]] = {step: {} for step in STEPS}
    for each in sorted(figures, key=lambda each: int(each["documents"])):
        found[each["step"]][each["documents"]] = each[figure]
    return {step: by_size for step, by_size in found.items() if by_size}


def table(figures: Sequence[Figure], figure: str) -> str:
    """Return a row per step; of seconds with the exponent of their growth."""
    sizes, seconds = _sizes(figures), figure == "cpu"
    rows = []
    for step, by_size in series(figures, figure).items():
        cells = [f"{by_size[size]:,.{int(seconds)}f}" if size in by_size else "" for size in sizes]
        slope = f"{growth.exponent([*by_size], [*by_size.values()]):.2f}" if len(by_size) > 1 else ""
        rows.append([step, *cells, *([slope] if seconds else [])])
    heads = [f"{TOLD[figure]} at documents", *(f"{size:,}" for size in sizes), *(["exponent"] if seconds else [])]
    return harness.table(heads, rows)


def main(typed: argparse.Namespace) -> None:
    """Measure every size, and make table and picture of all figures that are there."""
    for size in typed.sizes:
        for figure in measure(typed, size):
            with typed.figures.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(figure) + "\n")
    figures = [json.loads(line) for line in typed.figures.read_text(encoding="utf-8").splitlines()]
    foreign = {size: max(each["foreign"] for each in figures if each["documents"] == size) for size in _sizes(figures)}
    said = ", ".join(f"{harness.share(share)} at {size:,}" for size, share in foreign.items())
    limits = sorted({f"{each['limit']:g} GB" if each["limit"] else "none" for each in figures})
    head = f"{typed.judged} queries judged; limit of memory: {', '.join(limits)}; foreign CPU at most {said}."
    harness.publish("million", "\n\n".join([head, *(table(figures, figure) for figure in TOLD)]), typed.write)
    if drawing := typed.picture or (typed.write and typed.write / "million.svg"):
        times = {step: [*by_size.values()] for step, by_size in series(figures, "cpu").items()}
        write_text(drawing, growth.picture(_sizes(figures), times))


def _sizes(figures: Sequence[Figure]) -> list[int]:
    return sorted({each["documents"] for each in figures})


def arguments() -> argparse.Namespace:
    """Return what was typed."""
    parser = harness.parser(__doc__)
    parser.add_argument("data", type=Path, help="folder with corpus.jsonl and queries.jsonl")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 30_000, 100_000])
    parser.add_argument("--judged", type=int, default=JUDGED, help="queries that are pooled and judged")
    parser.add_argument("--picture", type=Path, help="where an SVG of the CPU seconds goes")
    parser.add_argument("--without", nargs="+", default=[], choices=STEPS, help="steps to leave out")
    parser.add_argument("--limit", type=float, help="GB that the tree may have, by RLIMIT_DATA")
    parser.add_argument("--folder", type=Path, help="where the data is made; it is deleted in the end")
    parser.add_argument("--figures", type=Path, default=Path("million.jsonl"), help="JSONL to which they are appended")
    return parser.parse_args()


if __name__ == "__main__":
    main(arguments())
