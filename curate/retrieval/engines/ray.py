"""Ray engine: maps a function over the parts of a corpus on a cluster, and lists the cluster's machines."""

import logging
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import Field

from curate.core.config import Section
from curate.core.errors import ConfigError, RunFailed
from curate.core.protocols import Result, Task
from curate.system.extras import NAME, needed

TRIES = 4
"""Maximum attempts per part."""


class Config(Section):
    """Which cluster, into how many parts a corpus is cut, and what a part is given."""

    shards: int = Field(default=1, ge=1)
    address: str | None = None
    """Address of a running cluster, `auto` or host:port; without it a local one is started on this machine."""
    cpus: float = Field(default=1.0, gt=0)
    """Cores per part; Ray lets a part use so many threads."""
    gpus: float | None = Field(default=None, ge=0)
    """GPUs per part; None is 1 if the cluster has any, else 0. Masking takes none."""


class Ray:
    """Engine that maps a function over tasks on a Ray cluster; a task whose worker dies is repeated by another worker.

    All machines need this package, and must have the same files at the same paths.
    """

    def __init__(self, config: Config) -> None:
        self.config, self.shards = config, config.shards

    def workers(self) -> "Ray":
        """Return the engine with no GPUs assigned to workers."""
        return Ray(self.config.model_copy(update={"gpus": 0.0}))

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Yield the function's result for every task, in order; its errors are raised unchanged.

        RunFailed if workers keep dying, MissingExtra without Ray, ConfigError if no cluster answers at the address, or
        if a cluster on this machine has too few resources for a part.
        """
        ray = connected(self.config.address)
        resources = ray.cluster_resources()
        gpus = self.config.gpus
        if gpus is None:
            gpus = float(resources.get("GPU", 0) > 0)
        if self.config.address is None:  # another cluster may grow
            _need(resources, cpus=self.config.cpus, gpus=gpus)
        call = ray.remote(num_cpus=self.config.cpus, num_gpus=gpus, max_retries=TRIES - 1)(_call)
        waiting = [call.remote(str(Path.cwd()), function, task) for task in tasks]
        try:
            while waiting:
                yield _got(ray, waiting[0])
                del waiting[0]
        finally:
            for pending in waiting:  # after an error or Ctrl-C: the cluster may be one that others use, too
                ray.cancel(pending, force=True)


def _need(resources: Mapping[str, float], **required: float) -> None:
    """Raise ConfigError if a part requires more resources than this machine has; Ray would wait forever."""
    for name, number in required.items():
        have = resources.get(name.removesuffix("s").upper(), 0)
        if number > have:
            raise ConfigError(f"engine.{name}: {number:g} for each part, and this machine has {have:g}")


def _got(ray: ModuleType, reference: Any) -> Any:  # noqa: ANN401 - what the function returned
    """Return the result of a remote call; the function's errors are raised unchanged, Ray's as RunFailed."""
    lost = (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError, ray.exceptions.NodeDiedError)
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    except lost as error:
        raise RunFailed(
            f"engine: workers died {TRIES} times; if memory is short, set more engine.shards or engine.cpus"
        ) from error
    except ray.exceptions.RayError as error:
        raise RunFailed(f"engine: Ray failed ({type(error).__name__})") from error


def connected(address: str | None) -> ModuleType:
    """Return the module `ray`, connected to the cluster at an address, or to a local one started by this process.

    Usage statistics and dashboard are off; a local cluster listens on loopback only. When a cluster starts, however,
    Ray 2.60 sends a request to the cloud metadata address (169.254.169.254) to find out in which cloud it runs.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if address is None or address.startswith(("127.", "localhost")):
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # elsewhere too this means: an address of loopback
    token_path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    if address and (os.environ.get("RAY_AUTH_TOKEN") or token_path.is_file()):
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # as `ray start` does by itself, and its clients do not
    with needed("the engine ray"):
        import ray
    cluster: ModuleType = ray
    if not ray.is_initialized():
        _join(ray, address) if address else _start(ray)
    return cluster


def _join(ray: ModuleType, address: str) -> None:
    try:
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if port.isdigit():  # where nothing listens, Ray itself would try for many minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ray.exceptions.RayError) as error:  # nobody, another version, no token
        raise ConfigError(
            f"engine.address: no Ray cluster answers at {address!r} ({_first_line(error)}); start one with "
            "`ray start --head`, leave the address out, or copy the token of one that asks for it from its "
            "~/.ray/auth_token to ours"
        ) from error


def _start(ray: ModuleType) -> None:
    """Start a local cluster, even if $RAY_ADDRESS names another one."""
    try:
        ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray raises no class of its own, as on a machine that is too busy
        raise RunFailed(
            f"engine: Ray did not start on this machine ({_first_line(error)}); try again when memory and cores are "
            "free, or leave `engine` out"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _call(folder: str, function: Callable[[Task], Result], task: Task) -> Result:
    try:
        os.chdir(folder)  # run folders and caches may be named relative to it
    except OSError as error:
        raise RunFailed(
            f"engine: {socket.gethostname()} does not see the folder {folder} ({error.strerror}); all machines of a "
            "cluster need the same files under the same paths: `curate doctor --cluster ADDRESS` looks for them"
        ) from error
    return function(task)


# Machines of a Ray cluster: resources, version of this package, and whether they see the same files.

PATIENCE_S = 60
"""Maximum seconds for a machine to start a worker and answer."""


@dataclass(frozen=True)
class Node:
    """One machine of a cluster."""

    name: str
    """Address of the machine and the beginning of its id, since several nodes may have one address."""
    resources: Mapping[str, float]
    """Resources by Ray's names: CPU, GPU, memory (bytes) and others."""
    version: str | None
    """Version of this package on that machine; None if it is not installed."""
    unseen: Sequence[str]
    """Folders of this machine that are missing on that machine, or have other content."""
    problem: str = ""
    """Why it did not answer; empty if it did."""


def nodes(address: str, folders: Sequence[Path]) -> list[Node]:
    """Return the machines of the cluster at `address`, sorted; ConfigError if there is none, MissingExtra without Ray.

    A temporary file is written into each of `folders`, to test whether the machines can read it.
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
