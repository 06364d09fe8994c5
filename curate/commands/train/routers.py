"""Routers of other makers, taken apart: each side becomes a plain model, which is trained or kept as any other."""

import json
import shutil
from pathlib import Path
from typing import Any

from curate.core.errors import ConfigError, DataError

Foreign = Any
"""Models of sentence-transformers, which have no types here."""
MODULES = "modules.json"
SIDES = ("query", "document")


def in_folder(folder: Path) -> bool:
    """Return whether a folder holds a model whose first module is a Router."""
    if not (folder / MODULES).is_file():
        return False
    try:
        modules = json.loads((folder / MODULES).read_text(encoding="utf-8"))
        return str(modules[0]["type"]).rpartition(".")[2] == "Router"
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise DataError(
            f"{folder / MODULES}: found no list of modules, expected that of a sentence-transformers model; save the "
            "model again"
        ) from error


def is_router(model: Foreign) -> bool:
    """Return whether a loaded model's first module is a Router."""
    return hasattr(model[0], "sub_modules")


def write_apart(model: Foreign, name: str, folder: Path) -> None:
    """Write the sides of a Router as plain models below a folder; ConfigError if it has other routes."""
    from sentence_transformers import SentenceTransformer

    routes, rest = model[0].sub_modules, list(model)[1:]
    if not set(SIDES) <= set(routes):
        raise ConfigError(
            f"--base {name}: found a Router with the routes {', '.join(routes)}, expected query and document; make one "
            "with Router.for_query_document"
        )
    beside = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(beside, ignore_errors=True)
    for role in SIDES:
        plain = SentenceTransformer(modules=[*routes[role], *rest], prompts=dict(model.prompts), device="cpu")
        plain.save_pretrained(str(beside / role), create_model_card=False)
    beside.rename(folder)
