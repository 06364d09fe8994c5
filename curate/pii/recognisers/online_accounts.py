"""Accounts and addresses on the internet: WeChat, QQ, pages that name a person, IP addresses.

A WeChat id has 6 to 20 letters, digits, - and _ and starts with a letter; a QQ number has 5 to 11 digits and does not
start with 0 (both as issued by Tencent). Without a word for them nearby, neither can be distinguished from other codes,
so they are only found next to such a word. Page addresses follow RFC 3986; those that identify no person are not
masked.
"""

import ipaddress
import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import DIGIT, SPACE, THREE_DIGITS, TWO_SIGNS, digits, narrow, trigger
from curate.pii.recognisers.phone import counted, named
from curate.pii.spans import apart, in_order
from curate.pii.words import any_of, either, raw, words

_WORDS = words("accounts")
_FLAGS = re.ASCII | re.IGNORECASE
_END = r"(?![A-Za-z0-9_-])"
_OTHER = "(?:QQ|电话|手机|微信|VX|電話|手機)号?"
_ALSO = rf"(?:[{SPACE}]?[/&、和或及与跟]?[{SPACE}]?{_OTHER})?(?:[{SPACE}]?(?:同号|同號|号码|账号|帐号|[号號名]|ID))?"
"""Text after a word for WeChat or QQ that names a further account: 微信/QQ同号, 微信和电话."""
_SAYS = r"[:：=→>~～]|--?|是|为|為|(?<=\s)is(?=\s)|就是|加|搜|搜索|[(（【“\"']"
_LINK = rf"[{SPACE}]{{0,2}}(?:{_SAYS})?[:：]?[{SPACE}]{{0,2}}[(（【「『“\"']?"
_CLOSED = "[:：=→>~]|--|是|为|為|号|號|ID|加|搜"
"""Signs that announce an id; after them, plain letters count as one."""
_NAME = r"[A-Za-z][-_A-Za-z0-9]{5,19}"
_QQ_NUMBER = r"[1-9](?:[0-9]{4,10}|[0-9]{2,3}[ -][0-9]{3,4}(?:[ -][0-9]{3,4})?|(?:[ -][0-9]){4,10})"
_NUMBER_END = r"(?![0-9A-Za-z_]|[.][0-9])"

_V = r"(?<![^我的是有，。；,;！!、\s])"
"""Lookbehind of a single v for WeChat; it excludes 维生素V."""
_WECHAT_WORD = rf"(?P<word>(?:{any_of(_WORDS['wechat'])}){_ALSO}|{_V}[vV](?=[{SPACE}]?[:：]))"
_WECHAT = re.compile(rf"{_WECHAT_WORD}(?P<link>{_LINK})(?P<id>{_NAME}{_END}|[1-9][0-9]{{5,10}}{_NUMBER_END})", _FLAGS)
_WECHAT_BEHIND = re.compile(
    rf"(?<![A-Za-z0-9_-])(?P<id>{_NAME})[{SPACE}]?(?:是我的?|[(（]|为我的?|就是)[{SPACE}]?(?:微信|WeChat|VX|WX)", _FLAGS
)
_WXID = re.compile(r"(?<![A-Za-z0-9])(?P<id>wxid_[a-z0-9]{10,24})", re.ASCII)
_QQ_WORD = (
    rf"(?P<word>(?:{any_of(_WORDS['qq'])}){_ALSO}|(?:(?<![A-Za-z0-9])Q|扣)(?=[{SPACE}]?[:：])"
    r"|(?<![^+➕\u4e00-\u9fff])(?:Q|扣)(?=[1-9][0-9]{7}))"
)
"""Pattern of words for QQ; a single Q or 扣 means QQ only before a colon or eight digits."""
_QQ = re.compile(rf"{_QQ_WORD}(?P<link>{_LINK})(?P<id>{_QQ_NUMBER}){_NUMBER_END}", _FLAGS)
_QQ_BEHIND = re.compile(
    rf"(?<![0-9.])(?P<id>[1-9][0-9]{{4,10}})(?:@qq(?![.A-Za-z0-9])|[{SPACE}]?(?:是我的?|[(（])[{SPACE}]?(?:QQ|扣扣))",
    _FLAGS,
)
_CHINESE = re.compile("[\u2e80-\u9fff]")
_PUBLIC = re.compile(any_of(_WORDS["public"]))
_DATE = re.compile(r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:[0-2][0-9]|3[01])")

