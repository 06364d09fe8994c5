"""What the pages of a run show: a pair, a pool, a document, matrices of judges, results of a search."""

import csv
import io
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from curate.core.records import FILTERED, STATUSES, VERDICTS, shown
from curate.review.agreement import PairKappas, checked, with_people
from curate.review.desk import graded_desks, random_desks
from curate.system.files import read_json, read_table, there
from curate.web.filters import PAGE, PairFilter, grade
from curate.web.highlight import pieces
from curate.web.index import RunIndex
from curate.web.replies import JudgedTexts

PEOPLE = "assessors"
"""Name of assessors in files of matrices."""
EXCERPT = 120
"""Characters of a document in a list."""


@dataclass(frozen=True)
class JudgeGrade:
    """A judge's entry for a pair."""

    judge: str
    grade: str | None
    """A label, or a status such as `refused`; None if the judge was not asked."""

    @property
    def rated(self) -> bool:
        """Return whether the entry is a grade."""
        return self.grade is not None and self.grade not in (*STATUSES, "stopped")


@dataclass(frozen=True)
class ShownPair:
    """A pair with all that the run has on it."""

    query_id: str
    doc_id: str
    query: str
    title: str
    text: str
    """Text of the document, without its title."""
    pooled: bool
    position: int | None = None
    pool: int = 0
    """Number of documents in the query's pool."""
    verdict: str | None = None
    published: int | None = None
    overruled_by: str | None = None
    """Policy by which the label is not the panel's."""
    original: bool = False
    masked: bool = False
    hidden: bool = False
    ranks: Sequence[tuple[str, int | None]] = ()
    grades: Sequence[JudgeGrade] = ()
    assessors: Sequence[tuple[str, str]] = ()
    """(Assessor, grade), once the final answer is saved; with the sample behind the name if the pair is in several."""
    unseen: str = ""
    """End of the text that judges were not shown."""

    @property
    def marked(self) -> list[tuple[str, bool]]:
        """Return the text that judges were shown in pieces, as (text, whether it occurs in the query)."""
        return pieces(self.query, self.text.removesuffix(self.unseen) if self.unseen else self.text)


@dataclass(frozen=True)
class InList:
    """Place of a pair in a list, with its neighbours as (query id, document id)."""

    number: int
    total: int
    previous: tuple[str, str] | None
    following: tuple[str, str] | None


def verdict_counts(index: RunIndex) -> dict[str, int]:
    """Return verdict -> number of pairs, in the order of `VERDICTS`; `none` for pairs without one."""
    counts = dict(index.pairs["verdict"].value_counts(name="count").rows())
    return {verdict or "none": counts[verdict] for verdict in (*VERDICTS, None) if verdict in counts}


def pair(index: RunIndex, query_id: str, doc_id: str) -> ShownPair | None:
    """Return a query and a document of the run; None without one of them."""
    query, doc = index.query_rows.get(query_id), index.doc_row(doc_id)
    if query is None or doc is None:
        return None
    query_text = index.queries["text"][query]
    _, title, text = index.docs.row(doc)
    pool = index.pool(query)
    rows = pool.filter(pl.col("doc") == doc)
    if rows.is_empty():
        return ShownPair(query_id, doc_id, query_text, title, text, pooled=False, pool=len(pool))
    row = rows.row(0, named=True)
    hidden = not index.hidden.filter((pl.col("query") == query) & (pl.col("doc") == doc)).is_empty()
    return ShownPair(
        query_id,
        doc_id,
        query_text,
        title,
        text,
        pooled=True,
        position=row["position"],
        pool=len(pool),
        verdict=row["verdict"],
        published=row["published"],
        overruled_by=row["overruled_by"],
        original=row["original"],
        masked=row["masked"],
        hidden=hidden,
        ranks=[(name, row[f"rank:{name}"]) for name in index.retrievers],
        grades=[JudgeGrade(name, row[f"grade:{name}"]) for name in index.judges],
        assessors=[] if hidden else _assessors(index, query_id, doc_id),
        unseen=JudgedTexts(index.run, query_text, title, text).unseen,
    )


def _assessors(index: RunIndex, query_id: str, doc_id: str) -> list[tuple[str, str]]:
    answers = [
        (person, answer, review.sample.design.name)
        for review in graded_desks(index.run)
        for row, grades, _ in review.answered()
        if row["ids"] == [query_id, doc_id]
        for person, answer in grades.items()
    ]
    several = len({sample for *_, sample in answers}) > 1
    return [(f"{person}, {sample}" if several else person, answer) for person, answer, sample in answers]


