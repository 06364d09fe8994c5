"""Rankings made elsewhere: a TREC run, or the predictions that mteb writes."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from curate.core.config import Json, Section, kind_of
from curate.core.errors import DataError
from curate.core.progress import StepLabel, counting
from curate.core.protocols import Corpus, Kit, Progress
from curate.core.records import Hit, Query
from curate.system.egress import Egress
from curate.system.files import sha256

FIELDS = 6
META = "mteb_model_meta"
"""What mteb writes beside its runs."""

Run = dict[str, dict[str, float]]
"""Query -> document -> score."""


class Config(Section):
    """Where the run is."""

    path: Path
    """A TREC run, or `<task>_predictions.json` of mteb."""
    subset: str | None = None
    """Which subset of an mteb file; None where there is only one."""
    split: str | None = None
    """Which split of an mteb file; None where there is only one."""


class RunFile:
    """Give back the rankings of a file: lines `qid Q0 docid rank score tag`, or mteb's JSON."""

    egress: ClassVar[Egress] = "local"
    orders_ties: ClassVar[bool] = True
    """Documents of one score stay in this order, whatever their ids are by now."""

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name, self.config, self._named = name, config, kit.named
        if not config.path.is_file():
            raise DataError(
                f"retrievers.{name}.path: {config.path}: no such file; "
                "give a TREC run, or <task>_predictions.json of mteb"
            )
        self.identity: Json = {"kind": "runfile", "sha256": sha256(config.path), **config.model_dump(exclude={"path"})}

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[list[Hit]]:  # noqa: ARG002
        """Yield each query's documents by the file's scores, all of them, ties by the file's ids, the greater first.

        That is how trec_eval reads a run. The ids are the file's: it may rank the raw corpus, of which some documents
        were merged or dropped, so only the pool can cut at a depth. Queries of the file that are not asked for are
        passed over; one it lacks has no hits.
        """
        named, query_ids = self._named, {query.query_id for query in queries}

        def wanted(query_id: str) -> bool:
            return named(query_id) in query_ids

        is_json = self.config.path.suffix == ".json"
        found = _predictions(self.name, self.config, wanted) if is_json else _trec(self.config.path, wanted)
        run = {
            named(query): sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)
            for query, scores in found.items()
        }
        for query in counting(queries, progress, StepLabel(f"reading, {self.name}", "queries"), len(queries)):
            ranked = enumerate(run.get(query.query_id, ()), start=1)
            yield [Hit(named(doc_id), rank, score) for rank, (doc_id, score) in ranked]


def _predictions(name: str, config: Config, wanted: Callable[[str], bool]) -> Run:
    """Read what mteb writes with `prediction_folder`: subset -> split -> query -> document -> score."""
    path = config.path
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: not valid JSON ({error}); give mteb's <task>_predictions.json") from error
    runs = {
        (subset, split): run
        for subset, splits in _mapping(data, path).items()
        if subset != META and config.subset in (None, subset)
        for split, run in _mapping(splits, path).items()
        if config.split in (None, split)
    }
    if len(runs) != 1:
        found = ", ".join("/".join(place) for place in runs) or "none"
        raise DataError(f"{path}: expected one run, found {found}; set retrievers.{name}.subset and .split to choose")
    (run,) = runs.values()
    return {
        query_id: {doc_id: _number(score, f"{path}: {query_id}") for doc_id, score in _mapping(scores, path).items()}
        for query_id, scores in _mapping(run, path).items()
        if wanted(query_id)
    }


def _mapping(value: object, path: Path) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected subset -> split -> query -> document -> score, found {kind_of(value)}")
    return value


def _number(value: object, place: str) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{place}: found the score {value!r}, expected a finite number")
    return number


def _trec(path: Path, wanted: Callable[[str], bool]) -> Run:
    run: Run = {}
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    _add(run, line.split(), f"{path}:{number}", wanted)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text; give a TREC run in UTF-8") from error
    return run


def _add(run: Run, fields: Sequence[str], place: str, wanted: Callable[[str], bool]) -> None:
    if len(fields) != FIELDS:
        raise DataError(f"{place}: found {len(fields)} fields, expected 6 (qid Q0 docid rank score tag)")
    query_id, _, doc_id, _, score, _ = fields
    if not wanted(query_id):
        return
    scores = run.setdefault(query_id, {})
    if doc_id in scores:
        raise DataError(f"{place}: document {doc_id!r} stands twice in the ranking of query {query_id!r}; remove one")
    scores[doc_id] = _number(score, place)
