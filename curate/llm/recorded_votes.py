"""Answers of language models read from the ledger, both in the stage that asks and to recompute labels.

A request is keyed by its digest, so equal texts, question and model have one answer: the first valid reply, else the
last.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, Protocol, TypeVar, get_args

from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.messages import Reply
from curate.ledger import Ledger
from curate.ledger.store import first_of, second_of
from curate.llm import questions
from curate.llm.providers import reader
from curate.llm.questions import Question, Said

OVERLAP_S = 120.0
"""Seconds of the ledger that are read again: calls of another machine may be written with slightly older ids."""
Missing = Literal["failed", "refused", "unparsed"]
NONE: tuple[Missing, ...] = get_args(Missing)
"""Statuses without an answer."""
Answers = Mapping[str, str]
"""Judge -> its label, or the status without one: failed, refused, unparsed."""
Verdict = Literal["confirmed", "rejected", "contested", "incomplete", "unconfirmed"]
Texts = Mapping[str, tuple[str, ...]]
"""Name -> the texts that a question shows: query and passage, or one alone."""


class Answered(Protocol):
    """A reply read as an answer, or the reason why it has none."""

    @property
    def status(self) -> str:
        """Return `failed`, `refused` or `unparsed` if there is no answer; any other string means a valid one."""
        ...


Answer = TypeVar("Answer", bound=Answered)
CallReader = Callable[[str, str, str, str], Answer | None]
"""Key of the request, finish, raw reply and form of a call -> its answer; None for a request of no interest."""


@dataclass
class RecordedAnswers(Generic[Answer]):
    """A model's answers to requests with one prompt, read from the ledger as it grows."""

    ledger: Ledger
    judge_digest: str
    rubric_digest: str
    replicate: int = 0
    vain: Collection[str] = NONE
    """Statuses without a valid answer."""
    by_key: dict[str, Answer] = field(default_factory=dict)
    """Key of a request -> its first valid answer, else its last status."""
    last_call: dict[str, str] = field(default_factory=dict)
    """Key of a request -> id of the call in `by_key`."""
    _latest: str = ""
    """Largest id of a call that was read."""

    def update(self, read: CallReader[Answer]) -> None:
        """Read what has been written since the last time."""
        since = first_of(second_of(self._latest) - OVERLAP_S) if self._latest else ""
        for call_id, key, finish, raw, form in self.ledger.generations(
            self.judge_digest, self.rubric_digest, self.replicate, since
        ):
            self._latest = max(self._latest, call_id)
            if key in self.by_key and self.by_key[key].status not in self.vain:
                continue
            answer = read(key, finish, raw, form)
            if answer is not None:
                self.by_key[key], self.last_call[key] = answer, call_id

    def open(self, key: str, since: str) -> bool:
        """Return whether a request is to be sent: it has no answer, failed, or gave none before the call id `since`."""
        if key not in self.by_key or self.by_key[key].status == "failed":
            return True
        return self.by_key[key].status in self.vain and self.last_call[key] < since


def reader_of(kind: str) -> Callable[[str], Reply | None]:
    """Return what reads the replies of a kind of provider again; DataError for one that cannot."""
    read_again = reader(kind)
    if read_again is None:
        raise DataError(f"provider {kind!r}: cannot read its replies again; give its class a method `reply(raw)`")
    return read_again


def recorded(
    read_again: Callable[[str], Reply | None],
    finish: str,
    raw: str,
    form: str,
    read: Callable[[Reply], Answer],
    none: Callable[[Missing], Answer],
) -> Answer:
    """Return the answer in a recorded call; `read_again` restores the reply, `none` makes an answer of a status.

    A reply that was recorded as unparsed stays unparsed, even if it could be parsed now: labels were made without it.
    """
    if form == "unparsed":
        return none("unparsed")
    if finish == "error":
        return none("refused" if form == "refused" else "failed")
    reply = read_again(raw)
    if reply is None:  # the message of a content filter is no reply
        return none("refused" if finish == "refusal" else "unparsed")
    return read(reply)


def written(question: Question) -> dict[str, Json]:
    """Return a question for `votes`: its answers as a list, since keys of JSON files are sorted."""
    return {**question.model_dump(mode="json"), "labels": [list(pair) for pair in question.labels.items()]}


def votes(asked: Mapping[str, Any], texts: Texts, ledger: Ledger) -> dict[str, dict[str, str]]:
    """Return name -> judge -> label, or the status without one, for all texts.

    `asked` is a question in a manifest: `question`, as `written`, and `panel`, the identities of the judges. A judge is
    absent where the ledger has no reply from it to exactly these texts.
    """
    stored = asked["question"]
    question = questions.question({**stored, "labels": dict(stored["labels"])}, "MANIFEST.json: question")
    labels: dict[str, dict[str, str]] = {name: {} for name in texts}
    for name, judge in asked["panel"].items():
        for text, answer in _answers_of(question, judge, texts, ledger).items():
            labels[text][name] = answer.label or answer.status
    return labels


def _answers_of(question: Question, judge: Mapping[str, Any], texts: Texts, ledger: Ledger) -> dict[str, Said]:
    """Return name -> answer of one judge."""
    thinking = int(judge["thinking_tokens"])
    keys = {name: questions.build(question, *text, thinking_tokens=thinking).digest for name, text in texts.items()}
    known_keys, read_again = set(keys.values()), reader_of(judge["provider"])

    def read(key: str, finish: str, raw: str, form: str) -> Said | None:
        parse = partial(questions.read, question)
        return recorded(read_again, finish, raw, form, parse, Said) if key in known_keys else None

    answers = RecordedAnswers[Said](ledger, ledger.current(judge["judge"]), question.digest)
    answers.update(read)
    return {name: answers.by_key[key] for name, key in keys.items() if key in answers.by_key}


def verdict(answers: Answers, expected: str) -> Verdict:
    """Return the panel's verdict on an item that should get the answer `expected`.

    confirmed: all gave it; rejected: none did; contested: some did; incomplete: an answer is missing; unconfirmed: no
    judge was asked.
    """
    labels = set(answers.values())
    if not labels:
        return "unconfirmed"
    if labels & set(NONE):
        return "incomplete"
    if labels == {expected}:
        return "confirmed"
    return "contested" if expected in labels else "rejected"
