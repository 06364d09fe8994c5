"""Tasks of an evaluation, from a folder or by mteb's name: content, verdicts, gains and contributors."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from curate.commands.evaluate.item_scores import GRADED, MEDIAN, READINGS
from curate.commands.evaluate.scorers import PEARSON, Scorer, scorer_of
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


def scale_of(facts: Mapping[str, Any], grades: pl.DataFrame) -> Scale | None:
    """Return the scale of the votes: from the README, else the default five grades if all votes are among them.

    None for an unknown scale, a scale without gains, no votes, or a cascade, whose votes are incomplete.
    """
    scale = Scale.from_json(facts["scale"]) if "scale" in facts else FIVE
    used_grades = grades.select(pl.col("votes").list.explode().struct.field("grade"))["grade"].drop_nulls().unique()
    is_covered = not used_grades.is_empty() and set(used_grades) <= set(scale.labels)
    return scale if is_covered and scale.gains and "not positive" not in set(grades["verdict"]) else None


def gains_of_median_grades(
    grades: pl.DataFrame, labels: Mapping[str, Mapping[str, float]], scale: Scale
) -> dict[str, dict[str, float]]:
    """Return query -> document -> gain of the lower median grade, limited by the published label.

    If assessors, or a rule other than the median, decided a pair, the median grade may be on the other side of the
    relevance threshold from the label. Then the gain is the nearest one on the label's side. A positive without grades
    has the gain of the threshold.
    """
    cut = scale.gain(scale.relevant_from)
    below = max((gain for gain in scale.gains if gain < cut), default=0)
    gains_by_query = {
        query: {doc: float(cut) for doc, gain in docs.items() if gain > 0} for query, docs in labels.items()
    }
    votes_by_pair = grades.select("verdict", "votes", query_id="query-id", doc_id="corpus-id")
    rows = gains(votes_by_pair, scale, Gain()).join(votes_by_pair, on=PAIR, maintain_order="left")
    for query, doc, gain, verdict in rows.select(*PAIR, "score", "verdict").iter_rows():
        bounded_gain = {"relevant": max(gain, cut), "not relevant": min(gain, below)}.get(verdict, gain)
        gains_by_query.setdefault(query, {})[doc] = float(bounded_gain)
    return gains_by_query


if TYPE_CHECKING:
    from mteb.abstasks import AbsTask

Foreign: TypeAlias = Any
"""An object of mteb, `datasets` or torch, which are untyped here."""


@dataclass(frozen=True)
class EvaluationTask:
    """A task of an evaluation; its texts are read on first use."""

    name: str
    kind: BenchmarkKind
    source: str
    """Folder, or mteb's name, as the user gave it."""
    content: str
    """Digest of the contents of all files, or name and revision of a task on the hub."""
    made: "AbsTask"
    folder: Path | None = None

    @property
    def measure(self) -> str:
        """Return mteb's name of the main measure; of pairs, Pearson's correlation where the task states it."""
        states_pearson = self.kind.mteb.type == "STS" and self.made.metadata.main_score == PEARSON
        return PEARSON if states_pearson else self.kind.mteb.main_score

    @property
    def scorer(self) -> Scorer:
        """Return the scorer of its items."""
        return scorer_of(self.kind, self.measure)

    @cached_property
    def data(self) -> Foreign:
        """Return the evaluated split; UserError if there are several subsets or splits."""
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
        """Return the split on which classifiers are trained."""
        return self._split(self.made.train_split)

    def _split(self, name: str) -> Foreign:
        return self.made.dataset.get(self.subset, self.made.dataset)[name]

    @property
    def subset(self) -> str:
        """Return mteb's name of the evaluated subset."""
        return str(self.made.hf_subsets[0])

    @cached_property
    def verdicts(self) -> Mapping[str, Mapping[str, str]]:
        """Return query -> document -> verdict; {} without a panel's grades, and for reranking.

        Candidates of reranking are never contested, so verdicts add nothing to the qrels.
        """
        if (grades := self._grades()) is None or not self.scorer.searched:
            return {}
        columns = grades.select("query-id", "corpus-id", "verdict")
        verdicts: dict[str, dict[str, str]] = {}
        for query, document, verdict in columns.iter_rows():
            verdicts.setdefault(query, {})[document] = verdict
        return verdicts

    @cached_property
    def gains(self) -> Mapping[str, int]:
        """Return grade -> gain of graded labels, from the README; {} for binary labels."""
        return {str(grade): int(gain) for grade, gain in self._readme_facts.get("gains", {}).items()}

    @property
    def readings(self) -> tuple[str, ...]:
        """Return the names of the ways of scoring contested pairs, or graded labels."""
        if self.gains:
            return GRADED
        return (*READINGS, MEDIAN) if self.median_gains else READINGS

    @cached_property
    def median_gains(self) -> Mapping[str, Mapping[str, float]]:
        """Return query -> document -> gain of the judges' lower median grade; for pairs without grades, of the label.

        {} for graded labels (which are these gains), for tasks without retrieval, and if grades or gains are unknown.
        """
        grades = self._grades() if self.scorer.searched and not self.gains else None
        if grades is None or (scale := scale_of(self._readme_facts, grades)) is None:
            return {}
        return gains_of_median_grades(grades, self.data["relevant_docs"], scale)

    @cached_property
    def undecided(self) -> int:
        """Return the number of judged queries that are not scored, because no document is labelled relevant.

        Includes queries that the export excluded for this reason.
        """
        labels = self.data["relevant_docs"]
        n_exported = sum(not any(gain > 0 for gain in labels.get(query, {}).values()) for query in self.verdicts)
        return n_exported + self.lost["queries"]

    @cached_property
    def lost(self) -> Mapping[str, int]:
        """Return the numbers of judged `queries` that the export excluded, of their `pairs` and `contested` pairs."""
        path = self.folder.parent / manifest.NAME if self.folder else None
        counts = read_json(path).get("lost") if path and path.is_file() and self.verdicts else None
        return {name: int((counts or {}).get(name, 0)) for name in ("queries", "pairs", "contested")}

    @cached_property
    def mean_gains(self) -> Mapping[str, Mapping[str, float]]:
        """Return query -> document -> mean gain of the judges' grades, for pairs with a graded label."""
        grades = self._grades() if self.gains else None
        if grades is None:
            return {}
        gain = pl.element().struct.field("grade").replace_strict(self.gains, default=None, return_dtype=pl.Float64)
        rows = grades.filter(pl.col("verdict").is_in(LABELLED)).select(
            "query-id", "corpus-id", mean=pl.col("votes").list.eval(gain).list.mean()
        )
        gains_by_query: dict[str, dict[str, float]] = {}
        for query, document, mean in rows.drop_nulls("mean").iter_rows():
            gains_by_query.setdefault(query, {})[document] = mean
        return gains_by_query

    @cached_property
    def parts(self) -> Mapping[str, frozenset[str]]:
        """Return role -> names of contributors, from the README and the votes."""
        voted = {"judge": self._voted}
        return {role: frozenset(self._readme_facts.get(role, ())) | voted.get(role, frozenset()) for role in ROLES}

    @property
    def circular(self) -> frozenset[str]:
        """Return the names of contributors in roles that bias their scores on this task."""
        return frozenset(name for role in self.kind.circular for name in self.parts[role])

    @cached_property
    def _readme_facts(self) -> Mapping[str, Any]:
        """Return the block `curate` of the README's YAML, which mteb ignores."""
        block: Mapping[str, Any] = _front_matter(self.folder).get("curate", {}) if self.folder else {}
        return block

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
    """Return the tasks of a run folder, an export, its folder `mteb`, or one task's folder; UserError without a task.

    DataError if a file is missing, or does not match the hash in its name.
    """
    for root in (folder, folder / "mteb", folder / "export" / "mteb"):
        if task_folders := [*([root] if _front_matter(root) else ()), *mteb_tasks.task_folders(root)]:
            return [_task(task_folder, str(folder)) for task_folder in task_folders]
    raise UserError(
        f"{folder}: found no task; give a run folder that was exported as `mteb`, or a folder that holds "
        f"{', '.join(kind.name for kind in kinds())}, each with a README.md"
    )


