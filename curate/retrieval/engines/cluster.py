"""Machines of a Ray cluster: resources, version of this package, and whether they see the same files."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curate.retrieval.engines.ray import connected
from curate.system.extras import NAME

PATIENCE_S = 60
"""Maximum seconds for a machine to start a worker and answer."""


@dataclass(frozen=True)
class Node:
    """One machine of a cluster."""

    name: str
    """Its address and the beginning of its id, since several may share an address."""
    resources: Mapping[str, float]
    """CPU, GPU, memory in bytes and others, as Ray names them."""
    version: str | None
    """Version of this package there; None if not installed."""
    unseen: Sequence[str]
    """Folders of this machine that are missing there, or hold other files."""
    problem: str = ""
    """Why it did not answer; empty if it did."""


def nodes(address: str, folders: Sequence[Path]) -> list[Node]:
    """Return the machines of a cluster, by address; ConfigError if none answers there, MissingExtra without Ray.

    Writes a temporary file into each folder, for the machines to look for.
    """
    ray = connected(address)
    alive = sorted((node for node in ray.nodes() if node["Alive"]), key=lambda node: (node["NodeName"], node["NodeID"]))
    with _probes(folders) as probes:
        look = ray.remote(num_cpus=0, max_retries=1)(_looking(NAME, probes))
        affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        references = [look.options(scheduling_strategy=affinity(node["NodeID"], soft=False)).remote() for node in alive]
        return [_answer(ray, *pair) for pair in zip(alive, references, strict=True)]


def _answer(ray: Any, node: Mapping[str, Any], reference: Any) -> Node:  # noqa: ANN401 - Ray has no types
    name, has = f"{node['NodeManagerAddress']} ({node['NodeID'][:6]})", node["Resources"]
    try:
        installed, unseen = ray.get(reference, timeout=PATIENCE_S)
    except ray.exceptions.RayError as error:
        return Node(name, has, None, (), f"its worker did not answer ({type(error).__name__})")
    return Node(name, has, installed, unseen)


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
    """Write a file with a random text into each folder, and yield path -> text; removed afterwards."""
    probes = {str(folder / f".curate-probe-{secrets.token_hex(8)}"): secrets.token_hex(16) for folder in folders}
    try:
        for path, text in probes.items():
            Path(path).write_text(text, encoding="ascii")
        yield probes
    finally:
        for path in probes:
            Path(path).unlink(missing_ok=True)
