"""mask: personal data in queries and corpus gives way to typed placeholders.

Written: queries, corpus, classes, qrels, aliases, dropped as `ingest` left them but masked; spans: where something was
found, never what; residual: where the masked texts still look as if something was missed; and altered: which texts
masking made equal to others, or took too much of. Ids in which something is found are renamed, the same in all tables.
Texts that are equal once they are masked are merged as in `ingest`; their classes say that they were not. Rows stream,
in their order. If a model is to look first, all texts are put to it before any is masked.
"""

import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import polars as pl

from curate.ask import billing, build, residual_decisions
from curate.commands.mask import Config, llm_pass
from curate.commands.mask import tables as renaming
from curate.commands.mask.llm_pass import Spots
from curate.commands.mask.tables import KEYS, MOST, Known, MaskedTable, PartMasker, mask_in_parts
from curate.core import records
from curate.core.config import Json
from curate.core.duplicates import follow_aliases, follow_qrels, same_text
from curate.core.progress import StepLabel
from curate.core.records import FIELDS, Span
from curate.llm.budget import CostEstimate
from curate.pii.masking import Masked, Masker, link
from curate.pii.pseudonyms import FIELD, secret
from curate.pii.settings import Masking, checked, masker, untouched
from curate.pii.sieve import mask_all
from curate.pii.workers import mask_batches
from curate.pipeline.stage import Context, Report, Stage
from curate.system import files
from curate.system.processes import cores
from curate.view.run_figures import counted_texts

LABELS = "labels"
TABLES = ("queries", "corpus", "classes", "qrels", "aliases", "dropped")
_SMALL = 20_000
"""Rows up to which one process is done before others have started."""


def run(config: Config, context: Context) -> Report:
    """Mask both tables of texts, let qrels and aliases follow, write everything."""
    if not config.enabled:
        return _copy(context)
    spots = llm_pass.spot(config, context, lambda: _texts(context))
    decided = residual_decisions.ToMask(context.run, secret(context.home))
    masked = {table: _mask(table, config, context, spots, decided) for table in FIELDS}
    ids = {table: part.ids for table, part in masked.items()}
    looker = masker(_settings(config), context.language, secret(context.home)) if config.ids == "mask" else None
    labels = context.read("ingest", "qrels").with_columns(ids["queries"].of("query_id"), ids["corpus"].of("doc_id"))
    qrels = follow_qrels(labels, masked["queries"].merged, masked["corpus"].merged)
    files.write_table(context.out, "qrels", qrels)
    aliases = renaming.aliases(context.read("ingest", "aliases"), ids, looker)
    followed = [follow_aliases(aliases, table, masked[table].merged) for table in sorted(FIELDS)]
    files.write_table(context.out, "aliases", pl.concat(followed))
    odd = _labels(context, masked, looker)
    lost = renaming.dropped(context.read("ingest", "dropped"), ids, looker)
    files.write_table(context.out, "dropped", lost.sort("table", "id", "reason"))
    spans = pl.concat([masked[table].spans.table() for table in FIELDS])
    files.write_table(context.out, "spans", spans.sort("table", "id", "field", "start"))
    left = pl.concat([masked[table].residual.table() for table in FIELDS])
    files.write_table(context.out, "residual", left.sort("table", "id", "field", "start"))
    altered = pl.concat([masked[table].altered().select(*records.TABLES["altered"]) for table in sorted(FIELDS)])
    files.write_table(context.out, "altered", altered)
    classes = [_kept(masked[table]) for table in FIELDS]
    files.write_table(context.out, "classes", pl.concat(classes))
    kinds = dict(spans["kind"].value_counts().sort("kind").iter_rows())
    return _report(masked, kinds, altered, len(left), spots, decided, odd)


