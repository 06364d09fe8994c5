"""Thresholds per script: which one a language gets, and what is said where there is none."""

import pytest

from curate.core.errors import ConfigError
from curate.core.scripts import ThresholdsByScript, guess, script_of


@pytest.mark.parametrize(
    ("language", "script"),
    [
        ("zh", "zh"),
        ("zh-CN", "zh"),
        ("en", "latin"),
        ("EN-us", "latin"),
        ("no", "latin"),
        ("ja", "other"),
        ("", "other"),
    ],
)
def test_a_language_has_a_script(language: str, script: str) -> None:
    assert script_of(language) == script


def test_each_script_gets_its_own_and_others_the_strictest() -> None:
    known = ThresholdsByScript({"zh": 0.9, "latin": 0.8})
    assert [known.of(language, "t") for language in ("zh", "de", "ru")] == [0.9, 0.8, 0.9]
    assert ThresholdsByScript({"zh": 0.9, "other": 0.7}).of("ru", "t") == 0.7


@pytest.mark.parametrize("language", ["en", "ru"])
def test_a_missing_script_is_named_with_what_to_add(language: str) -> None:
    given = ThresholdsByScript({"zh": 0.9} if language == "en" else {"latin": 0.9})
    wanted = f"t: found thresholds for .*, and the texts are '{language}'; add one for {script_of(language)}"
    with pytest.raises(ConfigError, match=wanted):
        given.of(language, "t")


def test_only_other_languages_are_guessed() -> None:
    assert not guess("e5: its thresholds", "zh-TW")
    assert not guess("e5: its thresholds", "en")
    assert guess("e5: its thresholds", "de") == (
        "e5: its thresholds were calibrated on zh and en texts; on de they are a guess"
    )
