"""Build encoders, retrievers and judges from the names and definitions of a pipeline."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TypeVar

from curate.ask import privacy_guard
from curate.ask.judges import JUDGES
from curate.ask.judges.llm import LlmJudge, named_model
from curate.core.config import Section, Settings, check
from curate.core.errors import ConfigError, suggestion
from curate.core.protocols import Engine, Judge, Kit, Retriever
from curate.core.registry import Registry
from curate.llm.prompts import Rubric
from curate.llm.providers import PROVIDERS, identity
from curate.llm.providers.presets import LanguageModel, presets
from curate.pii.pseudonyms import IdNames
from curate.pipeline.stage import Context
from curate.retrieval.encoders import ENCODERS, UNDEFINED
from curate.retrieval.encoders.asymmetric import with_named_sides
from curate.retrieval.encoders.presets import unknown_encoder, with_presets
from curate.retrieval.engines import ENGINES
from curate.retrieval.retrievers import RETRIEVERS
from curate.retrieval.vectors import CachedEncoder, default_folder

Plugin = TypeVar("Plugin", bound=Callable[..., object])


def encoder(context: Context, name: str) -> CachedEncoder:
    """Return the encoder of that name, with its cache; ConfigError names the nearest known one."""
    encoders = with_presets(context.definitions.get("encoders", {}))
    complete = {key: with_named_sides(settings, encoders) for key, settings in encoders.items()}
    if name not in complete and name not in ENCODERS.names():
        raise unknown_encoder("encoder", name, {*complete, *ENCODERS.names()})
    make, config = _resolve(ENCODERS, "encoders", {"encoders": complete}, name)
    guarded = privacy_guard.guarded(make(name, config), context)
    return CachedEncoder(guarded, default_folder(context.home), context.progress, context.tell)


def retriever(context: Context, name: str, above: tuple[str, ...] = ()) -> Retriever:
    """Return the retriever of that name; an encoder's name means dense retrieval by it.

    `above` are the retrievers that rank its documents again.
    """
    if name in above:
        raise ConfigError(f"retrievers.{above[-1]}.over: {' over '.join([*above, name])} has no beginning")
    definitions = _with_encoders(context, "retrievers", RETRIEVERS.names(), name, {"kind": "dense", "encoder": name})
    make, config = _resolve(RETRIEVERS, "retrievers", definitions, name)
    inner = partial(retriever, context, above=(*above, name))
    return privacy_guard.guarded_retriever(make(name, config, replace(kit(context), retriever=inner)), context)


def judge(context: Context, name: str, rubric: Rubric) -> tuple[Judge, None] | tuple[LlmJudge, LanguageModel]:
    """Return the judge of that name; a language model comes with the settings of its provider.

    An encoder's name means the heuristic judge over its similarity. The rubric declares the scale of all judges. No key
    is needed.
    """
    config = language_model(context, name)
    if config is not None:
        return LlmJudge(name, rubric, identity(config), config.thinking_tokens), config
    fallback: Settings = {"kind": "similarity", "encoder": name}
    definitions = _with_encoders(context, "judges", [*JUDGES.names(), *presets()], name, fallback)
    make, section = _resolve(JUDGES, "judges", definitions, name, more_kinds=PROVIDERS.names())
    return make(name, section, replace(kit(context), scale=rubric.scale)), None


def language_model(context: Context, name: str) -> LanguageModel | None:
    """Return the settings of the language model of that name; None if the name means another kind of judge."""
    return named_model(context.definitions.get("judges", {}), name)


def kit(context: Context) -> Kit:
    """Return the services that plugins may use."""
    may_send = partial(privacy_guard.may_send, context=context)
    may_reach = partial(privacy_guard.reach, context=context)
    id_names, cache = IdNames(context.folder("mask"), context.home), context.home / "cache"
    plugins = partial(encoder, context)
    return Kit(
        plugins,
        cache,
        engine(context),
        device(context),
        id_names,
        language=context.language,
        may_send=may_send,
        may_reach=may_reach,
    )


def engine(context: Context) -> Engine | None:
    """Return the engine that processes a corpus in parts; None if the pipeline names none."""
    settings = {name: setting for name, setting in context.engine.items() if name != "device"}
    if not settings:
        return None
    kind = str(settings.get("kind", "local"))
    make, config = _resolve(ENGINES, "engine", {"engine": {kind: settings}}, kind)
    return make(config)


def workers(context: Context) -> Engine | None:
    """Return the worker processes of the pipeline's engine, for work that needs no GPU; None without any."""
    make = getattr(engine(context), "workers", None)
    pool: Engine | None = make() if make else None
    return pool


