"""Sheets that assessors fill in with a spreadsheet: writing and reading, from bytes to bytes.

to_csv, to_xlsx    a form and the rows of a person -> a file
read               a file, as any spreadsheet saved it -> a sheet
check              a sheet -> its answers, and all its problems with their rows
"""

from curate.review.sheets.check import Returned, SheetEntry, SheetProblem, check, signed_by
from curate.review.sheets.files import to_csv, to_xlsx
from curate.review.sheets.sheet import Sheet, read

__all__ = ["Returned", "Sheet", "SheetEntry", "SheetProblem", "check", "read", "signed_by", "to_csv", "to_xlsx"]
