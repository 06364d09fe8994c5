"""Names after a kinship word in German, French, Spanish, Italian and Portuguese: mein Mann Jürgen, mon fils Mathéo."""

import re
import unicodedata
from collections.abc import Iterator

from curate.pii.person_names.lexicon import given_names
from curate.pii.words import one_of, words

_LISTS_ABROAD = words("kin_abroad")
_SMALL, _CAPITAL = "a-z\u00df-\u00f6\u00f8-\u024f", "A-Z\u00c0-\u00d6\u00d8-\u00de"
_LETTER = f"{_SMALL}{_CAPITAL}"
_WORD_ABROAD = rf"[{_CAPITAL}][{_SMALL}]{{1,15}}(?:[-'’][{_CAPITAL}][{_SMALL}]{{1,14}})?"
_NAME = re.compile(_WORD_ABROAD)
_OWNER = rf"(?:(?i:{one_of(_LISTS_ABROAD['owners'])}) (?:{one_of(_LISTS_ABROAD['between'])} ){{0,2}})"
_KIN_ABROAD = one_of(_LISTS_ABROAD["words"])
_BEHIND_KIN = re.compile(
    rf"(?<![{_LETTER}-])(?P<kin>{_KIN_ABROAD})(?P<link>,? )(?P<first>{_WORD_ABROAD})(?![{_LETTER}0-9])"
)
_REST = re.compile(rf"(?: (?:(?:de la|de|del|da|dos|von|van|di) )?{_WORD_ABROAD}(?![{_LETTER}0-9])){{1,3}}")
_OWNED_ABROAD = re.compile(rf"(?<![{_LETTER}]){_OWNER}\Z")
_VERB_ABROAD = re.compile(
    rf"(?P<comma>,)? (?:(?:[ns]['’]|(?i:{one_of(_LISTS_ABROAD['verbs'])})(?![{_LETTER}])))(?P<more> ?[{_LETTER}0-9])?"
)
_AND = re.compile(rf" (?:und|oder|sowie)(?![{_LETTER}])")
_VERB_LAST = re.compile(rf"(?<![{_LETTER}])(?i:{one_of(_LISTS_ABROAD['verb_last'])}) [^.!?\n]{{0,12}}\Z")
_NOT_ABROAD = frozenset(_LISTS_ABROAD["no_names"])
_ENDING = re.compile(rf".{{2,}}{one_of(_LISTS_ABROAD['endings'])}\Z")
_VERBS = frozenset(_LISTS_ABROAD["verbs"])
_GIVEN_ABROAD = (given_names() | {given.casefold() for given in _LISTS_ABROAD["given"]}) - {
    given.casefold() for given in _LISTS_ABROAD["doubtful"]
}
_LONGEST = 60
"""Number of characters before a kinship word that are searched for its possessive."""
RAW = rf"(?:{'|'.join(sorted(set(_LISTS_ABROAD['words'])))}),?[ \u00a0\u202f\u3000][A-ZＡ-ＺÀ-Þ]"
"""Trigger pattern: it matches every text with such a name."""


def places(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of names after kinship words in a narrowed text.

    A listed given name needs no further evidence. Any other name needs a verb of a person after it and, after a comma,
    a second comma before that verb. German nouns are capitalised, and a German clause may end with its verb: in that
    position, or with a noun ending, an unlisted word is not a name.
    """
    for match in _BEHIND_KIN.finditer(text):
        front = text[max(0, match.start() - _LONGEST) : match.start()]
        owner = _OWNED_ABROAD.search(front)
        if owner is None or _ordinary(match["first"]):
            continue
        start, end = match.start("first"), _end(text, match.end("first"))
        letters = unicodedata.normalize("NFD", match["first"].casefold())
        plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
        known_name = plain in _GIVEN_ABROAD or plain.split("-")[0] in _GIVEN_ABROAD
        if known_name or _vouched_abroad(match, end, front[: owner.start()]):
            yield start, end


def _end(text: str, end: int) -> int:
    """Return the end of the surnames after a given name; the first word that is no name ends them."""
    tail = _REST.match(text, end)
    for name in _NAME.finditer(text, end, tail.end()) if tail else ():
        if _ordinary(name[0]):
            break
        end = name.end()
    return end


def _vouched_abroad(match: re.Match[str], end: int, front: str) -> bool:
    """Return whether a verb of a person follows unlisted words; in German not if it ends the clause."""
    text, name = match.string, match.string[match.start("first") : end]
    verb = _VERB_ABROAD.match(text, end)
    if verb is None or ("," in match["link"]) != bool(verb["comma"]) or _ENDING.match(name.casefold()):
        return False
    if match["kin"][0].islower():
        return True
    goes_on = verb["more"] is not None and not _AND.match(text, verb.end() - len(verb["more"]))
    return (goes_on or " " in name) and _VERB_LAST.search(front) is None


def _ordinary(word: str) -> bool:
    return word in _NOT_ABROAD or word.casefold() in _VERBS
