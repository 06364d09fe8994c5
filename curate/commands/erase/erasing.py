"""Erasing of withdrawn records: from the tables of a run, its samples, checks and pages, the ledger and the caches.

`ingest` and `mask` lose their rows and stay up to date. Later stages lose theirs and are out of date: the next `curate
run` makes them again from the ledger, and pays nothing for what it holds. Published files are named, not changed.
"""

import gzip
import html
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from curate.core.config import check, text_digest
from curate.core.errors import ConfigError, suggestion
from curate.core.records import shown
from curate.ledger import Ledger
from curate.ledger.erasing import erase, pieces
from curate.llm import passages
from curate.pipeline import stages
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.mark import TEXT_TABLES, Mark
from curate.pipeline.stage import home
from curate.pipeline.withdrawn import NAME, Withdrawn
from curate.retrieval.vectors import default_folder, keys_of
from curate.retrieval.vectors.store import forget
from curate.review.sample import Sample
from curate.runs.runner import Run
from curate.system import files
from curate.system.files import read_lines, write_json

KEPT = ("ingest", "mask")
"""Stages that need the source; they are filtered."""
PUBLISHED = "export"
_KEYS = {"queries": "query_id", "corpus": "doc_id"}


@dataclass(frozen=True)
class RecordsTaken:
    """What is withdrawn: ids, and the texts that they have in the tables of the run, raw and masked."""

    queries: frozenset[str]
    documents: frozenset[str]
    query_texts: frozenset[str]
    passages: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.queries or self.documents)

    @property
    def texts(self) -> frozenset[str]:
        """Return all texts, of queries and of documents."""
        return self.query_texts | self.passages

    def without(self, table: pl.DataFrame, name: str) -> pl.DataFrame:
        """Return a table of a stage without the rows of the records; `name` tells a table of queries from others."""
        of_side = {"queries": self.queries, "corpus": self.documents}
        stays = pl.lit(value=True)
        for column, dtype in table.schema.items():
            if dtype != pl.String or column == "table":
                continue
            value = pl.col(column)
            if column in _KEYS.values():
                ids = self.queries if column == "query_id" else self.documents
                stays &= value.is_null() | ~value.is_in(sorted(ids))
            elif "table" in table.columns:
                for side, ids in of_side.items():
                    stays &= value.is_null() | (pl.col("table") != side) | ~value.is_in(sorted(ids))
            elif column.endswith("id") or column in ("document", "passage"):
                stays &= value.is_null() | ~value.is_in(sorted(self.documents if name != "queries" else self.queries))
        return table.filter(stays)

    def in_file(self, path: Path) -> bool:
        """Return whether a file holds a text of the records, or one of their ids as a cell, a string or a word."""
        if path.suffix == ".parquet":
            return self.in_text(repr(pl.read_parquet(path).rows()), _QUOTED)
        content_bytes = path.read_bytes()
        unpacked = gzip.decompress(content_bytes) if path.suffix == ".gz" else content_bytes
        suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
        return self.in_text(unpacked.decode("utf-8", "replace"), _ID_IN.get(suffix))

    def in_text(self, content: str, around_id: str | None) -> bool:
        """Return whether a text of the records is in some content, or an id between two characters of `around_id`."""
        if any(form in content for text in self.texts for form in _forms(text)):
            return True
        if around_id is None:
            return False
        names = "|".join(map(re.escape, sorted(self.queries | self.documents)))
        return re.search(rf"(?:^|[{around_id}])(?:{names})(?:[{around_id}]|$)", content, re.MULTILINE) is not None


_QUOTED = "\"'"
_ID_IN = {".json": _QUOTED, ".jsonl": _QUOTED, ".tsv": "\\t", ".txt": "\\s", ".csv": ',"'}
"""Ending of a file -> what an id stands between in it; of others only texts are looked for: ids may be numbers."""


def _forms(text: str) -> set[str]:
    """Return a text as tables, JSON and HTML write it."""
    return {
        text,
        repr(text)[1:-1],
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        html.escape(text),
    }


def found(run: Path, queries: Iterable[str], documents: Iterable[str]) -> RecordsTaken:
    """Return the records of these ids, with the ids of equal texts and of passages, and all their texts.

    ConfigError for an id that no table of the run has; one that was withdrawn before is passed over.
    """
    withdrawn = Withdrawn.read(run)
    ids = {
        "queries": _known(run, "queries", set(queries), set(withdrawn.queries)),
        "corpus": _known(run, "corpus", set(documents), set(withdrawn.documents)),
    }
    texts: dict[str, set[str]] = {"queries": set(), "corpus": set()}
    for side, key in _KEYS.items():
        for path in sorted(run.glob(f"*/{side}.parquet")):
            table = pl.scan_parquet(path).filter(pl.col(key).is_in(sorted(ids[side]))).collect()
            for row in table.iter_rows(named=True):
                texts[side] |= {text for text in (row["text"], shown(row.get("title") or "", row["text"])) if text}
    return RecordsTaken(
        *(frozenset(group) for group in (ids["queries"], ids["corpus"], texts["queries"], texts["corpus"]))
    )


