"""The choice among translations: a region is no language, and English stands in for what is missing."""

import pytest

from curate.core.languages import in_language, served_by
from curate.system import resources


@pytest.mark.parametrize(("language", "tag"), [("zh", "zh"), ("zh-Hant-TW", "zh"), ("en-GB", "en"), ("ja", "en")])
def test_a_language_is_served_by_its_own_words_or_english(language: str, tag: str) -> None:
    assert served_by(language, ("zh", "en")) == tag
    assert in_language({"zh": "zh", "en": "en"}, language) == tag
    assert resources.prompt("label", language).name == f"label-{tag}.yaml"


def test_without_english_the_first_serves() -> None:
    assert in_language({"fr": "mots", "de": "Worte"}, "ja") == "mots"
