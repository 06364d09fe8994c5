"""Staff numbers after a word for them: 工号 20731, 胸牌号 0826, staff ID N48213, badge #5521."""

import re

from curate.core.records import Span
from curate.pii.number_labels import CODE, NUMERALS, RAW_DASH, RAW_SPACE, labelled, loosely, matches
from curate.pii.patterns import THREE_DIGITS, TWO_SIGNS, trigger
from curate.pii.recognisers.phone import counted
from curate.pii.spans import value_spans
from curate.pii.words import either, words

_STAFF_WORDS = words("network")["staff"]
_STAFF_NUMBERS = [labelled(_STAFF_WORDS, CODE)]
_YEAR = re.compile(r"(?:19|20)[0-9]{2}(?=\s?(?:[年届版]|\Z|[,.，。)]))|[0-9]{1,6}(?=\s?位)")
_STAFF_LAST = "".join(sorted({entry[-1] for entry in _STAFF_WORDS if not entry[-1].isascii()}))
_WESTERN = [entry for entry in _STAFF_WORDS if entry[-1].isascii()]
_STAFF_COUNTED = re.compile(rf"\s{either(words('network')['counted'])}(?![a-z])", re.IGNORECASE)


_STAFF_ANNOUNCED = (
    rf"(?:[{_STAFF_LAST}]|{loosely(_WESTERN)})"
    rf"[{RAW_SPACE}字号號码碼编編是为為第卡A-Za-zＡ-Ｚａ-ｚ\r\n:：=＝#＃№\"“”'’‘】>＞|._．＿()（）{RAW_DASH}]*[\d{NUMERALS}]"
)


@trigger(_STAFF_ANNOUNCED, needs=TWO_SIGNS)
@trigger(_STAFF_ANNOUNCED, needs=THREE_DIGITS)
def staff_number(text: str) -> list[Span]:
    """Return staff numbers after a word for them: three digits or more, with letters before them; no year, no count."""
    return value_spans(
        (match for match in matches(_STAFF_NUMBERS, text) if _of_staff(match)), "staff_number", "staff_number"
    )


def _of_staff(match: re.Match[str]) -> bool:
    number, (start, end) = match["value"], match.span("value")
    if sum(character.isdigit() for character in number) < 3:
        return False
    if _STAFF_COUNTED.match(match.string, end):
        return False
    return not counted(match.string, start, end) and _YEAR.match(match.string, start) is None
