"""The dependencies: whatever the package imports is declared, in the base or in an extra, and all of that is used."""

import ast
import sys
import tomllib
from importlib.metadata import packages_distributions, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from curate.core.errors import MissingExtra
from curate.system.extras import Extra, extras, installed, needed, require
from tests import ROOT
from tests.integration.project.test_layers import TREES

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DECLARED = PROJECT["optional-dependencies"]


def names(requirements: list[str]) -> set[str]:
    """Return the canonical names of distributions, without our own."""
    return {str(canonicalize_name(Requirement(each).name)) for each in requirements} - {"curate-ir"}


def imports() -> dict[str, set[str]]:
    """Return top-level third-party module -> modules of the package that import it, also for types alone."""
    found: dict[str, set[str]] = {}
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                targets = [node.module]
            else:
                continue
            for target in targets:
                found.setdefault(target.partition(".")[0], set()).add(name)
    return {
        module: users
        for module, users in found.items()
        if module not in {*sys.stdlib_module_names, "_typeshed", "curate"}
    }


IMPORTED = imports()
OF_EXTRAS = {module for extra in extras().values() for module in extra.modules}
PACKAGES = packages_distributions()
BASE = names(PROJECT["dependencies"])


def distributions(module: str) -> set[str]:
    """Return the canonical names of the distributions that a top-level module comes from."""
    return {str(canonicalize_name(name)) for name in PACKAGES.get(module, [])}


@pytest.mark.parametrize("module", sorted(IMPORTED))
def test_an_imported_module_is_declared(module: str) -> None:
    declared = set().union(*map(names, (DECLARED[e.name] for e in extras().values() if module in e.modules)))
    assert distributions(module) & (declared or BASE), f"{module}, imported by {sorted(IMPORTED[module])}"


def test_every_package_of_the_base_is_imported() -> None:
    used = set().union(*map(distributions, IMPORTED))
    assert used >= BASE


def test_the_table_of_extras_is_that_of_the_project() -> None:
    assert {*DECLARED} == {*extras(), "all", "dev"}
    [everything] = DECLARED["all"]
    assert Requirement(everything).extras == set(extras())
    for extra in extras().values():
        brought = set().union(*map(distributions, extra.modules))
        assert names(DECLARED[extra.name]) <= brought | {"ir-datasets"}, extra.name


def test_no_package_of_the_base_brings_torch() -> None:
    """Follow what the base and `offline` require, by the metadata of what is installed here."""
    seen: set[str] = set()
    waiting = BASE | names(DECLARED["offline"])
    while waiting:
        name = waiting.pop()
        seen.add(name)
        wanted = [Requirement(each) for each in requires(name) or []]
        needs = {canonicalize_name(each.name) for each in wanted if not each.marker or each.marker.evaluate()}
        waiting |= needs - seen
    assert "numpy" in seen
    assert not seen & {"torch", "transformers", "sentence-transformers"}


@pytest.mark.parametrize("extra", extras().values(), ids=lambda extra: extra.name)
def test_an_absent_module_names_its_extra(extra: Extra, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in extra.modules:
        monkeypatch.setitem(sys.modules, module, None)
        with (
            pytest.raises(MissingExtra, match=rf"the thing needs.*pip install 'curate-ir\[{extra.name}\]'"),
            needed("the thing"),
        ):
            __import__(module)
        monkeypatch.setattr("curate.system.extras.find_spec", lambda _: None)
        with pytest.raises(MissingExtra, match=rf"{module}.*curate-ir\[{extra.name}\]"):
            require(module, "the thing")


def test_another_failed_import_passes() -> None:
    assert not installed("nobody_has_this")
    with pytest.raises(ModuleNotFoundError), needed("the thing"):
        __import__("nobody_has_this")
