"""Loading of models: devices, precision, and the largest batch that fits into memory."""

import gc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import numpy as np

from curate.commands.evaluate.tasks import EvaluationTask, Foreign, imported
from curate.core.errors import ConfigError
from curate.core.protocols import Vectors
from curate.retrieval.stored_model import hide_progress_bars
from curate.retrieval.vectors.cache import TEXTS, PrecisionCheck, nearness, some

Result = TypeVar("Result")
FIRST, LARGEST = 32, 1024
MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory")
"""Parts of the messages of torch's out-of-memory errors on devices other than CUDA, which have a general class."""


class BatchSizes:
    """The batch sizes of one model, by role; queries are shorter than documents, so their batches are larger."""

    def __init__(self, name: str, tell: Callable[[str], None], *, grows: bool = False) -> None:
        """Start with batches of 32.

        With `grows`, determine the largest size first, which is worthwhile only on a GPU.
        """
        self.name, self.grows, self._tell = name, grows, tell
        self.sizes: dict[str, int] = {}
        self.lost: dict[str, float] = {}
        """Role -> seconds spent on determining sizes and on batches that did not fit; excluded from a model's speed."""

    def prepare(self, role: str, texts: int, longest: Callable[[int], object]) -> None:
        """Determine the batch size of a role, once; `longest(n)` encodes the n longest texts."""
        if not self.grows or role in self.sizes:
            return
        start = monotonic()
        self.sizes[role] = largest(longest, texts)
        self._add_lost_time(role, start)

    def fitting(self, role: str, run: Callable[[int], Result], first: int = FIRST) -> Result:
        """Return `run(size)`; if memory runs out, halve the size, notify the user, and try again."""
        while True:
            size, start = self.sizes.setdefault(role, first), monotonic()
            try:
                return run(size)
            except Exception as error:
                if not out_of_memory(error) or size == 1:
                    raise
            _free_memory()
            self._add_lost_time(role, start)
            half = size // 2
            if self.sizes[role] > half:  # another thread may have halved it meanwhile
                self.sizes[role] = half
                self._tell(f"{self.name}: out of memory with batches of {size} texts; on with batches of {half}")

    def _add_lost_time(self, role: str, start: float) -> None:
        self.lost[role] = self.lost.get(role, 0.0) + monotonic() - start

    @property
    def size(self) -> int | None:
        """Return the largest batch size in use; None before the first batch."""
        return max(self.sizes.values(), default=None)


def largest(run: Callable[[int], object], texts: int, first: int = FIRST, most: int = LARGEST) -> int:
    """Return the largest size for which `run` succeeds, found by doubling or halving `first`.

    The size is at most `texts` and `most`. Raises the error if a batch of one does not fit.
    """
    size = best = max(min(first, texts), 1)
    while True:
        try:
            run(size)
        except Exception as error:
            if not out_of_memory(error):
                raise
            _free_memory()
            if size > best:
                return best
            if size == 1:
                raise
            size = best = size // 2
            most = size
        else:
            best = size
            if 2 * size > min(most, texts):
                return best
            size *= 2


def out_of_memory(error: Exception) -> bool:
    """Return whether an error means that a batch did not fit into memory, on any device."""
    import torch

    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(phrase in str(error).lower() for phrase in MEMORY)


def _free_memory() -> None:
    """Free the GPU memory of a failed batch."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


# Precision of the weights: chosen before loading, and compared with float32 on texts of the task.

DTYPES = ("auto", "float32", "bfloat16", "float16")
Rows = Mapping[str, Vectors]
"""Role (query, document, or empty for none) -> vectors."""


def devices(device: str | None) -> list[str | None]:
    """Return the comma-separated devices of --device, else all GPUs; [None] without a GPU (the libraries choose).

    ConfigError for an unavailable device.
    """
    if device is not None:
        return [_available(name.strip(), device) for name in device.split(",")]
    import torch

    return [f"cuda:{number}" for number in range(torch.cuda.device_count())] or [None]


def _available(device: str, option: str) -> str:
    if device == "cpu":
        return device
    import torch

    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:  # torch raises both for a device that is not there
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(
            f"--device {option}: cannot be used ({why}); give cpu, cuda or cuda:N, several GPUs separated by commas, "
            "or leave it out"
        ) from None
    return device


def dtype_for(dtype: str, devices: Sequence[str | None]) -> str:
    """Return the precision of the weights: `auto` is bfloat16 if every device supports it, else float32.

    float16 is never chosen: models trained in bfloat16 (Gemma 3, EmbeddingGemma) overflow in it.
    """
    if dtype not in DTYPES:
        raise ConfigError(f"--set dtype={dtype}: expected one of {', '.join(DTYPES)}", DTYPES)
    if dtype != "auto":
        return dtype
    return "bfloat16" if all(map(_has_bfloat16, devices)) else "float32"


def _has_bfloat16(device: str | None) -> bool:
    if not (device or "").startswith("cuda"):
        return False
    import torch

    with torch.cuda.device(device):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))


def sampled_rows(model: Foreign, task: EvaluationTask) -> dict[str, Vectors]:
    """Return role -> a model's vectors for up to 64 texts of a task; NaN is not replaced."""
    return {role: _rows(model, task, role, texts) for role, texts in _texts(task).items()}


