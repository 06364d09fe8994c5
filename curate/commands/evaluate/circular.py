"""Models that share a family with a judge of the benchmark, beside what that judge gains by judging itself.

Families of models are guessed from their names, as those of judges are. A judge and an encoder of one family share a
base, or data, and rankings by such a model gain too, by less than the judge's own.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from curate.commands.evaluate.tasks import EvaluationTask
from curate.core.config import Json
from curate.core.model_family import family
from curate.pipeline import circularity
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context, home
from curate.system.files import read_json
from curate.tables.exporters import manifest
from curate.view.page_tables import ranged, table

Figures = Mapping[str, Any]
UNCHECKED = "not checked (`curate check circular`)"


def of_family(models: Sequence[str], tasks: Sequence[EvaluationTask], run: Path | None) -> list[dict[str, Json]]:
    """Return a row per model and judge of its family: `favour` is None where `curate check circular` was not run.

    What judges gain stands in the manifest of the export, else in the run.
    """
    judges = _judges(tasks)
    if run is not None and any(judge["favour"] is None for judge in judges.values()):
        context = Context(run=run, out=run, home=home(), settings=Pipeline.load(run / "pipeline.yaml").frozen)
        now = circularity.favours(context)
        judges = {name: {**judge, "favour": judge["favour"] or now.get(name)} for name, judge in judges.items()}
    return [
        {"model": model, "judge": judge, **each}
        for model in models
        for judge, each in judges.items()
        if each["family"] and family("", str(each["family"])) == family(model)
    ]


def _judges(tasks: Sequence[EvaluationTask]) -> dict[str, dict[str, Json]]:
    """Return judge -> family and favour, by the manifests of the exports; one of an older version names none."""
    found: dict[str, dict[str, Json]] = {}
    for folder in sorted({task.folder.parent for task in tasks if task.folder}):
        path = folder / manifest.NAME
        found |= read_json(path).get("judges", {}) if path.is_file() else {}
    return found


def section(rows: Sequence[Figures]) -> Iterator[str]:
    """Yield the table of the page; nothing without such a model."""
    if rows:
        yield ""
        yield table(
            [
                {
                    "model": row["model"],
                    "is of the family": row["family"],
                    "of the judge": row["judge"],
                    "which by judging itself gains": _gain(row["favour"]),
                }
                for row in rows
            ]
        )


def notes(rows: Sequence[Figures]) -> Iterator[str]:
    """Yield a sentence per model whose judge is warned of."""
    for row in rows:
        if row["favour"] and row["favour"]["warned"]:
            yield (
                f"circular: {row['model']} is of the family {row['family']}, and so is the judge {row['judge']}, "
                f"which gains {ranged(row['favour']['effect'])} points of nDCG@10 by judging itself: its scores may "
                "be too high"
            )


def _gain(favour: Figures | None) -> str:
    return f"{ranged(favour['effect'])} points of nDCG@10" if favour else UNCHECKED
