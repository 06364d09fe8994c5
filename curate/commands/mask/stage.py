"""mask: replace personal data in queries and corpus by typed placeholders.

Output: queries, corpus, classes, qrels, aliases, dropped as `ingest` wrote them but masked; spans: offsets of the
masked spans, without their texts; residual: spans that still look like personal data; altered: texts that masking made
equal to others or shortened too much. Ids that contain personal data are renamed consistently in all tables. Texts that
are equal after masking are merged as in `ingest`; their classes record that the raw texts differed. Rows stream in
input order. If a model is configured, all texts are sent to it before any is masked.
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
from curate.pii import NEW
from curate.pii.masking import Masked, Masker, link
from curate.pii.pseudonyms import FIELD, secret
from curate.pii.settings import Masking, checked, masker, untouched
from curate.pii.sieve import mask_all
from curate.pii.texts import mask_batches
from curate.pipeline.stage import Context, Report, Stage
from curate.system import files
from curate.system.processes import cores
from curate.view.run_figures import counted_texts

LABELS = "labels"
TABLES = ("queries", "corpus", "classes", "qrels", "aliases", "dropped")
_SMALL = 20_000
"""Number of rows up to which starting more processes takes longer than masking in one."""


def run(config: Config, context: Context) -> Report:
    """Mask queries and corpus, update qrels and aliases to match, and write all tables."""
    if not config.enabled:
        return _copy(context)
    spots = llm_pass.spot(config, context, lambda: _texts(context))
    decided = residual_decisions.ToMask(context.run, secret(context.home))
    masked = {table: _mask(table, config, context, spots, decided) for table in FIELDS}
    ids = {table: result.ids for table, result in masked.items()}
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
    residual = pl.concat([masked[table].residual.table() for table in FIELDS])
    files.write_table(context.out, "residual", residual.sort("table", "id", "field", "start"))
    altered = pl.concat([masked[table].altered().select(*records.TABLES["altered"]) for table in sorted(FIELDS)])
    files.write_table(context.out, "altered", altered)
    classes = [
        masked[table]
        .classes.filter(~pl.col("id").is_in(list(masked[table].merged)))
        .select(table=pl.lit(table), id="id", **{"class": "class"})
        for table in FIELDS
    ]
    files.write_table(context.out, "classes", pl.concat(classes))
    kinds = dict(spans["kind"].value_counts().sort("kind").iter_rows())
    return _report(masked, kinds, altered, len(residual), spots, decided, odd)


def _labels(context: Context, masked: Mapping[str, MaskedTable], looker: Masker | None) -> int:
    """Write the labels under the new ids; return the number of class names that look like personal data."""
    if not files.there(context.folder("ingest"), LABELS):
        return 0
    labels = context.read("ingest", LABELS)
    renamed = [
        labels.filter(pl.col("side") == table).with_columns(
            item_id=result.ids.of("item_id").replace(result.merged) if result.merged else result.ids.of("item_id")
        )
        for table, result in masked.items()
    ]
    followed = pl.concat(renamed).unique(["item_id", "label"], keep="first", maintain_order=True)
    files.write_table(context.out, LABELS, followed.sort("item_id", "label"))
    names = labels["label"].unique().sort().to_list()
    return sum(bool(mask.spans) for mask in mask_all(looker, names)) if looker else 0


def _settings(config: Config) -> Masking:
    return Masking.model_validate(config.model_dump(include=set(Masking.model_fields)))


def _mask(
    table: str, config: Config, context: Context, spots: Spots | None, decided: residual_decisions.ToMask
) -> MaskedTable:
    total, key = files.height(context.folder("ingest"), table), secret(context.home)
    settings = _settings(config)
    result = MaskedTable(table, key, same_text(context.read("ingest", "classes"), table))
    keep_all = context.duplicates == "keep"
    closed = untouched(settings)
    label = StepLabel(f"masking {table}", "texts")
    context.progress(label, total, 0)
    with files.TableWriter(context.out, table) as writer:
        for batch, masked in _masked(table, total, config, context, spots, decided):
            rows = list(result.take(batch, masked, keep_all=keep_all))
            for row in rows:
                writer.add(row.written)
            result.look_over(rows, closed)
            context.progress(label, total, len(result.masked))
            del batch, masked, rows  # else they stay in memory while the next batch is masked
    result.ids.refuse(result.classes["id"])
    result.classes = result.classes.with_columns(result.ids.of("id"))
    return result


def _masked(
    table: str, total: int, config: Config, context: Context, spots: Spots | None, decided: residual_decisions.ToMask
) -> Iterator[tuple[pl.DataFrame, list[Masked]]]:
    """Yield raw rows and their masked texts, computed by the pipeline's engine or by local processes."""
    settings, key, ids = _settings(config), secret(context.home), config.ids == "mask"
    engine = build.workers(context)
    texts = partial(_texts_of, table, ids=ids)
    spans = partial(_known_spans, table, spots, decided, ids=ids)
    if engine is not None:
        work = PartMasker(context.folder("ingest"), table, texts, settings, context.language, key)
        return mask_in_parts(engine, work, total, spans if spots or decided.decided else None)
    processes = config.processes or (cores() if total > _SMALL else 1)
    batches = files.batches(context.folder("ingest"), table)
    inputs = ((batch, (texts(batch), spans(batch))) for batch in batches)
    return mask_batches(settings, context.language, key, inputs, processes)


