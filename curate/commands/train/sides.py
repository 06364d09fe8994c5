"""Query and document sides that differ: a static query model, a linear query map, and the Router of two sides.

A side is a plain sentence-transformers model that can be used alone; the Router holds both and picks by a text's role.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, InputModule, Normalize, Router, StaticEmbedding
from tokenizers import Tokenizer

from curate.core.errors import ConfigError, DataError
from curate.core.protocols import Vectors

Foreign = Any
"""Models and tensors, which have no types here."""
QUERY, DOCUMENT = "query", "document"
"""Folders of the two sides beside the Router's."""


def static_side(tokenizer: Foreign, rows: Vectors | None = None, *, width: int = 0, seed: int = 13) -> Foreign:
    """Return a model that means one vector per token: `rows` to start from, else chance, near unit length.

    The tokenizer is a fast one of transformers; a copy is taken, without its limit of length. Encoding needs no
    transformer, so that a processor encodes thousands of texts a second.
    """
    own = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    own.no_truncation()
    if rows is None:
        drawn = torch.randn(len(tokenizer), width, generator=torch.Generator().manual_seed(seed))
        rows = (drawn / width**0.5).numpy()
    table = StaticEmbedding(own, embedding_weights=torch.tensor(rows, dtype=torch.float32))
    return SentenceTransformer(modules=[table, Normalize()], device="cpu")


def token_rows(model: Foreign) -> Vectors:
    """Return a transformer's own input vectors of its vocabulary: a start for the static side of the same width."""
    found: Vectors = model[0].auto_model.get_input_embeddings().weight.detach().float().cpu().numpy().copy()
    return found


class KeptVectors(InputModule):  # type: ignore[misc]
    """Input module that looks texts up among vectors encoded before: what is frozen costs nothing in a step."""

    def __init__(self, texts: Sequence[str] = (), vectors: Vectors | None = None) -> None:
        super().__init__()
        self.row = {text: place for place, text in enumerate(texts)}
        width = 0 if vectors is None else vectors.shape[1]
        self.register_buffer(
            "vectors", torch.zeros(0, width) if vectors is None else torch.as_tensor(vectors), persistent=False
        )

    def preprocess(self, inputs: Sequence[str], **_named: Foreign) -> dict[str, Foreign]:
        """Return the rows of texts; KeyError for one that was not encoded."""
        return {"input_ids": torch.tensor([self.row[text] for text in inputs], dtype=torch.long)}

    def forward(self, features: dict[str, Foreign], **_named: Foreign) -> dict[str, Foreign]:
        """Put the kept vectors where a transformer's pooling would put them."""
        features["sentence_embedding"] = self.vectors[features["input_ids"]]
        return features

    @property
    def max_seq_length(self) -> int | None:
        """Return None: nothing is cut here."""
        return None

    def get_embedding_dimension(self) -> int:
        """Return the length of a vector."""
        return int(self.vectors.shape[1])

    def save(self, output_path: str, *_places: Foreign, **_named: Foreign) -> None:
        """Write nothing: kept vectors belong in no checkpoint."""

    @classmethod
    def load(cls, *_places: Foreign, **_named: Foreign) -> "KeptVectors":
        """Return a module without vectors; a checkpoint's weights are loaded into the module that has them."""
        return cls()


def map_over_kept(texts: Sequence[str], vectors: Vectors) -> Foreign:
    """Return a model to train: a linear map, at first the identity, over vectors that the frozen base made."""
    return SentenceTransformer(modules=[KeptVectors(texts, vectors), _map(vectors.shape[1]), Normalize()], device="cpu")


def with_map(base: Foreign, trained: Foreign) -> Foreign:
    """Return the frozen base followed by the map of a model of `map_over_kept`: a plain model of the query side."""
    linear = next(module for module in trained if isinstance(module, Dense))
    modules = [*(module for module in base if not isinstance(module, Normalize)), Normalize(), linear, Normalize()]
    return SentenceTransformer(modules=modules, prompts=dict(base.prompts), device=str(base.device))


