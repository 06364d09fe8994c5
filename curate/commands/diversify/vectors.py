"""The texts written by the stage `mask`, read in batches, and their vectors."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polars as pl

from curate.ask import build
from curate.commands.diversify import NEAR_DUPLICATES, Config, DiversityRule
from curate.core.config import parse_yaml
from curate.core.errors import ConfigError
from curate.core.protocols import Vectors
from curate.core.records import shown
from curate.core.scripts import Script, ThresholdsByScript, guess
from curate.pipeline.stage import Context
from curate.retrieval.similarity.diversity import Kept
from curate.retrieval.vectors import of_corpus
from curate.system.corpus import TableCorpus
from curate.system.files import TableWriter, batches, column, height

TABLES = {"queries": ("query_id", "text"), "corpus": ("doc_id", "title", "text")}


@dataclass(frozen=True)
class MaskedTexts:
    """The queries or documents written by `mask`, read in batches, with their vectors by an encoder."""

    context: Context
    table: str
    encoder: str

    def __len__(self) -> int:
        return height(self.context.folder("mask"), self.table)

    def ids(self) -> pl.Series:
        """Return the ids, in order."""
        return column(self.context.folder("mask"), self.table, TABLES[self.table][0])

    def items(self) -> Iterator[tuple[str, str]]:
        """Yield (id, text) in order; a document's text includes its title, as encoders read it."""
        for batch in self._batches():
            for name, *texts in batch.select(TABLES[self.table]).iter_rows():
                yield name, shown(*texts) if self.table == "corpus" else texts[0]

    def vectors(self) -> Vectors:
        """Return the vectors of all texts, in order."""
        encoder = build.encoder(self.context, self.encoder)
        if self.table == "corpus":
            return of_corpus(encoder, TableCorpus(self.context.folder("mask")), self.context.progress)[1]
        return encoder.encode([text for _, text in self.items()], "query")

    def copy(self, kept: Kept) -> None:
        """Write the rows marked in the mask `kept`, in order."""
        at = 0
        with TableWriter(self.context.out, self.table) as writer:
            for batch in self._batches():
                writer.extend(batch.filter(pl.Series(kept[at : at + len(batch)], dtype=pl.Boolean)))
                at += len(batch)

    def _batches(self) -> Iterator[pl.DataFrame]:
        return batches(self.context.folder("mask"), self.table)


# The threshold of a side: a number, one per script of the texts, or the packaged one of an encoder.


def for_language(side: DiversityRule, table: str, encoder: str, language: str) -> DiversityRule:
    """Return the rule of `table` with the threshold for texts of a language; `auto` and numbers are unchanged.

    ConfigError if the rule uses packaged thresholds and the encoder has none, or if the texts' script has no threshold.
    """
    place = f"diversify.{table}.t"
    if side.t == NEAR_DUPLICATES:
        return side.model_copy(update={"t": _packaged(encoder, table, place).of(language, place)})
    if isinstance(side.t, Mapping):
        return side.model_copy(update={"t": ThresholdsByScript(side.t).of(language, place)})
    return side


def guesses(config: Config, language: str) -> list[str]:
    """Return a list with a caveat if a packaged threshold was not calibrated on the language, else []."""
    sides = {"queries": config.queries, "corpus": config.corpus} if config.enabled else {}
    named = [name for name, side in sides.items() if side.enabled and side.t == NEAR_DUPLICATES]
    said = guess(f"{' and '.join(named)}: thresholds for near-duplicates", language)
    return [said] if named and said else []


def _packaged(encoder: str, table: str, place: str) -> ThresholdsByScript[float]:
    known = _read()
    if encoder not in known:
        raise ConfigError(
            f"{place}: no threshold for near-duplicates is packaged for {encoder!r} (only for {', '.join(known)}); "
            "give a number, one per script such as {zh: 0.9, latin: 0.88}, or auto"
        )
    return ThresholdsByScript(known[encoder][table])


@cache
def _read() -> Mapping[str, Mapping[str, Mapping[Script, float]]]:
    path = Path(__file__).with_name("near_duplicates.yaml")
    known: Mapping[str, Mapping[str, Mapping[Script, float]]] = parse_yaml(path.read_text(encoding="utf-8"))
    return known
