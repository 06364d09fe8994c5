"""Diagnosis of this machine: versions, extras, encoders, keys, disk, GPU, ledger, and remedies for what is missing."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

from curate.ask.judges import JUDGES
from curate.ask.task import TASKS
from curate.core.errors import ConfigError, CurateError, MissingExtra
from curate.core.figures import Record, figure
from curate.ledger import Ledger
from curate.llm.providers.presets import presets
from curate.pii import RECOGNISERS
from curate.retrieval.encoders import ENCODERS
from curate.retrieval.engines.ray import Node, nodes
from curate.retrieval.retrievers import RETRIEVERS
from curate.retrieval.vectors import default_folder
from curate.runs.ledger_check import check
from curate.system.extras import NAME, extras, installed
from curate.system.processes import cores
from curate.tables.exporters import EXPORTERS

OFFLINE = ("e5", "use")
GB = 10**9
LITTLE_DISK, LITTLE_MEMORY = 5 * GB, 4 * GB


class Finding(Record, schema_name="row"):
    """A row per thing that was examined; an error if one of them is bad."""

    what: str = figure("what was examined")
    state: Literal["good", "missing", "bad"] = figure("bad prevents a run")  # `missing` one that needs it
    found: str = figure("result of the examination")
    remedy: str = figure("remedy, such as a command to type; empty if none is needed", default="")


def examine(home: Path, ledger: Path | str, environment: Mapping[str, str], attempt: bool = False) -> Iterator[Finding]:
    """Yield the findings on this machine; nothing is sent, and no key is shown.

    With `attempt`, each packaged encoder is loaded and encodes a character, and torch is loaded and asked for GPUs.
    """
    yield Finding("Python", "good", f"{sys.version.split()[0]} on {sys.platform}")
    yield _package()
    yield from _extras()
    yield _tried_encoders() if attempt else _encoders()
    yield from _plugins()
    yield _keys(environment)
    yield _disk(home)
    yield _memory()
    yield _gpu_of_torch() if attempt and installed("torch") else _gpu()
    yield _ledger(ledger)


def _extras() -> Iterator[Finding]:
    listed = set[str]()  # an extra may bring all of another
    for extra in extras().values():
        if extra.absent:
            lack, remedy = f"without {', '.join(extra.absent)}", f"{extra.command} for {extra.purpose}"
            yield Finding(f"extra {extra.name}", "missing", lack, remedy)
        else:
            versions = [package for package in _versions(extra.name) if package not in listed]
            listed.update(versions)
            yield Finding(f"extra {extra.name}", "good", ", ".join(versions) or "installed")


def _versions(extra: str) -> Iterator[str]:
    """Yield name and version of the packages of an extra, from their metadata; nothing is imported."""
    try:
        lines = requires(NAME) or ()
    except PackageNotFoundError:
        return
    for line in lines:
        if re.search(rf"""extra == ['"]{extra}['"]""", line):
            name = re.split(r"[^\w.-]", line, maxsplit=1)[0]
            yield f"{name} {_version(name)}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # its module is there all the same, by another package or by hand
        return "of unknown version"


def _package() -> Finding:
    try:
        return Finding(NAME, "good", f"{version(NAME)}, {cores()} cores")
    except PackageNotFoundError:
        return Finding(
            NAME, "bad", "not installed, only imported", f"pip install {NAME}, or pip install -e . in a checkout"
        )


OTHERS = "others are fetched when they are first used"


def _encoders() -> Finding:
    """Return the finding on the encoders with packaged weights: whether they are installed."""
    extra = extras()["offline"]
    if extra.absent:
        return Finding("encoders", "missing", f"without {', '.join(extra.absent)}; {OTHERS}", extra.command)
    summary = f"{' and '.join(OFFLINE)} are there, not tried; {OTHERS}"
    return Finding("encoders", "good", summary, "`curate doctor --try` has each encode a character")


def _tried_encoders() -> Finding:
    for name in OFFLINE:
        make = ENCODERS.load(name)
        try:
            make(name, import_module(make.__module__).Config()).encode(["一"], "query")
        except MissingExtra as error:
            return Finding("encoders", "missing", f"{name} is not there; {OTHERS}", str(error))
        except (ImportError, OSError, RuntimeError, ValueError) as error:
            remedy = f"pip install --force-reinstall '{NAME}[offline]'"
            return Finding("encoders", "bad", f"{name} does not work ({type(error).__name__}: {error})", remedy)
    return Finding("encoders", "good", f"{' and '.join(OFFLINE)} encode; {OTHERS}")


def _plugins() -> Iterator[Finding]:
    """Yield a finding for every plugin of another package; a broken one is `missing`, as only its users need it."""
    for registry in (RETRIEVERS, JUDGES, EXPORTERS, ENCODERS, RECOGNISERS, TASKS):
        for name, owner in registry.others().items():
            what = f"{registry.family} {name}"
            try:
                registry.load(name)
            except ConfigError as error:
                yield Finding(what, "missing", f"of {owner}", str(error))
            else:
                yield Finding(what, "good", f"of {owner}")


def _keys(environment: Mapping[str, str]) -> Finding:
    name_by_variable = {str(preset["key_env"]): name for name, preset in presets().items() if "key_env" in preset}
    set_variables = sorted(name for name in name_by_variable if environment.get(name))
    if set_variables:
        return Finding(
            "keys", "good", f"{', '.join(set_variables)} set (not tried)", "`curate models test NAME` tries one"
        )
    remedy = f"export one of {', '.join(sorted(name_by_variable)[:3])}, ...; `curate models` says whose it is"
    return Finding("keys", "missing", "none of a language model is set", remedy)


