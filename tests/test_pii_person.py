"""Names of persons: every way in which they show, and the words that look like names and stay."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.pii import RECOGNISERS
from curate.pii.name_words import known, lists
from curate.pii.settings import Masking, masker
from tests import recognising

NAMES = [name for name in RECOGNISERS.names() if name.startswith("name_")]
ALL = [RECOGNISERS.load(name) for name in NAMES]
MASKER = masker(Masking(recognisers=NAMES), "zh", b"key")


def found(text: str) -> list[str]:
    for recogniser in ALL:
        recognising.promised(recogniser, text)
    return [text[span.start : span.end] for span in MASKER.mask(text).spans]


INTRODUCED = [
    (
        "我叫{}，今年45岁",
        "王小明|李芳|欧阳娜娜|诸葛明|张三|高海燕|陈平安|上官婉儿|安静|高飞|于洋|买买提·吐尔逊|约翰·史密斯|王翀|何洁|黄海波",
    ),
    ("您好,我叫{}今年三十岁", "王小明|李芳|欧阳娜娜|高海燕|何强|周洋"),
    ("医生你好，我叫{}最近总是头晕", "王小明|李芳|刘志强|陈静"),
    ("我叫{}想咨询一下", "王小明|李芳|黄建国"),
    ("我叫{}得了高血压", "王小明|李芳|黄建国"),
    ("我叫{}", "王小明|李芳|司马相如|张偉|陳美玲|古丽|阿依古丽|扎西|卓玛|小李|阿珍"),
    ("我叫：{}。", "王小明|李芳"),
    ("我的名字是{}，", "王小明|李芳|胡雨欣"),
    ("我的名字叫{}，女", "王小明|李芳|胡雨欣"),
    ("我名叫{}。", "王小明|李芳"),
    ("本人叫{}，男", "王小明|李芳"),
    ("本人{}，男，45岁", "王小明|李芳|林志强"),
    ("我是{}，身份证", "马伟|林志强|徐文博|杨平|于洋|高静|黄平|欧阳锋"),
    ("我是{}，想问一下", "王小明|李芳|黄丽|周勇"),
    ("我是{}的妈妈", "王小明|李梓涵"),
    ("医生我是{}今年30", "王小明|李芳"),
    ("孩子叫{}，3岁", "王小雨|李一诺|乐乐|豆豆|小雨"),
    ("我老公叫{}，他", "王强|李志刚"),
    ("我女儿{}，5岁", "王小雨|李一诺"),
    ("我女儿{}今年5岁", "王小雨|李一诺"),
    ("我妈妈{}得了糖尿病", "王秀英|李桂芝"),
    ("我爸叫{}，", "王建国|李大刚"),
    ("有个叫{}的医生", "王小明|李芳"),
    ("叫我{}就行", "小李|小王|老张|阿珍"),
    ("我姓{}，", "王|李|高|欧阳|于"),
    ("免贵姓{}。", "王|何"),
    ("我姓{}名小明", "王"),
    ("主治医生是{}，", "王小明|李芳|黄建国"),
    ("患者{}，男，45岁", "王小明|李芳|高超|何静|欧阳锋|黄海波|高峰"),
    ("患者{}，45岁", "王小明|李芳"),
    ("患者{}男45岁", "王小明|李芳|高超"),
    ("患者{}因胸闷入院", "王小明|李芳|黄建国"),
    ("患者{}于2019年入院", "王小明|李芳"),
    ("病人{}，女，", "王小明|李芳"),
    ("患儿{}，男，3岁", "王小明|李芳"),
    ("家属{}签字", "王小明|李芳"),
]
LABELLED = [
    ("姓名：{}，", "王小明|李芳|欧阳娜娜|高飞|文静|于洋|王翀|范徐丽泰|有福|买买提·吐尔逊|约翰·史密斯|阿依古丽|扎西"),
    ("姓名:{} 性别:男", "王小明|李芳|欧阳锋"),
    ("姓名：{}性别：男", "王小明|李芳"),
    ("姓名{}性别男", "王小明|李芳"),
    ("姓名 {} 性别 女", "王小明|李芳"),
    ("患者姓名：{}\n", "王小明|李芳"),
    ("姓名：{} 性别：女", "张\u3000三|王 小 明|张 三"),
    ("姓名：{}，男", "张.三|王.小.明"),
    ("【姓名】{}，", "王小明|李芳"),
    ("姓 名：{}", "王小明"),
    ("联系人：{} 13812345678", "王小明|李芳"),
    ("联系人{}，", "王小明|李芳"),
    ("收件人：{}，", "王小明|李芳"),
    ("主治医生：{}\n", "王小明|李芳|黄建国"),
    ("报告医师：{} 审核", "王小明|李芳"),
    ("审核：{}。", "王小明|李芳"),
    ("家属：{}", "王小明|李芳"),
    ("家属签名：{}", "王小明|李芳"),
    ("患者：{}", "王小明|李芳"),
    ("主治醫師：{}", "陳大文|張偉"),
    ("聯絡人：{}", "陳大文"),
    ("紧急联系人:{}(配偶)", "王小明"),
]
TITLED = [
    ("{}医生", "王|李|欧阳|高|黄|王小明|张三|上官|诸葛|慕容"),
    ("昨天{}医生说没事", "王|李|刘志强|欧阳"),
    ("谢谢{}医生！", "王|高|于|常|黄|王小明"),
    ("找{}主任看过", "李|黄|张伟|方"),
    ("，{}主任医师", "张三|李国强|王"),
    ("{}副主任医师建议", "张三|李国强"),
    ("挂了{}大夫的号", "刘|陈"),
    ("和{}护士长沟通", "赵|陈美"),
    ("协和医院{}教授", "欧阳|王|李晓东"),
    ("{}女士，您好", "张|黄|李|何|常|于"),
    ("{}先生你好", "陈|高|王|司徒"),
    ("我们班{}同学", "王小明|李芳"),
    ("邻居{}阿姨", "李|张"),
    ("隔壁{}叔叔", "陈|王"),
    ("听{}老师说", "王|刘"),
    ("多謝{}醫生", "張|陳|黃"),
    ("{}小姐", "林|陳"),
    ("{}护士", "赵"),
    ("请{}医生回复", "何|安|方|白"),
    ("尊敬的{}主任", "马|石|江"),
    ("，{}医生您好", "于|和|成"),
    ("{}的妈妈", "王小明"),
    ("{}哥说", "王|李"),
]
OTHERS = [
    ("谢谢！\n——{}", "王小明|李芳"),
    ("此致\n敬礼！\n{}\n2020年3月1日", "王小明|李芳"),
    ("此致敬礼 {}", "王小明"),
    ("落款：{}", "王小明"),
    ("签名：{}", "王小明|李芳"),
    ("盼复。\n{}", "王小明"),
    ("{}敬上", "王小明|李芳"),
    ("万分感谢！{}", "王小明"),
    ("专家{}说过", "买买提·吐尔逊|约翰·史密斯|阿不都·热合曼|玛丽·居里"),
    ("{}来看病", "阿依古丽·买买提"),
    ("，{}说他好了", "小王|老李"),
    ("{}今年五十了", "老王|小张"),
    ("My name is {}, 请问", "Zhang Wei|Linda|Li Lei"),
    ("我是{}，", "Linda|Tom|Zhang Wei"),
    ("我叫{}，", "Linda|Zhang Wei|linda"),
    ("谢谢{}医生", "Wang Xiaoming|Linda|Zhang"),
    ("找Dr. {}看的", "Smith|Wang|John Smith"),
    ("Mr {}来了", "Wang|Smith"),
    ("Mrs. {}说", "Li|Smith"),
    ("姓名：{}，", "Zhang Wei|Li Lei"),
    ("Name: {}\n", "Zhang Wei|John Smith"),
]


def cases(forms: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(form.format(name), name) for form, names in forms for name in names.split("|")]


@pytest.mark.parametrize(("text", "name"), cases(INTRODUCED) + cases(LABELLED) + cases(TITLED) + cases(OTHERS))
def test_names_are_found(text: str, name: str) -> None:
    for around in (text, f"胃痛三天。{text}", f"胃痛三天\n{text}", f"胃痛三天（{text}", f"３天了！{text}"):
        assert name in found(around)


STAY = Path(__file__).with_name("data").joinpath("pii_person_stay.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("text", STAY)
def test_words_that_look_like_names_stay(text: str) -> None:
    for around in (text, f"胃痛，{text}", f"你好{text}", f"{text}。谢谢"):
        assert found(around) == []


WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


SURE, GIVEN = "".join(sorted(known().sure)), "".join(sorted(known().given - set("男女")))
NAME = st.builds(str.__add__, st.sampled_from(SURE), st.text(GIVEN, min_size=1, max_size=2)).filter(
    lambda name: (
        name not in known().words
        and not known().stems.after(name, 0)
        and not known().titles.after(name, 1)
        and name[1:] not in lists().compounds.sure  # a doctor of the name 欧阳, with a word before it
    )
)
WRITTEN = [
    "我叫{}，",
    "姓名：{}",
    "患者{}，男，45岁",
    "，{}医生您好",
    "请找{}主任",
    "主治医师：{}\n",
    "本人{}，女",
    "谢谢！\n{}",
    "我是{}。",
]


@settings(max_examples=150)
@given(NAME, st.sampled_from(WRITTEN))
def test_any_common_name_in_every_form(name: str, form: str) -> None:
    text = form.format(name)
    assert name in found(text)


@settings(max_examples=100)
@given(st.sampled_from([*SURE, *lists().compounds.sure]), st.sampled_from(lists().titles.doctors))
def test_any_sure_surname_before_a_title(surname: str, title: str) -> None:
    assert surname in found(f"，{surname}{title}您好")


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_planted_names_are_found_and_nothing_else(shared_data: Path) -> None:
    count = 0
    for row in rows(shared_data / "pii" / "positives.jsonl"):
        spans, text = row["spans"], str(row["text"])
        assert isinstance(spans, list)
        planted = [(span["start"], span["end"]) for span in spans if span["label"] == "NAME"]
        assert [(span.start, span.end) for span in MASKER.mask(text).spans] == planted
        count += len(planted)
    assert count == 90


def test_real_texts_name_eleven_people(shared_data: Path) -> None:
    """Two doctors, six friends, a neighbour and two patients are named in real texts; no word is taken for a name."""
    texts = [
        f"{row.get('title', '')}\n{row['text']}"
        for file in ("queries", "corpus")
        for row in rows(shared_data / "zh_legacy" / f"{file}.jsonl")
    ]
    counts = Counter(span.recogniser for text in texts for span in MASKER.mask(text).spans)
    assert counts == {
        "name_titled": 1,
        "name_called": 2,
        "name_familiar": 4,
        "name_nick": 2,
        "name_introduced": 1,
        "name_scarce": 1,
    }
    assert [row["id"] for row in rows(shared_data / "pii" / "hard_negatives.jsonl") if found(str(row["text"]))] == []
