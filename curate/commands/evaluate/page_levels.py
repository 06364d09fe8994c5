"""Sections of an evaluation's page on its labels: levels that people's answers correct, and contested pairs."""

from collections.abc import Iterator, Mapping, Sequence

from curate.view.page_tables import LEADS, Figures, table

MEASURES = {"precision_at_10": "P@10", "scaled_dcg_at_10": "scaled DCG@10"}
SHOWN = 20
"""Differences in a table, at most."""
WHOLE = "read whole"
"""What stands for the p of a difference that no unread pair can change."""
WHY_NOT = (
    "nDCG and MAP are not corrected: they divide by the number of all relevant documents, which nobody has counted."
)


def levels(task: Figures) -> Iterator[str]:
    """Yield the section on corrected scores; nothing on a task without pairs in doubt, or that no sample is of."""
    if not task["verdicts"]:
        return
    found = task["levels"]
    if not found and not task["judged"]:
        return
    yield "\n### Levels\n"
    if not found:
        yield (
            "No level: nobody has read what these models found, so no score above says how good a model is, only which "
            "is better. `curate review export --for-scores` draws the pairs to read."
        )
        return
    yield table([_level(row) for row in found["models"]])
    strata = "; ".join(f"{row['stratum']} {row['read']:,} of {row['pairs']:,}" for row in found["strata"])
    yield (
        f"\nShares of the first ten documents that people find relevant, corrected by the sample `{found['sample']}`: "
        f"{found['read']:,} answers to the {found['pairs']:,} pairs of the top tens ({strata}). ± is half of a 95 % "
        "interval, for these queries and for new ones of the same kind; scaled DCG is discounted gain over that of ten "
        f"relevant documents. {_over(task)}{WHY_NOT}"
    )
    if found["pairs_of_models"]:
        yield "\n### Corrected differences\n"
        yield from _differences(found["pairs_of_models"])


def labellings(task: Figures) -> Iterator[str]:
    """Yield the section on contested pairs and how alike the readings of them order the models."""
    if not task["contested"]:
        return
    share, lost = task["contested"], task["undecided"]
    yield "\n### Contested pairs\n"
    yield (
        f"The panel contests {share['pairs']:,} of {share['judged']:,} judged pairs ({100 * share['share']:.1f} %). "
        f"Every score is over the {task['queries']:,} queries that are scored under every labelling; {lost:,} judged "
        f"{'query has' if lost == 1 else 'queries have'} no relevant document by the published labels and "
        f"{'is' if lost == 1 else 'are'} in none."
    )
    if task["orders"]:
        yield "\nHow alike they order the models (1: alike, -1: reversed):\n"
        yield table(
            [
                {
                    "order by": LEADS[row["one"]],
                    "and by": LEADS[row["other"]],
                    "τ-b": _figure(row["tau_b"]),
                    "τ_AP": _figure(row["tau_ap"]),
                }
                for row in task["orders"]
            ]
        )


def _over(task: Figures) -> str:
    """Return over which queries a level is the mean, where some that were judged are in none; else nothing."""
    if not (lost := task["undecided"]):
        return ""
    those = "1 judged query" if lost == 1 else f"{lost:,} judged queries"
    return (
        f"They are means over the {task['queries']:,} queries that are scored: {those} without one by the published "
        f"labels {'is' if lost == 1 else 'are'} in none. "
    )


def _level(row: Figures) -> dict[str, object]:
    cells: dict[str, object] = {"model": row["model"]}
    for measure, name in MEASURES.items():
        score = row[measure]
        cells[name] = _half(score, "half") if score else "none"
        cells[f"{name}, for new queries"] = _half(score, "new_queries") if score else None
    return cells | {"outside what was sampled": f"{100 * row['outside']:.1f} %" if row["outside"] else None}


def _differences(pairs: Sequence[Figures]) -> Iterator[str]:
    rows = sorted(pairs, key=lambda row: (row["measure"], row["p"] or 0.0, -row["value"]))
    for measure, name in MEASURES.items():
        mine = [row for row in rows if row["measure"] == measure]
        yield table(
            [
                {
                    f"better in {name}": row["one"],
                    "than": row["other"],
                    "by": _half(row, "half"),
                    "for new queries": _half(row, "new_queries"),
                    "p": WHOLE if row["p"] is None else f"{row['p']:.4f}",
                    "p by Holm": None if row["adjusted"] is None else f"{row['adjusted']:.4f}",
                }
                for row in mine[:SHOWN]
            ]
        )
        more = f"; the others are in evaluation.json ({len(mine):,} in all)" if len(mine) > SHOWN else ""
        exact = (
            f" A difference that was {WHOLE} is exact and has no p." if any(row["p"] is None for row in mine) else ""
        )
        yield f"\nThe clearest first{more}. p is of these queries; Holm over all pairs of models.{exact}\n"


def _half(figure: Mapping[str, float | None], half: str) -> str | None:
    value, width = figure["value"], figure[half]
    return None if value is None or width is None else f"{100 * value:.2f} ± {100 * width:.2f}"


def _figure(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"
