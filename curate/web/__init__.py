"""Review app: a local web page on which assessors answer a sample, one row at a time; each answer is saved at once.

It reads rows and stores answers by a `Desk`, as the import of sheets does.
"""

from curate.web.serving import serve

__all__ = ["serve"]
