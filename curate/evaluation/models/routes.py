"""Which side of a model with two encodes sentences of STS, which are neither queries nor documents."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from curate.core.config import Settings
from curate.evaluation.models.board import Board
from curate.retrieval.encoders.asymmetric import KIND, Asymmetric

ROUTER = "router_config.json"
STS = "STS"


def notes(names: Iterable[str], definitions: Mapping[str, Settings], boards: Iterable[Board]) -> list[str]:
    """Return a sentence per model of two sides, if there is a task of STS: no such score is of both sides."""
    sts = [board.task.name for board in boards if board.task.kind.mteb.type == STS]
    routes = {name: route for name in dict.fromkeys(names) if (route := _route(name, definitions)) is not None}
    return [
        f"{', '.join(sts)}: {name} encodes both sentences by its {route} side, as it does texts without a role; the "
        "other side is not scored there"
        for name, route in routes.items()
        if sts
    ]


def _route(name: str, definitions: Mapping[str, Settings]) -> str | None:
    """Return the side of a model for texts without a role; None for one that has no sides, or is on no disk here."""
    settings = definitions.get(name, {"kind": "dense", "model": name})
    if settings.get("kind") == KIND:
        return Asymmetric.sts_route
    path = Path(str(settings.get("model", name))).expanduser() / ROUTER
    if not path.is_file():
        return None
    default = json.loads(path.read_text(encoding="utf-8"))["parameters"]["default_route"]
    # A definition of ours gives both sentences as queries; mteb gives a plain folder no role, so its default counts.
    return "query" if name in definitions else default
