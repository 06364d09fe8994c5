"""What the text around a number, or the number itself, says of it: the checks that rules of numbers name."""

import ipaddress
import re
from collections.abc import Mapping

from curate.pii.patterns import VALUES, digits
from curate.pii.recognisers import check_digits
from curate.pii.rules import Candidate, Check, rules
from curate.pii.words import words

_CONTACTS, _ACCOUNTS, _IDENTITY = map(rules, ("contacts", "accounts", "identity"))
_CHINESE = re.compile("[\u2e80-\u9fff]")
_ENGLISH = re.compile(r"[A-Za-z]{2,}[ ,.:]")


def counted(narrowed: str, start: int, end: int) -> bool:
    """Return whether the text after a number makes it a measurement, a price or (if it is short or round) a count."""
    heap = end - start < 7 or narrowed.endswith("00", start, end)
    measured = _CONTACTS.pattern("measured").match(narrowed, end)
    return measured is not None or (heap and _CONTACTS.pattern("heaped").match(narrowed, end) is not None)


def named(narrowed: str, start: int) -> bool:
    """Return whether the words before a number make it a code or a count: an order, a lot, a viral load."""
    return _CONTACTS.pattern("named").search(narrowed[max(0, start - 20) : start]) is not None


def personal(narrowed: str, start: int, end: int) -> bool:
    """Return whether a likely telephone number is, by its context, no count, code, price or toll-free line."""
    if counted(narrowed, start, end) or named(narrowed, start):
        return False
    if not _CONTACTS.pattern("toll_free").fullmatch(narrowed, start, end):
        return True
    near = narrowed[max(0, start - 30) : end + 30]
    return _CHINESE.search(near) is not None or len(_ENGLISH.findall(near)) < 2


def everybody(number: str) -> bool:
    """Return whether a Western number is a public line: toll-free, of a public body, or a helpline."""
    plain = re.sub("[^+0-9]", "", number.replace("(0)", ""))
    local = _CONTACTS.pattern("country_prefix").sub("", plain, count=1)
    forms = {plain.lstrip("+"), local} | ({f"0{local}"} if local != plain else set())
    return any(_CONTACTS.pattern("western_lines").fullmatch(form) or is_hotline(form) for form in forms)


def for_everybody(match: re.Match[str]) -> bool:
    """Return whether a match of a Western number, whose group `x` is the extension, is a public line."""
    return everybody(match.string[match.start() : match.start("x")])


def is_hotline(number: str) -> bool:
    """Return whether digits are a listed line of a public body or a helpline."""
    return number.removeprefix("1") in words("contacts")["western_hotlines"]


def _is_counselling_line(candidate: Candidate) -> bool:
    number = re.sub(r"\D", "", candidate.match[0])
    return any(number.endswith(line.lstrip("0")) for line in words("contacts")["public"])


# Telephone numbers in characters other than 0 to 9, or with separators between all digits.

_QUANTITY = "十百千万亿拾佰仟萬億第"


def is_spoken(number: str, least: int) -> bool:
    """Return whether at least `least` numerals are a number, no dash (1500一2500) and no list (一三五、二四六)."""
    numerals = [character for character in number if character in VALUES]
    mixed = len(numerals) < len(re.sub(r"[^0-9]", "", digits(number)))
    if len(numerals) < least or (mixed and set(numerals) == {"一"}):
        return False
    groups = [len(group) for group in re.findall("[0-9]+", digits(number))]
    listed = re.search("[,，、]", number) is not None
    return not listed or (not mixed and (groups[-3:] in ([3, 4, 4], [4, 3, 4]) or set(groups) == {1}))


def _spoken_alone(candidate: Candidate) -> bool:
    """Return whether no further digits touch a number; one numeral may (一天), unless it makes a quantity."""
    text, start, end = candidate.raw, candidate.start, candidate.end
    before, after = digits(text[max(0, start - 2) : start]), digits(text[end : end + 2])
    if text[end : end + 1] in _QUANTITY and end < len(text):
        return False
    touching = [text[start - 1 : start], text[end : end + 1]]
    if any(character.isascii() and character.isdigit() for character in touching):
        return False
    return not (re.fullmatch("[0-9]{2}", before) or re.match(f"[0-9][0-9{_QUANTITY}]", after))


