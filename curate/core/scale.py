"""Grade scales: labels of judges in order, the integer gain of each, and the relevance threshold.

A rubric declares its scale. Code that counts, weights or shows grades uses the scale, so another scale needs another
rubric but no other code. The default is the five grades of CMedTEB; the threshold between A and B is curate's own.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from curate.core.config import Json

Order = Literal["ordinal", "nominal"]
MOST: Mapping[Order, int] = {"ordinal": 10, "nominal": 200}
"""Maximum number of labels of a scale, by order; the minimum is two."""
LONGEST = 40
"""Maximum number of characters of a label, which must fit in replies, tables, sheets and buttons."""
LARGEST_GAIN = 100
RESERVED = frozenset({"-", "RATED", "REFUSED", "UNPARSED", "FAILED", "STOPPED"})
"""Entries of tables in place of a grade; they must not be labels."""
_NUMBER = re.compile(r"([+-]?\d+)(?:[.,](\d+))?(%?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Scale:
    """The labels that a judge may give; ValueError explains what is wrong in a declaration.

    On an ordinal scale, labels are listed best first, `gains` holds one non-increasing integer per label, and the
    grades from the best to `relevant_from` are relevant. A nominal scale has neither gains nor a threshold; its labels
    `none` and `several` mean no class and more than one class.
    """

    labels: tuple[str, ...]
    relevant_from: str = ""
    gains: tuple[int, ...] = ()
    order: Order = "ordinal"
    none: str = ""
    several: str = ""

    def __post_init__(self) -> None:
        _check_labels(self)
        if self.order == "ordinal":
            _check_cut(self)
        elif self.gains or self.relevant_from:
            raise ValueError("a nominal scale has no order, so neither gains nor relevant_from; leave them out")
        for key in ("none", "several"):
            label = getattr(self, key)
            if label and (self.order == "ordinal" or label not in self.labels):
                raise ValueError(f"{key}: {label!r} is no label of a nominal scale; give it a meaning there first")

    @property
    def positives(self) -> tuple[str, ...]:
        """Return the relevant labels, best first; () for a nominal scale."""
        return self.labels[: self.place(self.relevant_from) + 1] if self.relevant_from else ()

    @property
    def relevant(self) -> frozenset[str]:
        """Return the relevant labels as a set."""
        return frozenset(self.positives)

    def agree(self, labels: Iterable[str]) -> bool:
        """Return whether labels agree on relevance or, on a scale without a relevance threshold, are all the same."""
        return len({label in self.relevant if self.relevant else label for label in labels}) <= 1

    def place(self, label: str) -> int:
        """Return the position of a label, 0 for the best (or first); KeyError if it is not on the scale."""
        try:
            return self.labels.index(label)
        except ValueError:
            raise KeyError(label) from None

    def gain(self, label: str) -> int:
        """Return the integer gain of a label; KeyError if it is not on the scale."""
        return self.gains[self.place(label)]

    def read(self, text: str) -> str | None:
        """Return the label that a text equals, ignoring width, case and outer white space; None if there is none."""
        compared = plain(text)
        return next((label for label in self.labels if plain(label) == compared), None)

    def lower_median(self, grades: Iterable[str]) -> str | None:
        """Return the median of grades, of an even number the lower of the middle two; None without grades."""
        positions = sorted(map(self.place, grades))
        return self.labels[positions[len(positions) // 2]] if positions else None

    def minimum(self, grades: Iterable[str]) -> str | None:
        """Return the lowest of the grades; None without grades."""
        worst = max(map(self.place, grades), default=None)
        return None if worst is None else self.labels[worst]

    def described(self) -> str:
        """Return the labels as text, such as `S A | B C D`; the bar marks the relevance threshold."""
        if not self.relevant_from:
            return " ".join(self.labels)
        cut = self.place(self.relevant_from) + 1
        return " | ".join(" ".join(labels) for labels in (self.labels[:cut], self.labels[cut:]))

    def to_json(self) -> dict[str, Json]:
        """Return the scale as JSON; `from_json` reads it."""
        names: dict[str, Json] = {"order": self.order, "labels": self.labels}
        if self.order == "ordinal":
            return {**names, "gains": self.gains, "relevant_from": self.relevant_from}
        return {**names, "none": self.none, "several": self.several}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> "Scale":
        """Return the scale from the JSON of `to_json`."""
        arguments = {key: tuple(entry) if isinstance(entry, list) else entry for key, entry in data.items()}
        return cls(**arguments)  # type: ignore[arg-type]


def declared(  # a key each in the YAML of a rubric
    labels: Sequence[str],
    order: Order = "ordinal",
    relevant_from: str = "",
    gains: Mapping[str, int] | None = None,
    none: str = "",
    several: str = "",
) -> Scale:
    """Return the scale declared in a rubric; ValueError explains what is wrong.

    Default gains count down to 0 for the last label. The five grades S, A, B, C, D need no `relevant_from`.
    """
    if order == "ordinal" and not relevant_from and tuple(labels) == FIVE.labels:
        relevant_from = FIVE.relevant_from
    if gains is None:
        if order == "ordinal" and all(map(str.isdecimal, labels)) and int(labels[0]) < int(labels[-1]):
            raise ValueError(f"{labels[0]} stands before {labels[-1]}: write the best grade first, or state `gains`")
        worth = tuple(reversed(range(len(labels)))) if order == "ordinal" else ()
    else:
        if odd := sorted({*gains} ^ {*labels}):
            raise ValueError(f"gains: {', '.join(odd)} stands in only one of gains and grades; give one gain per grade")
        worth = tuple(gains[label] for label in labels)
    return Scale(tuple(labels), relevant_from, worth, order, none, several)


def plain(text: str) -> str:
    """Return a label normalised for comparison: half-width, upper case, without outer white space."""
    return unicodedata.normalize("NFKC", text).strip().upper()


def folded(text: str) -> str | Decimal:
    """Return a label in a form that survives a spreadsheet: its number, or its characters.

    3, 3.0 and 3,00 are the same number, and so are 5% and 0.05. For other labels case, width and white space are
    ignored.
    """
    if number := _NUMBER.fullmatch(plain(text).replace("\u2212", "-")):  # the minus of typographers
        return Decimal(f"{number[1]}.{number[2] or 0}") / (100 if number[3] else 1)
    return "".join(plain(text).casefold().split())  # "1 0" is text: two numbers


def _check_labels(scale: Scale) -> None:
    number, most = len(scale.labels), MOST[scale.order]
    if not 2 <= number <= most:
        raise ValueError(f"{number} grades: expected 2 to {most} on an {scale.order} scale")
    seen: dict[str | Decimal, str] = {}
    for label in scale.labels:
        if not label or label != label.strip() or len(label) > LONGEST or not label.isprintable():
            raise ValueError(f"the grade {label!r}: expected 1 to {LONGEST} printable characters, no blank at an end")
        if plain(label) in RESERVED:
            raise ValueError(f"the grade {label!r}: tables write that where there is no grade; name it otherwise")
        if (earlier := seen.get(folded(label))) is not None:
            raise ValueError(f"the grades {earlier!r} and {label!r} are read as the same; rename one")
        seen[folded(label)] = label


def _check_cut(scale: Scale) -> None:
    if scale.relevant_from not in scale.labels[:-1]:
        problem = f"found {scale.relevant_from!r}" if scale.relevant_from else "it is missing"
        raise ValueError(
            f"relevant_from: {problem}; expected the lowest relevant grade, one of {', '.join(scale.labels[:-1])} "
            f"(grades stand best first, and {scale.labels[-1]} is not relevant)"
        )
    never_rising = all(gain >= next_gain for gain, next_gain in zip(scale.gains, scale.gains[1:], strict=False))
    if (
        len(scale.gains) != len(scale.labels)
        or not never_rising
        or not 0 <= scale.gains[-1] <= scale.gains[0] <= LARGEST_GAIN
    ):
        raise ValueError(f"gains: expected one whole number from 0 to {LARGEST_GAIN} per grade, never rising downwards")
    if scale.gain(scale.relevant_from) <= 0 or scale.gains[0] == scale.gains[-1]:
        raise ValueError("gains: a relevant grade needs a gain above 0, and the best one more than the worst")


FIVE = Scale(("S", "A", "B", "C", "D"), "A", (4, 3, 2, 1, 0))
"""The five grades of CMedTEB; the default."""
