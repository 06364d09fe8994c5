"""Pairs of a query and a sentence that should mean the same, or should not, and what a panel said of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from curate.ask.edits.changes import Edit
from curate.ask.edits.confirmation import CHANGED, confirm_edits
from curate.ask.llm_questions import AskedModel, QuestionClient
from curate.ask.panel import Verdict, ask_panel, verdict
from curate.commands.paraphrase.neighbours import Neighbour
from curate.commands.paraphrase.writing import WrittenSentence
from curate.llm.questions import Question
from curate.stats.shortcuts import overlap

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
        CandidatePair(f"paraphrase-{query_id}", query_id, texts[query_id], each.text, PARAPHRASE, each.way)
        for query_id, each in sentences.items()
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
        CandidatePair(f"edit-{query_id}-{number}", query_id, query, each.text, each.kind)
        for number, each in enumerate(edits, start=1)
    ]


def confirm(
    pairs: Sequence[CandidatePair],
    panel: Sequence[AskedModel],
    question: Question,
    of_edits: Mapping[str, Question],
    desk: QuestionClient,
) -> int:
    """Note what every judge says of every pair; return how many questions failed."""
    sides = {each.pair_id: (each.sentence1, each.sentence2) for each in pairs}
    edits = {each.pair_id for each in pairs if each.family == EDIT}
    said = ask_panel({name: sides[name] for name in sides if name not in edits}, panel, question, desk, "sentences")
    said |= confirm_edits({name: sides[name] for name in sides if name in edits}, panel, of_edits, desk)
    for each in pairs:
        each.votes = said.get(each.pair_id)
    return sum(list(votes.values()).count("failed") for votes in said.values())
