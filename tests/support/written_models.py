"""Sentence-transformers models of a few kilobytes, written as folders: random weights, a real tokenizer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.small import minilm


def transformer(width: int = 32, seed: int = 3, length: int = 64) -> Any:
    """Return a model of one layer with vectors of this width, normalised."""
    from tempfile import TemporaryDirectory

    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
    from transformers import AutoTokenizer, BertConfig, BertModel

    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(minilm())
    shape: dict[str, Any] = {
        "hidden_size": width,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": width,
    }
    made = BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=128, **shape))
    with TemporaryDirectory() as place:
        made.save_pretrained(place)
        tokenizer.save_pretrained(place)
        first = Transformer(place, max_seq_length=length)
    return SentenceTransformer(modules=[first, Pooling(width), Normalize()], device="cpu")


def saved(folder: Path, prompts: Mapping[str, str] | None = None, **shape: int) -> Path:
    """Write such a model, with prompts, as a folder."""
    model = transformer(**shape)
    model.prompts.update(prompts or {})
    model.save(str(folder))
    return folder


def routed(folder: Path, width: int = 32) -> Path:
    """Write a Router: queries go through a table of token vectors, documents through a transformer."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    documents = transformer(width)
    table = StaticEmbedding(documents[0].tokenizer.backend_tokenizer, embedding_dim=width)
    router = Router.for_query_document([table], list(documents.children()), default_route="query")
    SentenceTransformer(modules=[router], device="cpu").save(str(folder))
    return folder
