"""What is fixed before anything is written: the documents, the length asked of each, and the real queries shown.

Lengths follow those of the real queries: of every ten documents, one is asked for a length out of each tenth of them.
"""

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from curate.commands.queries import Config
from curate.core.config import text_digest
from curate.core.progress import StepLabel, counting
from curate.core.records import Document
from curate.core.sampling import generator, shuffled
from curate.llm.passages import shown
from curate.pipeline.stage import Context
from curate.system.corpus import TableCorpus

TENTHS = 10


@dataclass(frozen=True)
class DrawnDocument:
    """A document for which a query is to be written."""

    doc_id: str
    text: str
    """As models are shown it."""
    length: int
    """Characters that are asked for."""
    examples: Sequence[str]
    """Real queries that the writer is shown."""


@dataclass(frozen=True)
class DrawnTexts:
    """The documents in the order in which they were drawn, and what they were drawn from."""

    documents: Sequence[DrawnDocument]
    real: Mapping[str, str]
    """The real queries: id -> text; empty where there are none."""
    corpus: int
    too_short: int
    """Documents with fewer characters than `shortest`."""


def draw(config: Config, context: Context, lengths: tuple[int, int]) -> DrawnTexts:
    """Draw documents by seed, and for each a length and examples; `lengths` count where there are no real queries."""
    rows = context.read("diversify", "queries").select("query_id", "text").iter_rows()
    real = {query_id: text for query_id, text in rows if text.strip()}
    corpus = TableCorpus(context.folder("diversify"))
    usable = [each.doc_id for each in _documents(corpus) if len(each.shown().strip()) >= config.shortest]
    chosen = shuffled(sorted(usable), context.seed, "queries", "documents")[: config.drawn]
    there = frozenset(chosen)
    found = {each.doc_id: each for each in _documents(corpus) if each.doc_id in there}
    wanted = targets(sorted(map(len, real.values())), lengths, len(chosen), context.seed)
    label = StepLabel("drawing documents", "documents")
    documents = [
        DrawnDocument(
            doc_id,
            shown(found[doc_id], config.passage_tokens).text,
            wanted[at],
            examples(real, doc_id, config.examples, context.seed),
        )
        for at, doc_id in enumerate(counting(chosen, context.progress, label, len(chosen)))
    ]
    return DrawnTexts(documents, real, len(corpus), len(corpus) - len(usable))


def _documents(corpus: TableCorpus) -> Iterator[Document]:
    for batch in corpus.batches():
        yield from batch


def targets(real: Sequence[int], lengths: tuple[int, int], count: int, seed: int) -> list[int]:
    """Return a length per document: quantiles of the real lengths, sorted, in turn out of each tenth of them.

    Without real ones lengths are spread evenly between the two of `lengths`.
    """
    drawn, (least, most) = generator(seed, "queries", "lengths"), lengths
    found = []
    for number in range(count):
        place = (number % TENTHS + drawn.random()) / TENTHS
        length = real[int(place * len(real))] if real else round(least + place * (most - least))
        found.append(max(1, length))
    return found


def examples(real: Mapping[str, str], doc_id: str, count: int, seed: int) -> list[str]:
    """Return real queries for the prompt of one document, drawn by seed and document."""
    names = generator(seed, "queries", "examples", doc_id).sample(sorted(real), min(count, len(real)))
    return [real[name] for name in names]


def query_id(doc_id: str, text: str) -> str:
    """Return the id of a synthetic query: the same text of the same document has it in every run."""
    name = text_digest(f"{doc_id}\n{text}")
    return f"synthetic-{name[:12]}"


class LengthClasses:
    """Classes of length that hold about as many real queries each; equal lengths are in one class."""

    def __init__(self, real: Sequence[int], count: int) -> None:
        self.real = sorted(real)
        size = len(self.real)
        bounds = {self.real[min(size - 1, size * at // count)] for at in range(1, count)} if real else set[int]()
        self.bounds = sorted(bounds - {self.real[0]} if real else bounds)

    def of(self, length: int) -> int:
        """Return the class of a length, from 0; the lower bound is in the class."""
        return bisect.bisect_right(self.bounds, length)

    def shares(self, lengths: Sequence[int]) -> list[float]:
        """Return the share of lengths in each class; zeros where there are none."""
        counts = [0] * (len(self.bounds) + 1)
        for length in lengths:
            counts[self.of(length)] += 1
        return [count / len(lengths) if lengths else 0.0 for count in counts]
