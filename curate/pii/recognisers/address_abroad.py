"""Postal addresses of the United Kingdom, Ireland, the United States and the rest of Europe, down to the postcode.

A street with a number is an address by itself where its kind of street is no everyday word; with one that is (Park,
Hill) or without a number, a postcode must close it.
"""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import FULL_WIDTH, TWO_SIGNS, narrow, trigger
from curate.pii.spans import in_order
from curate.pii.words import either, words

_LISTS = words("addresses_abroad")
_LOW, _UP = "a-z\u00df-\u024f", "A-Z\u00c0-\u00de"
_NAME = rf"(?:[{_UP}][{_LOW}{_UP}'’-]{{0,24}}|St\.|Co\.)"
_SMALL = (
    "(?:of|the|on|upon|in|under|by|le|la|les|los|las|de|du|des|del|della|dello|delle|dei|degli|di|da|do|dos|das"
    "|am|an|der|den|dem|im|zum|zur|bei|auf|sur|sous|en|y|e|et|op|aan|van)"
)
_NAMES = rf"{_NAME}(?: (?:{_SMALL} ){{0,2}}{_NAME}){{0,3}}"
_NUMBER = r"(?<![\w.,/$€£-])[0-9]{1,5}(?:[-/][0-9]{1,4})?[A-Za-z]?(?![\w.])"
_UK = r"[A-PR-UWYZ](?:[0-9][0-9A-HJKPS-UW]?|[A-HK-Y][0-9][0-9ABEHMNPRV-Y]?) ?[0-9][ABD-HJLNP-UW-Z]{2}(?![A-Za-z0-9])"
_EIRCODE = r"(?:[AC-FHKNPRTV-Y][0-9][0-9W]) ?[0-9AC-FHKNPRTV-Y]{4}(?![A-Za-z0-9])"
_STATE = rf"(?:{either(_LISTS['states'])})"
_ZIP = rf"{_STATE},? {{1,2}}[0-9]{{5}}(?:-[0-9]{{4}})?(?![0-9])"
_UNIT = r"(?:Flat|Apt|Apartment|Unit|Suite|Ste|Room|Floor|Fl|Bldg|Building|Lot|#)\.? ?[A-Za-z0-9-]{1,6}(?![A-Za-z])"
_TOWNS = rf"(?:[,\n] ?{_NAMES}){{0,4}}"
_CLOSED = rf"(?:[,\n ] ?(?:{_UK}|{_EIRCODE}|{_ZIP}))"
_STREET = rf"(?:{_UNIT}, ?)?{_NUMBER},? (?:(?:[NSEW]\.?|[NS][EW]|[0-9]{{1,3}}(?:st|nd|rd|th)|{_NAME}) ){{1,4}}"
_ENGLISH_STREET = either(_LISTS["streets"])
_EVERYDAY_STREET = either(_LISTS["everyday_streets"])
_END = r"(?![A-Za-z])\.?(?: [NS][EW]?(?![A-Za-z]))?"
_NO_UNIT = r"(?! ?(?:[cmk]?m|[mµ]?[gl]|kg|ml|mal|x|%|°)(?![A-Za-z]))"
_CONTINENT = (
    r"(?:,? ?\n? ?(?:[A-Z]{1,2}-)?(?:[0-9]{4} ?[A-Z]{2}(?![A-Za-z])|[0-9]{2}-[0-9]{3}|[0-9]{4}-[0-9]{3}"
    rf"|[0-9]{{3}} [0-9]{{2}}|[0-9]{{4,5}})(?![0-9])(?: {_NAMES})?)"
)
"""Postcode and town behind a street of the Continent."""
_OF = rf"(?:{_SMALL} ){{0,2}}(?:[dl]['’])?"
_BEFORE = f"(?:{either(_LISTS['before'])})"
_BEHIND = rf"(?:[{_UP}][{_LOW}{_UP}-]{{1,40}}?{either(_LISTS['endings'], _LISTS['behind'])}|{either(_LISTS['behind'])})"
_FRENCH = f"(?:{either(_LISTS['french'])})"
_FLOOR = r"(?:,? [0-9]{1,2}[.ºª°]{1,2} ?[A-Za-z]{0,4}(?![A-Za-z]))?"
_PATTERNS = {
    "a street": rf"{_STREET}{_ENGLISH_STREET}{_END}(?:,? {_UNIT})?(?:{_TOWNS}{_CLOSED}|{_TOWNS})",
    "one that is an everyday word": rf"{_STREET}{_EVERYDAY_STREET}{_END}(?:,? {_UNIT})?{_TOWNS}{_CLOSED}",
    "a box": rf"P\.? ?O\.? ?Box [0-9]{{1,6}}(?:{_TOWNS}{_CLOSED}|{_TOWNS})",
    "a postcode after its word": rf"(?<=[Cc]ode)[:： ]{{1,2}}(?:{_UK}|{_EIRCODE})",
    "Hauptstraße 5": rf"(?<![A-Za-z])(?:{_NAME} ){{0,2}}{_BEHIND}\.? {_NUMBER}{_NO_UNIT}{_CONTINENT}?",
    "Via Roma 12": (
        rf"(?<![A-Za-z]){_BEFORE} {_OF}{_NAMES},? (?:n[.ºo°]{{0,2}} ?)?{_NUMBER}{_NO_UNIT}{_FLOOR}{_CONTINENT}?"
    ),
    "Am Alten Markt 7, 18055 Rostock": (
        r"(?<![A-Za-z])(?:Am|An de[rn]|Im|In der|Zu[mr]|Auf de[rm]|Unter den|Hinter der)"
        rf" {_NAMES} {_NUMBER}{_CONTINENT}"
    ),
    "12 rue de la Paix": (rf"(?:{_UNIT}, ?)?{_NUMBER}(?: ?(?:bis|ter|quater))?,? {_FRENCH} {_OF}{_NAMES}{_CONTINENT}?"),
}
_ADDRESS = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS.values()))
_LABELLED = re.compile(r"[:： ]{1,2}")
_BRITISH = re.compile(rf"(?<=[,\n ]){_UK}")
_PLACES = re.compile(rf"(?<![A-Za-z])(?:(?:[{_UP}][{_LOW}'’-]{{1,24}}|St\.|Co\.|{_SMALL})[, \n]{{1,3}}){{1,14}}\Z")
_HOUSE = re.compile(rf"(?:{_UNIT}|{_NUMBER}),? \Z")
_REACH = 120
"""Maximum number of characters of the places before a British postcode."""


