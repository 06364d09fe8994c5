"""Tables as LaTeX with booktabs, and the document that shows all of them; no text of a run can become a command."""

import unicodedata
from collections.abc import Sequence

from curate.evaluation.paper.table import Cell, PaperTable, Shown

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
    "\\setlength{\\belowcaptionskip}{4pt}\n\\begin{document}\n"
)
WIDE = 95
"""Letters of a row from which a table is scaled to the width of the text."""


def escaped(text: str, language: str) -> str:
    """Return a text that LaTeX prints as it is; for letters that pdfLaTeX lacks, English prints their numbers."""
    return "".join(_letter(each, language) for each in " ".join(text.split()))


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
    """Return a table as a float with caption and label, to be read by the document."""
    columns = "".join(
        "l" if all(isinstance(row[at], str) for row in table.rows) else "r" for at in range(len(table.heads))
    )
    rows = [" & ".join(_cell(cell, language) for cell in row) + r" \\" for row in table.rows]
    head = " & ".join(escaped(each, language) for each in table.heads) + r" \\"
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        head,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    body = "%\n".join(lines[:1]) + "\n" + "\n".join(lines[1:])
    if _width(table) > WIDE:
        body = f"\\resizebox{{\\textwidth}}{{!}}{{%\n{body}}}"
    caption = rf"\caption{{{escaped(table.caption, language)}}}"
    return "\n".join(
        [r"\begin{table}[htbp]", r"\centering", caption, rf"\label{{tab:{table.name}}}", body, r"\end{table}", ""]
    )


def document(tables: Sequence[str], figures: Sequence[tuple[str, str]], language: str) -> str:
    """Return a document that reads tables by their names, and figures by name and caption."""
    lines = [HEADS[language] + COMMON]
    lines += [f"\\input{{tables/{name}.tex}}\n" for name in tables]
    lines += [
        "\\begin{figure}[htbp]\n\\centering\n"
        f"\\includegraphics[width=\\textwidth]{{figures/{name}.pdf}}\n"
        f"\\caption{{{escaped(caption, language)}}}\n\\label{{fig:{name}}}\n\\end{{figure}}\n"
        for name, caption in figures
    ]
    return "\n".join([*lines, "\\clearpage\n\\end{document}\n"])


def _cell(cell: Shown, language: str) -> str:
    if isinstance(cell, Cell):
        shown = cell.shown()
        text = "--" if shown is None else escaped(shown, language)
        return rf"\textbf{{{text}}}" if cell.best else text
    if cell is None:
        return "--"
    return escaped(f"{cell:,}" if isinstance(cell, int) else cell, language)


def _width(table: PaperTable) -> int:
    """Return about how many letters a row takes."""
    lines = [
        [str(cell.shown() if isinstance(cell, Cell) else cell) for cell in row] for row in [table.heads, *table.rows]
    ]
    return sum(max(len(line[at]) for line in lines) for at in range(len(table.heads)))
