"""`diversify.t` by the script of the texts: what is taken, what is refused, and what it finds of planted copies."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import duplicates
from curate.commands.diversify import Config, DiversityRule
from curate.commands.diversify.vectors import for_language, guesses
from curate.core.config import read_yaml
from curate.core.errors import ConfigError
from curate.retrieval.encoders.use import Config as UseConfig
from curate.retrieval.encoders.use import Use
from tests import ROOT
from tests.support.runs import complaint, curate, ran, tiny

PACKAGED = DiversityRule(t="near-duplicates")
TERMS = {
    "zh": ["高血压", "胃溃疡", "偏头痛", "痛风", "湿疹", "骨质疏松", "甲亢", "鼻炎", "贫血", "失眠"],
    "en": [
        "high blood pressure",
        "a stomach ulcer",
        "migraine",
        "gout",
        "eczema",
        "osteoporosis",
        "hay fever",
        "anaemia",
    ],
}


def test_a_threshold_is_taken_by_the_language_of_the_texts() -> None:
    given = DiversityRule.model_validate({"t": {"zh": 0.9, "latin": 1}})
    assert [for_language(given, "queries", "mine", language).t for language in ("zh", "en", "ru")] == [0.9, 1.0, 0.9]
    for same in (DiversityRule(t=0.8), DiversityRule()):
        assert for_language(same, "queries", "mine", "en") is same
    for encoder in ("use", "e5"):
        for table in ("queries", "corpus"):
            zh, en = (for_language(PACKAGED, table, encoder, language).t for language in ("zh", "en"))
            assert isinstance(zh, float)
            assert isinstance(en, float)
            assert 0.8 < en < zh < 1


def test_an_encoder_without_packaged_thresholds_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"diversify.corpus.t: .* for 'mine' \(only for use, e5\); give a number, one"
    ):
        for_language(PACKAGED, "corpus", "mine", "zh")


def test_a_packaged_threshold_is_a_guess_on_other_languages() -> None:
    [said] = guesses(Config(queries=PACKAGED, corpus=PACKAGED), "de")
    assert said.startswith(
        "queries and corpus: thresholds for near-duplicates were calibrated on zh and en texts; on de"
    )
    assert not guesses(Config(queries=PACKAGED), "en")
    assert not guesses(Config(), "de")
    assert not guesses(Config(enabled=False, queries=PACKAGED), "de")


def test_one_pipeline_takes_both_and_stops_before_the_first_stage_where_a_script_is_missing(tmp_path: Path) -> None:
    name = tiny(tmp_path)
    place = tmp_path / name
    written = place.read_text(encoding="utf-8")
    words = "{encoder: use, queries: {t: {latin: 0.9}}, corpus: {t: near-duplicates, n: 0}}"
    place.write_text(written.replace("diversify: {enabled: false}", f"diversify: {words}"), encoding="utf-8")
    said = complaint(tmp_path, "run", name, "--language", "zh")
    assert "diversify.queries.t: found thresholds for latin, and the texts are 'zh'; add one for zh" in said
    ran(tmp_path, "run", name, "--set", "diversify.queries.t={zh: 0.99, latin: 0.9}", "--set", "diversify.max_drop=1")
    assert curate(tmp_path, "status").returncode == 0


@pytest.mark.parametrize("language", ["zh", "en"])
def test_packaged_thresholds_tell_copies_from_other_questions(language: str) -> None:
    words: Mapping[str, Any] = read_yaml(ROOT / "benchmarks" / "duplicates.yaml")[language]  # type: ignore[assignment]
    pairs = [pair for pair in duplicates.questions(words, TERMS[language], 3) if pair.kind != "paraphrase"]
    encoder = Use("use", UseConfig())
    one, other = (encoder.encode([*texts], "query") for texts in zip(*((p.one, p.other) for p in pairs), strict=True))
    t = for_language(PACKAGED, "queries", "use", language).t
    above: dict[str, list[bool]] = {kind: [] for kind in duplicates.KINDS}
    for pair, score in zip(pairs, (one * other).sum(axis=1).tolist(), strict=True):
        above[pair.kind].append(score > t)
    shares = {kind: sum(each) / len(each) for kind, each in above.items() if each}
    assert shares["edited copy"] > 0.85
    assert shares["other aspect or subject"] <= 0.2
    assert shares["other term or nearest"] == 0
