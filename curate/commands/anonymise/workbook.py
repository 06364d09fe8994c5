"""Masking of columns of texts in .xlsx: of the parts of the archive, only masked cells and their texts change.

Not kept are formats of characters within a masked cell, formulas in the columns of texts, whose values stay, and stored
results of other formulas and properties of the file that repeat a masked text. A workbook that repeats one elsewhere,
as in a note, a filter, a chart or a pivot table, is refused.
"""

import posixpath
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import BinaryIO, NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from curate.commands.anonymise.pieces import Fields
from curate.core.errors import TableError
from curate.pii.masking import Masked
from curate.system.files import BATCH
from curate.tables.readers.encoding import Bounds
from curate.tables.readers.excel import need_small, sound
from curate.tables.readers.text_rows import shown_names

_LONG = 6
"""Length from which a masked value is searched for within other texts; a shorter one may be part of any word."""
_CHAIN = "calcChain"
_PROPERTIES = ("creator", "lastModifiedBy", "title", "subject", "description", "keywords", "Manager", "Company")
Edit = tuple[int, int, bytes]
"""Start and end of bytes of a part, and those that replace them."""
_REFERENCE = re.compile(r"([A-Z]+)([0-9]+)")


@dataclass(slots=True)
class Element:
    """An element of an XML part, with its texts and the elements in it by their names."""

    tag: str
    attributes: Mapping[str, str]
    start: int
    """Position of the first byte; `end` is that after the last one."""
    end: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    """Name of an element in it -> text; without readings of Chinese characters."""
    inner: dict[str, "Element"] = field(default_factory=dict)


class _Parser:
    """Reads a part: calls `take` with each element of a name, and collects all texts and values outside of them."""

    def __init__(self, xml: bytes, name: str = "", take: Callable[[Element], None] = lambda _: None) -> None:
        self.outside: set[str] = set()
        self._xml, self._name, self._take = xml, name, take
        self._open: list[Element] = []
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.Parse(xml, True)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._open and _local(tag) != self._name:
            self.outside.update(attributes.values())
            return
        element = Element(tag, attributes, self._parser.CurrentByteIndex)
        if self._open:
            self._open[0].inner[_local(tag)] = element
        self._open.append(element)

    def _text(self, text: str) -> None:
        if not self._open:
            self.outside.add(text)
        elif all(_local(element.tag) != "rPh" for element in self._open):
            texts, name = self._open[0].texts, _local(self._open[-1].tag)
            texts[name] = texts.get(name, "") + text

    def _end(self, tag: str) -> None:
        if self._open:
            element, end = self._open.pop(), self._parser.CurrentByteIndex
            if self._xml.startswith(f"</{tag}".encode(), end):
                end = self._xml.index(b">", end) + 1
            elif self._xml[end - 2 : end] != b"/>":  # the end of an element such as <v/>
                raise ValueError("XML in UTF-16")
            element.end = end
            if not self._open:
                self._take(element)


def _local(tag: str) -> str:
    return tag.rpartition(":")[2]


def _elements(xml: bytes, name: str) -> list[Element]:
    elements = list[Element]()
    _Parser(xml, name, elements.append)
    return elements


class TextCell(NamedTuple):
    """A cell with a text to mask; a number is one as a CSV file would hold it."""

    part: str
    row: int
    field: str
    """Name of the column; of several sheets, behind the name of the sheet."""
    element: Element
    text: str

    def written(self, text: str) -> bytes:
        """Return the cell with a text of its own, instead of one that cells share or that a formula makes."""
        attributes = {**self.element.attributes, "t": "inlineStr"}
        prefix = self.element.tag[: -len("c")]
        tag = f"{prefix}c" + "".join(f" {name}={quoteattr(attribute)}" for name, attribute in attributes.items())
        content = escape(text, quote=False).replace("\r", "&#13;")
        inner = f'<{prefix}is><{prefix}t xml:space="preserve">{content}</{prefix}t></{prefix}is>'
        return f"<{tag}>{inner}</{prefix}c>".encode("ascii", "xmlcharrefreplace")


@dataclass
class TextCells:
    """Some cells that are masked together."""

    cells: Sequence[TextCell]
    numbers: int = 0

    @property
    def size(self) -> int:
        """Return the number of cells."""
        return len(self.cells)

    @property
    def texts(self) -> list[tuple[int, str, str]]:
        """Return (row number, field, text) of every cell."""
        return [(cell.row, cell.field, cell.text) for cell in self.cells]


