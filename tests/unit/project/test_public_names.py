"""The public names: complete, sorted, documented, the only ones that docs import, never shadowed by a folder."""

import re
import tomllib
from importlib import import_module
from inspect import signature
from pkgutil import walk_packages
from typing import get_origin

import pytest

import curate
from curate.runs.index import load
from tests import ROOT

HOMES = {"curate", "curate.testing"}
"""Modules from which users and plug-ins import."""


def test_all_is_sorted_and_complete() -> None:
    commands = curate._NAMES["api.commands"].split()
    assert commands == sorted(commands)
    assert curate.__all__ == [*sorted(set(curate.__all__) - set(commands)), *commands]
    assert set(curate.__all__) == set(curate._HOMES)


@pytest.mark.slow
def test_every_command_is_a_function_with_the_same_keywords() -> None:
    for entry in load():
        function = getattr(curate, re.sub("[ -]", "_", entry["words"]))
        if getattr(function, "__module__", "") == "curate.api.commands":
            keywords = {option["name"] for option in entry["options"] if option["flag"] != "--set"}
            assert keywords | entry["settings"].keys() <= set(signature(function).parameters), entry["words"]


def test_every_public_class_and_function_says_what_it_is() -> None:
    for name in curate.__all__:
        found = getattr(curate, name)
        if callable(found) and get_origin(found) is None:
            assert (found.__doc__ or "").strip(), f"{name} has no docstring"


@pytest.mark.slow
def test_public_names_stay_what_they_are_when_every_module_is_imported() -> None:
    before = {name: getattr(curate, name) for name in curate.__all__}
    for module in walk_packages(curate.__path__, "curate."):
        if module.name != "curate.__main__" and "mteb_tasks" not in module.name:
            import_module(module.name)
    assert all(getattr(curate, name) is found for name, found in before.items())


def test_docs_and_the_example_import_from_the_public_home() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", *(ROOT / "tests/plugin").rglob("*.py")]
    for page in pages:
        for module in re.findall(r"^\s*(?:from|import) (curate[\w.]*)", page.read_text(encoding="utf-8"), re.MULTILINE):
            assert module in HOMES or not module.startswith("curate."), f"{page.name} imports from {module}"


def test_the_version_stands_in_one_place() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in settings["project"]
    assert settings["tool"]["hatch"]["version"] == {"path": "curate/__init__.py"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", curate.__version__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(curate, "no_such_name")