def _no_scores(candidate: Candidate) -> bool:
    """Return whether single digits with soft separators are no row of scores or answers, all of them below 6."""
    match = candidate.match
    soft = (match["s"] or match["u"] or match["v"])[0] in " \t,，、"
    return not (soft and max(re.findall("[0-9]", match[0])) < "6")


# Accounts and addresses on the internet.


def _is_wechat_id(candidate: Candidate) -> bool:
    match, name = candidate.match, candidate.value
    if named(candidate.text, match.start()):
        return False
    if name.isdigit():
        return _is_account_number(candidate) and not (len(name) == 11 and "13" <= name[:2] <= "19")
    marked = re.search(r"[0-9_]", name) is not None
    touching = match["word"].isascii() and match["word"].isalpha() and not match["link"]
    preceding = candidate.text[max(0, match.start() - 1) : match.start()]
    if touching and not (marked and _CHINESE.match(preceding)):  # 我的vxabc123 is an id, a longer word is not
        return False
    announced = _ACCOUNTS.pattern("announced").search(match["word"] + match["link"]) or not match["word"].isascii()
    return name.lower() not in words("accounts")["no_id"] and (marked or bool(announced))


def _is_account_number(candidate: Candidate) -> bool:
    """Return whether digits are an account: no count of people or money and, without a separator, no date."""
    if counted(candidate.text, candidate.start, candidate.end):
        return False
    is_date = _ACCOUNTS.pattern("solid_date").fullmatch(candidate.value)
    return bool(candidate.match["link"].strip()) or not is_date


def _is_of_organisation(candidate: Candidate) -> bool:
    start, end = candidate.match.span()
    around = candidate.text[max(0, start - 8) : start], candidate.text[end : end + 8]
    return any(map(_ACCOUNTS.pattern("public").search, around))


def _is_members_page(candidate: Candidate) -> bool:
    """Return whether a page's address has a login, or a member in its path, parameters or host."""
    page = candidate.match
    path = page["path"] or ""
    address = page["host"] + path
    return bool(
        (page["scheme"] and page["login"])
        or _ACCOUNTS.pattern("member").search(address)
        or _ACCOUNTS.pattern("folder").search(path)
        or _ACCOUNTS.pattern("parameter").search(address)
        or _ACCOUNTS.pattern("home").match(address)
    )


_NOBODY = tuple(
    map(
        ipaddress.ip_network,
        ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "0.0.0.0/8", "192.168.0.0/16", "2001:db8::/32"),
    )
)


def _is_ip_version_4(candidate: Candidate) -> bool:
    """Return whether four numbers are a personal address: no version; small numbers only after a word for addresses."""
    numbers = candidate.value.split(".")
    if any(number != str(int(number)) for number in numbers) or not _assignable(candidate.value):
        return False
    preceding = candidate.text[max(0, candidate.start - 20) : candidate.start]
    if _ACCOUNTS.pattern("before_ip").search(preceding):
        return True
    round_numbers = all(number[-1] in "05" for number in numbers)  # doses, pressures
    return (
        _ACCOUNTS.pattern("before_no_ip").search(preceding) is None
        and max(map(int, numbers)) >= 100
        and int(numbers[0]) >= 5
        and not round_numbers
    )


def _is_ip_version_6(candidate: Candidate) -> bool:
    """Return whether groups with colons are an address (eight groups or `::`, one long), not a time or a ratio."""
    groups = [group for group in candidate.value.split(":") if group]
    if len(groups) < 3 or not any(len(group) > 2 for group in groups):
        return False
    return ("::" in candidate.value or len(groups) == 8) and _assignable(candidate.value)


def _assignable(address_text: str) -> bool:
    try:
        address = ipaddress.ip_address(address_text)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast or address_text.startswith("255."):
        return False
    return not any(address in network for network in _NOBODY)


# Numbers of identity cards, plates and goods.

_CUTS = re.compile("[^0-9Xx×ΧХх]+")
_LETTER = str.maketrans(dict.fromkeys("Xx×ΧХх", "X"))
_PARTS = {3, 6, 10, 12, 14, 17}
"""Offsets where region, year, month, day and serial number end: 110 101 1987 03 26 204 4."""
_EVEN = [set(range(size, 18, size)) for size in (1, 2, 3, 4, 6)]


