"""Local web page for answering a sample: one pair at a time, every answer saved before the next.

Rows and answers go through a `Desk`, as those of the spreadsheets do.
"""

from curate.review.web.serving import serve

__all__ = ["serve"]
