"""Provenance of triples, with refusal of unsuitable ones, and the README of a trained model.

Triples are refused if heuristics graded them, or if they were not checked for leaks of the test set.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from curate.commands.train.triples import TrainTriples
from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.retrieval.similarity.leaks import form
from curate.stats.bootstrap import FEW
from curate.system.resources import template
from curate.tables.exporters import manifest
from curate.tables.exporters.card import environment, front_matter, markdown

UNKNOWN = (
    "the triples come from a file that says nothing of its making; identical queries of the test set were looked for, "
    "similar ones were not (`curate check leaks` does)"
)


@dataclass(frozen=True)
class Origin:
    """Provenance of triples: program, judges and leak check."""

    made_by: str
    """`curate train-set`, or `a file` for triples from elsewhere."""
    judges: tuple[str, ...] = ()
    checked_against: str | None = None
    """Test set with which a leak check compared the triples; None if unknown."""
    notes: tuple[str, ...] = ()

    def shown(self) -> dict[str, Json]:
        """Return the fields as JSON values."""
        return asdict(self)


def origin(triples: TrainTriples, test: Path) -> Origin:
    """Return the triples' provenance; ConfigError if heuristics graded them or the leak check was skipped."""
    if not (triples.place.parent / manifest.NAME).is_file():
        return Origin("a file", notes=(UNKNOWN,))
    facts = _facts(triples.place.parent)
    if facts.get("weak_judges"):
        raise ConfigError(
            f"{triples.place.parent}: these triples were graded by heuristics ({', '.join(facts.get('judges', ()))}), "
            "and a model trained on them learns the heuristic; have a judge grade them: curate train-set --judge NAME"
        )
    checked = facts.get("test")
    if checked is None or facts.get("leaks") is None:
        raise ConfigError(
            f"{triples.place.parent}: these triples were not checked for leaks, so their test score would prove "
            f"nothing; make them again with curate train-set --test {test}"
        )
    notes = []
    if checked not in test.resolve().parts:
        notes.append(f"leaks were looked for in {checked}, and the test set is {test.name}: see that they are the same")
    return Origin("curate train-set", tuple(facts.get("judges", ())), str(checked), tuple(notes))


def no_test_query(triples: TrainTriples, test_queries: Iterable[str], test: Path) -> None:
    """Raise DataError if a training query is also a test query, ignoring case, width, punctuation and spaces."""
    test_forms = {form(text) for text in test_queries}
    if shared := sum(form(text) in test_forms for text in triples.queries):
        raise DataError(
            f"{triples.place}: {shared:,} of {len(triples.queries):,} queries are also queries of the test set {test}; "
            "take them out (`curate check leaks` lists them), or give another test set"
        )


def _facts(folder: Path) -> dict[str, Any]:
    """Return the facts that `curate train-set` wrote to the manifest; DataError if there are none."""
    card = manifest.read(folder).get("card")
    try:
        return dict(json.loads(card["facts"]))  # type: ignore[index]
    except (TypeError, KeyError, ValueError) as error:
        raise DataError(
            f"{folder}/{manifest.NAME}: found no facts of a train set, expected what `curate train-set` writes there; "
            "make the triples again"
        ) from error


# The card of a trained model (README.md), with caveats on its scores.

Found = Mapping[str, Any]
TEMPLATE = "commands/train/card.md.j2"


def notes(summary: Found) -> Iterator[str]:
    """Yield caveats: few seeds or dev queries, gains that are not significant, losses on legacy tasks."""
    if summary["few_seeds"]:
        yield f"{len(summary['seeds'])} seeds, fewer than 3: how much chance moves these scores is not known"
    if summary["dev_queries"] < FEW:
        yield f"the best step was chosen by {summary['dev_queries']} dev queries, fewer than {FEW}: chance had a part"
    if not summary["legacy"]:
        yield "no legacy task was scored (--legacy): what the model forgot elsewhere is not known"
    for row in summary["test"]:
        low = (row["difference"] or {}).get("low")
        if low is None or low <= 0:
            yield f"{row['task']}: the interval of the gain is not above 0: no gain was shown"
    for row in summary["legacy"]:
        if row["trained"] < row["base"]:
            yield f"{row['task']}: the trained model scores lower than the base on this legacy task"
    if all(row["best_step"] == 0 for row in summary["seeds"]):
        yield "no step was better than the base on the dev queries: these models are the base"


def readme(summary: Found) -> str:
    """Return the README of a trained model."""
    front = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "text"],
    }
    return (
        environment()
        .from_string(template(TEMPLATE))
        .render(front=front_matter(front), found=summary, named=named, shown=shown)
    )


def named(model: str) -> str:
    """Return a model's name for display, escaped for Markdown; for a folder, the last two parts of its path."""
    path = Path(model).expanduser()
    return markdown("/".join(path.resolve().parts[-2:]) if path.is_dir() else model)


def shown(row: Found) -> str:
    """Return base and trained score, times 100.

    If there is a paired test, also the difference, its 95 % interval and p.
    """
    scores = f"{100 * row['base']:.2f} -> {100 * row['trained']:.2f}"
    if (gain := row["difference"]) is None:
        return scores
    bounds = "" if gain["low"] is None else f" ({100 * gain['low']:+.2f} to {100 * gain['high']:+.2f})"
    return f"{scores}, {100 * gain['value']:+.2f}{bounds}, p {row['p']:.4f}"
