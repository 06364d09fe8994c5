"""What people write in chats, forms and advertisements, through the scan that real tables go through."""

import pytest

from benchmarks.pii_forms import FORMS
from benchmarks.pii_forms import texts as made_up
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all

MASKER = masker(Masking(), "zh", b"key")

MASKED = [
    # a value in the form that the rule is about, as it stands once it is masked
    ("我电话是:138*7312*0945", "我电话是:[电话]"),
    ("电话 0592 2137 275", "电话 [电话]"),
    ("电话：０９１２３４５６７８", "电话：[电话]"),
    ("残疾证号43010219801231002144", "残疾证号[身份证号]"),
    ("邮箱liming@qq,com", "邮箱[邮箱]"),
    ("邮箱是ｌｉｍｉｎｇ［ａｔ］１６３［ｄｏｔ］ｃｏｍ", "邮箱是[邮箱]"),
    ("微 信：hellokitty88", "微 信：[微信号]"),
    ("微信 id：zhangsan_bj", "微信 id：[微信号]"),
    ("微信「tao_jun_1」", "微信「[微信号]」"),
    ("+微hnxnk_88", "+微[微信号]"),
    ("咨询Q345678912", "咨询Q[QQ号]"),
    ("企鹅88231456", "企鹅[QQ号]"),
    ("QQ号～345678912", "QQ号～[QQ号]"),
    ("IG: amy_lin90", "IG: [URL]"),
    ("http://88231456.qzone.qq.com", "[个人网址]"),
    ("http://blog.sina.com.cn/liming1980", "[个人网址]"),
    ("我85年3月的，属牛", "我[出生日期]的，属牛"),
    ("宝宝2023.1.5日剖腹产出生", "宝宝[出生日期]日剖腹产出生"),
    ("核酸登记 王芳 13873120945", "核酸登记 [姓名] [电话]"),
    ("罗秀兰（13574820917）", "[姓名]（[电话]）"),
    ("捐款账号:6222022279180588871（何秀英）", "捐款账号:[银行卡号]（[姓名]）"),
    ("我爸蒋大伟中风了", "我爸[姓名]中风了"),
    ("我儿子林浩然发烧三天", "我儿子[姓名]发烧三天"),
    ("邓丽，46岁，教师", "[姓名]，46岁，教师"),
    ("主刀：江海，一助：白雪", "主刀：[姓名]，一助：[姓名]"),
    ("姓　名：何建国", "姓　名：[姓名]"),
    ("我是小方", "我是[姓名]"),
    ("祝好，刘洋", "祝好，[姓名]"),
    ("林美華護理師", "[姓名]護理師"),
    ("Patient: Li Na", "Patient: [NAME]"),
    ("My　name　is　Chen　Xiaolu", "My　name　is　[NAME]"),
    ("Best,\nAmy Lin", "Best,\n[NAME]"),
    ("我在深圳市南山区科技园南区R2-B栋4楼", "我在[地址]"),
    ("住5号楼2单元301", "住[地址]"),
    ("天津市和平区南京路92号增1号", "[地址]"),
    ("江西省赣州市于都县贡江镇红军大道", "[地址]"),
    ("中国医学科学院肿瘤医院", "[医院]"),
    ("盛京医院滑翔院区", "[医院]"),
    ("威爾斯親王醫院", "[医院]"),
    ("株洲恺德心血管病医院", "[医院]"),
    ("转到Peking Union Medical College Hospital", "转到[医院]"),
]
STAY = """\
钟南山院士建议戴口罩
高血压，60岁
老人，80岁
120（急救）
13874（高血压）
我妈平时咳嗽
我女儿黄疸昨晚又高了
我儿子包茎手术后出现
我老公时常头晕
病人安睡后突然
介绍人流手术
检查者：无特殊
主刀方法
收款人信息
Patient: Hypertension for ten years
Thanks,
Children's Hospital是儿童医院
Peking Union Medical College Hospital
中国医学科学院研究发现
南院区
住3号楼2病区
150*2000*3000
138*73*94mm
批号Q20231204
企鹅怎么走路的
扣款100000元
TG: 2.35 TC: 5.6
ins: insulin
85年3月的旧病历
剖腹产出生的孩子
癫痫不晕医院排行榜
互相配合医院救治
建议医院复诊""".splitlines()


@pytest.mark.parametrize(("text", "expected"), MASKED)
def test_what_people_write_is_masked(text: str, expected: str) -> None:
    assert mask_all(MASKER, [text])[0].text == expected


def test_what_is_nobodys_stays() -> None:
    assert [done.text for done in mask_all(MASKER, STAY)] == STAY


def widths(text: str) -> list[str]:
    """Return a text in other widths: signs, letters and digits full-width, and spaces of other kinds."""
    wide = "".join(chr(ord(each) + 0xFEE0) if "!" <= each <= "~" else each for each in text)
    return [
        text,
        wide,
        *(text.replace(" ", space) for space in ("\u3000", "\u00a0", "\u202f")),
        text.replace(":", "："),
    ]


def test_the_scan_finds_what_the_recognisers_find_in_every_width() -> None:
    """A text that a trigger overlooks is never shown to its recogniser, and what stands in it leaves the machine."""
    texts = [text for text, _ in MASKED] + [text for form in FORMS for text, _, _ in made_up(form, 5, seed=3)]
    written = [each for text in texts for each in widths(text)]
    assert len(written) > 1000
    overlooked = [
        text for text, masked in zip(written, mask_all(MASKER, written), strict=True) if masked != MASKER.mask(text)
    ]
    assert overlooked == []
