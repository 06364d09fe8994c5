"""Neighbours of queries among the queries: retrievers of different families propose them in turn.

Negatives mined by one encoder are the pairs that it confuses: its own scores on them would be too low, those of other
encoders too high (measured in KINDS: mined by one encoder alone, that encoder scores below the overlap of characters).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from curate.ask import build
from curate.ask.edits.confirmation import CHANGED, confirm_edits
from curate.ask.edits.rewriting import Edit
from curate.ask.panel import Panel, Verdict, verdict
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
"""Minimum number of retriever families."""
FOREIGN = ("qdrant", "runfile")
"""Kinds of retrievers with a fixed collection, which cannot search the queries."""
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
    """A neighbour drawn for a query."""

    query_id: str
    other: str
    retriever: str
    rank: int
    """Rank among the other queries, from 1."""


Lists = Mapping[str, Mapping[str, Sequence[str]]]
"""Retriever -> query -> other queries, best first."""


def chosen(config: Config, context: Context) -> list[Retriever]:
    """Return retrievers of different families; ConfigError for fewer than two, or two of one family."""
    names = config.retrievers or check(PoolConfig, context.settings.get("pool") or {}, "pool").retrievers
    by_family: dict[str, Retriever] = {}
    for name in names:
        retriever = build.retriever(context, name)
        family_name = family(retriever.identity)
        if config.retrievers and (family_name in FOREIGN or family_name in by_family):
            why = (
                "cannot search the queries"
                if family_name in FOREIGN
                else f"is of the family of {by_family[family_name].name} ({family_name})"
            )
            raise ConfigError(f"paraphrase.retrievers: {name} {why}; name another, such as bm25, e5 or use")
        if family_name not in FOREIGN and (config.retrievers or len(by_family) < FEWEST):
            by_family.setdefault(family_name, retriever)
    if len(by_family) < FEWEST:
        usable = ", ".join(retriever.name for retriever in by_family.values()) or "none"
        raise ConfigError(
            f"paraphrase.retrievers: found {usable} of {', '.join(names)} that can search the queries, and negatives "
            "of one family alone are unfair to it; name two families, such as [bm25, use]"
        )
    return list(by_family.values())


def family(identity: Json) -> str:
    """Return the encoder of a dense retriever, else its kind."""
    settings: Any = identity
    return (
        str(settings.get("encoder") or settings.get("kind") or digest(identity))
        if isinstance(settings, Mapping)
        else str(settings)
    )


def nearest(
    retriever: Retriever, texts: Mapping[str, str], text_by_id: Mapping[str, str], depth: int, progress: Progress
) -> dict[str, list[str]]:
    """Return id -> ids of the `depth` nearest texts, best first, without the id itself."""
    queries = [Query(query_id, text) for query_id, text in text_by_id.items()]
    ids_by_query: dict[str, list[str]] = {}
    for batch, hits in ranking.ask(retriever, QueryCorpus(texts), queries, depth + 1, progress):
        ids = [hits.ids[row] for row in hits.rows.tolist()]
        start = 0
        for query, count in zip(batch, hits.counts.tolist(), strict=True):
            best = [hit for hit in ids[start : start + count] if hit != query.query_id]
            ids_by_query[query.query_id], start = best[:depth], start + count
    return ids_by_query


def draw(
    lists: Lists,
    sources: Sequence[str],
    side: Mapping[str, str],
    window: RankWindow,
    number: int,
    seed: int,
) -> list[Neighbour]:
    """Return up to `number` neighbours per source: retrievers take turns, each neighbour drawn by seed from the window.

    A neighbour is in the same split as its source (`side`: query -> split); a pair of queries occurs once.
    """
    names, met, drawn = list(lists), set[frozenset[str]](), list[Neighbour]()
    for index, source in enumerate(sources):
        for turn in range(number):
            name = names[(index + turn) % len(names)]
            ranked = list(enumerate(lists[name].get(source, ()), start=1))[window.first - 1 : window.last]
            free = [
                (rank, neighbour)
                for rank, neighbour in ranked
                if side.get(neighbour) == side[source] and frozenset((source, neighbour)) not in met
            ]
            if free:
                rank, neighbour = generator(seed, "neighbour", source, turn).choice(free)
                met.add(frozenset((source, neighbour)))
                drawn.append(Neighbour(source, neighbour, name, rank))
    return drawn


# Candidate pairs of a query and a sentence, and the votes of the panel.

YES, NO = "yes", "no"
PARAPHRASE, NEIGHBOUR, EDIT = "paraphrase", "neighbour", "edit"
"""Families of pairs; for an edit, the kind of change."""
SENTENCES = "sts-sentences"
"""Question whether two sentences mean the same, asked of paraphrases and neighbours."""


@dataclass
class CandidatePair:
    """A query and a sentence, its origin, and the votes on it."""

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
    """Judge -> answer; empty without a panel, None if a dry panel has not asked."""
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
        """Return the panel's verdict on the label."""
        return verdict(self.votes or {}, self.wanted)

    @property
    def usable(self) -> bool:
        """Whether the pair may be selected: confirmed, or not judged."""
        return self.verdict in ("confirmed", "unconfirmed")

    @property
    def same(self) -> bool:
        """Whether all judges answered yes, or the panel has not been asked yet."""
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
            f"neighbour-{neighbour.query_id}-{neighbour.other}",
            neighbour.query_id,
            texts[neighbour.query_id],
            texts[neighbour.other],
            NEIGHBOUR,
            retriever=neighbour.retriever,
            rank=neighbour.rank,
        )
        for neighbour in drawn
    ]


