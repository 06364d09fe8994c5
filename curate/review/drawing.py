"""Draw the sample of pairs that experts check: who reads what, in which order, with which controls.

A row shows no judge, grade, verdict or stratum, and a planted control looks like any other row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import polars as pl

from curate import survey
from curate.errors import ConfigError, DataError
from curate.files import frame, read_table
from curate.records import GRADES, shown
from curate.review.answers import ADJUDICATED, checked
from curate.review.sample import Design, Sample, Stratum, name_row
from curate.sampling import generator, shuffled
from curate.voting import PAIR

CONTROLS = 0.02
"""Planted controls for each row of a sample, if a user says nothing."""
Keys = tuple[str, str]


@dataclass(frozen=True)
class Order:
    """What a user wants checked; ConfigError unless it can be done."""

    name: str = "expert"
    size: int | None = None
    margin: float | None = None
    """Half width of the 95 % interval of the agreement that is wanted, instead of a size."""
    assessors: Sequence[str] = ("assessor",)
    overlap: float = 0.0
    """Share of the rows that a second person reads too."""
    controls: int | None = None
    """How many random documents are planted; None for `CONTROLS` of the size."""
    known: Path | None = None
    """A table of pairs whose grade is known (query_id, doc_id, grade), which are planted too."""
    seed: int = 0
    language: str = "zh"

    def __post_init__(self) -> None:
        if (self.size is None) == (self.margin is None):
            raise ConfigError("review: expected either --size N or --margin M, such as --size 5000 or --margin 0.01")
        if not self.assessors or len(set(self.assessors)) < len(self.assessors):
            raise ConfigError(f"--assessors: expected different names, found {', '.join(self.assessors) or 'none'}")
        for person in (self.name, *self.assessors):
            checked(person)
        if ADJUDICATED in self.assessors:
            raise ConfigError(f"--assessors: {ADJUDICATED!r} is kept for final answers; choose another name")
        if not 0 <= self.overlap <= 1 or (self.overlap and len(self.assessors) < 2):
            raise ConfigError(f"--overlap: expected 0 to 1 and two assessors or more, found {self.overlap}")
        if self.controls is not None and self.controls < 0:
            raise ConfigError(f"--controls: expected 0 or more, found {self.controls}")


@dataclass(frozen=True)
class _Drawn:
    """A row before it has a place and a reader."""

    keys: Keys
    stratum: str | None = None
    probability: float | None = None
    verdict: str | None = None
    votes: list[dict[str, str | None]] = field(default_factory=list)
    expected: str | None = None


def plan(run: Path, order: Order) -> tuple[pl.DataFrame, survey.Plan]:
    """Return every judged pair of a run with its stratum, and the design of a sample of them; nothing is written."""
    verdicts, pool = read_table(run / "consensus", "verdicts"), read_table(run / "pool", "pool")
    named = survey.strata(verdicts, pool)
    if named.is_empty():
        raise DataError(f"{run}: no pair was judged, so there is nothing to check; run `curate judge` first")
    sizes = survey.counts(named)
    guesses = survey.guesses(sizes)
    size = order.size or survey.needed(sizes, guesses, order.margin or 0, of=survey.decided(sizes))
    return named, survey.anticipated(sizes, guesses, survey.allocate(sizes, guesses, size))


def draw(run: Path, order: Order) -> Sample:
    """Draw a sample of a run and freeze it in `reviews/NAME`; the same order of the same run draws the same rows."""
    folder = run / "reviews" / order.name
    Sample.refuse(folder)
    named, planned = plan(run, order)
    drawn = survey.draw(named, {each.stratum: each.drawn for each in planned.strata}, order.seed).join(
        read_table(run / "consensus", "verdicts").select(*PAIR, "verdict", "votes"), on=PAIR
    )
    rows = [
        _Drawn((row["query_id"], row["doc_id"]), row["stratum"], row["probability"], row["verdict"], row["votes"])
        for row in drawn.sort(PAIR).iter_rows(named=True)
    ]
    count = round(CONTROLS * len(rows)) if order.controls is None else order.controls
    rows += [*_strangers(run, count, order.seed), *_known(order.known)]
    facts = {"controls": len(rows) - len(drawn), "margin": order.margin}
    design = Design(
        order.name,
        "relevance",
        order.language,
        order.seed,
        tuple(order.assessors),
        [Stratum(each.stratum, each.size, each.drawn) for each in planned.strata],
        order.overlap,
        facts,
    )
    sample = Sample(folder, design, frame("survey", _placed(run, rows, order)))
    sample.freeze()
    return sample


def _placed(run: Path, rows: Sequence[_Drawn], order: Order) -> Iterator[dict[str, object]]:
    """Yield the rows of the survey in reading order: a query's pairs stand together, queries and pairs by chance."""
    queries, passages = _texts(run, rows)
    place = {name: at for at, name in enumerate(shuffled(sorted(queries), order.seed, "review", "queries"))}
    mixed = shuffled(rows, order.seed, "review", "rows")
    mixed.sort(key=lambda row: place[row.keys[0]])
    readers = _readers(mixed, order)
    for number, (row, people) in enumerate(zip(mixed, readers, strict=True), start=1):
        texts = [queries[row.keys[0]], passages[row.keys[1]]]
        yield {
            **asdict(row),
            "row_id": name_row(order.name, number, row.keys, texts),
            "ids": row.keys,
            "texts": texts,
            "assessors": people,
        }


