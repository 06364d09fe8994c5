"""Annotation sheets, which assessors fill in with a spreadsheet: writing and reading files as bytes.

to_csv, to_xlsx    form and an assessor's rows -> content of a file
read               content of a file, as saved by any spreadsheet -> sheet
check              sheet -> its answers, and all problems with their rows
"""

from curate.review.sheets.check import Returned, SheetEntry, SheetProblem, check, signed_by
from curate.review.sheets.files import to_csv, to_xlsx
from curate.review.sheets.sheet import Sheet, read

__all__ = ["Returned", "Sheet", "SheetEntry", "SheetProblem", "check", "read", "signed_by", "to_csv", "to_xlsx"]