def in_list(chosen: PairFilter, seen: ShownPair) -> InList | None:
    """Return the place of a pair in the filtered pairs, without a filter in its pool; None if it is not among them."""
    index = chosen.index
    query, doc = index.query_rows[seen.query_id], index.doc_row(seen.doc_id)
    pairs = (chosen.pairs if chosen.given else index.pool(query)).select("query", "doc")
    matching = pairs.with_row_index().filter((pl.col("query") == query) & (pl.col("doc") == doc))
    if matching.is_empty():
        return None
    row = int(matching["index"][0])
    return InList(row + 1, len(pairs), _ids(index, pairs, row - 1), _ids(index, pairs, row + 1))


def _ids(index: RunIndex, pairs: pl.DataFrame, row: int) -> tuple[str, str] | None:
    """Return the ids of a pair of a list; None beyond its ends."""
    if not 0 <= row < len(pairs):
        return None
    query, doc = pairs.row(row)
    return index.queries["query_id"][query], index.docs["doc_id"][doc]


def rows(index: RunIndex, pairs: pl.DataFrame, excerpt: int = EXCERPT) -> Iterator[dict[str, Any]]:
    """Yield pairs for a list: ids, the beginning of both texts, verdict, grades and ranks."""
    hidden = set(index.hidden.rows())
    for row in pairs.iter_rows(named=True):
        query, doc = row["query"], row["doc"]
        doc_id, title, text = index.docs.row(doc)
        yield {
            "query_id": index.queries["query_id"][query],
            "doc_id": doc_id,
            "query": index.queries["text"][query],
            "text": shown(title, text)[:excerpt],
            "verdict": row["verdict"],
            "hidden": (query, doc) in hidden,
            "grades": [JudgeGrade(name, row[f"grade:{name}"]) for name in index.judges],
            "ranks": [row[f"rank:{name}"] for name in index.retrievers],
        }


@dataclass(frozen=True)
class Matrix:
    """Grades of two judges, or of assessors and a judge, against each other."""

    first: str
    """Name of a judge; empty for assessors."""
    second: str
    counts: Sequence[Sequence[int]]
    """A row per label of the first judge, a column per label of the second."""
    kappa: float | None
    low: float | None
    high: float | None


def matrices(index: RunIndex) -> list[Matrix]:
    """Return a matrix per two judges, with their kappa: linear on an ordinal scale, else unweighted.

    Behind them, one per judge against assessors' final grades, if there are any, with `_people_kappas`.
    """
    order = "linear" if index.scale.order == "ordinal" else "nominal"
    path = index.run / "consensus" / "agreement.json"
    agreed = read_json(path)["all_grades"].get("pairs_of_raters") or [] if path.is_file() else []
    figures = {frozenset(entry["raters"]): entry for entry in agreed}
    pairs_of_judges = []
    for number, first in enumerate(index.judges):
        for second in index.judges[number + 1 :]:
            entry = figures.get(frozenset({first, second}), {})
            low, high = (entry.get("intervals") or {}).get(order) or (None, None)
            table = _counts(index, grade(first), grade(second))
            pairs_of_judges.append(Matrix(first, second, table, entry.get(order), low, high))
    if index.pairs["people"].is_null().all():
        return pairs_of_judges
    kappas = _people_kappas(index)
    for judge in index.judges:
        kappa = kappas[judge].grades if judge in kappas else None
        value, low, high = (kappa.value, kappa.low, kappa.high) if kappa else (None, None, None)
        pairs_of_judges.append(Matrix("", judge, _counts(index, pl.col("people"), grade(judge)), value, low, high))
    return pairs_of_judges


def _counts(index: RunIndex, first: pl.Expr, second: pl.Expr) -> list[list[int]]:
    """Return the numbers of pairs by two columns of grades, as of `Matrix.counts`."""
    labels, grouped = index.scale.labels, index.pairs.group_by(first=first, second=second).len()
    counts = {(one, two): count for one, two, count in grouped.rows()}
    return [[counts.get((one, two), 0) for two in labels] for one in labels]


def _people_kappas(index: RunIndex) -> Mapping[str, PairKappas]:
    """Return judge -> kappas with assessors in the newest random sample, weighted by stratum; none while it is read."""
    samples = random_desks(index.run)
    if not samples or not index.hidden.is_empty():
        return {}
    newest = max(samples, key=lambda answers: (answers.sample.folder / "design.json").stat().st_mtime)
    sizes = {stratum.name: stratum.size for stratum in newest.sample.design.strata}
    return with_people(newest, checked(newest), sizes).judges


