"""Models of the hub: the commit that a name stands for, and whether it can be had here at all."""

import re
from pathlib import Path

CONFIGS = ("config.json", "modules.json")
"""Files of which a model has one at least: a table of token vectors has no config.json."""
HUB_S = 5.0
"""Seconds within which the hub has to answer before a model is loaded from it."""


def commit(model: str, revision: str | None) -> str | None:
    """Return the commit that a name on the hub stands for: the one in the cache, else the newest.

    A file of a few hundred bytes is fetched if none of the model is there yet. None if the hub cannot be asked.
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
    """Return why a model of the hub cannot be loaded here: it is not in the cache, and the hub does not answer.

    One request, for the hub's library tries again for minutes per file.
    """
    from huggingface_hub import constants, get_session, try_to_load_from_cache

    cached = (try_to_load_from_cache(_name(model), name, revision=revision) for name in CONFIGS)
    if any(isinstance(path, str) for path in cached):
        return None
    try:
        get_session().head(constants.ENDPOINT, timeout=HUB_S)
    except Exception as error:  # noqa: BLE001 - the errors are those of the hub's HTTP library, which changes
        found = f"{constants.ENDPOINT} cannot be reached: {first_line(error)}"
        return f"it is not in the cache of this machine and cannot be downloaded here, for {found}"
    return None


def _name(model: str) -> str:
    return model if "/" in model else f"sentence-transformers/{model}"  # as the library does


def first_line(error: Exception) -> str:
    """Return what an error says in its first line, or its class."""
    return (str(error).splitlines() or [type(error).__name__])[0]
