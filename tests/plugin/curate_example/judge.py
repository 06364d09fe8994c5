"""`longest`: a judge that looks for the query in the passage, word by word."""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from curate import Document, Json, Kit, Outcome, Query, Section


class Config(Section):
    """What a pipeline file may set, as in `judges: {mine: {kind: longest, S: 0.8}}`."""

    S: float = 0.9
    A: float = 0.7
    B: float = 0.5
    C: float = 0.3
    """The lowest share of the query that earns each grade; what is below C is D."""


class Longest:
    """Grade by the share of the query that stands in the passage in one piece."""

    egress = "local"  # it sends nothing

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name, self._config = name, config
        # All that changes a grade: ratings of another identity are not used. `heuristic` marks every report.
        self.identity: Mapping[str, Json] = {"heuristic": "longest 1", **config.model_dump()}

    def rate(self, query: Query, passages: Sequence[Document]) -> list[Outcome]:
        """Return one outcome per passage, in order; a judge that cannot say gives Outcome(None, "failed"), not a D."""
        return [self._outcome(query.text, passage.shown()) for passage in passages]

    def _outcome(self, query: str, passage: str) -> Outcome:
        if not query:
            return Outcome(None, "failed")
        found = SequenceMatcher(None, query, passage, autojunk=False).find_longest_match()
        share, bounds = found.size / len(query), self._config
        if share >= bounds.S:
            return Outcome("S")
        if share >= bounds.A:
            return Outcome("A")
        if share >= bounds.B:
            return Outcome("B")
        return Outcome("C" if share >= bounds.C else "D")
