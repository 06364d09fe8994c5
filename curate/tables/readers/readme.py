"""Files of an MTEB folder by the `configs:` in the head of its README.md."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import yaml

from curate.core import safe_yaml
from curate.core.errors import DataError
from curate.tables.readers import Table
from curate.tables.readers.splits import choose, choose_texts, unread

Configs = Mapping[str, Mapping[str, list[str]]]
"""Config -> split -> patterns of files."""
_HEAD = safe_yaml.YamlLimits(1_000_000, 100_000)
"""A head may list hundreds of configurations."""


def configs(readme: Path) -> Configs:
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
        head = safe_yaml.parse("\n".join(lines[1:end]), _HEAD)
    except yaml.YAMLError as error:
        problem = f"found a head that is not valid YAML ({safe_yaml.problem(error)}), expected `configs:`; correct it"
        raise DataError(f"{readme}:1: {problem}") from error
    entries = head.get("configs") if isinstance(head, dict) else None
    splits_of = {}
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("config_name"), str):
            splits_of[entry["config_name"]] = _splits(entry.get("data_files"))
    return splits_of


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


def files(
    folder: Path, configs: Configs, split: str | None
) -> tuple[list[Path], list[Path], list[Path], list[Path], list[str]]:
    """Return the files of queries, corpus and qrels, those of the qrels of other splits, and notes on what is left."""
    readme = str(folder / "README.md")
    qrels = configs.get("qrels") or configs.get("default") or {}
    if {"queries", "corpus"} & set(qrels):  # the older layout: texts and qrels in two repositories
        qrels = {}
    chosen = choose(qrels, split, readme) if qrels else None
    others = [pattern for name, patterns in qrels.items() if name != chosen for pattern in patterns]
    queries = _matches(folder, _text_patterns(configs, "queries", chosen or split, readme), readme)
    corpus = _matches(folder, _text_patterns(configs, "corpus", chosen or split, readme), readme)
    qrels_files = _matches(folder, qrels[chosen], readme) if chosen else []
    return (queries, corpus, qrels_files, _matches(folder, others, readme), unread("qrels", chosen, qrels))


def _text_patterns(configs: Configs, table: Table, split: str | None, readme: str) -> list[str]:
    splits = configs.get(table)
    if splits is None:
        return list(configs.get("default", {}).get(table, []))
    return choose_texts(splits, table, split, readme)[1]


def _matches(folder: Path, patterns: list[str], readme: str) -> list[Path]:
    matches: list[Path] = []
    for pattern in patterns:
        pure = PurePosixPath(pattern)
        if pure.is_absolute() or ".." in pure.parts:
            raise DataError(f"{readme}: found the path {pattern!r}, expected one in the folder; correct `data_files`")
        try:
            paths = sorted(path for path in folder.glob(pattern) if path.is_file())
        except ValueError:  # such as an empty one
            paths = []
        if not paths:
            raise DataError(f"{readme}: found no file that matches {pattern!r}, expected one; correct `data_files`")
        matches.extend(path for path in paths if path not in matches)
    return matches
