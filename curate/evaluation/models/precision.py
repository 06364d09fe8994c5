"""Precision of a model's weights: chosen before they are loaded, and compared with float32 on texts of the task."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from curate.core.config import Json
from curate.core.errors import ConfigError, RunFailed
from curate.core.protocols import Vectors
from curate.evaluation.models.tasks import EvaluationTask, Foreign
from curate.evaluation.models.text_inputs import spread

DTYPES = ("auto", "float32", "bfloat16", "float16")
TEXTS, LEAST = 64, 0.999
"""Texts that are compared, and the cosine that each of them must have with its own vector in float32."""
Rows = Mapping[str, Vectors]
"""Role (query, document, or none) -> vectors."""


@dataclass(frozen=True)
class PrecisionCheck:
    """How near the vectors of a precision are to those of float32."""

    texts: int
    lowest: float
    """Cosine of the text that differs most."""
    mean: float

    def shown(self) -> dict[str, Json]:
        """Return it as plain values."""
        return asdict(self)


def devices(device: str | None) -> list[str | None]:
    """Return where a model computes: what --device names, separated by commas, else every GPU that is there.

    Without a GPU the one place is what the libraries choose. ConfigError for a device that is not there.
    """
    if device is not None:
        return [_there(each.strip(), device) for each in device.split(",")]
    import torch

    return [f"cuda:{number}" for number in range(torch.cuda.device_count())] or [None]


def _there(one: str, whole: str) -> str:
    if one == "cpu":
        return one
    import torch

    try:
        torch.zeros(1, device=one)
    except (RuntimeError, AssertionError) as error:  # torch raises both for a device that is not there
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(
            f"--device {whole}: cannot be used ({why}); give cpu, cuda or cuda:N, several GPUs separated by commas, "
            "or leave it out"
        ) from None
    return one


def dtype_for(dtype: str, places: Sequence[str | None]) -> str:
    """Return the precision that weights are loaded in: `auto` is bfloat16 where every GPU has it, else float32.

    float16 is never chosen: models trained in bfloat16 (Gemma 3, EmbeddingGemma) overflow in it.
    """
    if dtype not in DTYPES:
        raise ConfigError(f"--dtype {dtype}: expected one of {', '.join(DTYPES)}", DTYPES)
    if dtype != "auto":
        return dtype
    return "bfloat16" if all(map(_has_bfloat16, places)) else "float32"


def _has_bfloat16(place: str | None) -> bool:
    if not (place or "").startswith("cuda"):
        return False
    import torch

    with torch.cuda.device(place):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))


def sampled_rows(model: Foreign, task: EvaluationTask) -> dict[str, Vectors]:
    """Return a model's vectors of 64 texts of a task, in every role that its texts have; a NaN stays in."""
    return {role: _rows(model, task, role, texts) for role, texts in _texts(task).items()}


def compared(model: str, precision: str, task: str, found: Rows, exact: Rows) -> PrecisionCheck:
    """Return how near vectors are to those of float32; RunFailed below .999, or for a vector with a NaN."""
    ours, theirs = ([rows[role].astype(np.float64) for role in exact] for rows in (found, exact))
    count = sum(map(len, ours))
    told = f"{task}, {model}: in {precision}"
    remedy = "give --dtype float32, or bfloat16 where float16 overflows"
    if bad := sum(int((~np.isfinite(rows)).any(axis=1).sum()) for rows in ours):
        raise RunFailed(f"{told} {bad} of {count} vectors hold NaN or infinity, expected none; {remedy}")
    cosines = np.concatenate([_cosines(*both) for both in zip(ours, theirs, strict=True)])
    lowest, mean = float(cosines.min()), float(cosines.mean())
    if not lowest >= LEAST:
        raise RunFailed(
            f"{told} the vectors of {count} texts are not those of float32: lowest cosine {lowest:.5f}, "
            f"expected {LEAST} or more; {remedy}"
        )
    return PrecisionCheck(count, round(lowest, 6), round(mean, 6))


def _cosines(one: Foreign, other: Foreign) -> Foreign:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    same = (one == other).all(axis=1)  # also of two vectors of length 0, which have no cosine
    return np.where(same, 1.0, (one * other).sum(axis=1) / np.where(lengths > 0, lengths, 1))


def _texts(task: EvaluationTask) -> dict[str, list[str]]:
    """Return up to 64 texts by role, evenly over the task, and the longest of each role, where numbers grow largest."""
    data = task.data
    if "corpus" in data:
        corpus = data["corpus"]
        titles = corpus["title"] if "title" in corpus.column_names else [""] * len(corpus)
        documents = [f"{title or ''} {text}".strip() for title, text in zip(titles, corpus["text"], strict=True)]
        return {
            "query": _some(list(data["queries"]["text"]), TEXTS // 2),
            "document": _some(documents, TEXTS // 2),
        }
    found: list[str] = []
    for name in data.column_names:
        for value in data[name]:
            parts = value if isinstance(value, list) else [value]
            found += [each for each in parts if isinstance(each, str)]
    return {"": _some(found, TEXTS)}


def _some(texts: Sequence[str], count: int) -> list[str]:
    if len(texts) <= count:
        return list(texts)
    return [*spread(texts, count - 1), max(texts, key=len)]


def _rows(model: Foreign, task: EvaluationTask, role: str, texts: Sequence[str]) -> Vectors:
    from datasets import Dataset
    from mteb.types import PromptType
    from torch.utils.data import DataLoader

    numbers = [str(number) for number in range(len(texts))]
    rows = Dataset.from_dict({"id": numbers, "text": list(texts), "body": list(texts)})
    found = model.encode(
        DataLoader(rows, batch_size=8),
        task_metadata=task.made.metadata,
        hf_split="test",
        hf_subset="default",
        prompt_type=PromptType(role) if role else None,
        batch_size=8,
        show_progress_bar=False,
    )
    return np.asarray(found.cpu() if hasattr(found, "cpu") else found, dtype=np.float32)
