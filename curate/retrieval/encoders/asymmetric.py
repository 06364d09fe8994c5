"""Two encoders of one width: queries by one model, documents by another whose space it was trained to share."""

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
    """Which encoder each role has: the name of one with its defaults, such as `use`, or its kind and settings.

    Where a pipeline is at hand, a name may be that of another encoder of it: see `with_named_sides`.
    """

    query: str | dict[str, JsonValue]
    """Encoder of queries, for example `{kind: dense, model: FOLDER}`, or the name of another of the pipeline."""
    document: str | dict[str, JsonValue]
    """Encoder of documents, whose vectors have the same length."""


class Asymmetric:
    """Encode queries by one encoder and documents by another.

    The revision is made of both sides' revisions; `revisions` has each one's, so that vectors of documents outlive a
    change of the query model. Texts leave this machine if either side sends them.
    """

    sts_route: Role = "query"
    """The side that encodes sentences of STS, which are neither queries nor documents."""

    def __init__(self, name: str, config: Config) -> None:
        self.name, self.config = name, config
        made = {role: _side(f"{name}.{role}", getattr(config, role)) for role in SIDES}
        self.sides = {role: side for role, (_, side) in made.items()}
        self.revisions = {role: digest([kind, side.revision])[:16] for role, (kind, side) in made.items()}
        self.revision = digest(self.revisions)[:16]

    @property
    def egress(self) -> Egress:
        """Return `local` if both sides send nothing; why texts may leave, `beyond` says."""
        return "remote" if any(egress.declared(side) == "remote" for side in self.sides.values()) else "local"

    def side(self, role: Role) -> Encoder:
        """Return the encoder of a role's texts."""
        return self.sides[role]

    def __reduce__(self) -> tuple[type["Asymmetric"], tuple[str, Config]]:
        return type(self), (self.name, self.config)  # a copy in another process loads its models there

    def beyond(self, who: str) -> str | None:
        """Return why texts may leave, by the first side that sends them; None if both stay."""
        reasons = (egress.beyond(f"{who}.{role}", side) for role, side in self.sides.items())
        return next((why for why in reasons if why is not None), None)

    @cached_property
    def dim(self) -> int:
        """Return the length of a vector; loads both models, ConfigError if theirs differ."""
        query, document = (self.sides[role].dim for role in SIDES)
        if query != document:
            raise ConfigError(
                f"encoders.{self.name}: found query vectors of length {query} and document vectors of length "
                f"{document}, expected one length; name two models that were trained to one space"
            )
        return query

    @property
    def lanes(self) -> int:
        """Return how many threads may call `encode` at once: as many as the wider side takes."""
        return max(map(_lanes, self.sides.values()))

    @property
    def step(self) -> int | None:
        """Return the smaller batch of two sides on a processor; None if either has no such size."""
        steps: list[int | None] = [getattr(side, "step", None) for side in self.sides.values()]
        known = [step for step in steps if step is not None]
        return min(known) if len(known) == len(steps) else None

    def load(self) -> None:
        """Load both models and compare their widths, before hours go into the documents."""
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
        """Return what encodes texts of a role by a copy of that side in float32; None if the side needs none."""
        find = getattr(self.sides[role], "float32_rows", None)
        return None if find is None else find(role)

    @cached_property
    def _gates(self) -> dict[Role, Semaphore]:
        """Return what keeps more threads out of a side than it takes."""
        return {role: Semaphore(_lanes(side)) for role, side in self.sides.items()}


def with_named_sides(settings: Settings, definitions: Mapping[str, Settings]) -> Settings:
    """Return an encoder's settings; sides of an `asymmetric` that name another of the definitions have its settings."""
    if settings.get("kind") != KIND:
        return settings
    named = {role: side for role in SIDES if isinstance(side := settings.get(role), str) and side in definitions}
    return {**settings, **{role: {"kind": name, **definitions[name]} for role, name in named.items()}}


def _lanes(side: Encoder) -> int:
    return int(getattr(side, "lanes", 1))


def _side(place: str, given: str | dict[str, JsonValue]) -> tuple[str, Encoder]:
    """Return the kind of a side and its encoder; ConfigError for a kind that is unknown, missing, or this one."""
    settings = {"kind": given} if isinstance(given, str) else dict(given)
    kind = settings.pop("kind", None)
    if kind not in (known := [name for name in ENCODERS.names() if name != KIND]):
        found = "nothing" if kind is None else repr(kind)
        raise ConfigError(f"encoders.{place}.kind: found {found}; {suggestion(str(kind), known)}", choices=known)
    make = ENCODERS.load(str(kind))
    config = check(import_module(make.__module__).Config, settings, f"encoders.{place}")
    return str(kind), make(place, config)
