"""Masking of JSONL and of JSON documents: of a text only the masked spans are written anew; all else stays."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from curate.commands.anonymise.pieces import Fields, Piece, RawText
from curate.core.errors import TableError
from curate.pii.masking import Masked
from curate.tables.readers import Problem, json_kind
from curate.tables.readers.encoding import ending
from curate.tables.readers.text_rows import CORRECT, FIX, JsonDocument, is_document, json_object

KEY, SPARE = "spans", "pii_spans"
"""Key of the spans in a row, and the key used instead in a row that already has the first one."""
Path = tuple[str | int, ...]
"""Object keys and list indices, from 0, that lead to a value."""
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],]')
_CHARACTER = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\?.", re.DOTALL)
"""Pattern of a code point in the source of a string; two escapes may be one."""
_MISSING = "name the field with --field, or let rows without it pass with --set allow_missing=true"


class _UnfitError(Exception):
    """A row that cannot be masked."""

    def __init__(self, got: str, expected: str, remedy: str = "") -> None:
        self.got, self.expected, self.remedy = got, expected, remedy

    def problem(self, number: int, fix: str = FIX) -> Problem:
        """Return the problem of the row with this number; without a remedy of its own it has `fix`."""
        return Problem(number, self.got, self.expected, self.remedy or fix)


@dataclass(frozen=True)
class JsonRow(Piece):
    """An object and the texts to mask in it, by path."""

    separator: str
    """Text between the object and the one before it, if both are of one document."""
    source: str
    texts_by_path: Mapping[Path, str]
    numeric: int
    key: str | None
    """Key under which the spans are written into the row; None to write none."""
    empty: bool
    """Whether the object has no keys."""

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Return (path, text) of every text, with paths such as `messages.0.content`."""
        return [(".".join(map(str, path)), text) for path, text in self.texts_by_path.items()]

    @property
    def numbers(self) -> int:
        """Return the number of numbers in the place of a text."""
        return self.numeric

    def masked(self, masked: list[Masked]) -> bytes:
        """Return the bytes with masked texts and, if `key` is set, the spans as the last key of the object."""
        both = zip(self.texts_by_path.items(), masked, strict=True)
        new = {path: result for (path, old), result in both if result.text != old}
        pieces, copied = [self.separator], 0
        for path, start, end in _strings(self.source) if new else ():
            if path in new:
                pieces += [self.source[copied:start], _rewritten(self.source[start:end], new[path], self._escaped)]
                copied = end
        tail = self.source[copied:]
        if self.key is not None:
            rows = [row for (name, _), result in zip(self.texts, masked, strict=True) for row in spans(name, result)]
            end = tail.rindex("}")
            separator = "" if self.empty else ", "
            tail = f"{tail[:end]}{separator}{json.dumps(self.key)}: {json.dumps(rows)}{tail[end:]}"
        return self.text.codec.encode("".join([*pieces, tail]))

    def _escaped(self, text: str) -> str:
        """Return a text as in a JSON string; ASCII if the row is, or if the encoding lacks one of its characters."""
        plain = json.dumps(text, ensure_ascii=self.source.isascii() and "\\u" in self.source)
        try:
            self.text.codec.encode(plain)
        except UnicodeEncodeError:
            plain = json.dumps(text)
        return plain[1:-1]


def _rewritten(literal: str, masked: Masked, escaped: Callable[[str], str]) -> str:
    """Return a JSON string with masked spans; all other characters keep their escapes."""
    offsets: Sequence[int] = range(1, len(literal))
    if "\\" in literal:
        offsets = [1, *(match.end() for match in _CHARACTER.finditer(literal, 1, len(literal) - 1))]
    pieces, copied = [], 0
    for span, (start, end) in zip(masked.spans, masked.written, strict=True):
        pieces += [literal[copied : offsets[span.start]], escaped(masked.text[start:end])]
        copied = offsets[span.end]
    return "".join([*pieces, literal[copied:]])


