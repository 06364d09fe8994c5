"""README.md of an evaluation: tables in Markdown, and charts as SVG files."""

import re
from collections.abc import Iterator, Mapping, Sequence

from curate.commands.evaluate import page_sections, provenance, query_sources
from curate.view import charts
from curate.view.page_tables import (
    LEADS,
    SPEED,
    Figures,
    against_floors,
    marked,
    ranged,
    scores,
    speed,
    table,
)

STYLE = (
    ".ground{fill:#fff} rect.bar{fill:#63b3a8} circle.bar{fill:#2b7f77} .axis{stroke:#1d2327} text{fill:#1d2327} "
    ".number{font-variant-numeric:tabular-nums}"
)


def files(summary: Figures) -> dict[str, str]:
    """Return file name -> text: `README.md` and its SVG charts."""
    pictures = dict(_pictures(summary))
    text = "\n".join([*_head(summary), *(line for task in summary["tasks"] for line in _task(task, pictures))])
    closing = [
        *_legacy(summary, pictures),
        *page_sections.averages_sections(summary),
        *_missed(summary["missed"]),
    ]
    if summary["notes"]:
        closing += ["\n## To be known before a figure is used\n", *(f"- {note}" for note in summary["notes"])]
    return {"README.md": f"{text}\n" + "\n".join(closing) + "\n", **pictures}


def overview(summary: Figures, bold: str = "**") -> list[dict[str, object]]:
    """Return one row per model and baseline: its score on every task (the best one in `bold`), and the mean."""
    floors = {row["model"]: row["floor"] for task in summary["tasks"] for row in task["floors"]}
    marks_by_model = [(model["model"], "circular" if model["circular"] else "") for model in summary["models"]]
    return [
        *(
            _table_line(name, mark, [task["scores"] for task in summary["tasks"]], summary["tasks"], bold)
            for name, mark in marks_by_model
        ),
        *(
            _table_line(name, mark, [task["floors"] for task in summary["tasks"]], summary["tasks"], bold)
            for name, mark in floors.items()
        ),
    ]


def _table_line(
    name: str, mark: str, rows: Sequence[Sequence[Figures]], tasks: Sequence[Figures], bold: str
) -> dict[str, object]:
    model_rows = [next((row for row in task_rows if row["model"] == name), None) for task_rows in rows]
    line: dict[str, object] = {"model": marked(name, mark)}
    for task, row in zip(tasks, model_rows, strict=True):
        ends = bold if row and row["best"] else ""
        led = "" if task["lead"] == "stock" else f", {LEADS[task['lead']]}"
        line[f"{task['name']}, {task['shown']}{led}"] = f"{ends}{100 * row['lead']:.2f}{ends}" if row else None
    scores = [row["lead"] for row in model_rows if row]
    line["mean"] = f"{100 * sum(scores) / len(scores):.2f}" if len(scores) == len(tasks) else None
    return {**line, SPEED: speed(model_rows[0]["queries_a_second"] if model_rows and model_rows[0] else None)}


def _head(figures: Figures) -> Iterator[str]:
    yield "# Evaluation\n"
    yield (
        "Scores are in points of 100; intervals are 95 % and resample what a task counts. A column is stock mteb's "
        "score where it names no reading of contested pairs.\n"
    )
    yield table(overview(figures))
    contributors = [model for model in figures["models"] if model["roles"]]
    if contributors:
        yield ""
        yield table(
            [
                {"model": model["model"], "had a part in this benchmark as": " and ".join(model["roles"])}
                for model in contributors
            ]
        )
    yield from provenance.family_section(figures["families"])


def _task(task: Figures, pictures: Mapping[str, str]) -> Iterator[str]:
    unit = task["unit"]
    pairs = f" with {task['rows']:,} pairs" if task["rows"] != task["queries"] else ""
    yield f"\n## {task['name']}\n\n{task['shown']}, {task['queries']:,} {unit}{pairs}.\n"
    yield table(list(scores(task)))
    if task["graded"]:
        yield (
            "\nThe labels are graded: stock mteb's nDCG has linear gain, exponential gain is 2^gain - 1, and the mean "
            "takes the mean of the judges' gains for a pair's, which no export holds."
        )
    if task["scores"][0].get("condensed"):
        yield _readings(task)
    yield f"\n![Scores and intervals]({plain(task['name'])}-scores.svg)"
    chart = f"{plain(task['name'])}-speed.svg"
    yield from page_sections.speed_section(task["speed"], chart if chart in pictures else None)
    yield from against_floors(task, unit)
    yield from page_sections.levels(task)
    yield from page_sections.labellings(task)
    yield from query_sources.section(task)
    yield "\n### Which differences are real\n"
    yield from _pairs(task, unit)
    yield from page_sections.against_model(task)
    yield from _headroom(task)
    yield from _difficulty(task)
    yield from page_sections.inputs(task)


def _readings(task: Figures) -> str:
    """Return a text that explains the columns of scores, and which one leads."""
    median = (
        " The first column takes the gain of the judges' median grade, contested pairs included; orders and "
        "differences go by it."
    )
    return (
        "\nStock counts contested pairs as not relevant; condensed takes contested and incomplete ones out of the "
        "ranking, which flatters; optimistic counts contested ones as relevant, also in the best ranking there could "
        f"be.{median if task['lead'] == 'median' else ' Orders and differences go by the first column.'}"
    )


