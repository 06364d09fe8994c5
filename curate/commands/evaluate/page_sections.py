"""Sections of an evaluation's page on averages, orders of groups, further models and parameters."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from curate.commands.evaluate.mteb_models import OWN
from curate.view import charts
from curate.view.page_tables import LEADS, Figures, ranged, table

MOST_PAIRS = 20
"""Pairs of models in a table, at most."""


def averages_sections(found: Figures) -> Iterator[str]:
    """Yield everything on several tasks together, and on the sizes of the models."""
    for group in found["averages"]:
        yield from _group(group)
    for each in found["orders"]:
        yield f"\n## {each['one']} against {each['other']}, averages\n"
        yield "\n".join(f"{line}.\n" for line in correlations(each))
    yield from _results(found["results"])
    yield from _parameters(found["parameters"])


def correlations(each: Figures) -> Iterator[str]:
    """Yield the rank correlations of two groups, with every p by its name."""
    for name, sign in (("spearman", "Spearman's ρ"), ("kendall", "Kendall's τ-b")):
        value = each[name]
        if value is None:
            yield f"{sign}: not given for {each['models']} models; it takes {each['fewest']}"
            continue
        by_t = "" if value["p_t"] is None else f", p {value['p_t']:.3f} (t distribution)"
        yield (
            f"{sign} {ranged(value, 1, 3)}{by_t}, p {value['p']:.3f} ({value['p_by']}), {each['models']} models; the "
            f"interval resamples models, and queries for {100 * each['with_queries']:.0f} % of the scores"
        )


def average_line(group: Figures) -> str:
    """Return the best of a group in one line for a terminal."""
    shown = ", ".join(f"{each['model']} {ranged(each)}" for each in group["models"][:3])
    return f"average {group['name']} of {', '.join(group['tasks'])}: {shown or 'no model has all tasks'}"


def against_model(task: Figures) -> Iterator[str]:
    """Yield the tests of all models against a named one, and the smallest difference that a task's items show."""
    if task["against_model"]:
        yield "\n" + _pairs(task["against_model"])
        yield "\nAgainst the named model; Holm over these pairs alone."
    yield from _detectable(task["detectable"], f"{task['queries']:,} {task['unit']}")


def _group(group: Figures) -> Iterator[str]:
    yield f"\n## Average {group['name']}\n\nThe mean of stock mteb's scores on {', '.join(group['tasks'])}.\n"
    if group["models"]:
        yield table([{"model": each["model"], "mean": ranged(each)} for each in group["models"]])
    for each in group["missing"]:
        yield f"\n{each['model']} has no average: it lacks {', '.join(each['tasks'])}."
    if group["pairs"]:
        yield "\n" + _pairs(group["pairs"][:MOST_PAIRS])
        more = f", the clearest {MOST_PAIRS} of {len(group['pairs'])}" if len(group["pairs"]) > MOST_PAIRS else ""
        named = f"pairs with {group['against']}" if group["against"] else "all pairs of models with queries"
        yield f"\nPaired bootstrap over queries, Holm over {named}{more}."
    yield from _detectable(group["detectable"], "the queries")


def _pairs(pairs: list[Figures]) -> str:
    return table(
        [
            {
                "better": pair["one"],
                "than": pair["other"],
                "by": f"{100 * pair['difference']:.2f}",
                "p": f"{pair['p']:.4f}",
                "p by Holm": f"{pair['adjusted']:.4f}",
                "smallest shown": f"{100 * pair['smallest']:.2f}",
            }
            for pair in pairs
        ]
    )


def _detectable(found: Figures | None, items: str) -> Iterator[str]:
    if found:
        spread = f" (standard deviation {found['spread']:.2f} per query)" if "spread" in found else ""
        yield (
            f"\nSmallest difference that {items} show with 80 % power at 5 %: {100 * found['median']:.2f} points for "
            f"the median pair of models{spread}, {100 * found['low']:.2f} for the most alike, "
            f"{100 * found['high']:.2f} for the least alike."
        )


def _results(models: list[Figures]) -> Iterator[str]:
    if models:
        tasks = sorted({task for model in models for task in model["scores"]})
        yield "\n## Further models, from result folders\n\nWithout scores of single queries: in no paired test.\n"
        yield table([_row(model, tasks) for model in models])


def _row(model: Figures, tasks: list[str]) -> dict[str, object]:
    scores = {task: model["scores"].get(task) for task in tasks}
    shown = {task: None if score is None else f"{100 * score:.2f}" for task, score in scores.items()}
    return {"model": model["model"], "revision": model["revision"][:12], **shown}