def legacy(source: str) -> list[EvaluationTask]:
    """Return the tasks of a folder, or the mteb task with that name."""
    if Path(source).is_dir():
        return in_folder(Path(source))
    mteb = imported()
    try:
        mteb_task = mteb.get_task(source)
    except KeyError as error:
        raise UserError(f"--legacy {source}: neither a folder nor a task of mteb ({error.args[0]})") from None
    kind = of_type(mteb_task.metadata.type)
    if kind is None:
        raise UserError(f"--legacy {source}: a task of the type {mteb_task.metadata.type}; expected {_types()}")
    content = digest([mteb_task.metadata.name, dict(mteb_task.metadata.dataset)])
    return [EvaluationTask(mteb_task.metadata.name, kind, source, content, mteb_task)]


def imported() -> Foreign:
    """Return the module mteb; MissingExtra if it is not installed."""
    with needed("evaluate"):
        import mteb
    return mteb


def _task(folder: Path, source: str) -> EvaluationTask:
    imported()
    block = _front_matter(folder)["mteb"]
    by_name = next((kind for kind in kinds() if kind.name == folder.name), None)
    kind = by_name or of_type(block["type"], str(block.get("main_score", "")))
    if kind is None or kind.mteb.type != block["type"]:
        raise DataError(f"{folder}: a task of the type {block['type']!r}; expected {_types()}")
    mteb_task = load_task(folder)
    file_names = mteb_tasks.data_files(_front_matter(folder))
    content = digest([sha256(folder / "README.md"), {name: sha256(folder / name) for name in file_names}])
    return EvaluationTask(block["name"], kind, source, content, mteb_task, folder)


def _types() -> str:
    return ", ".join(dict.fromkeys(kind.mteb.type for kind in kinds()))


def _front_matter(folder: Path) -> dict[str, Any]:
    """Return the YAML block of a task's README; {} for any other folder."""
    try:
        return mteb_tasks.front_matter(folder)
    except ValueError:
        return {}