def _pairs(task: Figures, what: str) -> Iterator[str]:
    if not task["pairs"]:
        yield "One model has nobody to be compared with."
        return
    neighbours, how = task["enough"]["neighbours"], f"paired {'randomisation' if task['exchanged'] else 'bootstrap'}"
    yield table(
        [
            {
                "better": pair["one"],
                "than": pair["other"],
                "by": f"{100 * pair['difference']:.2f}",
                "p": f"{pair['p']:.4f}",
                "p by Holm": f"{pair['adjusted']:.4f}",
                f"{what} that would show it": pair["enough"],
                f"what {task['queries']:,} would show": f"{100 * pair['smallest']:.2f}",
            }
            for pair in neighbours
        ]
    )
    yield (
        f"\nNeighbours in the order. Of all {len(task['pairs'])} pairs of models {task['enough']['of_all']} are told "
        f"apart at 5 % ({how}, Holm); how many would show it: 80 % power, two-sided 5 %, one pair alone."
    )


def _headroom(task: Figures) -> Iterator[str]:
    headroom = task["headroom"]
    by = "" if task["lead"] == "stock" else ", by stock mteb's score"
    yield f"\n### Headroom\n\nThe best model leaves {100 * headroom['left']:.2f} of 100 points{by}."
    if "nobody" in headroom:
        yield (
            f"Choosing the best model for each query would give {100 * headroom['best_of_all']:.2f}. No model scores "
            f"on {headroom['nobody']:,} queries; every model is perfect on {headroom['everybody']:,}."
        )


def _difficulty(task: Figures) -> Iterator[str]:
    if not task["difficulty"]:
        return
    yield "\n### Difficulty\n\nQueries by BM25's best rank of a relevant document, and every model's mean on them.\n"
    yield table(
        [
            {
                "best rank": band["best_rank"],
                "queries": band["queries"],
                "words in closest positive": ranged(band["overlap"], 1, 2),
                **{name: f"{100 * score:.2f}" for name, score in band["scores"].items()},
            }
            for band in task["difficulty"]
        ]
    )


def _legacy(figures: Figures, pictures: Mapping[str, str]) -> Iterator[str]:
    for comparison in figures["legacy"]:
        yield f"\n## {comparison['new']} against {comparison['old']}\n"
        yield table(
            [
                {"model": row["model"], "new": f"{100 * row['new']:.2f}", "old": f"{100 * row['old']:.2f}"}
                for row in comparison["scores"]
            ]
        )
        for name, sign in (("spearman", "Spearman's ρ"), ("kendall", "Kendall's τ-b")):
            if comparison[name]:
                correlation = f"{sign} {ranged(comparison[name], 1, 3)}, p = {comparison[name]['p']:.4f}"
                yield f"\n{correlation}, {comparison['models']} models."
            else:
                yield f"\n{sign}: not given for {comparison['models']} models; it takes {comparison['fewest']}."
        name = f"{plain(comparison['old'])}-against-{plain(comparison['new'])}.svg"
        if name in pictures:
            yield f"\n![Old and new scores]({name})"


def _missed(missed: Figures) -> Iterator[str]:
    yield "\n## What the labels miss\n"
    if not missed:
        yield (
            "Nobody looked: no reviewed sample and no check of the pool was found in the run. The shares never judged "
            "and in doubt, above, are what the folder itself can tell."
        )
    final = missed.get("published")
    for sample in missed.get("samples", ()):
        yield _sample_sentence(f"By the sample `{sample['sample']}`, of the panel's labels", sample)
    if final:
        yield _sample_sentence(
            f"Of the published labels, by {', '.join(f'`{name}`' for name in final['samples'])}", final
        )
    if capture := missed.get("capture"):
        yield f"Outside the pool: at least {ranged(capture['missed'], 1, 0)} relevant pairs more (`curate check pool`)."
    for sample in missed.get("below", ()):
        yield f"Of all relevant pairs {ranged(sample['recall'])} % are in the pool, by the sample {sample['source']}."


def _sample_sentence(subject: str, estimates: Figures) -> str:
    contested_share = ranged(estimates.get("contested_of_relevant"))
    contested_clause = f", contested ones {contested_share} %" if contested_share else ""
    missed, contested_relevant, recall = (
        ranged(estimates[name]) or "not known" for name in ("negatives", "contested", "recall")
    )
    return (
        f"{subject}: of the negatives {missed} % are relevant, of the contested pairs {contested_relevant} %; "
        f"positives are {recall} % of all relevant pairs of the pool{contested_clause}."
    )


def _pictures(figures: Figures) -> Iterator[tuple[str, str]]:
    """Yield (file name, SVG): per task a bar chart and a scatter plot of speed, per legacy task a scatter plot."""
    for task in figures["tasks"]:
        by = task["lead"]
        rows = [
            (marked(row["model"], row.get("floor", "")), row["lead"], row[by]["low"], row[by]["high"])
            for row in sorted([*task["scores"], *task["floors"]], key=lambda row: -row["lead"])
        ]
        title = f"{task['shown']}, {task['name']}"
        yield f"{plain(task['name'])}-scores.svg", charts.alone(charts.scores(title, rows), STYLE)
        points = [(row["model"], row["lead"]) for row in task["scores"]]
        if chart := page_sections.speed_chart(title, task["speed"], points, task["shown"]):
            yield f"{plain(task['name'])}-speed.svg", charts.alone(chart, STYLE)
    for comparison in figures["legacy"]:
        both = [(row["model"], row["old"], row["new"]) for row in comparison["scores"]]
        chart = charts.scatter(
            f"{comparison['new']} against {comparison['old']}", both, comparison["old"], comparison["new"]
        )
        yield f"{plain(comparison['old'])}-against-{plain(comparison['new'])}.svg", charts.alone(chart, STYLE)


def plain(name: str) -> str:
    """Return a name converted to a file name that is valid on all systems."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "task"