@trigger(
    rf"[0-9][A-Za-z]?,?(?:\s[A-Z0-9][A-Za-z0-9.'’]*)+\s(?:{either(_LISTS['streets'], _LISTS['everyday_streets'])})",
    r"[Bb]ox\s[0-9]",
    r"[A-Z][0-9][0-9A-Z]?\s?[0-9][A-Z]{2}(?:[^A-Za-z0-9]|$)",
    rf"(?:{either(_LISTS['endings'], _LISTS['behind'])})\.?\s[0-9]",
    rf"{_BEFORE}\s[A-Za-z].*[0-9]",
    r"(?:Am|An|Im|In|Zum|Zur|Auf|Unter|Hinter)(?:\sde[rnm])?(?:\s[A-ZÄÖÜ][a-zäöüß]+)+\s[0-9]+[a-z]?,?\s[0-9A-Z]",
    rf"[0-9](?:\s?(?:bis|ter))?,?\s{_FRENCH}\s",
    FULL_WIDTH,
    needs=TWO_SIGNS,
)
def address_abroad(text: str) -> list[Span]:
    """Return postal addresses of Europe and North America, with their postcode."""
    return in_order(_extents(narrow(text)), "address", "address_abroad")


def _extents(text: str) -> Iterator[tuple[int, int]]:
    for match in _ADDRESS.finditer(text):
        label = _LABELLED.match(text, match.start())
        yield label.end() if label else match.start(), match.end()
    for postcode in _BRITISH.finditer(text):
        low = max(0, postcode.start() - _REACH)
        places = _PLACES.search(text, low, postcode.start())
        if places and (named := re.search(f"[{_UP}]", places[0])):
            start = places.start() + named.start()
            house = _HOUSE.search(text, low, start)
            yield house.start() if house else start, postcode.end()
