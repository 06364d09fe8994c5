"""Small runs for tests: a pipeline without encoders, and the command as a user types it."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import traceback
import warnings
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from curate.cli.main import main

TOPICS = ("高血压", "胃溃疡", "小儿发热", "偏头痛", "痛风")

PIPELINE = """\
version: 1
name: tiny
ingest: {source: data}
diversify: {enabled: false}
pool: {retrievers: [words, pairs], depth: 8, size: 10}
retrievers:
  words: {kind: bm25}
  pairs: {kind: bm25, tokens: bigrams}
judges:
  strict: {kind: lexical, thresholds: {S: 0.9, A: 0.7, B: 0.4, C: 0.2}}
judge: {models: [lexical, strict]}
export: {small: true, rerank: {negatives: 1}}
"""


def tiny(folder: Path) -> str:
    """Write a BEIR folder of 5 queries and 20 documents and a pipeline that needs no encoder; return its name."""
    data = folder / "data"
    if not data.exists():
        (data / "qrels").mkdir(parents=True)
        queries = [{"_id": f"q{n}", "text": f"{topic}患者能喝咖啡吗"} for n, topic in enumerate(TOPICS)]
        answers = (
            "{}患者能喝咖啡吗？可以少量喝。",
            "{}的病因很多。",
            "得了{}以后要按时服药，少喝咖啡。",
            "{}怎样预防？",
        )
        texts = [(n, answer.format(topic)) for n, topic in enumerate(TOPICS) for answer in answers]
        corpus = [{"_id": f"d{m:02}", "title": "", "text": text} for m, (_, text) in enumerate(texts)]
        for name, rows in (("queries", queries), ("corpus", corpus)):
            lines = [json.dumps(row, ensure_ascii=False) for row in rows]
            (data / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        qrels = [f"q{n}\td{4 * n:02}\t1" for n in range(len(TOPICS))]
        (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(qrels) + "\n")
    (folder / "tiny.yaml").write_text(PIPELINE, encoding="utf-8")
    return "tiny.yaml"


@dataclass(frozen=True)
class Done:
    """What a command has said, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


def curate(folder: Path, *words: str, **variables: str) -> Done:
    """Run the command in a folder, with a home of its own there unless the variables say otherwise.

    It runs in this process: to import everything anew takes longer than most commands do. `started` does.
    """
    said, complained = _stream(), _stream()
    with ExitStack() as around:
        around.enter_context(contextlib.chdir(folder))
        around.enter_context(patch.dict(os.environ, {"CURATE_HOME": str(folder / "home"), **variables}))
        around.enter_context(patch.object(sys, "argv", ["curate", *words]))
        around.enter_context(redirect_stdout(said))
        around.enter_context(redirect_stderr(complained))
        around.enter_context(warnings.catch_warnings(action="default"))
        code = exit_code()
    return Done(code, _text(said), _text(complained))


def ran(folder: Path, *words: str, **variables: str) -> Done:
    """Run the command as `curate` does, and hold that it succeeded."""
    done = curate(folder, *words, **variables)
    assert done.returncode == 0, done.stderr or done.stdout
    return done


def complaint(folder: Path, *words: str, **variables: str) -> str:
    """Run the command as `curate` does, hold that it refused, and return what it said of that."""
    done = curate(folder, *words, **variables)
    assert done.returncode == 2, done.stderr or done.stdout
    return done.stderr


def exit_code() -> int:
    """Run the command as a program does, which has Ctrl-C for itself to its end, and return its exit code."""
    before = signal.getsignal(signal.SIGINT)
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    except Exception:  # noqa: BLE001 - what Python does with it: a traceback and exit code 1
        traceback.print_exc()
        return 1
    finally:
        signal.signal(signal.SIGINT, before)
    return 0


def card_section(mteb: Path, task: str) -> str:
    """Return the section of a task in the card of an export."""
    card = (mteb / "README.md").read_text(encoding="utf-8")
    return card.partition(f"\n## {task}\n")[2].partition("\n## ")[0]


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def started(folder: Path, *words: str, **variables: str) -> Done:
    """Run the command as `curate` does, in a process of its own."""
    environment = {**os.environ, "CURATE_HOME": str(folder / "home"), **variables}
    command = [sys.executable, "-m", "curate", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)
