"""Kinds of benchmark; the module of each defines how its tables are written, verified, scored and shown."""

from collections.abc import Callable, Sequence
from functools import cache

from curate.core.records import FILTERED
from curate.core.registry import Registry
from curate.tables.kinds.benchmark_kind import BenchmarkKind

KINDS: Registry[Callable[[], BenchmarkKind]] = Registry(
    "kind",
    {
        "retrieval": "curate.tables.kinds.documents:Retrieval",
        "graded": "curate.tables.kinds.documents:Graded",
        "reranking": "curate.tables.kinds.documents:Reranking",
        "sts": "curate.tables.kinds.sts:Sts",
        "classification": "curate.tables.kinds.labelled:Classification",
        "classification-confirmed": "curate.tables.kinds.labelled:ConfirmedClassification",
        "clustering": "curate.tables.kinds.labelled:Clustering",
        "clustering-confirmed": "curate.tables.kinds.labelled:ConfirmedClustering",
        "paraphrase": "curate.tables.kinds.paraphrase:Paraphrase",
        "sentence-retrieval": "curate.tables.kinds.sentence_retrieval:SentenceRetrieval",
        "gradient-edit": "curate.tables.kinds.gradient:GradientEdit",
        "gradient-mix": "curate.tables.kinds.gradient:GradientMix",
    },
)
"""Kinds by name; other packages add theirs under the entry-point group `curate.kinds`."""
ALWAYS = ("mask", FILTERED, "pool", "judge", "consensus")
"""Stages of the retrieval benchmark whose counts the report shows for every run."""


@cache
def kind(name: str) -> BenchmarkKind:
    """Return a kind by its name; ConfigError if it is unknown."""
    return KINDS.load(name)()


def of_type(name: str, main_score: str = "") -> BenchmarkKind | None:
    """Return the first kind of an mteb type, preferably with this main score; None if no kind has the type."""
    alike = [candidate for candidate in kinds() if candidate.mteb.type == name]
    return next(
        (candidate for candidate in alike if candidate.mteb.main_score == main_score), alike[0] if alike else None
    )


def kinds() -> Sequence[BenchmarkKind]:
    """Return all kinds, built-in ones first, in the order of task folders and of tables in the report."""
    return [kind(name) for name in [*KINDS.builtin, *sorted(KINDS.others())]]


def stages() -> tuple[str, ...]:
    """Return the stages that make the tables of kinds, without repetition, in the order of the kinds."""
    return tuple(dict.fromkeys(member.stage for member in kinds() if member.stage))


def counted() -> tuple[str, ...]:
    """Return the stages whose counts the report shows, including those of kinds from other packages."""
    return ("ingest", *ALWAYS, "resolve", *stages(), "export")