def device(context: Context) -> str:
    """Return the device that vectors are compared on: cpu, unless the pipeline names cuda, cuda:N or auto."""
    return str(context.engine.get("device", "cpu"))


def _with_encoders(
    context: Context, family: str, builtin: list[str], name: str, fallback: Settings
) -> Mapping[str, Mapping[str, Settings]]:
    """Return the definitions, with one for a name that is an encoder's; ConfigError for an unknown name."""
    defined = context.definitions.get(family, {})
    encoders = encoder_names(context)
    if name in defined or name in builtin:
        return {family: defined}
    if name in encoders:
        return {family: {**defined, name: fallback}}
    if family == "judges" and name in {*context.definitions.get("retrievers", {}), *RETRIEVERS.names()}:
        raise ConfigError(f"judges: {name!r} is a retriever: it ranks, does not judge", choices=[*defined, *builtin])
    if family == "judges":
        raise _unknown_judge(name, [*defined, *builtin])
    raise unknown_encoder(family[:-1], name, {*defined, *builtin, *encoders})


def _unknown_judge(name: str, names: Sequence[str]) -> ConfigError:
    """Return the error for an unknown judge. It suggests similar names, except judges that need settings."""
    judges = sorted({*names} - {"replay", "similarity"})
    near = difflib.get_close_matches(name, judges, n=3)
    meant = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return ConfigError(
        f"unknown judge {name!r}: {meant}`curate models` lists who can judge; another model is defined in "
        f"./models.yaml or in the pipeline, such as `judges: {{{name}: {{kind: openai, base_url: URL, model: NAME}}}}`",
        choices=judges,
    )


def encoder_names(context: Context) -> set[str]:
    """Return every name that means an encoder: built-in, packaged, and the pipeline's own."""
    return {*ENCODERS.names(), *with_presets(context.definitions.get("encoders", {}))} - UNDEFINED


def _resolve(
    registry: Registry[Plugin],
    family: str,
    definitions: Mapping[str, Mapping[str, Settings]],
    name: str,
    *,
    more_kinds: Sequence[str] = (),
) -> tuple[Plugin, Section]:
    """Return the plugin's class and its checked settings: the definition's, or the defaults of a built-in."""
    settings = definitions.get(family, {}).get(name)
    if settings is None and name not in registry.names():
        choices = {*definitions.get(family, {}), *registry.names()}
        raise ConfigError(f"{family}: unknown {registry.family} {name!r}: {suggestion(name, choices)}")
    settings = dict(settings or {})
    kind = settings.pop("kind", name)
    if family == "judges" and kind in RETRIEVERS.names():
        raise ConfigError(f"judges.{name}.kind: {kind!r} is a retriever: it ranks, does not judge")
    if kind not in (kinds := registry.names()):
        got = repr(kind) if kind != name else "nothing"
        raise ConfigError(f"{family}.{name}.kind: found {got}; {suggestion(str(kind), [*kinds, *more_kinds])}")
    make = registry.load(str(kind))
    config = getattr(import_module(make.__module__), "Config", None)
    if not (isinstance(config, type) and issubclass(config, Section)):
        raise ConfigError(f"{family}.{name}: {make.__module__} has no class Config(curate.Section) for its settings")
    return make, check(config, settings, f"{family}.{name}")
