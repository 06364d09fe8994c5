"""Figures of a set of labelled texts: classes, what the panel said of each, and what was left out."""

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


def dropped(made: LabelSet) -> pl.DataFrame:
    """Return the table `dropped`: texts with a label that are in no split, by reason."""
    sides = made.texts.sides
    rows = (
        {"table": sides[item], "id": item, "stage": "label", "reason": reason}
        for item, reason in made.texts.dropped.items()
    )
    return frame("dropped", rows).sort("table", "id")


def facts(made: LabelSet, table: pl.DataFrame, panel: Sequence[str]) -> dict[str, Json]:
    """Return the figures of the set; a text is planned for every one with a label."""
    agreed = confirmed(table)
    return {
        "planned": len(made.texts.sides),
        "built": table.height,
        "dropped": made.texts.reasons,
        "origin": ", ".join(made.texts.origins),
        "panel": list(panel),
        "class_names": made.classes,
        "classes": _classes(table, agreed, panel),
        "left_out": dict(sorted(made.texts.left_out.items())),
        "splits": {split: table.filter(pl.col("split") == split).height for split in ("train", "test")},
        "groups": table["group"].n_unique(),
        "largest_group": max(Counter(table["group"]).values()),
        "verdicts": {name: count for name in VERDICTS if (count := table.filter(pl.col("verdict") == name).height)},
        "confirmed": {"texts": agreed.height, "classes": agreed["label"].n_unique()},
        "leak": made.leak,
    }


def _classes(table: pl.DataFrame, agreed: pl.DataFrame, panel: Sequence[str]) -> list[Json]:
    """Return a row per class: texts by split, groups, and where a panel was asked its verdicts and agreement."""
    published = Counter(agreed["label"])
    alike = positive_agreement(table, panel)
    return [
        {
            "class": label,
            "texts": own.height,
            **{split: own.filter(pl.col("split") == split).height for split in ("train", "test")},
            "groups": own["group"].n_unique(),
            **(_panel(own) | {"published": published[label], "agreement": alike.get(label)} if panel else {}),
        }
        for label in sorted(table["label"].unique())
        for own in [table.filter(pl.col("label") == label)]
    ]


def _panel(own: pl.DataFrame) -> dict[str, Json]:
    said = Counter(own["verdict"])
    return {name: said[name] for name in VERDICTS[:4]} | {"kept": said["confirmed"] / own.height}


def positive_agreement(table: pl.DataFrame, panel: Sequence[str]) -> dict[str, float | None]:
    """Return class -> chance that another judge chooses it for a text if one does; nothing for fewer than two judges.

    A kappa of classes that differ in size says little of one of them.
    """
    if len(panel) < 2:
        return {}
    votes: list[Mapping[str, str]] = [
        {vote["judge"]: vote["answer"] for vote in each if vote["answer"] not in NONE} for each in table["votes"]
    ]
    names = sorted({*table["label"], *(answer for vote in votes for answer in vote.values())})
    place = {name: at for at, name in enumerate(names)}
    codes = [[place.get(vote.get(judge, ""), -1) for judge in panel] for vote in votes]
    return dict(zip(names, measure(codes, len(names)).specific, strict=True))
