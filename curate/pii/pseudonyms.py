"""The key of pseudonyms and links: it lies beside the ledger, never in a run."""

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import polars as pl

from curate.core.errors import ConfigError, DataError
from curate.pii.masking import link
from curate.system.files import read_json

VARIABLE = "CURATE_PII_KEY"
_FEWEST = 16


def secret(home: Path) -> bytes:
    """Return the key in $CURATE_PII_KEY, else that in the file `pii.key` of `home`, which is drawn at the first need.

    A holder of the key can find out by trying which telephone number a pseudonym or a link stands for: so it is in no
    table, log or manifest, and the file can be read by its owner only.
    """
    given = os.environ.get(VARIABLE)
    if given is not None:
        if len(given) < _FEWEST:
            raise ConfigError(f"{VARIABLE}: found {len(given)} characters, expected at least {_FEWEST} that are random")
        return given.encode()
    path = home / "pii.key"
    if not path.exists():
        _draw(path)
    return path.read_bytes()


def _draw(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32))
    try:
        os.link(new, path)  # of two processes that draw at once, one wins, and both read the same
    except FileExistsError:
        pass
    finally:
        new.unlink()


# Ids that hold personal data give way to names that say nothing: `masked-` and 24 letters.

PREFIX = "masked-"
FIELD = "id"
"""What the id of a row is called among the fields of its table."""
COLUMNS = {"queries": ("query_id",), "corpus": ("doc_id",), "aliases": ("old_id",), "dropped": ("id",)}
"""Tables of `mask` in which a renamed id can stand, and where."""
MARK = "ids_key"
"""Fact of `mask` that tells one key from another, where something was renamed."""
_LETTERS = 24
_SPELLED = str.maketrans("0123456789abcdef", "bcdfghjklmnpqrst")
"""A name has neither digits, of which some would make a telephone number, nor vowels, which make words."""


def name(key: bytes, raw: str) -> str:
    """Return what an id is called instead; ids that differ in anything have different names.

    HMAC-SHA-256, cut to 96 bits: among ten million ids two names are equal with a probability of 1e-15.
    """
    drawn = hmac.new(key, f"{FIELD}\0{raw}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
    return PREFIX + drawn[:_LETTERS].translate(_SPELLED)


def mark(key: bytes) -> str:
    """Return what tells one key from another."""
    return link(key, FIELD, "")


class IdNames:
    """What ids of a source are called in a run: the name of one that was renamed, every other as it is."""

    def __init__(self, folder: Path, home: Path) -> None:
        """`folder` is that of the stage `mask`, `home` that of the key; neither is looked at before an id is asked."""
        self._folder, self._home = folder, home

    def __call__(self, raw: str) -> str:
        """Return what an id is called; DataError if ids were renamed by another key."""
        if not self.known:
            return raw
        named = name(self._key, raw)
        return named if named in self.known else raw

    def follow(self, frame: pl.DataFrame, columns: Iterable[str] = ("query_id", "doc_id")) -> pl.DataFrame:
        """Return a table from outside with its ids as the run calls them."""
        if not self.known:
            return frame
        return frame.with_columns(
            pl.Series(column, list(map(self, frame[column])), dtype=pl.String) for column in columns
        )

    @cached_property
    def known(self) -> frozenset[str]:
        """Return the names that were given in place of ids."""
        found: set[str] = set()
        for table, columns in COLUMNS.items():
            path = self._folder / f"{table}.parquet"
            if path.is_file():
                for column in columns:
                    rows = pl.scan_parquet(path).select(pl.col(column)).filter(pl.col(column).str.contains(PREFIX))
                    found.update(part for each in rows.collect()[column] for part in each.split(" "))
        return frozenset(each for each in found if each.startswith(PREFIX))

    @cached_property
    def _key(self) -> bytes:
        key, made = secret(self._home), self._folder / "stage.json"
        by = read_json(made)["report"]["facts"].get(MARK) if made.is_file() else None
        if by not in (None, mark(key)):
            raise DataError(
                f"{self._folder}: ids were renamed by another key than that of {self._home / 'pii.key'}, so no id of "
                "the source can be found; give the key by CURATE_PII_KEY, or mask again: curate mask --force"
            )
        return key