class _Sheet:
    """Cells of a sheet: texts to mask, and what depends on them."""

    def __init__(self, name: str, part: str, choose: Callable[[Sequence[str]], Sequence[str]]) -> None:
        self.name, self.part, self._choose = name, part, choose
        self.header: dict[str, str] = {}
        """Letters of a column -> its name in the first row with texts."""
        self.cells: list[TextCell] = []
        self.formulas: list[Element] = []
        """Formulas without a text in the columns of texts."""
        self.results: list[tuple[int, int, str]] = []
        """Start, end and text of the stored results of other formulas."""
        self._head = ""
        self._shared: dict[bool, set[str]] = {True: set(), False: set()}

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """Return letters -> name of the columns of texts; to be read once the header is complete."""
        chosen = self._choose([*self.header.values()])
        return {letters: name for letters, name in self.header.items() if name in chosen}

    def take(self, cell: Element, text: str) -> None:
        """Add a cell with its text, empty if it has none."""
        match = _REFERENCE.fullmatch(cell.attributes.get("r", ""))
        if match is None:
            raise ValueError("a cell without a reference")
        letters, row = match.groups()
        if self._head in ("", row):
            if text.strip():
                self._head, self.header[letters] = row, text.strip()
            return
        name, formula = self.columns.get(letters), cell.inner.get("f")
        if formula:
            self._shared[name is not None].add(formula.attributes.get("si", ""))
        if name is None:
            if formula and text:
                self.results.append((cell.inner["v"].start, cell.inner["v"].end, text))
        elif text:
            self.cells.append(TextCell(self.part, int(row), name, cell, text))
        elif formula:
            self.formulas.append(formula)

    def has_split_formula(self) -> bool:
        """Return whether columns of texts share a formula with others."""
        return bool((self._shared[True] & self._shared[False]) - {""})