_HOST = r"(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,6}[A-Za-z]{2,18}(?![A-Za-z0-9-])"
_REST = r"[A-Za-z0-9._~:/?#@!$&'()*+,;=%|-]"
_URL = re.compile(
    rf"(?<![A-Za-z0-9@._/-])(?P<scheme>(?:https?|ftps?|ssh)://)?(?P<login>[^\s/@\[\]■\u2e80-\u9fff]{{1,64}}@)?(?P<host>{_HOST})"
    rf"(?P<path>(?::[0-9]{{2,5}})?/{_REST}{{0,2000}}(?:(?<=/n/)[\u4e00-\u9fff]{{1,12}})?|\?{_REST}{{0,2000}})?",
    re.IGNORECASE,
)
_MEMBER = re.compile(
    rf"(?:^|\.){either(_WORDS['members'])}"
    rf"(?!{either(_WORDS['pages'])}(?:[/?#.]|$))[^\s/?#]{{2}}",
    re.IGNORECASE,
)
_FOLDER = re.compile(rf"{either(_WORDS['folders'])}(?!(?:login|register|index)\b)[^\s/?#]{{2}}", re.IGNORECASE)
_PARAMETER = re.compile(rf"[?&;#]{either(_WORDS['parameters'])}=[^&\s]{{2}}", re.IGNORECASE)
_HANDLE = re.compile(
    rf"{any_of(_WORDS['handles'])}(?:[{SPACE}]?(?:[:：=]|是|为|為|搜)[{SPACE}]?@?|[{SPACE}]?@|(?<=[号號D名])[{SPACE}]?)"
    rf"(?P<id>[A-Za-z0-9](?:[A-Za-z0-9_.-]{{3,29}})(?<![.-]){_END}(?![/:@]))",
    _FLAGS,
)


_SHORT = re.compile(
    r"(?<![A-Za-z0-9])(?:ig|ins|fb|tg) ?[:：] ?(?P<id>(?=[A-Za-z0-9_.]{0,28}[_.]|@)@?[A-Za-z][A-Za-z0-9_.]{3,29})",
    _FLAGS,
)
"""Handles after a short form such as `IG: amy_lin90`; without @ or _, TG or IG may be a laboratory value."""
_HOME = re.compile(
    rf"(?!www\.)[a-z0-9-]{{4,63}}\.(?:{'|'.join(map(re.escape, _WORDS['homes']))})(?=[:/?]|$)", re.IGNORECASE
)


@trigger(rf"{raw([*_WORDS['wechat'], 'wxid'])}|[vVｖＶ][^\n]?[:：]", needs=TWO_SIGNS)
def wechat(text: str) -> list[Span]:
    """Return WeChat ids after a word for WeChat, and `wxid_...` anywhere; none after a word for organisations.

    Digits count as well, because many ids are QQ numbers; mobile numbers are left to the recogniser `mobile`.
    """
    narrowed = narrow(text)
    hits = [match for match in _WECHAT.finditer(narrowed) if _is_id(match)]
    hits += [match for match in _WECHAT_BEHIND.finditer(narrowed) if _marked(match["id"])]
    hits += _WXID.finditer(narrowed)
    return apart(
        Span(*match.span("id"), "wechat", "wechat")
        for match in hits
        if not _PUBLIC.search(narrowed[max(0, match.start() - 8) : match.start()])
        and not _PUBLIC.search(narrowed[match.end() : match.end() + 8])
    )


def _is_id(match: re.Match[str]) -> bool:
    name = match["id"]
    if named(match.string, match.start()):
        return False
    if name.isdigit():
        return _is_number(match) and not (len(name) == 11 and "13" <= name[:2] <= "19")
    touching = match["word"].isascii() and match["word"].isalpha() and not match["link"]
    preceding = match.string[max(0, match.start() - 1) : match.start()]
    if touching and not (_marked(name) and _CHINESE.match(preceding)):  # 我的vxabc123 is an id, a longer word is not
        return False
    announced = re.search(_CLOSED, match["word"] + match["link"]) or not match["word"].isascii()
    return name.lower() not in _WORDS["no_id"] and (_marked(name) or announced is not None)


def _marked(name: str) -> bool:
    return re.search(r"[0-9_]", name) is not None


def _is_number(match: re.Match[str]) -> bool:
    """Return whether digits are an account: no count of people or money and, without a separator, no date."""
    if counted(match.string, *match.span("id")):
        return False
    return bool(match["link"].strip()) or not _DATE.fullmatch(match["id"])


@trigger(rf"{raw([*_WORDS['qq'], '@qq'])}|[qQｑＱ扣](?:[^\n]?[:：]|{DIGIT}{{8}})", needs=THREE_DIGITS)
def qq(text: str) -> list[Span]:
    """Return QQ numbers of persons and groups next to a word for QQ, also in numerals of another script."""
    plain = digits(text)
    hits = [match for match in _QQ.finditer(plain) if _is_number(match) and not named(plain, match.start())]
    hits += _QQ_BEHIND.finditer(plain)
    return apart(Span(*match.span("id"), "qq", "qq") for match in hits)


