"""The key of pseudonyms and links: it lies beside the ledger, never in a run."""

import os
import secrets
from pathlib import Path

from curate.core.errors import ConfigError

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