def _readers(rows: Sequence[_Drawn], order: Order) -> Iterator[list[str]]:
    """Yield who reads each row, first whose answer counts: equal shares by chance, a second one for the overlap.

    Everybody reads the controls.
    """
    people, count = list(order.assessors), len(order.assessors)
    drawn = [at for at, row in enumerate(rows) if row.expected is None]
    deal = iter(shuffled([number % count for number in range(len(drawn))], order.seed, "review", "assessors"))
    twice = set(generator(order.seed, "review", "overlap").sample(drawn, round(order.overlap * len(drawn))))
    for at, row in enumerate(rows):
        if row.expected is not None:
            yield people
            continue
        turn = next(deal)
        yield [people[turn], *([people[(turn + 1) % count]] if at in twice else [])]


def _strangers(run: Path, count: int, seed: int) -> list[_Drawn]:
    """Return controls that should be graded D: a query and a random document that no retriever pooled for it."""
    if not count:
        return []
    documents = pl.scan_parquet(run / "diversify" / "corpus.parquet").select("doc_id").collect()["doc_id"].to_list()
    pooled = set(read_table(run / "pool", "pool").select(PAIR).iter_rows())
    queries = sorted({query for query, _ in pooled})
    chance = generator(seed, "review", "controls")
    found: dict[Keys, None] = {}
    for _ in range(100 * count):
        pair = (chance.choice(queries), chance.choice(documents))
        if pair not in pooled:
            found[pair] = None
        if len(found) == count:
            break
    return [_Drawn(pair, expected="D") for pair in found]


def _known(path: Path | None) -> list[_Drawn]:
    """Return the pairs of a file of known grades; DataError unless it is such a table."""
    if path is None:
        return []
    try:
        table = pl.read_csv(path, separator="\t" if path.suffix == ".tsv" else ",", infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: cannot be read as a table; expected columns query_id, doc_id, grade") from error
    lacking = [name for name in (*PAIR, "grade") if name not in table.columns]
    if lacking:
        raise DataError(f"{path}: found no column {', '.join(lacking)}, expected query_id, doc_id, grade")
    for line, grade in enumerate(table["grade"], start=2):
        if grade not in GRADES:
            raise DataError(f"{path}, line {line}: found the grade {grade!r}, expected one of {', '.join(GRADES)}")
    return [_Drawn((query, doc), expected=grade) for query, doc, grade in table.select(*PAIR, "grade").iter_rows()]


def _texts(run: Path, rows: Sequence[_Drawn]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of the queries and passages of rows; only their documents are read into memory."""
    queries = dict(read_table(run / "diversify", "queries").select("query_id", "text").iter_rows())
    wanted = pl.Series(sorted({row.keys[1] for row in rows}))
    corpus = pl.scan_parquet(run / "diversify" / "corpus.parquet").filter(pl.col("doc_id").is_in(wanted.implode()))
    texts = corpus.select("doc_id", "title", "text").collect().iter_rows()
    passages = {doc_id: shown(title, text) for doc_id, title, text in texts}
    for query, doc in (row.keys for row in rows):
        if query not in queries or doc not in passages:
            raise DataError(f"{run}: no text of the pair {query}, {doc}; a known pair must be of this run's texts")
    return {query: queries[query] for query in {row.keys[0] for row in rows}}, passages
