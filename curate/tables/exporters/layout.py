"""Which files a format has, and whose they are: what is no part of it has no place in an export, even if listed."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from curate.system.files import sha256
from curate.tables.exporters import FILES, FOLDERS, mteb_tasks
from curate.tables.kinds import kinds
from curate.tables.kinds.kind import TEST

TASKS = "tasks.py"
BEFORE = frozenset({"78ee951926a7da19995d5c9371042342356996ef272828b43d8a073ad7ba0519"})
"""SHA-256 of tasks.py as released versions wrote it: 0.1."""
_HASH = re.compile(r"-([0-9a-f]{16})\.parquet$")


def foreign(folder: Path, name: str, paths: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each of the files that a manifest lists (path -> SHA-256) and that is not of the format."""
    beside = ("README.md", "CHANGES.md", "verdicts.parquet", "sources.parquet")
    own = "|".join((*beside, *FILES.get(name, ()), *(_of_kinds() if name in FOLDERS else ())))
    known = re.compile(own.replace(".", r"\.").replace("HASH", "[0-9a-f]{16}")) if name in FILES else None
    for path, digest in paths.items():
        if known and not known.fullmatch(path):
            yield f"{path}: the format {name} has no such file"
        elif (named := _HASH.search(path)) and not digest.startswith(named[1]):
            yield f"{path}: its name says that it has another content"
    code = folder / TASKS
    if known and TASKS in paths and code.is_file() and not _ours(code):
        yield f"{TASKS}: it is not the program that curate writes; do not run it"


def _of_kinds() -> Iterator[str]:
    """Yield the patterns of the files in the folders of all kinds."""
    for kind in kinds():
        yield f"{kind.name}/README.md"
        splits = "".join(f"|-{split}" for split in kind.splits if split != TEST)
        yield f"{kind.name}/({'|'.join(kind.configs)})({splits})-HASH.parquet"


def _ours(code: Path) -> bool:
    return code.read_bytes() == Path(mteb_tasks.__file__).read_bytes() or sha256(code) in BEFORE
