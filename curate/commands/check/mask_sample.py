"""Draw a sample of a run's masked texts for assessors to read.

It is stored in `checks/mask/N` of the run folder, with the texts as assessors read them. Strata are by table and by
whether a text has masked spans, so that the few texts with masked spans are represented.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from curate.core.config import digest
from curate.core.errors import DataError, UserError
from curate.core.records import shown
from curate.core.sampling import shuffled
from curate.panel import sampling_design
from curate.pii.masking import placeholder
from curate.pipeline.pipeline import Pipeline
from curate.review import Sample
from curate.review.drawing import SampleOptions, SampleQuestion, freeze
from curate.review.sample import Stratum
from curate.review.sheets.files import LIMIT
from curate.system.files import read_json, read_table

SHARE = 0.01
LEAST, MOST = 100, 2_000
"""Minimum and maximum of the default sample size."""
EACH = 10
"""Minimum number of texts drawn from every stratum, or all that it has."""
MASKED, PLAIN = "something masked", "nothing masked"
_GUESSES = {MASKED: 0.1, PLAIN: 0.02}
"""Anticipated error rates, for the allocation of the sample to the strata."""
_KEYS = {"queries": "query_id", "corpus": "doc_id"}


@dataclass(frozen=True)
class Wish:
    """Settings of a sample."""

    size: int | None = None
    """Number of texts; default: 1 % of all, between `LEAST` and `most`."""
    most: int = MOST
    assessors: Sequence[str] = field(default=("assessor",))
    seed: int | None = None
    """None for the seed of the pipeline."""

    def of(self, texts: int) -> int:
        """Return the size of a sample of `texts` texts in all."""
        return min(texts, self.size or min(self.most, max(LEAST, round(SHARE * texts))))


def newest(run: Path) -> Sample | None:
    """Return the sample of a run with the highest number, drawn last; None if there is none."""
    numbers = sorted(int(path.parent.name) for path in (run / "checks" / "mask").glob("[0-9]*/design.json"))
    return numbered(run, numbers[-1]) if numbers else None


def numbered(run: Path, number: int) -> Sample:
    """Return a sample of a run by its number; UserError if there is none."""
    folder = run / "checks" / "mask" / str(number)
    if not (folder / "design.json").is_file():
        raise UserError(f"{folder}: no such sample; leave out --sample for the newest, or draw one with --new")
    return Sample.load(folder)


def opened(run: Path, wish: Wish, number: int | None = None, *, new: bool = False, returning: bool = False) -> Sample:
    """Return a sample by its number, else the newest one.

    A sample is drawn with `new`, if there is none, or if the masked texts changed since the newest was drawn.
    `returning` is for the import of sheets, which belong to an existing sample: none is drawn.
    """
    if number is not None:
        return numbered(run, number)
    last = newest(run)
    if returning:
        if last is None:
            raise UserError(f"{run}: no sample was drawn yet; `curate check mask` draws one")
        return last
    fits = last is not None and last.design.facts["tables"] == state(run)
    return draw(run, wish) if last is None or new or not fits else last


def draw(run: Path, wish: Wish) -> Sample:
    """Draw a sample of a run's masked texts and store it; the same settings and run give the same texts.

    Neyman allocation, with at least `EACH` texts per stratum. DataError if the run has no masked texts.
    """
    head, texts = Pipeline.load(run / "pipeline.yaml").head, _strata(run)
    if texts.is_empty():
        raise DataError(f"{run}: found no text after masking, expected some; run `curate mask` first")
    sizes = sampling_design.counts(texts)
    guesses = {name: _GUESSES[name.partition(", ")[2]] for name in sizes}
    size = max(wish.of(len(texts)), sum(min(EACH, n) for n in sizes.values()))
    drawn = sampling_design.allocate(sizes, guesses, size, EACH)
    last = newest(run)
    number = 1 + (int(last.folder.name) if last else 0)
    order = SampleOptions(
        f"mask-{number}",
        size,
        assessors=tuple(wish.assessors),
        overlap=0.0,
        seed=head.seed if wish.seed is None else wish.seed,
        language=head.language,
    )
    rows = sampling_design.draw(texts, drawn, order.seed)
    rows = _with_texts(run, rows[shuffled(range(len(rows)), order.seed, "check", "mask", "order")], order.language)
    strata = [Stratum(name, size, drawn[name]) for name, size in sizes.items()]
    folder = run / "checks" / "mask" / str(number)
    return freeze(folder, SampleQuestion("privacy"), order, strata, rows, {"tables": state(run)})


def _strata(run: Path) -> pl.DataFrame:
    """Return id (as `query_id`), table (as `doc_id`) and stratum of every masked text of a run."""
    spans = read_table(run / "mask", "spans").select("table", "id").unique().with_columns(found=True)
    tables = [
        pl.scan_parquet(run / "mask" / f"{table}.parquet").select(table=pl.lit(table), id=pl.col(key)).collect()
        for table, key in _KEYS.items()
    ]
    texts = pl.concat(tables).join(spans, on=["table", "id"], how="left")
    kind = pl.when(pl.col("found")).then(pl.lit(MASKED)).otherwise(pl.lit(PLAIN))
    return texts.select(query_id="id", doc_id="table", stratum=pl.concat_str("table", kind, separator=", "))


def state(run: Path) -> str:
    """Return a digest of the masked texts and spans of a run, to detect changes."""
    outputs = read_json(run / "mask" / "stage.json")["outputs"]
    return digest([outputs.get(f"{table}.parquet") for table in (*_KEYS, "spans")])


def _with_texts(run: Path, drawn: pl.DataFrame, language: str) -> pl.DataFrame:
    """Return the drawn rows with ids, and the texts that assessors read: the masked text, kinds of PII with counts."""
    read: dict[tuple[str, str], str] = {}
    for table, key in _KEYS.items():
        sampled_ids = drawn.filter(pl.col("doc_id") == table)["query_id"].implode()
        lazy = pl.scan_parquet(run / "mask" / f"{table}.parquet").filter(pl.col(key).is_in(sampled_ids))
        for row in lazy.collect().iter_rows(named=True):
            read[table, row[key]] = shown(row.get("title", ""), row["text"])
    masked_kinds: dict[tuple[str, str], Counter[str]] = {}
    for table, name, kind in read_table(run / "mask", "spans").select("table", "id", "kind").iter_rows():
        if (table, name) in read:
            masked_kinds.setdefault((table, name), Counter())[placeholder(kind, language)] += 1
    keys = list(drawn.select("doc_id", "query_id").iter_rows())
    kinds = (", ".join(f"{kind} {n}" for kind, n in sorted(masked_kinds.get(key, {}).items())) for key in keys)
    shown_texts = [[read[key], of_text] for key, of_text in zip(keys, kinds, strict=True)]
    return drawn.with_columns(
        ids=pl.concat_list("doc_id", "query_id"), texts=pl.Series(shown_texts, dtype=pl.List(pl.String))
    )


def long(sample: Sample) -> int:
    """Return the number of texts of a sample that are longer than a spreadsheet cell (`LIMIT` UTF-16 code units)."""
    return sum(len(row.texts[0].encode("utf-16-le", "surrogatepass")) > 2 * LIMIT for row in sample.rows.values())
