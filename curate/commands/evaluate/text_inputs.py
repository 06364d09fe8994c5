"""Actual inputs of a model: prompt, side of a Router, maximum length, and share of truncated texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from curate.commands.evaluate.tasks import Foreign
from curate.core.config import Json
from curate.core.figures import Record, figure
from curate.retrieval.vectors.cache import spread

LOOKED = 4096
"""Maximum number of texts per task that are tokenized to measure truncation."""
ENDLESS = 1 << 24
"""Number of tokens from which on a maximum length means unlimited: tokenizers store 1e30, static models infinity."""
ANY = {"batch_size", "device", "show_progress_bar", "pool", "chunk_size", "convert_to_numpy", "convert_to_tensor"}
"""Arguments of `encode` that do not affect the vectors."""
ROLES = {"query": "queries", "document": "documents", "": "sentences"}


class _ProbeText(Exception):
    """Raised in place of running the model; carries the arguments of the call."""

    def __init__(self, text: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(text)
        self.text, self.named = text, arguments


@dataclass(frozen=True)
class ModelInput:
    """Input settings of one role, as passed to sentence-transformers."""

    known: bool
    """Whether they could be observed; False if the weights are no sentence-transformers model."""
    prompt: str | None = None
    """Text before each input; None without one."""
    route: str | None = None
    """Side of a Router that encodes these texts."""
    encoder_side: str | None = None
    """Encoder of an asymmetric pair that encodes these texts (query or document); its model may be a Router too."""
    max_length: int | None = None
    """Maximum length in tokens; None if unlimited or unknown."""
    named: tuple[tuple[str, str], ...] = ()
    """Further arguments of the call as (name, repr), sorted."""

    @property
    def identity(self) -> Json:
        """Return the settings that affect vectors."""
        return [self.prompt, self.route, self.max_length, *map(list, self.named)]


class SeenTexts(Record, schema_name="input"):
    """Inputs of one role of a task, with the measured truncation."""

    role: str = figure("queries, documents or sentences")
    prompt: str | None = figure("prompt before each text; null without one")
    max_length: int | None = figure("longest input in tokens; null without a limit, or if unknown")
    route: str | None = figure("side of a model with several encoders")
    known: bool = figure("whether prompt and length could be read from the model")
    texts: int = figure("texts of this role")
    looked: int = figure("texts whose tokens were counted")
    cut: float | None = figure("share of the counted texts that is truncated; null if unknown", digits=1, percent=True)

    def with_more(self, other: "SeenTexts") -> "SeenTexts":
        """Return the record of two parts of a role's texts together.

        mteb passes large corpora, and the two sentences of pairs, in parts.
        """
        looked = self.looked + other.looked
        both = None if self.cut is None or other.cut is None else self.cut * self.looked + other.cut * other.looked
        cut = None if both is None else round(both / looked, 6) if looked else both
        return replace(self, texts=self.texts + other.texts, looked=looked, cut=cut)


def probe(model: Foreign, task_metadata: Foreign, prompt_type: Foreign) -> ModelInput:
    """Return the arguments with which an mteb model calls its weights.

    The call is stopped before anything is computed.
    """
    weights = _weights(model)
    if weights is None:
        return ModelInput(known=False)
    from datasets import Dataset
    from torch.utils.data import DataLoader

    def seen(inputs: Sequence[str], **arguments: Any) -> None:  # noqa: ANN401 - a model's own arguments
        raise _ProbeText(str(inputs[0]), arguments)

    loader: Foreign = DataLoader(Dataset.from_dict({"id": ["1"], "text": ["."], "body": ["."]}), batch_size=1)
    weights.encode = seen
    try:
        arguments = {"batch_size": 1, "show_progress_bar": False, "hf_split": "test", "hf_subset": "default"}
        model.encode(loader, task_metadata=task_metadata, prompt_type=prompt_type, **arguments)
    except _ProbeText as found:
        return _input(weights, found.text, found.named)
    finally:
        del weights.encode
    return ModelInput(known=False)


def seen_texts(model: Foreign, model_input: ModelInput, role: str, texts: Sequence[str]) -> SeenTexts:
    """Return the record of a role's texts, with the share of truncated ones."""
    weights = _weights(model)
    looked, cut = (0, None) if weights is None else _cut(_side(weights, model_input.route), model_input, texts)
    route = model_input.encoder_side or model_input.route
    return SeenTexts(
        ROLES.get(role, role),
        model_input.prompt,
        model_input.max_length,
        route,
        model_input.known,
        len(texts),
        looked,
        cut,
    )


def sides(weights: Foreign) -> Iterator[Foreign]:
    """Yield the first module of the model, or of every side of a Router."""
    routes = getattr(weights[0], "sub_modules", None)
    if routes is None:
        yield weights[0]
        return
    for modules in routes.values():
        yield modules[0]


def _weights(model: Foreign) -> Foreign:
    from sentence_transformers import SentenceTransformer

    weights = getattr(model, "model", None)
    return weights if isinstance(weights, SentenceTransformer) else None


def _input(weights: Foreign, text: str, arguments: Mapping[str, Any]) -> ModelInput:
    """Return the input settings in a call: text that the model's code prepended, then the prompt (by name or text)."""
    name, prompt = arguments.get("prompt_name"), arguments.get("prompt")
    if prompt is None:
        name = name or getattr(weights, "default_prompt_name", None)
        prompt = weights.prompts.get(name) if name else None
    prepended = text.removesuffix(".")
    route = _route(weights, arguments.get("task"))
    other_arguments = sorted(
        (key, repr(argument)) for key, argument in arguments.items() if key not in ANY | {"prompt", "prompt_name"}
    )
    length = _limit(_side(weights, route))
    return ModelInput(
        True, f"{prompt or ''}{prepended}" or None, route, max_length=length, named=tuple(other_arguments)
    )


def _route(weights: Foreign, task: str | None) -> str | None:
    """Return the side of a Router for a task; None for any other model."""
    router = weights[0]
    routes = getattr(router, "sub_modules", None)
    if routes is None:
        return None
    if task in routes:
        return task
    by_task: str | None = router.route_mappings.get((task, None), router.default_route)
    return by_task


def _side(weights: Foreign, route: str | None) -> Foreign:
    return weights[0] if route is None else weights[0].sub_modules[route][0]


def _limit(side: Foreign) -> int | None:
    limit = getattr(side, "max_seq_length", None)
    return int(limit) if limit is not None and limit < ENDLESS else None


def _cut(side: Foreign, model_input: ModelInput, texts: Sequence[str]) -> tuple[int, float | None]:
    """Return the size of an evenly spaced sample of texts, and the share of it above the maximum length."""
    if model_input.max_length is None:
        return 0, 0.0
    if not callable(tokenizer := getattr(side, "tokenizer", None)):
        return 0, None
    sample = spread(texts, LOOKED)
    pieces = tokenizer([f"{model_input.prompt or ''}{text}" for text in sample], truncation=False, verbose=False)[
        "input_ids"
    ]
    return len(sample), round(sum(len(piece) > model_input.max_length for piece in pieces) / max(len(sample), 1), 6)
