"""What a model is really given: the prompt in front of a text, the side that reads it, the length, and what is cut."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from curate.commands.evaluate.tasks import Foreign
from curate.core.config import Json
from curate.retrieval.vectors.precision import spread

LOOKED = 4096
"""Texts of a task that are cut into tokens, at most, to see how many are too long."""
ENDLESS = 1 << 24
"""Tokens from which on a length is none: tokenizers without one say 1e30, tables of token vectors infinity."""
ANY = {"batch_size", "device", "show_progress_bar", "pool", "chunk_size", "convert_to_numpy", "convert_to_tensor"}
"""Arguments of `encode` that change no vector."""
ROLES = {"query": "queries", "document": "documents", "": "sentences"}


class _ProbeText(Exception):
    """Ends a call before the model computes, with what it was called with."""

    def __init__(self, text: str, named: Mapping[str, Any]) -> None:
        super().__init__(text)
        self.text, self.named = text, named


@dataclass(frozen=True)
class ModelInput:
    """How the texts of one role come to a model, as seen where sentence-transformers receives them."""

    known: bool
    """False for a model whose weights are no sentence-transformers model: nothing can be seen."""
    prompt: str | None = None
    """None where nothing is put in front."""
    route: str | None = None
    """Side of a model of several sides (Router) that reads these texts."""
    encoder_side: str | None = None
    """Encoder of two (`asymmetric`) that reads these texts; its model may have routes of its own."""
    max_length: int | None = None
    """In tokens; None without a limit, or where it is not known."""
    named: tuple[tuple[str, str], ...] = ()
    """Further arguments that the model is called with."""

    @property
    def identity(self) -> Json:
        """Return what of it changes a vector."""
        return [self.prompt, self.route, self.max_length, *map(list, self.named)]


@dataclass(frozen=True)
class SeenTexts:
    """The texts of one role of a task as a model reads them: one line of the page."""

    role: str
    """queries, documents, or sentences, which have no role."""
    prompt: str | None
    max_length: int | None
    route: str | None
    known: bool
    texts: int
    looked: int
    """Texts whose tokens were counted; 0 where nothing can be cut."""
    cut: float | None
    """Share of them that is longer than the model reads; None where that is not known."""

    def shown(self) -> dict[str, Json]:
        """Return it as plain values."""
        return asdict(self)

    def with_more(self, other: "SeenTexts") -> "SeenTexts":
        """Return both parts of a role's texts as one line: mteb gives large corpora, and both sentences, in parts."""
        looked = self.looked + other.looked
        both = None if self.cut is None or other.cut is None else self.cut * self.looked + other.cut * other.looked
        cut = None if both is None else round(both / looked, 6) if looked else both
        return replace(self, texts=self.texts + other.texts, looked=looked, cut=cut)


def probe(model: Foreign, task_metadata: Foreign, prompt_type: Foreign) -> ModelInput:
    """Return how a model of mteb's gives texts of a role to its weights: it is stopped before these compute."""
    weights = _weights(model)
    if weights is None:
        return ModelInput(known=False)

    def seen(inputs: Sequence[str], **named: Any) -> None:  # noqa: ANN401 - a model's own arguments
        raise _ProbeText(str(inputs[0]), named)

    weights.encode = seen
    try:
        named = {"batch_size": 1, "show_progress_bar": False, "hf_split": "test", "hf_subset": "default"}
        model.encode(_one_text(), task_metadata=task_metadata, prompt_type=prompt_type, **named)
    except _ProbeText as found:
        return _input(weights, found.text, found.named)
    finally:
        del weights.encode
    return ModelInput(known=False)


def seen_texts(model: Foreign, given: ModelInput, role: str, texts: Sequence[str]) -> SeenTexts:
    """Return a role's texts as a model reads them, with the share that it cuts."""
    weights = _weights(model)
    looked, cut = (0, None) if weights is None else _cut(_side(weights, given.route), given, texts)
    route = given.encoder_side or given.route
    return SeenTexts(ROLES.get(role, role), given.prompt, given.max_length, route, given.known, len(texts), looked, cut)


def input_of(weights: Foreign, task: str | None, prompt: str | None) -> ModelInput:
    """Return how a sentence-transformers model reads texts of a task (query, document or None) with this prompt."""
    route = _route(weights, task)
    return ModelInput(True, prompt or None, route, max_length=_limit(_side(weights, route)))


def sides(weights: Foreign) -> Iterator[Foreign]:
    """Yield what reads the texts: the first module, or that of every side of a Router."""
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


def _one_text() -> Foreign:
    from datasets import Dataset
    from torch.utils.data import DataLoader

    return DataLoader(Dataset.from_dict({"id": ["1"], "text": ["."], "body": ["."]}), batch_size=1)


def _input(weights: Foreign, text: str, named: Mapping[str, Any]) -> ModelInput:
    """Return what a call says: a prompt by name or as text, and what the model's own code put in front before."""
    name, prompt = named.get("prompt_name"), named.get("prompt")
    if prompt is None:
        name = name or getattr(weights, "default_prompt_name", None)
        prompt = weights.prompts.get(name) if name else None
    before = text.removesuffix(".")
    route = _route(weights, named.get("task"))
    rest = sorted((key, repr(value)) for key, value in named.items() if key not in ANY | {"prompt", "prompt_name"})
    length = _limit(_side(weights, route))
    return ModelInput(True, f"{prompt or ''}{before}" or None, route, max_length=length, named=tuple(rest))


def _route(weights: Foreign, task: str | None) -> str | None:
    """Return the side of a Router that reads texts of a task; None for any other model."""
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


def _cut(side: Foreign, given: ModelInput, texts: Sequence[str]) -> tuple[int, float | None]:
    """Return how many texts were looked at, evenly over all, and which share of them is too long."""
    if given.max_length is None:
        return 0, 0.0
    if not callable(tokenizer := getattr(side, "tokenizer", None)):
        return 0, None
    some = spread(texts, LOOKED)
    pieces = tokenizer([f"{given.prompt or ''}{text}" for text in some], truncation=False, verbose=False)["input_ids"]
    return len(some), round(sum(len(piece) > given.max_length for piece in pieces) / max(len(some), 1), 6)
