"""Markdown tables of an evaluation: scores of models and baselines, and distances to the best baseline."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Figures = Mapping[str, Any]
REMOVED = "in doubt @10, which condensing removes"
SPEED = "queries per second"
LEADS = {"stock": "stock", "condensed": "condensed", "median": "median grade"}
"""Scoring of contested pairs -> column heading."""


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows with the same columns as a Markdown table; None is shown as a dash."""
    heads = list(rows[0])
    cells = [["–" if row[head] is None else str(row[head]) for head in heads] for row in rows]
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def marked(name: str, mark: str) -> str:
    """Return a model's name, followed by its mark (circular, floor or shortcut) in brackets, if any."""
    return f"{name} ({mark})" if mark else name


def speed(figure: float | None) -> str | None:
    """Return texts per second as a whole number; None stays None."""
    return None if figure is None else f"{figure:,.0f}"


def ranged(figure: Mapping[str, Any] | None, factor: float = 100, digits: int = 2) -> str | None:
    """Return a figure times `factor` with its interval, such as `87.60 (80.12 to 93.40)`; None if it is undefined."""
    if figure is None or figure["value"] is None:
        return None
    text = f"{factor * figure['value']:.{digits}f}"
    if figure["low"] is None:
        return text
    return f"{text} ({factor * figure['low']:.{digits}f} to {factor * figure['high']:.{digits}f})"


def scores(task: Figures) -> Iterator[dict[str, object]]:
    """Yield one row per model and baseline, best first; the main scoring is the first column."""
    further_measures = list(dict.fromkeys(name for result in task["scores"] for name in result["beside"]))
    for result in sorted([*task["scores"], *task["floors"]], key=lambda row: -row["lead"]):
        mark, name = "**" if result["best"] else "", marked(result["model"], result.get("floor", ""))
        name = marked(name, "circular") if result["model"] in task["circular"] else name
        first = "linear gain" if task["graded"] else LEADS[task["lead"]]
        row: dict[str, object] = {
            "model": name,
            first: f"{mark}{ranged(result[task['lead']]) or 'not defined'}{mark}",
        }
        row |= {
            name: ranged(result["beside"].get(name), 1, 0)  # a number of sources, no score
            if name.startswith("sources")
            else ranged(result["beside"].get(name))
            for name in further_measures
        }
        if task["graded"]:
            row |= {"exponential gain": ranged(result["exponential"]), "mean of grades": ranged(result["mean"])}
        if task["verdicts"]:
            others = () if task["graded"] else ("stock", "condensed", "optimistic")
            row |= {name: ranged(result[name]) for name in others if name != task["lead"]}
            shares = {REMOVED: result["doubtful_at_10"], "never judged @10": result["holes_at_10"]}
            row |= {name: None if share is None else f"{100 * share:.1f} %" for name, share in shares.items()}
        yield row | {SPEED: speed(result["queries_a_second"])}


def against_floors(task: Figures, what: str) -> Iterator[str]:
    """Yield the lines on the best baseline and the models' distances to it; nothing without baselines."""
    against = task["against_floors"]
    if not against:
        return
    best = f"`{against['best']}` ({100 * against['score']:.2f})"
    yield f"\n### Against floors and shortcuts\n\nThe best of them is the {against['sort']} {best}.\n"
    yield table(
        [
            {
                "model": model["model"],
                "less it": ranged(model),
                "above it": "yes" if model["above"] else "**no**",
                f"what {task['queries']:,} {what} would show": f"{100 * model['smallest']:.2f}"
                if model["smallest"] is not None
                else None,
            }
            for model in against["models"]
        ]
    )
    yield (
        "\nA floor knows nothing of the texts, a shortcut only their surface. A model is above them where the paired "
        "95 % interval lies above 0; the last column is the distance that would be shown in 80 of 100 cases."
    )
