"""Figures of notes for people: a row per measure, a column per encoder, in the terminal and in Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curate.view.page_tables import table

Figures = Mapping[str, Any]
NAMES = {
    "card": "card",
    "card_own_out": "card, own text out",
    "next": "next",
    "group": "group",
    "auroc_disjoint": "AUROC, folds by group",
    "auroc_random": "AUROC, random folds",
    "auroc_leak": "leak (random less by group)",
    "silhouette_label": "silhouette of the label",
    "silhouette_style": "silhouette of the style",
    "silhouette_delta": "silhouette, label less style",
}


def shown_name(row: Figures) -> str:
    """Return a measure as people read it."""
    name = NAMES[row["figure"]]
    return name if row["at"] is None else f"{name} @{row['at']}"


def overview(found: Figures) -> list[dict[str, object]]:
    """Return one row per measure: every model's figure with its interval, the floors', and the ceiling of card.

    Of floors, whose vectors often tie, recalls are those by chance.
    """
    names = {each["model"]: each["model"] + (" (floor)" if each["floor"] else "") for each in found["models"]}
    floors = {each["model"] for each in found["models"] if each["floor"]}
    rows: dict[str, dict[str, object]] = {}
    for each in found["figures"]:
        row = rows.setdefault(shown_name(each), {"measure": shown_name(each)})
        row[names[each["model"]]] = _floor(each) if each["model"] in floors else _ranged(each)
    tops = {shown_name(each): each["ceiling"] for each in found["figures"] if each["ceiling"] not in (None, 1)}
    if not tops:
        return list(rows.values())
    return [{**row, "at most": f"{tops[name]:.3f}" if name in tops else None} for name, row in rows.items()]


def _floor(row: Figures) -> str | None:
    value = row["value"] if row["by_chance"] is None else row["by_chance"]
    return None if value is None else f"{value:.3f}"


def apart(found: Figures) -> list[dict[str, object]]:
    """Return one row per measure and pair of models."""
    return [
        {
            "measure": shown_name(each),
            "models": f"{each['one']} less {each['other']}",
            "difference": _ranged(each),
            "shown": "yes" if each["low"] is not None and each["low"] > 0 else "no",
        }
        for each in found["differences"]
    ]


def head(found: Figures) -> str:
    """Return what was read in one sentence."""
    columns = ", ".join(f"{name} in {column}" for name, column in found["columns"].items())
    counts = f"{found['texts']:,} texts of {found['groups']:,} groups, {found['pairs']:,} pairs in {found['chains']:,}"
    return f"{found['table']}: {counts} chains; {columns}"


def undefined(found: Figures) -> Iterator[str]:
    """Yield why measures are not defined, a sentence per reason."""
    reasons: dict[str, list[str]] = {}
    for name, why in found["undefined"].items():
        reasons.setdefault(why, []).append(NAMES[name])
    yield from (f"not defined: {', '.join(names)}: {why}" for why, names in reasons.items())


def readme(found: Figures) -> str:
    """Return the page that lies beside the figures."""
    parts = ["# Embeddings of notes", head(found)]
    if found["figures"]:
        parts += [table(overview(found)), _method(found)]
    if found["differences"]:
        parts += ["## Differences between models", table(apart(found))]
    lines = [*undefined(found), *found["notes"], *exported(found)]
    parts += ["## To be known", "\n".join(f"- {line}" for line in lines)] if lines else []
    return "\n\n".join(parts) + "\n"


def exported(found: Figures) -> Sequence[str]:
    """Return what was exported, a sentence per task, and what was masked before; nothing without an export."""
    made = found["export"]
    if made is None:
        return []
    masked = ", ".join(f"{kind} {count:,}" for kind, count in made["masked"].items()) or "nothing"
    tasks = [f"{each['task']}: {each['rows']}" for each in made["tasks"]]
    left = [f"{made['residual']:,} places still look like personal data: read them before it leaves the house"]
    return [f"masked before the export: {masked}", *(left if made["residual"] else []), *tasks, *made["notes"]]


def _method(found: Figures) -> str:
    return (
        "Recall at a depth, with 95 % intervals that resample groups, 1,000 times. A rank is 1 + the number of "
        "candidates that are strictly more similar. *card*: the next texts of all pairs are the candidates, the "
        "query's own text among them. *next*: its group is left out but for the true next. *group*: all texts but its "
        "own, and any of the group counts. AUROC: macro mean over labels of logistic regression, "
        f"{found['folds']} folds, {found['seeds']} seeds. Silhouettes by cosine distance; a text's own is kept in "
        "every resample. Differences, and the recalls of floors, count ties by chance."
    )


def _ranged(row: Figures) -> str | None:
    if row["value"] is None:
        return None
    shown = f"{row['value']:.3f}"
    return shown if row["low"] is None else f"{shown} ({row['low']:.3f} to {row['high']:.3f})"
