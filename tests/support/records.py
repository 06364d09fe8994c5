"""Records of which a test needs some figures."""

from dataclasses import fields
from typing import Any, TypeVar, cast

from curate.core.figures import Record

Kind = TypeVar("Kind", bound=Record)


def partly(kind: type[Kind], **figures: object) -> Kind:
    """Return a record with these figures; the others are None."""
    return kind(**dict.fromkeys(entry.name for entry in fields(cast("Any", kind))) | figures)