def _labels(context: Context, masked: Mapping[str, MaskedTable], looker: Masker | None) -> int:
    """Let labels follow their texts; return how many names of classes look like personal data."""
    if not files.there(context.folder("ingest"), LABELS):
        return 0
    found = context.read("ingest", LABELS)
    parts = [
        found.filter(pl.col("side") == table).with_columns(
            item_id=part.ids.of("item_id").replace(part.merged) if part.merged else part.ids.of("item_id")
        )
        for table, part in masked.items()
    ]
    followed = pl.concat(parts).unique(["item_id", "label"], keep="first", maintain_order=True)
    files.write_table(context.out, LABELS, followed.sort("item_id", "label"))
    named = found["label"].unique().sort().to_list()
    return sum(bool(each.spans) for each in mask_all(looker, named)) if looker else 0


def _settings(config: Config) -> Masking:
    return Masking.model_validate(config.model_dump(include=set(Masking.model_fields)))


def _kept(done: MaskedTable) -> pl.DataFrame:
    """Return the classes of the rows that were not merged."""
    own = done.classes.filter(~pl.col("id").is_in(list(done.merged)))
    return own.select(table=pl.lit(done.table), id="id", **{"class": "class"})


def _mask(
    table: str, config: Config, context: Context, spots: Spots | None, decided: residual_decisions.ToMask
) -> MaskedTable:
    total, key = files.height(context.folder("ingest"), table), secret(context.home)
    settings = _settings(config)
    done = MaskedTable(table, key, same_text(context.read("ingest", "classes"), table))
    keep_all = context.duplicates == "keep"
    closed = untouched(settings)
    label = StepLabel(f"masking {table}", "texts")
    context.progress(label, total, 0)
    with files.TableWriter(context.out, table) as writer:
        for batch, masked in _masked(table, total, config, context, spots, decided):
            kept = list(done.take(batch, masked, keep_all=keep_all))
            for each in kept:
                writer.add(each.written)
            done.look_over(kept, closed)
            context.progress(label, total, len(done.masked))
            del batch, masked, kept  # or they would be held while the next batch is masked
    done.ids.refuse(done.classes["id"])
    done.classes = done.classes.with_columns(done.ids.of("id"))
    return done


def _masked(
    table: str, total: int, config: Config, context: Context, spots: Spots | None, decided: residual_decisions.ToMask
) -> Iterator[tuple[pl.DataFrame, list[Masked]]]:
    """Yield the raw rows and their masked texts: by workers of the pipeline's engine, or by processes here."""
    settings, key, ids = _settings(config), secret(context.home), config.ids == "mask"
    engine = build.workers(context)
    texts, known = partial(_looked_at, table, ids=ids), partial(_known, table, spots, decided, ids=ids)
    if engine is not None:
        work = PartMasker(context.folder("ingest"), table, texts, settings, context.language, key)
        return mask_in_parts(engine, work, total, known if spots or decided.decided else None)
    processes = config.processes or (cores() if total > _SMALL else 1)
    batches = files.batches(context.folder("ingest"), table)
    found = ((batch, (texts(batch), known(batch))) for batch in batches)
    return mask_batches(settings, context.language, key, found, processes)


def _looked_at(table: str, batch: pl.DataFrame, *, ids: bool = False) -> list[str]:
    """Return the texts of raw rows, field by field, and behind them the ids, if they are to be looked at."""
    texts = [text for name in FIELDS[table] for text in batch[name]]
    return texts + batch[KEYS[table]].to_list() if ids else texts


def _known(
    table: str, spots: Spots | None, decided: residual_decisions.ToMask, batch: pl.DataFrame, *, ids: bool
) -> Known:
    """Return what a model has found in raw rows, which is not asked about ids, or people have decided to mask."""
    known: defaultdict[int, list[Span]] = defaultdict(list)
    for row, text in enumerate(_looked_at(table, batch) if spots else ()):
        if spots and (spans := spots.of(text)):
            known[row] += spans
    columns = {name: name for name in FIELDS[table]} | ({FIELD: KEYS[table]} if ids else {})
    for row, span in decided.of(table, batch, columns, KEYS[table]):
        known[row].append(span)
    return dict(known)


