"""Rules in YAML: what a pattern is filled with, what a veto, a check and a further value do, and no key is misspelt."""

import pytest

from curate.pii import RECOGNISERS
from curate.pii.recognisers.contexts import CHECKS
from curate.pii.recognisers.numbers import landline, medical_record, passport, url
from curate.pii.rules import READINGS, RuleFile, RuleRecogniser
from tests.support.recognising import found

RULE_KEYS = {"pattern", "after", "link", "reading", "trim", "digits", "valid", "unless", "more"}
KEYS = RULE_KEYS - {"pattern"} | {"kind", "finds", "like", "unlike", "triggers", "rules"}
FILES = [
    "contacts",
    "accounts",
    "identity",
    "patients",
    "places",
    "addresses_abroad",
    "institutions",
    "institutions_short",
]


@pytest.mark.parametrize("file", FILES)
def test_the_keys_of_rules_are_known(file: str) -> None:
    for name, entry in RuleFile(file).recognisers.items():
        assert entry.keys() <= KEYS, name
        for rule in entry.get("rules", []):
            assert rule.keys() <= RULE_KEYS, name
            every = {**entry, **rule}
            assert every.get("reading", "narrow") in READINGS
            checks = every.get("valid", [])
            assert set([checks] if isinstance(checks, str) else checks) <= CHECKS.keys(), name
            assert all(veto.keys() <= {"before", "value", "behind"} for veto in every.get("unless", [])), name


def test_a_recogniser_has_the_name_of_its_entry() -> None:
    for name in RECOGNISERS.builtin:
        recogniser = RECOGNISERS.load(name)
        assert not isinstance(recogniser, RuleRecogniser) or recogniser.name == name


def test_a_pattern_is_filled_with_patterns_and_words() -> None:
    file = RuleFile("identity", lambda: {"digit": "[0-5]"})
    assert file.filled("a{2}{digit}") == "a{2}[0-5]"
    assert file.filled("{either:macao}|x").startswith("(?:澳门非永久性居民身份证|")
    assert file.filled("a \n  # no part of it\n  |b c\n") == "a|b c"
    with pytest.raises(KeyError):
        file.filled("{no_such_pattern}")


def test_vetoes_hold_together_and_only_there() -> None:
    assert found(medical_record, "门诊号20012元") == ["20012"]  # a count has at most four digits
    assert found(medical_record, "门诊号2012元") == []
    assert found(passport, "型号E12345678，护照号E12345678") == ["E12345678"]


def test_further_values_and_trimmed_ends() -> None:
    assert found(landline, "电话010-61234870、61234871、2月") == ["010-61234870", "61234871"]
    assert found(url, "见https://weibo.com/u/1234567890...") == ["https://weibo.com/u/1234567890"]
