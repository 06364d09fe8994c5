"""Secret key of pseudonyms and links, stored next to the ledger and never in a run; pseudonyms of ids."""

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
    """Return the key: the value of $CURATE_PII_KEY, else the file `pii.key` in `home`, which is created on first use.

    Whoever has the key can test whether a pseudonym or link belongs to a given telephone number. So the key is in no
    table, log or manifest, and only its owner can read the file.
    """
    configured = os.environ.get(VARIABLE)
    if configured is not None:
        if len(configured) < _FEWEST:
            raise ConfigError(
                f"{VARIABLE}: found {len(configured)} characters, expected at least {_FEWEST} that are random"
            )
        return configured.encode()
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
"""Field name of a row's id in the table of spans."""
COLUMNS = {"queries": ("query_id",), "corpus": ("doc_id",), "aliases": ("old_id",), "dropped": ("id",)}
"""Table of the stage `mask` -> columns that may contain pseudonyms of ids."""
MARK = "ids_key"
"""Key of the fact of the stage `mask` with the key's mark (see `mark`), present if ids were renamed."""
_LETTERS = 24
_SPELLED = str.maketrans("0123456789abcdef", "bcdfghjklmnpqrst")
"""Translation of hexadecimal digits to consonants: digits could form a telephone number, and vowels words."""


def name(key: bytes, raw: str) -> str:
    """Return the pseudonym of an id, which depends on the key.

    Truncated HMAC-SHA-256 (96 bits): among ten million ids the probability of a collision is 1e-15.
    """
    drawn = hmac.new(key, f"{FIELD}\0{raw}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
    return PREFIX + drawn[:_LETTERS].translate(_SPELLED)


def mark(key: bytes) -> str:
    """Return a digest that identifies the key without revealing it."""
    return link(key, FIELD, "")


class IdNames:
    """Function from source ids to the ids of a run: pseudonyms of renamed ids, other ids unchanged."""

    def __init__(self, folder: Path, home: Path) -> None:
        """`folder` is that of the stage `mask`, `home` that of the key; both are read at the first lookup of an id."""
        self._folder, self._home = folder, home

    def __call__(self, raw: str) -> str:
        """Return the id in the run; DataError if ids were renamed with another key."""
        if not self.known:
            return raw
        pseudonym = name(self._key, raw)
        return pseudonym if pseudonym in self.known else raw

    def follow(self, frame: pl.DataFrame, columns: Iterable[str] = ("query_id", "doc_id")) -> pl.DataFrame:
        """Return a table from outside the run with its ids replaced by those of the run."""
        if not self.known:
            return frame
        return frame.with_columns(
            pl.Series(column, list(map(self, frame[column])), dtype=pl.String) for column in columns
        )

    @cached_property
    def known(self) -> frozenset[str]:
        """Return all pseudonyms of ids in the tables of the stage `mask`."""
        names: set[str] = set()
        for table, columns in COLUMNS.items():
            path = self._folder / f"{table}.parquet"
            if path.is_file():
                for column in columns:
                    rows = pl.scan_parquet(path).select(pl.col(column)).filter(pl.col(column).str.contains(PREFIX))
                    names.update(single_id for ids in rows.collect()[column] for single_id in ids.split(" "))
        return frozenset(pseudonym for pseudonym in names if pseudonym.startswith(PREFIX))

    @cached_property
    def _key(self) -> bytes:
        key, record_path = secret(self._home), self._folder / "stage.json"
        by = read_json(record_path)["report"]["facts"].get(MARK) if record_path.is_file() else None
        if by not in (None, mark(key)):
            raise DataError(
                f"{self._folder}: ids were renamed by another key than that of {self._home / 'pii.key'}, so no id of "
                "the source can be found; give the key by CURATE_PII_KEY, or mask again: curate mask --force"
            )
        return key
