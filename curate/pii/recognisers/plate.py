"""Vehicle plates of mainland China (GA 36-2018): province, letter, serial of five, or of six for new energy."""

import re

from curate.core.records import Span
from curate.pii.number_labels import RAW_DASH, RAW_SPACE, SPACE
from curate.pii.patterns import CHINESE, TWO_SIGNS, narrow, trigger
from curate.pii.spans import apart
from curate.pii.words import words

_PLATE_LISTS = words("plate")
_WORDS, _MARKS = "".join(_PLATE_LISTS["words"]), "".join(_PLATE_LISTS["marks"])
_PLATE_PROVINCES = "".join(_PLATE_LISTS["provinces"]) + _WORDS
_DOT = "·.•・‧∙⋅"
_PLATE_CUT = f"[{SPACE}{_DOT}-]{{0,2}}"
_SIGN = "[A-HJ-NP-Za-hj-np-z0-9]"
"""Characters of serials, which exclude I and O; pseudonyms of plates use these two."""
_MARK = f"(?:[{_MARKS}](?![习生校期术科察告惕示口域导用得号]))"
_PLATE = re.compile(
    rf"(?P<province>[{_PLATE_PROVINCES}])[{SPACE}]?(?P<city>[A-HJ-Za-hj-z]){_PLATE_CUT}(?P<serial>"
    rf"(?:[A-HJKa-hjk]{_SIGN}[0-9]{{4}}|[0-9]{{5}}[A-HJKa-hjk]|{_SIGN}{{5}})(?![A-Za-z0-9]){_MARK}?|{_SIGN}{{4}}{_MARK})"
    r"(?![A-Za-z0-9]|[.-][0-9])"
)
_OFFICIAL = re.compile(
    rf"WJ[{SPACE}]?[{_PLATE_PROVINCES}]{_PLATE_CUT}[0-9]{{4}}{_SIGN}(?![A-Za-z0-9])"
    rf"|(?<![A-Za-z0-9])(?:[军空海北沈兰济南广成东西中][A-Z]{_PLATE_CUT}[0-9]{{5}}|[使领]{_PLATE_CUT}[0-9]{{3}}{_PLATE_CUT}[0-9]{{3}})(?![A-Za-z0-9])"
)
_CONTEXT = re.compile("|".join(_PLATE_LISTS["context"]))
_THINGS = re.compile(rf"[{SPACE}]?(?:{'|'.join(_PLATE_LISTS['things'])})")


@trigger(
    rf"[{_PLATE_PROVINCES}军空海北沈兰济南广成东西中][{RAW_SPACE}]?[A-Za-zＡ-Ｚａ-ｚ][{RAW_SPACE}{_DOT}．{RAW_DASH}]{{0,2}}[A-Za-zＡ-Ｚａ-ｚ\d]{{4}}"
    rf"|[JＪ][{RAW_SPACE}]?[{_PLATE_PROVINCES}]|[使领][{RAW_SPACE}{_DOT}．{RAW_DASH}]{{0,2}}\d{{3}}",
    needs=(TWO_SIGNS, CHINESE),
)
def plate(text: str) -> list[Span]:
    """Return vehicle plates, with or without a dot, dash or space after the letter, also those with 挂学警港澳领使.

    Plates of the army and of embassies need a word such as 车牌 nearby; so do plates that look like a gene or a drug.
    """
    narrowed = narrow(text)
    civil = [
        match
        for match in _PLATE.finditer(narrowed)
        if re.search("[0-9]", match["serial"])
        and (_near_vehicle_word(narrowed, match) or _unmistakable(narrowed, match))
    ]
    official = [
        match
        for match in _OFFICIAL.finditer(narrowed)
        if match[0].startswith("WJ") or _near_vehicle_word(narrowed, match)
    ]
    return apart(Span(*match.span(), "plate", "plate") for match in [*civil, *official])


def _near_vehicle_word(text: str, match: re.Match[str]) -> bool:
    """Return whether a word for vehicles is shortly before or directly after the match, outside placeholders."""
    start, end = match.span()
    around = text[max(0, start - 8) : start].rpartition("]")[2], text[end : end + 4].partition("[")[0]
    return any(_CONTEXT.search(context) for context in around)


def _unmistakable(text: str, match: re.Match[str]) -> bool:
    serial, (start, end) = match["serial"], match.span()
    letters = len(re.findall("[A-Za-z]", serial))
    if match["province"] in _WORDS and (
        letters > 2 or text[max(0, start - 1) : start + 1] in _PLATE_LISTS["no_province"]
    ):
        return False
    return serial in {serial.upper(), serial.lower()} and not _THINGS.match(text, end)
