"""What judges were shown of a pair, and what they replied."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from curate.core.config import digest
from curate.core.errors import DataError
from curate.core.records import shown
from curate.llm.passages import ShownText, bounded
from curate.pipeline.stage import ledger_place
from curate.system.files import read_json


@dataclass(frozen=True)
class JudgeReply:
    """A judge's reply to the prompt that held a pair."""

    judge: str
    model: str
    created: str
    slot: int
    """Place of the passage in the prompt, from 1."""
    batch_size: int
    raw: str


@dataclass(frozen=True)
class JudgedTexts:
    """The texts of a pair as judges were shown them."""

    run: Path
    query: str
    title: str
    text: str

    @cached_property
    def _judged(self) -> dict[str, Any]:
        path = self.run / "judge" / "stage.json"
        try:
            return read_json(path) if path.is_file() else {}
        except DataError:
            return {}

    def _shown(self, text: str, limit: str) -> ShownText | None:
        facts = self._judged.get("report", {}).get("facts", {})
        return bounded(text, facts["shown"][limit]) if facts.get("shown") else None

    @property
    def unseen(self) -> str:
        """Return the end of the document that judges were not shown; empty if they were shown all of it."""
        passage = self._shown(shown(self.title, self.text), "passage_tokens")
        if passage is None or not passage.cut:
            return ""
        body = len(passage.text) - (len(shown(self.title, self.text)) - len(self.text))
        return self.text[max(body, 0) :]

    def replies(self) -> Sequence[JudgeReply]:
        """Return the replies of the run's judges, from the ledger; DataError if it cannot be read."""
        from curate.ledger.replies import replies

        query, passage = (
            self._shown(self.query, "query_tokens"),
            self._shown(shown(self.title, self.text), "passage_tokens"),
        )
        if query is None or passage is None:
            return []
        outside = self._judged["made_from"]["outside"]
        names = {(digest(outside["judges"][name]), rubric): name for name, rubric in outside["rubrics"].items()}
        raw_replies = replies(ledger_place(), query.digest, passage.digest)
        return [
            JudgeReply(names[key], reply.model, reply.created, reply.slot + 1, reply.batch_size, reply.raw)
            for reply in raw_replies
            if (key := (reply.judge_digest, reply.rubric_digest)) in names
        ]
