"""Audit of legacy labels against the panel's verdicts on the documents retrieved for each query.

Of the labelled pairs among the retrieved every one is confirmed, a false positive, contested or incomplete; every
retrieved pair without a label that the panel finds relevant is a false negative. So, for each query,

    original (retrieved) = confirmed + false positives + contested + incomplete
    judged positive      = confirmed + false negatives

Only what was retrieved is judged: both kinds of errors are lower bounds.
"""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import polars as pl

from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.records import AUDITED, TABLES
from curate.core.scale import Scale
from curate.panel.voting import PAIR
from curate.stats import ratios
from curate.stats.distribution import spread
from curate.stats.tally import Floats

MISSED = ("false negative", "duplicate", "same question")
"""Kinds of false negatives: a new document; one whose text a labelled document has too; and one whose text is labelled
for another query of the same text."""
COPIED = {"-": "text judged not relevant by all", "+": "text judged relevant"}
"""Sign of a patch -> its reason for a document that was not judged for a query, but whose text was."""


def compare(
    verdicts: pl.DataFrame, labels: pl.DataFrame, queries: pl.DataFrame, documents: pl.DataFrame
) -> pl.DataFrame:
    """Return the `compared` table: every judged pair and every label, sorted, each with its kind.

    `labels` are the set's positives; `queries` and `documents` name for every id (query_id, doc_id) the `first` one of
    the same text. Kinds of labelled pairs are confirmed, false positive, contested, incomplete and unretrieved; of
    others false negative, duplicate, same question, negative and undecided. What a cascade stopped counts as incomplete
    or undecided, for what the other judges would have said is not known. `same_as` is the labelled document of the same
    text, or else the query of the same text that the text is labelled for.
    """
    first = (queries.rename({"first": "query_first"}), documents.rename({"first": "doc_first"}))
    known = labels.join(first[0], on="query_id").join(first[1], on="doc_id")
    own = known.group_by("query_id", "doc_first").agg(own=pl.col("doc_id").min())
    twin = known.group_by("query_first", "doc_first").agg(twin=pl.col("query_id").min())
    pairs = (
        verdicts.select(*PAIR, "verdict", "votes")
        .join(labels.select(*PAIR, legacy=pl.lit(value=True)), on=PAIR, how="full", coalesce=True)
        .join(first[0], on="query_id", how="left")
        .join(first[1], on="doc_id", how="left")
        .join(own, on=["query_id", "doc_first"], how="left")
        .join(twin, on=["query_first", "doc_first"], how="left")
        .with_columns(pl.col("legacy").fill_null(value=False))
    )
    relevant, missed = pl.col("verdict") == "relevant", pl.coalesce("own", "twin")
    kind = (
        pl.when("legacy").then(_labelled()).when(relevant & pl.col("own").is_not_null()).then(pl.lit("duplicate"))
        .when(relevant & pl.col("twin").is_not_null()).then(pl.lit("same question"))
        .when(relevant).then(pl.lit("false negative"))
        .when(pl.col("verdict") == "not relevant").then(pl.lit("negative"))
        .otherwise(pl.lit("undecided"))
    )  # fmt: skip
    same_as = pl.when(relevant & ~pl.col("legacy")).then(missed)
    return pairs.with_columns(kind=kind, same_as=same_as).select(*TABLES["compared"]).sort(PAIR)


def _labelled() -> pl.Expr:
    """Return the kind of a labelled pair."""
    known = {"relevant": "confirmed", "not relevant": "false positive", "contested": "contested"}
    verdict = pl.col("verdict").replace_strict(known, default="incomplete", return_dtype=pl.String)
    return pl.when(pl.col("verdict").is_null()).then(pl.lit("unretrieved")).otherwise(verdict)


def count(compared: pl.DataFrame, queries: Sequence[str]) -> pl.DataFrame:
    """Return the `audited` table, a row per query in the order given; DataError if its counts do not add up."""
    is_ = {name: pl.col("kind") == name for name in (*MISSED, "confirmed", "false positive", "contested", "incomplete")}
    sums = {
        "labels": pl.col("legacy"),
        "original": pl.col("legacy") & (pl.col("kind") != "unretrieved"),
        "judged_positive": pl.col("verdict") == "relevant",
        "confirmed": is_["confirmed"],
        "false_positives": is_["false positive"],
        "contested": is_["contested"],
        "incomplete": is_["incomplete"],
        "false_negatives": pl.col("kind").is_in(list(MISSED)),
        "duplicates": is_["duplicate"],
        "same_question": is_["same question"],
        "undecided": pl.col("kind") == "undecided",
        "unretrieved": pl.col("kind") == "unretrieved",
    }
    counted = compared.group_by("query_id").agg(**{name: each.sum() for name, each in sums.items()})
    found = (
        pl.DataFrame({"query_id": list(queries)}, {"query_id": pl.String})
        .join(counted, on="query_id", how="left", maintain_order="left")
        .with_columns(pl.col(AUDITED).fill_null(0).cast(pl.Int32))
    )
    _check(found)
    return found


def _check(counts: pl.DataFrame) -> None:
    """Raise DataError if the accounting of a query does not hold."""
    parts = pl.sum_horizontal("confirmed", "false_positives", "contested", "incomplete")
    wrong = counts.filter(
        (pl.col("original") != parts)
        | (pl.col("judged_positive") != pl.col("confirmed") + pl.col("false_negatives"))
        | (pl.col("labels") != pl.col("original") + pl.col("unretrieved"))
    )
    if len(wrong):
        raise DataError(
            f"audit: the counts of {len(wrong)} queries do not add up, the first is {wrong['query_id'][0]!r}; "
            "run `curate consensus --force`, then `curate audit`"
        )


