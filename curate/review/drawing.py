"""Draw a sample of a run and freeze it with the texts that judges and assessors see."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count as count_from
from pathlib import Path

import polars as pl

from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.core.records import FILTERED, TABLES, shown
from curate.core.sampling import generator, shuffled
from curate.core.scale import FIVE, Scale
from curate.panel import audit_design, sampling_design
from curate.panel.voting import PAIR
from curate.review import audit_correction, planning
from curate.review.desk import ADJUDICATED, checked, desks, relevance_desks
from curate.review.planning import of_scores, wanted
from curate.review.sample import OF_SOME, Design, Sample, Stratum, name_row
from curate.review.sheets.files import fold
from curate.system.files import read_meanings, read_positives, read_scale, read_table
from curate.view.state import TWICE


def texts(run: Path, doc_ids: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return query id -> text of all queries of a run, and document id -> passage of `doc_ids` only."""
    return _texts(run / FILTERED, doc_ids)


def _texts(diversified: Path, doc_ids: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    queries = dict(read_table(diversified, "queries").select("query_id", "text").iter_rows())
    needed_ids = pl.Series(sorted(set(doc_ids)), dtype=pl.String)
    corpus = pl.scan_parquet(diversified / "corpus.parquet").filter(pl.col("doc_id").is_in(needed_ids.implode()))
    rows = corpus.select("doc_id", "title", "text").collect().iter_rows()
    return queries, {doc_id: shown(title, text) for doc_id, title, text in rows}


def outdated(sample: Sample, diversified: Path) -> set[tuple[str, str]]:
    """Return the pairs of a sample whose texts changed, or are gone, since it was drawn.

    `diversified` is the folder of the stage with the current texts.
    """
    rows = [(*ids, *read) for ids, read in sample.survey.select("ids", "texts").iter_rows()]
    queries, passages = _texts(diversified, (row[1] for row in rows))
    return {(query, doc) for query, doc, *read in rows if [queries.get(query), passages.get(doc)] != read}


# Draw the sample of pairs that experts check: who reads what, in which order, with which controls.

CONTROLS = 0.02
"""Default number of planted controls per row of a sample."""


def default_overlap(rows: int) -> float:
    """Return the share of the drawn rows that two assessors read by default: `TWICE` or 10 %, whichever is more."""
    return min(max(TWICE / rows, 0.1), 1.0) if rows else 0.0


@dataclass(frozen=True)
class SampleOptions:
    """Options of a sample; ConfigError if they contradict each other."""

    name: str = "expert"
    size: int | None = None
    target: str | None = None
    """Purpose of the sample, one of `planning.TARGETS`, of an audit `fp`; None for the default, or for `margins`."""
    margins: Sequence[str] = ()
    """Requested half widths of 95 % intervals, instead of a size, as typed: `0.01` or `precision=0.02`."""
    assessors: Sequence[str] = ("assessor",)
    overlap: float | None = None
    """Share of the rows that a second assessor reads, too; None for `default_overlap` with two assessors or more."""
    controls: int | None = None
    """Number of planted controls, pairs with a random document; None for `CONTROLS` times the size."""
    known: Path | None = None
    """File of pairs with known grades (query_id, doc_id, grade) to plant as further controls."""
    seed: int = 0
    language: str = "zh"
    of: str = "labels"
    """Object of the review: the run's `labels`, its `audit` of original labels, `scores`, or a task type's name."""
    results: Path | None = None
    """Folder of the evaluation whose models' top tens are sampled; only for `scores`."""

    def __post_init__(self) -> None:
        if (self.size is None) == (not self.margins):
            raise ConfigError("review: expected either --size N or --margin M, such as --size 5000 or --margin 0.01")
        if self.of == "audit" and self.size is None:
            raise ConfigError("--of: found 'audit' without --size, expected both; give --size N")
        if self.of_items:
            self._check_items()
        self._check_aims()
        folded = [fold(person) for person in self.assessors]
        if not folded or len(set(folded)) < len(folded):
            raise ConfigError(
                f"--assessors: expected names that differ by more than case or width, found "
                f"{', '.join(self.assessors) or 'none'}"
            )
        checked(self.name, "sample")
        for person in self.assessors:
            checked(person)
        if ADJUDICATED in folded:
            raise ConfigError(f"--assessors: {ADJUDICATED!r} is kept for final answers; choose another name")
        if self.overlap is not None and (not 0 <= self.overlap <= 1 or (self.overlap and len(self.assessors) < 2)):
            raise ConfigError(f"--overlap: expected 0 to 1 and two assessors or more, found {self.overlap}")
        if self.controls is not None and self.controls < 0:
            raise ConfigError(f"--controls: expected 0 or more, found {self.controls}")

    def _check_aims(self) -> None:
        """Raise ConfigError for a target or a margin that is invalid or does not fit `of`."""
        if self.of == "scores" and self.target is not None:
            raise ConfigError(
                f"--target: found {self.target!r} with --for-scores, whose figures are scores of models; leave it out"
            )
        if self.of == "audit" and self.target not in (None, audit_design.FP):
            raise ConfigError(
                f"--target: found {self.target!r} with --of audit, expected {audit_design.FP} or none; leave out "
                "--target, for false negatives and false positives"
            )
        if self.of == "scores":
            of_scores(self.margins)
        elif self.of != "audit":
            wanted(self.target, self.margins)

    @property
    def of_items(self) -> bool:
        """Return whether a task type's items are reviewed instead of judged pairs."""
        return self.of not in ("labels", "audit", *OF_SOME)

    def _check_items(self) -> None:
        """Raise ConfigError for options that need judged pairs: a sample of items only estimates precision."""
        options = {"--controls": self.controls is not None, "known": self.known is not None}
        if odd := next((option for option, is_set in options.items() if is_set), None):
            raise ConfigError(
                f"{odd}: pairs of query and document are planted, but --of {self.of} has none; leave it out"
            )
        figures = [margin.rpartition("=")[0].strip() for margin in self.margins]
        for figure in (*figures, self.target):
            if figure not in (None, "", "precision"):
                raise ConfigError(
                    f"--of {self.of}: found {figure!r}, but only precision can be estimated; leave it out"
                )

    def share_twice(self, rows: int) -> float:
        """Return the share of the drawn rows that a second assessor reads, too."""
        if self.overlap is not None:
            return self.overlap
        return default_overlap(rows) if len(self.assessors) > 1 else 0.0

    @property
    def aims(self) -> dict[str, float | None]:
        """Return the figures that the sample is drawn for, with their margins; empty for an audit or for scores."""
        if self.of in ("audit", "scores"):
            return {}
        return wanted("precision" if self.of_items else self.target, self.margins)


def plan(run: Path, order: SampleOptions) -> tuple[pl.DataFrame, planning.SamplePlan]:
    """Return every judged pair of a run with its stratum, and the design of a sample of them; nothing is written."""
    if not read_scale(run / "judge").relevant:
        raise ConfigError(
            f"{run}: its judges' grades are nominal, but a sample goes by labels that are relevant or not; "
            "judge with a rubric that has relevant_from"
        )
    stratified = _strata(run, order)
    if stratified.is_empty():
        raise DataError(f"{run}: no pair was judged, so there is nothing to check; run `curate judge` first")
    sizes = sampling_design.counts(stratified)
    if order.of == "audit":
        guesses = planning.guesses(sizes, ())
        shares = {name: guess for name, (guess, _) in guesses.items()}
        drawn = audit_design.allocate(sizes, shares, order.size or 0, order.target)
        queries = read_table(run / FILTERED, "queries")["query_id"].to_list()
        widths = audit_correction.expected_widths(stratified, shares, drawn, queries, order.seed)
        planned = planning.anticipated(sizes, guesses, drawn, {})
        return stratified, replace(planned, audit=widths, notes=_reading(widths, sizes, len(queries)))
    guesses = planning.guesses(sizes, relevance_desks(run))
    shares = {name: guess for name, (guess, _) in guesses.items()}
    size = order.size or planning.needed(sizes, shares, {name: margin or 0 for name, margin in order.aims.items()})
    drawn = planning.allocate(sizes, shares, size, order.aims)
    return stratified, planning.anticipated(sizes, guesses, drawn, order.aims)


def _reading(widths: audit_correction.AuditWidths, sizes: Mapping[str, int], queries: int) -> tuple[str, ...]:
    """Return the sentence on the answers that a half width of the false negatives needs."""
    if widths.rest_answers is None:
        return ()
    pairs, half_width = sizes[audit_design.REST], 0.5
    needed = min(math.ceil(widths.rest_answers / half_width), pairs)
    sentence = (
        f"a half width h of the false negatives per query needs about 3.7 x {pairs:,} / ({queries:,} h) answers in the "
        f"stratum {audit_design.REST!r}: {needed:,} for {half_width}"
    )
    return (sentence,)


def _strata(run: Path, order: SampleOptions) -> pl.DataFrame:
    """Return every judged pair with its stratum: by verdict, grades and rank, or for an audit by the original label."""
    verdicts = read_table(run / "consensus", "verdicts")
    if order.of == "labels":
        return sampling_design.strata(verdicts, read_table(run / "pool", "pool"), read_scale(run / "judge"))
    labels = read_positives(read_table(run / FILTERED, "qrels"), run / "ingest")
    if labels.is_empty():
        raise DataError(
            f"{run}: found no legacy label, expected a run of `curate audit`; give --run, or leave out --of"
        )
    by_design, by_cell = audit_correction.frames(verdicts, labels, run / "pool", read_scale(run / "judge"))
    return by_cell if order.target == audit_design.FP else by_design


def draw(run: Path, order: SampleOptions) -> Sample:
    """Draw a sample of a run and freeze it in `reviews/NAME`; the same options and run give the same rows."""
    Sample.refuse(run / "reviews" / order.name)
    stratified, planned = plan(run, order)
    drawn = sampling_design.draw(stratified, {entry.stratum: entry.drawn for entry in planned.strata}, order.seed)
    strata = [Stratum(entry.stratum, entry.size, entry.drawn) for entry in planned.strata]
    return frozen(run, order, drawn, strata, {"aims": dict(planned.aims), "of": order.of})


def frozen(
    run: Path, order: SampleOptions, drawn: pl.DataFrame, strata: Sequence[Stratum], extra_facts: Mapping[str, Json]
) -> Sample:
    """Write drawn pairs (query_id, doc_id, stratum, probability) with planted controls as a sample, and return it.

    `extra_facts` are stored in its design next to the number of controls. ConfigError if there are fewer pairs for
    controls than `order.controls`.
    """
    scale, meanings = read_scale(run / "judge"), read_meanings(run / "judge")
    verdicts = read_table(run / "consensus", "verdicts").select(*PAIR, "verdict", "votes")
    planned = round(CONTROLS * len(drawn)) if order.controls is None else order.controls
    strangers = _random_controls(run, planned, order.seed, scale.labels[-1])
    if order.controls is not None and len(strangers) < order.controls:
        raise ConfigError(
            f"--controls: found {len(strangers)} pairs with a document of no pool, expected {planned}; ask for fewer"
        )
    controls = pl.concat([strangers, known(order.known, scale)])
    controls = controls.unique(
        PAIR, keep="last", maintain_order=True
    )  # a repeated row would reveal that it is a control
    controls = controls.join(drawn, on=PAIR, how="anti", maintain_order="left")
    rows = pl.concat([drawn.join(verdicts, on=PAIR, how="left", maintain_order="left"), controls], how="diagonal")
    facts: dict[str, Json] = {"controls": len(controls), "random": len(strangers), "planned": planned, **extra_facts}
    question = SampleQuestion.of_grades(scale, meanings)
    return freeze(run / "reviews" / order.name, question, order, strata, placed(with_texts(run, rows), order), facts)


def no_controls(design: Design) -> str | None:
    """Return a sentence on why a sample has no controls; None if it has some, or its kind has none."""
    if design.facts.get("controls") != 0:
        return None
    planned = design.facts.get("planned")  # older samples do not say
    why = ": every document is in the pool of its query" if planned else ": none were asked for" if planned == 0 else ""
    return f"no controls were planted{why}; nothing shows how carefully people read"


def free_seed(run: Path, of: str, seed: int) -> int:
    """Return the first seed from `seed` on that no sample of the run of the same object has.

    With the seed of an earlier sample its rows would be drawn again.
    """
    drawn = {review.sample.design.seed for review in desks(run) if review.sample.design.facts.get("of") == of}
    return next(number for number in count_from(seed) if number not in drawn)


@dataclass(frozen=True)
class SampleQuestion:
    """What assessors are asked of every row of a sample."""

    form: str
    """Name of a form of forms.yaml."""
    scale: Scale | None = None
    """None for the default scale of five grades."""
    meanings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of_grades(cls, scale: Scale, meanings: Mapping[str, Mapping[str, str]]) -> "SampleQuestion":
        """Return the question how relevant a passage is to its query, on the scale of the judges' rubric."""
        return cls("relevance", None if scale == FIVE else scale, meanings)


def freeze(
    folder: Path,
    question: SampleQuestion,
    order: SampleOptions,
    strata: Sequence[Stratum],
    rows: pl.DataFrame,
    facts: Mapping[str, Json],
) -> Sample:
    """Write a sample and return it: the strata of its frame, the question, and drawn rows in reading order.

    `rows` has ids, texts, stratum and probability, and may have `expected` (planted controls), verdict and votes.
    UserError if the folder holds a sample.
    """
    survey = dealt(rows, order)
    design = Design(
        order.name,
        question.form,
        order.language,
        order.seed,
        tuple(order.assessors),
        strata,
        order.share_twice(survey["expected"].null_count()),
        facts,
        None if question.scale is None else question.scale.to_json(),
        question.meanings,
    )
    sample = Sample(folder, design, survey)
    sample.freeze()
    return sample


def placed(rows: pl.DataFrame, order: SampleOptions) -> pl.DataFrame:
    """Return pairs with ids and texts in reading order: grouped by query, queries and pairs in random order.

    A sample for models' scores is shuffled across queries, so that the rows read so far are always a random sample.
    """
    names = rows["query_id"].to_list()
    rank_of = {
        name: number for number, name in enumerate(shuffled(sorted(set(names)), order.seed, "review", "queries"))
    }
    mixed = shuffled(range(len(rows)), order.seed, "review", "rows")
    if order.of != "scores":
        mixed.sort(key=lambda index: rank_of[names[index]])
    return rows[mixed].with_columns(ids=pl.concat_list(PAIR), texts=pl.concat_list("query", "passage"))


def dealt(rows: pl.DataFrame, order: SampleOptions) -> pl.DataFrame:
    """Return the survey of rows in reading order, with ids and texts: row names and readers added."""
    without = {
        "expected": pl.lit(None, pl.String),
        "verdict": pl.lit(None, pl.String),
        "votes": pl.lit([], TABLES["survey"]["votes"]),
    }
    rows = rows.with_columns(**{name: value for name, value in without.items() if name not in rows.columns})
    keys = rows.select("ids", "texts").iter_rows()
    return rows.with_columns(
        row_id=pl.Series(
            [name_row(order.name, number, *key) for number, key in enumerate(keys, start=1)], dtype=pl.String
        ),
        assessors=pl.Series(list(readers(rows["expected"].to_list(), order)), dtype=pl.List(pl.String)),
    ).select(*TABLES["survey"])


def readers(expected: Sequence[str | None], order: SampleOptions) -> Iterator[list[str]]:
    """Yield the assessors of each row, first the one whose answer counts.

    Drawn rows are dealt at random in equal numbers; a random share of them (`share_twice`) gets a second assessor.
    Controls, the rows with an `expected` answer, are read by everybody.
    """
    people, count = list(order.assessors), len(order.assessors)
    drawn = [index for index, answer in enumerate(expected) if answer is None]
    deal = iter(shuffled([number % count for number in range(len(drawn))], order.seed, "review", "assessors"))
    second_reads = round(order.share_twice(len(drawn)) * len(drawn))
    twice = set(generator(order.seed, "review", "overlap").sample(drawn, second_reads))
    for index, answer in enumerate(expected):
        if answer is not None:
            yield people
            continue
        turn = next(deal)
        yield [people[turn], *([people[(turn + 1) % count]] if index in twice else [])]


def _random_controls(run: Path, count: int, seed: int, worst: str) -> pl.DataFrame:
    """Return random controls, expected to get the worst grade: a query and a document outside the query's pool.

    Fewer than `count` if few such pairs are found.
    """
    pooled = read_table(run / "pool", "pool").select(PAIR)
    queries = pooled["query_id"].unique().sort().to_list()
    documents = pl.scan_parquet(run / FILTERED / "corpus.parquet").select("doc_id").collect()["doc_id"]
    chance = generator(seed, "review", "controls")
    tries = [(chance.choice(queries), documents[chance.randrange(len(documents))]) for _ in range(20 * count)]
    candidates = pl.DataFrame(tries, dict.fromkeys(PAIR, pl.String), orient="row").unique(maintain_order=True)
    return (
        candidates.join(pooled, on=PAIR, how="anti", maintain_order="left")
        .head(count)
        .with_columns(expected=pl.lit(worst))
    )


def known(path: Path | None, scale: Scale) -> pl.DataFrame:
    """Return query_id, doc_id and `expected` (grade) from a csv or tsv file of known grades; DataError if invalid.

    No rows if `path` is None.
    """
    if path is None:
        return pl.DataFrame(schema=dict.fromkeys((*PAIR, "expected"), pl.String))
    try:
        table = pl.read_csv(path, separator="\t" if path.suffix == ".tsv" else ",", infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: cannot be read as a table; expected columns query_id, doc_id, grade") from error
    lacking = [name for name in (*PAIR, "grade") if name not in table.columns]
    if lacking:
        raise DataError(f"{path}: found no column {', '.join(lacking)}, expected query_id, doc_id, grade")
    grades = [scale.read(grade or "") for grade in table["grade"]]
    for line, (grade, grade_read) in enumerate(zip(table["grade"], grades, strict=True), start=2):
        if grade_read is None:
            raise DataError(
                f"{path}, line {line}: found the grade {grade!r}, expected one of {', '.join(scale.labels)}"
            )
    for line, first in enumerate(table.select(first=pl.struct(PAIR).is_first_distinct())["first"], start=2):
        if not first:
            raise DataError(
                f"{path}, line {line}: found a pair for the second time, expected a row per pair; leave one out"
            )
    return table.select(*PAIR, expected=pl.Series(grades, dtype=pl.String))


def with_texts(run: Path, rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with the columns `query` and `passage`, as judges saw them; DataError for a pair without texts."""
    queries, passages = texts(run, rows["doc_id"])
    read = {"query": ("query_id", queries), "passage": ("doc_id", passages)}
    filled = rows.with_columns(
        pl.Series(name, [known_texts.get(key) for key in rows[column]], dtype=pl.String)
        for name, (column, known_texts) in read.items()
    )
    for query, doc in filled.filter(pl.any_horizontal(pl.col("query", "passage").is_null())).select(PAIR).iter_rows():
        raise DataError(f"{run}: no text of the pair {query}, {doc}; a known pair must be of this run's texts")
    return filled
