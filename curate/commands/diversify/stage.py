"""Stage `diversify`: near-duplicate filtering of queries and documents, by their sentences or by cosine similarity.

Input: queries, corpus, qrels of `mask`. Output: the same tables without near-duplicates, and `dropped`, which names for
each dropped text the retained one and their similarity. A text with a positive label is never dropped; exact duplicates
are, and their labels move to the retained text. The rule by cosine is that of the CMedTEB paper, made for training
data.
"""

import hashlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from curate.ask import build
from curate.commands.diversify import Config, DiversityRule
from curate.commands.diversify.journal import JournalFile
from curate.commands.diversify.vectors import TABLES, MaskedTexts, for_language, guesses
from curate.core import records, sampling
from curate.core.config import Json, digest
from curate.core.duplicates import follow_qrels, same_text
from curate.core.errors import ConfigError, DataError, UserError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Progress, Vectors, quiet
from curate.pipeline.stage import Context, Report, Stage
from curate.retrieval.similarity.contradictions import Contradictions
from curate.retrieval.similarity.copies import copies
from curate.retrieval.similarity.devices import screen_for_pairs
from curate.retrieval.similarity.diversity import (
    TRIES,
    Contradict,
    Diversity,
    Journal,
    Kept,
    disagreement,
    diversify,
    everything,
    threshold,
    twins,
)
from curate.retrieval.similarity.screening import FLOAT32, Rows, Screen
from curate.system.files import frame, read_positives, sha256, write_table

SEED_FROM, SEED_SIZE = 50_000, 5_000
SAMPLE = 1_000
"""Maximum number of items on which an approximate index is compared with the exact rule."""
VERSION = 1
"""Version of recorded decisions; increased if the same settings would give other decisions."""
MEMORY = ".diversify"
"""Folder in the run folder with the recorded decisions of an interrupted stage."""


def decide(
    side: DiversityRule,
    size: int,
    encode: Callable[[], Vectors],
    seeds: Rows | None = None,
    screen: Screen = FLOAT32,
    journal: Callable[[float], Journal | None] = lambda _t: None,
    *,
    approximate: bool = False,
    progress: Progress = quiet,
    table: str = "texts",
    contradict: Contradict | None = None,
) -> Diversity:
    """Return the decisions of a table's rule on `size` items; without `seeds`, the first items are retained untested.

    `journal` maps a threshold to the file that records its decisions. `table` names the items in progress messages.
    """
    vectors = encode()
    t = side.t
    if not isinstance(t, float):
        trying = partial(progress, StepLabel(f"trying thresholds, {table}", "thresholds"), TRIES)
        t = threshold(vectors, side.n, side.target_drop, screen, trying)
    first, k = seed_size(side, size) if seeds is None else seeds, side.k if approximate else 0
    looked = partial(progress, StepLabel(f"comparing {table}", "texts"), size)
    decided = diversify(vectors, t, side.n, first, screen, journal(t), k, looked, contradict)
    if not k:
        return decided
    with waiting(progress, StepLabel(f"comparing a sample of {table} exactly")):
        return replace(decided, disagreement=disagreement(vectors, decided, side.n, first, SAMPLE, contradict))


def seed_size(side: DiversityRule, size: int) -> int:
    """Return the number of seeds among `size` items; `auto`: 5,000 for at least 50,000 items, else 0."""
    count = (SEED_SIZE if size >= SEED_FROM else 0) if side.seed_size == "auto" else side.seed_size
    return min(count, size)


