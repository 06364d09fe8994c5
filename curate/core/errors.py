"""All errors, in one tree.

CurateError
├── UserError         the input is wrong; the message has the place, the expected value and a remedy; exit code 2
│   ├── ConfigError   a pipeline file, an option or a name
│   ├── DataError     a file of queries, documents, qrels or grades
│   │   └── TableError its rows or cells, each with its place
│   ├── NotFound      a named run, table, sample or ledger does not exist
│   ├── MissingExtra  an optional package that is not installed
│   └── BudgetError   no budget was given, or it would be exceeded
├── RunFailed         the input is right, but the work could not be finished; exit code 1
│   ├── CheckFailed   a check did not pass; exit code 1
│   │   └── Unchecked nothing wrong was found, but a part could not be checked; exit code 3
│   ├── Incomplete    the work was finished, but more of it is missing than a setting allows; exit code 3
│   └── Interrupted   Ctrl-C was pressed during model calls; exit code 130
└── ProviderError     a call to a model failed; with `fatal` no other call will succeed
    ├── AccessError   a UserError too: the key is wrong, missing, or lacks a permission; exit code 2
    └── BatchGone     the provider does not know a batch, or no longer has its results

`curate/view/error_codes.yaml` gives every class its code for machines and its exit code.
"""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self


class CurateError(Exception):
    """Base class of all errors that `curate` raises on purpose."""


class UserError(CurateError):
    """The user's input is wrong, and the message says where and what to do.

    `options` are the ways to go on, or the readings to choose from: words to type behind the refused command.
    """

    def __init__(self, message: str, options: Sequence[Sequence[str]] = ()) -> None:
        super().__init__(message)
        self.options = options


class ConfigError(UserError):
    """A pipeline file, an option or a name is wrong; `choices` are the valid values, if known."""

    def __init__(
        self, message: str, choices: Sequence[str | list[str]] = (), options: Sequence[Sequence[str]] = ()
    ) -> None:
        super().__init__(message, options)
        self.choices = choices


class DataError(UserError):
    """A data file has missing or wrong content."""


@dataclass(frozen=True)
class TableFault:
    """What is wrong in a table, without any text of it; `at` is file, line and column, as far as they are known."""

    at: str
    got: str
    expected: str
    remedy: str

    @property
    def finding(self) -> str:
        """Return the fault as a sentence without a remedy."""
        return f"{self.at}: found {self.got}, expected {self.expected}"

    def __str__(self) -> str:
        return f"{self.finding}; {self.remedy}"


class TableError(DataError):
    """A table, or rows and cells of it, are wrong; the message has a line per fault."""

    def __init__(self, faults: Sequence[TableFault], options: Sequence[Sequence[str]] = ()) -> None:
        super().__init__("\n".join(map(str, faults)), options)
        self.faults = faults

    @classmethod
    def at(cls, place: object, found: str, expected: str, remedy: str, options: Sequence[Sequence[str]] = ()) -> Self:
        """Return the error of one fault."""
        return cls([TableFault(str(place), found, expected, remedy)], options)


class NotFound(UserError):
    """A named run, table, sample or ledger does not exist."""


class MissingExtra(UserError):
    """An optional package is not installed."""


class BudgetError(UserError):
    """A paid step has no budget, or would exceed it.

    `planned`: requests and cost estimate of the step, one row per model, if no budget was given.
    """

    def __init__(self, message: str, planned: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.planned = planned


class RunFailed(CurateError):
    """The work could not be finished though the input was right."""


class CheckFailed(RunFailed):
    """A check was carried out and did not pass."""


class Incomplete(RunFailed):
    """The work was finished and is saved, but more of it is missing than a setting allows."""


class Unchecked(CheckFailed):
    """Nothing wrong was found, but a part could not be checked; the message names it."""


class Interrupted(RunFailed):
    """Ctrl-C was pressed; the replies to calls in flight were saved."""


class ProviderError(CurateError):
    """A call to a model failed.

    `fatal`: no other request will succeed either.
    `useless`: repeating this request will not help; others may succeed.
    `too_long`: a shorter request may succeed.
    `refused`: the content may be the reason, so a part of it may succeed.
    `broke`: the account seems to be empty, by a message that may also mean throttling.
    `overloaded`: fewer concurrent requests may succeed.
    `unresolved`: the host name has never resolved.
    `retry_after`: seconds to wait, as stated by the provider.
    `unknown`: the provider may have answered, and may charge for it, but the answer could not be read. `said` is the
    beginning of what was received instead; it is not part of the message.
    `garbled`: the reply is neither an answer nor a refusal; if other requests are answered, the content may be the
    reason.
    `cause`: the message without the remedy, if it has one.
    """

    def __init__(
        self,
        message: str,
        *,
        fatal: bool = False,
        useless: bool = False,
        too_long: bool = False,
        refused: bool = False,
        broke: bool = False,
        overloaded: bool = False,
        unresolved: bool = False,
        retry_after: float | None = None,
        unknown: bool = False,
        garbled: bool = False,
        said: str = "",
        cause: str = "",
    ) -> None:
        super().__init__(message)
        self.cause = cause or message
        self.fatal = fatal
        self.useless = useless
        self.too_long = too_long
        self.refused = refused
        self.broke = broke
        self.overloaded = overloaded
        self.unresolved = unresolved
        self.retry_after = retry_after
        self.unknown = unknown
        self.garbled = garbled
        self.said = said


class AccessError(ProviderError, UserError):
    """A provider rejects the key, or the key's use for this model or call; always fatal."""


class BatchGone(ProviderError):
    """The provider does not have a batch of this id, or no longer has its results."""


def suggestion(unknown: str, choices: Iterable[str]) -> str:
    """Return a clause with the most similar known word, if any, and a list of all known words."""
    words = sorted(choices)
    near = difflib.get_close_matches(unknown, words, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}known: {', '.join(words) or 'none'}"


STOPPED = "stopped; what was finished is kept, and the same command goes on from there"


class Stopped(Exception):
    """The user pressed Ctrl-C; the message says what was saved and how to resume."""
