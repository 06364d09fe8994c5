"""How many texts a model is given at once: the largest batch that memory holds, and half of it when memory runs out."""

import gc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import numpy as np

from curate.commands.evaluate.tasks import EvaluationTask, Foreign, imported
from curate.core.errors import ConfigError
from curate.core.protocols import Vectors
from curate.retrieval.vectors.precision import TEXTS, PrecisionCheck, nearness, some

Result = TypeVar("Result")
FIRST, LARGEST = 32, 1024
MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory")
"""What torch says, in errors of a general class, of other devices than CUDA."""


class BatchSizes:
    """The batch sizes of one model, by role: queries are shorter than documents and have a size of their own."""

    def __init__(self, name: str, tell: Callable[[str], None], *, grows: bool = False) -> None:
        """Prepare sizes of 32; with `grows` the largest is looked for first, which pays on a GPU alone."""
        self.name, self.grows, self._tell = name, grows, tell
        self.sizes: dict[str, int] = {}
        self.lost: dict[str, float] = {}
        """Seconds by role spent on finding sizes and on batches that did not fit, which are no part of a model's speed.
        """

    def prepare(self, role: str, texts: int, longest: Callable[[int], object]) -> None:
        """Find the size of a role's batches, once; `longest` encodes so many of the longest texts."""
        if not self.grows or role in self.sizes:
            return
        start = monotonic()
        self.sizes[role] = largest(longest, texts)
        self._lose(role, start)

    def fitting(self, role: str, run: Callable[[int], Result], first: int = FIRST) -> Result:
        """Return what `run` makes with batches of some size, halved, which is told, as often as memory runs out."""
        while True:
            size, start = self.sizes.setdefault(role, first), monotonic()
            try:
                return run(size)
            except Exception as error:
                if not out_of_memory(error) or size == 1:
                    raise
            _give_back()
            self._lose(role, start)
            half = size // 2
            if self.sizes[role] > half:  # another thread may have halved it meanwhile
                self.sizes[role] = half
                self._tell(f"{self.name}: out of memory with batches of {size} texts; on with batches of {half}")

    def _lose(self, role: str, start: float) -> None:
        self.lost[role] = self.lost.get(role, 0.0) + monotonic() - start

    @property
    def size(self) -> int | None:
        """Return the largest batch in use; None before the first."""
        return max(self.sizes.values(), default=None)


def largest(run: Callable[[int], object], texts: int, first: int = FIRST, most: int = LARGEST) -> int:
    """Return the largest size, doubled from the first or halved if that fails, that `run` gets through.

    Larger than the number of texts, or than `most`, it never becomes. A batch of one that does not fit raises.
    """
    size = best = max(min(first, texts), 1)
    while True:
        try:
            run(size)
        except Exception as error:
            if not out_of_memory(error):
                raise
            _give_back()
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
    """Say whether an error means that a batch did not fit, on whatever device."""
    import torch

    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(each in str(error).lower() for each in MEMORY)


def _give_back() -> None:
    """Let the GPU have the pieces of a batch that failed."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


# Precision of a model's weights: chosen before they are loaded, and compared with float32 on texts of the task.

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


# Models that mteb loads, from a folder or by name, in a precision that is given before weights are read.

Load = Callable[[str | None, str], Foreign]
"""Loads a model on a device in a precision."""


def from_folder(folder: str) -> Load:
    """Return what loads a folder of sentence-transformers."""
    path = Path(folder).expanduser()

    def load(device: str | None, dtype: str) -> Foreign:
        from mteb.models import SentenceTransformerEncoderWrapper

        _silent()
        model = SentenceTransformerEncoderWrapper(str(path), device=device, model_kwargs={"dtype": dtype})
        model.mteb_model_meta = local_meta(path.name)
        return model

    return load


def by_name(name: str) -> Load:
    """Return what loads a model of mteb's list, or one of the hub, with the prompts of its makers.

    One that mteb loads by code of its own is left in the precision which that chooses.
    """

    def load(device: str | None, dtype: str) -> Foreign:
        mteb = imported()
        meta = mteb.get_model_meta(name, fetch_from_hf=True)
        _silent()
        if not takes_dtype(meta):
            return meta.load_model(device=device)
        given: Mapping[str, Any] = (meta.loader_kwargs or {}).get("model_kwargs") or {}
        kept = {key: value for key, value in given.items() if key not in ("torch_dtype", "dtype")}
        return meta.load_model(device=device, model_kwargs={**kept, "dtype": dtype})

    return load


def explained(name: str, load: Load) -> Load:
    """Return the same, with a ConfigError that names the model if its files are broken or its code fails.

    Memory that ends is left as it is: a smaller copy or another device may do.
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
    """Say whether mteb loads a model by one of its two wrappers of sentence-transformers, which take a precision."""
    from mteb.models import SentenceTransformerEncoderWrapper
    from mteb.models.instruct_wrapper import InstructSentenceTransformerModel

    loader = getattr(meta, "loader", None)
    wrappers = (SentenceTransformerEncoderWrapper, InstructSentenceTransformerModel)
    return isinstance(loader, type) and issubclass(loader, wrappers)


def makes_vectors(model: Foreign) -> bool:
    """Say whether a loaded model has one dense vector per text, as cross-encoders and sparse models have not."""
    from mteb.models.sentence_transformer_wrapper import SparseEncoderWrapper

    return hasattr(model, "encode") and not isinstance(model, SparseEncoderWrapper)


def precisions(model: Foreign) -> list[str]:
    """Return the precisions that a model's weights are really in, of which a Router may have several."""
    weights: Foreign = getattr(model, "model", None)
    if not hasattr(weights, "parameters"):
        return []
    return sorted({str(parameter.dtype).removeprefix("torch.") for parameter in weights.parameters()})


def local_meta(name: str) -> Foreign:
    """Return what mteb wants to know of a model that is not in its list."""
    from mteb.models.model_meta import ModelMeta

    return ModelMeta.create_empty({"name": f"curate/{name}", "revision": "local"})


def collected() -> None:
    """Give the memory of models back that nothing points to any more."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _silent() -> None:
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
