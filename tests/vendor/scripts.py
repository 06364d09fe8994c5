"""Scripts that a vendor in a process of its own can be given by name."""

from collections.abc import Mapping

from tests.vendor.records import Script


def last(_query: str, passage: str) -> str:
    """Read the grade at the end of a passage."""
    return passage[-1]


SCRIPTS: Mapping[str, Script] = {"last": last}