def _is_resident(candidate: Candidate) -> bool:
    """Return whether a resident number is valid.

    A separated one must begin with a province and be cut between parts or evenly.
    """
    number = _compact(candidate.value)
    if not check_digits.resident(number):
        return False
    cuts = {len(_compact(candidate.value[: gap.start()])) for gap in _CUTS.finditer(candidate.value)}
    return not cuts or (
        _IDENTITY.pattern("first_digits").match(number) is not None and (cuts <= _PARTS or cuts in _EVEN)
    )


def _is_resident_of_old(candidate: Candidate) -> bool:
    number = _compact(candidate.value)
    return check_digits.is_birthday("19" + number[6:12]) and number[2:4] != "00"


def _compact(written: str) -> str:
    """Return a number without separators, with X for any form of its check character."""
    return _CUTS.sub("", written).translate(_LETTER)


def _is_near_taiwan(candidate: Candidate) -> bool:
    preceding = candidate.text[max(0, candidate.start - 20) : candidate.start].rpartition("]")[2]  # of no placeholder
    return _IDENTITY.pattern("taiwan_near").search(preceding) is not None


def _is_civil_plate(candidate: Candidate) -> bool:
    has_digit = re.search("[0-9]", candidate.match["serial"]) is not None
    return has_digit and (_is_near_vehicle(candidate) or _is_unmistakable_plate(candidate))


def _is_near_vehicle(candidate: Candidate) -> bool:
    """Return whether a word for vehicles is shortly before or directly after the match, outside placeholders."""
    text, start, end = candidate.text, candidate.start, candidate.end
    around = text[max(0, start - 8) : start].rpartition("]")[2], text[end : end + 4].partition("[")[0]
    return any(map(_IDENTITY.pattern("vehicles").search, around))


def _is_unmistakable_plate(candidate: Candidate) -> bool:
    lists, match, text = words("identity"), candidate.match, candidate.text
    serial, start = match["serial"], candidate.start
    if match["province"] in lists["wordlike_provinces"]:
        letters = len(re.findall("[A-Za-z]", serial))
        if letters > 2 or text[max(0, start - 1) : start + 1] in lists["no_province"]:
            return False
    return serial in {serial.upper(), serial.lower()} and not _IDENTITY.pattern("things").match(text, candidate.end)


def _is_bar_code(candidate: Candidate) -> bool:
    """Return whether a number is the bar code of a product (EAN-13 with the prefix 69 of China, or 97 of books)."""
    number = candidate.value
    return len(number) == 13 and number.isdigit() and number[:2] in {"69", "97"} and check_digits.ean(number)


CHECKS: Mapping[str, Check] = {
    "account_number": _is_account_number,
    "civil_plate": _is_civil_plate,
    "hong_kong": lambda candidate: check_digits.hong_kong(candidate.value),
    "ip_version_4": _is_ip_version_4,
    "ip_version_6": _is_ip_version_6,
    "members_page": _is_members_page,
    "near_taiwan": _is_near_taiwan,
    "near_vehicle": _is_near_vehicle,
    "no_bar_code": lambda candidate: not _is_bar_code(candidate),
    "no_code": lambda candidate: not named(candidate.text, candidate.match.start()),
    "no_counselling_line": lambda candidate: not _is_counselling_line(candidate),
    "no_count": lambda candidate: not counted(candidate.text, candidate.start, candidate.end),
    "no_organisation": lambda candidate: not _is_of_organisation(candidate),
    "no_public_line": lambda candidate: not everybody(candidate.text[candidate.start : candidate.match.start("x")]),
    "no_scores": _no_scores,
    "personal": lambda candidate: personal(candidate.text, candidate.start, candidate.end),
    "resident": _is_resident,
    "resident_of_old": _is_resident_of_old,
    "spoken": lambda candidate: is_spoken(candidate.raw[candidate.start : candidate.end], 1),
    "spoken_alone": _spoken_alone,
    "taiwan": lambda candidate: check_digits.taiwan(candidate.value),
    "wechat_id": _is_wechat_id,
}
"""Name in a rule -> check of a candidate."""
