"""Gradients of mixed texts: selection of the pairs (source, destination) to mix."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import polars as pl

from curate.commands.gradient import Config
from curate.core.records import Document, shown
from curate.core.sampling import shuffled
from curate.pipeline.stage import Context
from curate.tables.kinds.gradient import FEWEST, LEVELS, MIX, MixPair


@dataclass
class Fates:
    """Dropped candidates of one kind of gradient."""

    dropped: dict[str, str] = field(default_factory=dict)
    """Id -> reason."""
    table: str = "queries"
    """Table of these ids."""


def documents(context: Context, ids: set[str]) -> dict[str, Document]:
    """Return id -> document of the corpus, for the `ids` that exist."""
    corpus = context.corpus
    return {document.doc_id: document for document in chain.from_iterable(corpus.batches()) if document.doc_id in ids}


def pairs(config: Config, context: Context, queries: Mapping[str, str]) -> tuple[dict[str, MixPair], Fates]:
    """Return pair_id -> pair, and the dropped ones: short or equal texts, texts of another pair, beyond the limit."""
    fates = Fates(table="corpus" if config.pairs == "titles" else "queries")
    candidates = _title_pairs(context) if config.pairs == "titles" else _answers(context, queries, fates)
    usable, seen = dict[str, MixPair](), set[str]()
    for name, pair in candidates:
        if reason := _refusal(pair, seen, config.shortest):
            fates.dropped[name] = reason
        else:
            seen |= {pair.source, pair.destination}
            usable[name] = pair
    chosen = set(shuffled(list(usable), context.seed, "gradient", MIX)[: config.mix])
    fates.dropped |= dict.fromkeys((name for name in usable if name not in chosen), "beyond gradient.mix")
    if len(chosen) < FEWEST:
        fates.dropped |= dict.fromkeys(chosen, "fewer than three pairs can be mixed")
        chosen = set()
    return {f"mix-{name}": pair for name, pair in usable.items() if name in chosen}, fates


def _refusal(pair: MixPair, seen: set[str], shortest: int) -> str:
    if len(pair.source) < shortest or not pair.destination:
        return "its source is shorter than gradient.shortest, or its destination empty"
    if pair.source == pair.destination:
        return "source and destination are one text"
    return "one of its texts is that of another pair" if {pair.source, pair.destination} & seen else ""


def _title_pairs(context: Context) -> Iterator[tuple[str, MixPair]]:
    """Yield (doc_id, pair): the body of every titled document as source, its title as destination."""
    for document in chain.from_iterable(context.corpus.batches()):
        if document.title:
            yield document.doc_id, MixPair(document.text.strip(), document.title.strip(), "", document.doc_id)


def _answers(context: Context, queries: Mapping[str, str], fates: Fates) -> list[tuple[str, MixPair]]:
    """Return (query_id, pair): a relevant document per query as source, by seed; no document is used twice."""
    relevant: dict[str, list[str]] = {}
    for query_id, doc_id in verdicts(context).filter(pl.col("verdict") == "relevant")["query_id", "doc_id"].iter_rows():
        relevant.setdefault(query_id, []).append(doc_id)
    fates.dropped |= dict.fromkeys((query for query in queries if query not in relevant), "no relevant document")
    document_by_id = documents(context, {doc_id for doc_ids in relevant.values() for doc_id in doc_ids})
    pairs, used = [], set[str]()
    for query_id in (query for query in queries if query in relevant):
        order = shuffled(sorted(relevant[query_id]), context.seed, "gradient", MIX, query_id)
        doc_id = next((candidate for candidate in order if candidate not in used and candidate in document_by_id), None)
        if doc_id is None:
            fates.dropped[query_id] = "its relevant documents are taken by other queries"
            continue
        used.add(doc_id)
        text = shown(document_by_id[doc_id].title, document_by_id[doc_id].text).strip()
        pairs.append((query_id, MixPair(text, queries[query_id].strip(), query_id, doc_id)))
    return pairs


def verdicts(context: Context) -> pl.DataFrame:
    """Return the final verdicts on judged pairs."""
    return context.read("resolve" if context.report("resolve") else "consensus", "verdicts").sort("query_id", "doc_id")


def foreign(table: Sequence[Mapping[str, object]]) -> list[str]:
    """Return for every row the destination of its pair's level 0, which belongs to neither of the pair's sources."""
    zero = {str(row["pair_id"]): str(row["destination"]) for row in table if row["level"] == LEVELS[0]}
    return [zero[str(row["pair_id"])] for row in table]