def router(query: Foreign, document: Foreign) -> Foreign:
    """Return a Router of two models; ConfigError if their vectors differ in length.

    A text without a role, as both sentences of STS, takes the query's route.
    """
    widths = query.get_embedding_dimension(), document.get_embedding_dimension()
    if widths[0] != widths[1]:
        raise ConfigError(
            f"the query side has vectors of {widths[0]} dimensions, the document side of {widths[1]}; expected one "
            "length: choose another base, or add a linear map to one side"
        )
    both = Router.for_query_document(list(query), list(document), default_route=QUERY)
    prompts = {role: side.prompts.get(role, "") for role, side in ((QUERY, query), (DOCUMENT, document))}
    return SentenceTransformer(modules=[both], prompts=prompts, device=str(document.device))


def save_sides(query: Foreign, document: Foreign, folder: Path) -> None:
    """Write the Router to `folder`, and each side to a folder in it as a plain model, for tools without Routers."""
    router(query, document).save_pretrained(str(folder), create_model_card=False)
    query.save_pretrained(str(folder / QUERY), create_model_card=False)
    document.save_pretrained(str(folder / DOCUMENT), create_model_card=False)


def _map(width: int) -> Foreign:
    return Dense(width, width, bias=False, activation_function=torch.nn.Identity(), init_weight=torch.eye(width))


# Weights of a trained model: adapters merged into them, and a mean with those it began with.


def adapt(model: Foreign, rank: int, alpha: int, dropout: float, modules: tuple[str, ...]) -> None:
    """Put low-rank adapters on a model's transformer; its own weights are frozen."""
    from peft import LoraConfig

    names = "all-linear" if modules == ("all-linear",) else list(modules)
    model.add_adapter(
        LoraConfig(task_type="FEATURE_EXTRACTION", r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules=names)
    )


def plain_state(model: Foreign) -> dict[str, Foreign]:
    """Return a model's weights under the names that it had before `adapt`, adapters merged into them."""
    for module in model.modules():
        if hasattr(module, "lora_A") and not module.merged:
            module.merge()
    return {
        name.replace(".base_layer.", "."): each for name, each in model.state_dict().items() if ".lora_" not in name
    }


def mean_of_weights(base: Mapping[str, Foreign], trained: Mapping[str, Foreign], share: float) -> dict[str, Foreign]:
    """Return `share` of the trained weights plus the rest of the base's; whole numbers are the trained ones."""
    return {
        name: (share * each + (1 - share) * base[name].to(each.device)) if each.is_floating_point() else each
        for name, each in trained.items()
    }


def settle(trained: Foreign, fresh: Foreign, share: float) -> Foreign:
    """Return the base `fresh` with the trained weights, or their mean with its own."""
    fresh.load_state_dict(mean_of_weights(fresh.state_dict(), plain_state(trained), share))
    return fresh


# Routers of other makers, taken apart: each side becomes a plain model, which is trained or kept as any other.

MODULES = "modules.json"
SIDES = ("query", "document")


def in_folder(folder: Path) -> bool:
    """Return whether a folder holds a model whose first module is a Router."""
    if not (folder / MODULES).is_file():
        return False
    try:
        modules = json.loads((folder / MODULES).read_text(encoding="utf-8"))
        return str(modules[0]["type"]).rpartition(".")[2] == "Router"
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise DataError(
            f"{folder / MODULES}: found no list of modules, expected that of a sentence-transformers model; save the "
            "model again"
        ) from error


def is_router(model: Foreign) -> bool:
    """Return whether a loaded model's first module is a Router."""
    return hasattr(model[0], "sub_modules")


def write_apart(model: Foreign, name: str, folder: Path) -> None:
    """Write the sides of a Router as plain models below a folder; ConfigError if it has other routes."""
    from sentence_transformers import SentenceTransformer

    routes, rest = model[0].sub_modules, list(model)[1:]
    if not set(SIDES) <= set(routes):
        raise ConfigError(
            f"--base {name}: found a Router with the routes {', '.join(routes)}, expected query and document; make one "
            "with Router.for_query_document"
        )
    beside = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(beside, ignore_errors=True)
    for role in SIDES:
        plain = SentenceTransformer(modules=[*routes[role], *rest], prompts=dict(model.prompts), device="cpu")
        plain.save_pretrained(str(beside / role), create_model_card=False)
    beside.rename(folder)
