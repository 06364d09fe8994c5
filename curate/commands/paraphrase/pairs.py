"""Neighbours of queries among the queries: retrievers of different families propose them in turn.

Negatives that one encoder has mined are the pairs which it takes to be alike, so it would score too low on them, and
every other one too well (KINDS: mined by one encoder alone, that encoder scores below the overlap of characters).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from curate.ask import build
from curate.ask.edits.changes import Edit
from curate.ask.edits.confirmation import CHANGED, confirm_edits
from curate.ask.llm_questions import AskedModel, QuestionClient
from curate.ask.panel import Verdict, ask_panel, verdict
from curate.commands.paraphrase import Config, RankWindow
from curate.commands.paraphrase.writing import WrittenSentence
from curate.core.config import Json, check, digest
from curate.core.errors import ConfigError
from curate.core.protocols import Progress, Retriever
from curate.core.records import Document, Query
from curate.core.sampling import generator
from curate.llm.questions import Question
from curate.pipeline.configs import PoolConfig
from curate.pipeline.stage import Context
from curate.retrieval import ranking
from curate.stats.shortcuts import overlap

FEWEST = 2
"""Families of retrievers that take turns, at least."""
FOREIGN = ("qdrant", "runfile")
"""Kinds of retrievers that know a collection of their own, and cannot search the queries."""
BLOCK = 500


class QueryCorpus:
    """Queries as documents, in memory."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._documents = [Document(query_id, "", text) for query_id, text in texts.items()]
        self.digest = digest([[query_id, text] for query_id, text in texts.items()])

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self._documents)

    def batches(self) -> Iterator[Sequence[Document]]:
        """Yield them in order."""
        documents = iter(self._documents)
        while batch := list(islice(documents, BLOCK)):
            yield batch


@dataclass(frozen=True)
class Neighbour:
    """A query that was drawn beside another."""

    query_id: str
    other: str
    retriever: str
    rank: int
    """Among the other queries, from 1."""


Lists = Mapping[str, Mapping[str, Sequence[str]]]
"""Retriever -> query -> other queries, best first."""


def chosen(config: Config, context: Context) -> list[Retriever]:
    """Return the retrievers that take turns; ConfigError unless they are of different families, two at least."""
    names = config.retrievers or check(PoolConfig, context.settings.get("pool") or {}, "pool").retrievers
    found: dict[str, Retriever] = {}
    for name in names:
        made = build.retriever(context, name)
        kin = family(made.identity)
        if config.retrievers and (kin in FOREIGN or kin in found):
            why = "cannot search the queries" if kin in FOREIGN else f"is of the family of {found[kin].name} ({kin})"
            raise ConfigError(f"paraphrase.retrievers: {name} {why}; name another, such as bm25, e5 or use")
        if kin not in FOREIGN and (config.retrievers or len(found) < FEWEST):
            found.setdefault(kin, made)
    if len(found) < FEWEST:
        there = ", ".join(each.name for each in found.values()) or "none"
        raise ConfigError(
            f"paraphrase.retrievers: found {there} of {', '.join(names)} that can search the queries, and negatives of "
            "one family alone are unfair to it; name two families, such as [bm25, use]"
        )
    return list(found.values())


def family(identity: Json) -> str:
    """Return the encoder of a dense retriever, else its kind."""
    said: Any = identity
    return str(said.get("encoder") or said.get("kind") or digest(identity)) if isinstance(said, Mapping) else str(said)


def nearest(
    retriever: Retriever, texts: Mapping[str, str], asked: Mapping[str, str], depth: int, progress: Progress
) -> dict[str, list[str]]:
    """Return id -> the ids of the `depth` nearest of `texts`, best first; a text is no neighbour of its own id."""
    queries = [Query(*each) for each in asked.items()]
    found: dict[str, list[str]] = {}
    for some, hits in ranking.ask(retriever, QueryCorpus(texts), queries, depth + 1, progress):
        ids = [hits.ids[row] for row in hits.rows.tolist()]
        start = 0
        for query, count in zip(some, hits.counts.tolist(), strict=True):
            best = [each for each in ids[start : start + count] if each != query.query_id]
            found[query.query_id], start = best[:depth], start + count
    return found