def spans(field: str, masked: Masked) -> list[dict[str, str | int]]:
    """Return the masked spans of a text as rows for JSON: offsets in code points of the raw text, without values."""
    path = {"field": field} if field else {}
    return [
        {**path, "start": span.start, "end": span.end, "label": span.kind, "recogniser": span.recogniser}
        for span in masked.spans
    ]


def pieces(text: RawText, fields: Fields, keys: Sequence[str] = ()) -> Iterator[Piece | Problem]:
    """Yield the objects of a JSON document or, line by line, of JSONL, or the problem why one cannot be read.

    The spans of a row are written under the first of `keys` that it does not have.
    """
    rows = _Rows(text, fields, keys)
    yield from rows.document() if is_json_document(text) else rows.lines()


def is_json_document(text: RawText) -> bool:
    """Return whether a JSON file is one list or object, and not an object per line."""
    return text.start == "[" or (ending(text.file.path)[0] == ".json" and is_document(text.sample))


class _Rows:
    def __init__(self, text: RawText, fields: Fields, keys: Sequence[str]) -> None:
        self.text, self.fields, self._keys, self._first = text, fields, keys, True

    def lines(self) -> Iterator[Piece | Problem]:
        """Yield every line; a blank one has no texts."""
        for line in self.text.file.lines():
            if line.text is None:
                yield self.text.file.unread(line)
            elif not line.text.strip():
                yield Piece(self.text, line.number, line.raw)
            elif self.text.file.nests_too_deep(line.text):
                yield self.text.file.deep_problem(line.number)
            else:
                try:
                    record = json_object(line.number, line.text, _DECODER)
                    if isinstance(record, Problem):
                        yield record
                    else:
                        yield self._row(line.number, line.raw, record, line.text)
                except _UnfitError as unfit:
                    yield unfit.problem(line.number)

    def document(self) -> Iterator[Piece]:
        """Yield the elements of a document; DataError if one cannot be read, since the others depend on it."""
        path, codec = self.text.file.path, self.text.codec
        if self.text.file.encoding == "big5":  # two of its codes may be one character
            raise TableError.at(path, "a JSON document in Big5", "UTF-8", "save it as UTF-8")
        document, number = JsonDocument(self.text.file, _DECODER), 1
        try:
            for number, record in enumerate(document.entries(), start=1):
                raw = codec.encode(document.separator + document.source)
                yield self._row(number, raw, record, document.source, document.separator)
        except _UnfitError as unfit:
            raise unfit.problem(number, CORRECT).error(str(path)) from None
        yield Piece(self.text, number, codec.encode(document.separator))

    def _row(self, number: int, raw: bytes, record: object, source: str, separator: str = "") -> JsonRow:
        if not isinstance(record, dict):
            raise _UnfitError(json_kind(record), "one JSON object")
        path = str(self.text.file.path)
        if self._first:
            self._first = False
            self.fields = self.fields.among([name for name in record if isinstance(record[name], str)], path)
        key = next((key for key in self._keys if key not in record), None)
        if self._keys and key is None:
            names = " and ".join(f"`{key}`" for key in self._keys)
            raise TableError.at(
                f"{path}:{number}", f"the key {names}", "a free key for the spans", "name it with --set spans_key=KEY"
            )
        texts, numeric = _texts(record, self.fields)
        return JsonRow(self.text, number, raw, separator, source, texts, numeric, key, empty=not record)


def _texts(record: Mapping[str, object], fields: Fields) -> tuple[Mapping[Path, str], int]:
    """Return the texts of a row by path, and the number of numbers among them."""
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
                raise _UnfitError(f"no {name!r}", f"{name!r} in every row", _MISSING) from error
    return texts, len(numbers)


def _number(_digits: str) -> int:
    """Return 0 for any number: numbers are not parsed, so that long ones cause no error."""
    return 0


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise _UnfitError("a key twice in one object", "each key once, for only the last one would be seen")
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
        raise _UnfitError(f"{json_kind(node)} as {reached!r}", expected, "name a field inside it with --field A.B")
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
