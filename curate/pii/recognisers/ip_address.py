"""IP addresses, IPv4 and IPv6; versions, section numbers, enzymes, sequences and times are excluded.

IPv4 is four numbers up to 255 with dots, IPv6 as in RFC 4291. Four small numbers are more often a section or an enzyme
(EC 3.4.21.4) than an address, so they need a word before them. Loopback, multicast and example addresses (RFC 5737, RFC
3849) and 192.168.x.x, which a million homes share, identify no person and are not masked.
"""

import ipaddress
import re

from curate.core.records import Span
from curate.pii.patterns import THREE_DIGITS, TWO_SIGNS, narrow, trigger
from curate.pii.spans import in_order
from curate.pii.words import any_of, words

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
    if any(number != str(int(number)) for number in numbers) or not _of_somebody(match[0]):
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
    return ("::" in candidate or len(groups) == 8) and _of_somebody(candidate)


def _of_somebody(candidate: str) -> bool:
    try:
        address = ipaddress.ip_address(candidate)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast or candidate.startswith("255."):
        return False
    return not any(address in network for network in _NOBODY)
