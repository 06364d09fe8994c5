"""A table of a paper: its columns, its cells, and the sentences that its caption is made of; CSV with every figure."""

import csv
import io
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cell:
    """A figure, with its 95 % interval where there is one; `factor` and `digits` say how it is printed."""

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
        """Return the cell of a figure as JSON has it: value, low, high; undefined for None."""
        found = figure or {"value": None}
        return cls(found["value"], found.get("low"), found.get("high"), digits, factor, best)

    def shown(self) -> str | None:
        """Return the figure as print has it, such as `0.824 [0.756, 0.885]`; None if it is not defined."""
        if self.value is None:
            return None
        value, low, high = (None if each is None else self._printed(each) for each in (self.value, self.low, self.high))
        return str(value) if low is None or high is None else f"{value} [{low}, {high}]"

    def _printed(self, figure: float) -> str:
        return f"{round(self.factor * figure, self.digits) + 0.0:,.{self.digits}f}"


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
        """Return the table as CSV, with both ends of the intervals in columns of their own; empty if not defined."""
        wide = [any(_bounded(row[at]) for row in self.rows) for at in self._places]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([name for at in self._places for name in _names(self.heads[at], wide[at])])
        writer.writerows([value for at in self._places for value in _values(row[at], wide[at])] for row in self.rows)
        return out.getvalue()

    @property
    def _places(self) -> range:
        return range(len(self.heads))


def _bounded(shown: Shown) -> bool:
    return isinstance(shown, Cell) and shown.low is not None


def _names(head: str, wide: bool) -> Iterator[str]:
    yield head
    if wide:
        yield from (f"{head}, low", f"{head}, high")


def _values(cell: Shown, wide: bool) -> Iterator[object]:
    """Yield the cell's fields as they were computed, rounded by nothing."""
    if isinstance(cell, Cell):
        yield from (cell.value, cell.low, cell.high) if wide else (cell.value,)
    else:
        yield from (cell, None, None) if wide else (cell,)


# Tables as LaTeX with booktabs, and the document that shows all of them; no text of a run can become a command.

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
HEADS = {
    "en": "\\documentclass{article}\n\\usepackage[T1]{fontenc}\n\\usepackage{textcomp}\n",
    "zh": "% Compile with xelatex.\n\\documentclass{ctexart}\n",
}
COMMON = (
    "\\usepackage[a4paper,margin=20mm]{geometry}\n\\usepackage{booktabs,graphicx}\n"
    "\\setlength{\\belowcaptionskip}{6pt}\n\\begin{document}\n"
)
LONGEST = 140
"""Letters of a row, at most: scaled to the width of the text they are about 7 points high."""


def escaped(text: str, language: str) -> str:
    """Return a text that LaTeX prints as it is; for letters that pdfLaTeX lacks, English prints their numbers."""
    letters = "".join(_letter(each, language) for each in " ".join(text.split()))
    return letters.replace(r" \%", r"~\%")  # no line begins with it


def _letter(sign: str, language: str) -> str:
    if sign in SPECIAL:
        return SPECIAL[sign]
    if sign in SIGNS:
        return SIGNS[sign]
    if " " <= sign <= "~" or (language == "zh" and unicodedata.category(sign)[0] not in "CZ"):
        return sign
    letter = unicodedata.normalize("NFD", sign)
    if len(letter) == 2 and letter[0].isascii() and letter[0].isalpha() and letter[1] in ACCENTS:
        return f"{ACCENTS[letter[1]]}{{{letter[0]}}}"
    return f"{{[}}U+{ord(sign):04X}{{]}}"


ACCENTS = {"\u0300": r"\`", "\u0301": r"\'", "\u0302": r"\^", "\u0303": r"\~", "\u0308": r"\"", "\u0327": r"\c"}


def fragment(table: PaperTable, language: str) -> str:
    """Return a table as a float with caption and label, to be read by the document.

    What is wider than the text is scaled down to it; what would then be too small to read stands in blocks.
    """
    blocks = [_tabular(table, columns, language) for columns in _blocks(table)]
    caption = rf"\caption{{{escaped(table.caption, language)}}}"
    label = rf"\label{{tab:{table.name}}}"
    return "\n".join(
        [r"\begin{table}[htbp]", r"\centering", caption, label, "\n\n\\medskip\n\n".join(blocks), r"\end{table}", ""]
    )


def _tabular(table: PaperTable, columns: Sequence[int], language: str) -> str:
    kinds = "".join("l" if _words(table, column) else "r" for column in columns)
    rows = [" & ".join(_cell(row[column], language) for column in columns) + r" \\" for row in table.rows]
    head = " & ".join(escaped(table.heads[column], language) for column in columns) + r" \\"
    lines = [r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    body = "\n".join([rf"\begin{{tabular}}{{{kinds}}}%", *lines])
    return f"\\resizebox{{\\ifdim\\width>\\textwidth\\textwidth\\else\\width\\fi}}{{!}}{{%\n{body}}}"


def _blocks(table: PaperTable) -> list[list[int]]:
    """Return the columns of each block, the key columns in all of them: one block unless a row is too long.

    As few blocks as a readable row allows, of about one width. A column without any figure is left out.
    """
    wide = _widths(table)
    filled = [at for at in range(len(wide)) if at < table.keys or any(_filled(row[at]) for row in table.rows)]
    blocks = _cut(wide, filled, table.keys, LONGEST)
    for longest in range(LONGEST, 0, -5):
        narrower = _cut(wide, filled, table.keys, longest)
        if len(narrower) > len(blocks):
            break
        blocks = narrower
    return blocks


def _cut(wide: Sequence[int], filled: Sequence[int], keys: int, longest: int) -> list[list[int]]:
    blocks = [list(filled[:keys])]
    for at in filled[keys:]:
        if sum(wide[each] for each in blocks[-1]) + wide[at] > longest and len(blocks[-1]) > keys:
            blocks.append(list(filled[:keys]))
        blocks[-1].append(at)
    return blocks


def _filled(cell: Shown) -> bool:
    return cell.value is not None if isinstance(cell, Cell) else cell is not None


def document(
    tables: Sequence[str],
    figures: Sequence[tuple[str, str]],
    language: str,
    absent: tuple[str, Sequence[str]] = ("", ()),
) -> str:
    """Return a document that reads tables by their names and figures by name and caption, and lists what is absent.

    `absent` is a heading, and a sentence for each thing that was not done.
    """
    lines = [HEADS[language] + COMMON]
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
        shown = cell.shown()
        text = "--" if shown is None else escaped(shown, language)
        return rf"\textbf{{{text}}}" if cell.best else text
    if cell is None:
        return "--"
    return escaped(f"{cell:,}" if isinstance(cell, int) else cell, language)


def _words(table: PaperTable, at: int) -> bool:
    """Return whether a column holds words alone; the first one names the rows."""
    return at == 0 or all(isinstance(row[at], str) for row in table.rows)


def _widths(table: PaperTable) -> list[int]:
    """Return about how many letters each column takes; Chinese ones count twice."""
    lines = [
        [str(cell.shown() if isinstance(cell, Cell) else cell) for cell in row] for row in [table.heads, *table.rows]
    ]
    return [
        3 + max(sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in line[at]) for line in lines)
        for at in range(len(table.heads))
    ]
