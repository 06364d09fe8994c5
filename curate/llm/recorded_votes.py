"""Answers of language models read again from the ledger: by the stage that asks, and by who derives labels again.

A request is known by its digest, so equal texts, question and model have one answer: the first that is one, else what
came last.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal, Protocol, TypeVar, get_args

from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.messages import Reply
from curate.ledger import Ledger
from curate.llm import questions
from curate.llm.providers import Reader, reader
from curate.llm.questions import Question, Said

Missing = Literal["failed", "refused", "unparsed"]
NONE: tuple[Missing, ...] = get_args(Missing)
"""Statuses of what is no answer."""
Answers = Mapping[str, str]
"""Judge -> the label that it chose, or the status of what is no answer: failed, refused, unparsed."""
Verdict = Literal["confirmed", "rejected", "contested", "incomplete", "unconfirmed"]
Calls = Iterable[tuple[str, str, str, str]]
"""Request digest, finish, raw reply and form of a model's calls, oldest first: `Ledger.generations`."""
Texts = Mapping[str, tuple[str, ...]]
"""Name -> the texts that a question shows: query and passage, or one alone."""


class Answered(Protocol):
    """What a reply came to."""

    @property
    def status(self) -> str:
        """Return failed, refused, unparsed, or a word of its own for an answer."""
        ...


Answer = TypeVar("Answer", bound=Answered)


def answers(
    calls: Calls, kind: str, reads: Mapping[str, Callable[[Reply], Answer]], none: Callable[[Missing], Answer]
) -> dict[str, Answer]:
    """Return request digest -> what the calls say of it: the first answer, else what came last.

    `reads` reads the reply to each request, `kind` names the provider, `none` makes an answer of a status that is none.
    What was unparsed when it came stays so, though it could be read today: labels were made without it.
    """
    found: dict[str, Answer] = {}
    read = _reader(kind)
    for key, finish, raw, form in calls:
        if key in reads and (key not in found or found[key].status in NONE):
            found[key] = none("unparsed") if form == "unparsed" else _answer(finish, read(raw), reads[key], none)
    return found


def _answer(
    finish: str, reply: Reply | None, read: Callable[[Reply], Answer], none: Callable[[Missing], Answer]
) -> Answer:
    if finish == "error":
        return none("failed")
    if reply is None:  # a content filter's words are in no form of replies
        return none("refused" if finish == "refusal" else "unparsed")
    return read(reply)


def _reader(kind: str) -> Reader:
    read = reader(kind)
    if read is None:
        raise DataError(f"provider {kind!r}: cannot read its replies again; give its class a method `reply(raw)`")
    return read


def written(question: Question) -> dict[str, Json]:
    """Return a question as `votes` reads it: its answers as a list, for files of JSON are sorted and order is sent."""
    return {**question.model_dump(mode="json"), "labels": [list(each) for each in question.labels.items()]}


def _read(data: Mapping[str, Any]) -> dict[str, Json]:
    return {**data, "labels": dict(data["labels"])}


def votes(asked: Mapping[str, Any], texts: Texts, ledger: Ledger) -> dict[str, dict[str, str]]:
    """Return name -> judge -> its label, or the status of what is none, of all texts that a panel was shown.

    `asked` is what a manifest says of one question: `question`, as `written`, and `panel`, the identity of every judge.
    A judge is missing where the ledger has no reply of it to exactly these texts.
    """
    question = questions.question(_read(asked["question"]), "MANIFEST.json: question")
    found: dict[str, dict[str, str]] = {name: {} for name in texts}
    for name, judge in asked["panel"].items():
        for text, said in _said(question, judge, texts, ledger).items():
            found[text][name] = said.label or said.status
    return found


def _said(question: Question, judge: Mapping[str, Any], texts: Texts, ledger: Ledger) -> dict[str, Said]:
    """Return name -> what one judge said."""
    thinking = int(judge["thinking_tokens"])
    keys = {name: questions.build(question, *text, thinking_tokens=thinking).digest for name, text in texts.items()}
    calls = ledger.generations(ledger.current(judge["judge"]), question.digest)
    known = answers(calls, judge["provider"], dict.fromkeys(keys.values(), partial(questions.read, question)), Said)
    return {name: known[key] for name, key in keys.items() if key in known}


def verdict(answers: Answers, wanted: str) -> Verdict:
    """Return what a panel's answers say of an item that should get the answer `wanted`.

    confirmed: all say so; rejected: none says so; contested: some do and some do not; incomplete: one has given no
    answer; unconfirmed: nobody was asked.
    """
    said = set(answers.values())
    if not said:
        return "unconfirmed"
    if said & set(NONE):
        return "incomplete"
    if said == {wanted}:
        return "confirmed"
    return "contested" if wanted in said else "rejected"
