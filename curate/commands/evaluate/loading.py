"""Models that mteb loads, from a folder or by name, in a precision that is given before weights are read."""

import gc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from curate.commands.evaluate.batches import out_of_memory
from curate.commands.evaluate.tasks import Foreign, imported
from curate.core.errors import ConfigError

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
    return sorted({str(each.dtype).removeprefix("torch.") for each in weights.parameters()})


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