def _known(run: Path, side: str, typed_ids: set[str], withdrawn_ids: set[str]) -> set[str]:
    """Return the typed ids with those of texts that were equal in the source and of a document's passages.

    ConfigError for an unknown one. A withdrawn one is unknown once nothing holds it, and passed over.
    """
    key, listed = _KEYS[side], set[str]()
    for path in sorted(run.glob(f"*/{side}.parquet")):
        listed |= set(pl.read_parquet(path, columns=[key])[key])
    equal: dict[str | int, set[str]] = {}
    for old_id, kept_id in _columns(run, "ingest", "aliases", side, "old_id", "kept_id"):
        equal.setdefault(kept_id, {kept_id}).add(old_id)
    for name, number in _columns(run, "ingest", "classes", side, "id", "class"):
        equal.setdefault(number, set()).add(name)
    listed |= {name for group in equal.values() for name in group}
    ids = set[str]()
    for name in typed_ids:
        passage_ids = {doc_id for doc_id in listed if doc_id.startswith(f"{name}#")} if side == "corpus" else set[str]()
        found_ids = {member for group in equal.values() if name in group for member in group}
        found_ids |= passage_ids | ({name} & listed)
        if found_ids:
            ids |= found_ids | {name}
        elif name not in withdrawn_ids:
            option = "--query" if side == "queries" else "--doc"
            raise ConfigError(f"{option}: found no record {name!r} in {run}; {suggestion(name, sorted(listed))}")
    return ids


