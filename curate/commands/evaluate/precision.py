"""Precision of a model's weights: chosen before they are loaded, and compared with float32 on texts of the task."""

from collections.abc import Mapping, Sequence

import numpy as np

from curate.commands.evaluate.tasks import EvaluationTask, Foreign
from curate.core.errors import ConfigError
from curate.core.protocols import Vectors
from curate.retrieval.vectors.precision import TEXTS, PrecisionCheck, nearness, some

DTYPES = ("auto", "float32", "bfloat16", "float16")
Rows = Mapping[str, Vectors]
"""Role (query, document, or none) -> vectors."""


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
    told = f"{task}, {model}: in {precision}"
    remedy = "give --dtype float32, or bfloat16 where float16 overflows"
    return nearness(told, remedy, [found[role] for role in exact], [*exact.values()])


def _texts(task: EvaluationTask) -> dict[str, list[str]]:
    """Return up to 64 texts by role, evenly over the task, and the longest of each role, where numbers grow largest."""
    data = task.data
    if "corpus" in data:
        corpus = data["corpus"]
        titles = corpus["title"] if "title" in corpus.column_names else [""] * len(corpus)
        documents = [f"{title or ''} {text}".strip() for title, text in zip(titles, corpus["text"], strict=True)]
        return {
            "query": some(list(data["queries"]["text"]), TEXTS // 2),
            "document": some(documents, TEXTS // 2),
        }
    found: list[str] = []
    for name in data.column_names:
        for value in data[name]:
            parts = value if isinstance(value, list) else [value]
            found += [each for each in parts if isinstance(each, str)]
    return {"": some(found, TEXTS)}


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
