"""What triples must not be trained on: those of heuristic judges, and those that may know the test set."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from curate.commands.train.triples import TrainTriples
from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.retrieval.similarity.leaks import form
from curate.tables.exporters import manifest

UNKNOWN = (
    "the triples come from a file that says nothing of its making; identical queries of the test set were looked for, "
    "similar ones were not (`curate check leaks` does)"
)


@dataclass(frozen=True)
class Origin:
    """What is known of how triples were made."""

    made_by: str
    """`curate train-set`, or `a file`."""
    judges: tuple[str, ...] = ()
    checked_against: str | None = None
    """Test set that a leak check compared the triples with."""
    notes: tuple[str, ...] = ()

    def shown(self) -> dict[str, Json]:
        """Return what is written down."""
        return asdict(self)


def origin(triples: TrainTriples, test: Path) -> Origin:
    """Return how triples were made; ConfigError for those of heuristics and those whose leak check was skipped."""
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


def no_test_query(triples: TrainTriples, asked: Iterable[str], test: Path) -> None:
    """Raise DataError if a query of the triples is one of the test set, but for case, width, signs and spaces."""
    held = {form(text) for text in asked}
    if known := sum(form(text) in held for text in triples.queries):
        raise DataError(
            f"{triples.place}: {known:,} of {len(triples.queries):,} queries are also queries of the test set {test}; "
            "take them out (`curate check leaks` lists them), or give another test set"
        )


def _facts(folder: Path) -> dict[str, Any]:
    """Return the facts of a train set's card."""
    card = manifest.read(folder).get("card")
    try:
        return dict(json.loads(card["facts"]))  # type: ignore[index]
    except (TypeError, KeyError, ValueError) as error:
        raise DataError(
            f"{folder}/{manifest.NAME}: found no facts of a train set, expected what `curate train-set` writes there; "
            "make the triples again"
        ) from error
