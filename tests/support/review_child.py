"""A process that serves a sample's page: `python review_child.py SAMPLE PORT`; it prints the address to open."""

import sys
from pathlib import Path

from curate.review import Desk, Sample
from curate.web import serve


def tell(address: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()


serve(Desk(Sample.load(Path(sys.argv[1]))), port=int(sys.argv[2]), tell=tell)
