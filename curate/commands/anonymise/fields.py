"""Fields of a row with texts to mask, and keys of the spans."""

from dataclasses import dataclass

KEY, SPARE = "spans", "pii_spans"
"""Key of the spans in a JSONL row, and the key used instead in a row that already has the first one."""


@dataclass(frozen=True)
class Fields:
    """Names of the fields of a row with texts to mask."""

    names: tuple[str, ...] = ("text", "title")
    optional: frozenset[str] = frozenset({"title"})
    """Fields that a row need not have."""

    @classmethod
    def of(cls, names: tuple[str, ...], *, missing: bool) -> "Fields":
        """Return the fields that a user names, by default `text` and `title`; with `missing`, all are optional."""
        chosen = cls(names, frozenset()) if names else cls()
        return cls(chosen.names, frozenset(chosen.names)) if missing else chosen
