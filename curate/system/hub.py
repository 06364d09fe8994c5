"""Availability of models and data sets of the Hugging Face hub: in the local cache, or by one quick request."""

from pathlib import Path

HUB_S = 5.0
"""Maximum seconds that `unreachable` waits for the hub."""


def unreachable(*, cached: bool) -> str | None:
    """Return why a repository of the hub cannot be loaded on this machine; None if it can.

    If it is not `cached`, one request tests whether the hub can be reached, since the hub's own library retries for
    minutes per file.
    """
    from huggingface_hub import constants, get_session

    if cached:
        return None
    try:
        get_session().head(constants.ENDPOINT, timeout=HUB_S)
    except Exception as error:  # noqa: BLE001 - returned as the reason; requests, httpx or httpx2 by the hub's version
        reason = f"{constants.ENDPOINT} cannot be reached: {first_line(error)}"
        return f"it is not in the cache of this machine and cannot be downloaded here, for {reason}"
    return None


def holds_dataset(name: str) -> bool:
    """Return whether the hub's local cache has any file of a data set."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / f"datasets--{name.replace('/', '--')}"
    return any(folder.glob("snapshots/*/*"))


def first_line(error: Exception) -> str:
    """Return the first line of an error's message; the name of its class if the message is empty."""
    return (str(error).splitlines() or [type(error).__name__])[0]