def _columns(run: Path, stage: str, name: str, side: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield some columns of the rows of a side in a table of a stage, if it has that table."""
    path = run / stage / f"{name}.parquet"
    if path.is_file():
        yield from pl.read_parquet(path).filter(table=side).select(columns).iter_rows()


def planned(run: Path, record: RecordsTaken) -> Counter[str]:
    """Return place -> rows or files that would go, without the ledger; nothing is changed."""
    places = Counter[str]()
    for stage in (name for name in stages.KNOWN if (run / name).is_dir() and name != PUBLISHED):
        for path in sorted((run / stage).glob("*.parquet")):
            table = pl.read_parquet(path)
            places[stage] += len(table) - len(record.without(table, path.stem))
    for sample in _samples(run):
        places[str(sample.folder.relative_to(run))] += len(_rows_of(sample, record))
    for path in _others(run):
        places[str(path.relative_to(run))] += record.in_file(path)
    return +places


def published(run: Path, record: RecordsTaken) -> list[Path]:
    """Return the published files of a run that hold a text or an id of the records."""
    return [path for path in sorted((run / PUBLISHED).rglob("*")) if path.is_file() and record.in_file(path)]


def take_out(work: Run, record: RecordsTaken, ledger: Ledger) -> Counter[str]:
    """Take the records out of a run, its ledger and the caches; return place -> rows, replies or files that went."""
    run, places = work.folder, planned(work.folder, record)
    withdrawn = Withdrawn.read(run).adding(set(record.queries), set(record.documents))
    withdrawn.write(run)
    limits = check(JudgeConfig, work.pipeline.settings.get("judge") or {}, "judge")
    queries = {text_digest(passages.cut(text, limits.query_tokens)) for text in record.query_texts}
    documents = {text_digest(passages.cut(text, limits.passage_tokens)) for text in record.passages}
    quoted = {piece for text in record.texts for piece in pieces(text)}
    places.update({f"ledger {what}": count for what, count in erase(ledger, queries, documents, quoted).items()})
    for stage in stages.KNOWN:
        if stage not in (*KEPT, PUBLISHED) and (run / stage).is_dir():
            _filter_later(run / stage, record)
    for sample in _samples(run):
        _take_from_sample(sample, record)
    for path in _others(run):
        if record.in_file(path):
            _take_from_file(path, record)
    places += _caches(record)
    _filter_kept(run, record, withdrawn)  # last, for an interrupted command finds the texts there when it is repeated
    return places


def _filter_kept(run: Path, record: RecordsTaken, withdrawn: Withdrawn) -> None:
    """Take the rows out of the tables of `ingest` and `mask`, which stay up to date by their done-marks."""
    outputs: dict[str, str] = {}
    for stage in KEPT:
        folder, mark = run / stage, Mark.read(run / stage)
        if mark is None:
            return
        gone = Counter[str]()
        for path in sorted(folder.glob("*.parquet")):
            table = pl.read_parquet(path)
            rest = record.without(table, path.stem)
            gone[path.name] = len(table) - len(rest)
            if gone[path.name]:
                _write(path, rest)
        made_from, texts = dict(mark.made_from), sum(gone[name] for name in TEXT_TABLES)
        if stage == "ingest":
            outside: Any = made_from["outside"]
            made_from["outside"] = {**outside, **withdrawn.fingerprint()}
            texts = texts or len(record.queries) + len(record.documents)
        else:
            made_from["inputs"] = {"ingest": outputs}
        facts = {**mark.report.facts, **(withdrawn.facts() if stage == "ingest" else {})}
        for name, ids in (("queries", record.queries), ("documents", record.documents)):
            count = facts.get(name)
            if stage == "ingest" and isinstance(count, int):
                facts[name] = count - len(ids)
        notes = [note for note in mark.report.notes if "were withdrawn" not in note]
        notes += [withdrawn.note()] if stage == "ingest" else []
        report = replace(mark.report, rows_out=mark.report.rows_out - texts, facts=facts, notes=notes)
        outputs = mark.outputs | files.digests(folder)
        outputs.pop("stage.json", None)
        write_json(folder / "stage.json", asdict(replace(mark, made_from=made_from, report=report, outputs=outputs)))


def _filter_later(folder: Path, record: RecordsTaken) -> None:
    """Take the records out of a later stage, which is out of date then; what holds them otherwise is deleted."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.suffix == ".parquet":
            table = pl.read_parquet(path)
            rest = record.without(table, path.stem)
            if len(rest) < len(table):
                _write(path, rest)
        if path.name != "stage.json" and record.in_file(path):
            path.unlink()


def _samples(run: Path) -> Iterator[Sample]:
    for path in sorted([*run.glob("reviews/*/design.json"), *run.glob("checks/mask/*/design.json")]):
        yield Sample.load(path.parent)


def _rows_of(sample: Sample, record: RecordsTaken) -> set[str]:
    """Return the rows of a sample that show one of the records."""
    texts, ids = record.texts, record.queries | record.documents
    return {
        row_id
        for row_id, row_ids, row_texts in sample.survey.select("row_id", "ids", "texts").iter_rows()
        if not ids.isdisjoint(row_ids) or not texts.isdisjoint(row_texts)
    }


def _take_from_sample(sample: Sample, record: RecordsTaken) -> None:
    """Take rows and answers out of a sample; its strata are smaller by them, so that it stays a random sample."""
    rows = _rows_of(sample, record)
    gone = Counter(sample.survey.filter(pl.col("row_id").is_in(rows) & pl.col("expected").is_null())["stratum"])
    strata = [
        replace(stratum, size=stratum.size - gone[stratum.name], drawn=stratum.drawn - gone[stratum.name])
        for stratum in sample.design.strata
    ]
    if rows:
        files.write_table(sample.folder, "survey", sample.survey.filter(~pl.col("row_id").is_in(rows)))
        write_json(sample.folder / "design.json", asdict(replace(sample.design, strata=strata)))
    if (sample.folder / "frame.parquet").is_file():
        frame = pl.read_parquet(sample.folder / "frame.parquet")
        _write(sample.folder / "frame.parquet", record.without(frame, "frame"))
    for path in sorted(sample.folder.rglob("*.jsonl")):
        lines = [line for _, line in read_lines(path)]
        rest = [line for line in lines if line.get("row_id", line.get("item")) not in rows]
        if len(rest) < len(lines):
            _rewrite(path, (f"{json.dumps(line, ensure_ascii=False)}\n" for line in rest))
    for path in sorted(sample.folder.glob("sheets/*")) if rows else ():  # `curate review export` writes them again
        path.unlink()


def _others(run: Path) -> Iterator[Path]:
    """Yield files of a run that may show texts or name ids: pages, checks, the index of `curate view`."""
    elsewhere = {*stages.KNOWN, "reviews", "pipeline.yaml", ".id", NAME, ".lock", ".held"}
    for path in sorted(run.rglob("*")):
        folders = path.relative_to(run).parts
        if path.is_file() and folders[0] not in elsewhere and folders[:2] != ("checks", "mask"):
            yield path


def _take_from_file(path: Path, record: RecordsTaken) -> None:
    """Delete a file that holds one of the records; of a log, the lines that do."""
    if path.suffix != ".jsonl":
        path.unlink()
        return
    lines = path.read_text("utf-8").splitlines(keepends=True)
    _rewrite(path, (line for line in lines if not record.in_text(line, _QUOTED)))


def _rewrite(path: Path, lines: Iterable[str]) -> None:
    """Replace the lines of a file, which keeps its permissions."""
    mode = path.stat().st_mode
    files.write_text(path, "".join(lines))
    path.chmod(mode)


def _write(path: Path, table: pl.DataFrame) -> None:
    with files.replacing(path) as new:
        table.write_parquet(new)


def _caches(record: RecordsTaken) -> Counter[str]:
    """Delete the vectors of the texts, and all indexes of words, which are made again; return place -> number."""
    removed = Counter[str]()
    texts = sorted(record.texts)
    keys = np.concatenate([keys_of(texts, "query"), keys_of(texts, "document")])
    for folder in sorted(default_folder(home()).glob("*")):
        removed["cache of vectors"] += forget(folder, keys)
    for folder in sorted((home() / "cache" / "bm25").glob("*")):
        shutil.rmtree(folder)
        removed["cache of word indexes"] += 1
    return +removed