def _texts_of(table: str, batch: pl.DataFrame, *, ids: bool = False) -> list[str]:
    """Return the texts of raw rows, field by field, and after them the ids if `ids`."""
    texts = [text for name in FIELDS[table] for text in batch[name]]
    return texts + batch[KEYS[table]].to_list() if ids else texts


def _known_spans(
    table: str, spots: Spots | None, decided: residual_decisions.ToMask, batch: pl.DataFrame, *, ids: bool
) -> Known:
    """Return spans by row that the model found in texts (it is not asked about ids) or that users chose to mask."""
    spans: defaultdict[int, list[Span]] = defaultdict(list)
    for row, text in enumerate(_texts_of(table, batch) if spots else ()):
        if spots and (model_spans := spots.of(text)):
            spans[row] += model_spans
    columns = {name: name for name in FIELDS[table]} | ({FIELD: KEYS[table]} if ids else {})
    for row, span in decided.of(table, batch, columns, KEYS[table]):
        spans[row].append(span)
    return dict(spans)


def planned(config: Config, context: Context, table: str) -> dict[str, CostEstimate]:
    """Return the estimated cost of asking the model about the raw texts of a table; empty without a model."""
    return llm_pass.planned(config, context, lambda: _texts(context, [table]))


def _texts(context: Context, tables: Iterable[str] = FIELDS) -> Iterator[str]:
    for table in tables:
        for batch in files.batches(context.folder("ingest"), table):
            yield from _texts_of(table, batch)


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
    for table, result in masked.items():
        altered_rows = altered.filter(pl.col("table") == table)
        equal, shortened = altered_rows["equal_to"].count(), altered_rows.filter(pl.col("lost") > MOST).height
        facts |= {f"masked_{table}": len(result.lost), f"merged_{table}": len(result.merged)}
        facts |= {f"made_equal_{table}": equal, f"shortened_{table}": shortened}
    facts["residual"] = left
    facts |= renaming.facts({table: result.ids for table, result in masked.items()})
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
    results = masked.values()
    return Report(
        sum(len(result.masked) for result in results),
        sum(result.kept for result in results),
        cost=0.0 if spots is None else spots.paid.amount,
        facts=facts,
        notes=[*notes, *llm_pass.notes(spots)],
        spent=0.0 if spots is None else spots.spent,
    )


def _altering(facts: Mapping[str, Json]) -> Iterator[str]:
    """Yield one sentence on the texts that masking made equal or shortened, if there are any."""
    descriptions = (
        ("made_equal", "made {} equal to others that they were not equal to"),
        ("shortened", "took more than a third of the characters of {}"),
    )
    phrases = [words.format(counted) for fact, words in descriptions if (counted := counted_texts(facts, fact))]
    if phrases:
        yield f"masking {' and '.join(phrases)}: see `curate show mask/altered`"


def _copy(context: Context) -> Report:
    for table in (*TABLES, *([LABELS] if files.there(context.folder("ingest"), LABELS) else [])):
        shutil.copyfile(context.folder("ingest") / f"{table}.parquet", context.out / f"{table}.parquet")
    for table in ("spans", "residual", "altered"):
        files.write_table(context.out, table, files.frame(table))
    rows = sum(files.height(context.out, table) for table in FIELDS)
    return Report(rows, rows)


def fingerprint(config: Config, context: Context) -> Json:
    """Check the recognisers; return their names, the handling of duplicates, and all inputs outside the settings."""
    checked(config)
    lists = {name: files.sha256(word.file) for name, word in config.words.items() if word.file}
    drawn = link(secret(context.home), "", "") if config.mode == "pseudonym" else None
    model = llm_pass.fingerprint(config, context) if config.enabled else None
    return {
        "recognisers": [name for name in config.names if name not in NEW],  # so that finished runs stay as they are
        "duplicates": context.duplicates,
        "words": lists,
        "key": drawn,
        "model": model,
        "decisions": residual_decisions.identity(context.run) if config.enabled else [],
    }


def preflight(config: Config, context: Context) -> None:
    """Check the key of the model, if it needs one."""
    if config.enabled:
        llm_pass.preflight(config, context)


STAGE = Stage("mask", Config, ("ingest",), run, fingerprint, preflight, head=("language",), version=8)
