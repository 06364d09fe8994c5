"""Which files a format has, and whose they are: what is no part of it has no place in an export, whoever lists it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from curate.exporters import mteb_tasks
from curate.files import sha256

TASKS = "tasks.py"
BEFORE = frozenset({"78ee951926a7da19995d5c9371042342356996ef272828b43d8a073ad7ba0519"})
"""SHA-256 of tasks.py as released versions wrote it: 0.1."""
_HASH = re.compile(r"-([0-9a-f]{16})\.parquet$")


def _files(*patterns: str) -> re.Pattern[str]:
    both = "|".join(("README.md", "verdicts.parquet", *patterns)).replace(".", r"\.").replace("HASH", "[0-9a-f]{16}")
    return re.compile(both)


_MTEB = (
    TASKS,
    "(retrieval|reranking|sts)/README.md",
    "(retrieval|reranking)/(corpus|queries|qrels|grades|contested)-HASH.parquet",
    "reranking/top_ranked-HASH.parquet",
    "sts/pairs(-train)?-HASH.parquet",
)
FILES: Mapping[str, re.Pattern[str]] = {
    "beir": _files("(corpus|queries).jsonl", "qrels/test.tsv"),
    "mteb": _files(*_MTEB),
    "repaired": _files(*_MTEB),
    "trec": _files("qrels.txt", "topics.(tsv|jsonl)", "docs.jsonl"),
    "triples": _files("triples.jsonl", "(train|queries|documents)-HASH.parquet"),
}
"""By the format that a manifest names; those of plugins are not known."""


def foreign(folder: Path, name: str, paths: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each of the files that a manifest lists (path -> SHA-256) and that is not of the format."""
    known = FILES.get(name)
    for path, digest in paths.items():
        if known and not known.fullmatch(path):
            yield f"{path}: the format {name} has no such file"
        elif (named := _HASH.search(path)) and not digest.startswith(named[1]):
            yield f"{path}: its name says that it has another content"
    code = folder / TASKS
    if known and TASKS in paths and code.is_file() and not _ours(code):
        yield f"{TASKS}: it is not the program that curate writes; do not run it"


def _ours(code: Path) -> bool:
    return code.read_bytes() == Path(mteb_tasks.__file__).read_bytes() or sha256(code) in BEFORE
