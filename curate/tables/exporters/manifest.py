"""MANIFEST.json of an export: the SHA-256 of every file, and what its labels were made from."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.system.files import digests, read_json, sha256, write_json
from curate.tables.exporters import OF_CANDIDATES
from curate.tables.exporters.card import form

NAME = "MANIFEST.json"
VERSION = 1
_BESIDE = frozenset({".cache", ".DS_Store", ".git", ".gitattributes", ".gitignore"})


def write(folder: Path, body: Mapping[str, Json]) -> None:
    """Write the manifest of a folder whose other files are all there; `body` says what its labels were made from."""
    files = {path: digest for path, digest in digests(folder).items() if path != NAME}
    write_json(folder / NAME, {"version": VERSION, **body, "files": files})


def described(benchmark: Benchmark, name: str) -> dict[str, Json]:
    """Return what the manifest says of a benchmark in the format of that name: its rows, and the facts of its cards."""
    corpus = benchmark.candidates["doc_id"].n_unique() if name in OF_CANDIDATES else len(benchmark.corpus)
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
    found = read_json(path)
    if found.get("version") != VERSION:
        raise DataError(
            f"{path}: expected version {VERSION}, found {found.get('version')!r}; use the curate that wrote it"
        )
    if not (isinstance(found.get("files"), dict) and isinstance(found.get("format"), str)):
        raise DataError(f"{path}: not a manifest that `curate export` wrote, for it names no format or no files")
    return found


def changed(folder: Path, files: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for every file that is missing, was changed, or is not in the manifest's `files`.

    What a version control, the hub or a Mac puts beside them is left alone.
    """
    for path, expected in files.items():
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or (folder / path).is_symlink():
            yield f"{path}: it is a link, or lies outside of the export"
        elif not (folder / path).is_file():
            yield f"{path}: the manifest names it and it is missing"
        elif sha256(folder / path) != expected:
            yield f"{path}: it is not the file that was exported, for its SHA-256 is another"
    there = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    for each in there:
        if each.parts[0] not in _BESIDE and each.name not in _BESIDE and each.as_posix() not in {*files, NAME}:
            yield f"{each.as_posix()}: it is no part of the export"
