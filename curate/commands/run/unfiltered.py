"""Texts of a source as no filter has seen them, which is what a plan before the first stage counts with.

The source is read in a temporary folder with masking and diversification switched off, so every stage that plans itself
finds its tables. Where the source cannot be read, texts of the lengths under `assume` stand in its place.
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
from curate.ledger import default_path
from curate.llm.cost import tokens
from curate.pipeline.pipeline import AssumedTexts, Pipeline
from curate.pipeline.stage import Context
from curate.runs.runner import Run

BEFORE = ("ingest", "mask", "diversify")
LOOKED = 1000
"""Documents whose texts stand for all."""
OFF = ("ingest.keep_raw=true", "mask.enabled=false", "mask.model=null", "diversify.enabled=false")
_FILLER = "文"
"""A text of these alone has the tokens of a Chinese one of its length."""
_REMEDY = (
    "to plan without the source give its size in the pipeline file, as in `assume: {queries: 1000, documents: 100000, "
    "query_tokens: 20, document_tokens: 400}`"
)


@dataclass(frozen=True)
class Unfiltered:
    """All texts that the stages may get, at most."""

    context: Context
    """Of a run whose stages up to `diversify` are done."""
    queries: int
    documents: int
    written: int
    """Documents that lie in its tables: all, but of an assumed corpus."""
    said: str
    """Where the numbers come from, as a sentence."""

    def sample(self) -> SampleTexts:
        """Return texts as judges see them, spread over all."""
        folder = self.context.folder("diversify")
        queries, corpus = (pl.scan_parquet(folder / f"{name}.parquet") for name in ("queries", "corpus"))
        rows = corpus.select("title", "text").gather_every(max(self.written // LOOKED, 1)).collect()
        asked = queries.select("text").gather_every(max(self.queries // LOOKED, 1)).collect()["text"].to_list()
        return SampleTexts(asked, [records.shown(title or "", text) for title, text in rows.iter_rows()])


def of_run(work: Run) -> Unfiltered:
    """Return the texts of a run that has got as far as `diversify`."""
    return _counted(work.beside("pool"), "as `diversify` left them")


@contextmanager
def of_source(work: Run) -> Iterator[Unfiltered]:
    """Yield the texts of the source, or assumed ones where it cannot be read; none of it is kept."""
    with TemporaryDirectory(prefix="curate-plan-") as name:
        place, assumed = Path(name), work.pipeline.head.assume
        try:
            context = _ingested(work, work.pipeline.settings, place / "run")
            found = _counted(context, "as the source has them; what `mask` and `diversify` merge and drop comes off")
        except (CurateError, OSError) as error:
            if assumed is None:
                raise ConfigError(f"{error}\n{_REMEDY}") from error
            written = _write(assumed, work, place / "texts")
            settings = {**work.pipeline.settings, "ingest": {"source": str(place / "texts")}}
            found = _counted(_ingested(work, settings, place / "assumed"), "")
            said = (
                f"the source cannot be read ({error}); as `assume` says there are {assumed.queries:,} queries of "
                f"{assumed.query_tokens:g} and {assumed.documents:,} documents of {assumed.document_tokens:g} tokens"
            )
            found = replace(found, documents=assumed.documents, written=written, said=said)
        if not _has_ledger(found.context):
            found = replace(found, context=replace(found.context, home=place, ledger=None))
        yield found


def _ingested(work: Run, settings: Settings, folder: Path) -> Context:
    """Return the context behind `diversify` of a run of these settings that filters nothing."""
    run = Run(folder, Pipeline.check(override(settings, OFF), work.pipeline.head.name), work.progress)
    run.execute(BEFORE)
    run.consent = work.consent
    return run.beside("pool")


def _counted(context: Context, said: str) -> Unfiltered:
    folder = context.folder("diversify")
    queries, documents = (
        pl.scan_parquet(folder / f"{name}.parquet").select(pl.len()).collect().item() for name in ("queries", "corpus")
    )
    return Unfiltered(
        context, queries, documents, documents, f"{queries:,} queries and {documents:,} documents, {said}"
    )


def _has_ledger(context: Context) -> bool:
    """Say whether there is a ledger, which may know answers; one that is looked into is made if it is not there."""
    place = context.ledger or default_path(context.home)
    return not isinstance(place, Path) or place.exists()


def _write(assumed: AssumedTexts, work: Run, folder: Path) -> int:
    """Write texts of the assumed lengths, each another one; return the number of documents, which stand for all."""
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
    """Return a text of about so many tokens by the estimate of `llm.cost`."""
    return beginning + _FILLER * max(round((length - tokens(beginning)) / (tokens(_FILLER * 100) / 100)), 0)


def _words(work: Run) -> list[str]:
    """Return words that a synonym of the same length can take the place of, where a stage looks for such words."""
    context = Context(Path(), Path(), Path(), language=work.pipeline.head.language)
    for name in work.pipeline.head.stages:
        section = work.pipeline.sections[name]
        if "dictionary" in type(section).model_fields:
            entries = dictionary(cast("DictionarySettings", section), context, name).entries
            return [entry.term for entry in entries if len(entry.term) == len(entry.synonym)]
    return []
