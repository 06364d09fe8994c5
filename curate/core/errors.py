"""Everything that can go wrong, in one tree.

CurateError
├── UserError         the input is wrong: a sentence with the place, what was expected and what to do; exit code 2
│   ├── ConfigError   a pipeline file, an option or a name
│   ├── DataError     a file of queries, documents, qrels or grades
│   ├── NotFound      what was named is not there: a run, a table, a sample, a ledger
│   ├── MissingExtra  an optional package that is not installed
│   └── BudgetError   money: no cap was given, or the cap would be passed
├── RunFailed         the input was right and the work could not be finished; exit code 1
│   ├── CheckFailed   a check was carried out, and what it looked at did not pass; exit code 1
│   │   └── Unchecked nothing is wrong as far as was looked, and a part could not be looked at; exit code 3
│   ├── Incomplete    the work was finished, and more of it is missing than a setting allows; exit code 3
│   └── Interrupted   Ctrl-C was pressed while models were asked; exit code 130
└── ProviderError     a call to a model failed; `fatal` says that no other call will pass
    ├── AccessError   a UserError too: the key is wrong, missing, or not allowed to do this; exit code 2
    └── BatchGone     the vendor does not know the batch that it is asked for, or no longer

`curate/view/error_codes.yaml` gives every class its code for machines and its exit code.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class CurateError(Exception):
    """Base of every error that `curate` raises on purpose."""


class UserError(CurateError):
    """The user's input is wrong, and the message says where and what to do."""


class ConfigError(UserError):
    """A pipeline file, an option or a name is wrong; `choices` are the values that would do, where they are known."""

    def __init__(self, message: str, choices: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.choices = choices


class DataError(UserError):
    """A data file does not hold what it should."""


class NotFound(UserError):
    """What was named is not there: a run, a table, a sample, a ledger."""


class MissingExtra(UserError):
    """An optional package is not installed."""


class BudgetError(UserError):
    """A paid step has no permission to spend, or not enough of it.

    `planned`: what it would send and cost, a row per model, where permission is lacking.
    """

    def __init__(self, message: str, planned: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.planned = planned


class RunFailed(CurateError):
    """The work could not be finished though the input was right."""


class CheckFailed(RunFailed):
    """A check was carried out, and what it looked at did not pass."""


class Incomplete(RunFailed):
    """The work was finished and is kept, and more is missing from it than a setting allows."""


class Unchecked(CheckFailed):
    """Nothing is wrong as far as was looked, and a part, which is named, could not be looked at."""


class Interrupted(RunFailed):
    """Ctrl-C was pressed, and what was in flight is written."""


class ProviderError(CurateError):
    """A call to a model failed.

    `fatal`: no request will pass. `useless`: this one will not if it is asked again, others may. `too_long`: a shorter
    one may. `refused`: a part of it may, for it may be what is in it. `broke`: the account seems
    to be empty, in the words of what may be a throttle. `overloaded`: fewer at the same time may.
    `garbled`: what came is no answer and no refusal, and may be for what is in it where others are answered.
    `cause`: the message without what to do about it, where it says that.
    `unresolved`: the host's name leads nowhere, and never did. `unknown`: the vendor may have answered, and may bill
    it, though nobody here could read the answer; `said` is the beginning of what came in its place, and stays out of
    the message.
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
    """A vendor does not accept the key, or what it is used for; always fatal."""


class BatchGone(ProviderError):
    """The vendor does not know a batch, or no longer has its results."""


def suggestion(unknown: str, known: Iterable[str]) -> str:
    """Return a clause that names the nearest known word and lists all of them."""
    words = sorted(known)
    near = difflib.get_close_matches(unknown, words, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}known: {', '.join(words) or 'none'}"
