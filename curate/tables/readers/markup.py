"""HTML in texts: detection and removal.

Only tags with the name and syntax of HTML count, so `a < b`, `p<0.05` and `<think>` are retained. A text without tags
and comments is returned unchanged. The time is linear in the length, even for nested or truncated tags. html.parser is
not used, because its handling of broken tags differs between patch versions of Python.
"""

import html
import re
from collections.abc import Iterator, Mapping
from functools import cache

from curate.core.config import parse_yaml
from curate.system.resources import data_file

_VALUE = r"""\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'|[^\s"'<>=`]++)"""
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
"""Pattern of an HTML entity; the semicolon is required, because in a URL `&copy=2` is no entity."""
_SPACES, _ENDS, _BLANK = re.compile(r"[^\S\n]+"), re.compile(r" ?\n ?"), re.compile(r"\n{3,}")
_SIGNED = "0123456789+-−"
"""First characters of an exponent or index: `10<sup>9</sup>` must not become 109."""


_COMMENT = "<!--"


@cache
def _elements() -> Mapping[str, str]:
    """Return element name -> treatment (`gone`, `block`, `cell`, ...).

    The YAML entry `bare` (attributes) is excluded.
    """
    names_by_kind: dict[str, list[str]] = parse_yaml(
        data_file("tables/readers/markup.yaml").read_text(encoding="utf-8")
    )
    return {name: kind for kind, names in names_by_kind.items() for name in names if kind != "bare"}


@cache
def _closings() -> Mapping[str, re.Pattern[str]]:
    """Return name of an element that is removed with its content, or comment start -> pattern of its end."""
    names = [name for name, kind in _elements().items() if kind == "gone"]
    return {_COMMENT: re.compile("-->"), **{name: re.compile(rf"</{name}\s*+>", re.IGNORECASE) for name in names}}


@cache
def _tag() -> re.Pattern[str]:
    """Return the pattern of a tag, a declaration or a comment start; a match contains no second `<`."""
    names_by_kind: dict[str, list[str]] = parse_yaml(
        data_file("tables/readers/markup.yaml").read_text(encoding="utf-8")
    )
    names, bare = "|".join(_elements()), "|".join(names_by_kind["bare"])
    attributes = rf"(?:\s++(?:(?:{bare})(?=[\s/>])|[a-z_:@][\w:.@-]*+{_VALUE}))*+"
    declarations = r"<!--|<!doctype[^<>]*+>|<\?xml[^<>]*+\?>"
    return re.compile(rf"<(/?)({names})(?=[\s/>]){attributes}\s*+(/?)>|{declarations}", re.IGNORECASE)


def is_html(text: str) -> bool:
    """Return whether a text contains an HTML tag or comment."""
    return "<" in text and next(_removed(text), None) is not None


def strip(text: str) -> str:
    """Return a text without tags, comments and scripts, and with entities decoded.

    Block elements become separate lines.
    """
    pieces: list[str] = []
    position = 0
    for start, end, between in _removed(text) if "<" in text else ():
        pieces += (_decoded(text[position:start]), between)
        position = end
    if not pieces:
        return text
    stripped = _SPACES.sub(" ", "".join([*pieces, _decoded(text[position:])]).replace("\r", ""))
    return _BLANK.sub("\n\n", _ENDS.sub("\n", stripped)).strip()


def _decoded(text: str) -> str:
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), text) if "&" in text else text


def _removed(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, replacement) for each span of markup to remove."""
    position, unclosed = 0, set[str]()
    while tag := _tag().search(text, position):
        start, position = tag.span()
        name = (tag[2] or tag[0]).lower()
        opens = not tag[1] and not tag[3]
        if opens and name in _closings() and name not in unclosed:
            closed = _closings()[name].search(text, position)
            if closed:
                position = closed.end()
            else:
                unclosed.add(name)  # an unclosed element hides no text; remember it so that the search stays linear
        if name != _COMMENT or name not in unclosed:
            yield start, position, _between(_elements().get(name, "inline"), name, text, start, position)


def _between(kind: str, name: str, text: str, start: int, end: int) -> str:
    """Return the replacement of a tag: a line break, a space, `^` before an exponent, or nothing."""
    if name == "sup" and text[end : end + 1] in _SIGNED and text[max(start - 1, 0) : start].isalnum():
        return "^" if text[end : end + 1] else ""
    return {"block": "\n", "cell": " "}.get(kind, "")