def as_csv(labels: Sequence[str], of_judges: Sequence[Matrix]) -> str:
    """Return matrices as one table of CSV: a row per two judges and two grades."""
    stream = io.StringIO(newline="")
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(["first", "second", "grade of first", "grade of second", "pairs"])
    for matrix in of_judges:
        for label, counts in zip(labels, matrix.counts, strict=True):
            for other_label, count in zip(labels, counts, strict=True):
                table.writerow([matrix.first or PEOPLE, matrix.second, label, other_label, count])
    return stream.getvalue()


def as_latex(labels: Sequence[str], of_judges: Sequence[Matrix]) -> str:
    """Return matrices as tables of LaTeX, in which grades of the first judge are rows."""
    tables = []
    for matrix in of_judges:
        head = " & ".join(["", *map(_latex, labels)])
        rows = [
            " & ".join([_latex(label), *map(str, counts)]) for label, counts in zip(labels, matrix.counts, strict=True)
        ]
        body = " \\\\\n".join([head, *rows])
        caption = f"% {matrix.first or PEOPLE} (rows), {matrix.second} (columns)"
        tables.append(f"{caption}\n\\begin{{tabular}}{{l{'r' * len(labels)}}}\n{body} \\\\\n\\end{{tabular}}\n")
    return "\n".join(tables)


def _latex(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "&%$#_{}" else sign for sign in text)


# A document's whereabouts, and the search in texts.


@dataclass(frozen=True)
class Dropped:
    """Why a text is not in the run's final tables."""

    stage: str
    reason: str
    nearest: str | None


def dropped(index: RunIndex, table: str, name: str) -> Dropped | None:
    """Return why a query or document was dropped or merged; None if no stage says so."""
    for stage in ("ingest", "mask", FILTERED, "consensus"):
        folder = index.run / stage
        if there(folder, "dropped"):
            held = read_table(folder, "dropped").filter((pl.col("table") == table) & (pl.col("id") == name))
            for row in held.iter_rows(named=True):
                return Dropped(stage, row["reason"], row["nearest_id"])
        if there(folder, "aliases"):
            held = read_table(folder, "aliases").filter((pl.col("table") == table) & (pl.col("old_id") == name))
            for row in held.iter_rows(named=True):
                return Dropped(stage, "", row["kept_id"])
    return None


@dataclass(frozen=True)
class Found:
    """Texts that hold all words."""

    words: str
    page: int
    query_count: int
    doc_count: int
    queries: Sequence[tuple[str, str]]
    docs: Sequence[tuple[str, str]]
    """(Document id, beginning of title and text)."""

    @property
    def pages(self) -> int:
        """Return the number of pages of `PAGE` results."""
        return max(1, -(-max(self.query_count, self.doc_count) // PAGE))


def search(index: RunIndex, words: str, page: int = 1) -> Found:
    """Return the queries and documents that hold every word, ignoring case and width, in the order of the tables."""
    terms = words.split()
    if not terms:
        return Found(words, 1, 0, 0, (), ())
    in_query = pl.all_horizontal([_holds(pl.col("text"), word) for word in terms])
    in_doc = pl.all_horizontal([_holds(pl.col("title"), word) | _holds(pl.col("text"), word) for word in terms])
    queries = index.queries.lazy().filter(in_query).select("query_id", "text").collect()
    docs = index.docs.lazy().filter(in_doc).collect()
    begin = (page - 1) * PAGE
    return Found(
        words,
        page,
        len(queries),
        len(docs),
        queries.slice(begin, PAGE).rows(),
        [(name, shown(title, text)[:EXCERPT]) for name, title, text in docs.slice(begin, PAGE).rows()],
    )


def _holds(text: pl.Expr, word: str) -> pl.Expr:
    """Return whether texts hold a word in any case and width; half of a surrogate pair is in none."""
    narrow = unicodedata.normalize("NFKC", word)
    wide = "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in narrow)
    forms = {form for one in (word, narrow, wide) for form in (one, one.lower(), one.upper(), one.title())}
    spellings = sorted(form for form in forms if form.isprintable() or form.isspace())
    if not spellings or any("\ud800" <= sign <= "\udfff" for sign in word):
        return pl.lit(value=False)
    return text.str.contains_any(spellings, ascii_case_insensitive=True)
