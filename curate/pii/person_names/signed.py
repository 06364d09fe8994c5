"""Signatures: names at the end of a letter (——王小明, 此致敬礼 王小明, 王小明敬上)."""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import CHINESE, RAW_DASH, narrow, trigger
from curate.pii.person_names.lexicon import CJK, COLON, LOOSE, name_at, name_before, surnames
from curate.pii.spans import in_order

_WRITER = r"(?:您的|你的|爱你的)?(?:患者|病人|学生|朋友|家属|儿子|女儿)?[:： ]{0,2}"
_CLOSING = r"(?:敬上|谨上|拜上|敬启|谨启|拜谢|叩谢|留言|手书|亲笔)"
_SIGN = re.compile(rf"(?:-{{2,}}|敬[礼禮][!！.。]?|祝好[!！.。,，]?|落款|署名|敬上[:：])[\s:：]{{0,6}}{_WRITER}")
_SIGNED = re.compile(r"\s*(?:$|\n|\d|[。.!！]\s*$)")
_BEFORE = re.compile(rf"[ ,，]{{0,2}}{_CLOSING}")
_THANKS = "(?:谢谢|感谢|拜托|多谢|盼复|謝謝)(?:了|啦|医生|大夫|您|你)?"
_LAST = re.compile(rf"(?:\n[ \t]{{0,8}}|{_THANKS}[!！.。,，~ \n]{{1,4}})(?=[{CJK}])")
_CLOSE = re.compile(r"[ \t]{0,4}[!！.。]?\s{0,6}(?:(?:19|20)?\d\d[-./年]\d{1,2}[-./月]\d{1,2}日?)?\s{0,6}\Z")
_TAIL = 60
"""Maximum number of characters from a name to the end of the text: a date may follow the name."""
_SEEN = rf"[{surnames()}][{CJK}]{{1,3}}"


_BLANK = r"[ \t\u00a0\u2007\u202f\u3000]"
_TAILED = rf"{_SEEN}{_BLANK}{{0,4}}[!！.．。]?[\s\d年月日./．\u2010-\u2015\u2212\uff0d-]{{0,24}}$"


@trigger(_CLOSING)
@trigger(rf"(?:敬[礼禮]|祝好|落款|署名|敬上[:：])[!！.．。,，]?[\s:：]{{0,6}}{_WRITER}\s{{0,2}}{_SEEN}")
@trigger(rf"{RAW_DASH}{{2,}}[\s:：]{{0,6}}{_WRITER}\s{{0,2}}{_SEEN}", needs=(CHINESE, RAW_DASH))
@trigger(rf"\n{_BLANK}{{0,8}}{_TAILED}", needs=(CHINESE, "\n"))
@trigger(rf"[谢謝托复了啦生夫您你][!！.．。,，~\s]{{1,4}}{_TAILED}", needs="[谢謝托盼]")
def signed(text: str) -> list[Span]:
    """Return signatures: names after a long dash or 敬礼, before 敬上, alone in the last line, after final thanks."""
    return in_order(_signed_names(narrow(text)), "name", "name_signed")


def _signed_names(text: str) -> Iterator[tuple[int, int]]:
    for match in _SIGN.finditer(text):
        end = name_at(text, match.end(), LOOSE)
        if end is not None and _SIGNED.match(text, end):
            yield match.end(), end
    for match in _BEFORE.finditer(text):
        start = name_before(text, match.start(), COLON)
        if start is not None:
            yield start, match.start()
    for match in _LAST.finditer(text, max(0, len(text) - _TAIL)):
        end = name_at(text, match.end(), LOOSE)
        if end is not None and _CLOSE.match(text, end):
            yield match.end(), end
