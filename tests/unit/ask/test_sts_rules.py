"""What a sentence beside a query must hold, what is written without a model, and shares that are met exactly."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.ask.edits.question_templates import EDITS, Wording
from curate.ask.edits.synonym_matcher import Lexer
from curate.ask.edits.synonyms import read as entries
from curate.ask.personal_data import PersonalData
from curate.commands.sts import Config, figures
from curate.commands.sts.quotas import draw, most, quotas, split
from curate.commands.sts.task import (
    KINDS,
    RULES,
    Kind,
    RewritingPrompt,
    RewritingTask,
    Rules,
    Sentence,
    SentencesTask,
    SentenceWriter,
    WantedSentences,
    bare,
    choose,
)
from curate.core.config import Json, check, read_yaml
from curate.core.errors import ConfigError
from curate.core.messages import Reply
from curate.system import resources
from curate.system.files import frame


def prompt(data: Mapping[str, Json], where: str = "x") -> RewritingPrompt:
    return check(RewritingPrompt, data, where)


DATA = yaml.safe_load(resources.data_file("ask/edits/question_templates.yaml").read_text(encoding="utf-8"))
WORDING = {language: Wording.model_validate(words) for language, words in DATA.items()}
ZH = WORDING["zh"]
TSV = resources.find("annotations", "synonyms-zh.tsv").read_text(encoding="utf-8")
LEXER = Lexer(entries(TSV, ".tsv", "synonyms-zh.tsv"))
RULES_ZH = Rules(LEXER, ZH.asks, 0.3)
TASK = RewritingTask("q1", "心梗以后能喝酒吗", "心梗", "心肌梗死")

CASES: dict[str, tuple[Kind, str, list[str]]] = {
    "a positive": ("positive", "心肌梗死以后可喝酒吗", []),
    "a hard negative": ("hard", "喝酒会引起心肌梗死吗", []),
    "an easy negative": ("easy", "心梗以后能坐飞机吗", []),
    "its word is missing": ("hard", "喝酒会引起心脏病吗", ["word"]),
    "the other word is there": ("positive", "心梗就是心肌梗死吗", ["other word"]),
    "the other word instead": ("easy", "喝酒会引起心肌梗死吗", ["word", "other word"]),
    "too long": ("positive", "请问得过心肌梗死以后还可以喝酒吗", ["length"]),
    "too short": ("easy", "心梗疼吗", ["length"]),
    "no question": ("hard", "心肌梗死以后不能喝酒", ["form"]),
    "the query again": ("easy", "心梗以后，能喝酒吗？", ["same"]),
    "there already": ("easy", "心梗以后能上班吗", ["duplicate"]),
}


@pytest.mark.parametrize(("kind", "text", "broken"), CASES.values(), ids=CASES)
def test_rules(kind: Kind, text: str, broken: list[str]) -> None:
    assert RULES_ZH.broken(TASK, kind, text, {bare("心梗以后能上班吗")}) == broken


SENTENCES = st.lists(
    st.sampled_from(["心梗", "心肌梗死", "吗", "能", "喝酒", "以后", "？", "x", " "]), max_size=12
).map("".join)


@pytest.mark.slow
@given(SENTENCES, st.sampled_from(KINDS), st.sets(SENTENCES.map(bare)))
def test_rules_again_by_plain_means(text: str, kind: Kind, taken: set[str]) -> None:
    """Derive every rule a second time, without the code that is tested."""
    broken = set(RULES_ZH.broken(TASK, kind, text, taken))
    wanted, unwanted = ("心梗", "心肌梗死") if kind == "easy" else ("心肌梗死", "心梗")
    letters = "".join(char for char in text if char not in " ？")
    assert ("word" in broken) == (wanted not in text)
    assert ("other word" in broken) == (unwanted in text)
    assert ("length" in broken) == (not 5.6 <= len(text) <= 10.4)
    assert ("form" in broken) == (not ("吗" in text or "？" in text))
    assert ("same" in broken) == (letters == "心梗以后能喝酒吗")
    assert ("duplicate" in broken) == (letters in taken and letters != "心梗以后能喝酒吗")


def test_questions_are_known_by_their_form() -> None:
    for text in ("吃什么药", "能喝酒吗", "是不是要手术", "多久能好", "What is it", "几天能好", "好不好", "要紧？"):
        assert any(words.asks(text) for words in WORDING.values()), text
    for text in ("胃溃疡饮食", "高血压的治疗方案", "几乎痊愈"):
        assert not ZH.asks(text), text
    assert WORDING["en"].asks("can I run with asthma")
    assert not WORDING["en"].asks("asthma in children")


# Without a model

FRAMES = (
    "{}患者能喝咖啡吗",
    "左侧{}应该挂什么科",
    "{}每天吃3片可以吗",
    "孩子得了{}怎么办",
    "{}早期有什么症状",
    "{}术后能不能跑步",
    "{}饮食注意",
    "{}会传染给家人吗",
    "得了{}多久能好",
    "{}吃什么药好",
)
TERMS = st.sampled_from(sorted(LEXER.partners))


def written(queries: list[tuple[str, str]], *, edits: bool, templates: bool = True, seed: int = 7) -> SentenceWriter:
    chosen = choose(queries, LEXER, RULES_ZH, seed, None)
    taken = {bare(text) for _, text in queries}
    writer = SentenceWriter(RULES_ZH, ZH, Config(edits=edits), seed, taken, PersonalData(None))
    writer.offline(chosen.tasks, KINDS, templates=templates)
    return writer


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(TERMS, st.sampled_from(FRAMES)), min_size=1, max_size=12), st.booleans(), st.integers(0, 9))
def test_everything_written_keeps_to_the_rules(drawn: list[tuple[str, str]], edits: bool, seed: int) -> None:
    queries = [(f"q{n}", form.format(LEXER.spelled[term])) for n, (term, form) in enumerate(drawn)]
    writer = written(queries, edits=edits, seed=seed)
    found = writer.draft.sentences
    for each in found:
        assert RULES_ZH.broken(each.task, each.kind, each.text) == []
        assert each.task.query == dict(queries)[each.task.query_id]
        assert {"positive"} if each.kind == "positive" else each.way in (*EDITS, "template")
    texts = [bare(each.text) for each in found] + sorted({bare(text) for _, text in queries})
    assert len(set(texts)) == len(texts)
    assert len({(each.task.query_id, each.kind) for each in found}) == len(found)
    assert [vars(each) for each in written(queries, edits=edits, seed=seed).draft.sentences] == [
        vars(each) for each in found
    ]


EDITED = {
    "negation": ("糖尿病能吃什么水果", "糖尿病不能吃什么水果"),
    "an opposite": ("二甲双胍饭前吃可以吗", "二甲双胍饭后吃可以吗"),
    "a side": ("左侧肾结石怎么办", "右侧肾结石怎么办"),
    "a dose": ("布洛芬一天吃3片行吗", "布洛芬一天吃6片行吗"),
    "a rank": ("结节4类的乳腺增生要紧吗", "结节3类的乳腺增生要紧吗"),
    "a broader word": ("痛经可以喝咖啡吗", "痛经可以喝饮料吗"),
}


@pytest.mark.parametrize(("query", "expected"), EDITED.values(), ids=EDITED)
def test_one_detail_is_changed(query: str, expected: str) -> None:
    word = LEXER.find(query)[0].word
    texts = [text for _, text in ZH.edited(LEXER.apart(query, word), LEXER.spelled[word], 7)]
    assert expected in texts


@pytest.mark.parametrize("query", ["高血压影响肝功能吗", "高血压有可能好吗", "高血压的人去社会上跑步好吗"])
def test_a_sign_within_another_word_is_not_reworded(query: str) -> None:
    pieces = LEXER.apart(query, "高血压")
    texts = [text for _, text in ZH.positives(pieces, "高血压病", 7)]
    assert not any(wrong in text for text in texts for wrong in ("功可以", "可可以", "社有可能"))


def test_what_is_in_the_word_is_not_changed() -> None:
    """The dose in the name of a disease, levofloxacin and "about three days" are no dose and no sides."""
    for query in ("2型糖尿病怎么办", "左氧氟沙星好吗", "感冒左右为难", "感冒请回电15900003826", "感冒回kl8@x.com"):
        word = LEXER.find(query)[0].word
        found = list(ZH.edited(LEXER.apart(query, word), LEXER.spelled[word], 7))
        assert [kind for kind, _ in found if kind in ("dose", "laterality")] == []


@pytest.mark.parametrize("language", WORDING)
def test_every_pattern_of_the_wording_can_be_met_or_stands_for_a_question(language: str) -> None:
    words = WORDING[language]
    for intent in words.intents:
        assert all(words.asks(each.replace("{x}", "CKD")) for each in intent.questions), intent.questions
        assert not any(words.asks(each.replace("{x}", "CKD")) for each in intent.phrases), intent.phrases
        assert all("{x}" in each for each in (*intent.questions, *intent.phrases))


# What a model may reply


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_packaged_prompts_say_everything(language: str) -> None:
    asked = prompt(read_yaml(resources.find("prompts", f"sts-write-{language}.yaml")), "x")
    request = asked.request(TASK, LEXER.spelled, {"hard": ["length", "word"], "easy": []}, 50)
    system, user = (turn.content for turn in request.messages)
    assert all(asked.kinds[kind] in system for kind in KINDS)
    assert all(text in user for text in (TASK.query, "心梗\n", "心肌梗死\n", "hard, easy", asked.broken["length"]))
    assert asked.broken["form"] not in user
    assert "{" not in user
    assert request.schema is not None
    assert request.schema["required"] == ["hard", "easy"]
    assert set(asked.broken) == set(RULES)
    again = asked.request(TASK, LEXER.spelled, {"hard": [], "easy": []}, 50)
    assert again.messages != request.messages


def test_a_prompt_that_lacks_something_is_named() -> None:
    data = dict(read_yaml(resources.find("prompts", "sts-write-en.yaml")))
    with pytest.raises(ConfigError, match=r"lacks \{synonym\}"):
        prompt({**data, "user": "{query} {term} {wanted} {broken}"}, "x")
    with pytest.raises(ConfigError, match="expected the kinds positive, hard, easy"):
        prompt({**data, "broken": {}}, "x")


REPLIES: dict[str, tuple[Any, str]] = {
    "both": ('{"hard": "心肌梗死疼吗", "easy": " 心梗疼吗 "}', "written"),
    "in a fence": ('```json\n{"hard": "a", "easy": "b"}\n```', "written"),
    "one alone": ('{"hard": "a"}', "unparsed"),
    "one more": ('{"hard": "a", "easy": "b", "positive": "c"}', "unparsed"),
    "one twice": ('{"hard": "a", "easy": "b", "easy": "c"}', "unparsed"),
    "two lines": ('{"hard": "a\\nb", "easy": "b"}', "unparsed"),
    "nothing but marks": ('{"hard": "？！", "easy": "b"}', "unparsed"),
    "a list": ('{"hard": ["a"], "easy": "b"}', "unparsed"),
    "prose": ("好的，这里是两句话。", "unparsed"),
    "nothing": (None, "unparsed"),
}


@pytest.mark.parametrize(("text", "status"), REPLIES.values(), ids=REPLIES)
def test_replies_are_read_strictly(text: str | None, status: str) -> None:
    task = SentencesTask(prompt(read_yaml(resources.find("prompts", "sts-write-zh.yaml"))), LEXER.spelled)
    wanted = WantedSentences(TASK, {"hard": (), "easy": ()})
    found = task.read(wanted, Reply(text, "stop", "m", None))
    assert (found.status, len(found.texts)) == (status, 2 if status == "written" else 0)
    assert task.read(wanted, Reply(text, "length", "m", None)).status == "unparsed"
    assert task.read(wanted, Reply(text, "refusal", "m", None)).status == "refused"


VOTES: list[tuple[Kind, dict[str, str | None], str]] = [
    ("positive", {"a": "yes", "b": "yes"}, "kept"),
    ("positive", {"a": "yes", "b": "no"}, "rejected"),
    ("hard", {"a": "no", "b": "no"}, "kept"),
    ("hard", {"a": "yes", "b": "yes"}, "rejected"),
    ("easy", {"a": "no", "b": None}, "incomplete"),
    ("easy", {}, "unconfirmed"),
]


@pytest.mark.parametrize(("kind", "votes", "outcome"), VOTES)
def test_kept_is_what_all_agree_on(kind: Kind, votes: dict[str, str | None], outcome: str) -> None:
    assert Sentence(TASK, kind, "x", "model", votes=votes).outcome == outcome


# Shares

SHARES = {"positive": 0.48, "hard": 0.26, "easy": 0.26}
OPTIONS = st.dictionaries(st.integers(0, 60).map(str), st.sets(st.sampled_from(KINDS)), max_size=40)


@given(st.integers(0, 20_000))
def test_quotas_add_up_and_are_next_to_exact(number: int) -> None:
    found = quotas(number, SHARES)
    assert sum(found.values()) == number
    assert all(abs(found[kind] - number * share) < 1 for kind, share in SHARES.items())


@pytest.mark.slow
@settings(deadline=None)
@given(OPTIONS, st.integers(0, 50), st.integers(0, 5))
def test_a_draw_meets_its_quotas_exactly(options: dict[str, set[str]], wanted: int, seed: int) -> None:
    number = most(options, wanted, SHARES)
    found = draw(options, number, SHARES, seed)
    assert number <= wanted
    assert Counter(found.values()) == Counter({kind: n for kind, n in quotas(number, SHARES).items() if n})
    assert all(kind in options[query] for query, kind in found.items())
    assert draw(options, number, SHARES, seed) == found


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.integers(0, 7).map(str), st.sets(st.sampled_from(KINDS)), max_size=7))
def test_as_many_as_there_can_be(options: dict[str, set[str]]) -> None:
    """Compare with a search through all assignments."""

    def possible(left: dict[str, int], queries: list[str]) -> bool:
        if not any(left.values()):
            return True
        if not queries:
            return False
        first, *rest = queries
        taken = (possible({**left, kind: left[kind] - 1}, rest) for kind in options[first] if left[kind])
        return possible(left, rest) or any(taken)

    best = max(n for n in range(len(options) + 1) if possible(quotas(n, SHARES), sorted(options)))
    assert most(options, 99, SHARES) == best
    with pytest.raises(ValueError, match="cannot be had"):
        draw(options, len(options) + 1, SHARES, 1)


@pytest.mark.slow
def test_quotas_are_met_exactly_on_five_thousand() -> None:
    rng = np.random.default_rng(3)
    options = {
        f"q{n}": [kind for kind, p in zip(KINDS, (0.9, 0.6, 0.5), strict=True) if rng.random() < p]
        for n in range(7_000)
    }
    found = draw(options, 5_000, SHARES, 11)
    assert Counter(found.values()) == {"positive": 2_400, "hard": 1_300, "easy": 1_300}
    assert all(kind in options[query] for query, kind in found.items())
    other = draw(options, 5_000, SHARES, 12)
    assert len(set(found.items()) & set(other.items())) < 3_500  # by seed, not by order


@pytest.mark.slow
@given(
    st.dictionaries(st.text("abc", min_size=1), st.integers(1, 30), max_size=25), st.integers(0, 4), st.integers(0, 4)
)
def test_groups_stay_whole_and_splits_get_their_part(sizes: dict[str, int], test: int, train: int) -> None:
    found = split(sizes, {"test": test, "train": train}, 3)
    if not test and not train:
        assert found == {}
        return
    assert set(found) == set(sizes)
    held = Counter[str]()
    for group, name in found.items():
        held[name] += sizes[group]
    assert set(held) <= {name for name, number in (("test", test), ("train", train)) if number}
    if test and train and sizes:
        assert abs(held["test"] / test - held["train"] / train) <= max(sizes.values()) / min(test, train)


# Figures


def pairs(*rows: tuple[str, str, str, str]) -> pl.DataFrame:
    named = [
        {"pair_id": f"p{n}", "sentence1": one, "sentence2": two, "kind": kind, "label": int(kind == "positive")}
        | {"term": "心梗", "synonym": synonym}
        for n, (one, two, kind, synonym) in enumerate(rows)
    ]
    return frame("pairs", named)


def test_figures_by_hand() -> None:
    found: Any = figures.figures(
        pairs(
            ("心梗能喝酒吗", "心肌梗死能喝酒吗", "positive", "心肌梗死"),
            ("心梗能喝酒吗", "心肌梗死疼吗", "hard", "心肌梗死"),
            ("心梗能喝酒吗", "心梗疼吗", "easy", "心肌梗死"),
        )
    )
    assert (found["pairs"], found["positive_share"], found["pairs_of_words"]) == (3, 0.3333, 1)
    assert found["kinds"] == {"positive": 1, "hard": 1, "easy": 1}
    assert found["lengths"]["positive"] == {
        "query_mean": 6.0,
        "sentence_mean": 8.0,
        "ratio_mean": 1.3333,
        "ratio_low": 1.3333,
        "ratio_high": 1.3333,
    }
    overlaps = [6 / 8, 3 / 9, 3 / 7]
    assert found["shortcuts"]["synonym_present"] == 0.5
    assert found["shortcuts"]["character_overlap"] == pytest.approx(np.corrcoef([1, 0, 0], overlaps)[0, 1], abs=1e-4)
    assert found["shortcuts"]["length_difference"] == pytest.approx(
        np.corrcoef([1, 0, 0], [1 / 3, 0, 1 / 3])[0, 1], abs=1e-4
    )


def test_a_synonym_inside_its_term_is_not_there() -> None:
    rows = pairs(
        ("高血压病能喝酒吗", "高血压能喝酒吗", "positive", "高血压"),
        ("高血压病能喝酒吗", "高血压病疼吗", "easy", "高血压"),
    ).with_columns(term=pl.lit("高血压病"))
    found: Any = figures.figures(rows)
    assert found["shortcuts"]["synonym_present"] == 1


def test_what_is_not_defined_is_none() -> None:
    one: Any = figures.figures(pairs(("心梗能喝酒吗", "心肌梗死能喝酒吗", "positive", "心肌梗死")))
    assert set(one["shortcuts"].values()) == {None}
    assert set(one["lengths"]["easy"].values()) == {None}
    none: Any = figures.figures(pairs())
    assert none["positive_share"] is None
    assert figures.overlap("", " ") is None
    assert figures.overlap("ab", "BA") == 1
