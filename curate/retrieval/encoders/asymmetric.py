"""Encoder that combines two of one vector space: one model for queries, another for documents."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from threading import Semaphore

from pydantic import JsonValue

from curate.core.config import Section, Settings, check, digest
from curate.core.errors import ConfigError, suggestion
from curate.core.protocols import Encoder, Vectors
from curate.core.records import Role
from curate.retrieval.encoders import ENCODERS
from curate.system import egress
from curate.system.egress import Egress

KIND = "asymmetric"
SIDES: tuple[Role, ...] = ("query", "document")


class Config(Section):
    """Encoder of each role: a kind with its defaults, such as `use`, or its kind and settings.

    In a pipeline it may also be the name of another of its encoders: see `with_named_sides`.
    """

    query: str | dict[str, JsonValue]
    """Encoder of queries, for example `{kind: dense, model: FOLDER}`, or the name of another of the pipeline."""
    document: str | dict[str, JsonValue]
    """Encoder of documents, whose vectors have the same length."""


class Asymmetric:
    """Encoder of queries by one encoder and of documents by another (`sides`: role -> encoder).

    `revision` is a digest of both encoders' revisions; caches use `revisions`, one per role, so that vectors of
    documents stay valid if the query model changes. Texts leave this machine if either encoder sends them.
    """

    sts_route: Role = "query"
    """Role whose encoder encodes sentences of STS, which are neither queries nor documents."""

    def __init__(self, name: str, config: Config) -> None:
        self.name, self.config = name, config
        kinds_and_sides = {role: _side(f"{name}.{role}", getattr(config, role)) for role in SIDES}
        self.sides = {role: side for role, (_, side) in kinds_and_sides.items()}
        self.revisions = {role: digest([kind, side.revision])[:16] for role, (kind, side) in kinds_and_sides.items()}
        self.revision = digest(self.revisions)[:16]

    @property
    def egress(self) -> Egress:
        """Return `local` if both encoders are local; `beyond` returns the reason for `remote`."""
        return "remote" if any(egress.declared(side) == "remote" for side in self.sides.values()) else "local"

    @property
    def addresses(self) -> tuple[str, ...] | None:
        """Return the addresses of both encoders; None if one of them does not tell its own."""
        by_side = [egress.addresses(side) for side in self.sides.values()]
        return None if None in by_side else tuple(address for addresses in by_side for address in addresses or ())

    def side(self, role: Role) -> Encoder:
        """Return the encoder of a role's texts."""
        return self.sides[role]

    def __reduce__(self) -> tuple[type["Asymmetric"], tuple[str, Config]]:
        return type(self), (self.name, self.config)  # a copy in another process loads its models there

    def beyond(self, who: str) -> str | None:
        """Return why texts may leave the user's control, by the first encoder that sends them; None if none does."""
        reasons = (egress.beyond(f"{who}.{role}", side) for role, side in self.sides.items())
        return next((why for why in reasons if why is not None), None)

    @cached_property
    def dim(self) -> int:
        """Return the length of a vector; loads both models, ConfigError if their lengths differ."""
        query, document = (self.sides[role].dim for role in SIDES)
        if query != document:
            raise ConfigError(
                f"encoders.{self.name}: found query vectors of length {query} and document vectors of length "
                f"{document}, expected one length; name two models that were trained to one space"
            )
        return query

    @property
    def lanes(self) -> int:
        """Return the number of threads that may call `encode` at the same time: the larger number of both encoders."""
        return max(map(_lanes, self.sides.values()))

    @property
    def step(self) -> int | None:
        """Return the smaller of both encoders' batch sizes on a CPU; None if either has none."""
        steps: list[int | None] = [getattr(side, "step", None) for side in self.sides.values()]
        sizes = [step for step in steps if step is not None]
        return min(sizes) if len(sizes) == len(steps) else None

    def load(self) -> None:
        """Load both models and compare their dimensions, to detect a mismatch before documents are encoded."""
        for side in self.sides.values():
            if (load := getattr(side, "load", None)) is not None:
                load()
        _ = self.dim, self._gates

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one normalised row per text, shape (len(texts), dim), by the encoder of that role."""
        _ = self.dim
        with self._gates[role]:
            return self.sides[role].encode(texts, role)

    def float32_rows(self, role: Role) -> Callable[[Sequence[str]], Vectors] | None:
        """Return a function that encodes texts of a role in float32, to check precision; None if its encoder does."""
        find = getattr(self.sides[role], "float32_rows", None)
        return None if find is None else find(role)

    @cached_property
    def _gates(self) -> dict[Role, Semaphore]:
        # as many threads may encode by a side as its model takes, though `lanes` is the larger number of both
        return {role: Semaphore(_lanes(side)) for role, side in self.sides.items()}


def with_named_sides(settings: Settings, definitions: Mapping[str, Settings]) -> Settings:
    """Return an encoder's settings; those of an `asymmetric` with names in `definitions` replaced by their settings."""
    if settings.get("kind") != KIND:
        return settings
    names = {role: side for role in SIDES if isinstance(side := settings.get(role), str) and side in definitions}
    return {**settings, **{role: {"kind": name, **definitions[name]} for role, name in names.items()}}


def _lanes(side: Encoder) -> int:
    return int(getattr(side, "lanes", 1))


def _side(path: str, declared: str | dict[str, JsonValue]) -> tuple[str, Encoder]:
    """Return kind and encoder of one role; ConfigError for a kind that is unknown, missing, or `asymmetric` itself."""
    settings = {"kind": declared} if isinstance(declared, str) else dict(declared)
    kind = settings.pop("kind", None)
    if kind not in (kinds := [name for name in ENCODERS.names() if name != KIND]):
        description = "nothing" if kind is None else repr(kind)
        raise ConfigError(f"encoders.{path}.kind: found {description}; {suggestion(str(kind), kinds)}", choices=kinds)
    make = ENCODERS.load(str(kind))
    config = check(import_module(make.__module__).Config, settings, f"encoders.{path}")
    return str(kind), make(path, config)