class Workbook:
    """An .xlsx file in memory."""

    def __init__(
        self, stream: BinaryIO, fields: Fields, path: Path, bounds: Bounds, notify: Callable[[str], None]
    ) -> None:
        self._path, self._fields, self._notify = path, fields, notify
        self._edits: defaultdict[str, list[Edit]] = defaultdict(list)
        self._uses: Counter[int] = Counter()
        self._raw: set[str] = set()
        """Texts of changed cells, and the masked values in them."""
        self._lost: Counter[str] = Counter()
        self._outside: dict[str, set[str]] = {}
        with sound(str(path)):
            need_small(stream, str(path), bounds)
            with zipfile.ZipFile(stream) as archive:
                self._infos = archive.infolist()
                self._parts = {info.filename: archive.read(info) for info in self._infos}
            (self._book,) = (part for kind, part in self._related("").values() if kind == "officeDocument")
            related = self._related(self._book)
            self._strings = next((part for kind, part in related.values() if kind == "sharedStrings"), "")
            self._shared = _elements(self._parts[self._strings], "si") if self._strings else []
            listed = [sheet.attributes for sheet in _elements(self._parts[self._book], "sheet")]
            parts = {sheet["name"]: related[sheet[key]] for sheet in listed for key in sheet if _local(key) == "id"}
            self._sheets = [self._sheet(name, part) for name, (kind, part) in parts.items() if kind == "worksheet"]
        self._need_columns()

    def _related(self, part: str) -> dict[str, tuple[str, str]]:
        """Return id -> (kind, part) of the parts that a part names."""
        folder = posixpath.dirname(part)
        return {
            element.attributes["Id"]: (
                posixpath.basename(element.attributes["Type"]),
                posixpath.normpath(posixpath.join("/", folder, element.attributes["Target"])).lstrip("/"),
            )
            for element in _elements(self._parts[_relations(part)], "Relationship")
        }

    def _sheet(self, name: str, part: str) -> _Sheet:
        def chosen(header: Sequence[str]) -> Sequence[str]:
            fields = self._fields.among(header, f"{self._path}: {name}")
            return [column for column in fields.names if column in header]

        def take(cell: Element) -> None:
            kind, stored = cell.attributes.get("t", "n"), cell.texts.get("v", "")
            if kind == "s" and stored:
                self._uses[int(stored)] += 1
                sheet.take(cell, self._shared[int(stored)].texts.get("t", ""))
            elif kind == "n" and stored:
                number = float(stored)
                is_plain = stored.isdigit() or not number.is_integer()  # a float has not all digits of a long number
                sheet.take(cell, stored if is_plain else str(int(number)))
            else:
                sheet.take(cell, {"str": stored, "inlineStr": cell.texts.get("t", "")}.get(kind, ""))

        sheet = _Sheet(name, part, chosen)
        self._outside[part] = _Parser(self._parts[part], "c", take).outside
        return sheet

    def _need_columns(self) -> None:
        """Raise DataError if no sheet has the columns, or if they share a formula with others; name sheets without."""
        columns = [name for sheet in self._sheets for name in sheet.header.values()]
        chosen = {name for sheet in self._sheets for name in sheet.columns.values()}
        absent = [name for name in self._fields.names if name not in {*columns, *self._fields.optional}]
        if not chosen or (absent and chosen <= set(self._fields.names)):
            raise TableError.at(
                self._path,
                f"the columns {shown_names(columns)}",
                ", ".join(absent or self._fields.names),
                "name the column of the texts with --field",
            )
        for sheet in self._sheets:
            if sheet.has_split_formula():
                raise TableError.at(
                    f"{self._path}: {sheet.name}",
                    "a formula that fills columns of texts and others",
                    "values",
                    "copy the columns and paste their values",
                )
            if sheet.header and not sheet.columns:
                self._notify(f"{self._path}: the sheet {sheet.name} has none of these columns and stays as it is")

    @property
    def size(self) -> int:
        """Return the number of cells to mask."""
        return sum(len(sheet.cells) for sheet in self._sheets)

    def parts(self) -> Iterator[TextCells]:
        """Yield the cells to mask."""
        several = sum(bool(sheet.columns) for sheet in self._sheets) > 1
        for sheet in self._sheets:
            prefix = f"{sheet.name}!" if several else ""
            cells = [cell._replace(field=prefix + cell.field) for cell in sheet.cells]
            for start in range(0, len(cells), BATCH):
                yield TextCells(cells[start : start + BATCH])

    def take(self, chunk: TextCells, masked: Sequence[Masked]) -> None:
        """Take the masked texts of some cells."""
        for cell, result in zip(chunk.cells, masked, strict=True):
            element, formula = cell.element, cell.element.inner.get("f")
            self._lost["formulas"] += formula is not None
            if result.text == cell.text:
                self._edits[cell.part] += [(formula.start, formula.end, b"")] if formula else []
                continue
            self._edits[cell.part].append((element.start, element.end, cell.written(result.text)))
            self._raw |= {cell.text, *(cell.text[span.start : span.end] for span in result.spans)}
            if element.attributes.get("t") == "s":
                index = int(element.texts["v"])
                self._uses[index] -= 1
                self._lost["formats within cells"] += "r" in self._shared[index].inner

    def write(self, stream: BinaryIO) -> None:
        """Write the masked workbook; DataError if a part repeats a masked text."""
        for sheet in self._sheets:
            self._edits[sheet.part] += [(formula.start, formula.end, b"") for formula in sheet.formulas]
            self._lost["formulas"] += len(sheet.formulas)
            repeated = self._repeated({text for _, _, text in sheet.results})
            stored = [(start, end, b"") for start, end, text in sheet.results if text in repeated]
            self._edits[sheet.part] += stored
            self._lost["stored results of formulas"] += len(stored)
        for index, element in enumerate(self._shared):
            if not self._uses[index]:
                prefix = element.tag[: -len("si")]
                self._edits[self._strings].append((element.start, element.end, f"<{prefix}si/>".encode()))
        chain = self._lost["formulas"] > 0
        for part, name in (("[Content_Types].xml", "Override"), (_relations(self._book), "Relationship")):
            listed = _elements(self._parts[part], name) if chain else []
            chained = [element for element in listed if any(_CHAIN in text for text in element.attributes.values())]
            self._edits[part] += [(element.start, element.end, b"") for element in chained]
        with zipfile.ZipFile(stream, "w") as archive:
            for info in self._infos:
                if not (chain and _CHAIN in info.filename):
                    archive.writestr(info, self._rewritten(info.filename))
        if lost := [f"{name} ({count:,})" for name, count in sorted(self._lost.items()) if count]:
            self._notify(f"{self._path}: not kept: {', '.join(lost)}")

    def _rewritten(self, part: str) -> bytes:
        """Return the bytes of a part; DataError if it repeats a masked text."""
        xml, pieces, copied = self._parts[part], list[bytes](), 0
        for name in _PROPERTIES if part.startswith("docProps/") and part.endswith(".xml") else ():
            for element in reversed(_elements(xml, name)):
                if self._repeated({*element.texts.values()}):
                    xml = xml[: element.start] + xml[element.end :]
                    self._lost["properties"] += 1
        if part not in self._outside and part != self._strings:
            self._outside[part] = _texts(xml) if part.endswith((".xml", ".rels", ".vml")) else set()
        if self._repeated(self._outside.get(part, set())):
            raise TableError.at(
                self._path,
                f"the text of a masked cell in {part} too",
                "such a text in cells alone",
                "delete the note, filter, link, chart or pivot table, or save the sheet as CSV",
            )
        for start, end, new in sorted(self._edits[part]):
            pieces += [xml[copied:start], new]
            copied = end
        return b"".join([*pieces, xml[copied:]])

    def _repeated(self, texts: set[str]) -> set[str]:
        """Return the texts that are one of a changed cell, or that hold a long one."""
        equal = texts & self._raw
        longer = [text for text in texts - equal if len(text) > _LONG]
        joined = "\n".join(longer)
        raw = [text for text in self._raw if len(text) >= _LONG and text in joined]
        return equal | {text for text in longer if any(value in text for value in raw)}


def _relations(part: str) -> str:
    folder, name = posixpath.split(part)
    return posixpath.join(folder, "_rels", f"{name}.rels")


def _texts(xml: bytes) -> set[str]:
    """Return all texts and values of a part; all of it as one text if it is no valid XML, as some drawings are."""
    try:
        return _Parser(xml).outside
    except expat.ExpatError:
        return {xml.decode("utf-8", "replace")}
