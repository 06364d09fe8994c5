"""An evaluation for people: tables in Markdown, and charts as files beside them."""

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


def files(found: Figures) -> dict[str, str]:
    """Return name -> text of every file: `README.md` and its pictures."""
    pictures = dict(_pictures(found))
    text = "\n".join([*_head(found), *(line for task in found["tasks"] for line in _task(task, pictures))])
    rest = "\n".join(
        [*_legacy(found, pictures), *page_sections.averages_sections(found), *_missed(found["missed"]), *_notes(found)]
    )
    return {"README.md": f"{text}\n{rest}\n", **pictures}


def overview(found: Figures, bold: str = "**") -> list[dict[str, object]]:
    """Return one row per model, with its score on every task, the best of each between marks, and the mean."""
    floors = {row["model"]: row["floor"] for task in found["tasks"] for row in task["floors"]}
    named = [(model["model"], "circular" if model["circular"] else "") for model in found["models"]]
    return [
        *(_line(name, mark, [task["scores"] for task in found["tasks"]], found["tasks"], bold) for name, mark in named),
        *(
            _line(name, mark, [task["floors"] for task in found["tasks"]], found["tasks"], bold)
            for name, mark in floors.items()
        ),
    ]


def _line(
    name: str, mark: str, rows: Sequence[Sequence[Figures]], tasks: Sequence[Figures], bold: str
) -> dict[str, object]:
    mine = [next((row for row in some if row["model"] == name), None) for some in rows]
    line: dict[str, object] = {"model": marked(name, mark)}
    for task, row in zip(tasks, mine, strict=True):
        ends = bold if row and row["best"] else ""
        line[_column(task)] = f"{ends}{100 * row['lead']:.2f}{ends}" if row else None
    scores = [row["lead"] for row in mine if row]
    line["mean"] = f"{100 * sum(scores) / len(scores):.2f}" if len(scores) == len(tasks) else None
    return {**line, SPEED: speed(mine[0]["queries_a_second"] if mine and mine[0] else None)}


def _column(task: Figures) -> str:
    led = "" if task["lead"] == "stock" else f", {LEADS[task['lead']]}"
    return f"{task['name']}, {task['shown']}{led}"


def _head(found: Figures) -> Iterator[str]:
    yield "# Evaluation\n"
    yield (
        "Scores are in points of 100; intervals are 95 % and resample what a task counts. A column is stock mteb's "
        "score where it names no reading of contested pairs.\n"
    )
    yield table(overview(found))
    parts = [each for each in found["models"] if each["roles"]]
    if parts:
        yield ""
        yield table(
            [{"model": each["model"], "had a part in this benchmark as": " and ".join(each["roles"])} for each in parts]
        )
    yield from provenance.family_section(found["families"])


def _task(task: Figures, pictures: Mapping[str, str]) -> Iterator[str]:
    what = task["unit"]
    pairs = f" with {task['rows']:,} pairs" if task["rows"] != task["queries"] else ""
    yield f"\n## {task['name']}\n\n{task['shown']}, {task['queries']:,} {what}{pairs}.\n"
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
    yield from against_floors(task, what)
    yield from page_sections.levels(task)
    yield from page_sections.labellings(task)
    yield from query_sources.section(task)
    yield "\n### Which differences are real\n"
    yield from _pairs(task, what)
    yield from page_sections.against_model(task)
    yield from _headroom(task)
    yield from _difficulty(task)
    yield from page_sections.inputs(task)


def _readings(task: Figures) -> str:
    """Return what the columns of scores are, and why one of them leads."""
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
    left = task["headroom"]
    by = "" if task["lead"] == "stock" else ", by stock mteb's score"
    yield f"\n### Headroom\n\nThe best model leaves {100 * left['left']:.2f} of 100 points{by}."
    if "nobody" in left:
        yield (
            f"Choosing the best model for each query would give {100 * left['best_of_all']:.2f}. No model scores on "
            f"{left['nobody']:,} queries; every model is perfect on {left['everybody']:,}."
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


def _legacy(found: Figures, pictures: Mapping[str, str]) -> Iterator[str]:
    for each in found["legacy"]:
        yield f"\n## {each['new']} against {each['old']}\n"
        yield table(
            [
                {"model": row["model"], "new": f"{100 * row['new']:.2f}", "old": f"{100 * row['old']:.2f}"}
                for row in each["scores"]
            ]
        )
        for name, sign in (("spearman", "Spearman's ρ"), ("kendall", "Kendall's τ-b")):
            if each[name]:
                yield f"\n{sign} {ranged(each[name], 1, 3)}, p = {each[name]['p']:.4f}, {each['models']} models."
            else:
                yield f"\n{sign}: not given for {each['models']} models; it takes {each['fewest']}."
        name = f"{plain(each['old'])}-against-{plain(each['new'])}.svg"
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
    for each in missed.get("samples", ()):
        yield _says(f"By the sample `{each['sample']}`, of the panel's labels", each)
    if final:
        yield _says(f"Of the published labels, by {', '.join(f'`{name}`' for name in final['samples'])}", final)
    if capture := missed.get("capture"):
        yield f"Outside the pool: at least {ranged(capture['missed'], 1, 0)} relevant pairs more (`curate check pool`)."
    for sample in missed.get("below", ()):
        yield f"Of all relevant pairs {ranged(sample['recall'])} % are in the pool, by the sample {sample['source']}."


def _says(what: str, each: Figures) -> str:
    contested = ranged(each.get("contested_of_relevant"))
    held = f", contested ones {contested} %" if contested else ""
    return (
        f"{what}: of the negatives {ranged(each['negatives']) or 'not known'} % are relevant, of the contested pairs "
        f"{ranged(each['contested']) or 'not known'} %; positives are {ranged(each['recall']) or 'not known'} % of all "
        f"relevant pairs of the pool{held}."
    )


def _notes(found: Figures) -> Iterator[str]:
    if found["notes"]:
        yield "\n## To be known before a figure is used\n"
        yield from (f"- {note}" for note in found["notes"])


def _pictures(found: Figures) -> Iterator[tuple[str, str]]:
    """Yield name and text of a bar chart per task, of scatters against speed, and of one per legacy task."""
    for task in found["tasks"]:
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
    for each in found["legacy"]:
        both = [(row["model"], row["old"], row["new"]) for row in each["scores"]]
        chart = charts.scatter(f"{each['new']} against {each['old']}", both, each["old"], each["new"])
        yield f"{plain(each['old'])}-against-{plain(each['new'])}.svg", charts.alone(chart, STYLE)


def plain(name: str) -> str:
    """Return a name that can be a file's on any machine."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "task"
