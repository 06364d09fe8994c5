"""MANIFEST.json of an export: SHA-256 of every file and the sources of the labels; checks of a folder against it."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.system.files import digests, read_json, sha256, write_json
from curate.tables.exporters import FILES, FOLDERS, OF_CANDIDATES, holds_candidates_only, mteb_tasks
from curate.tables.exporters.card import form
from curate.tables.kinds import kinds
from curate.tables.kinds.benchmark_kind import TEST

TASKS = "tasks.py"
_HASH = re.compile(r"-([0-9a-f]{16})\.parquet$")


def foreign(folder: Path, name: str, paths: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence per file of a manifest (path -> SHA-256) that does not belong to the format `name`."""
    patterns = ["README.md", "CHANGES.md", "(verdicts|sources|passages).parquet", *FILES.get(name, ())]
    for kind in kinds() if name in FOLDERS else ():
        splits = "".join(f"|-{split}" for split in kind.splits if split != TEST)
        patterns += [f"{kind.name}/README.md", f"{kind.name}/({'|'.join(kind.configs)})({splits})-HASH.parquet"]
    permitted = (
        re.compile("|".join(patterns).replace(".", r"\.").replace("HASH", "[0-9a-f]{16}")) if name in FILES else None
    )
    for path, digest in paths.items():
        if permitted and not permitted.fullmatch(path):
            yield f"{path}: the format {name} has no such file"
        elif (hash_in_name := _HASH.search(path)) and not digest.startswith(hash_in_name[1]):
            yield f"{path}: its name says that it has another content"
    code = folder / TASKS
    if permitted and TASKS in paths and code.is_file() and code.read_bytes() != Path(mteb_tasks.__file__).read_bytes():
        yield f"{TASKS}: it is not the program that curate writes; do not run it"


# MANIFEST.json of an export: the SHA-256 of every file, and what its labels were made from.

NAME = "MANIFEST.json"
VERSION = 1
_BESIDE = frozenset({".cache", ".DS_Store", ".git", ".gitattributes", ".gitignore"})


def write(folder: Path, body: Mapping[str, Json]) -> None:
    """Write the manifest of a folder, after all its other files; `body` holds the sources of the labels."""
    files = {path: digest for path, digest in digests(folder).items() if path != NAME}
    write_json(folder / NAME, {"version": VERSION, **body, "files": files})


def described(benchmark: Benchmark, name: str) -> dict[str, Json]:
    """Return the manifest's description of a benchmark in the format `name`: row counts, and facts of the cards."""
    candidates_only = holds_candidates_only(benchmark, name)
    corpus = benchmark.candidates["doc_id"].n_unique() if candidates_only else len(benchmark.corpus)
    facts = json.dumps(benchmark.facts, ensure_ascii=False)
    return {
        "name": benchmark.name,
        "language": benchmark.language,
        **({"license": benchmark.facts["license"]} if benchmark.facts.get("license") else {}),
        "format": name,
        "rows": {"queries": benchmark.queries.height, "corpus": corpus},
        **({"card": {"form": form(), "facts": facts}} if name in ("mteb", *OF_CANDIDATES) else {}),
    }


def read(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder; DataError if there is none, or one of another version."""
    path = folder / NAME
    if not path.is_file():
        raise DataError(f"{path}: no such file; give a folder that `curate export` wrote")
    manifest = read_json(path)
    if manifest.get("version") != VERSION:
        raise DataError(
            f"{path}: expected version {VERSION}, found {manifest.get('version')!r}; use the curate that wrote it"
        )
    if not (isinstance(manifest.get("files"), dict) and isinstance(manifest.get("format"), str)):
        raise DataError(f"{path}: not a manifest that `curate export` wrote, for it names no format or no files")
    return manifest


def changed(folder: Path, files: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for every file that is missing, was changed, or is not in the manifest's `files`.

    Files of version control, the hub or macOS are ignored.
    """
    for path, expected in files.items():
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or (folder / path).is_symlink():
            yield f"{path}: it is a link, or lies outside of the export"
        elif not (folder / path).is_file():
            yield f"{path}: the manifest names it and it is missing"
        elif sha256(folder / path) != expected:
            yield f"{path}: it is not the file that was exported, for its SHA-256 is another"
    present = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    for relative in present:
        if (
            relative.parts[0] not in _BESIDE
            and relative.name not in _BESIDE
            and relative.as_posix() not in {*files, NAME}
        ):
            yield f"{relative.as_posix()}: it is no part of the export"
