"""Numbers by which a hospital knows a patient, and beds: found after their names; counts and codes stay."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.pii.medical_record import bed_number, medical_record
from curate.pii.words import words
from tests.support.recognising import found, surrounded

ALL = [medical_record, bed_number]
NUMBERS, ENGLISH, CARDS = (words("medical_record")[name] for name in ("numbers", "english", "cards"))
LINKS = ["", ":", "：", " ", "： ", "是", "为：", "码：", "#", " No.", "No：", "＝", "（", "】", "\n", '":"', "_", "-"]
WIDE = str.maketrans("0123456789ABCXYZ-", "０１２３４５６７８９ＡＢＣＸＹＺ－")
SPELLED = str.maketrans("0123456789", "零一二三四五六七八九")

codes = st.one_of(
    st.from_regex(r"[0-9]{5,14}", fullmatch=True),
    st.from_regex(r"[ABCXYZ]{1,3}[0-9]{4,12}", fullmatch=True),
    st.from_regex(r"[0-9]{4,8}-[0-9]{1,5}", fullmatch=True),
    st.from_regex(r"[ABCXYZ][0-9]{2}-[0-9]{3,6}", fullmatch=True),
    st.from_regex(r"[0-9]{4}[ABCXYZ][0-9]{4}", fullmatch=True),
).filter(lambda code: not code.startswith(("69", "97")))


@settings(max_examples=150)
@given(st.sampled_from([*NUMBERS, *ENGLISH]), st.sampled_from(LINKS), codes)
def test_every_written_form(word: str, link: str, code: str) -> None:
    if word in ENGLISH and not link:
        link = " "
    for form in (code, code.lower(), code.translate(WIDE)):
        for name in (word, word.upper()):
            assert found(medical_record, f"患者，{name}{link}{form}，女") == [form]


@settings(max_examples=100)
@given(st.sampled_from(CARDS), st.sampled_from(LINKS), st.from_regex(r"[0-9]{6,20}", fullmatch=True))
def test_cards_and_numbers_spelled(word: str, link: str, code: str) -> None:
    if len(code) == 13:
        code += "0"
    for form in (code, code.translate(SPELLED)):
        assert found(medical_record, f"{word}{link}{form}。") == [form]


@pytest.mark.parametrize(
    "marked",
    """
住院号|20190123456|
住院号：|0012345|
住院號：|0012345|
住 院 号：|0012345|
住院 号 |0012345|
住院号码为|ZY010001234567|
病案号（住院号）：|123456|
门诊号/住院号：|M123456|
病历号是：|B2019-01234|
病理号：|201912345-1|
病理号|B19-01234|
标本号：|2019S-01234|
就诊卡号 |０１２３４５６７|
就诊卡|0001234567|
患者ID：|0012345678|
ID号:|12345678|
MRN: |12345678|
MRN#|A1234567|
Medical Record No. |1234567|
Patient ID |0012345|
medical record #|1234567|
admission number: |2019012345|
CT号：|CT123456|
B超号|US20190123|
X线号：|123456|
医保卡号|A12345678|
登记号：|0001234567|
检查号:|20190102001|
条码号：|1234567890123|
病案号：|12-34-56|
住院号|123456|次日出院
住院号|123456|年龄30
住院号|123456|人民医院
住院号|一二三四五六|
受试者编号|01-023|
""".strip().split("\n"),
)
def test_forms_in_their_surroundings(marked: str) -> None:
    for text, value in surrounded(marked):
        assert found(medical_record, text) == [value]


@pytest.mark.parametrize(
    "marked",
    """
床号|12|
床号：|12床|
床号:|加3|
床位号|A-12|
病床号：|03|
病房号：|1203|
我住|12床|
他住在消化内科|12床|
住ICU|3床|
转到|25床|了
我是|12床|的
|12床|患者诉腹痛
|12床|张女士
|3号床|
|8床| 王某某
|8床|王大爷
|24床|，男，56岁
|十二号床|的病人
|12#床|
|1203病房5床|
|5病区12床|
|3号楼5层12床|
|三病区十二床|
|305房2床|
|5楼 加3床|
Bed No. |12|
bed #|A12|
bed number |7|
隔壁|15床|打呼噜
""".strip().split("\n"),
)
def test_beds(marked: str) -> None:
    for text, value in surrounded(marked):
        assert found(bed_number, text) == [value]


def test_beds_of_a_report() -> None:
    text = "12床：发热\n13床: 今日出院；14床：术后"
    assert found(bed_number, text) == ["12床", "13床", "14床"]


@settings(max_examples=100)
@given(st.integers(1, 2000), st.sampled_from(["床", "号床"]), st.sampled_from(words("medical_record")["people"]))
def test_every_bed_in_which_somebody_lies(number: int, bed: str, who: str) -> None:
    for value in (f"{number}{bed}", f"{number}{bed}".translate(WIDE)):
        assert found(bed_number, f"昨晚，{value}{who}") == [value]
        assert found(bed_number, f"昨晚，{value}的{who}") == [value]


@settings(max_examples=100)
@given(st.integers(1, 2000), st.sampled_from(words("medical_record")["counting"]))
def test_counts_of_beds_stay(number: int, count: str) -> None:
    assert found(bed_number, f"我科{count}{number}床，{count}{number}张床") == []


@pytest.mark.parametrize(
    "text",
    """
开放12床患者
共12床病人
12床位
床位12张
床位数1200
3号床垫
2号床单
卧床3天
一床患者
每百床护士
12张床
床旁12导联
住院12天
住12床位以上
病房12间
bed 12 hours
12 beds
hospital beds 300
门诊号20元
门诊号300个
登记号NCT03912345
登记号：ChiCTR1900026863
条码号6901234567892
药品登记号123456
CAS登记号50-78-2
住院号2019年
住院号[病历号]
[病历号]123456
病历号■■■■
就诊卡12345
住院号12
住院号码是6位
检查号召
病例12例
病例1234
PMID号31234567
""".strip().split("\n"),
)
def test_other_numbers_stay(text: str) -> None:
    assert [(recogniser, values) for recogniser in ALL if (values := found(recogniser, text))] == []
