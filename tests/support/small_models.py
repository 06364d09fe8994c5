"""A small random transformer on disk, to be trained in a second."""

from pathlib import Path


def small_model(folder: Path, words: list[str], width: int = 32) -> Path:
    """Write a sentence-transformers model whose words are those given; its weights are random by a fixed seed."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizer

    folder.mkdir(parents=True)
    raw = folder / "raw"
    raw.mkdir()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (raw / "vocab.txt").write_text("\n".join(names), encoding="utf-8")
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(names),
        hidden_size=width,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=2 * width,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    BertModel(config).save_pretrained(raw)
    BertTokenizer(vocab={name: at for at, name in enumerate(names)}).save_pretrained(raw)
    inner = Transformer(str(raw), max_seq_length=32)
    model = SentenceTransformer(modules=[inner, Pooling(width), Normalize()], device="cpu")
    model.save_pretrained(str(folder / "model"), create_model_card=False)
    return folder / "model"
