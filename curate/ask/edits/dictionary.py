"""The synonym dictionary of a run, checked against a lexicon and a list of longer words, by language."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from curate.ask.edits import synonyms
from curate.ask.edits.synonyms import Entry, Fault
from curate.core.languages import base_language
from curate.pipeline.stage import Context
from curate.system import resources


class DictionarySettings(Protocol):
    """Settings of a stage that uses a dictionary."""

    dictionary: str | None
    lexicon: Path | None
    faults: Literal["stop", "drop"]


@dataclass(frozen=True)
class Book:
    """A checked dictionary."""

    entries: list[Entry]
    faults: list[Fault]
    where: str


def dictionary(config: DictionarySettings, context: Context, stage: str) -> Book:
    """Return the dictionary without its faulty rows; DataError lists them unless they may be dropped.

    `stage` is the section that holds the setting `faults`.
    """
    file = path(config, context)
    entries = synonyms.read(file.read_text(encoding="utf-8"), file.suffix, file.name)
    traps = {synonyms.plain(line) for line in _lines(longer(context))}
    faults = synonyms.faults(entries, _lexicon(config, context), traps)
    if faults and config.faults == "stop":
        raise synonyms.complaint(faults, file.name, stage)
    faulty = {fault.line for fault in faults}
    return Book([entry for entry in entries if entry.line not in faulty], faults, file.name)


def path(config: DictionarySettings, context: Context) -> Path:
    """Return the path of the dictionary; if it is missing, ConfigError suggests an existing name."""
    name = config.dictionary or f"synonyms-{base_language(context.language)}.tsv"
    return Path(name) if Path(name).is_file() else resources.find("annotations", name)


def longer(context: Context) -> Path | None:
    """Return the packaged list of words that contain shorter, unrelated ones; None for a language without one."""
    name = f"longer-{base_language(context.language)}.txt"
    paths = (folder / name for folder in resources.folders("annotations"))
    return next((path for path in paths if path.is_file()), None)


def _lines(path: Path | None) -> list[str]:
    if path is None:
        return []
    lines = map(str.strip, path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _lexicon(config: DictionarySettings, context: Context) -> Collection[str] | None:
    """Return the words of the lexicon in the settings, for Chinese also those of jieba; None if empty."""
    words = {synonyms.plain(line) for line in _lines(config.lexicon)}
    if base_language(context.language) == "zh":
        import jieba

        text = Path(jieba.__file__).with_name("dict.txt").read_text(encoding="utf-8")
        words |= {line.partition(" ")[0].lower() for line in text.splitlines()}
    return words or None
