"""The card of a trained model: README.md, and what must be known before its scores are used."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curate.stats.bootstrap import FEW
from curate.system.resources import template
from curate.tables.exporters.card import environment, front_matter, markdown

Found = Mapping[str, Any]
TEMPLATE = "commands/train/card.md.j2"


def notes(found: Found) -> Iterator[str]:
    """Yield what must be known before a figure is used."""
    if found["few_seeds"]:
        yield f"{len(found['seeds'])} seeds, fewer than 3: how much chance moves these scores is not known"
    if found["dev_queries"] < FEW:
        yield f"the best step was chosen by {found['dev_queries']} dev queries, fewer than {FEW}: chance had a part"
    if not found["legacy"]:
        yield "no legacy task was scored (--legacy): what the model forgot elsewhere is not known"
    for each in found["test"]:
        low = (each["difference"] or {}).get("low")
        if low is None or low <= 0:
            yield f"{each['task']}: the interval of the gain is not above 0: no gain was shown"
    for each in found["legacy"]:
        if each["trained"] < each["base"]:
            yield f"{each['task']}: the trained model scores lower than the base on this legacy task"
    if all(each["best_step"] == 0 for each in found["seeds"]):
        yield "no step was better than the base on the dev queries: these models are the base"


def readme(found: Found) -> str:
    """Return the README of a trained model."""
    front = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "text"],
    }
    return (
        environment()
        .from_string(template(TEMPLATE))
        .render(front=front_matter(front), found=found, named=named, shown=shown)
    )


def named(model: str) -> str:
    """Return a model's name for people: of a folder its last two parts."""
    path = Path(model).expanduser()
    return markdown("/".join(path.resolve().parts[-2:]) if path.is_dir() else model)


def shown(row: Found) -> str:
    """Return a task's scores as a sentence: points of 100."""
    said = f"{100 * row['base']:.2f} -> {100 * row['trained']:.2f}"
    if (gain := row["difference"]) is None:
        return said
    bounds = "" if gain["low"] is None else f" ({100 * gain['low']:+.2f} to {100 * gain['high']:+.2f})"
    return f"{said}, {100 * gain['value']:+.2f}{bounds}, p {row['p']:.4f}"
