"""Gains of the panel's median grades, for exports whose labels are binary."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from curate.commands.evaluate.item_scores import GRADED, MEDIAN, READINGS
from curate.commands.evaluate.scorers import Scorer, scorer_of
from curate.core.config import digest
from curate.core.errors import DataError, UserError
from curate.core.scale import FIVE, Scale
from curate.panel.voting import PAIR
from curate.system.extras import needed
from curate.system.files import read_json, sha256
from curate.tables.exporters import manifest, mteb_tasks
from curate.tables.exporters.labels import LABELLED, ROLES, Gain, gains
from curate.tables.exporters.mteb import load_task
from curate.tables.kinds import kinds, of_type
from curate.tables.kinds.benchmark_kind import BenchmarkKind


def scale_of(said: Mapping[str, Any], grades: pl.DataFrame) -> Scale | None:
    """Return the scale of the votes: what the README says, else the five grades if all votes are among them.

    None for another scale, one without gains, votes that nobody gave, and a cascade, whose votes are not all there.
    """
    scale = Scale.from_json(said["scale"]) if "scale" in said else FIVE
    given = grades.select(pl.col("votes").list.explode().struct.field("grade"))["grade"].drop_nulls().unique()
    known = not given.is_empty() and set(given) <= set(scale.labels)
    return scale if known and scale.gains and "not positive" not in set(grades["verdict"]) else None


def gains_of_median_grades(
    grades: pl.DataFrame, labels: Mapping[str, Mapping[str, float]], scale: Scale
) -> dict[str, dict[str, float]]:
    """Return query -> document -> gain of the raw lower median of the votes, gains below the cut kept.

    A published label decides on which side of the cut its pair lies, so that where people settled a pair, or a rule
    other than the median did, the gain is the nearest one on that side.
    """
    cut = scale.gain(scale.relevant_from)
    below = max((gain for gain in scale.gains if gain < cut), default=0)
    found = {query: {doc: float(cut) for doc, gain in docs.items() if gain > 0} for query, docs in labels.items()}
    named = grades.select("verdict", "votes", query_id="query-id", doc_id="corpus-id")
    rows = gains(named, scale, Gain()).join(named, on=PAIR, maintain_order="left")
    for query, doc, gain, verdict in rows.select(*PAIR, "score", "verdict").iter_rows():
        held = {"relevant": max(gain, cut), "not relevant": min(gain, below)}.get(verdict, gain)
        found.setdefault(query, {})[doc] = float(held)
    return found


# The tasks of a folder or a name, as mteb knows them, with the identity of their content.

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask

Foreign: TypeAlias = Any
"""A thing of mteb, `datasets` or torch, which have no types for us."""


@dataclass(frozen=True)
class EvaluationTask:
    """One task; its texts are read when they are first needed."""

    name: str
    kind: BenchmarkKind
    source: str
    """Folder, or mteb's name, as it was given."""
    content: str
    """Digest of every file's content, or name and revision of a task on the hub."""
    made: "AbsTask"
    folder: Path | None = None

    @property
    def measure(self) -> str:
        """Return mteb's name of the measure that counts."""
        return self.kind.mteb.main_score

    @property
    def scorer(self) -> Scorer:
        """Return what scores its items."""
        return scorer_of(self.kind)

    @cached_property
    def data(self) -> Foreign:
        """Return the one split that is scored; UserError if there are several subsets or splits."""
        if not self.made.data_loaded:
            self.made.load_data()
        if hasattr(self.made, "convert_v1_dataset_format_to_v2"):
            self.made.convert_v1_dataset_format_to_v2(num_proc=None)
        splits = self.made.metadata.eval_splits
        if len(self.made.hf_subsets) != 1 or len(splits) != 1:
            raise UserError(
                f"{self.source}: found {len(self.made.hf_subsets)} subsets and {len(splits)} splits, expected one "
                "of each; give a task of one language and one split"
            )
        return self._split(splits[0])

    @property
    def training(self) -> Foreign:
        """Return the split that classifiers are trained on."""
        return self._split(self.made.train_split)

    def _split(self, name: str) -> Foreign:
        return self.made.dataset.get(self.subset, self.made.dataset)[name]

    @property
    def subset(self) -> str:
        """Return mteb's name of the subset that is scored."""
        return str(self.made.hf_subsets[0])

    @cached_property
    def verdicts(self) -> Mapping[str, Mapping[str, str]]:
        """Return query -> document -> what the panel said; empty without a known panel, or without a pair in doubt.

        What a reranker is given was decided by all, so of these pairs no verdict says more than the qrels.
        """
        if (grades := self._grades()) is None or not self.scorer.searched:
            return {}
        columns = grades.select("query-id", "corpus-id", "verdict")
        found: dict[str, dict[str, str]] = {}
        for query, document, verdict in columns.iter_rows():
            found.setdefault(query, {})[document] = verdict
        return found

    @cached_property
    def gains(self) -> Mapping[str, int]:
        """Return grade -> gain of graded labels, as the README names them; empty for binary ones."""
        return {str(grade): int(gain) for grade, gain in self._said.get("gains", {}).items()}

    @property
    def readings(self) -> tuple[str, ...]:
        """Return by what readings of doubt, or of grades, a query is scored."""
        if self.gains:
            return GRADED
        return (*READINGS, MEDIAN) if self.median_gains else READINGS

    @cached_property
    def median_gains(self) -> Mapping[str, Mapping[str, float]]:
        """Return query -> document -> gain of the judges' lower median grade, and of labels that no grade explains.

        Empty for graded labels, which are such gains, where nothing is searched, and where grades or gains are unknown.
        """
        grades = self._grades() if self.scorer.searched and not self.gains else None
        if grades is None or (scale := scale_of(self._said, grades)) is None:
            return {}
        return gains_of_median_grades(grades, self.data["relevant_docs"], scale)

    @cached_property
    def undecided(self) -> int:
        """Return how many judged queries are in no score, as they have no relevant document by the published labels.

        Those that the export left out for it are counted too.
        """
        labels = self.data["relevant_docs"]
        kept = sum(not any(gain > 0 for gain in labels.get(query, {}).values()) for query in self.verdicts)
        return kept + self.lost["queries"]

    @cached_property
    def lost(self) -> Mapping[str, int]:
        """Return how many judged `queries` the export left out, by its manifest, their `pairs`, and those `contested`.

        All 0 where no manifest stands beside the task.
        """
        path = self.folder.parent / manifest.NAME if self.folder else None
        said = read_json(path).get("lost") if path and path.is_file() and self.verdicts else None
        return {name: int((said or {}).get(name, 0)) for name in ("queries", "pairs", "contested")}

    @cached_property
    def mean_gains(self) -> Mapping[str, Mapping[str, float]]:
        """Return query -> document -> mean gain of the judges' grades, of pairs that have a graded label."""
        grades = self._grades() if self.gains else None
        if grades is None:
            return {}
        given = pl.element().struct.field("grade").replace_strict(self.gains, default=None, return_dtype=pl.Float64)
        rows = grades.filter(pl.col("verdict").is_in(LABELLED)).select(
            "query-id", "corpus-id", mean=pl.col("votes").list.eval(given).list.mean()
        )
        found: dict[str, dict[str, float]] = {}
        for query, document, mean in rows.drop_nulls("mean").iter_rows():
            found.setdefault(query, {})[document] = mean
        return found

    @cached_property
    def parts(self) -> Mapping[str, frozenset[str]]:
        """Return role -> names of those who had it, by the README and the votes."""
        voted = {"judge": self._voted}
        return {role: frozenset(self._said.get(role, ())) | voted.get(role, frozenset()) for role in ROLES}

    @property
    def circular(self) -> frozenset[str]:
        """Return the names of those who had a part in making this task that makes their scores partly their own."""
        return frozenset(name for role in self.kind.circular for name in self.parts[role])

    @cached_property
    def _said(self) -> Mapping[str, Any]:
        """Return what the README says beside what mteb reads."""
        found: Mapping[str, Any] = _front(self.folder).get("curate", {}) if self.folder else {}
        return found

    @property
    def _voted(self) -> frozenset[str]:
        grades = self._grades()
        if grades is None or grades.is_empty():
            return frozenset()
        names = grades.select(pl.col("votes").list.explode().struct.field("judge").unique())
        return frozenset(names["judge"].drop_nulls())

    def _grades(self) -> pl.DataFrame | None:
        files = sorted(self.folder.glob("grades-*.parquet")) if self.folder else []
        return pl.read_parquet(files[0]) if files else None


