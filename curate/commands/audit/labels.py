"""Audit of original labels (column `legacy`) by the panel's verdicts on the documents retrieved for each query.

A retrieved pair with a label is confirmed, a false positive, contested or incomplete. A retrieved pair without a label
that the panel finds relevant is a false negative. So, for each query,

    original (retrieved) = confirmed + false positives + contested + incomplete
    judged positive      = confirmed + false negatives

Only retrieved pairs are judged, so both kinds of errors are lower bounds.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from curate.core.errors import DataError
from curate.core.figures import Record, figure
from curate.core.records import AUDITED, TABLES
from curate.core.scale import Scale
from curate.panel.voting import PAIR
from curate.stats import ratios
from curate.stats.distribution import Spread, spread
from curate.stats.tally import Floats

MISSED = ("false negative", "duplicate", "same question")
"""Kinds of false negatives: `duplicate` is a copy of a document labelled for this query, `same question` a document
labelled for another query of the same text, `false negative` any other document."""
COPIED = {"-": "text judged not relevant by all", "+": "text judged relevant"}
"""Sign of a patch row (- removes, + adds a label) -> its reason, if the document is an unjudged copy of a judged
one."""


def compare(
    verdicts: pl.DataFrame, labels: pl.DataFrame, queries: pl.DataFrame, documents: pl.DataFrame
) -> pl.DataFrame:
    """Return the `compared` table: every judged pair and every label, sorted, each with its kind.

    `labels` are the original positives; `queries` and `documents` map every id (query_id, doc_id) to the `first` id of
    the same text. Kinds of labelled pairs: confirmed, false positive, contested, incomplete, unretrieved. Kinds of
    other pairs: false negative, duplicate, same question, negative, undecided. Pairs on which a cascade skipped judges
    are incomplete or undecided, since these judges' votes are unknown. `same_as` is the labelled document of the same
    text, else the query of the same text for which the document is labelled.
    """
    first = (queries.rename({"first": "query_first"}), documents.rename({"first": "doc_first"}))
    labels_by_text = labels.join(first[0], on="query_id").join(first[1], on="doc_id")
    copies = labels_by_text.group_by("query_id", "doc_first").agg(own=pl.col("doc_id").min())
    twins = labels_by_text.group_by("query_first", "doc_first").agg(twin=pl.col("query_id").min())
    pairs = (
        verdicts.select(*PAIR, "verdict", "votes")
        .join(labels.select(*PAIR, legacy=pl.lit(value=True)), on=PAIR, how="full", coalesce=True)
        .join(first[0], on="query_id", how="left")
        .join(first[1], on="doc_id", how="left")
        .join(copies, on=["query_id", "doc_first"], how="left")
        .join(twins, on=["query_first", "doc_first"], how="left")
        .with_columns(pl.col("legacy").fill_null(value=False))
    )
    relevant, labelled_as = pl.col("verdict") == "relevant", pl.coalesce("own", "twin")
    kind_by_verdict = {"relevant": "confirmed", "not relevant": "false positive", "contested": "contested"}
    judged_kind = pl.col("verdict").replace_strict(kind_by_verdict, default="incomplete", return_dtype=pl.String)
    labelled_kind = pl.when(pl.col("verdict").is_null()).then(pl.lit("unretrieved")).otherwise(judged_kind)
    kind = (
        pl.when("legacy").then(labelled_kind).when(relevant & pl.col("own").is_not_null()).then(pl.lit("duplicate"))
        .when(relevant & pl.col("twin").is_not_null()).then(pl.lit("same question"))
        .when(relevant).then(pl.lit("false negative"))
        .when(pl.col("verdict") == "not relevant").then(pl.lit("negative"))
        .otherwise(pl.lit("undecided"))
    )  # fmt: skip
    same_as = pl.when(relevant & ~pl.col("legacy")).then(labelled_as)
    return pairs.with_columns(kind=kind, same_as=same_as).select(*TABLES["compared"]).sort(PAIR)


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
    counted = compared.group_by("query_id").agg(**{name: condition.sum() for name, condition in sums.items()})
    counts = (
        pl.DataFrame({"query_id": list(queries)}, {"query_id": pl.String})
        .join(counted, on="query_id", how="left", maintain_order="left")
        .with_columns(pl.col(AUDITED).fill_null(0).cast(pl.Int32))
    )
    _check_accounting(counts)
    return counts


def _check_accounting(counts: pl.DataFrame) -> None:
    """Raise DataError if the counts of a query contradict the equations in the module's docstring."""
    kinds_sum = pl.sum_horizontal("confirmed", "false_positives", "contested", "incomplete")
    wrong = counts.filter(
        (pl.col("original") != kinds_sum)
        | (pl.col("judged_positive") != pl.col("confirmed") + pl.col("false_negatives"))
        | (pl.col("labels") != pl.col("original") + pl.col("unretrieved"))
    )
    if len(wrong):
        raise DataError(
            f"audit: the counts of {len(wrong)} queries do not add up, the first is {wrong['query_id'][0]!r}; "
            "run `curate consensus --force`, then `curate audit`"
        )


