"""What is masked and how: the settings that the stage and `curate anonymise` share, and the masker they describe."""

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from curate.core.config import Section
from curate.core.errors import ConfigError, suggestion
from curate.pii import RECOGNISERS, Recogniser
from curate.pii.custom import CustomWords, Pattern, from_pattern, from_words
from curate.pii.kinds import placeholders
from curate.pii.masking import Masker, Writer
from curate.pii.writing import Mode, last_resort, writer


class Masking(Section):
    """What is looked for, and what is written in its place."""

    recognisers: list[str] | None = Field(default=None, description="names of recognisers; all without it")
    without: list[str] = Field(default=[], description="names of recognisers that are left out")
    patterns: dict[str, Pattern] = Field(default={}, description="regular expressions of your own, by name")
    words: dict[str, CustomWords] = Field(default={}, description="lists of words of your own, by name")
    mode: Mode = Field(default="placeholder", description="placeholder, pseudonym or tag (of the same length)")
    placeholders: Literal["zh", "en"] | None = Field(
        default=None, description="language of the placeholders; without it that of each text"
    )

    @property
    def names(self) -> list[str]:
        """Return the names of the recognisers that are on; ConfigError for a name nobody knows."""
        known = RECOGNISERS.names()
        for name in [*(self.recognisers or ()), *self.without]:
            if name not in known:
                raise ConfigError(f"unknown recogniser {name!r}: {suggestion(name, known)}")
        return [name for name in (known if self.recognisers is None else self.recognisers) if name not in self.without]


def recognisers(config: Masking) -> Sequence[Recogniser]:
    """Return what is on, the user's own last; ConfigError for a pattern or a list that is none."""
    return [*map(RECOGNISERS.load, config.names), *_own(config)]


def checked(config: Masking) -> None:
    """Raise what `recognisers` raises; packaged ones, which always load and take a second, are not imported."""
    for name in config.names:
        if name not in RECOGNISERS.builtin:
            RECOGNISERS.load(name)
    _own(config)


def _own(config: Masking) -> list[Recogniser]:
    patterns = (from_pattern(name, each) for name, each in config.patterns.items())
    return [*patterns, *(from_words(name, each) for name, each in config.words.items())]


def masker(config: Masking, language: str, key: bytes) -> Masker:
    """Return the masker of these settings; `key` draws the pseudonyms.

    Placeholders are in the language of each text, in `language` where a text has no letters.
    """
    spoken = config.placeholders or language
    by_script: dict[str | None, tuple[Writer, Writer]] = {
        each: (writer(config.mode, each, key), last_resort(each)) for each in ("zh", "en") if not config.placeholders
    }
    write, placeholder = writer(config.mode, spoken, key), last_resort(spoken)
    return Masker(recognisers(config), write, placeholder, untouched(config), by_script)


def untouched(config: Masking) -> re.Pattern[str]:
    """Return the pattern of all placeholders, those of the user's own kinds included."""
    own: list[Pattern | CustomWords] = [*config.patterns.values(), *config.words.values()]
    return placeholders(each.kind for each in own)
