"""Models of the hub: the commit of a name, and whether it can be loaded here."""

import re
from pathlib import Path

from curate.system import hub

CONFIGS = ("config.json", "modules.json")
"""A model has at least one of these files: a static table of token vectors has no config.json."""


def commit(model: str, revision: str | None) -> str | None:
    """Return the commit of a name on the hub: the one in the cache, else the newest.

    Fetches a file of a few hundred bytes if the cache has none of the model. None if the hub is unreachable.
    """
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    if revision is not None and re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    name = _name(model)
    try:
        cached = try_to_load_from_cache(name, "config.json", revision=revision)
        path = cached if isinstance(cached, str) else hf_hub_download(name, "config.json", revision=revision)
    except (OSError, ValueError):  # no network, no such model: loading it says which
        return None
    return Path(path).parent.name


def unreachable(model: str, revision: str | None) -> str | None:
    """Return why a model of the hub cannot be loaded here: it is not in the cache, and the hub does not answer."""
    from huggingface_hub import try_to_load_from_cache

    cached = (try_to_load_from_cache(_name(model), name, revision=revision) for name in CONFIGS)
    return hub.unreachable(cached=any(isinstance(path, str) for path in cached))


def _name(model: str) -> str:
    return model if "/" in model else f"sentence-transformers/{model}"  # as the library does