def compared(model: str, precision: str, task: str, vectors: Rows, exact: Rows) -> PrecisionCheck:
    """Return the similarity of vectors to those in float32; RunFailed for a similarity below 0.999, or a NaN."""
    label = f"{task}, {model}: in {precision}"
    remedy = "give --set dtype=float32, or bfloat16 where float16 overflows"
    return nearness(label, remedy, [vectors[role] for role in exact], [*exact.values()])


def _texts(task: EvaluationTask) -> dict[str, list[str]]:
    """Return role -> texts, up to 64 in total, evenly spaced over the task; includes the longest (largest values)."""
    task_data = task.data
    if "corpus" in task_data:
        corpus = task_data["corpus"]
        titles = corpus["title"] if "title" in corpus.column_names else [""] * len(corpus)
        documents = [f"{title or ''} {text}".strip() for title, text in zip(titles, corpus["text"], strict=True)]
        return {
            "query": some(list(task_data["queries"]["text"]), TEXTS // 2),
            "document": some(documents, TEXTS // 2),
        }
    texts: list[str] = []
    for name in task_data.column_names:
        for cell in task_data[name]:
            cell_texts = cell if isinstance(cell, list) else [cell]
            texts += [text for text in cell_texts if isinstance(text, str)]
    return {"": some(texts, TEXTS)}


def _rows(model: Foreign, task: EvaluationTask, role: str, texts: Sequence[str]) -> Vectors:
    from datasets import Dataset
    from mteb.types import PromptType
    from torch.utils.data import DataLoader

    numbers = [str(number) for number in range(len(texts))]
    rows = Dataset.from_dict({"id": numbers, "text": list(texts), "body": list(texts)})
    vectors = model.encode(
        DataLoader(rows, batch_size=8),
        task_metadata=task.made.metadata,
        hf_split="test",
        hf_subset="default",
        prompt_type=PromptType(role) if role else None,
        batch_size=8,
        show_progress_bar=False,
    )
    return np.asarray(vectors.cpu() if hasattr(vectors, "cpu") else vectors, dtype=np.float32)


# Models that mteb loads, from a folder or by name, in a given precision.

Load = Callable[[str | None, str], Foreign]
"""Function that loads a model on a device in a precision."""


def from_folder(folder: str) -> Load:
    """Return a function that loads a sentence-transformers folder."""
    path = Path(folder).expanduser()

    def load(device: str | None, dtype: str) -> Foreign:
        from mteb.models import SentenceTransformerEncoderWrapper

        hide_progress_bars()
        model = SentenceTransformerEncoderWrapper(str(path), device=device, model_kwargs={"dtype": dtype})
        model.mteb_model_meta = local_meta(path.name)
        return model

    return load


def by_name(name: str) -> Load:
    """Return a function that loads a model of mteb's list or the hub, with its authors' prompts.

    If mteb loads a model with code of its authors, that code chooses the precision.
    """

    def load(device: str | None, dtype: str) -> Foreign:
        mteb = imported()
        meta = mteb.get_model_meta(name, fetch_from_hf=True)
        hide_progress_bars()
        if not takes_dtype(meta):
            return meta.load_model(device=device)
        model_kwargs: Mapping[str, Any] = (meta.loader_kwargs or {}).get("model_kwargs") or {}
        other_kwargs = {key: argument for key, argument in model_kwargs.items() if key not in ("torch_dtype", "dtype")}
        return meta.load_model(device=device, model_kwargs={**other_kwargs, "dtype": dtype})

    return load


def explained(name: str, load: Load) -> Load:
    """Return a loader that raises ConfigError with the model's name if its files are broken or its code fails.

    Out-of-memory errors are unchanged, because a smaller copy or another device may work.
    """

    def loaded(device: str | None, dtype: str) -> Foreign:
        try:
            return load(device, dtype)
        except Exception as error:  # of any library that reads the files, or of the model's own code
            if out_of_memory(error):
                raise
            why = (str(error).splitlines() or [type(error).__name__])[0]
            raise ConfigError(
                f"--models {name}: cannot be loaded ({why}); copy or download its folder again, or leave it out; what "
                "was scored before it is kept"
            ) from error

    return loaded


def takes_dtype(meta: Foreign) -> bool:
    """Return whether mteb loads a model by one of its two sentence-transformers wrappers, which accept a precision."""
    from mteb.models import SentenceTransformerEncoderWrapper
    from mteb.models.instruct_wrapper import InstructSentenceTransformerModel

    loader = getattr(meta, "loader", None)
    wrappers = (SentenceTransformerEncoderWrapper, InstructSentenceTransformerModel)
    return isinstance(loader, type) and issubclass(loader, wrappers)


def makes_vectors(model: Foreign) -> bool:
    """Return whether a loaded model has one dense vector per text, unlike cross-encoders and sparse models."""
    from mteb.models.sentence_transformer_wrapper import SparseEncoderWrapper

    return hasattr(model, "encode") and not isinstance(model, SparseEncoderWrapper)


def precisions(model: Foreign) -> list[str]:
    """Return the actual precisions of a model's weights, sorted; a Router may have several, other objects have none."""
    weights: Foreign = getattr(model, "model", None)
    if not hasattr(weights, "parameters"):
        return []
    return sorted({str(parameter.dtype).removeprefix("torch.") for parameter in weights.parameters()})


def local_meta(name: str) -> Foreign:
    """Return mteb's metadata for a model outside its list."""
    from mteb.models.model_meta import ModelMeta

    return ModelMeta.create_empty({"name": f"curate/{name}", "revision": "local"})


def collected() -> None:
    """Free the memory of unreferenced models."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
