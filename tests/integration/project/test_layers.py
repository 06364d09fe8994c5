"""The layout of the package: imports only go down the folders, pure folders touch nothing, one name is one class."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests import ROOT

PACKAGE = ROOT / "curate"

FLOORS = [
    {"core"},
    {"stats", "system"},
    {"ledger", "retrieval", "pii"},
    {"llm"},
    {"panel"},
    {"tables", "view"},
    {"pipeline"},
    {"review"},
    {"ask"},
    {"runs"},
    {"web"},
    {"commands"},
    {"testing"},
    {"api"},
    {"cli"},
]
"""Folders, lowest first; a folder imports from floors below its own."""
RANK = {name: rank for rank, floor in enumerate(FLOORS) for name in floor}
EXCEPTIONS = {("train", "evaluate")}
"""A command that imports another: training scores its models as `evaluate` does."""
FAMILIES = {
    "retrieval/encoders": set(),
    "retrieval/engines": set(),
    "retrieval/retrievers": set(),
    "ask/judges": {"llm/providers"},
    "llm/providers": set(),
    "tables/exporters": set(),
    "tables/readers": set(),
    "pii": set(),
}
"""Families of plug-ins, each with the families that it may import: judges ask providers."""
PURE = {
    "core": {"pathlib", "random"},
    "stats": set(),
    "panel": set(),
    "llm": set(),
    "review/sheets": set(),
}
"""Folders that touch no file, network, clock or environment, with what they may import nevertheless.

A folder speaks for its own modules; a subfolder is pure if it is named.
"""
OUTSIDE = {"os", "time", "socket", "httpx", "httpx2", "subprocess", "pathlib", "random"}
LONGEST_FUNCTION = 60
HOMONYMS = {"Config"}
"""Public classes that several modules may define: plug-ins and stages all name their settings so."""


def modules() -> dict[str, Path]:
    """Return dotted name -> file."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = modules()
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def targets(name: str) -> set[str]:
    """Return the modules of the package that a module imports, wherever in it, also for types alone."""
    found = set()
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {each if each in MODULES else node.module for each in whole}
    return {each for each in found if each in MODULES} - {name}


IMPORTS = {name: targets(name) for name in MODULES}


def outside(name: str) -> set[str]:
    """Return the packages that a module imports, by their first names."""
    found = set()
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def room(name: str) -> str:
    """Return the folder at the top of the package that a module lies in; empty for the package's own two modules."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in RANK else ""


def folder(name: str) -> str:
    return MODULES[name].parent.relative_to(PACKAGE).as_posix()


def test_the_package_has_rooms_and_no_loose_module() -> None:
    files = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    rooms = {path.parts[0] for path in files if len(path.parts) > 1}
    assert rooms == {*RANK, "demo"}, "a folder needs a floor in this test, and a floor its folder"
    assert {path.name for path in files if len(path.parts) == 1} == {"__init__.py", "__main__.py", "py.typed"}


def command(name: str) -> str:
    """Return the command that a module belongs to; empty outside of `commands`."""
    parts = name.split(".")
    return parts[2] if parts[1:2] == ["commands"] and len(parts) > 2 else ""


def wrong_arrows() -> Iterator[str]:
    """Yield the imports that go up, and those of another command's work: its `__init__` alone may be imported."""
    for name, targets_of in IMPORTS.items():
        for target in sorted(targets_of if room(name) else ()):
            here, there = room(name), room(target)
            other = command(target) and command(name) != command(target)
            work = other and target != f"curate.commands.{command(target)}"
            up = here != there and RANK.get(there, len(FLOORS)) >= RANK[here]
            allowed = (command(name), command(target)) in EXCEPTIONS
            if not allowed and (up or (work and here == "commands")):
                yield f"{name} -> {target}"


def test_imports_only_go_down() -> None:
    assert not list(wrong_arrows())


def test_modules_import_one_another_in_no_circle() -> None:
    try:
        TopologicalSorter({name: IMPORTS[name] for name in MODULES}).prepare()
    except CycleError as error:
        pytest.fail(f"circle: {' -> '.join(error.args[1])}")


def test_rooms_import_one_another_in_no_circle() -> None:
    rooms: dict[str, set[str]] = defaultdict(set)
    for name, targets_of in IMPORTS.items():
        for target in targets_of if room(name) else ():
            here, there = (f"commands/{command(each)}" if command(each) else room(each) for each in (name, target))
            rooms[here] |= {there} - {here, ""}
    try:
        TopologicalSorter(rooms).prepare()
    except CycleError as error:
        pytest.fail(f"circle: {' -> '.join(error.args[1])}")


def test_families_of_plugins_do_not_know_one_another() -> None:
    def family(name: str) -> str | None:
        return next((each for each in FAMILIES if f"{folder(name)}/".startswith(f"{each}/")), None)

    for name in MODULES:
        here = family(name)
        for target in IMPORTS[name] if here else ():
            there = family(target)
            assert there in {here, None} | FAMILIES[here or ""], f"{name} imports {target}, of another family"


@pytest.mark.parametrize("pure", sorted(PURE))
def test_pure_folders_touch_nothing_outside(pure: str) -> None:
    for name in (each for each in MODULES if folder(each) == pure):
        used = outside(name) & OUTSIDE - PURE[pure]
        assert not used, f"{name} imports {', '.join(used)}"


EDGE = {"cli", "commands"}
"""Folders that talk with the terminal."""
TYPER = {"curate.runs.completing", "curate.runs.group", "curate.runs.options", "curate.runs.running"} | {
    f"curate.view.{each}" for each in ("answers", "output_mode", "text")
}
"""Modules below them that commands are declared with, or that answer."""


def test_only_the_edge_prints() -> None:
    for name in (each for each in MODULES if room(each) not in EDGE):
        calls = [node.func for node in ast.walk(TREES[name]) if isinstance(node, ast.Call)]
        assert "print" not in {call.id for call in calls if isinstance(call, ast.Name)}, name
        assert "typer" not in outside(name) or name in TYPER, name


def test_functions_are_short() -> None:
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                assert length < LONGEST_FUNCTION, f"{name}.{node.name}: {length} lines"


def test_one_name_is_one_public_class() -> None:
    homes = defaultdict(set)
    for name, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(name)
    shared = {name: sorted(where) for name, where in homes.items() if len(where) > 1}
    assert shared.keys() <= HOMONYMS, shared
