"""What a Ray cluster has: its machines, and whether each has this package and sees the same files."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curate.retrieval.engines.ray import connected
from curate.system.extras import NAME

PATIENCE_S = 60
"""How long a machine may take to start a worker and answer."""


@dataclass(frozen=True)
class Node:
    """One machine of a cluster."""

    name: str
    """Its address, and the begin of its id, for several may stand at one address."""
    resources: Mapping[str, float]
    """CPU, GPU, memory in bytes and others, as Ray names them."""
    version: str | None
    """Of this package there; None if it is not installed."""
    unseen: Sequence[str]
    """Folders of this machine that are not there, or hold other files."""
    problem: str = ""
    """Why it did not answer; empty if it did."""


def nodes(address: str, folders: Sequence[Path]) -> list[Node]:
    """Return the machines of a cluster, by address; ConfigError if none answers there, MissingExtra without Ray.

    A file is put into each folder for as long as the machines look for it.
    """
    ray = connected(address)
    alive = sorted((node for node in ray.nodes() if node["Alive"]), key=lambda each: (each["NodeName"], each["NodeID"]))
    with _probes(folders) as probes:
        look = ray.remote(num_cpus=0, max_retries=1)(_looking(NAME, probes))
        place = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        asked = [look.options(scheduling_strategy=place(each["NodeID"], soft=False)).remote() for each in alive]
        return [_answer(ray, *each) for each in zip(alive, asked, strict=True)]


def _answer(ray: Any, node: Mapping[str, Any], reference: Any) -> Node:  # noqa: ANN401 - Ray has no types
    name, has = f"{node['NodeManagerAddress']} ({node['NodeID'][:6]})", node["Resources"]
    try:
        found, unseen = ray.get(reference, timeout=PATIENCE_S)
    except ray.exceptions.RayError as error:
        return Node(name, has, None, (), f"its worker did not answer ({type(error).__name__})")
    return Node(name, has, found, unseen)


def _looking(distribution: str, probes: Mapping[str, str]) -> Callable[[], tuple[str | None, list[str]]]:
    def look() -> tuple[str | None, list[str]]:
        # Defined here, so that it goes as it is to machines that may lack this package.
        import importlib.metadata
        import pathlib

        try:
            version = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            version = None
        unseen = []
        for probe, text in probes.items():
            try:
                same = pathlib.Path(probe).read_text(encoding="ascii") == text
            except (OSError, ValueError):
                same = False
            if not same:
                unseen.append(str(pathlib.Path(probe).parent))
        return version, unseen

    return look


@contextmanager
def _probes(folders: Sequence[Path]) -> Iterator[dict[str, str]]:
    """Put a file with a drawn text into each folder, and give path -> text."""
    probes = {str(folder / f".curate-probe-{secrets.token_hex(8)}"): secrets.token_hex(16) for folder in folders}
    try:
        for path, text in probes.items():
            Path(path).write_text(text, encoding="ascii")
        yield probes
    finally:
        for path in probes:
            Path(path).unlink(missing_ok=True)
