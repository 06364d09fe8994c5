"""Edit settings in the text of a commented pipeline file; all other lines stay."""

import json
import re
from collections.abc import Mapping

from curate.core.config import Json, Settings, parse_yaml, put

_BLOCK = re.compile(r"(?P<key>[^\s#:][^:]*):(?:\s|$)")


def assigned(text: str, keys: tuple[str, ...], setting: Json) -> str:
    """Return a YAML text in which the setting at a path of keys has a value.

    A setting of a section has its line replaced, or gets one at the end of the section. What lies deeper is written on
    the line of the setting that holds it.
    """
    settings: Settings = parse_yaml(text)
    put(settings, list(keys), setting)
    section = settings[keys[0]]
    lines = text.splitlines()
    begin, end = _block_lines(lines, keys[0], 0, (0, len(lines)))
    if len(keys) == 1 or begin == end or not isinstance(section, Mapping) or ": " in lines[begin].partition("#")[0]:
        written = [f"{keys[0]}: {flow(section)}"]
        return _joined([*lines[:begin], *([""] if begin == end else []), *written, *lines[end:]])
    inside = _block_lines(lines, keys[1], 2, (begin + 1, end))
    return _joined([*lines[: inside[0]], f"  {keys[1]}: {flow(section[keys[1]])}", *lines[inside[1] :]])


def flow(content: Json) -> str:
    """Return a value as YAML in one line, which any reader of YAML 1.1 or 1.2 takes for the same value."""
    text = json.dumps(content, ensure_ascii=False)
    return "".join(sign if sign.isprintable() else _escaped(ord(sign)) for sign in text)


def _escaped(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _block_lines(lines: list[str], key: str, indent: int, within: tuple[int, int]) -> tuple[int, int]:
    """Return first line and end of a key's block among lines of one indent.

    Without the key, both are where its block would begin: after the last line of content.
    """
    begin, end = within
    for number in range(begin, end):
        match = _BLOCK.match(lines[number][indent:]) if lines[number].startswith(" " * indent) else None
        if match and match["key"].strip("\"'") == key:
            below = number + 1
            while below < end and _deeper(lines, below, end, indent):
                below += 1
            return number, below
    last = max((number + 1 for number in range(begin, end) if lines[number].strip()), default=begin)
    return last, last


def _deeper(lines: list[str], number: int, end: int, indent: int) -> bool:
    """Return whether a line belongs to a block above: it is indented deeper, or blank before a deeper one."""
    line = lines[number]
    if line.strip():
        return len(line) - len(line.lstrip()) > indent
    return number + 1 < end and _deeper(lines, number + 1, end, indent)


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
