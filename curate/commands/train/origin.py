"""Provenance of triples; refused are those that heuristics graded, or that were not checked for leaks."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from curate.commands.train.triples import TrainTriples
from curate.core.errors import ConfigError, DataError
from curate.core.figures import Record, figure
from curate.retrieval.similarity.leaks import form
from curate.tables.exporters import manifest

UNKNOWN = (
    "the triples come from a file that says nothing of its making; identical queries of the test set were looked for, "
    "similar ones were not (`curate check leaks` does)"
)


class TriplesOrigin(Record, schema_name="origin"):
    """Provenance of triples: program, judges and leak check."""

    made_by: str = figure("`curate train-set`, or `a file` for triples from elsewhere")
    judges: tuple[str, ...] = figure("judges that graded the triples", default=())
    checked_against: str | None = figure("test set of the leak check", default=None)
    notes: tuple[str, ...] = figure("limits of the leak check", default=())


def origin(triples: TrainTriples, test: Path) -> TriplesOrigin:
    """Return the triples' provenance; ConfigError if heuristics graded them or the leak check was skipped."""
    if not (triples.place.parent / manifest.NAME).is_file():
        return TriplesOrigin("a file", notes=(UNKNOWN,))
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
    return TriplesOrigin("curate train-set", tuple(facts.get("judges", ())), str(checked), tuple(notes))


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
    card: Any = manifest.read(folder).get("card")
    try:
        return dict(json.loads(card["facts"]))
    except (TypeError, KeyError, ValueError) as error:
        raise DataError(
            f"{folder}/{manifest.NAME}: found no facts of a train set, expected what `curate train-set` writes there; "
            "make the triples again"
        ) from error