@trigger(
    rf"{raw(['://', 'www.'])}|[.．][A-Za-zＡ-Ｚａ-ｚ]{{2,}}[:/?]|{raw(_WORDS['handles'])}"
    rf"|(?:{raw(['ig', 'ins', 'fb', 'tg'])})[\s]?[:：]",
    needs=TWO_SIGNS,
)
def url(text: str) -> list[Span]:
    """Return page addresses that identify a person (member's page, parameter, login), and handles of members."""
    narrowed = narrow(text)
    extents = list(_pages(narrowed))
    extents += [match.span("id") for match in _SHORT.finditer(narrowed)]
    extents += [match.span("id") for match in _HANDLE.finditer(narrowed) if not counted(narrowed, *match.span("id"))]
    return apart(Span(*extent, "url", "url") for extent in extents)


def _pages(narrowed: str) -> Iterator[tuple[int, int]]:
    for match in _URL.finditer(narrowed):
        address = match["host"] + (match["path"] or "")
        login = match["scheme"] and match["login"]
        if (
            login
            or _MEMBER.search(address)
            or _FOLDER.search(match["path"] or "")
            or _PARAMETER.search(address)
            or _HOME.match(address)
        ):
            yield match.start(), match.start() + len(match[0].rstrip(".,;:!?)]'"))


# IP addresses, IPv4 and IPv6; versions, section numbers, enzymes, sequences and times are excluded.

_IP_WORDS = words("network")
_IP_LINK = r"[\s:：=是为為(（\[\"'“./-]{0,4}"
_FOUR = re.compile(r"(?<![0-9A-Za-z_.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9A-Za-z_]|\.[0-9])", re.ASCII)
_COLONS = re.compile(
    r"(?<![0-9A-Za-z:.])(?=[0-9A-Fa-f:]*[0-9])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![0-9A-Za-z:])"
)
_SAID = re.compile(rf"{any_of(_IP_WORDS['address'])}{_IP_LINK}\Z", re.IGNORECASE)
_IP_OTHER = re.compile(rf"{any_of(_IP_WORDS['no_address'])}{_IP_LINK}\Z", re.IGNORECASE)
_NOBODY = tuple(
    map(
        ipaddress.ip_network,
        ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "0.0.0.0/8", "192.168.0.0/16", "2001:db8::/32"),
    )
)
_HEX = "[0-9A-Fa-f０-９Ａ-Ｆａ-ｆ]"
_RAW_NUMBER = r"[0-9０-９]{1,3}[.．]"


@trigger(rf"(?:{_RAW_NUMBER}){{3}}[0-9０-９]", needs=THREE_DIGITS)
@trigger(f"{_HEX}[:：](?:{_HEX}|[:：]){{2,}}[:：]{_HEX}|[:：]{{2}}{_HEX}", needs=TWO_SIGNS)
def ip_address(text: str) -> list[Span]:
    """Return IPv4 and IPv6 addresses that may identify a person."""
    text = narrow(text)
    extents = [match.span() for match in _FOUR.finditer(text) if _is_four(match)]
    extents += [match.span() for match in _COLONS.finditer(text) if _is_colons(match[0])]
    return in_order(extents, "ip", "ip_address")


def _is_four(match: re.Match[str]) -> bool:
    """Return whether four numbers are a personal address: no version; small numbers only after a word for addresses."""
    numbers = match[0].split(".")
    if any(number != str(int(number)) for number in numbers) or not _assignable(match[0]):
        return False
    preceding = match.string[max(0, match.start() - 20) : match.start()]
    if _SAID.search(preceding):
        return True
    round_numbers = all(number[-1] in "05" for number in numbers)  # doses, pressures
    return (
        _IP_OTHER.search(preceding) is None
        and max(map(int, numbers)) >= 100
        and int(numbers[0]) >= 5
        and not round_numbers
    )


def _is_colons(candidate: str) -> bool:
    """Return whether groups with colons are an address (eight groups or `::`, one long), not a time or a ratio."""
    groups = [group for group in candidate.split(":") if group]
    if len(groups) < 3 or not any(len(group) > 2 for group in groups):
        return False
    return ("::" in candidate or len(groups) == 8) and _assignable(candidate)


def _assignable(candidate: str) -> bool:
    try:
        address = ipaddress.ip_address(candidate)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast or candidate.startswith("255."):
        return False
    return not any(address in network for network in _NOBODY)