def in_folder(folder: Path) -> list[EvaluationTask]:
    """Return the tasks of a run folder, an export, its folder `mteb`, or one task's folder; UserError if none is there.

    DataError if a file is missing or its content is not the one in its name, because it was edited.
    """
    for place in (folder, folder / "mteb", folder / "export" / "mteb"):
        if found := [*([place] if _front(place) else ()), *mteb_tasks.task_folders(place)]:
            return [_task(each, str(folder)) for each in found]
    raise UserError(
        f"{folder}: found no task; give a run folder that was exported as `mteb`, or a folder that holds "
        f"{', '.join(kind.name for kind in kinds())}, each with a README.md"
    )


def legacy(source: str) -> list[EvaluationTask]:
    """Return the tasks of a folder, or the one that mteb knows by that name."""
    if Path(source).is_dir():
        return in_folder(Path(source))
    mteb = imported()
    try:
        made = mteb.get_task(source)
    except KeyError as error:
        raise UserError(f"--legacy {source}: neither a folder nor a task of mteb ({error.args[0]})") from None
    kind = of_type(made.metadata.type)
    if kind is None:
        raise UserError(f"--legacy {source}: a task of the type {made.metadata.type}; expected {_types()}")
    content = digest([made.metadata.name, dict(made.metadata.dataset)])
    return [EvaluationTask(made.metadata.name, kind, source, content, made)]


def imported() -> Foreign:
    """Return mteb; MissingExtra says how to install it."""
    with needed("evaluate"):
        import mteb
    return mteb


def _task(folder: Path, source: str) -> EvaluationTask:
    imported()
    block = _front(folder)["mteb"]
    named = next((kind for kind in kinds() if kind.name == folder.name), None)
    kind = named or of_type(block["type"], str(block.get("main_score", "")))
    if kind is None or kind.mteb.type != block["type"]:
        raise DataError(f"{folder}: a task of the type {block['type']!r}; expected {_types()}")
    made = load_task(folder)
    return EvaluationTask(block["name"], kind, source, _content(folder), made, folder)


def _types() -> str:
    return ", ".join(dict.fromkeys(kind.mteb.type for kind in kinds()))


def _content(folder: Path) -> str:
    """Return the digest of the README and of every file that it names."""
    named = mteb_tasks.data_files(_front(folder))
    return digest([sha256(folder / "README.md"), {name: sha256(folder / name) for name in named}])


def _front(folder: Path) -> dict[str, Any]:
    """Return the YAML block of a task's README, empty if the folder is no task's."""
    try:
        return mteb_tasks.front_matter(folder)
    except ValueError:
        return {}
