"""Plugins by name: a dict of late imports, entry points of other packages, and an honest error."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoints, entry_points
from typing import Generic, TypeVar

from curate.errors import ConfigError, suggestion

Thing = TypeVar("Thing", bound=Callable[..., object])


@dataclass(frozen=True)
class Registry(Generic[Thing]):
    """Names of one family of plugins; built-ins and entry points come through the same door."""

    family: str
    builtin: Mapping[str, str]

    def names(self) -> list[str]:
        """Return every known name, sorted."""
        return sorted({*self.builtin, *(point.name for point in self._points())})

    def load(self, name: str) -> Thing:
        """Import and return what is registered under `name`; ConfigError names the nearest known one."""
        if name in self.builtin:
            module, _, attribute = self.builtin[name].partition(":")
            thing: Thing = getattr(import_module(module), attribute)
            return thing
        for point in self._points():
            if point.name == name:
                loaded: Thing = point.load()
                return loaded
        raise ConfigError(f"unknown {self.family} {name!r}: {suggestion(name, self.names())}")

    def _points(self) -> EntryPoints:
        return _points(f"curate.{self.family}s")


@cache
def _points(group: str) -> EntryPoints:
    # Every look goes through the metadata of all installed packages.
    return entry_points(group=group)
