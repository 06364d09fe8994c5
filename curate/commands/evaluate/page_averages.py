"""Sections of an evaluation's page on averages, orders of groups, further models and parameters."""

from collections.abc import Iterator

from curate.view.page_tables import Figures, ranged, table

SHOWN = 20
"""Pairs of models in a table, at most."""


def sections(found: Figures) -> Iterator[str]:
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


def line(group: Figures) -> str:
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
        yield "\n" + _pairs(group["pairs"][:SHOWN])
        more = f", the clearest {SHOWN} of {len(group['pairs'])}" if len(group["pairs"]) > SHOWN else ""
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