def run(config: Config, context: Context) -> Report:
    """Filter queries and corpus, write the retained texts, and update the qrels."""
    texts = {name: MaskedTexts(context, name, config.encoder) for name in TABLES}
    classes = context.read("mask", "classes")
    twin_classes = {name: same_text(classes, name) for name in TABLES}
    positives = read_positives(context.read("mask", "qrels"), context.folder("ingest"))
    labelled = {"queries": positives["query_id"], "corpus": positives["doc_id"]}
    sides = {
        name: _decided(
            texts[name],
            _side(config, name, context),
            config.approximate,
            _protected(twin_classes[name], labelled[name]),
        )
        for name in TABLES
    }
    _refuse_too_many(config, sides)
    for name in TABLES:
        texts[name].copy(sides[name].kept)
    dropped = pl.concat([_dropped(texts[name], sides[name]) for name in TABLES])
    moved = {name: twins(twin_classes[name], sides[name].kept) for name in TABLES}
    qrels, lost = _follow(context.read("mask", "qrels"), dropped, moved)
    write_table(context.out, "qrels", qrels)
    write_table(context.out, "dropped", pl.concat([dropped, lost]).sort("table", "id"))
    shutil.rmtree(context.run / MEMORY, ignore_errors=True)  # the tables hold it now
    facts: dict[str, Json] = {
        name: {"items": side.kept.size, "kept": int(side.kept.sum()), "t": side.t} for name, side in sides.items()
    }
    if config.approximate:
        facts["approximate"] = {name: side.disagreement for name, side in sides.items()}
    total = sum(side.kept.size for side in sides.values())
    facts |= {"encoder": config.encoder, "qrels_lost": len(lost)}
    notes = [*_notes(sides)]
    if counts := [f"{int((~side.kept).sum()):,} of the {name}" for name, side in sides.items() if not side.kept.all()]:
        listed = "`curate show diversify/dropped` lists each with the one that is kept"
        notes.append(f"dropped: {' and '.join(counts)}; {listed}")
    if spared := [f"{side.spared:,} of the {name}" for name, side in sides.items() if side.spared]:
        notes.append(f"copies of other texts that are kept because they are labelled: {' and '.join(spared)}")
    if len(lost):
        notes.append(f"labels lost with their query or document: {len(lost):,}")
    notes += guesses(config, context.language)
    return Report(total, total - len(dropped), len(dropped), facts=facts, notes=notes)


def fingerprint(config: Config, context: Context) -> Json:
    """Return the encoder's revision, if an encoder is needed, and the digests of files of seeds."""
    sides = [side for name in TABLES if (side := _side(config, name, context)).by_cosine]
    files = {side.seeds: sha256(_seed_file(side)) for side in sides if side.seeds not in ("first", "random")}
    revision = build.encoder(context, config.encoder).revision if sides else None
    return [revision, files] if files else revision


def _decided(texts: MaskedTexts, side: DiversityRule, approximate: bool, protected: Kept) -> Diversity:
    """Return the decisions on a table's texts; decisions recorded before an interruption are reused.

    With the rule by cosine, protected texts are not in the index, so no text is dropped for being similar to one: the
    unlabelled neighbours of a labelled text must stay, because a pool should find them.
    """
    if not side.enabled:
        return everything(len(texts))
    if not side.by_cosine:
        with waiting(texts.context.progress, StepLabel(f"comparing sentences, {texts.table}")):
            return copies(len(texts), lambda: (text for _, text in texts.items()), protected)
    tested = np.flatnonzero(~protected)
    seeds = _seeds(texts, side, tested)
    journal = partial(_journal, texts, side, seeds, approximate, tested)
    tested_texts = (text for (_, text), is_protected in zip(texts.items(), protected, strict=True) if not is_protected)
    decided = decide(
        side,
        len(tested),
        lambda: texts.vectors() if len(tested) == len(texts) else texts.vectors()[tested],
        seeds,
        screen_for_pairs(build.device(texts.context), len(tested)),
        journal,
        approximate=approximate,
        progress=texts.context.progress,
        table=texts.table,
        contradict=Contradictions(tested_texts, statements=texts.table == "corpus") if side.veto else None,
    )
    all_kept = everything(len(texts))
    all_kept.kept[tested], all_kept.similarity[tested] = decided.kept, decided.similarity
    all_kept.nearest[tested] = np.where(decided.nearest < 0, -1, tested[decided.nearest]) if len(tested) else -1
    return replace(all_kept, t=decided.t, disagreement=decided.disagreement)


def _protected(twin_classes: pl.DataFrame, labelled: pl.Series) -> Kept:
    """Return a mask of texts that must not be dropped: the first of equal texts, if any of these has a positive label.

    The labels of the others move to it.
    """
    is_labelled = pl.col("id").is_in(labelled.implode()).any().over("class")
    return twin_classes.select(is_labelled & pl.col("class").is_first_distinct()).to_series().to_numpy()


def _seeds(texts: MaskedTexts, side: DiversityRule, tested: Rows) -> Rows | None:
    """Return the tested items that are retained as seeds without a test; None if these are the first ones."""
    if side.seeds == "first":
        return None
    if side.seeds == "random":
        draw = sampling.generator(texts.context.seed, "diversify", texts.table)
        return np.array(draw.sample(range(len(tested)), seed_size(side, len(tested))), dtype=np.int64)
    places = {name: row for row, name in enumerate(texts.ids())}
    named = list(dict.fromkeys(_seed_file(side).read_text(encoding="utf-8-sig").split()))
    if unknown := [name for name in named if name not in places]:
        raise DataError(
            f"{side.seeds}: {len(unknown):,} ids are not in the {texts.table}, the first is {unknown[0]!r}; give ids "
            f"as `curate show mask/{texts.table}` lists them, one per line"
        )
    rows = np.array([places[name] for name in named], dtype=np.int64)
    return np.searchsorted(tested, rows[np.isin(rows, tested)])