def draw(
    lists: Lists,
    sources: Sequence[str],
    side: Mapping[str, str],
    window: RankWindow,
    number: int,
    seed: int,
) -> list[Neighbour]:
    """Return `number` neighbours per source at most, the retrievers taking turns, each by chance from its window.

    A neighbour is on its source's `side` (query -> split); no two queries meet twice.
    """
    names, met, drawn = list(lists), set[frozenset[str]](), list[Neighbour]()
    for at, source in enumerate(sources):
        for turn in range(number):
            name = names[(at + turn) % len(names)]
            ranked = list(enumerate(lists[name].get(source, ()), start=1))[window.first - 1 : window.last]
            free = [
                (rank, other)
                for rank, other in ranked
                if side.get(other) == side[source] and frozenset((source, other)) not in met
            ]
            if free:
                rank, other = generator(seed, "neighbour", source, turn).choice(free)
                met.add(frozenset((source, other)))
                drawn.append(Neighbour(source, other, name, rank))
    return drawn


# Pairs of a query and a sentence that should mean the same, or should not, and what a panel said of each.

YES, NO = "yes", "no"
PARAPHRASE, NEIGHBOUR, EDIT = "paraphrase", "neighbour", "edit"
"""Families of pairs; the kind of an edit is what was changed."""
SENTENCES = "sts-sentences"
"""Question whether two sentences mean the same, asked of paraphrases and neighbours."""


@dataclass
class CandidatePair:
    """A query and a sentence, how it came to be, and what was said of it."""

    pair_id: str
    query_id: str
    sentence1: str
    sentence2: str
    kind: str
    way: str = ""
    """How a paraphrase was written; empty for the others."""
    retriever: str | None = None
    rank: int | None = None
    votes: dict[str, str] | None = field(default_factory=dict)
    """Judge -> answer; none where there is no panel, None where a dry desk left it open."""
    overlap: float = field(init=False)

    def __post_init__(self) -> None:
        self.overlap = round(overlap(self.sentence1, self.sentence2), 6)

    @property
    def label(self) -> int:
        """Return 1 for what should mean the same, else 0."""
        return int(self.kind == PARAPHRASE)

    @property
    def family(self) -> str:
        """Return paraphrase, neighbour, or edit for an edit of any kind."""
        return self.kind if self.kind in (PARAPHRASE, NEIGHBOUR) else EDIT

    @property
    def wanted(self) -> str:
        """Return the answer by which a judge confirms the label."""
        return {PARAPHRASE: YES, NEIGHBOUR: NO, EDIT: CHANGED}[self.family]

    @property
    def verdict(self) -> Verdict:
        """Return what the answers say of the label."""
        return verdict(self.votes or {}, self.wanted)

    @property
    def usable(self) -> bool:
        """Say whether it may stand in the set; what is still open may."""
        return self.verdict in ("confirmed", "unconfirmed")

    @property
    def same(self) -> bool:
        """Say whether all judges call both sentences the same, or nobody of a panel has been asked yet."""
        return self.votes is None or (bool(self.votes) and set(self.votes.values()) == {YES})


def written(texts: Mapping[str, str], sentences: Mapping[str, WrittenSentence]) -> list[CandidatePair]:
    """Return the pairs of queries and their paraphrases."""
    return [
        CandidatePair(f"paraphrase-{query_id}", query_id, texts[query_id], sentence.text, PARAPHRASE, sentence.way)
        for query_id, sentence in sentences.items()
    ]


def near(texts: Mapping[str, str], drawn: Sequence[Neighbour]) -> list[CandidatePair]:
    """Return the pairs of queries and their neighbours."""
    return [
        CandidatePair(
            f"neighbour-{each.query_id}-{each.other}",
            each.query_id,
            texts[each.query_id],
            texts[each.other],
            NEIGHBOUR,
            retriever=each.retriever,
            rank=each.rank,
        )
        for each in drawn
    ]


def edited(query_id: str, query: str, edits: Sequence[Edit]) -> list[CandidatePair]:
    """Return the pairs of a query and its edits."""
    return [
        CandidatePair(f"edit-{query_id}-{number}", query_id, query, edit.text, edit.kind)
        for number, edit in enumerate(edits, start=1)
    ]