def mean(values: Floats, seed: int) -> tuple[float, float | None, float | None]:
    """Return the mean of a value per query and its 95 % bootstrap interval over queries (None for a single query)."""
    estimate = ratios.mean(values, np.arange(len(values)), seed)
    assert estimate is not None  # there is a query
    assert estimate.value is not None
    return estimate.value, estimate.low, estimate.high


class AuditMeasure(Record, schema_name="measure"):
    """A count per query."""

    total: int = figure("sum over all queries")
    mean: float | None = figure("mean per query")
    low: float | None = figure("lower bound of its 95 % interval, a bootstrap over queries")
    high: float | None = figure("upper bound of the 95 % interval")
    spread: Spread = figure("distribution over queries")


class PatchSizes(Record, schema_name="patch"):
    """Labels that the patch adds and removes."""

    added: int = figure("labels that are added")
    added_copies: int = figure("added labels of unjudged documents with the text of a judged one")
    removed: int = figure("labels that are removed")
    removed_copies: int = figure("removed labels of unjudged documents with the text of a judged one")


def measures(counts: pl.DataFrame, seed: int) -> dict[str, AuditMeasure]:
    """Return measure -> its count per query."""
    by_measure = {}
    for name in AUDITED:
        figures = mean(counts[name].to_numpy().astype(np.float64), seed)
        average, low, high = (None if bound is None else round(bound, 5) for bound in figures)
        by_measure[name] = AuditMeasure(int(counts[name].sum()), average, low, high, spread(counts[name].to_list()))
    return by_measure


def patch(compared: pl.DataFrame, documents: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """Return the `patch` table: labels to remove (-) and to add (+), sorted, with the reason.

    A label is removed only if every judge graded the pair as not relevant. A judgement applies to all documents with
    the same text: copies that no retriever found are patched, too, with the judged document as `same_as`.
    """
    grades = pl.col("votes").list.eval(pl.element().struct.field("grade"))
    against = grades.list.eval(pl.element().is_not_null() & ~pl.element().is_in(list(scale.relevant))).list.all()
    is_removed = (pl.col("kind") == "false positive") & against & (grades.list.len() > 0)
    sign = pl.when(is_removed).then(pl.lit("-")).when(pl.col("kind").is_in(list(MISSED))).then(pl.lit("+"))
    judged = compared.with_columns(sign=sign).filter(pl.col("sign").is_not_null())
    reason = (
        pl.when(pl.col("sign") == "-").then(pl.lit("judged not relevant by all"))
        .when(pl.col("kind") == "duplicate").then(pl.lit("judged relevant; text of a labelled document"))
        .when(pl.col("kind") == "same question").then(pl.lit("judged relevant; labelled for the same question"))
        .otherwise(pl.lit("judged relevant"))
    )  # fmt: skip
    columns = ["sign", *PAIR, "reason", "grades", "same_as"]
    patches = judged.with_columns(reason=reason, grades=_grades_as_text()).select(columns)
    return pl.concat([patches, _copies(patches, compared, documents).select(columns)]).sort(*PAIR)


def _grades_as_text() -> pl.Expr:
    """Return the grades of all judges as text, such as `one=S two=A`."""
    judge, grade = (pl.element().struct.field(name) for name in ("judge", "grade"))
    return pl.col("votes").list.eval(pl.concat_str(judge, grade, separator="=")).list.join(" ")


def _copies(patches: pl.DataFrame, compared: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Return patches for unjudged copies of documents that are patched or confirmed."""
    labelled = compared.filter("legacy").select(*PAIR, legacy=pl.lit(value=True))
    judged = compared.filter(pl.col("verdict").is_not_null())
    confirmed = compared.filter(pl.col("kind") == "confirmed").select(*PAIR, sign=pl.lit("+"), grades=_grades_as_text())
    judgements = pl.concat([patches, confirmed], how="diagonal")
    by_text = judgements.join(documents, on="doc_id").unique(["query_id", "first"], keep="first", maintain_order=True)
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


def sizes(patches: pl.DataFrame) -> PatchSizes:
    """Return the numbers of patch rows, and among them of unjudged copies.

    No other count of the audit includes these copies, so more labels may be removed than there are false positives.
    """
    rows, copies = (
        {sign: int((patches[column] == key).sum()) for sign, key in keys.items()}
        for column, keys in (("sign", {"+": "+", "-": "-"}), ("reason", COPIED))
    )
    return PatchSizes(rows["+"], copies["+"], rows["-"], copies["-"])


def repaired(labels: pl.DataFrame, patches: pl.DataFrame, relevant_from: int) -> pl.DataFrame:
    """Return the labels (query_id, doc_id, score) after a patch, sorted, on the original labels' scale.

    `labels` are all original labels; those below `relevant_from`, the lowest relevant score, are retained. An added
    label has the score `relevant_from` and replaces a lower one.
    """
    removed, new = (patches.filter(pl.col("sign") == sign).select(PAIR) for sign in "-+")
    added = new.join(labels.filter(pl.col("score") >= relevant_from), on=PAIR, how="anti")
    added = added.with_columns(score=pl.lit(relevant_from, pl.Int32))
    retained = labels.select(*PAIR, pl.col("score").cast(pl.Int32))
    retained = retained.join(pl.concat([removed, added.select(PAIR)]), on=PAIR, how="anti")
    return pl.concat([retained, added]).sort(PAIR)
