"""Engines by kind: one function done on several parts of a work, in processes here or on other machines."""

from collections.abc import Callable

from curate.protocols import Engine
from curate.registry import Registry

ENGINES: Registry[Callable[..., Engine]] = Registry(
    "engine", {"local": "curate.engines.local:Local", "ray": "curate.engines.ray:Ray"}
)
