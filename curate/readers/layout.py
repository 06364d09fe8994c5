"""Folders of a known layout: BEIR (corpus.jsonl, queries.jsonl, qrels/) and MTEB (README.md with `configs:`)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import yaml

from curate import yamls
from curate.errors import ConfigError, DataError
from curate.readers import Table

DEFAULT_SPLIT = "test"
_ENDINGS = (".jsonl", ".csv", ".tsv", ".parquet")
_QRELS_ENDINGS = (".tsv", ".csv", ".jsonl", ".parquet")
_HEAD = yamls.Limits(1_000_000, 100_000)
"""A head may list hundreds of configurations."""


@dataclass(frozen=True)
class Parts:
    """The files of a folder, a list a table; a table that is not there has none."""

    queries: list[Path] = field(default_factory=list)
    corpus: list[Path] = field(default_factory=list)
    qrels: list[Path] = field(default_factory=list)
    other_qrels: list[Path] = field(default_factory=list)
    """Qrels of the splits that were not asked for: their queries are no part of this one."""

    def of(self, table: Table) -> list[Path]:
        """Return the files of one table."""
        return {"queries": self.queries, "corpus": self.corpus, "qrels": self.qrels}[table]


def find(folder: Path, split: str | None) -> Parts:
    """Return the files of a folder; without a split it is `test`, or the only one there is."""
    configs = _configs(folder / "README.md")
    return _mteb(folder, configs, split) if configs else _beir(folder, split)


def _beir(folder: Path, split: str | None) -> Parts:
    single = _named(folder, "qrels", _QRELS_ENDINGS)
    splits = {path.stem: [path] for path in sorted((folder / "qrels").glob("*")) if path.suffix in _QRELS_ENDINGS}
    if not splits and single and split is None:
        splits = {DEFAULT_SPLIT: single}
    chosen = choose(splits, split, f"{folder / 'qrels'}")
    others = [path for name, paths in splits.items() if name != chosen for path in paths]
    queries, corpus = _named(folder, "queries", _ENDINGS), _named(folder, "corpus", _ENDINGS)
    return Parts(queries, corpus, splits.get(chosen or "", []), others)


def _named(folder: Path, stem: str, endings: tuple[str, ...]) -> list[Path]:
    return [path for ending in endings if (path := folder / f"{stem}{ending}").is_file()][:1]


def choose(splits: Collection[str], split: str | None, place: str) -> str | None:
    """Return the split to read: the one asked for, else `test`, else the only one; None if there is none at all."""
    if split is not None and split not in splits:
        known = ", ".join(splits) or "none"
        raise ConfigError(f"{place}: found the splits {known}, expected {split!r}; set ingest.split to one of them")
    if split is not None or not splits:
        return split
    if DEFAULT_SPLIT in splits or len(splits) == 1:
        return DEFAULT_SPLIT if DEFAULT_SPLIT in splits else next(iter(splits))
    raise ConfigError(f"{place}: found the splits {', '.join(splits)}, expected to be told which; set ingest.split")


def _configs(readme: Path) -> dict[str, dict[str, list[str]]]:
    """Return config -> split -> patterns, from the YAML between the first two `---` lines; empty if there is none."""
    if not readme.is_file():
        return {}
    with readme.open("rb") as stream:
        raw = stream.read(_HEAD.size)
    lines = raw.decode("utf-8", errors="replace").removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---" or "---" not in (line.rstrip() for line in lines[1:]):
        return {}
    end = next(number for number, line in enumerate(lines[1:], start=1) if line.rstrip() == "---")
    try:
        head = yamls.parse("\n".join(lines[1:end]), _HEAD)
    except yaml.YAMLError as error:
        said = f"found a head that is not valid YAML ({yamls.problem(error)}), expected `configs:`; correct it"
        raise DataError(f"{readme}:1: {said}") from error
    entries = head.get("configs") if isinstance(head, dict) else None
    found = {}
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("config_name"), str):
            found[entry["config_name"]] = _splits(entry.get("data_files"))
    return found


def _splits(data_files: object) -> dict[str, list[str]]:
    if isinstance(data_files, str):
        return {"train": [data_files]}  # what `datasets` calls files without a split
    if isinstance(data_files, dict):
        return {str(split): _listed(patterns) for split, patterns in data_files.items()}
    splits: dict[str, list[str]] = {}
    for entry in data_files if isinstance(data_files, list) else []:
        if isinstance(entry, dict):
            splits.setdefault(str(entry.get("split", "train")), []).extend(_listed(entry.get("path")))
        else:
            splits.setdefault("train", []).extend(_listed(entry))
    return splits


def _listed(patterns: object) -> list[str]:
    return [patterns] if isinstance(patterns, str) else [str(p) for p in patterns] if isinstance(patterns, list) else []


def _mteb(folder: Path, configs: Mapping[str, Mapping[str, list[str]]], split: str | None) -> Parts:
    place = str(folder / "README.md")
    texts = {name: _text_patterns(configs, name, split, place) for name in ("queries", "corpus")}
    qrels = configs.get("qrels") or configs.get("default") or {}
    if {"queries", "corpus"} & set(qrels):  # the older layout: texts and qrels in two repositories
        qrels = {}
    chosen = choose(qrels, split, place) if qrels else None
    others = [pattern for name, patterns in qrels.items() if name != chosen for pattern in patterns]
    files = {name: _matches(folder, patterns, place) for name, patterns in texts.items()}
    wanted = _matches(folder, qrels[chosen], place) if chosen else []
    return Parts(files["queries"], files["corpus"], wanted, _matches(folder, others, place))


def _text_patterns(
    configs: Mapping[str, Mapping[str, list[str]]], name: str, split: str | None, place: str
) -> list[str]:
    splits = configs.get(name)
    if splits is None:
        return list(configs.get("default", {}).get(name, []))
    for choice in (split or DEFAULT_SPLIT, name):
        if choice in splits:
            return splits[choice]
    if len(splits) == 1:
        return next(iter(splits.values()))
    raise ConfigError(
        f"{place}: found the splits {', '.join(splits) or 'none'} of the config {name!r}, expected one or {split!r}; "
        f"give its files with ingest.{name}.path"
    )


def _matches(folder: Path, patterns: list[str], place: str) -> list[Path]:
    found: list[Path] = []
    for pattern in patterns:
        pure = PurePosixPath(pattern)
        if pure.is_absolute() or ".." in pure.parts:
            raise DataError(f"{place}: found the path {pattern!r}, expected one in the folder; correct `data_files`")
        try:
            paths = sorted(path for path in folder.glob(pattern) if path.is_file())
        except ValueError:  # such as an empty one
            paths = []
        if not paths:
            raise DataError(f"{place}: found no file that matches {pattern!r}, expected one; correct `data_files`")
        found.extend(path for path in paths if path not in found)
    return found
