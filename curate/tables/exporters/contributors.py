"""Contributors of a benchmark: its retrievers and judges, under every name by which one may come back.

A model that retrieved for a benchmark or judged it scores too well there, so its export says who did.
"""

from collections.abc import Iterable, Iterator, Mapping

from curate.core.config import Json, Settings

ROLES = ("retriever", "judge", "generator")
"""`generator` wrote texts of the set, such as paraphrases."""


def parts(
    retrievers: Iterable[str],
    panel: Mapping[str, Mapping[str, Json]],
    definitions: Mapping[str, Mapping[str, Settings]],
) -> dict[str, list[str]]:
    """Return role -> names, sorted: those in the pipeline, what they are, their encoders', and those encoders' models'.

    `panel` is judge -> identity, `definitions` the pipeline's own encoders and retrievers.
    """
    found: dict[str, set[str]] = {"retriever": set(), "judge": set(panel)}
    for name in retrievers:
        settings = definitions.get("retrievers", {}).get(name, {})
        found["retriever"] |= {name, str(settings.get("encoder") or settings.get("kind", name))}
    found["judge"] |= {str(identity["encoder"]) for identity in panel.values() if "encoder" in identity}
    for names in found.values():
        encoders = definitions.get("encoders", {})
        known = (encoders.get(name, {}) for name in list(names))
        names |= {_called(model) for settings in known for model in _models(settings, encoders)}
    return {role: sorted(names) for role, names in found.items()}


def _models(settings: Mapping[str, Json], encoders: Mapping[str, Settings]) -> Iterator[str]:
    """Yield the model that an encoder is, or those of its query and document sides, which may be named encoders."""
    if "model" in settings:
        yield str(settings["model"])
    for side in (settings.get("query"), settings.get("document")):
        if isinstance(side, Mapping):
            yield from _models(side, encoders)
        elif isinstance(side, str):
            yield side
            if "model" in (named := encoders.get(side, {})):
                yield str(named["model"])


def _called(model: str) -> str:
    """Return a model's name on the hub, or the name of its folder: a path is nothing to publish."""
    return model if model.count("/") == 1 and model[0] not in "./~" else model.rstrip("/").rpartition("/")[2]
