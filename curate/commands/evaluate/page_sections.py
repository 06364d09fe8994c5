"""Sections of an evaluation's page: averages, model inputs, corrected scores, contested pairs, speed."""

from collections.abc import Iterator, Mapping, Sequence

from curate.commands.evaluate.mteb_models import OWN
from curate.view import charts
from curate.view.page_tables import LEADS, Figures, ranged, table

MOST_PAIRS = 20
"""Maximum number of pairs of models in a table."""


def averages_sections(figures: Figures) -> Iterator[str]:
    """Yield the sections across tasks: averages, correlations of groups, models with mteb results, parameters."""
    for group in figures["averages"]:
        yield from _group(group)
    for order in figures["orders"]:
        yield f"\n## {order['one']} against {order['other']}, averages\n"
        yield "\n".join(f"{line}.\n" for line in correlations(order))
    yield from _results(figures["results"])
    yield from _parameters(figures["parameters"])


def correlations(order: Figures) -> Iterator[str]:
    """Yield a sentence per rank correlation of two groups, naming the test of each p-value."""
    for name, sign in (("spearman", "Spearman's ρ"), ("kendall", "Kendall's τ-b")):
        correlation = order[name]
        if correlation is None:
            yield f"{sign}: not given for {order['models']} models; it takes {order['fewest']}"
            continue
        by_t = "" if correlation["p_t"] is None else f", p {correlation['p_t']:.3f} (t distribution)"
        yield (
            f"{sign} {ranged(correlation, 1, 3)}{by_t}, p {correlation['p']:.3f} ({correlation['p_by']}), "
            f"{order['models']} models; the interval resamples models, and queries for "
            f"{100 * order['with_queries']:.0f} % of the scores"
        )


def average_line(group: Figures) -> str:
    """Return one line with the three best averages of a group, for the terminal."""
    best = ", ".join(f"{average['model']} {ranged(average)}" for average in group["models"][:3])
    return f"average {group['name']} of {', '.join(group['tasks'])}: {best or 'no model has all tasks'}"


def against_model(task: Figures) -> Iterator[str]:
    """Yield the tests of all models against one model, and the minimum detectable differences."""
    if task["against_model"]:
        yield "\n" + _pairs(task["against_model"])
        yield "\nAgainst the named model; Holm over these pairs alone."
    yield from _detectable(task["detectable"], f"{task['queries']:,} {task['unit']}")


def _group(group: Figures) -> Iterator[str]:
    yield f"\n## Average {group['name']}\n\nThe mean of stock mteb's scores on {', '.join(group['tasks'])}.\n"
    if group["models"]:
        yield table([{"model": average["model"], "mean": ranged(average)} for average in group["models"]])
    for lacking in group["missing"]:
        yield f"\n{lacking['model']} has no average: it lacks {', '.join(lacking['tasks'])}."
    if group["pairs"]:
        yield "\n" + _pairs(group["pairs"][:MOST_PAIRS])
        excerpt_note = (
            f", the clearest {MOST_PAIRS} of {len(group['pairs'])}" if len(group["pairs"]) > MOST_PAIRS else ""
        )
        tested = f"pairs with {group['against']}" if group["against"] else "all pairs of models with queries"
        yield f"\nPaired bootstrap over queries, Holm over {tested}{excerpt_note}."
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


def _detectable(differences: Figures | None, items: str) -> Iterator[str]:
    if differences:
        spread = f" (standard deviation {differences['spread']:.2f} per query)" if "spread" in differences else ""
        yield (
            f"\nSmallest difference that {items} show with 80 % power at 5 %: {100 * differences['median']:.2f} points "
            f"for the median pair of models{spread}, {100 * differences['low']:.2f} for the most alike, "
            f"{100 * differences['high']:.2f} for the least alike."
        )


def _results(models: list[Figures]) -> Iterator[str]:
    if models:
        tasks = sorted({task for model in models for task in model["scores"]})
        yield "\n## Further models, from result folders\n\nWithout scores of single queries: in no paired test.\n"
        scores = [[(task, model["scores"].get(task)) for task in tasks] for model in models]
        yield table(
            [
                {
                    "model": model["model"],
                    "revision": model["revision"][:12],
                    **{task: None if score is None else f"{100 * score:.2f}" for task, score in model_scores},
                }
                for model, model_scores in zip(models, scores, strict=True)
            ]
        )


def _parameters(models: list[Figures]) -> Iterator[str]:
    if counted := [model for model in models if model["source"]]:
        yield "\n## Parameters\n\nMillions; active ones lie outside the token embeddings.\n"
        yield table(
            [
                {
                    "model": model["model"],
                    **{
                        f"{side}, {kind}": None if model[side][kind] is None else f"{model[side][kind] / 1e6:,.1f}"
                        for side in ("query", "document")
                        for kind in ("total", "active")
                    },
                    "by": model["source"],
                }
                for model in counted
            ]
        )


# Model inputs: prompt, maximum length, truncated texts, precision.

