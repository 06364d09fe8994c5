"""Figures of a set of labelled texts: classes, verdicts of the panel, and excluded texts."""

from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from curate.commands.label.building import LabelSet
from curate.core.config import Json
from curate.llm.recorded_votes import NONE
from curate.stats.agreement import measure
from curate.system.files import frame
from curate.tables.kinds.labelled import confirmed

VERDICTS = ("confirmed", "contested", "rejected", "incomplete", "unconfirmed")


def dropped(label_set: LabelSet) -> pl.DataFrame:
    """Return the table `dropped`: labelled texts in no split, with the reason."""
    sides = label_set.texts.sides
    rows = (
        {"table": sides[item_id], "id": item_id, "stage": "label", "reason": reason}
        for item_id, reason in label_set.texts.dropped.items()
    )
    return frame("dropped", rows).sort("table", "id")


def facts(label_set: LabelSet, table: pl.DataFrame, panel: Sequence[str]) -> dict[str, Json]:
    """Return the figures of the set; every labelled text counts as planned."""
    agreed = confirmed(table)
    return {
        "planned": len(label_set.texts.sides),
        "built": table.height,
        "dropped": label_set.texts.reasons,
        "origin": ", ".join(label_set.texts.origins),
        "panel": list(panel),
        "class_names": label_set.classes,
        "classes": _classes(table, agreed, panel),
        "left_out": dict(sorted(label_set.texts.left_out.items())),
        "splits": {split: table.filter(pl.col("split") == split).height for split in ("train", "test")},
        "groups": table["group"].n_unique(),
        "largest_group": max(Counter(table["group"]).values()),
        "verdicts": {name: count for name in VERDICTS if (count := table.filter(pl.col("verdict") == name).height)},
        "confirmed": {"texts": agreed.height, "classes": agreed["label"].n_unique()},
        "leak": label_set.leak,
    }


def _classes(table: pl.DataFrame, agreed: pl.DataFrame, panel: Sequence[str]) -> list[Json]:
    """Return a row per class: texts by split, groups, and with a panel also verdicts and agreement."""
    published = Counter(agreed["label"])
    agreement_by_class = positive_agreement(table, panel)
    return [
        {
            "class": label,
            "texts": class_rows.height,
            **{split: class_rows.filter(pl.col("split") == split).height for split in ("train", "test")},
            "groups": class_rows["group"].n_unique(),
            **(
                _panel(class_rows) | {"published": published[label], "agreement": agreement_by_class.get(label)}
                if panel
                else {}
            ),
        }
        for label in sorted(table["label"].unique())
        for class_rows in [table.filter(pl.col("label") == label)]
    ]


def _panel(class_rows: pl.DataFrame) -> dict[str, Json]:
    verdicts = Counter(class_rows["verdict"])
    return {name: verdicts[name] for name in VERDICTS[:4]} | {"kept": verdicts["confirmed"] / class_rows.height}


def positive_agreement(table: pl.DataFrame, panel: Sequence[str]) -> dict[str, float | None]:
    """Return class -> positive specific agreement: the chance that a second judge chooses it if one does.

    Empty for fewer than two judges. A kappa over classes of different size says little about one of them.
    """
    if len(panel) < 2:
        return {}
    votes: list[Mapping[str, str]] = [
        {vote["judge"]: vote["answer"] for vote in text_votes if vote["answer"] not in NONE}
        for text_votes in table["votes"]
    ]
    names = sorted({*table["label"], *(answer for vote in votes for answer in vote.values())})
    code_by_class = {name: code for code, name in enumerate(names)}
    codes = [[code_by_class.get(vote.get(judge, ""), -1) for judge in panel] for vote in votes]
    return dict(zip(names, measure(codes, len(names)).specific, strict=True))
