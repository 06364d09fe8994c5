"""Numbers of parameters of a model's query and document encoders: total, and without token embeddings.

For sentence-transformers folders, from the headers of the weight files, without loading them; a `Router` has different
modules for queries and documents. For other models, from mteb's ModelMeta. Unknown numbers are None, never 0.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curate.commands.evaluate.tasks import imported
from curate.core.figures import Record, figure

SIDES = ("query", "document")
EMBEDDINGS = ("word_embeddings.weight", "embed_tokens.weight", "wte.weight", "tok_embeddings.weight", "shared.weight")
"""Suffixes of the names of token embeddings, which are looked up instead of multiplied."""
STATIC = "embedding.weight"
"""Name of the only weight of a static model, which is a token embedding."""
UNUSED = ("lm_head.",)
"""Prefixes of the names of weights that an embedding model does not load."""


class SideParameters(Record, schema_name="side"):
    """Numbers of parameters of the query or document encoder."""

    total: int | None = figure("all parameters", default=None)
    active: int | None = figure("parameters outside the token embeddings", default=None)

    def __add__(self, other: "SideParameters") -> "SideParameters":
        """Return the sums for two modules; None where one of the numbers is unknown."""
        return SideParameters(_sum(self.total, other.total), _sum(self.active, other.active))


@dataclass(frozen=True)
class ModelParameters:
    """Parameters of the query and document encoder, and the source of the numbers."""

    query: SideParameters = field(default_factory=SideParameters)
    document: SideParameters = field(default_factory=SideParameters)
    source: str | None = None


class ParameterCounts(Record, schema_name="parameters"):
    """Parameters of one model."""

    model: str = figure("name of the model")
    query: SideParameters = figure("parameters of the query encoder")
    document: SideParameters = figure("parameters of the document encoder")
    source: str | None = figure("weight files, model_meta.json or mteb; null if the numbers are unknown")


def of_names(names: Sequence[str]) -> dict[str, ModelParameters]:
    """Return name in an evaluation -> parameters; `names` are the arguments of --models."""
    parameters_by_name = {}
    for name in names:
        path = Path(name).expanduser()
        parameters_by_name[path.name if path.is_dir() else name] = in_folder(path) if path.is_dir() else of_mteb(name)
    return parameters_by_name


def of_mteb(name: str) -> ModelParameters:
    """Return the parameters from mteb's ModelMeta; all None if mteb does not know the model."""
    try:
        meta = imported().get_model_meta(name, fetch_from_hf=False)
    except (KeyError, ValueError):  # a name of this package, or of the hub only
        return ModelParameters()
    return stated(meta.n_parameters, meta.n_active_parameters, "mteb")


def of_meta(meta: Mapping[str, Any]) -> ModelParameters:
    """Return the parameters from the `model_meta.json` of a result folder, else from mteb's ModelMeta of that model."""
    total = _number(meta.get("n_parameters"))
    if total is None:
        name = meta.get("name")
        return of_mteb(name) if isinstance(name, str) else ModelParameters()
    active, table = (_number(meta.get(key)) for key in ("n_active_parameters_override", "n_embedding_parameters"))
    if active is None and table is not None:
        active = total - table
    return stated(total, active, "model_meta.json")


def stated(total: int | None, active: int | None, source: str) -> ModelParameters:
    """Return the same numbers for both encoders of a model; all None without a total."""
    side = SideParameters(total, active)
    return ModelParameters(side, side, source) if total is not None else ModelParameters()


def in_folder(folder: Path) -> ModelParameters:
    """Return the parameters of a sentence-transformers folder, from the headers of its safetensors files.

    All None if weights are in other files, quantised, or an adapter for a base model.
    """
    sides = dict.fromkeys(SIDES, SideParameters(0, 0))
    path = folder / "modules.json"
    modules = [folder / module["path"] for module in _json(path)] if path.is_file() else [folder]
    for module in modules:
        for side, route in _routes(module).items():
            for module_folder in route:
                sides[side] += weights(module_folder)
    if sides["query"].total is None and sides["document"].total is None:
        return ModelParameters()
    return ModelParameters(sides["query"], sides["document"], "weight files")


def weights(folder: Path) -> SideParameters:
    """Return the parameters in one module's folder; 0 for a module without weights."""
    files = sorted(folder.glob("*.safetensors"))
    if (folder / "adapter_config.json").is_file() or (not files and any(folder.glob("*.bin"))):
        return SideParameters()
    total = table = 0
    headers = [_header(file) for file in files]
    if None in headers:
        return SideParameters()
    for name, entry in (header_entry for header in headers for header_entry in (header or {}).items()):
        if name == "__metadata__" or name.startswith(UNUSED) or name.endswith("_ids"):
            continue
        if str(entry["dtype"])[0] not in "FB":  # a packed integer of a quantised model contains several weights
            return SideParameters()
        size = math.prod(entry["shape"])
        total += size
        table += size if name == STATIC or name.endswith(EMBEDDINGS) else 0
    return SideParameters(total, total - table)


def _routes(module: Path) -> dict[str, list[Path]]:
    """Return `query` and `document` -> folders of its modules; a module that is no Router belongs to both."""
    path = module / "router_config.json"
    if not path.is_file():
        return {side: [module] for side in SIDES}
    structure = _json(path).get("structure", {})
    return {side: [module / name for name in structure[side]] for side in SIDES if side in structure}


def _header(file: Path) -> Mapping[str, Any] | None:
    """Return the header of a safetensors file: JSON of names, types and shapes, after eight bytes with its length.

    None for another file, such as a Git LFS pointer.
    """
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > file.stat().st_size:
            return None
        header: Mapping[str, Any] = json.loads(stream.read(length))
    return header


def _json(path: Path) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(path.read_text(encoding="utf-8"))


def _number(number: object) -> int | None:
    return int(number) if isinstance(number, int | float) and not isinstance(number, bool) else None


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
