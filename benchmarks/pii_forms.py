"""What is found of personal data, kind by kind and form by form: made-up values between Chinese sentences.

Every value is drawn at random in one written form, put into one of the contexts of its kind (in the middle of a text,
touching Chinese characters, at the start, at the end) and masked by all recognisers. It is found if exactly its place
is masked, as its kind. Values are drawn by seed; the names are random surnames and given names.

Run: python -m benchmarks.pii_forms [--count 200]
"""

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from curate.pii.masking import Masker
from curate.pii.person_names.lexicon import lists
from curate.pii.settings import Masking, masker

Draw = random.Random
ANYWHERE = ("请打{}谢谢", "{}", "我的号码{}。", "{}是我的号码，请回", "孩子发烧三天了，{}，急")
BEFORE, AFTER = ("", "最近头晕，", "大夫您好！", "吃了两天药没有好转。"), ("", "。", "，请回复", "，谢谢大夫")
_PROVINCES = ("110105", "310104", "440305", "510104", "330106", "420106", "610113", "230103")
_NUMERALS = "零一二三四五六七八九"
_CITIES = ("杭州市西湖区", "成都市武侯区", "长沙市岳麓区", "南京市鼓楼区", "哈尔滨市南岗区", "昆明市盘龙区")
_ROADS = ("文三路", "科华北路", "人民南路", "解放大道", "中山东路", "学府路", "青年街", "幸福巷")


@dataclass(frozen=True)
class Form:
    """One way of writing a kind of data."""

    kind: str
    name: str
    make: Callable[[Draw], str]
    contexts: Sequence[str] = ANYWHERE


def digits(draw: Draw, count: int) -> str:
    """Return so many random digits."""
    return "".join(draw.choices("0123456789", k=count))


def mobile(draw: Draw) -> str:
    """Return a mobile number of mainland China."""
    return f"1{draw.choice('3456789')}{digits(draw, 9)}"


def wide(value: str) -> str:
    """Return digits in full width."""
    return "".join(chr(ord(character) + 0xFEE0) if character.isdigit() else character for character in value)


def spoken(value: str) -> str:
    """Return digits as Chinese numerals."""
    return "".join(_NUMERALS[int(character)] for character in value)


def identity(draw: Draw) -> str:
    """Return a resident number with its check digit (GB 11643)."""
    born = f"{draw.randint(1940, 2015)}{draw.randint(1, 12):02}{draw.randint(1, 28):02}"
    body = f"{draw.choice(_PROVINCES)}{born}{draw.randint(0, 999):03}"
    total = sum(int(digit) * (2 ** (17 - place) % 11) for place, digit in enumerate(body))
    return body + "10X98765432"[total % 11]


def old_identity(draw: Draw) -> str:
    """Return a resident number of 15 digits."""
    born = f"{draw.randint(40, 99)}{draw.randint(1, 12):02}{draw.randint(1, 28):02}"
    return f"{draw.choice(_PROVINCES)}{born}{digits(draw, 3)}"


def card(draw: Draw) -> str:
    """Return a bank card of 16 or 19 digits with the check digit of Luhn."""
    body = draw.choice(("622202", "621700", "622848", "4392", "5187")) + digits(draw, 12)
    body = body[: draw.choice((15, 18)) if body.startswith("62") else 15]
    total = sum(sum(divmod(2 * int(each), 10)) if at % 2 == 0 else int(each) for at, each in enumerate(reversed(body)))
    return f"{body}{-total % 10}"


def fours(value: str) -> str:
    """Return a number in groups of four."""
    return " ".join(value[at : at + 4] for at in range(0, len(value), 4))


def plate(draw: Draw) -> str:
    """Return a vehicle plate: a province, a city's letter, five digits of which at most two are letters."""
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZ"
    serial = [*digits(draw, 5 - (some := draw.choice((0, 1, 1, 2)))), *draw.choices(letters, k=some)]
    draw.shuffle(serial)
    return f"{draw.choice('京沪粤浙苏鲁川鄂湘闽豫冀辽黑陕渝')}{draw.choice(letters[:8])}{''.join(serial)}"