def _disk(home: Path) -> Finding:
    existing = next(folder for folder in (home, *home.resolve().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    used = sum(path.stat().st_size for path in default_folder(home).rglob("*.rows"))
    space = (
        f"{free / GB:.0f} GB free at {existing}, {used / GB:.1f} GB of it embeddings"
        if used
        else f"{free / GB:.0f} GB free at {existing}"
    )
    if not os.access(existing, os.W_OK):
        return Finding("disk", "bad", f"{existing} cannot be written", "set CURATE_HOME to a folder of your own")
    if free < LITTLE_DISK:
        return Finding(
            "disk", "missing", space, "a run on 200,000 documents takes some 5 GB; set CURATE_HOME elsewhere"
        )
    return Finding("disk", "good", space)


def _memory() -> Finding:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    size = f"{total / GB:.0f} GB"
    if total < LITTLE_MEMORY:
        return Finding("memory", "missing", size, "the offline encoders and a large pool take up to 3 GB")
    return Finding("memory", "good", size)


UNNEEDED = "not needed; large models encode much faster on one"


def _gpu() -> Finding:
    """Return the finding on GPUs: those that the driver lists, and whether torch's version is one for GPUs.

    torch is not imported.
    """
    names = _gpu_names()
    if not names:
        return Finding("GPU", "missing", "none that nvidia-smi lists", UNNEEDED)
    if not installed("torch"):
        return Finding("GPU", "missing", f"{names}, without torch to use it", extras()["dense"].command)
    torch = f"torch {_version('torch')}"
    if torch.endswith("+cpu"):
        return Finding("GPU", "missing", f"{names}, but {torch} is one for processors", "install torch for CUDA")
    return Finding("GPU", "good", f"{names}, with {torch}", "`curate doctor --try` asks torch for it")


def _gpu_names() -> str:
    """Return the names of the GPUs that the driver lists, separated by commas; empty if there is none."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return ""
    try:
        listing = [command, "--query-gpu=name", "--format=csv,noheader"]
        process = subprocess.run(listing, capture_output=True, text=True, timeout=20, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):  # a driver that does not answer has no GPU to offer
        return ""
    return ", ".join(process.stdout.split("\n")).strip(", ")


def _gpu_of_torch() -> Finding:
    import torch

    if torch.cuda.is_available():
        names = ", ".join(torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count()))
        return Finding("GPU", "good", names)
    return Finding("GPU", "missing", "none that torch can use", UNNEEDED)


def _ledger(location: Path | str) -> Finding:
    name = str(location) if isinstance(location, Path) else location.split("://", 1)[0] + " database"
    if isinstance(location, Path) and not location.exists():
        return Finding("ledger", "good", f"{name}: none yet, the first rating makes it")
    try:
        with Ledger(location) as ledger:
            mistakes = check(ledger)
    except (CurateError, OSError) as error:
        return Finding("ledger", "bad", f"{name} cannot be opened", str(error))
    if mistakes:
        return Finding(
            "ledger", "bad", f"{name}: {len(mistakes)} kinds of mistakes", "`curate ledger check` lists them"
        )
    return Finding("ledger", "good", f"{name}: sound")


# `curate doctor --cluster`: the machines of a Ray cluster, and whether they can work for this one.


def examine_cluster(address: str, home: Path) -> Iterator[Finding]:
    """Yield a finding on the Ray cluster at an address, and one on each of its nodes."""
    paths = [folder.resolve() for folder in (home, default_folder(home))]
    # a folder that is not there yet counts as its nearest parent that is
    existing = [next(folder for folder in (path, *path.parents) if folder.exists()) for path in paths]
    folders = [Path.cwd(), *existing]
    try:
        cluster_nodes = nodes(address, list(dict.fromkeys(folders)))
    except (ConfigError, MissingExtra) as error:
        yield Finding("cluster", "bad", f"not reached at {address}", str(error))
        return
    yield Finding(
        "cluster", "good", f"{len(cluster_nodes)} node{'s' * (len(cluster_nodes) != 1)}: {_sums(cluster_nodes)}"
    )
    for node in cluster_nodes:
        yield _of_node(node)


def _of_node(node: Node) -> Finding:
    what, has = f"node {node.name}", _sums([node])
    if node.problem:
        return Finding(what, "bad", f"{has}; {node.problem}", "look at its log: `ray logs`, or start it again")
    if node.version is None:
        return Finding(what, "bad", f"{has}; without curate", "install the same package there, and start Ray from it")
    if node.version != (ours := _ray_version()):
        return Finding(what, "bad", f"{has}; curate {node.version}, here {ours}", "install the same version")
    if node.unseen:
        remedy = "mount them there under the same paths, as the same user, or set CURATE_HOME to a folder that is"
        return Finding(what, "bad", f"{has}; does not see the files in {', '.join(node.unseen)}", remedy)
    return Finding(what, "good", f"{has}; curate {node.version} and files as here")


def _ray_version() -> str:
    try:
        return version(NAME)
    except PackageNotFoundError:
        return "is not installed"


def _sums(cluster_nodes: list[Node]) -> str:
    cpus, gpus, memory = (
        sum(node.resources.get(name, 0) for node in cluster_nodes) for name in ("CPU", "GPU", "memory")
    )
    return f"{cpus:g} CPUs, {gpus:g} GPUs, {memory / GB:.1f} GB for work"
