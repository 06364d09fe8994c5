"""Random weights in the shapes of MiniLM and bge-m3, with a tokenizer built in code."""

import json
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from curate.system.resources import demo

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True)
class Shape:
    """How large a transformer is, as its config says it."""

    kind: str
    layers: int
    width: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    pooling: str

    def narrow(self) -> "Shape":
        """Return as many layers of four numbers per head, for a processor in a hurry."""
        return Shape(self.kind, self.layers, 4 * self.heads, self.heads, 8 * self.heads, 4_000, 514, self.pooling)


MINILM = Shape("bert", 6, 384, 12, 1_536, 30_522, 512, "mean")
BGE_M3 = Shape("xlm-roberta", 24, 1_024, 16, 4_096, 250_002, 8_194, "cls")


def documents() -> list[str]:
    """Return the passages of the packaged English demo."""
    lines = (demo("demo-en") / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [str(json.loads(line)["text"]) for line in lines]


def words() -> list[str]:
    """Return the words of the demo's passages, sorted."""
    return sorted({word for text in documents() for word in re.findall(r"\w+", text.lower())})


def drawn(count: int, length: int) -> list[str]:
    """Return texts of so many words, half as many in every other one, so that batches hold padding."""
    draw, vocabulary = random.Random(5), words()
    return [" ".join(draw.choices(vocabulary, k=length // (1 + number % 2))) for number in range(count)]


def saved(shape: Shape, folder: Path) -> Path:
    """Write a sentence-transformers model of a shape, with weights drawn by a fixed seed, and return its folder."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
    from transformers import AutoModel

    torch.manual_seed(3)
    raw = _raw(shape, folder, AutoModel)
    modules = [Transformer(str(raw), max_seq_length=512), Pooling(shape.width, shape.pooling), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "model"), create_model_card=False)
    return folder / "model"


def ranker(shape: Shape, folder: Path, class_name: Literal["CrossEncoder", "SparseEncoder"]) -> Path:
    """Write a cross-encoder or a sparse model of a shape, likewise, and return its folder."""
    import sentence_transformers
    import torch
    from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification

    torch.manual_seed(3)
    heads = {"CrossEncoder": AutoModelForSequenceClassification, "SparseEncoder": AutoModelForMaskedLM}
    raw = _raw(shape, folder, heads[class_name])
    getattr(sentence_transformers, class_name)(str(raw), device="cpu").save_pretrained(str(folder / "model"))
    return folder / "model"


def _raw(shape: Shape, folder: Path, model_class: Any) -> Path:  # noqa: ANN401 - of a library without types
    """Write weights and tokenizer as transformers does, and return their folder."""
    from transformers import AutoConfig, BertTokenizer

    config = AutoConfig.for_model(
        shape.kind,
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.inner,
        max_position_embeddings=shape.positions,
        type_vocab_size=2,
        num_labels=1,
        pad_token_id=0,  # of the tokenizer below, also where XLM-R has another
    )
    raw = folder / "raw"
    model_class.from_config(config).save_pretrained(raw)
    BertTokenizer(vocab={word: number for number, word in enumerate([*SPECIAL, *words()])}).save_pretrained(raw)
    return raw
