"""Cache of embeddings on disk, by text, so that no text is encoded twice by the same model."""

from curate.retrieval.vectors.cache import BLOCK, GROUP, CachedEncoder, default_folder, key_of, keys_of
from curate.retrieval.vectors.corpus import encode_in_parts, encode_part, fill_texts, identified, of_corpus, span

__all__ = [
    "BLOCK",
    "GROUP",
    "CachedEncoder",
    "default_folder",
    "encode_in_parts",
    "encode_part",
    "fill_texts",
    "identified",
    "key_of",
    "keys_of",
    "of_corpus",
    "span",
]
