"""A dictionary of synonyms: read strictly, faults named by line, its words found where they are meant."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.ask.edits.dictionary import dictionary
from curate.ask.edits.synonym_matcher import Lexer
from curate.ask.edits.synonyms import KINDS, Entry, faults, groups, plain, read
from curate.commands.sts import Config
from curate.core import config
from curate.core.errors import ConfigError, DataError
from curate.pipeline.stage import Context
from curate.system import resources

HEAD = "term\tsynonym\tkind\tsource\tmeaning\tnot_in\tunseen\n"


def rows(*lines: str) -> list[Entry]:
    """Return entries from lines `term synonym [meaning [not_in [unseen]]]`, - for an empty cell."""
    cells = [["" if cell == "-" else cell for cell in line.split()] for line in lines]
    text = HEAD + "".join("\t".join([*each[:2], "exact", "test", *each[2:]]) + "\n" for each in cells)
    return read(text, ".tsv", "x.tsv")


def reasons(entries: list[Entry], lexicon: Any = None, longer: Any = ()) -> list[tuple[int, str]]:
    return [(each.line, each.reason) for each in faults(entries, lexicon, longer)]


TRAP, UNKNOWN = "a word stands inside longer ones", "a word that no lexicon knows"
AMBIGUOUS, CYCLE = "one word, two meanings", "a cycle of different meanings"
FAULTY: dict[str, tuple[list[Entry], list[tuple[int, str]]]] = {
    "nothing": (rows("心梗 心肌梗死", "乙肝 乙型肝炎"), []),
    "a triangle": (rows("心梗 心肌梗死", "心肌梗死 心肌梗塞", "心肌梗塞 心梗"), []),
    "one meaning, said": (rows("心肌梗死 心梗 心肌梗死", "心肌梗死 心肌梗塞 心肌梗死"), []),
    "its own synonym": (rows("心梗 心梗"), [(2, "a word is its own synonym")]),
    "the same in full width": (rows("CT ＣＴ"), [(2, "a word is its own synonym")]),
    "twice, the other way round": (rows("心梗 心肌梗死", "心肌梗死 心梗"), [(3, "the pair stands there already")]),
    "an abbreviation of two diseases": (rows("MS 多发性硬化", "MS 二尖瓣狭窄"), [(3, AMBIGUOUS)]),
    "a round of four": (
        rows("甲病 乙病", "乙病 丙病", "丙病 丁病", "丁病 甲病"),
        [(3, AMBIGUOUS), (4, AMBIGUOUS), (5, AMBIGUOUS), (5, AMBIGUOUS)],
    ),
    "two meanings, said": (
        rows("MS 多发性硬化 多发性硬化", "MS 二尖瓣狭窄 二尖瓣狭窄"),
        [(3, CYCLE), (3, AMBIGUOUS)],
    ),
    "a cycle of two meanings": (
        rows("胃溃疡 溃疡病 胃溃疡", "溃疡病 十二指肠溃疡 十二指肠溃疡", "十二指肠溃疡 胃溃疡 胃溃疡"),
        [(3, CYCLE)],
    ),
}


@pytest.mark.parametrize(("entries", "expected"), FAULTY.values(), ids=FAULTY)
def test_meanings(entries: list[Entry], expected: list[tuple[int, str]]) -> None:
    assert reasons(entries) == expected


def test_a_word_inside_a_longer_one_needs_a_rule() -> None:
    longer = {"乙肝五项", "乙肝两对半", "高血压肾病"}
    assert reasons(rows("乙肝 乙型肝炎"), longer=longer) == [(2, TRAP)]
    assert reasons(rows("乙肝 乙型肝炎 - 乙肝五项"), longer=longer) == [(2, TRAP)]
    assert reasons(rows("乙肝 乙型肝炎 - 乙肝五项|乙肝两对半"), longer=longer) == []
    said = faults(rows("乙肝 乙型肝炎"), None, longer)[0].detail
    assert "add to not_in: 乙肝两对半|乙肝五项" in said


def test_a_word_that_no_lexicon_knows_is_marked_or_a_fault() -> None:
    lexicon = {"乙型肝炎", "乙肝"}
    assert reasons(rows("乙肝 乙型肝炎"), lexicon) == []
    assert reasons(rows("乙肝 乙型干炎"), lexicon) == [(2, UNKNOWN)]
    assert reasons(rows("乙肝 乙型干炎 - - synonym"), lexicon) == []
    assert reasons(rows("乙肝 乙型干炎 - - term"), lexicon) == [(2, UNKNOWN)]
    assert reasons(rows("乙干 乙型干炎 - - both"), lexicon) == []


YAML = """\
version: 1
synonyms:
- {term: 心梗, synonym: 心肌梗死, kind: abbreviation, source: book, not_in: [心梗阻, 假心梗], unseen: term}
"""
READ: dict[str, tuple[str, str]] = {
    ".tsv": (HEAD + "心梗\t心肌梗死\tabbreviation\tbook\t\t心梗阻|假心梗\tterm\n", "a.tsv"),
    ".csv": ("term,synonym,kind,source,not_in,unseen\n心梗,心肌梗死,abbreviation,book,心梗阻|假心梗,term\n", "a.csv"),
    ".yaml": (YAML, "a.yaml"),
}


@pytest.mark.parametrize("ending", READ)
def test_three_forms_say_the_same(ending: str) -> None:
    text, where = READ[ending]
    (found,) = read(text, ending, where)
    assert (found.words, found.kind, found.source) == (("心梗", "心肌梗死"), "abbreviation", "book")
    assert (found.not_in, found.unseen, found.spelled) == (("心梗阻", "假心梗"), "term", ("心梗", "心肌梗死"))


BROKEN: dict[str, tuple[str, str, str]] = {
    "no head": ("心梗\t心肌梗死\n", ".tsv", "a:1: found the columns 心梗, 心肌梗死, expected term, synonym"),
    "another column": ("term\tsynonym\tkind\tsource\tnote\n", ".tsv", "a:1: found the columns"),
    "nothing": ("", ".tsv", "a:1: found the columns none"),
    "a cell too many": ("term,synonym,kind,source\na,b,exact,x,y\n", ".csv", "a:2: found 5 cells, expected 4"),
    "a cell too few": ("term,synonym,kind,source\na,b,exact\n", ".csv", "a:2: found 3 cells"),
    "another kind": (
        "term,synonym,kind,source\na,b,same,x\n",
        ".csv",
        "a:2: kind: found 'same', expected one of exact",
    ),
    "an empty word": ("term,synonym,kind,source\na, ,exact,x\n", ".csv", "a:2: found an empty word"),
    "another mark": (
        "term,synonym,kind,source,unseen\na,b,exact,x,yes\n",
        ".csv",
        "a:2: unseen: found 'yes', expected one of term",
    ),
    "no YAML": ("a: [", ".yaml", "a: not valid YAML"),
    "another version": ("version: 2\nsynonyms: []\n", ".yaml", "a: expected `version: 1`"),
    "a row of another form": ("version: 1\nsynonyms: [{term: a}]\n", ".yaml", r"a: synonyms\[1\]: expected the keys"),
    "another ending": ("", ".xls", "a: found the ending '.xls', expected .tsv, .csv or .yaml"),
}


@pytest.mark.parametrize(("text", "ending", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_named_by_place(text: str, ending: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read(text, ending, "a")


def test_the_longest_word_is_meant() -> None:
    lexer = Lexer(
        rows(
            "肺炎 肺部炎症",
            "支气管肺炎 小叶性肺炎",
            "乙肝 乙型肝炎 - 乙肝五项",
            "CT 计算机断层扫描 - PET-CT",
            "中风 脑卒中 - 中风险",
        )
    )

    def found(text: str) -> list[str]:
        return [each.word for each in lexer.find(text)]

    assert found("肺炎和支气管肺炎") == ["肺炎", "支气管肺炎"]
    assert found("乙肝五项查乙肝") == ["乙肝"]
    assert found("做CT还是PET-CT，ACTH和CTA呢，ct") == ["ct", "ct"]
    assert found("中风险人群会中风吗") == ["中风"]
    assert lexer.replace("做ct好还是CT好", "ct", "计算机断层扫描") == "做计算机断层扫描好还是计算机断层扫描好"
    assert lexer.replace("计算机断层扫描准吗", "计算机断层扫描", "ct") == "CT准吗"
    assert lexer.apart("乙肝五项", "乙肝") == ["乙肝五项"]


WORDS = st.text("甲乙丙Ab1 İ", min_size=1, max_size=4).filter(lambda word: bool(plain(word)))
PAIRS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=8)


def entered(pairs: list[tuple[str, str]]) -> list[Entry]:
    return [
        Entry(n, plain(a), plain(b), "exact", "", spelled=(a.strip(), b.strip())) for n, (a, b) in enumerate(pairs, 2)
    ]


@given(PAIRS, st.text("甲乙丙Ab1 İ，", max_size=30))
def test_pieces_and_places_make_the_text_again(pairs: list[tuple[str, str]], text: str) -> None:
    lexer = Lexer(entered(pairs))
    found = lexer.find(text)
    assert all(one.end <= two.start for one, two in pairwise(found))
    for each in found:
        assert each.word in lexer.partners
        assert len(each.word) == each.end - each.start
        pieces = lexer.apart(text, each.word)
        assert len(pieces) == 1 + sum(other.word == each.word for other in found)
        assert sum(map(len, pieces)) + (len(pieces) - 1) * len(each.word) == len(text)


@given(PAIRS)
def test_groups_hold_what_rows_join(pairs: list[tuple[str, str]]) -> None:
    entries = entered(pairs)
    root = groups(entries)
    assert all(root[entry.term] == root[entry.synonym] for entry in entries)
    assert set(root) == {word for entry in entries for word in entry.words}
    reach = {word: {word} for word in root}
    for _ in entries:
        for entry in entries:
            both = reach[entry.term] | reach[entry.synonym]
            for word in both:
                reach[word] = both
    assert all(root[word] == min(reach[word]) for word in root)


@given(PAIRS)
def test_without_its_faulty_rows_a_dictionary_has_no_repeated_or_empty_pair(pairs: list[tuple[str, str]]) -> None:
    entries = entered(pairs)
    faulty = {fault.line for fault in faults(entries, None)}
    kept = [frozenset(entry.words) for entry in entries if entry.line not in faulty]
    assert len(set(kept)) == len(kept)
    assert all(len(pair) == 2 for pair in kept)


# Ours


def book(language: str, **settings: Any) -> Any:
    context = Context(run=Path(), out=Path(), home=Path(), language=language)
    return dictionary(config.check(Config, settings, "sts"), context, "sts")


def test_the_packaged_dictionaries_are_without_fault() -> None:
    chinese = book("zh-CN")
    assert chinese.faults == []
    assert len(chinese.entries) >= 400
    assert {entry.kind for entry in chinese.entries} == set(KINDS)
    assert all(entry.source for entry in chinese.entries)
    vouched = sum(bool(entry.unseen) for entry in chinese.entries)
    assert 0 < vouched < len(chinese.entries)
    english = book("en")
    assert english.faults == []
    assert len(english.entries) >= 40


def test_the_packaged_one_is_checked_against_a_lexicon_and_long_words(tmp_path: Path) -> None:
    text = resources.find("annotations", "synonyms-zh.tsv").read_text(encoding="utf-8")
    bare = re.sub(r"\t[^\t]*\t(term|synonym|both)?$", "\t\t", text, flags=re.MULTILINE)
    bare = bare.replace(bare.splitlines()[0], text.splitlines()[0], 1)
    path = tmp_path / "bare.tsv"
    path.write_text(bare, encoding="utf-8")
    with pytest.raises(DataError, match=r"bare.tsv:\d+: (a word that|a word stands)[\s\S]*--set sts.faults=drop"):
        book("zh", dictionary=str(path))
    found = book("zh", dictionary=str(path), faults="drop")
    assert {fault.reason for fault in found.faults} == {TRAP, UNKNOWN}
    assert 0 < len(found.entries) < 400
    with pytest.raises(ConfigError, match="no annotation named"):
        book("zh", dictionary="nowhere.tsv")


TRAPS = (
    "病人流鼻血怎么办",
    "晚上感到心里发紧",
    "吃多囊卵巢的药",
    "查血尿酸要空腹吗",
    "每周血透析几次",
    "艾司奥美拉唑怎么吃",
    "左西替利嗪可以天天吃吗",
    "沙库巴曲缬沙坦的用法",
    "吃药以便血压正常",
    "小肠镜检查疼不疼",
    "强迫症状严重",
    "当地贫困人口",
    "每天 100 mg 够吗",
    "结节 5 mm 要紧吗",
    "月经来得时候没有规律",
)
"""Texts in which signs of a word of the dictionary stand and none of its words is meant."""


@pytest.mark.parametrize("text", TRAPS)
def test_no_word_of_the_packaged_dictionary_is_found_where_it_is_not_meant(text: str) -> None:
    assert Lexer(book("zh").entries).find(text) == []


def test_no_word_is_found_that_ends_within_the_word_for_symptoms() -> None:
    lexer = Lexer(book("zh").entries)
    found = [word for word in lexer.partners if word.endswith("症") and lexer.holds(f"{word}状", word)]
    assert found == []
    assert [each.word for each in lexer.find("高血压症状有哪些")] == ["高血压"]
