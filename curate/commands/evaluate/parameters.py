"""Parameters per model, on its query side and its document side: all of them, and those outside the token embeddings.

Folders of sentence-transformers are counted from the headers of their weight files, which loads nothing and gives the
same figures whether scores were kept or not; a `Router` has different modules per side. Other models have the figures
that mteb's ModelMeta states for them. What is not known is None, never 0.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from curate.commands.evaluate.tasks import imported
from curate.core.config import Json

SIDES = ("query", "document")
EMBEDDINGS = ("word_embeddings.weight", "embed_tokens.weight", "wte.weight", "tok_embeddings.weight", "shared.weight")
"""Endings of the names of token embeddings, whose rows are looked up and not multiplied."""
STATIC = "embedding.weight"
"""Full name of the table of a static model, which is a token embedding and nothing else."""
UNUSED = ("lm_head.",)
"""Beginnings of the names of weights that an embedding model does not load."""


@dataclass(frozen=True)
class SideParameters:
    """Parameters of one side of a model."""

    total: int | None = None
    active: int | None = None
    """Those outside the token embeddings, or those used per token of a mixture of experts, as mteb defines them."""

    def __add__(self, other: "SideParameters") -> "SideParameters":
        """Return the sum of two modules; unknown where one of them is."""
        return SideParameters(_sum(self.total, other.total), _sum(self.active, other.active))


@dataclass(frozen=True)
class ModelParameters:
    """Parameters of both sides, and where the figures come from."""

    query: SideParameters = SideParameters()
    document: SideParameters = SideParameters()
    source: str | None = None

    def shown(self) -> dict[str, Json]:
        """Return the figures as plain values."""
        return asdict(self)


def of_names(names: Sequence[str]) -> dict[str, ModelParameters]:
    """Return model name, as an evaluation prints it -> parameters, for the models given after --models."""
    found = {}
    for name in names:
        path = Path(name).expanduser()
        found[path.name if path.is_dir() else name] = in_folder(path) if path.is_dir() else of_mteb(name)
    return found


def of_mteb(name: str) -> ModelParameters:
    """Return what mteb's ModelMeta states; unknown for a name that mteb does not know."""
    try:
        meta = imported().get_model_meta(name, fetch_from_hf=False)
    except (KeyError, ValueError):  # a name of ours, or one of the hub only
        return ModelParameters()
    return stated(meta.n_parameters, meta.n_active_parameters, "mteb")


def of_meta(meta: Mapping[str, Any]) -> ModelParameters:
    """Return what a `model_meta.json` of a result folder states, else what mteb knows of the model it names."""
    total = _number(meta.get("n_parameters"))
    if total is None:
        name = meta.get("name")
        return of_mteb(name) if isinstance(name, str) else ModelParameters()
    active, table = (_number(meta.get(key)) for key in ("n_active_parameters_override", "n_embedding_parameters"))
    if active is None and table is not None:
        active = total - table
    return stated(total, active, "model_meta.json")


def stated(total: int | None, active: int | None, source: str) -> ModelParameters:
    """Return the same figures for both sides of a model; without a total there is no source."""
    side = SideParameters(total, active)
    return ModelParameters(side, side, source) if total is not None else ModelParameters()


def in_folder(folder: Path) -> ModelParameters:
    """Return the parameters of a sentence-transformers folder, from the headers of its safetensors files.

    Unknown where weights are in other files, quantised, or an adapter on a base that lies elsewhere.
    """
    sides = dict.fromkeys(SIDES, SideParameters(0, 0))
    for module in _modules(folder):
        for side, route in _routes(module).items():
            for part in route:
                sides[side] += weights(part)
    if sides["query"].total is None and sides["document"].total is None:
        return ModelParameters()
    return ModelParameters(sides["query"], sides["document"], "weight files")


def weights(folder: Path) -> SideParameters:
    """Return the parameters of one module's folder; 0 for a module without weights."""
    files = sorted(folder.glob("*.safetensors"))
    if (folder / "adapter_config.json").is_file() or (not files and any(folder.glob("*.bin"))):
        return SideParameters()
    total = table = 0
    headers = [_header(file) for file in files]
    if None in headers:
        return SideParameters()
    for name, entry in (each for header in headers for each in (header or {}).items()):
        if name == "__metadata__" or name.startswith(UNUSED) or name.endswith("_ids"):
            continue
        if str(entry["dtype"])[0] not in "FB":  # packed integers of a quantised model hold several weights each
            return SideParameters()
        size = math.prod(entry["shape"])
        total += size
        table += size if name == STATIC or name.endswith(EMBEDDINGS) else 0
    return SideParameters(total, total - table)


def _modules(folder: Path) -> list[Path]:
    path = folder / "modules.json"
    return [folder / each["path"] for each in _json(path)] if path.is_file() else [folder]


def _routes(module: Path) -> dict[str, list[Path]]:
    """Return side -> folders of its modules; a module that is no Router serves both sides."""
    path = module / "router_config.json"
    if not path.is_file():
        return {side: [module] for side in SIDES}
    structure = _json(path).get("structure", {})
    return {side: [module / each for each in structure[side]] for side in SIDES if side in structure}


def _header(file: Path) -> Mapping[str, Any] | None:
    """Return the header of a safetensors file: eight bytes of length, then JSON of names, types and shapes.

    None for a file that is none, such as the pointer that git leaves where large files were not fetched.
    """
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > file.stat().st_size:
            return None
        found: Mapping[str, Any] = json.loads(stream.read(length))
    return found


def _json(path: Path) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(path.read_text(encoding="utf-8"))


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
