"""Edits of single settings in the text of a pipeline file, without changing comments or any other character."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import yaml

from curate.core import safe_yaml
from curate.core.config import Json, Settings, parse_yaml, put, read_yaml
from curate.core.errors import ConfigError
from curate.pipeline.pipeline import Pipeline
from curate.system.files import replacing

_BLOCK = re.compile(r"(?P<key>[^\s#:][^:]*):(?:\s|$)")


def assigned(text: str, keys: tuple[str, ...], setting: Json) -> str:
    """Return a YAML text in which the setting at the path `keys` has the value `setting`.

    The lines of SECTION.KEY are replaced by one, or one is appended to the section. A path deeper than that is written
    within the value of SECTION.KEY, on the same line.
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
    """Return a value as YAML on one line; readers of YAML 1.1 and 1.2 parse it to the same value."""
    text = json.dumps(content, ensure_ascii=False)
    return "".join(sign if sign.isprintable() else _escaped(ord(sign)) for sign in text)


def _escaped(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _block_lines(lines: list[str], key: str, indent: int, within: tuple[int, int]) -> tuple[int, int]:
    """Return the range (start, end) of the lines of a key and its value, searched in the range `within`.

    `indent` is the number of blanks before the key. If the key is missing, both are the line after the last line with
    content, where it would be inserted.
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
    """Return whether a line belongs to the block above: it is indented by more than `indent`, or blank before such.

    `end` is the end of the lines to look at.
    """
    line = lines[number]
    if line.strip():
        return len(line) - len(line.lstrip()) > indent
    return number + 1 < end and _deeper(lines, number + 1, end, indent)


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


# Edit settings of a pipeline file in place: every other character, including comments, stays.

Changes = Mapping[tuple[str, str], Json]
"""Changes of settings: (section, key) -> new value."""


class _Unclear(Exception):
    """A setting cannot be edited safely; the message is the reason."""


def lines(changes: Changes) -> str:
    """Return settings as YAML lines, grouped by section, for the user to type into a pipeline file."""
    sections: dict[str, list[str]] = {}
    for (section, key), setting in changes.items():
        sections.setdefault(section, []).append(f"  {key}: {flow(setting)}")
    return "\n".join(line for section, section_lines in sections.items() for line in (f"{section}:", *section_lines))


def rewrite(path: Path, changes: Changes) -> bool:
    """Edit settings of a pipeline file; return whether it changed.

    ConfigError, with the lines to type, if that is unsafe: a value contains a comment, an anchor or an alias.
    """
    old_settings = read_yaml(path)
    text = path.read_bytes().decode("utf-8")
    new_settings: Settings = parse_yaml(text)
    for keys, setting in changes.items():
        new_settings[keys[0]] = (
            new_settings.get(keys[0]) or {}
        )  # a section without settings is written as nothing at all
        put(new_settings, keys, setting)
    Pipeline.check(new_settings, path.name)
    if new_settings == old_settings:
        return False
    try:
        text = _changed(text, changes, new_settings)
    except (_Unclear, yaml.YAMLError) as error:
        why = error if isinstance(error, _Unclear) else "it would not be YAML any more"
        raise ConfigError(
            f"{path}: left as it is, for the settings cannot be put into it safely ({why}); "
            f"put these lines into it by hand:\n{lines(changes)}"
        ) from error
    target = path.resolve()  # a link stays one
    with replacing(target) as new_path:
        new_path.write_bytes(text.encode("utf-8"))
        shutil.copymode(target, new_path)
    return True


def _changed(text: str, changes: Changes, new_settings: Settings) -> str:
    for (section, key), setting in changes.items():
        text = _assigned(text, section, key, setting)
    if parse_yaml(text) != new_settings:
        raise _Unclear("something else would change")
    return text


def _assigned(text: str, section: str, key: str, setting: Json) -> str:
    """Return a YAML text in which SECTION.KEY has the value `setting`."""
    root = safe_yaml.nodes(text)
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        raise _Unclear("the file is one mapping in braces")
    end = "\r\n" if "\r\n" in text else "\n"
    new_line = f"{key}: {flow(setting)}"
    section_nodes = _pair(root, section)
    if section_nodes is None:
        return f"{text.rstrip()}{end}{end}{section}:{end}  {new_line}{end}"
    name, body = section_nodes
    if isinstance(body, yaml.ScalarNode):  # `consensus:`, or `consensus: null`
        return _replaced(text, name.end_mark.index, body.end_mark.index, f": {{{new_line}}}")
    if not isinstance(body, yaml.MappingNode) or body.start_mark.index < name.end_mark.index:
        raise _Unclear(f"{section} is no section of its own")
    old = _pair(body, key)
    if old is not None:
        return _replaced(text, old[0].end_mark.index, _end(old[1]), f": {flow(setting)}")
    if body.flow_style:
        start = body.start_mark.index + 1
        return _replaced(text, start, start, new_line + (", " if body.value else ""))
    first = body.value[0][0].start_mark
    return _replaced(text, first.index, first.index, f"{new_line}{end}{' ' * first.column}")


def _pair(node: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next(((name, child) for name, child in node.value if name.value == key), None)


def _end(node: yaml.Node) -> int:
    """Return the index at which a value's text ends; `end_mark` of a block would include the comments after it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _replaced(text: str, start: int, end: int, new: str) -> str:
    old = text[start:end]
    if end < start or any(sign in old for sign in "#&*"):
        raise _Unclear("an old value holds a comment, an anchor or an alias")
    return text[:start] + new + text[end:]