def _parameters(models: list[Figures]) -> Iterator[str]:
    if known := [model for model in models if model["source"]]:
        yield "\n## Parameters\n\nMillions; active ones lie outside the token embeddings.\n"
        yield table(
            [
                {
                    "model": each["model"],
                    **{
                        f"{side}, {kind}": None if each[side][kind] is None else f"{each[side][kind] / 1e6:,.1f}"
                        for side in ("query", "document")
                        for kind in ("total", "active")
                    },
                    "by": each["source"],
                }
                for each in known
            ]
        )


# Section of an evaluation's page on what the models were given: prompt, longest input, cut texts, and precision.

SHORT = 60
"""Characters of a prompt in a table; evaluation.json has the whole one."""


def inputs(task: Figures) -> Iterator[str]:
    """Yield the section on how a task's texts came to the models; nothing where no model makes vectors."""
    rows = [row for each in task["scores"] for row in _rows(each)]
    if not rows:
        return
    yield "\n### What the models were given\n"
    yield table(rows)
    yield (
        "\nLengths are in tokens; the share cut is that of texts longer than the model reads, its prompt included, of "
        "4,096 texts at most. A prompt that a model should have and has not here costs it more than most models differ."
    )
    yield from _unseen(task["scores"])
    if checked := [each for each in task["scores"] if each["precision_check"]]:
        yield "\nVectors compared with those of the same weights in float32 (cosine, .999 is the least):\n"
        yield table(
            [
                {
                    "model": each["model"],
                    "precision": each["precision"],
                    "texts": each["precision_check"]["texts"],
                    "lowest": f"{each['precision_check']['lowest']:.5f}",
                    "mean": f"{each['precision_check']['mean']:.5f}",
                }
                for each in checked
            ]
        )


def _unseen(scores: Sequence[Figures]) -> Iterator[str]:
    """Yield which models were not compared with float32, and which cannot be looked into."""
    vectors = [score for score in scores if score["inputs"]]
    whole = {vector["model"] for vector in vectors}
    left = [
        vector["model"]
        for vector in vectors
        if vector["precision"] != "float32" and not vector["precision_check"] and not _cut_out(vector["model"], whole)
    ]
    if left:
        yield f"\nNot compared with float32: {', '.join(left)}, whose own code or settings choose the precision."
    own = [vector for vector in vectors if vector["precision"] == OWN]
    if blind := [each["model"] for each in own if not all(seen["known"] for seen in each["inputs"])]:
        yield (
            f"\n{', '.join(blind)}: loaded by code of the model's makers: prompts and lengths cannot be seen; vectors "
            "of documents are kept per task, and a document of two tasks is encoded twice."
        )


def _cut_out(name: str, whole: Collection[str]) -> bool:
    """Say whether a model is another one's first coordinates, as NAME@WIDTH is."""
    return name.rpartition("@")[0] in whole


def _rows(each: Figures) -> Iterator[dict[str, object]]:
    for seen in each["inputs"]:
        yield {
            "model": each["model"],
            "texts": f"{seen['texts']:,} {seen['role']}" + (f", side `{seen['route']}`" if seen["route"] else ""),
            "prompt": _prompt(seen),
            "longest input": f"{seen['max_length']:,}" if seen["max_length"] else None,
            "cut": None if seen["cut"] is None else f"{100 * seen['cut']:.1f} %",
            "coordinates": each["width"],
            "precision": _precision(each),
            "batch": each["batch"],
        }


def _prompt(seen: Figures) -> str:
    if not seen["known"]:
        return "not known"
    prompt = str(seen["prompt"] or "").replace("\n", " ⏎ ")
    if not prompt:
        return "none"
    return f"`{prompt[:SHORT]}…`" if len(prompt) > SHORT else f"`{prompt}`"


def _precision(each: Figures) -> str:
    """Return the precision, with that of weights which were left in another, such as a table of token vectors."""
    others = ", ".join(dtype for dtype in each["weights"] if dtype != each["precision"])
    if each["precision"] == OWN:
        return others or "not known"
    return f"{each['precision']} (partly {others})" if others else str(each["precision"])


# Sections of an evaluation's page on its labels: levels that people's answers correct, and contested pairs.

MEASURES = {"precision_at_10": "P@10", "scaled_dcg_at_10": "scaled DCG@10"}
MOST_DIFFERENCES = 20
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
                for row in mine[:MOST_DIFFERENCES]
            ]
        )
        more = f"; the others are in evaluation.json ({len(mine):,} in all)" if len(mine) > MOST_DIFFERENCES else ""
        exact = (
            f" A difference that was {WHOLE} is exact and has no p." if any(row["p"] is None for row in mine) else ""
        )
        yield f"\nThe clearest first{more}. p is of these queries; Holm over all pairs of models.{exact}\n"


