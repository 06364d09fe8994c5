"""Draw a sample of a run's masked texts for assessors to read.

It is stored in `checks/mask/N` of the run folder, with the texts as assessors read them. Strata are by table and by
whether a text has masked spans, so that the few texts with masked spans are represented.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import polars as pl

from curate.core.config import Json, digest
from curate.core.errors import ConfigError, DataError, UserError
from curate.core.records import shown
from curate.core.sampling import generator, shuffled
from curate.panel import sampling_design
from curate.pii.masking import placeholder
from curate.pipeline.pipeline import Pipeline
from curate.review import Sample
from curate.review.desk import checked
from curate.review.sample import Design, Stratum, name_row
from curate.review.sheets.files import LIMIT
from curate.system.files import frame, read_json, read_table

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
    for person in wish.assessors:
        checked(person)
    if len(set(wish.assessors)) < len(wish.assessors) or not wish.assessors:
        raise ConfigError("--assessors: expected different names, separated by commas")
    head = Pipeline.load(run / "pipeline.yaml").head
    seed = head.seed if wish.seed is None else wish.seed
    texts = _strata(run)
    if texts.is_empty():
        raise DataError(f"{run}: found no text after masking, expected some; run `curate mask` first")
    sizes = sampling_design.counts(texts)
    guesses = {name: _GUESSES[name.partition(", ")[2]] for name in sizes}
    size = max(wish.of(len(texts)), sum(min(EACH, n) for n in sizes.values()))
    drawn = sampling_design.allocate(sizes, guesses, size, EACH)
    last = newest(run)
    number = 1 + (int(last.folder.name) if last else 0)
    strata = [Stratum(name, size, drawn[name]) for name, size in sizes.items()]
    facts: dict[str, Json] = {"tables": state(run)}
    design = Design(f"mask-{number}", "privacy", head.language, seed, tuple(wish.assessors), strata, facts=facts)
    rows = _with_texts(run, _drawn(texts, drawn, seed), head.language)
    sample = Sample(run / "checks" / "mask" / str(number), design, _survey(rows, design))
    sample.freeze()
    return sample


def _strata(run: Path) -> pl.DataFrame:
    """Return table, id and stratum of every masked text of a run, sorted."""
    spans = read_table(run / "mask", "spans").select("table", "id").unique().with_columns(found=True)
    tables = [
        pl.scan_parquet(run / "mask" / f"{table}.parquet").select(table=pl.lit(table), id=pl.col(key)).collect()
        for table, key in _KEYS.items()
    ]
    texts = pl.concat(tables).join(spans, on=["table", "id"], how="left")
    kind = pl.when(pl.col("found")).then(pl.lit(MASKED)).otherwise(pl.lit(PLAIN))
    return texts.select("table", "id", stratum=pl.concat_str("table", kind, separator=", ")).sort("table", "id")


def state(run: Path) -> str:
    """Return a digest of the masked texts and spans of a run, to detect changes."""
    outputs = read_json(run / "mask" / "stage.json")["outputs"]
    return digest([outputs.get(f"{table}.parquet") for table in (*_KEYS, "spans")])


def _drawn(texts: pl.DataFrame, allocation: Mapping[str, int], seed: int) -> pl.DataFrame:
    """Return the sampled texts with their sampling probability, in random reading order."""
    sampled: list[int] = []
    rows = texts.with_row_index("at")
    for name, count in allocation.items():
        stratum_rows = rows.filter(pl.col("stratum") == name)["at"]
        sampled += generator(seed, "check", "mask", name).sample(stratum_rows.to_list(), count)
    sizes = sampling_design.counts(texts)
    chance = pl.col("stratum").replace_strict({name: count / sizes[name] for name, count in allocation.items()})
    reading_order = shuffled(sorted(sampled), seed, "check", "mask", "order")
    return rows[reading_order].drop("at").with_columns(probability=chance.cast(pl.Float64))


def _with_texts(run: Path, drawn: pl.DataFrame, language: str) -> list[dict[str, object]]:
    """Return the sampled rows with the texts that assessors read: the masked text, and kinds of PII with counts."""
    read: dict[tuple[str, str], str] = {}
    for table, key in _KEYS.items():
        sampled_ids = drawn.filter(pl.col("table") == table)["id"].implode()
        lazy = pl.scan_parquet(run / "mask" / f"{table}.parquet").filter(pl.col(key).is_in(sampled_ids))
        for row in lazy.collect().iter_rows(named=True):
            read[table, row[key]] = shown(row.get("title", ""), row["text"])
    masked_kinds: dict[tuple[str, str], Counter[str]] = {}
    for table, name, kind in read_table(run / "mask", "spans").select("table", "id", "kind").iter_rows():
        if (table, name) in read:
            masked_kinds.setdefault((table, name), Counter())[placeholder(kind, language)] += 1
    rows: list[dict[str, object]] = []
    for row in drawn.iter_rows(named=True):
        ids = (row["table"], row["id"])
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(masked_kinds.get(ids, {}).items()))
        design_columns = {name: row[name] for name in ("stratum", "probability")}
        rows.append({**design_columns, "ids": list(ids), "texts": [read[ids], kinds], "votes": []})
    return rows


def _survey(rows: Sequence[Mapping[str, object]], design: Design) -> pl.DataFrame:
    people = list(design.assessors)
    survey: list[dict[str, object]] = []
    for index, row in enumerate(rows):
        ids, texts = cast("list[str]", row["ids"]), cast("list[str]", row["texts"])
        name = name_row(design.name, index + 1, ids, texts)
        survey.append({**row, "row_id": name, "assessors": [people[index % len(people)]]})
    return frame("survey", survey)


def long(sample: Sample) -> int:
    """Return the number of texts of a sample that are longer than a spreadsheet cell (`LIMIT` UTF-16 code units)."""
    return sum(len(row.texts[0].encode("utf-16-le", "surrogatepass")) > 2 * LIMIT for row in sample.rows.values())
