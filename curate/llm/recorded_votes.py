"""Answers of language models read from the ledger, both in the stage that asks and to recompute labels.

A request is keyed by its digest, so equal texts, question and model have one answer: the first valid reply, else the
last.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal, Protocol, TypeVar, get_args

from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.messages import Reply
from curate.ledger import Ledger
from curate.llm import questions
from curate.llm.providers import reader
from curate.llm.questions import Question, Said

Missing = Literal["failed", "refused", "unparsed"]
NONE: tuple[Missing, ...] = get_args(Missing)
"""Statuses without an answer."""
Answers = Mapping[str, str]
"""Judge -> its label, or the status without one: failed, refused, unparsed."""
Verdict = Literal["confirmed", "rejected", "contested", "incomplete", "unconfirmed"]
Calls = Iterable[tuple[str, str, str, str]]
"""Request digest, finish, raw reply and form of a model's calls, oldest first: `Ledger.generations`."""
Texts = Mapping[str, tuple[str, ...]]
"""Name -> the texts that a question shows: query and passage, or one alone."""


class Answered(Protocol):
    """Result of a reply."""

    @property
    def status(self) -> str:
        """Return `failed`, `refused` or `unparsed` if there is no answer; any other string means a valid one."""
        ...


Answer = TypeVar("Answer", bound=Answered)


def answers(
    calls: Calls, kind: str, reads: Mapping[str, Callable[[Reply], Answer]], none: Callable[[Missing], Answer]
) -> dict[str, Answer]:
    """Return request digest -> the first valid answer among the calls, else the last status.

    `reads` maps requests to readers of their replies, `kind` names the provider, `none` turns a status into an answer
    object. A reply that was recorded as unparsed stays unparsed, even if it could be parsed now: labels were made
    without it.
    """
    by_request: dict[str, Answer] = {}
    read = reader(kind)
    if read is None:
        raise DataError(f"provider {kind!r}: cannot read its replies again; give its class a method `reply(raw)`")
    for key, finish, raw, form in calls:
        if key in reads and (key not in by_request or by_request[key].status in NONE):
            by_request[key] = none("unparsed") if form == "unparsed" else _answer(finish, read(raw), reads[key], none)
    return by_request


def _answer(
    finish: str, reply: Reply | None, read: Callable[[Reply], Answer], none: Callable[[Missing], Answer]
) -> Answer:
    if finish == "error":
        return none("failed")
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
    calls = ledger.generations(ledger.current(judge["judge"]), question.digest)
    by_request = answers(
        calls, judge["provider"], dict.fromkeys(keys.values(), partial(questions.read, question)), Said
    )
    return {name: by_request[key] for name, key in keys.items() if key in by_request}


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
