"""Tables of a paper as CSV and LaTeX (booktabs), and the LaTeX document that contains them."""

import csv
import io
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curate.core.figures import decimal
from curate.system import resources
from curate.view.text import width


@dataclass(frozen=True)
class Cell:
    """A figure with its 95 % interval, if any; printed as `factor` times the value, with `digits` decimals."""

    value: float | None
    low: float | None = None
    high: float | None = None
    digits: int = 2
    factor: float = 1.0
    best: bool = False

    @classmethod
    def of(
        cls, figure: Mapping[str, Any] | None, digits: int = 2, factor: float = 1.0, *, best: bool = False
    ) -> "Cell":
        """Return the cell of a figure with `value`, `low` and `high`; an undefined cell for None."""
        bounds = figure or {"value": None}
        return cls(bounds["value"], bounds.get("low"), bounds.get("high"), digits, factor, best)

    def shown(self) -> str | None:
        """Return the printed figure, such as `0.824 [0.756, 0.885]`; None if it is not defined."""
        if self.value is None:
            return None
        center, low, high = (
            None if number is None else decimal(self.factor * number, self.digits)
            for number in (self.value, self.low, self.high)
        )
        return str(center) if low is None or high is None else f"{center} [{low}, {high}]"


Shown = Cell | str | int | None


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper; the first `keys` columns name the rows."""

    name: str
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Shown]]
    keys: int = 1

    def csv(self) -> str:
        """Return the table as CSV, with separate columns for the bounds of intervals; undefined cells are empty."""
        has_bounds = [
            any(isinstance(cell := row[column], Cell) and cell.low is not None for row in self.rows)
            for column in self._columns
        ]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(
            self.heads[column] + bound
            for column in self._columns
            for bound in (("", ", low", ", high") if has_bounds[column] else ("",))
        )
        writer.writerows(
            [field for column in self._columns for field in _values(row[column], has_bounds[column])]
            for row in self.rows
        )
        return out.getvalue()

    @property
    def _columns(self) -> range:
        return range(len(self.heads))


def _values(cell: Shown, wide: bool) -> Iterator[object]:
    """Yield the unrounded value of a cell and, if the column has bounds (`wide`), low and high, None without them."""
    if isinstance(cell, Cell):
        yield from (cell.value, cell.low, cell.high) if wide else (cell.value,)
    else:
        yield from (cell, None, None) if wide else (cell,)


# LaTeX: every text of a run is escaped, so that none can become a command.

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "[": "{[}",  # behind a line's end it would be an optional argument
    "]": "{]}",
    "*": "{*}",
    "-": "{-}",  # two of them would be a dash
    "?": "{?}",  # with a grave behind it, another letter
    "!": "{!}",
    ",": "{,}",
}
SIGNS = {
    "’": "'",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "…": r"\ldots{}",
    "×": r"\ensuremath{\times}",
    "±": r"\ensuremath{\pm}",
    "−": r"\ensuremath{-}",
    "≥": r"\ensuremath{\geq}",
    "≤": r"\ensuremath{\leq}",
    "α": r"\ensuremath{\alpha}",
    "κ": r"\ensuremath{\kappa}",
    "ρ": r"\ensuremath{\rho}",
    "τ": r"\ensuremath{\tau}",
}
COMMON = (
    "\\usepackage[a4paper,margin=20mm]{geometry}\n\\usepackage{booktabs,graphicx}\n"
    "\\setlength{\\belowcaptionskip}{6pt}\n\\begin{document}\n"
)
LONGEST = 140
"""Maximum letters of a table row; scaled to the text width, letters are then about 7 points high."""


def engine(language: str) -> Mapping[str, Any]:
    """Return the LaTeX program for a language, its preamble, and whether it supports all of Unicode (`unicode`)."""
    program: Mapping[str, Any] = resources.words("commands/paper/words.yaml", language)["latex"]
    return program


def escaped(text: str, language: str) -> str:
    """Return an escaped text; characters that the engine of the language lacks become code points, `[U+4E00]`."""
    letters = "".join(_letter(sign, language) for sign in " ".join(text.split()))
    return letters.replace(r" \%", r"~\%")  # no line break before a percent sign


def _letter(sign: str, language: str) -> str:
    if sign in SPECIAL:
        return SPECIAL[sign]
    if sign in SIGNS:
        return SIGNS[sign]
    if " " <= sign <= "~" or (engine(language)["unicode"] and unicodedata.category(sign)[0] not in "CZ"):
        return sign
    letter = unicodedata.normalize("NFD", sign)
    if len(letter) == 2 and letter[0].isascii() and letter[0].isalpha() and letter[1] in ACCENTS:
        return f"{ACCENTS[letter[1]]}{{{letter[0]}}}"
    return f"{{[}}U+{ord(sign):04X}{{]}}"


ACCENTS = {"\u0300": r"\`", "\u0301": r"\'", "\u0302": r"\^", "\u0303": r"\~", "\u0308": r"\"", "\u0327": r"\c"}


def fragment(table: PaperTable, language: str) -> str:
    """Return a table as a float with caption and label.

    A table wider than the text is scaled down, or split into blocks of columns if it would become too small to read.
    """
    blocks = [_tabular(table, columns, language) for columns in _blocks(table)]
    caption = rf"\caption{{{escaped(table.caption, language)}}}"
    label = rf"\label{{tab:{table.name}}}"
    return "\n".join(
        [r"\begin{table}[htbp]", r"\centering", caption, label, "\n\n\\medskip\n\n".join(blocks), r"\end{table}", ""]
    )


def _tabular(table: PaperTable, columns: Sequence[int], language: str) -> str:
    # The first column and columns of texts are aligned left.
    is_left = {column: column == 0 or all(isinstance(row[column], str) for row in table.rows) for column in columns}
    kinds = "".join("l" if is_left[column] else "r" for column in columns)
    rows = [" & ".join(_cell(row[column], language) for column in columns) + r" \\" for row in table.rows]
    head = " & ".join(escaped(table.heads[column], language) for column in columns) + r" \\"
    lines = [r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    body = "\n".join([rf"\begin{{tabular}}{{{kinds}}}%", *lines])
    return f"\\resizebox{{\\ifdim\\width>\\textwidth\\textwidth\\else\\width\\fi}}{{!}}{{%\n{body}}}"


def _blocks(table: PaperTable) -> list[list[int]]:
    """Return the column indexes of each block: as few blocks as possible, of similar width, each with the key columns.

    Columns without any figure are left out.
    """
    widths = _widths(table)
    filled = [
        column
        for column in range(len(widths))
        if column < table.keys
        or any((cell.value if isinstance(cell := row[column], Cell) else cell) is not None for row in table.rows)
    ]
    blocks = _cut(widths, filled, table.keys, LONGEST)
    for longest in range(LONGEST, 0, -5):
        narrower = _cut(widths, filled, table.keys, longest)
        if len(narrower) > len(blocks):
            break
        blocks = narrower
    return blocks


def _cut(widths: Sequence[int], filled: Sequence[int], keys: int, longest: int) -> list[list[int]]:
    blocks = [list(filled[:keys])]
    for column in filled[keys:]:
        if (
            sum(widths[block_column] for block_column in blocks[-1]) + widths[column] > longest
            and len(blocks[-1]) > keys
        ):
            blocks.append(list(filled[:keys]))
        blocks[-1].append(column)
    return blocks


def document(
    tables: Sequence[str],
    figures: Sequence[tuple[str, str]],
    language: str,
    absent: tuple[str, Sequence[str]] = ("", ()),
) -> str:
    """Return the LaTeX document that includes the tables (names) and the figures (name, caption).

    `absent` is heading and sentences of the list of missing tables and figures.
    """
    lines = [engine(language)["preamble"] + COMMON]
    lines += [f"\\input{{tables/{name}.tex}}\n" for name in tables]
    lines += [
        "\\begin{figure}[htbp]\n\\centering\n"
        f"\\includegraphics[width=\\textwidth,height=0.8\\textheight,keepaspectratio]{{figures/{name}.pdf}}\n"
        f"\\caption{{{escaped(caption, language)}}}\n\\label{{fig:{name}}}\n\\end{{figure}}\n"
        for name, caption in figures
    ]
    heading, sentences = absent
    if sentences:
        items = "\n".join(rf"\item {escaped(sentence, language)}" for sentence in sentences)
        lines.append(
            f"\\clearpage\n\\section*{{{escaped(heading, language)}}}\n\\begin{{itemize}}\n{items}\n\\end{{itemize}}\n"
        )
    return "\n".join([*lines, "\\clearpage\n\\end{document}\n"])


def _cell(cell: Shown, language: str) -> str:
    if isinstance(cell, Cell):
        printed = cell.shown()
        text = "--" if printed is None else escaped(printed, language)
        return rf"\textbf{{{text}}}" if cell.best else text
    if cell is None:
        return "--"
    return escaped(f"{cell:,}" if isinstance(cell, int) else cell, language)


def _widths(table: PaperTable) -> list[int]:
    """Return the approximate width of each column in letters; East Asian wide characters count twice."""
    printed_rows = [
        [str(cell.shown() if isinstance(cell, Cell) else cell) for cell in row] for row in [table.heads, *table.rows]
    ]
    return [3 + max(width(cells[column]) for cells in printed_rows) for column in range(len(table.heads))]