def edited(query_id: str, query: str, edits: Sequence[Edit]) -> list[CandidatePair]:
    """Return the pairs of a query and its edits."""
    return [
        CandidatePair(f"edit-{query_id}-{number}", query_id, query, edit.text, edit.kind)
        for number, edit in enumerate(edits, start=1)
    ]


def confirm(pairs: Sequence[CandidatePair], panel: Panel, question: Question, of_edits: Mapping[str, Question]) -> int:
    """Set the votes of every pair; return the number of failed questions."""
    sides = {pair.pair_id: (pair.sentence1, pair.sentence2) for pair in pairs}
    edits = {pair.pair_id for pair in pairs if pair.family == EDIT}
    votes_by_pair = panel.vote(question, {name: sides[name] for name in sides if name not in edits}, "sentences")
    votes_by_pair |= confirm_edits({name: sides[name] for name in sides if name in edits}, panel, of_edits)
    for pair in pairs:
        pair.votes = votes_by_pair.get(pair.pair_id)
    return sum(list(votes.values()).count("failed") for votes in votes_by_pair.values())


# Retrieval of originals: candidate queries for a paraphrase, and the panel's votes on them.


@dataclass(frozen=True)
class JudgedOriginal:
    """Votes of the panel on an original and a paraphrase."""

    query_id: str
    """Of the original."""
    pair_id: str
    """Of the paraphrase."""
    votes: Mapping[str, str]

    @property
    def verdict(self) -> str:
        """Return `confirmed` if all judges answered yes."""
        return verdict(self.votes, YES)


def own(paraphrases: Sequence[CandidatePair]) -> list[JudgedOriginal]:
    """Return each paraphrase with its own original, and the votes on that pair."""
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
    """Return the pairs (original, paraphrase) to judge, as keys in order, without a paraphrase's own original.

    Candidates are the `depth` first originals of each retriever for the paraphrase, and neighbours of its own original
    that the panel calls the same or has not judged yet.
    """
    sentences = {paraphrase.pair_id: paraphrase.sentence2 for paraphrase in paraphrases}
    pool: dict[tuple[str, str], None] = {}
    for retriever in retrievers if depth else ():
        for pair_id, ids in nearest(retriever, texts, sentences, depth, progress).items():
            pool |= dict.fromkeys((query_id, pair_id) for query_id in ids)
    query_by_text = {text: query_id for query_id, text in texts.items()}
    by_query = {paraphrase.query_id: paraphrase.pair_id for paraphrase in paraphrases}
    for pair in others:
        if pair.kind == NEIGHBOUR and pair.query_id in by_query and pair.same:
            pool[query_by_text[pair.sentence2], by_query[pair.query_id]] = None
    for paraphrase in paraphrases:
        pool.pop((paraphrase.query_id, paraphrase.pair_id), None)
    return pool


def judge(
    pool: Mapping[tuple[str, str], None],
    paraphrases: Sequence[CandidatePair],
    texts: Mapping[str, str],
    panel: Panel,
    question: Question,
) -> tuple[list[JudgedOriginal], int]:
    """Return the judged originals of a pool, and the number of failed questions."""
    sentence = {paraphrase.pair_id: paraphrase.sentence2 for paraphrase in paraphrases}
    pair_by_name = {f"{pair_id} {query_id}": (query_id, pair_id) for query_id, pair_id in pool}
    sentence_pairs = {name: (texts[query_id], sentence[pair_id]) for name, (query_id, pair_id) in pair_by_name.items()}
    votes = panel.vote(question, sentence_pairs, "originals")
    failed = sum(list(vote.values()).count("failed") for vote in votes.values())
    return [JudgedOriginal(*pair_by_name[name], vote) for name, vote in votes.items()], failed


def rows(
    texts: Mapping[str, str], judged: Sequence[JudgedOriginal], paraphrases: Sequence[CandidatePair]
) -> list[dict[str, object]]:
    """Return the rows of the table `originals`: one per judged pair, and one for an original without any."""
    sentence = {paraphrase.pair_id: paraphrase.sentence2 for paraphrase in paraphrases if paraphrase.kind == PARAPHRASE}
    rows: list[dict[str, object]] = [
        {
            "query_id": original.query_id,
            "text": texts[original.query_id],
            "pair_id": original.pair_id,
            "paraphrase": sentence[original.pair_id],
            "verdict": original.verdict,
            "votes": [{"judge": name, "answer": answer} for name, answer in sorted(original.votes.items())],
        }
        for original in judged
    ]
    unjudged = sorted(set(texts) - {original.query_id for original in judged})
    rows += [{"query_id": query_id, "text": texts[query_id], "votes": []} for query_id in unjudged]
    return rows
