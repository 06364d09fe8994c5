"""Models with separate query and document models ("sides"): static query model, linear query map, and Router.

A side is a plain sentence-transformers model; the Router contains both sides and selects one by a text's role.
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
"""Models and tensors of other libraries, which are untyped here."""
QUERY, DOCUMENT = "query", "document"
"""Names of the roles, and of the subfolders of the sides in a Router's folder."""


def static_side(tokenizer: Foreign, rows: Vectors | None = None, *, width: int = 0, seed: int = 13) -> Foreign:
    """Return a model that averages token vectors, initialised with `rows` or with normal noise of about unit length.

    The tokenizer is a fast one of transformers, copied without its length limit. The model has no transformer layers,
    so a CPU encodes thousands of texts per second.
    """
    copy = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    copy.no_truncation()
    if rows is None:
        random = torch.randn(len(tokenizer), width, generator=torch.Generator().manual_seed(seed))
        rows = (random / width**0.5).numpy()
    table = StaticEmbedding(copy, embedding_weights=torch.tensor(rows, dtype=torch.float32))
    return SentenceTransformer(modules=[table, Normalize()], device="cpu")


def token_rows(model: Foreign) -> Vectors:
    """Return a transformer's input embeddings, shape (vocabulary, width), to initialise a static model."""
    embeddings: Vectors = model[0].auto_model.get_input_embeddings().weight.detach().float().cpu().numpy().copy()
    return embeddings


class KeptVectors(InputModule):  # type: ignore[misc]
    """Input module that looks up precomputed vectors by text, so that frozen parts are not computed in each step."""

    def __init__(self, texts: Sequence[str] = (), vectors: Vectors | None = None) -> None:
        super().__init__()
        self.row = {text: number for number, text in enumerate(texts)}
        width = 0 if vectors is None else vectors.shape[1]
        self.register_buffer(
            "vectors", torch.zeros(0, width) if vectors is None else torch.as_tensor(vectors), persistent=False
        )

    def preprocess(self, inputs: Sequence[str], **_kwargs: Foreign) -> dict[str, Foreign]:
        """Return the row numbers of texts; KeyError for an unknown text."""
        return {"input_ids": torch.tensor([self.row[text] for text in inputs], dtype=torch.long)}

    def forward(self, features: dict[str, Foreign], **_named: Foreign) -> dict[str, Foreign]:
        """Return the features with the vectors under the key of a transformer's pooled output."""
        features["sentence_embedding"] = self.vectors[features["input_ids"]]
        return features

    @property
    def max_seq_length(self) -> int | None:
        """Return None: texts are not truncated."""
        return None

    def get_embedding_dimension(self) -> int:
        """Return the number of dimensions of a vector."""
        return int(self.vectors.shape[1])

    def save(self, output_path: str, *_places: Foreign, **_named: Foreign) -> None:
        """Write nothing: the vectors are not part of checkpoints."""

    @classmethod
    def load(cls, *_places: Foreign, **_named: Foreign) -> "KeptVectors":
        """Return an empty module; the weights of a checkpoint are loaded into the existing one."""
        return cls()


def map_over_kept(texts: Sequence[str], vectors: Vectors) -> Foreign:
    """Return a trainable linear map, initially the identity, over vectors of the frozen base."""
    width = vectors.shape[1]
    linear = Dense(width, width, bias=False, activation_function=torch.nn.Identity(), init_weight=torch.eye(width))
    return SentenceTransformer(modules=[KeptVectors(texts, vectors), linear, Normalize()], device="cpu")


def with_map(base: Foreign, trained: Foreign) -> Foreign:
    """Return the frozen base followed by the trained map of `map_over_kept`, as a plain query model."""
    linear = next(module for module in trained if isinstance(module, Dense))
    modules = [*(module for module in base if not isinstance(module, Normalize)), Normalize(), linear, Normalize()]
    return SentenceTransformer(modules=modules, prompts=dict(base.prompts), device=str(base.device))


def router(query: Foreign, document: Foreign) -> Foreign:
    """Return a Router of two models; ConfigError if their numbers of dimensions differ.

    Texts without a role, such as STS sentences, are encoded by the query model.
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
    """Write the Router to `folder`, and each side to a subfolder as a plain model, for tools without Router support."""
    router(query, document).save_pretrained(str(folder), create_model_card=False)
    query.save_pretrained(str(folder / QUERY), create_model_card=False)
    document.save_pretrained(str(folder / DOCUMENT), create_model_card=False)


# Weights of a trained model: merged adapters, and their average with the base.


def adapt(model: Foreign, rank: int, alpha: int, dropout: float, modules: tuple[str, ...]) -> None:
    """Add low-rank adapters to a model's transformer and freeze its own weights."""
    from peft import LoraConfig

    names = "all-linear" if modules == ("all-linear",) else list(modules)
    model.add_adapter(
        LoraConfig(task_type="FEATURE_EXTRACTION", r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules=names)
    )


def plain_state(model: Foreign) -> dict[str, Foreign]:
    """Return a model's weights with adapters merged, under their names from before `adapt`."""
    for module in model.modules():
        if hasattr(module, "lora_A") and not module.merged:
            module.merge()
    return {
        name.replace(".base_layer.", "."): weight for name, weight in model.state_dict().items() if ".lora_" not in name
    }


def mean_of_weights(base: Mapping[str, Foreign], trained: Mapping[str, Foreign], share: float) -> dict[str, Foreign]:
    """Return share * trained + (1 - share) * base per tensor; integer tensors are those of `trained`."""
    return {
        name: (share * weight + (1 - share) * base[name].to(weight.device)) if weight.is_floating_point() else weight
        for name, weight in trained.items()
    }


def settle(trained: Foreign, fresh: Foreign, share: float) -> Foreign:
    """Return the base model `fresh` with weights share * trained + (1 - share) * its own."""
    fresh.load_state_dict(mean_of_weights(fresh.state_dict(), plain_state(trained), share))
    return fresh


# Routers from elsewhere, split into plain models of the sides, which are trained or frozen as any other.

MODULES = "modules.json"
SIDES = ("query", "document")


def in_folder(folder: Path) -> bool:
    """Return whether a folder contains a model whose first module is a Router."""
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
    """Write the sides of a Router as plain models below a folder; ConfigError if it lacks a query or document route."""
    from sentence_transformers import SentenceTransformer

    routes, later_modules = model[0].sub_modules, list(model)[1:]
    if not set(SIDES) <= set(routes):
        raise ConfigError(
            f"--base {name}: found a Router with the routes {', '.join(routes)}, expected query and document; make one "
            "with Router.for_query_document"
        )
    temporary = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    for role in SIDES:
        plain = SentenceTransformer(modules=[*routes[role], *later_modules], prompts=dict(model.prompts), device="cpu")
        plain.save_pretrained(str(temporary / role), create_model_card=False)
    temporary.rename(folder)