def handle(draw: Draw) -> str:
    """Return a WeChat id."""
    return draw.choice("abcdefghkmwxyz") + "".join(
        draw.choices("abcdefghijkmnpqrstuvwxyz0123456789_", k=draw.randint(6, 14))
    )


def name(draw: Draw) -> str:
    """Return a surname and one or two given names."""
    given = draw.choices(
        "伟芳娜敏静丽强磊军洋勇艳杰娟涛超兰霞平刚桂英建华文辉玲志婷雪梅海燕晓俊宇浩", k=draw.choice((1, 2, 2))
    )
    return draw.choice("王李张刘陈杨赵黄周吴徐孙胡朱郭何林罗郑梁谢宋唐许邓冯韩曹曾彭") + "".join(given)


def compound(draw: Draw) -> str:
    """Return a compound surname and a given name."""
    return draw.choice(("欧阳", "上官", "诸葛", "司马", "夏侯", "皇甫")) + "".join(
        draw.choices("明丽娜建华文静晓", k=draw.choice((1, 2)))
    )


def minority(draw: Draw) -> str:
    """Return a name with a dot, as of Uyghurs."""
    return f"{draw.choice(lists()['minority'])}·{draw.choice(lists()['minority'])}"


def road(draw: Draw) -> str:
    """Return a city, a road and a number."""
    return f"{draw.choice(_CITIES)}{draw.choice(_ROADS)}{draw.randint(1, 999)}号"


def door(draw: Draw) -> str:
    """Return an address down to the door."""
    return f"{road(draw)}{draw.randint(1, 20)}号楼{draw.randint(1, 4)}单元{draw.randint(101, 2504)}室"


def village(draw: Draw) -> str:
    """Return an address in a village."""
    town, place = f"{draw.choice('王李张赵')}集镇", f"{draw.choice('东西前后')}{draw.choice('刘陈杨')}村"
    return f"河南省周口市太康县{town}{place}{draw.randint(1, 12)}组"


def hospital(draw: Draw) -> str:
    """Return the name of a hospital."""
    place = draw.choice(("长沙市", "合肥市", "浙江省", "江苏省", "太康县", "岳阳市", "青岛市", "襄阳市"))
    return place + draw.choice(("第一人民医院", "中心医院", "中医院", "妇幼保健院", "第二医院", "肿瘤医院", "人民医院"))


def born(draw: Draw, mark: str) -> str:
    """Return a date of birth."""
    year, month, day = draw.randint(1935, 2020), draw.randint(1, 12), draw.randint(1, 28)
    return f"{year}年{month}月{day}日" if mark == "年" else f"{year}{mark}{month:02}{mark}{day:02}"


def landline(draw: Draw) -> str:
    """Return a number of a city."""
    return f"0{draw.choice(('10', '21', '755', '571', '531'))}-{draw.choice('5678')}{digits(draw, 7)}"


def address_of_mail(draw: Draw) -> str:
    """Return an e-mail address."""
    return f"{handle(draw)}@{draw.choice(('qq.com', '163.com', 'sina.com.cn', 'gmail.com'))}"


def cut(make: Callable[[Draw], str], *places: int, mark: str) -> Callable[[Draw], str]:
    """Return a maker of values with a mark at some places."""

    def made(draw: Draw) -> str:
        value, edges = make(draw), (0, *places)
        return mark.join(value[low:high] for low, high in zip_longest(edges, places))

    return made


LIVING = ("家住{}", "地址：{}。", "住在{}，离医院远", "寄到{}谢谢")
CALLED = ("我叫{}，今年45岁", "本人{}，男，32岁", "大夫您好，我是{}，请问", "孩子叫{}。")
LABELLED = ("姓名：{}", "患者姓名：{} 性别：女", "联系人：{}，", "主治医生：{}。")
TITLED = ("谢谢{}医生", "请问{}主任在吗", "找{}大夫看的", "挂了{}教授的号")
CASES = ("{}，男，45岁，", "患者{}，女，62岁，因胸闷入院")
MIXED = ("我叫{}，今年45岁", "姓名：{}", "患者{}，男")
CARE = ("在{}看过", "去{}做了胃镜", "{}的医生说", "之前在{}住院，效果不好")
BORN = ("出生日期：{}", "生于{}", "{}出生", "生日是{}。")
RECORD = ("住院号：{}", "病历号{}，", "门诊号 {}。", "就诊卡号：{}")
CHAT = ("加我微信{}", "微信号：{}。", "vx {}，谢谢", "我的微信是{}")
PENGUIN = ("我的QQ是{}", "QQ：{}，谢谢", "加qq{}吧", "扣扣{}。")
OLD_ID = ("身份证号{}", "旧身份证{}，谢谢", "身份证：{}。")