def confirm(
    pairs: Sequence[CandidatePair],
    panel: Sequence[AskedModel],
    question: Question,
    of_edits: Mapping[str, Question],
    desk: QuestionClient,
) -> int:
    """Note what every judge says of every pair; return how many questions failed."""
    sides = {pair.pair_id: (pair.sentence1, pair.sentence2) for pair in pairs}
    edits = {pair.pair_id for pair in pairs if pair.family == EDIT}
    said = ask_panel({name: sides[name] for name in sides if name not in edits}, panel, question, desk, "sentences")
    said |= confirm_edits({name: sides[name] for name in sides if name in edits}, panel, of_edits, desk)
    for pair in pairs:
        pair.votes = said.get(pair.pair_id)
    return sum(list(votes.values()).count("failed") for votes in said.values())


# Retrieval of originals: the queries that a paraphrase may be one of, and which of them a panel says it is.


@dataclass(frozen=True)
class JudgedOriginal:
    """A paraphrase, an original, and what the panel said of them."""

    query_id: str
    """Of the original."""
    pair_id: str
    """Of the paraphrase."""
    votes: Mapping[str, str]

    @property
    def verdict(self) -> str:
        """Return confirmed where both mean the same to all judges."""
        return verdict(self.votes, YES)


def own(paraphrases: Sequence[CandidatePair]) -> list[JudgedOriginal]:
    """Return each paraphrase with the original that it was written beside."""
    return [
        JudgedOriginal(paraphrase.query_id, paraphrase.pair_id, paraphrase.votes or {}) for paraphrase in paraphrases
    ]


def pooled(
    paraphrases: Sequence[CandidatePair],
    others: Sequence[CandidatePair],
    texts: Mapping[str, str],
    retrievers: Sequence[Retriever],
    depth: int,
    progress: Progress,
) -> dict[tuple[str, str], None]:
    """Return (original, paraphrase) of what is to be judged, without a paraphrase's own original.

    These are the originals that a retriever ranks first for the paraphrase, and neighbours of its own original that a
    panel calls the same, or has not been asked about yet.
    """
    asked = {paraphrase.pair_id: paraphrase.sentence2 for paraphrase in paraphrases}
    found: dict[tuple[str, str], None] = {}
    for retriever in retrievers if depth else ():
        for pair_id, ids in nearest(retriever, texts, asked, depth, progress).items():
            found |= dict.fromkeys((query_id, pair_id) for query_id in ids)
    same = {text: query_id for query_id, text in texts.items()}
    by_query = {paraphrase.query_id: paraphrase.pair_id for paraphrase in paraphrases}
    for each in others:
        if each.kind == NEIGHBOUR and each.query_id in by_query and each.same:
            found[same[each.sentence2], by_query[each.query_id]] = None
    for paraphrase in paraphrases:
        found.pop((paraphrase.query_id, paraphrase.pair_id), None)
    return found


def judge(
    pool: Mapping[tuple[str, str], None],
    paraphrases: Sequence[CandidatePair],
    texts: Mapping[str, str],
    panel: Sequence[AskedModel],
    question: Question,
    desk: QuestionClient,
) -> tuple[list[JudgedOriginal], int]:
    """Return the judged originals of a pool, and how many questions failed."""
    sentence = {paraphrase.pair_id: paraphrase.sentence2 for paraphrase in paraphrases}
    names = {f"{pair_id} {query_id}": (query_id, pair_id) for query_id, pair_id in pool}
    shown = {name: (texts[query_id], sentence[pair_id]) for name, (query_id, pair_id) in names.items()}
    votes = ask_panel(shown, panel, question, desk, "originals")
    failed = sum(list(vote.values()).count("failed") for vote in votes.values())
    return [JudgedOriginal(*names[name], vote) for name, vote in votes.items()], failed


def rows(
    texts: Mapping[str, str], judged: Sequence[JudgedOriginal], paraphrases: Sequence[CandidatePair]
) -> list[dict[str, object]]:
    """Return the rows of the table `originals`: every original, once per paraphrase that it was judged with."""
    sentence = {paraphrase.pair_id: paraphrase.sentence2 for paraphrase in paraphrases if paraphrase.kind == PARAPHRASE}
    found: list[dict[str, object]] = [
        {
            "query_id": each.query_id,
            "text": texts[each.query_id],
            "pair_id": each.pair_id,
            "paraphrase": sentence[each.pair_id],
            "verdict": each.verdict,
            "votes": [{"judge": name, "answer": answer} for name, answer in sorted(each.votes.items())],
        }
        for each in judged
    ]
    alone = sorted(set(texts) - {each.query_id for each in judged})
    found += [{"query_id": query_id, "text": texts[query_id], "votes": []} for query_id in alone]
    return found
