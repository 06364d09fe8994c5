"""Unfiltered texts of a source, for a cost estimate before the first stage has run.

The source is ingested into a temporary folder without masking and near-duplicate filtering, so that stages find their
tables. If it cannot be read, filler texts of the lengths in the setting `assume` replace it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import polars as pl

from curate.ask.edits.dictionary import DictionarySettings, dictionary
from curate.ask.forecast import SampleTexts
from curate.core import records
from curate.core.config import Settings, override
from curate.core.errors import ConfigError, CurateError
from curate.core.records import FILTERED
from curate.ledger import default_path
from curate.llm.cost import tokens
from curate.pipeline.pipeline import AssumedTexts, Pipeline
from curate.pipeline.stage import Context
from curate.runs.runner import Run

BEFORE = ("ingest", "mask", FILTERED)
LOOKED = 1000
"""Approximate number of documents, and of queries, in the sample from which lengths are estimated."""
OFF = ("ingest.keep_raw=true", "mask.enabled=false", "mask.model=null", f"{FILTERED}.enabled=false")
_FILLER = "文"
"""Character that assumed texts are filled with, which has as many tokens as a Chinese character."""
_REMEDY = (
    "to plan without the source give its size in the pipeline file, as in `assume: {queries: 1000, documents: 100000, "
    "query_tokens: 20, document_tokens: 400}`"
)


@dataclass(frozen=True)
class Unfiltered:
    """Texts of a source without filtering, an upper bound of those that stages get."""

    context: Context
    """Context of a run, possibly a temporary one, that has finished `diversify`."""
    queries: int
    documents: int
    written: int
    """Number of documents in the run's tables; fewer than `documents` for an assumed corpus."""
    said: str
    """Sentence on the origin of the numbers."""

    def sample(self) -> SampleTexts:
        """Return an evenly spaced sample of the texts, as judges see them."""
        folder = self.context.folder(FILTERED)
        queries, corpus = (pl.scan_parquet(folder / f"{name}.parquet") for name in ("queries", "corpus"))
        rows = corpus.select("title", "text").gather_every(max(self.written // LOOKED, 1)).collect()
        query_texts = queries.select("text").gather_every(max(self.queries // LOOKED, 1)).collect()["text"].to_list()
        return SampleTexts(query_texts, [records.shown(title or "", text) for title, text in rows.iter_rows()])


def of_run(work: Run) -> Unfiltered:
    """Return the texts of a run that has finished `diversify`."""
    return _unfiltered(work.beside("pool"), "as `diversify` left them")


@contextmanager
def of_source(work: Run) -> Iterator[Unfiltered]:
    """Yield the texts of the source, or assumed ones if it cannot be read, in a folder that is removed afterwards."""
    with TemporaryDirectory(prefix="curate-plan-") as name:
        folder, assumed = Path(name), work.pipeline.head.assume
        try:
            context = _ingested(work, work.pipeline.settings, folder / "run")
            texts = _unfiltered(context, "as the source has them; what `mask` and `diversify` merge and drop comes off")
        except (CurateError, OSError) as error:
            if assumed is None:
                raise ConfigError(f"{error}\n{_REMEDY}") from error
            written = _write(assumed, work, folder / "texts")
            settings = {**work.pipeline.settings, "ingest": {"source": str(folder / "texts")}}
            texts = _unfiltered(_ingested(work, settings, folder / "assumed"), "")
            sentence = (
                f"the source cannot be read ({error}); as `assume` says there are {assumed.queries:,} queries of "
                f"{assumed.query_tokens:g} and {assumed.documents:,} documents of {assumed.document_tokens:g} tokens"
            )
            texts = replace(texts, documents=assumed.documents, written=written, said=sentence)
        ledger = texts.context.ledger or default_path(texts.context.home)
        if isinstance(ledger, Path) and not ledger.exists():  # opening it would create it
            texts = replace(texts, context=replace(texts.context, home=folder, ledger=None))
        yield texts


def _ingested(work: Run, settings: Settings, folder: Path) -> Context:
    """Run the stages `BEFORE` with filters off in a folder, and return the context of the next stage."""
    run = Run(folder, Pipeline.check(override(settings, OFF), work.pipeline.head.name), work.progress)
    run.execute(BEFORE)
    run.consent = work.consent
    return run.beside("pool")


def _unfiltered(context: Context, origin: str) -> Unfiltered:
    folder = context.folder(FILTERED)
    queries, documents = (
        pl.scan_parquet(folder / f"{name}.parquet").select(pl.len()).collect().item() for name in ("queries", "corpus")
    )
    return Unfiltered(
        context, queries, documents, documents, f"{queries:,} queries and {documents:,} documents, {origin}"
    )


def _write(assumed: AssumedTexts, work: Run, folder: Path) -> int:
    """Write distinct filler texts of the assumed lengths; return the number of documents written, at most `LOOKED`."""
    words = cycle(_words(work) or [""])
    written = min(assumed.documents, LOOKED)
    tables = {
        "queries": [_text(f"{n} {next(words)} ", assumed.query_tokens) for n in range(assumed.queries)],
        "corpus": [_text(f"{n} ", assumed.document_tokens) for n in range(written)],
    }
    folder.mkdir()
    for table, texts in tables.items():
        rows = (json.dumps({"_id": f"{table}-{n}", "text": text}) for n, text in enumerate(texts))
        (folder / f"{table}.jsonl").write_text("".join(f"{row}\n" for row in rows), "utf-8")
    return written


def _text(beginning: str, length: float) -> str:
    """Return a text of about `length` tokens by the estimate of `llm.cost`."""
    return beginning + _FILLER * max(round((length - tokens(beginning)) / (tokens(_FILLER * 100) / 100)), 0)


def _words(work: Run) -> list[str]:
    """Return the terms of a stage's dictionary whose synonym is of equal length; [] without a stage with a dictionary.

    Stages that replace terms find them in assumed texts, without a change of length.
    """
    context = Context(Path(), Path(), Path(), language=work.pipeline.head.language)
    for name in work.pipeline.head.stages:
        section = work.pipeline.sections[name]
        if "dictionary" in type(section).model_fields:
            entries = dictionary(cast("DictionarySettings", section), context, name).entries
            return [entry.term for entry in entries if len(entry.term) == len(entry.synonym)]
    return []
