"""Retrieval of originals: the queries that a paraphrase may be one of, and which of them a panel says it is.

A paraphrase was written beside one query, and may mean another one too. So originals that retrievers find for it are
judged like pairs: those that all judges call the same are positives. What was not judged is no negative.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curate.ask.llm_questions import AskedModel, QuestionClient
from curate.ask.panel import ask_panel, verdict
from curate.commands.paraphrase.neighbours import nearest
from curate.commands.paraphrase.pairs import NEIGHBOUR, PARAPHRASE, YES, CandidatePair
from curate.core.protocols import Progress, Retriever
from curate.llm.questions import Question


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
    return [JudgedOriginal(each.query_id, each.pair_id, each.votes or {}) for each in paraphrases]


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
    asked = {each.pair_id: each.sentence2 for each in paraphrases}
    found: dict[tuple[str, str], None] = {}
    for retriever in retrievers if depth else ():
        for pair_id, ids in nearest(retriever, texts, asked, depth, progress).items():
            found |= dict.fromkeys((query_id, pair_id) for query_id in ids)
    same = {text: query_id for query_id, text in texts.items()}
    by_query = {each.query_id: each.pair_id for each in paraphrases}
    for each in others:
        if each.kind == NEIGHBOUR and each.query_id in by_query and each.same:
            found[same[each.sentence2], by_query[each.query_id]] = None
    for each in paraphrases:
        found.pop((each.query_id, each.pair_id), None)
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
    sentence = {each.pair_id: each.sentence2 for each in paraphrases}
    names = {f"{pair_id} {query_id}": (query_id, pair_id) for query_id, pair_id in pool}
    shown = {name: (texts[query_id], sentence[pair_id]) for name, (query_id, pair_id) in names.items()}
    votes = ask_panel(shown, panel, question, desk, "originals")
    failed = sum(list(each.values()).count("failed") for each in votes.values())
    return [JudgedOriginal(*names[name], each) for name, each in votes.items()], failed


def rows(
    texts: Mapping[str, str], judged: Sequence[JudgedOriginal], paraphrases: Sequence[CandidatePair]
) -> list[dict[str, object]]:
    """Return the rows of the table `originals`: every original, once per paraphrase that it was judged with."""
    sentence = {each.pair_id: each.sentence2 for each in paraphrases if each.kind == PARAPHRASE}
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
