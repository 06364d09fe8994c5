"""Run single stages on small folders, as a pipeline would."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curate.core import config
from curate.pipeline.stage import Context, Report
from curate.pipeline.stages import stage


def step(run: Path, name: str, settings: Mapping[str, Any], whole: Mapping[str, Any] | None = None) -> Report:
    """Run one stage into `run/<name>`, with its fingerprint first, as a pipeline does; small exports are allowed."""
    if name == "export":
        settings = {"small": True, **settings}
    found = stage(name)
    checked = config.check(found.config, settings, name)
    out = run / name
    context = Context(run=run, out=out, home=run / "home", settings=dict(whole or {}))
    found.fingerprint(checked, context)
    out.mkdir(parents=True)
    return found.run(checked, context)


def jsonl(path: Path, rows: Sequence[Mapping[str, Any] | str], encoding: str = "utf-8") -> Path:
    """Write rows as lines of JSON; a text stands as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
    return path


def beir(folder: Path, queries: Sequence[Any], corpus: Sequence[Any], qrels: Sequence[str] = ()) -> Path:
    """Write a BEIR folder; qrels are lines such as `q1 d1 1`."""
    jsonl(folder / "queries.jsonl", queries)
    jsonl(folder / "corpus.jsonl", corpus)
    lines = ["query-id corpus-id score", *qrels]
    jsonl(folder / "qrels" / "test.tsv", [line.replace(" ", "\t") for line in lines])
    return folder
