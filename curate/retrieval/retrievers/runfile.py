"""Retriever that reads rankings from a file: a TREC run, or predictions of mteb."""

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
"""Key in mteb's file whose value is metadata, not a run."""

Run = dict[str, dict[str, float]]
"""Query -> document -> score."""


class Config(Section):
    """File of the run, and which run of it."""

    path: Path
    """A TREC run, or `<task>_predictions.json` of mteb."""
    subset: str | None = None
    """Subset of an mteb file; may be None if there is only one."""
    split: str | None = None
    """Split of an mteb file; may be None if there is only one."""


class RunFile:
    """Retriever that returns the rankings of a file: lines `qid Q0 docid rank score tag`, or mteb's JSON."""

    egress: ClassVar[Egress] = "local"
    orders_ties: ClassVar[bool] = True
    """Marks that documents of equal score keep the order of `search`, even if their ids were replaced since."""

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name, self.config, self._run_id = name, config, kit.named
        if not config.path.is_file():
            raise DataError(
                f"retrievers.{name}.path: {config.path}: no such file; "
                "give a TREC run, or <task>_predictions.json of mteb"
            )
        self.identity: Json = {"kind": "runfile", "sha256": sha256(config.path), **config.model_dump(exclude={"path"})}

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[list[Hit]]:  # noqa: ARG002
        """Yield all documents of each query by the file's scores, ties by descending id in the file, as trec_eval does.

        `depth` is ignored, since the file may rank the raw corpus, of which some documents were merged or dropped; the
        pool truncates the lists. Queries of the file that are not in `queries` are left out; a query without lines has
        no hits.
        """
        run_id, query_ids = self._run_id, {query.query_id for query in queries}

        def is_searched(query_id: str) -> bool:
            return run_id(query_id) in query_ids

        is_json = self.config.path.suffix == ".json"
        scores_by_query = (
            _predictions(self.name, self.config, is_searched) if is_json else _trec(self.config.path, is_searched)
        )
        run = {
            run_id(query): sorted(scores.items(), key=lambda hit: (hit[1], hit[0]), reverse=True)
            for query, scores in scores_by_query.items()
        }
        for query in counting(queries, progress, StepLabel(f"reading, {self.name}", "queries"), len(queries)):
            ranked = enumerate(run.get(query.query_id, ()), start=1)
            yield [Hit(run_id(doc_id), rank, score) for rank, (doc_id, score) in ranked]


def _predictions(name: str, config: Config, is_searched: Callable[[str], bool]) -> Run:
    """Return one run of a file of mteb's `prediction_folder` (subset -> split -> query -> document -> score).

    Only searched queries are retained. DataError or ConfigError unless subset and split select exactly one run.
    """
    path = config.path
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: not valid JSON ({error}); give mteb's <task>_predictions.json") from error
    runs = {
        (subset, split): run
        for subset, splits in _mapping(content, path).items()
        if subset != META and config.subset in (None, subset)
        for split, run in _mapping(splits, path).items()
        if config.split in (None, split)
    }
    if len(runs) != 1:
        names = ", ".join("/".join(keys) for keys in runs) or "none"
        raise DataError(f"{path}: expected one run, found {names}; set retrievers.{name}.subset and .split to choose")
    (run,) = runs.values()
    return {
        query_id: {doc_id: _number(score, f"{path}: {query_id}") for doc_id, score in _mapping(scores, path).items()}
        for query_id, scores in _mapping(run, path).items()
        if is_searched(query_id)
    }


def _mapping(content: object, path: Path) -> Mapping[str, object]:
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected subset -> split -> query -> document -> score, found {kind_of(content)}")
    return content


def _number(score: object, location: str) -> float:
    try:
        number = float(score) if isinstance(score, str | int | float) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{location}: found the score {score!r}, expected a finite number")
    return number


def _trec(path: Path, is_searched: Callable[[str], bool]) -> Run:
    run: Run = {}
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    _add(run, line.split(), f"{path}:{number}", is_searched)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text; give a TREC run in UTF-8") from error
    return run


def _add(run: Run, fields: Sequence[str], location: str, is_searched: Callable[[str], bool]) -> None:
    if len(fields) != FIELDS:
        raise DataError(f"{location}: found {len(fields)} fields, expected 6 (qid Q0 docid rank score tag)")
    query_id, _, doc_id, _, score, _ = fields
    if not is_searched(query_id):
        return
    scores = run.setdefault(query_id, {})
    if doc_id in scores:
        raise DataError(
            f"{location}: document {doc_id!r} stands twice in the ranking of query {query_id!r}; remove one"
        )
    scores[doc_id] = _number(score, location)
