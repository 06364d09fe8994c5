"""HTML in texts: whether there is any, and the text without it.

Only what is a tag of HTML by name and form counts, so `a < b`, `p<0.05` and `<think>` stay as they are, and a text
without a tag or a comment stays byte-equal. No character is looked at twice, however tags are nested or cut off. It is
not html.parser, because what that makes of broken tags differs between patch versions of Python.
"""

import html
import re
from collections.abc import Iterator, Mapping
from functools import cache

from curate.core.config import parse_yaml
from curate.system.resources import data_file

_VALUE = r"""\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'|[^\s"'<>=`]++)"""
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
"""With its semicolon alone: in an address `&copy=2` is none."""
_SPACES, _ENDS, _BLANK = re.compile(r"[^\S\n]+"), re.compile(r" ?\n ?"), re.compile(r"\n{3,}")
_SIGNED = "0123456789+-−"
"""What a power or an index begins with: 10<sup>9</sup> is no 109."""


_COMMENT = "<!--"


@cache
def _elements() -> Mapping[str, str]:
    """Return name of an element -> what becomes of it; the attributes without a value are `bare`."""
    known: dict[str, list[str]] = parse_yaml(data_file("tables/readers/markup.yaml").read_text(encoding="utf-8"))
    return {name: kind for kind, names in known.items() for name in names if kind != "bare"}


@cache
def _closings() -> Mapping[str, re.Pattern[str]]:
    """Return the begin of a comment, or an element that goes with all that is in it -> the pattern of its end."""
    names = [name for name, kind in _elements().items() if kind == "gone"]
    return {_COMMENT: re.compile("-->"), **{name: re.compile(rf"</{name}\s*+>", re.IGNORECASE) for name in names}}


@cache
def _tag() -> re.Pattern[str]:
    """Return the pattern of a tag, a declaration, or the begin of a comment; it ends before the next `<`."""
    known: dict[str, list[str]] = parse_yaml(data_file("tables/readers/markup.yaml").read_text(encoding="utf-8"))
    names, bare = "|".join(_elements()), "|".join(known["bare"])
    attributes = rf"(?:\s++(?:(?:{bare})(?=[\s/>])|[a-z_:@][\w:.@-]*+{_VALUE}))*+"
    other = r"<!--|<!doctype[^<>]*+>|<\?xml[^<>]*+\?>"
    return re.compile(rf"<(/?)({names})(?=[\s/>]){attributes}\s*+(/?)>|{other}", re.IGNORECASE)


def is_html(text: str) -> bool:
    """Say whether there is a tag of HTML in a text, or a comment."""
    return "<" in text and next(_removed(text), None) is not None


def strip(text: str) -> str:
    """Return a text without tags, comments and scripts, its entities decoded; blocks become lines of their own."""
    parts: list[str] = []
    at = 0
    for start, end, between in _removed(text) if "<" in text else ():
        parts += (_decoded(text[at:start]), between)
        at = end
    if not parts:
        return text
    whole = _SPACES.sub(" ", "".join([*parts, _decoded(text[at:])]).replace("\r", ""))
    return _BLANK.sub("\n\n", _ENDS.sub("\n", whole)).strip()


def _decoded(text: str) -> str:
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text


def _removed(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start and end of everything that is removed, and what stands there instead."""
    at, unclosed = 0, set[str]()
    while found := _tag().search(text, at):
        start, at = found.span()
        name = (found[2] or found[0]).lower()
        opens = not found[1] and not found[3]
        if opens and name in _closings() and name not in unclosed:
            closed = _closings()[name].search(text, at)
            if closed:
                at = closed.end()
            else:
                unclosed.add(name)  # what is never closed hides no text, and is not looked for again
        if name != _COMMENT or name not in unclosed:
            yield start, at, _between(_elements().get(name, "inline"), name, text, start, at)


def _between(kind: str, name: str, text: str, start: int, end: int) -> str:
    """Return what stands in the place of a tag: a line break, a space, `^` before a power, or nothing."""
    if name == "sup" and text[end : end + 1] in _SIGNED and text[max(start - 1, 0) : start].isalnum():
        return "^" if text[end : end + 1] else ""
    return {"block": "\n", "cell": " "}.get(kind, "")