SHORT = 60
"""Maximum number of characters of a prompt in a table; evaluation.json has the complete prompts."""


def inputs(task: Figures) -> Iterator[str]:
    """Yield the section on the inputs of a task's models; nothing if no model has vectors."""
    rows = [row for score in task["scores"] for row in _rows(score)]
    if not rows:
        return
    yield "\n### What the models were given\n"
    yield table(rows)
    yield (
        "\nLengths are in tokens; the share cut is that of texts longer than the model reads, its prompt included, of "
        "4,096 texts at most. A prompt that a model should have and has not here costs it more than most models differ."
    )
    yield from _unverified(task["scores"])
    if checked := [score for score in task["scores"] if score["precision_check"]]:
        yield "\nVectors compared with those of the same weights in float32 (cosine, .999 is the least):\n"
        yield table(
            [
                {
                    "model": score["model"],
                    "precision": score["precision"],
                    "texts": score["precision_check"]["texts"],
                    "lowest": f"{score['precision_check']['lowest']:.5f}",
                    "mean": f"{score['precision_check']['mean']:.5f}",
                }
                for score in checked
            ]
        )


def _unverified(scores: Sequence[Figures]) -> Iterator[str]:
    """Yield sentences on models that were not compared with float32, and on models whose inputs are unknown."""
    vectors = [score for score in scores if score["inputs"]]
    model_names = {vector["model"] for vector in vectors}
    unchecked = [
        vector["model"]
        for vector in vectors
        if vector["precision"] != "float32"
        and not vector["precision_check"]
        and vector["model"].rpartition("@")[0] not in model_names  # NAME@WIDTH is a truncated model
    ]
    if unchecked:
        yield f"\nNot compared with float32: {', '.join(unchecked)}, whose own code or settings choose the precision."
    by_own_code = [vector for vector in vectors if vector["precision"] == OWN]
    if unknown := [vector["model"] for vector in by_own_code if not all(seen["known"] for seen in vector["inputs"])]:
        yield (
            f"\n{', '.join(unknown)}: loaded by code of the model's makers: prompts and lengths cannot be seen; "
            "vectors of documents are kept per task, and a document of two tasks is encoded twice."
        )


def _rows(score: Figures) -> Iterator[dict[str, object]]:
    for seen in score["inputs"]:
        yield {
            "model": score["model"],
            "texts": f"{seen['texts']:,} {seen['role']}" + (f", side `{seen['route']}`" if seen["route"] else ""),
            "prompt": _prompt(seen),
            "longest input": f"{seen['max_length']:,}" if seen["max_length"] else None,
            "cut": None if seen["cut"] is None else f"{100 * seen['cut']:.1f} %",
            "coordinates": score["width"],
            "precision": _precision(score),
            "batch": score["batch"],
        }


def _prompt(seen: Figures) -> str:
    if not seen["known"]:
        return "not known"
    prompt = str(seen["prompt"] or "").replace("\n", " ⏎ ")
    if not prompt:
        return "none"
    return f"`{prompt[:SHORT]}…`" if len(prompt) > SHORT else f"`{prompt}`"


def _precision(score: Figures) -> str:
    """Return the model's precision, followed by the precisions of weights that differ, such as token embeddings."""
    others = ", ".join(dtype for dtype in score["weights"] if dtype != score["precision"])
    if score["precision"] == OWN:
        return others or "not known"
    return f"{score['precision']} (partly {others})" if others else str(score["precision"])


# Labels: corrected scores, and contested pairs.

MEASURES = {"precision_at_10": "P@10", "scaled_dcg_at_10": "scaled DCG@10"}
MOST_DIFFERENCES = 20
"""Maximum number of differences in a table."""
WHOLE = "read whole"
"""Text in place of p for a difference without unanswered pairs."""
WHY_NOT = (
    "nDCG and MAP are not corrected: they divide by the number of all relevant documents, which nobody has counted."
)


def levels(task: Figures) -> Iterator[str]:
    """Yield the section on corrected scores.

    It is empty for a task without verdicts, and for a task that no sample can cover.
    """
    if not task["verdicts"]:
        return
    corrected = task["levels"]
    if not corrected and not task["judged"]:
        return
    yield "\n### Levels\n"
    if not corrected:
        yield (
            "No level: nobody has read what these models found, so no score above says how good a model is, only which "
            "is better. `curate review export --for-scores` draws the pairs to read."
        )
        return
    yield table([_level(row) for row in corrected["models"]])
    strata = "; ".join(f"{row['stratum']} {row['read']:,} of {row['pairs']:,}" for row in corrected["strata"])
    yield (
        f"\nShares of the first ten documents that people find relevant, corrected by the sample "
        f"`{corrected['sample']}`: {corrected['read']:,} answers to the {corrected['pairs']:,} pairs of the top tens "
        f"({strata}). ± is half of a 95 % interval, for these queries and for new ones of the same kind; scaled DCG is "
        f"discounted gain over that of ten relevant documents. {_excluded_queries(task)}{WHY_NOT}"
    )
    if corrected["pairs_of_models"]:
        yield "\n### Corrected differences\n"
        yield from _differences(corrected["pairs_of_models"])


