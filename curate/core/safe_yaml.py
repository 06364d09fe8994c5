"""Reading YAML with limits on size, depth and expanded aliases; values have JSON's types."""

from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import yaml


class YamlLimits(NamedTuple):
    """Upper limits of a YAML text; a text above them is rejected before any value is built."""

    size: int
    """Number of bytes."""
    values: int
    """Number of scalars, lists and mappings, with repetitions by aliases."""


SETTINGS = YamlLimits(1_000_000, 20_000)
"""Limits of files written by a person (pipeline, rubric, models) and of files of the package."""
DATA = YamlLimits(64_000_000, 4_000_000)
"""Limits of a file of rows, such as a dictionary of synonyms."""
DEPTH = 50
"""Maximum nesting depth of lists and mappings."""
_CORE = "tag:yaml.org,2002:"
_TAGS = frozenset(_CORE + name for name in ("null", "bool", "int", "float", "str", "seq", "map", "merge"))


def parse(text: str, limits: YamlLimits = SETTINGS) -> Any:  # noqa: ANN401 - any YAML value
    """Return the value of a YAML text, in JSON's types; yaml.YAMLError if it is invalid or exceeds the limits.

    Dates and keys remain text as typed, so `yes`, `3` and `null` are ordinary keys. A repeated key in a mapping is an
    error.
    """
    if len(text) > limits.size:
        raise too_large(limits)
    try:
        return _loaded(text, limits, _Loader.get_single_data)
    except (ValueError, OverflowError) as error:  # of int() and float()
        raise yaml.MarkedYAMLError(problem="a number in it cannot be read; write text in quotes") from error


def nodes(text: str, limits: YamlLimits = SETTINGS) -> yaml.Node | None:
    """Return the node tree of a YAML text, with line and column of each node; errors as in `parse`."""
    if len(text) > limits.size:
        raise too_large(limits)
    node: yaml.Node | None = _loaded(text, limits, _Loader.get_single_node)
    return node


def _loaded(text: str, limits: YamlLimits, load: Callable[["_Loader"], Any]) -> Any:  # noqa: ANN401 - any YAML value
    """Return the result of `load` by libyaml; by PyYAML's own parser without libyaml, and for its message on an error.

    The two differ on tabs and byte order marks, so PyYAML alone reads texts with these.
    """
    if yaml.__with_libyaml__ and not {"\t", "\ufeff"} & set(text):
        with suppress(yaml.scanner.ScannerError, yaml.parser.ParserError, UnicodeError):
            return load(_FastLoader(text, limits))
    loader = _Loader(text, limits)
    try:
        return load(loader)
    finally:
        loader.dispose()


def read(path: Path, limits: YamlLimits = SETTINGS) -> str:
    """Return the text of a file; yaml.YAMLError if it is larger than `limits.size` (only that much is read)."""
    with path.open("rb") as stream:
        raw = stream.read(limits.size + 1)
    if len(raw) > limits.size:
        raise too_large(limits)
    return raw.decode("utf-8")


def too_large(limits: YamlLimits) -> yaml.YAMLError:
    """Return the error for a text that exceeds the size limit."""
    return yaml.MarkedYAMLError(problem=f"found more than {limits.size:,} bytes, expected a smaller file")


def problem(error: Exception) -> str:
    """Return the reason of an error of `parse` or `read`, on one line."""
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8 text"
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "no YAML"
    return " ".join(str(reason).split())


class _Loader(yaml.SafeLoader):
    """A SafeLoader that counts nodes while they are composed, so that a text above the limits is rejected early."""

    def __init__(self, text: str, limits: YamlLimits) -> None:
        super().__init__(text)
        self._limits, self._depth, self._values = limits, 0, 0
        self._sizes: dict[int, tuple[int, int]] = {}
        """id() of a completed node -> (number of values, height), with aliases expanded."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401 - as PyYAML has it
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            node = super().compose_node(parent, index)
            if id(node) not in self._sizes:  # not completed yet: the alias is inside of the node that it names
                raise _refused(event.start_mark, f"the alias *{event.anchor} stands for what it stands in")
            return node
        self._depth += 1
        self._need(event.start_mark, self._values, self._depth)
        node = super().compose_node(parent, index)
        self._depth -= 1
        self._values += 1
        if node is not None:
            self._weigh(node)
        return node

    def _weigh(self, node: yaml.Node) -> None:
        """Record size and height of a completed node; error if its tag is not allowed or it exceeds the limits."""
        if node.tag not in _TAGS:
            raise _refused(node.start_mark, f"found the tag {node.tag.removeprefix(_CORE)!r}, expected none")
        children: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            children = node.value
        elif isinstance(node, yaml.MappingNode):
            children = [child for pair in node.value for child in pair]
        child_sizes = [self._sizes[id(child)] for child in children]
        size = 1 + sum(values for values, _ in child_sizes), 1 + max((height for _, height in child_sizes), default=0)
        self._need(node.start_mark, *size)
        self._sizes[id(node)] = size

    def _need(self, mark: yaml.Mark, values: int, depth: int) -> None:
        if values > self._limits.values:
            most = f"expected at most {self._limits.values:,}"
            raise _refused(mark, f"found {values:,} values or more with aliases unfolded, {most}")
        if depth > DEPTH + 1:  # + 1: the scalar in the innermost list
            raise _refused(mark, f"found lists and mappings more than {DEPTH} deep")

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refused(key.start_mark, "found a key that is a list or a mapping, expected text")
            if key.value in names:
                raise _refused(key.start_mark, f"the key {key.value!r} stands twice")
            names.add(key.value)
            if key.tag != f"{_CORE}merge":
                key.tag = f"{_CORE}str"
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        number = super().construct_yaml_int(node)
        if number.bit_length() > 64:
            raise _refused(node.start_mark, "found a number of more than 64 bits; write text in quotes")
        return number


class _FastLoader(_Loader):
    """The same with the events of libyaml, which takes a third of the time; many files are read at every start."""

    def __init__(self, text: str, limits: YamlLimits) -> None:
        super().__init__(text, limits)
        self._events = yaml.CSafeLoader(text)

    def check_event(self, *choices: Any) -> bool:  # noqa: ANN401 - as PyYAML has it
        return self._events.check_event(*choices)

    def peek_event(self) -> yaml.Event | None:
        return self._events.peek_event()

    def get_event(self) -> yaml.Event | None:
        return self._events.get_event()


def _refused(mark: object, words: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, words, mark)  # type: ignore[arg-type]


_Loader.add_constructor(f"{_CORE}int", _Loader.construct_yaml_int)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_CORE}timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