def _half(figure: Mapping[str, float | None], half: str) -> str | None:
    value, width = figure["value"], figure[half]
    return None if value is None or width is None else f"{100 * value:.2f} ± {100 * width:.2f}"


def _figure(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


# Speed on an evaluation's page: a table per task, the ratios, the chart of quality against speed.

AXIS = "queries per second, encoded and searched"


def speed_overview(speed: Figures) -> list[dict[str, object]]:
    """Return one row per model, the fastest first."""
    return [
        {
            "model": row["model"],
            "queries per second": _number(row["qps"]),
            "encoded per second, 64 at once": _ranged(row["encoding"]),
            "per processor second": _speed_figure(row["encoding"], "per_cpu_second"),
            "encoding p50, ms": _speed_figure(row["encoding"], "p50_ms", 2),
            "p95": _speed_figure(row["encoding"], "p95_ms", 2),
            "search p50, ms": _speed_figure(row["search"], "p50_ms", 2),
            "p95 ": _speed_figure(row["search"], "p95_ms", 2),
            "searched per second": _speed_figure(row["search"], "qps"),
            "index, MB": None if row["index_bytes"] is None else f"{row['index_bytes'] / 1e6:,.1f}",
            "device": row["device"],
            "dtype": ", ".join(row["dtypes"]) or None,
            "longest input": row["max_length"],
        }
        for row in sorted(speed["models"], key=lambda row: (-row["qps"], row["model"]))
    ]


def speed_ratios(speed: Figures) -> list[str]:
    """Return how many times as fast as the slowest the others encode, a sentence each."""
    return [
        f"{row['one']} encodes {_times(row['wall'])} times as many queries as {row['other']} "
        f"({_times(row['cpu'])} per processor second)"
        for row in speed["ratios"]
    ]


def speed_machine(speed: Figures) -> str:
    """Return on what and how it was measured, as sentences."""
    made, load, threads = speed["machine"], speed["load"], speed["threads"]
    searched = f" Search, of {speed['searched']:,} queries, is timed apart." if speed["searched"] else ""
    gpus = f", {', '.join(made['gpus'])}" if made["gpus"] else ""
    return (
        f"{speed['queries']:,} queries (characters: median {speed['characters']['median']:g}, p95 "
        f"{speed['characters']['p95']:g}), {speed['warm_ups']} warm-ups, {speed['repeats']} repeats, one by one "
        f"(p50, p95) and {speed['batch']} at once; cutting into tokens included; all models in turn in each chunk of "
        f"queries.{searched} Measured {speed['measured']} on {made['processor']}, {made['cores']} cores{gpus}; "
        f"{threads['torch']} threads of torch, load average {_load(load['before'])} before and {_load(load['after'])} "
        "after. Between brackets: the slowest and the fastest repeat. Do not compare with figures of another machine."
    )


def speed_section(speed: Figures | None, chart: str | None) -> Iterator[str]:
    """Yield the section of a task; nothing where speed was not measured on this machine."""
    if not speed:
        return
    yield "\n### Speed\n"
    yield table(speed_overview(speed))
    yield f"\n{speed_machine(speed)}"
    for line in speed_ratios(speed):
        yield f"\n- {line}"
    if chart:
        yield f"\n![Scores and speed]({chart})"


def speed_chart(title: str, speed: Figures | None, scores: Sequence[tuple[str, float]], up: str) -> str | None:
    """Return the chart of quality against speed, on a logarithmic axis; None with fewer than two models."""
    rates = {row["model"]: row["qps"] for row in speed["models"]} if speed else {}
    points = [(name, rates[name], score) for name, score in scores if name in rates]
    return charts.scatter(f"{title}, and speed", points, AXIS, up, logarithmic=True) if len(points) > 1 else None


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def _speed_figure(part: Figures | None, name: str, digits: int | None = None) -> str | None:
    if part is None:
        return None
    return _number(part[name]) if digits is None else f"{part[name]:,.{digits}f}"


def _ranged(part: Figures | None) -> str | None:
    if part is None:
        return None
    return f"{_number(part['qps'])} ({_number(part['qps_low'])} to {_number(part['qps_high'])})"


def _times(figure: Figures) -> str:
    return f"{figure['value']:.3g} ({figure['low']:.3g} to {figure['high']:.3g})"


def _load(value: float | None) -> str:
    return "not known" if value is None else f"{value:g}"