def labellings(task: Figures) -> Iterator[str]:
    """Yield the section on contested pairs, with rank correlations between the ways of scoring them."""
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


def _excluded_queries(task: Figures) -> str:
    """Return a sentence on the queries in the mean if some judged queries are excluded; else an empty text."""
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
        cells[name] = _half_width(score, "half") if score else "none"
        cells[f"{name}, for new queries"] = _half_width(score, "new_queries") if score else None
    return cells | {"outside what was sampled": f"{100 * row['outside']:.1f} %" if row["outside"] else None}


def _differences(pairs: Sequence[Figures]) -> Iterator[str]:
    rows = sorted(pairs, key=lambda row: (row["measure"], row["p"] or 0.0, -row["value"]))
    for measure, name in MEASURES.items():
        measure_rows = [row for row in rows if row["measure"] == measure]
        yield table(
            [
                {
                    f"better in {name}": row["one"],
                    "than": row["other"],
                    "by": _half_width(row, "half"),
                    "for new queries": _half_width(row, "new_queries"),
                    "p": WHOLE if row["p"] is None else f"{row['p']:.4f}",
                    "p by Holm": None if row["adjusted"] is None else f"{row['adjusted']:.4f}",
                }
                for row in measure_rows[:MOST_DIFFERENCES]
            ]
        )
        excerpt_note = (
            f"; the others are in evaluation.json ({len(measure_rows):,} in all)"
            if len(measure_rows) > MOST_DIFFERENCES
            else ""
        )
        exact = (
            f" A difference that was {WHOLE} is exact and has no p."
            if any(row["p"] is None for row in measure_rows)
            else ""
        )
        yield f"\nThe clearest first{excerpt_note}. p is of these queries; Holm over all pairs of models.{exact}\n"


def _half_width(figure: Mapping[str, float | None], half: str) -> str | None:
    center, width = figure["value"], figure[half]
    return None if center is None or width is None else f"{100 * center:.2f} ± {100 * width:.2f}"


def _figure(correlation: float | None) -> str | None:
    return None if correlation is None else f"{correlation:.3f}"


# Speed: a table per task, ratios, and a chart of quality against speed.

AXIS = "queries per second, encoded and searched"


def speed_overview(speed: Figures) -> list[dict[str, object]]:
    """Return one row per model, fastest first."""
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
    """Return a sentence per model on its encoding speed relative to the slowest model."""
    return [
        f"{row['one']} encodes {_times(row['wall'])} times as many queries as {row['other']} "
        f"({_times(row['cpu'])} per processor second)"
        for row in speed["ratios"]
    ]


def speed_machine(speed: Figures) -> str:
    """Return sentences on the conditions of the measurement: queries, machine, load."""
    machine, load, threads = speed["machine"], speed["load"], speed["threads"]
    searched = f" Search, of {speed['searched']:,} queries, is timed apart." if speed["searched"] else ""
    gpus = f", {', '.join(machine['gpus'])}" if machine["gpus"] else ""
    return (
        f"{speed['queries']:,} queries (characters: median {speed['characters']['median']:g}, p95 "
        f"{speed['characters']['p95']:g}), {speed['warm_ups']} warm-ups, {speed['repeats']} repeats, one by one "
        f"(p50, p95) and {speed['batch']} at once; cutting into tokens included; all models in turn in each chunk of "
        f"queries.{searched} Measured {speed['measured']} on {machine['processor']}, {machine['cores']} cores{gpus}; "
        f"{threads['torch']} threads of torch, load average {_load(load['before'])} before and {_load(load['after'])} "
        "after. Between brackets: the slowest and the fastest repeat. Do not compare with figures of another machine."
    )


def speed_section(speed: Figures | None, chart: str | None) -> Iterator[str]:
    """Yield the speed section of a task; nothing if speed was not measured on this machine."""
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
    """Return a scatter plot of quality against speed (logarithmic axis); None with fewer than two models."""
    rates = {row["model"]: row["qps"] for row in speed["models"]} if speed else {}
    points = [(name, rates[name], score) for name, score in scores if name in rates]
    return charts.scatter(f"{title}, and speed", points, AXIS, up, logarithmic=True) if len(points) > 1 else None


def _number(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2f}"


def _speed_figure(figures: Figures | None, name: str, digits: int | None = None) -> str | None:
    if figures is None:
        return None
    return _number(figures[name]) if digits is None else f"{figures[name]:,.{digits}f}"


def _ranged(figures: Figures | None) -> str | None:
    if figures is None:
        return None
    return f"{_number(figures['qps'])} ({_number(figures['qps_low'])} to {_number(figures['qps_high'])})"


def _times(figure: Figures) -> str:
    return f"{figure['value']:.3g} ({figure['low']:.3g} to {figure['high']:.3g})"


def _load(average: float | None) -> str:
    return "not known" if average is None else f"{average:g}"