def _journal(
    texts: MaskedTexts, side: DiversityRule, seeds: Rows | None, approximate: bool, tested: Rows, t: float
) -> JournalFile:
    """Return the file that records the decisions on these texts with this encoder and rule."""
    rule = [t, side.n, seed_size(side, len(tested)) if seeds is None else seeds.tolist()]
    rule += [side.veto, hashlib.sha256(tested.tobytes()).hexdigest(), *([side.k] if approximate else [])]
    table = sha256(texts.context.folder("mask") / f"{texts.table}.parquet")
    key = digest([VERSION, table, texts.encoder, build.encoder(texts.context, texts.encoder).revision, *rule])
    return JournalFile(texts.context.run / MEMORY / f"{texts.table}-{key[:16]}")


def _seed_file(side: DiversityRule) -> Path:
    path = Path(side.seeds)
    if not path.is_file():
        raise ConfigError(f"diversify seeds: found {side.seeds!r}, expected first, random, or a file of ids")
    return path


def _side(config: Config, name: str, context: Context) -> DiversityRule:
    """Return the rule of a table, with the threshold for the language of the texts."""
    side: DiversityRule = getattr(config, name)
    if not (config.enabled and side.enabled):
        return side.model_copy(update={"enabled": False})
    return for_language(side, name, config.encoder, context.language)


def _notes(sides: Mapping[str, Diversity]) -> list[str]:
    """Return one sentence per table on how often an approximate index decided differently from the exact rule."""
    return [
        f"{name}: compared by an approximate index; of a sample, {SAMPLE:,} texts at most, the exact rule decides "
        f"{side.disagreement:.1%} otherwise"
        for name, side in sides.items()
        if side.disagreement is not None
    ]


def _refuse_too_many(config: Config, sides: Mapping[str, Diversity]) -> None:
    for name, side in sides.items():
        share = 1 - side.kept.mean() if side.kept.size else 0.0
        if share > config.max_drop:
            why = "are copies of others; look at the source"
            if side.t is not None:
                why = (
                    f"would be dropped at t = {side.t:g}; the threshold may belong to another encoder than "
                    f"{config.encoder!r}. Set diversify.{name}.t"
                )
            raise UserError(
                f"diversify.{name}: {share:.0%} of {side.kept.size:,} texts {why}, or go on with "
                "--set diversify.max_drop=1"
            )


def _dropped(texts: MaskedTexts, side: Diversity) -> pl.DataFrame:
    gone, ids = np.flatnonzero(~side.kept), texts.ids()
    rows = pl.DataFrame({"id": ids.gather(gone), "nearest_id": ids.gather(side.nearest[gone])})
    whole = rows.with_columns(
        table=pl.lit(texts.table),
        stage=pl.lit("diversify"),
        reason=pl.lit("copy" if side.t is None else "redundant"),
        similarity=side.similarity[gone],
    )
    return whole.select(*records.TABLES["dropped"])


def _follow(
    qrels: pl.DataFrame, dropped: pl.DataFrame, moved: Mapping[str, Mapping[str, str]]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the qrels of retained pairs, and one row per qrel that was lost with its query or document.

    Only labels that mean not relevant can be lost (see `_protected`). A qrel moves to a retained text that was equal
    before masking, never to one that is only similar or became equal by masking, because that text was not labelled.
    """
    followed = follow_qrels(qrels, moved["queries"], moved["corpus"])
    gone = {table: dropped.filter(pl.col("table") == table)["id"].implode() for table in TABLES}
    lost = pl.col("query_id").is_in(gone["queries"]) | pl.col("doc_id").is_in(gone["corpus"])
    found = {"table": "qrels", "stage": "diversify", "reason": "its query or document is redundant"}
    pairs = followed.filter(lost).select("query_id", "doc_id").iter_rows()
    rows = ({**found, "id": f"{query_id} {doc_id}"} for query_id, doc_id in pairs)
    return followed.filter(~lost), frame("dropped", rows)


STAGE = Stage("diversify", Config, ("mask",), run, fingerprint, head=(), version=2)