FORMS = (
    Form("phone", "13912345678", mobile),
    Form("phone", "139 1234 5678", cut(mobile, 3, 7, mark=" ")),
    Form("phone", "139-1234-5678", cut(mobile, 3, 7, mark="-")),
    Form("phone", "+86 13912345678", lambda draw: f"+86 {mobile(draw)}"),
    Form("phone", "１３９１２３４５６７８", lambda draw: wide(mobile(draw))),
    Form("phone", "一三九一二三四五六七八", lambda draw: spoken(mobile(draw))),
    Form("phone", "010-61234870", landline),
    Form("id_card", "18 digits", identity),
    Form("id_card", "6-8-4 by spaces", cut(identity, 6, 14, mark=" ")),
    Form("id_card", "full-width", lambda draw: wide(identity(draw))),
    Form("id_card", "15 digits after a word", old_identity, OLD_ID),
    Form("email", "name@domain", address_of_mail),
    Form("plate", "京A12345", plate),
    Form("plate", "京A·12345", cut(plate, 2, mark="·")),
    Form("plate", "京AD12345", lambda draw: f"{plate(draw)[:2]}D{digits(draw, 5)}"),
    Form("bank_card", "one piece", card),
    Form("bank_card", "groups of four", lambda draw: fours(card(draw))),
    Form("wechat", "after a word", handle, CHAT),
    Form("qq", "after a word", lambda draw: draw.choice("123456789") + digits(draw, draw.randint(6, 9)), PENGUIN),
    Form("name", "introduced", name, CALLED),
    Form("name", "labelled", name, LABELLED),
    Form("name", "titled", name, TITLED),
    Form("name", "header of a case", name, CASES),
    Form("name", "compound surname", compound, (*CALLED[:1], *LABELLED[:1], *TITLED[:1])),
    Form("name", "with a dot", minority, MIXED),
    Form("address", "road and number", road, LIVING),
    Form("address", "down to the door", door, LIVING),
    Form("address", "village", village, (*LIVING[:2], "我是{}的农民")),
    Form("hospital", "named", hospital, CARE),
    Form("birth_date", "1985年3月12日", lambda draw: born(draw, "年"), BORN),
    Form("birth_date", "1985-03-12", lambda draw: born(draw, "-"), BORN[:1]),
    Form("medical_record", "after a word", lambda draw: digits(draw, draw.randint(6, 10)), RECORD),
)


def texts(form: Form, count: int, seed: int) -> Iterator[tuple[str, int, int]]:
    """Yield texts, each with where the value in it begins and ends."""
    draw = Draw(f"{seed} {form.kind} {form.name}")
    for _ in range(count):
        value, context = form.make(draw), draw.choice(form.contexts)
        front = f"{draw.choice(BEFORE)}{context.partition('{}')[0]}"
        yield f"{front}{value}{context.partition('{}')[2]}{draw.choice(AFTER)}", len(front), len(front) + len(value)


def found(form: Form, mask: Masker, count: int, seed: int = 1) -> int:
    """Return how many of so many values are masked, each as its kind and nothing beside it."""
    hits = 0
    for text, start, end in texts(form, count, seed):
        spans = [span for span in mask.mask(text).spans if span.start < end and start < span.end]
        hits += [(span.start, span.end, span.kind) for span in spans] == [(start, end, form.kind)]
    return hits


def main() -> None:
    """Print a table in Markdown."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=200)
    count = options.parse_args().count
    mask = masker(Masking(), "zh", b"")
    print(f"| kind | form | found of {count} |\n| --- | --- | --: |")
    for form in FORMS:
        print(f"| {form.kind} | {form.name} | {found(form, mask, count)} |")


if __name__ == "__main__":
    main()
