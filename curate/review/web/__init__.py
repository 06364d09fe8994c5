"""The page on which people answer a sample: one pair at a time, on this machine, every answer kept before the next.

Nothing here decides anything: rows and answers come from and go through a `Desk`, as those of the spreadsheets do.
"""

from curate.review.web.serving import serve

__all__ = ["serve"]
