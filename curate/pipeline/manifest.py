"""manifest.json of a run folder: settings, versions, and the done-mark of every stage."""

import platform
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path

from curate.core.config import digest
from curate.pipeline.mark import Mark
from curate.pipeline.pipeline import Pipeline
from curate.system.files import write_json

PACKAGES = ("curate-ir", "polars", "numpy", "faiss-cpu", "bm25s", "jieba", "statsmodels", "sqlalchemy")


@cache
def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def write_manifest(folder: Path, pipeline: Pipeline, marks: Mapping[str, Mark]) -> None:
    """Write manifest.json: name, seed, digest of the settings, package versions, and done-marks of all stages."""
    manifest = {
        "name": pipeline.head.name,
        "seed": pipeline.head.seed,
        "settings_digest": digest(pipeline.frozen),
        "versions": _versions(),
        "stages": {name: asdict(mark) for name, mark in marks.items()},
    }
    write_json(folder / "manifest.json", manifest)