def mean(values: Floats, seed: int) -> tuple[float, float | None, float | None]:
    """Return the mean of a value per query with its 95 % bootstrap interval over queries, if there are two or more."""
    found = ratios.mean(values, np.arange(len(values)), seed)
    assert found is not None  # there is a query
    return found.value, found.low, found.high


def measures(counts: pl.DataFrame, seed: int) -> dict[str, Json]:
    """Return measure -> total, mean per query with its interval (low, high), and how it spreads over queries."""
    found: dict[str, Json] = {}
    for name in AUDITED:
        figures = mean(counts[name].to_numpy().astype(np.float64), seed)
        bounds = (None if figure is None else round(figure, 5) for figure in figures)
        found[name] = {
            "total": int(counts[name].sum()),
            **dict(zip(("mean", "low", "high"), bounds, strict=True)),
            "spread": asdict(spread(counts[name].to_list())),
        }
    return found


def patch(compared: pl.DataFrame, documents: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """Return the `patch` table: what to take from the labels (-) and to add to them (+), sorted, with the reason.

    A label goes only if every judge of the panel said "not relevant". What is said of a text is said of all documents
    that have it: those that no retriever found are patched too, and `same_as` names the one that was judged.
    """
    grades = pl.col("votes").list.eval(pl.element().struct.field("grade"))
    against = grades.list.eval(pl.element().is_not_null() & ~pl.element().is_in(list(scale.relevant))).list.all()
    gone = (pl.col("kind") == "false positive") & against & (grades.list.len() > 0)
    sign = pl.when(gone).then(pl.lit("-")).when(pl.col("kind").is_in(list(MISSED))).then(pl.lit("+"))
    judged = compared.with_columns(sign=sign).filter(pl.col("sign").is_not_null())
    reason = (
        pl.when(pl.col("sign") == "-").then(pl.lit("judged not relevant by all"))
        .when(pl.col("kind") == "duplicate").then(pl.lit("judged relevant; text of a labelled document"))
        .when(pl.col("kind") == "same question").then(pl.lit("judged relevant; labelled for the same question"))
        .otherwise(pl.lit("judged relevant"))
    )  # fmt: skip
    columns = ["sign", *PAIR, "reason", "grades", "same_as"]
    named = judged.with_columns(reason=reason, grades=_said()).select(columns)
    return pl.concat([named, _copies(named, compared, documents).select(columns)]).sort(*PAIR)


def _said() -> pl.Expr:
    """Return what every judge said, as text: one=S two=A."""
    judge, grade = (pl.element().struct.field(name) for name in ("judge", "grade"))
    return pl.col("votes").list.eval(pl.concat_str(judge, grade, separator="=")).list.join(" ")


def _copies(named: pl.DataFrame, compared: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Return patches of documents that were not judged for a query, but whose text was: as `named`, or confirmed."""
    labelled = compared.filter("legacy").select(*PAIR, legacy=pl.lit(value=True))
    judged = compared.filter(pl.col("verdict").is_not_null())
    confirmed = compared.filter(pl.col("kind") == "confirmed").select(*PAIR, sign=pl.lit("+"), grades=_said())
    said = pl.concat([named, confirmed], how="diagonal")
    by_text = said.join(documents, on="doc_id").unique(["query_id", "first"], keep="first", maintain_order=True)
    several = documents.filter(pl.col("first").is_duplicated()).rename({"doc_id": "copy"})
    copies = (
        by_text.join(several, on="first")
        .with_columns(same_as="doc_id", doc_id="copy")
        .join(judged, on=PAIR, how="anti")
        .join(labelled, on=PAIR, how="left")
    )
    gone = pl.col("sign") == "-"
    return copies.filter(gone == pl.col("legacy").fill_null(value=False)).with_columns(
        reason=pl.when(gone).then(pl.lit(COPIED["-"])).otherwise(pl.lit(COPIED["+"]))
    )


def sizes(patches: pl.DataFrame) -> dict[str, Json]:
    """Return the lines of a patch: `added`, `removed`, and how many of each are of documents that only share a text.

    Those were not retrieved, so they are in no count: with them more labels are removed than there are false positives.
    """
    signs = {"added": "+", "removed": "-"}
    found: dict[str, Json] = {name: int((patches["sign"] == sign).sum()) for name, sign in signs.items()}
    copied = {f"{name}_copies": int((patches["reason"] == COPIED[sign]).sum()) for name, sign in signs.items()}
    return {**found, **copied}


def repaired(labels: pl.DataFrame, patches: pl.DataFrame, relevant_from: int) -> pl.DataFrame:
    """Return the labels (query_id, doc_id, score) after a patch, sorted, on the scale of the set.

    `labels` are all of the set, those below `relevant_from` too, which stay. What is added has that score, the weakest
    that means relevant; it takes the place of a lower one.
    """
    gone, new = (patches.filter(pl.col("sign") == sign).select(PAIR) for sign in "-+")
    added = new.join(labels.filter(pl.col("score") >= relevant_from), on=PAIR, how="anti")
    added = added.with_columns(score=pl.lit(relevant_from, pl.Int32))
    kept = labels.select(*PAIR, pl.col("score").cast(pl.Int32))
    kept = kept.join(pl.concat([gone, added.select(PAIR)]), on=PAIR, how="anti")
    return pl.concat([kept, added]).sort(PAIR)
