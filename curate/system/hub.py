"""Whether models and data sets of the hub can be had here: from the cache of this machine, or by one quick request."""

from pathlib import Path

HUB_S = 5.0
"""Seconds within which the hub has to answer before anything is loaded from it."""


def unreachable(*, cached: bool) -> str | None:
    """Return why a repository that is `cached` or not cannot be loaded here; None if it can.

    One request, for the hub's library tries again for minutes per file.
    """
    from huggingface_hub import constants, get_session

    if cached:
        return None
    try:
        get_session().head(constants.ENDPOINT, timeout=HUB_S)
    except Exception as error:  # noqa: BLE001 - returned as the reason; requests, httpx or httpx2 by the hub's version
        found = f"{constants.ENDPOINT} cannot be reached: {first_line(error)}"
        return f"it is not in the cache of this machine and cannot be downloaded here, for {found}"
    return None


def holds_dataset(name: str) -> bool:
    """Say whether a file of a data set lies in the hub's cache."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / f"datasets--{name.replace('/', '--')}"
    return any(folder.glob("snapshots/*/*"))


def first_line(error: Exception) -> str:
    """Return what an error says in its first line, or its class."""
    return (str(error).splitlines() or [type(error).__name__])[0]
