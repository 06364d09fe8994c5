"""Numbers and e-mail addresses behind HTML entities or brackets: &#49;&#51;&#56;.., 139&nbsp;.., name [at] web.de."""

import html
import re

from curate.core.records import Span
from curate.pii.digits import TWO_SIGNS
from curate.pii.recognisers.accounts import qq, wechat
from curate.pii.recognisers.bank_card import bank_card
from curate.pii.recognisers.phone import email, landline, mobile
from curate.pii.recognisers.phone_overseas import overseas
from curate.pii.recognisers.phone_western import western
from curate.pii.recognisers.resident_id import resident_id
from curate.pii.rewritten import Recognisers, found, rewrite
from curate.pii.spans import apart
from curate.pii.text import narrow, trigger
from curate.pii.words import either, raw, words

_UNSEEN = "shy|zwnj|zwj|ZeroWidthSpace|NoBreak|lrm|rlm"
_BLANKS = "nbsp|hairsp|numsp|puncsp|emsp13|emsp14|MediumSpace|ThinSpace"
_NAMED = f"{_UNSEEN}|{_BLANKS}|ensp|emsp|thinsp|hyphen|ndash|minus|period|dot|commat|lpar|rpar|plus|lowbar"
_DECIMAL, _HEXADECIMAL = "#0{0,4}[0-9]{2,5}", "#[xX]0{0,4}[0-9A-Fa-f]{2,4}"
_ENTITY = re.compile(f"&(?:amp;){{0,3}}(?:{_DECIMAL}(?![0-9]);?|{_HEXADECIMAL}(?![0-9A-Fa-f]);?|(?:{_NAMED});)")
"""An `&` that was escaped again and again as well; browsers take a number without its semicolon too."""
_PROVIDERS = either(words("contacts")["providers"])
_AT = rf"[ \t]?(?:\[ ?at ?\]|\( ?at ?\)|\{{ ?at ?\}}|< ?at ?>|\[@\]|\(@\)|_at_(?={_PROVIDERS}\.))[ \t]?"
_POINT = r"[ \t]?(?:\[ ?dot ?\]|\( ?dot ?\)|\{ ?dot ?\}|< ?dot ?>|\[\.\]|\(\.\))[ \t]?"
_HOST = r"[A-Za-z0-9-]{1,63}"
_ADDRESS = re.compile(
    rf"(?<=[A-Za-z0-9_+-])(?:{_AT}(?={_HOST}(?:(?:{_POINT}|\.){_HOST}){{1,6}}(?![A-Za-z]))|{_POINT}(?={_HOST}))",
    re.IGNORECASE,
)
_SPACES = str.maketrans(
    {"\u2002": " ", "\u2003": " ", "\u2009": " ", "\u2010": "-"}
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")
)
"""Signs without width go."""
_IN_ENTITIES: Recognisers = (mobile, landline, western, overseas, email, resident_id, bank_card, qq, wechat)


@trigger(f"&(?:amp;)*(?:{_DECIMAL}|{_HEXADECIMAL}|(?:{_NAMED});)")
@trigger(rf"[\[({{<（［｛＜]\s?(?:{raw(['at'])}|[@＠])\s?[\])}}>）］｝＞]|_(?:at|AT|At)_", needs=TWO_SIGNS)
def disguised(text: str) -> list[Span]:
    """Return telephone, identity, card and account numbers and e-mail addresses with HTML entities or `[at]` in them.

    The place is that of the text as it was written, every entity whole.
    """
    plain = rewrite(text, _ENTITY, lambda match: html.unescape(match[0].replace("amp;", "")).translate(_SPACES))
    spelt = rewrite(narrow(text), _ADDRESS, lambda match: "@" if re.search("at|@", match[0], re.IGNORECASE) else ".")
    spans = [*found(plain, _IN_ENTITIES, "disguised"), *found(spelt, (email,), "disguised")]
    return apart(span for span in spans if not _sentence(text, span))


def _sentence(text: str, span: Span) -> bool:
    """Say whether what looks like an address with spaces is two sentences: seen [at] home.Then he fell."""
    value = text[span.start : span.end]
    return span.kind == "email" and " " in value and re.search(r"\.[A-Z][a-z]*\Z", value) is not None
