"""Gradients of mixed texts: pairs of a source and its destination, and all levels of each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import polars as pl

from curate.commands.gradient import Config
from curate.core.records import Document, shown
from curate.core.sampling import shuffled
from curate.pipeline.stage import Context
from curate.system.corpus import TableCorpus
from curate.tables.kinds.gradient import FEWEST, LEVELS, MIX, MixPair


@dataclass
class Fates:
    """What became of everything that was planned of one kind."""

    dropped: dict[str, str] = field(default_factory=dict)
    """Id -> reason."""
    table: str = "queries"
    """Where those ids stand."""


def documents(context: Context, wanted: set[str]) -> dict[str, Document]:
    """Return id -> document of the corpus for ids that are wanted."""
    corpus = TableCorpus(context.folder("diversify"))
    return {each.doc_id: each for each in chain.from_iterable(corpus.batches()) if each.doc_id in wanted}


def pairs(config: Config, context: Context, queries: Mapping[str, str]) -> tuple[dict[str, MixPair], Fates]:
    """Return pair_id -> pair, and why there are no more: texts that are short, equal, or stand in another pair."""
    fates = Fates(table="corpus" if config.pairs == "titles" else "queries")
    found = _titles(context) if config.pairs == "titles" else _answers(context, queries, fates)
    kept, seen = dict[str, MixPair](), set[str]()
    for name, pair in found:
        if reason := _refused(pair, seen, config.shortest):
            fates.dropped[name] = reason
        else:
            seen |= {pair.source, pair.destination}
            kept[name] = pair
    chosen = set(shuffled(list(kept), context.seed, "gradient", MIX)[: config.mix])
    fates.dropped |= dict.fromkeys((name for name in kept if name not in chosen), "beyond gradient.mix")
    if len(chosen) < FEWEST:
        fates.dropped |= dict.fromkeys(chosen, "fewer than three pairs can be mixed")
        chosen = set()
    return {f"mix-{name}": pair for name, pair in kept.items() if name in chosen}, fates


def _refused(pair: MixPair, seen: set[str], shortest: int) -> str:
    if len(pair.source) < shortest or not pair.destination:
        return "its source is shorter than gradient.shortest, or its destination empty"
    if pair.source == pair.destination:
        return "source and destination are one text"
    return "one of its texts is that of another pair" if {pair.source, pair.destination} & seen else ""


def _titles(context: Context) -> Iterator[tuple[str, MixPair]]:
    """Yield the body of every document against its title."""
    for each in chain.from_iterable(TableCorpus(context.folder("diversify")).batches()):
        if each.title:
            yield each.doc_id, MixPair(each.text.strip(), each.title.strip(), "", each.doc_id)


def _answers(context: Context, queries: Mapping[str, str], fates: Fates) -> list[tuple[str, MixPair]]:
    """Return a relevant document per query, drawn by seed, each document once."""
    relevant: dict[str, list[str]] = {}
    for query_id, doc_id in verdicts(context).filter(pl.col("verdict") == "relevant")["query_id", "doc_id"].iter_rows():
        relevant.setdefault(query_id, []).append(doc_id)
    fates.dropped |= dict.fromkeys((query for query in queries if query not in relevant), "no relevant document")
    held = documents(context, {doc_id for each in relevant.values() for doc_id in each})
    found, taken = [], set[str]()
    for query_id in (query for query in queries if query in relevant):
        order = shuffled(sorted(relevant[query_id]), context.seed, "gradient", MIX, query_id)
        doc_id = next((each for each in order if each not in taken and each in held), None)
        if doc_id is None:
            fates.dropped[query_id] = "its relevant documents are taken by other queries"
            continue
        taken.add(doc_id)
        text = shown(held[doc_id].title, held[doc_id].text).strip()
        found.append((query_id, MixPair(text, queries[query_id].strip(), query_id, doc_id)))
    return found


def verdicts(context: Context) -> pl.DataFrame:
    """Return the final verdicts on judged pairs."""
    return context.read("resolve" if context.report("resolve") else "consensus", "verdicts").sort("query_id", "doc_id")


def foreign(table: Sequence[Mapping[str, object]]) -> list[str]:
    """Return for every row the destination of its pair's level 0, which belongs to no source of it."""
    zero = {str(row["pair_id"]): str(row["destination"]) for row in table if row["level"] == LEVELS[0]}
    return [zero[str(row["pair_id"])] for row in table]
