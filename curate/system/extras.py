"""Optional dependencies: the extra of this package that installs a module, and the error that names it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from curate.core import safe_yaml
from curate.core.errors import MissingExtra

NAME = "curate-ir"
"""Name of this distribution on PyPI."""


@dataclass(frozen=True)
class Extra:
    """An extra of this distribution (`pip install 'NAME[extra]'`)."""

    name: str
    purpose: str
    modules: Sequence[str]
    """Top-level modules that only this extra installs, not the base distribution."""

    @property
    def absent(self) -> Sequence[str]:
        """Return the modules that are not installed."""
        return [module for module in self.modules if not installed(module)]

    @property
    def command(self) -> str:
        """Return the shell command that installs the extra."""
        return f"pip install '{NAME}[{self.name}]'"


@cache
def extras() -> Mapping[str, Extra]:
    """Return name -> extra, from `extras.yaml`."""
    table = safe_yaml.parse(safe_yaml.read(Path(__file__).with_suffix(".yaml")))
    return {name: Extra(name, entry["for"], entry["modules"]) for name, entry in table.items()}


def installed(module: str) -> bool:
    """Return whether a top-level module can be found; it is not imported."""
    return find_spec(module) is not None


def require(module: str, user: str) -> None:
    """Raise MissingExtra if a module is not installed; `user` names what needs it, such as "the encoder e5"."""
    if not installed(module):
        raise _missing(module, user)


@contextmanager
def needed(user: str) -> Iterator[None]:
    """Turn the failed import of a module of an extra into MissingExtra; other failed imports are not changed.

    `user` names what needs the module, such as "the engine ray".
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if not _extra(module):
            raise
        raise _missing(module, user) from error


def _missing(module: str, user: str) -> MissingExtra:
    extra = _extra(module)
    assert extra is not None, module
    return MissingExtra(f"{user} needs the package {module}, which is not installed: {extra.command}")


def _extra(module: str) -> Extra | None:
    return next((extra for extra in extras().values() if module in extra.modules), None)
