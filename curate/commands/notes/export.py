"""Export of notes as two tasks for mteb: retrieval of texts of the same group, and classification of the label.

mteb can score them offline. Texts are masked first. Ids are numbered anew, so that no id of a patient or a visit is
exported. No group has texts in both splits of the classification.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from curate.commands.notes.measuring import MeasurePlan, ProbeSet, halves
from curate.commands.notes.table import NotesTable
from curate.core.errors import ConfigError, DataError, TableError
from curate.core.figures import Record, figure
from curate.core.protocols import Progress
from curate.pii.settings import Masking
from curate.pii.texts import mask_texts
from curate.system.files import remove, replace_folder, sha256, write_text
from curate.tables.exporters import mteb_tasks
from curate.tables.exporters.card import environment, front_matter
from curate.tables.exporters.mteb import mteb_language
from curate.tables.readers.settings import language

SHORTEST = 5
"""Minimum number of characters of a text in the classification."""
PART = 5
"""The test split is 1 / PART of the texts; more if the rarest label has fewer than PART groups."""
MOST = 20_000_000
"""Maximum number of relevant pairs; a group of n texts has n (n - 1), so groups of thousands exceed it."""
SAMPLE = 200
Frames = dict[tuple[str, str], pl.DataFrame]
"""(Configuration, split) of a data set -> rows."""


class NotesTask(Record, schema_name="task"):
    """A written task."""

    task: str = figure("name of the task")
    rows: str = figure("numbers of its rows")
    labels: tuple[str, ...] | None = figure("labels of a classification", optional=True)


class NotesExport(Record, schema_name="export"):
    """Tasks that stock mteb scores, of masked texts."""

    folder: str = figure("folder of the tasks")
    masked: Mapping[str, int] = figure("category of PII -> masked spans")
    residual: int = figure("spans with possible residual PII")
    tasks: tuple[NotesTask, ...] = figure("a row per task")
    notes: tuple[str, ...] = figure("tasks that were left out, and why")


def need_free(folder: Path) -> None:
    """Raise ConfigError unless the folder is missing, empty, or an earlier export (has tasks.py)."""
    if folder.exists() and not (folder / "tasks.py").is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"--export {folder}: found something else there, expected a new folder; name another one")


def write(table: NotesTable, plan: MeasurePlan, folder: Path, spoken: str | None, progress: Progress) -> NotesExport:
    """Write the tasks that the table has columns for.

    `spoken` is the language of the texts, None to detect it.
    """
    spoken = spoken or language(table.texts[:SAMPLE])
    code = mteb_language(spoken)
    texts, masked, residual = _masked(table.texts, progress)
    notes, tasks = list[str](), list[NotesTask]()
    new = folder.with_name(f".{folder.name}.new")
    remove(new)
    new.mkdir(parents=True)
    head: dict[str, Any] = {"language": spoken, "code": code, "masked": masked, "residual": residual}
    if "group" in plan.undefined:
        notes.append(f"no retrieval task: {plan.undefined['group']}")
    else:
        frames = _retrieval(table, texts)
        counts = {config: frame.height for (config, _), frame in frames.items()}
        tasks.append(_write(new, folder.name, RETRIEVAL, frames, {**head, "counts": counts}))
    if plan.probe is None:
        notes.append(f"no classification task: {plan.undefined['auroc_disjoint']}")
    else:
        frames, dropped = _classification(plan.probe, texts)
        notes += [f"classification: {count:,} texts left out: {why}" for why, count in dropped.most_common()]
        counts = {split: frame.height for (_, split), frame in frames.items()} | {"labels": len(plan.probe.names)}
        task = _write(new, folder.name, CLASSIFICATION, frames, {**head, "counts": counts})
        tasks.append(replace(task, labels=tuple(plan.probe.names)))
    if not tasks:
        remove(new)
        raise DataError(f"{table.location}: no task can be made: {'; '.join(notes)}")
    write_text(new / "tasks.py", Path(mteb_tasks.__file__).read_text(encoding="utf-8"))
    replace_folder(new, folder)
    return NotesExport(str(folder), masked, residual, tuple(tasks), tuple(notes))


RETRIEVAL: Mapping[str, Any] = {
    "type": "Retrieval",
    "main_score": "hit_rate_at_1",
    "category": "text-retrieval",
    "abstask": {"class": "retrieval.AbsTaskRetrieval", "attributes": {"ignore_identical_ids": True}},
    "default": "qrels",
    "description": "Texts of the same group, such as notes of one patient, for each text: it is itself in the corpus, "
    "under its own id, which is not counted. `hit_rate_at_k` is the recall that `curate notes` calls group.",
}
DRAWS = {"samples_per_label": 8, "n_experiments": 10}
CLASSIFICATION: Mapping[str, Any] = {
    "type": "Classification",
    "main_score": "f1",
    "category": "text-classification",
    "abstask": {"class": "classification.AbsTaskClassification", "attributes": DRAWS},
    "default": "default",
    "description": "The label of a text. No group, such as a patient, has texts in both splits; no text is in both.",
}


def _masked(texts: Sequence[str], progress: Progress) -> tuple[list[str], Mapping[str, int], int]:
    """Return masked texts, kind of personal data -> number of masked spans, and number of possible residual spans."""
    masked_texts, kinds, residual = list[str](), Counter[str](), 0
    for masked_text in mask_texts(texts, Masking(), b"", progress=progress):
        masked_texts.append(masked_text.masked.text)
        kinds.update(span.kind for span in masked_text.masked.spans)
        residual += len(masked_text.left)
    return masked_texts, dict(sorted(kinds.items())), residual


def _retrieval(table: NotesTable, texts: Sequence[str]) -> Frames:
    """Return corpus, queries (texts whose group has other texts) and qrels; DataError above `MOST` pairs."""
    chains = table.chains
    sizes = np.bincount(chains.group)
    if (pairs := int((sizes * (sizes - 1)).sum())) > MOST:
        raise TableError.at(
            table.location,
            f"groups so large that {pairs:,} pairs are relevant",
            f"{MOST:,} at most",
            "name a finer column with --column group=NAME, or leave out --export",
        )
    ids, starts = [f"t{row}" for row in range(len(texts))], np.cumsum(sizes) - sizes
    members = [int(row) for row in chains.member]
    mates_by_member = [
        (row, range(starts[chains.group[row]], starts[chains.group[row]] + sizes[chains.group[row]])) for row in members
    ]
    pairs_of_ids = [(ids[row], ids[mate]) for row, mates in mates_by_member for mate in mates if mate != row]
    return {
        ("corpus", "test"): pl.DataFrame({"id": ids, "text": list(texts)}),
        ("queries", "test"): pl.DataFrame(
            {"id": [ids[row] for row in members], "text": [texts[row] for row in members]}
        ),
        ("qrels", "test"): pl.DataFrame(pairs_of_ids, schema=["query-id", "corpus-id"], orient="row").with_columns(
            score=pl.lit(1, pl.Int64)
        ),
    }


def _classification(probe: ProbeSet, texts: Sequence[str]) -> tuple[Frames, Counter[str]]:
    """Return the frames of train and test, and reason -> number of texts excluded from both."""
    train, test = halves(probe, PART)
    labels: dict[str, set[int]] = {}
    for position, label in zip(probe.texts, probe.labels, strict=True):
        labels.setdefault(texts[position], set()).add(int(label))
    dropped, seen, frames = Counter[str](), set[str](), Frames()
    for split, rows in (("train", train), ("test", test)):
        examples = []
        for text, label in ((texts[probe.texts[row]], int(probe.labels[row])) for row in rows):
            if len(text.strip()) < SHORTEST:
                dropped[f"under {SHORTEST} characters"] += 1
            elif len(labels[text]) > 1:
                dropped["the same text has two labels"] += 1
            elif text in seen:
                dropped["the same text is there already"] += 1
            else:
                seen.add(text)
                examples.append((text, label))
        frames["default", split] = pl.DataFrame(examples, schema={"text": pl.String, "label": pl.Int64}, orient="row")
    for (_, split), frame in frames.items():
        if frame["label"].n_unique() < len(probe.names):
            raise DataError(
                f"classification: a label has no text left in the split {split}; leave the rarest label empty, or "
                "leave out --export"
            )
    return frames, dropped


def _write(above: Path, name: str, kind: Mapping[str, Any], frames: Frames, head: Mapping[str, Any]) -> NotesTask:
    """Write one task's Parquet files, with a hash of their content in the name, and its README."""
    folder = above / kind["type"].lower()
    name = f"{name}-{folder.name}"
    folder.mkdir()
    files: dict[str, list[dict[str, str]]] = {}
    for (config, split), frame in frames.items():
        temporary = folder / ".new.parquet"
        frame.write_parquet(temporary, compression="zstd", statistics=False)
        stem = config if split == "test" else f"{config}-{split}"
        path = temporary.rename(folder / f"{stem}-{sha256(temporary)[:16]}.parquet")
        files.setdefault(config, []).append({"split": split, "path": path.name})
    front = {
        "pretty_name": name,
        "language": [head["language"].partition("-")[0]],
        "task_categories": [kind["category"]],
        "tags": ["mteb", "text"],
        "configs": [
            {"config_name": config, "data_files": file} | ({"default": True} if config == kind["default"] else {})
            for config, file in files.items()
        ],
        "mteb": {
            "name": name,
            "type": kind["type"],
            "eval_langs": [head["code"]],
            "main_score": kind["main_score"],
            "description": kind["description"],
        },
        "abstask": kind["abstask"],
    }
    masked = (
        ", ".join(f"{kind_of_data} {count:,}" for kind_of_data, count in head["masked"].items()) or "nothing was found"
    )
    fields = {**head, "masked": masked, "name": name, "main_score": kind["main_score"]}
    page = environment().get_template("commands/notes/task.md.j2")
    write_text(folder / "README.md", page.render(front=front_matter(front), description=kind["description"], **fields))
    rows = ", ".join(f"{count:,} {what}" for what, count in head["counts"].items())
    return NotesTask(name, rows, labels=None)
