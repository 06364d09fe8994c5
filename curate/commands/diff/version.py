"""One version of a benchmark, as `curate diff` compares it: texts, final labels, and how they were made."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from curate.core.scale import Scale
from curate.panel.voting import PAIR
from curate.pipeline.reckoning import NO_GAIN, NO_POSITIVE
from curate.pipeline.stage import Context
from curate.runs import graded_labels
from curate.tables.exporters.labels import Gain


@dataclass(frozen=True)
class LabelVersion:
    """Texts and final labels of a run, or of an export without its run; ids are the run's."""

    place: Path
    queries: Mapping[str, str]
    documents: Mapping[str, str]
    """Document -> digest of title and text."""
    verdicts: pl.DataFrame
    """The table of that name: one row per judged pair."""
    panels: Mapping[str, Mapping[str, str]]
    """Where it is written (`run`, `manifest`) -> judge -> digest of model, prompt and rubric."""
    cut: str
    """The scale's grades, and from which on a pair is relevant."""
    seed: int | None = None
    pool: pl.DataFrame | None = None
    """The table of that name; None for an export."""
    rankings: pl.DataFrame | None = None
    graded: pl.DataFrame | None = None
    """query_id, doc_id and score above 0 of graded labels; None where labels are binary alone."""
    gain: str = ""
    """How a pair's gain is chosen."""
    beyond: Mapping[str, str] = field(default_factory=dict)
    """What decides besides the policy: `accept` -> the least sum of grades, `settle` -> the judge and its digest."""
    removed: frozenset[str] = frozenset()
    """Documents of a run that a refined corpus leaves out of its export."""
    gone: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """`queries` or `documents`, and an id that a stage dropped or merged -> by which stage, and why."""
    context: Context | None = None
    """Of a run."""
    prefixed: bool = False
    """Whether the export's own files have `q-` and `d-` before all ids."""
    new_ids: bool = False
    """Whether it is an export whose ids are no run's."""


def in_words(gain: Gain, scale: Scale) -> str:
    """Return how a pair's gain is chosen, with the gains of the grades."""
    return f"{graded_labels.in_words(gain)}; {', '.join(map(str, scale.gains))}"


def published(run: LabelVersion) -> LabelVersion:
    """Return of a run what its export holds; an export, as it is.

    Left out are queries without a positive, or without a gain where labels are graded, and documents that a refined
    corpus does without.
    """
    if run.context is None:
        return run
    verdicts = run.verdicts.filter(~pl.col("doc_id").is_in(sorted(run.removed)))
    found = {*verdicts.filter(pl.col("verdict") == "relevant")["query_id"]}
    kept = found if run.graded is None else found & {*run.graded["query_id"]}
    left_out = {query: NO_GAIN if query in found else NO_POSITIVE for query in run.queries.keys() - kept}
    asked = pl.col("query_id").is_in(sorted(kept))
    return replace(
        run,
        queries={query: text for query, text in run.queries.items() if query in kept},
        documents={name: what for name, what in run.documents.items() if name not in run.removed},
        verdicts=verdicts.filter(asked),
        graded=None if run.graded is None else run.graded.filter(asked).join(verdicts, on=PAIR, how="semi"),
        gone={**run.gone, **{("queries", query): f"export: {why}" for query, why in left_out.items()}},
    )
