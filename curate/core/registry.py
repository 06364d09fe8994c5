"""Plugins by name: built-in ones, imported on first use, and entry points of other packages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any, Generic, TypeVar, cast

from curate.core.errors import ConfigError, suggestion

Thing = TypeVar("Thing", bound=Callable[..., object])


@dataclass(frozen=True)
class Registry(Generic[Thing]):
    """The plugins of one family: built-in ones (`builtin`: name -> "module:attribute") and entry points."""

    family: str
    builtin: Mapping[str, str]

    def names(self) -> list[str]:
        """Return every known name, sorted."""
        return sorted({*self.builtin, *(point.name for point in self._points())})

    def others(self) -> dict[str, str]:
        """Return name -> package and version of plugins from other packages; names of built-in plugins are excluded."""
        return {point.name: _owner(point) for point in self._points() if point.name not in self.builtin}

    def load(self, name: str) -> Thing:
        """Import and return the plugin of a name; a built-in plugin has precedence over those of other packages.

        ConfigError if the name is unknown (with the nearest known one), if two packages register it, or if it cannot be
        imported.
        """
        if name in self.builtin:
            module, _, attribute = self.builtin[name].partition(":")
            thing: Thing = getattr(import_module(module), attribute)
            return thing
        match [point for point in self._points() if point.name == name]:
            case []:
                raise ConfigError(f"unknown {self.family} {name!r}: {suggestion(name, self.names())}")
            case [point]:
                return cast("Thing", _imported(point, f"{self.family} {name!r}"))
            case several:
                owners = ", ".join(sorted(map(_owner, several)))
                raise ConfigError(
                    f"{self.family} {name!r}: found in {owners}, expected one package; uninstall the other"
                )

    def _points(self) -> EntryPoints:
        points: EntryPoints = _all_points().select(group=f"curate.{self.family}s")
        return points


@cache
def _all_points() -> Any:  # noqa: ANN401 - EntryPoints, or what Python 3.11 has in its place
    # cached: each call reads the metadata of all installed packages
    return entry_points()


def _imported(point: EntryPoint, what: str) -> object:
    """Return the object of an entry point; ConfigError with the package to repair if its import fails."""
    remedy = f"repair the package {_owner(point)} or uninstall it"
    try:
        thing = point.load()
    except Exception as error:  # code of others may raise anything
        cause = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{what}: {point.value} cannot be imported ({cause}); {remedy}") from error
    if not callable(thing):
        raise ConfigError(f"{what}: {point.value} is {thing!r}, expected a class or a function; {remedy}")
    return thing


def _owner(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "of no name"
