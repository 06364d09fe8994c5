"""Masking of JSONL: only texts that change are rewritten; numbers, white space and the order of keys stay."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from curate.commands.anonymise.raw_lines import FIX, Fields, RawLine, Script
from curate.core.config import kind_of
from curate.core.errors import DataError
from curate.pii.masking import Masked
from curate.tables.readers import Problem

Path = tuple[str | int, ...]
"""Object keys and list indices, from 0, that lead to a value."""
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],]')
_NO_ROW = "one JSON object"


class _UnfitError(Exception):
    """A row that cannot be read; its arguments are what was found, what was expected, and a remedy."""


@dataclass(frozen=True, slots=True)
class JsonLine:
    """A line and the texts to mask in it, by path; none in a blank line."""

    script: Script
    line: int
    raw: bytes
    text: str
    found: dict[Path, str]
    numbers: int
    key: str | None
    """Key under which the spans are written into the row; None to write none."""
    empty: bool = False
    """Whether the line is an object without keys."""

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Return (path, text) of every text, with paths such as `messages.0.content`."""
        return [(".".join(map(str, path)), text) for path, text in self.found.items()]

    def masked(self, masked: list[Masked]) -> bytes:
        """Return the bytes of the line with masked texts and, if `key` is set, the spans as its last key."""
        new = {
            path: result.text
            for (path, old), result in zip(self.found.items(), masked, strict=True)
            if result.text != old
        }
        pieces, copied = [], 0
        for path, start, end in _strings(self.text) if new else ():
            if path in new:
                pieces += [self.text[copied:start], self._literal(new[path])]
                copied = end
        tail = self.text[copied:]
        if self.key is not None:
            rows = [row for (name, _), result in zip(self.texts, masked, strict=True) for row in spans(name, result)]
            end = tail.rindex("}")
            separator = "" if self.empty else ", "
            tail = f"{tail[:end]}{separator}{json.dumps(self.key)}: {json.dumps(rows)}{tail[end:]}"
        return self.script.encode("".join([*pieces, tail]))

    def _literal(self, text: str) -> str:
        """Return a text as a JSON string; ASCII only if the line is, or if the encoding lacks one of its characters."""
        if not (self.text.isascii() and "\\u" in self.text):
            plain = json.dumps(text, ensure_ascii=False)
            try:
                self.script.encode(plain)
            except UnicodeEncodeError:
                return json.dumps(text)
            return plain
        return json.dumps(text)


def spans(field: str, masked: Masked) -> list[dict[str, str | int]]:
    """Return the masked spans of a text as rows for JSON: offsets in code points of the raw text, without values."""
    path = {"field": field} if field else {}
    return [
        {**path, "start": span.start, "end": span.end, "label": span.kind, "recogniser": span.recogniser}
        for span in masked.spans
    ]


def pieces(
    lines: Iterable[RawLine], script: Script, fields: Fields, keys: Sequence[str] = ()
) -> Iterator[JsonLine | Problem]:
    """Yield every line, or the problem why it cannot be read; a blank line has no texts.

    The spans of a row are written under the first of `keys` that it does not have.
    """
    for line in lines:
        if line.text is None:
            yield script.undecodable(line.number)
        elif not line.text.strip():
            yield JsonLine(script, line.number, line.raw, line.text, {}, 0, key=None)
        else:
            try:
                yield _row(line, line.text, script, fields, keys)
            except _UnfitError as unfit:
                yield Problem(line.number, *unfit.args)


def _row(line: RawLine, text: str, script: Script, fields: Fields, keys: Sequence[str]) -> JsonLine:
    record = _parsed(text)
    key = next((key for key in keys if key not in record), None)
    if keys and key is None:
        names = " and ".join(f"`{key}`" for key in keys)
        raise DataError(
            f"{script.place}:{line.number}: found the key {names}, expected a free one for the spans; name it with "
            "--set spans_key=KEY"
        )
    texts: dict[Path, str] = {}
    numbers: set[Path] = set()
    for name in fields.names:
        try:
            plain = record.get(name)
            if isinstance(plain, str):  # as in most rows
                texts[name,] = plain
                continue
            for path, content in _leaves_of(record, name.split("."), ()):
                if isinstance(content, str):
                    texts[path] = content
                else:
                    numbers.add(path)
        except KeyError as error:
            if name not in fields.optional:
                raise _UnfitError(
                    f"no {name!r}", "it in every row", f"name the field with --field, or {_SPARE}"
                ) from error
    return JsonLine(script, line.number, line.raw, text, texts, len(numbers), key=key, empty=not record)


_SPARE = "let rows without it pass with --set allow_missing=true"


def _parsed(text: str) -> dict[str, object]:
    try:
        record = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _UnfitError(f"a line that is not valid JSON ({error.msg}, column {error.colno})", _NO_ROW, FIX) from None
    except RecursionError:
        raise _UnfitError("brackets nested without end", _NO_ROW, FIX) from None
    if not isinstance(record, dict):
        raise _UnfitError(kind_of(record), _NO_ROW, FIX)
    return record


def _number(_digits: str) -> int:
    """Return 0 for any number: numbers are not parsed, so that long ones cause no error."""
    return 0


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise _UnfitError("a key twice in one object", "each key once, for only the last one would be seen", FIX)
    return record


_DECODER = json.JSONDecoder(parse_int=_number, parse_float=_number, object_pairs_hook=_object)


def _leaves_of(node: object, names: Sequence[str], path: Path) -> Iterator[tuple[Path, object]]:
    """Yield (path, value) of every text and number that a dotted name leads to, in every item of lists.

    KeyError if an object lacks the name; _UnfitError if the name continues below a text, or ends at an object.
    """
    if isinstance(node, list):
        for number, element in enumerate(node):
            yield from _leaves_of(element, names, (*path, number))
    elif isinstance(node, dict) and names:
        dotted = ".".join(names)
        key, deeper = (dotted, []) if dotted in node else (names[0], names[1:])
        yield from _leaves_of(node[key], deeper, (*path, key))
    elif isinstance(node, dict) or (names and node is not None):
        reached = ".".join(map(str, path))
        expected = f"an object with {'.'.join(names)!r}" if names else "text, or a list of texts"
        raise _UnfitError(f"{kind_of(node)} as {reached!r}", expected, "name a field inside it with --field A.B")
    elif isinstance(node, str) or (isinstance(node, int) and not isinstance(node, bool)):
        yield path, node


def _strings(text: str) -> Iterator[tuple[Path, int, int]]:
    """Yield (path, start, end) of every string value in a valid JSON line, quotes included."""
    path: list[str | int | None] = []
    for token in _TOKEN.finditer(text):
        first = token[0][0]
        if first in "{[":
            path.append(None if first == "{" else 0)
        elif first in "}]":
            path.pop()
        elif first == ",":
            last = path[-1]
            path[-1] = last + 1 if isinstance(last, int) else None
        elif path[-1] is None:
            path[-1] = json.loads(token[0])
        else:
            yield tuple(step for step in path if step is not None), token.start(), token.end()
