"""Diagnosis of a Ray cluster, for `curate doctor --cluster`: its machines, and whether they can work for this one."""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from curate.commands.doctor.examination import GB, Finding
from curate.core.errors import ConfigError, MissingExtra
from curate.retrieval.engines.cluster import Node, nodes
from curate.retrieval.vectors import default_folder
from curate.system.extras import NAME


def examine_cluster(address: str, home: Path) -> Iterator[Finding]:
    """Yield what the cluster at an address has, and what each of its machines has and lacks."""
    folders = [Path.cwd(), *map(_existing, (home, default_folder(home)))]
    try:
        found = nodes(address, list(dict.fromkeys(folders)))
    except (ConfigError, MissingExtra) as error:
        yield Finding("cluster", "bad", f"not reached at {address}", str(error))
        return
    yield Finding("cluster", "good", f"{len(found)} node{'s' * (len(found) != 1)}: {_sums(found)}")
    for node in found:
        yield _of_node(node)


def _of_node(node: Node) -> Finding:
    what, has = f"node {node.name}", _sums([node])
    if node.problem:
        return Finding(what, "bad", f"{has}; {node.problem}", "look at its log: `ray logs`, or start it again")
    if node.version is None:
        return Finding(what, "bad", f"{has}; without curate", "install the same package there, and start Ray from it")
    if node.version != (ours := _version()):
        return Finding(what, "bad", f"{has}; curate {node.version}, here {ours}", "install the same version")
    if node.unseen:
        remedy = "mount them there under the same paths, as the same user, or set CURATE_HOME to a folder that is"
        return Finding(what, "bad", f"{has}; does not see the files in {', '.join(node.unseen)}", remedy)
    return Finding(what, "good", f"{has}; curate {node.version} and files as here")


def _version() -> str:
    try:
        return version(NAME)
    except PackageNotFoundError:
        return "is not installed"


def _sums(found: list[Node]) -> str:
    cpus, gpus, memory = (sum(node.resources.get(name, 0) for node in found) for name in ("CPU", "GPU", "memory"))
    return f"{cpus:g} CPUs, {gpus:g} GPUs, {memory / GB:.1f} GB for work"


def _existing(folder: Path) -> Path:
    """Return a folder, or the nearest above it that is there."""
    whole = folder.resolve()
    return next(each for each in (whole, *whole.parents) if each.exists())
