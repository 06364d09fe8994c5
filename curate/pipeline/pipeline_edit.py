"""Edit settings of a pipeline file in place: every other character, including comments, stays.

The new text is parsed before it is written, and refused unless it means the old settings with exactly these changes.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

import yaml

from curate.core import safe_yaml
from curate.core.config import Json, Settings, parse_yaml, put, read_yaml
from curate.core.errors import ConfigError
from curate.pipeline.edit import flow
from curate.pipeline.pipeline import Pipeline
from curate.system.files import replacing

Changes = Mapping[tuple[str, str], Json]
"""Section and key -> value."""


class _Unclear(Exception):
    """A setting cannot be edited safely; the message is the reason."""


def lines(changes: Changes) -> str:
    """Return settings as the lines of a pipeline file."""
    sections: dict[str, list[str]] = {}
    for (section, key), setting in changes.items():
        sections.setdefault(section, []).append(f"  {key}: {flow(setting)}")
    return "\n".join(line for section, section_lines in sections.items() for line in (f"{section}:", *section_lines))


def rewrite(path: Path, changes: Changes) -> bool:
    """Edit settings of a pipeline file; return whether it changed. ConfigError, with the lines to type, if unsafe.

    A value that holds a comment, an anchor or an alias is left to its author.
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
    """Return a YAML text in which a setting of a section has a value."""
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
    """Return the end of a value's text; the mark of a block comes after the comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _replaced(text: str, start: int, end: int, new: str) -> str:
    old = text[start:end]
    if end < start or any(sign in old for sign in "#&*"):
        raise _Unclear("an old value holds a comment, an anchor or an alias")
    return text[:start] + new + text[end:]
