"""The texts that have a label, and the gate that they pass: one label each, long enough, and no two of them equal."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from curate.commands.label import Leak
from curate.core.config import Json
from curate.core.errors import ConfigError
from curate.core.records import shown
from curate.pipeline.stage import Context
from curate.retrieval.similarity.leaks import form
from curate.system.files import batches, there

SHORTEST = 5
"""Characters of a text, at least."""
LABELS, KEY = "labels", {"queries": "query_id", "corpus": "doc_id"}
GONE, SHORT = "its text was dropped as redundant", f"its text has fewer than {SHORTEST} characters"
SEVERAL = "it has several labels"
EQUAL, CONTRARY = "its text is that of another one", "its text is that of another one with another label"


@dataclass
class LabelledTexts:
    """Texts with one label each, and why others are not there."""

    rows: pl.DataFrame
    """item_id, side, text, label, `own` (the group that the input names, or null), sorted by item_id."""
    origins: tuple[str, ...] = ()
    dropped: dict[str, str] = field(default_factory=dict)
    """Item -> reason."""
    sides: dict[str, str] = field(default_factory=dict)
    """Item -> queries or corpus, of all that had a label."""
    left_out: dict[str, dict[str, Json]] = field(default_factory=dict)
    """Class -> why it is left out: `told` in English, and for words of other languages `rule` with its numbers."""

    def keep(self, kept: pl.Expr, reason: str) -> None:
        """Keep some of the rows, and note why the others are gone."""
        self.dropped |= dict.fromkeys(self.rows.filter(~kept)["item_id"], reason)
        self.rows = self.rows.filter(kept)

    def unequal(self) -> None:
        """Merge equal texts of one label into the first; drop those of several labels, and texts that are too short."""
        self.keep(pl.col("text").str.strip_chars().str.len_chars() >= SHORTEST, SHORT)
        self.rows = self.rows.with_columns(form=pl.col("text").map_elements(form, pl.String))
        self.keep(pl.col("label").n_unique().over("form") == 1, CONTRARY)
        self.keep(pl.col("form").is_first_distinct(), EQUAL)
        self.rows = self.rows.drop("form")

    @property
    def reasons(self) -> dict[str, int]:
        """Return reason -> number of texts, most frequent first."""
        return dict(sorted(Counter(self.dropped.values()).items(), key=lambda each: (-each[1], each[0])))


def need_labels(context: Context, leak: Leak) -> None:
    """Raise ConfigError where the pipeline names no labels, or keeps the words that its texts were searched by."""
    section = context.settings.get("ingest")
    if not isinstance(section, dict) or not section:
        return
    named = section.get(LABELS)
    if not isinstance(named, dict):
        raise ConfigError(
            "label: no labels; set ingest.labels, such as {path: labels.csv, columns: {id: id, label: class}}, or "
            "{side: corpus, columns: {label: COLUMN}} for a column of the documents"
        )
    refuse_searched([str(named.get("origin", ""))], leak)


def refuse_searched(origins: list[str], leak: Leak) -> None:
    """Raise ConfigError if texts that were found by the words of their label are to keep them."""
    if "search" in origins and leak == "keep":
        raise ConfigError(
            "label.leak: found keep, and the labels are the words that the texts were searched by (origin: search): "
            "each text holds its own; set label.leak to mask or drop"
        )


def read(context: Context, leak: Leak) -> LabelledTexts:
    """Return the texts that `diversify` kept with the one label that they have, and what was dropped on the way."""
    if not there(context.folder("mask"), LABELS):
        raise ConfigError("label: no labels; set ingest.labels, and run `curate ingest` again")
    labels = context.read("mask", LABELS)
    refuse_searched(labels["origin"].unique().to_list(), leak)
    one = labels.group_by("item_id", "side").agg(
        pl.col("label").n_unique().alias("several"), pl.col("label").first(), own=pl.col("group").drop_nulls().first()
    )
    texts = pl.concat(list(_texts(context, one)))
    rows = one.join(texts, on=["item_id", "side"], how="left").sort("side", "item_id")
    sides = dict(rows.select("item_id", "side").iter_rows())
    found = LabelledTexts(rows, tuple(labels["origin"].unique().sort()), sides=sides)
    found.keep(pl.col("text").is_not_null(), GONE)
    found.keep(pl.col("several") == 1, SEVERAL)
    found.unequal()
    found.rows = found.rows.select("item_id", "side", "text", "label", "own")
    return found


def _texts(context: Context, labels: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield item_id, side and text of labelled texts, title and text of documents as they are shown."""
    yield pl.DataFrame(schema={"item_id": pl.String, "side": pl.String, "text": pl.String})
    for side in labels["side"].unique().sort():
        wanted = labels.filter(pl.col("side") == side)
        for batch in batches(context.folder("diversify"), side):
            held = batch.join(wanted, left_on=KEY[side], right_on="item_id", how="semi")
            titles = held["title"] if "title" in held.columns else [""] * held.height
            whole = [shown(title, text) for title, text in zip(titles, held["text"], strict=True)]
            yield held.select(item_id=KEY[side], side=pl.lit(side), text=pl.Series(whole, dtype=pl.String))
