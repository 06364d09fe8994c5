"""The language of texts by their script: what every command detects before it asks a model."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from curate.tables.readers import Table
from curate.tables.readers.items import Item, check_header, item, wanted
from curate.tables.readers.settings import Input, Sources, sources

LOOKED, FILES = 200, 10
"""First rows of a file, and first files of a table, that are looked at."""
LETTERS: Mapping[str, str] = {"ja": "[\u3040-\u30ff]", "ko": "[\uac00-\ud7af]", "zh": "[\u4e00-\u9fff]"}
"""Language -> the characters that only it has, or that are left to it by those before it."""
OTHER = "en"
"""Stands for all languages that are not told apart, which are most."""


@dataclass(frozen=True)
class Spoken:
    """The language of a set's texts, and of its queries and its documents alone."""

    language: str
    tables: Mapping[str, str]

    def fits(self, language: str) -> bool:
        """Say whether a tag such as zh or zh-CN is the language of the texts, or of one of their two tables."""
        return base(language) in {self.language, *self.tables.values()}

    def __str__(self) -> str:
        """Return the language, with those of the tables if they differ."""
        parts = ", ".join(f"{table} {language}" for table, language in self.tables.items())
        return self.language if len(set(self.tables.values())) < 2 else f"{self.language} ({parts})"


def base(language: str) -> str:
    """Return a tag without region and script: zh of zh-CN."""
    return language.partition("-")[0]


def language(texts: Iterable[str]) -> str:
    """Return the first language to whose script a tenth of the characters belongs; English if there is none."""
    text = "".join(texts)
    shares = ((name, len(text) - len(re.sub(letters, "", text))) for name, letters in LETTERS.items())
    return next((name for name, found in shares if 10 * found > len(text)), OTHER)


def spoken(config: Input, found: Sources | None = None) -> Spoken:
    """Return the language of what the settings stand for, by its first rows.

    ConfigError, DataError, MissingExtra or RunFailed if a source is missing or cannot be loaded.
    """
    found = found or sources(config)
    texts = {table: [*_texts(config, found, table)] for table in ("queries", "corpus")}
    whole = language(text for each in texts.values() for text in each)
    return Spoken(whole, {table: language(each) for table, each in texts.items() if each})


def _texts(config: Input, found: Sources, table: Table) -> Iterator[str]:
    names = config.names(table)
    for source in found.tables[table][:FILES]:
        check_header(source, table, names)
        for row in islice(source.rows(wanted(names)), LOOKED):
            read = item(row, names)
            if isinstance(read, Item):
                yield f"{read.title}{read.text}"