def planned(config: Config, context: Context, table: str) -> dict[str, CostEstimate]:
    """Return what the model would be asked about the raw texts of a table; empty without a model."""
    return llm_pass.planned(config, context, lambda: _texts(context, [table]))


def _texts(context: Context, tables: Iterable[str] = FIELDS) -> Iterator[str]:
    for table in tables:
        for batch in files.batches(context.folder("ingest"), table):
            yield from _looked_at(table, batch)


def _report(
    masked: dict[str, MaskedTable],
    kinds: Mapping[str, int],
    altered: pl.DataFrame,
    left: int,
    spots: Spots | None,
    decided: residual_decisions.ToMask,
    odd: int,
) -> Report:
    facts: dict[str, Json] = {f"spans_{kind}": count for kind, count in kinds.items()}
    for table, part in masked.items():
        own = altered.filter(pl.col("table") == table)
        equal, shortened = own["equal_to"].count(), own.filter(pl.col("lost") > MOST).height
        facts |= {f"masked_{table}": len(part.lost), f"merged_{table}": len(part.merged)}
        facts |= {f"made_equal_{table}": equal, f"shortened_{table}": shortened}
    facts["residual"] = left
    facts |= renaming.facts({table: part.ids for table, part in masked.items()})
    if decided.decided:
        facts["masked_by_people"] = decided.applied
    if spots is not None:
        facts |= {"model": spots.facts, **billing.facts(spots.paid)}
    stopped = "stop `export` and every command that asks a model elsewhere: see `curate check mask --residual`"
    notes = [f"{left:,} places still look like personal data, and {stopped}"] if left else []
    if gone := decided.decided - decided.applied:
        notes.append(f"{gone:,} decisions to mask a place belong to texts that have changed, so they were dropped")
    if odd:
        notes.append(f"{odd:,} classes have names that look like personal data and stay; rename them in the input")
    notes += [*renaming.notes(facts), *_altering(facts)]
    parts = masked.values()
    return Report(
        sum(len(part.masked) for part in parts),
        sum(part.kept for part in parts),
        cost=0.0 if spots is None else spots.paid.amount,
        facts=facts,
        notes=[*notes, *llm_pass.notes(spots)],
        spent=0.0 if spots is None else spots.spent,
    )


def _altering(facts: Mapping[str, Json]) -> Iterator[str]:
    """Yield what masking did to the sense of texts, if it did it to any, as one sentence."""
    told = (
        ("made_equal", "made {} equal to others that they were not equal to"),
        ("shortened", "took more than a third of the characters of {}"),
    )
    parts = [words.format(counted) for fact, words in told if (counted := counted_texts(facts, fact))]
    if parts:
        yield f"masking {' and '.join(parts)}: see `curate show mask/altered`"


def _copy(context: Context) -> Report:
    for table in (*TABLES, *([LABELS] if files.there(context.folder("ingest"), LABELS) else [])):
        shutil.copyfile(context.folder("ingest") / f"{table}.parquet", context.out / f"{table}.parquet")
    for table in ("spans", "residual", "altered"):
        files.write_table(context.out, table, files.frame(table))
    rows = sum(files.height(context.out, table) for table in FIELDS)
    return Report(rows, rows)


def fingerprint(config: Config, context: Context) -> Json:
    """Check the recognisers; return their names, what becomes of duplicates, and what is outside of the settings."""
    checked(config)
    lists = {name: files.sha256(word.file) for name, word in config.words.items() if word.file}
    drawn = link(secret(context.home), "", "") if config.mode == "pseudonym" else None
    asked = llm_pass.fingerprint(config, context) if config.enabled else None
    return {
        "recognisers": config.names,
        "duplicates": context.duplicates,
        "words": lists,
        "key": drawn,
        "model": asked,
        "decisions": residual_decisions.identity(context.run) if config.enabled else [],
    }


def preflight(config: Config, context: Context) -> None:
    """Check the key of the model, if it wants one."""
    if config.enabled:
        llm_pass.preflight(config, context)


STAGE = Stage("mask", Config, ("ingest",), run, fingerprint, preflight, head=("language",), version=8)
