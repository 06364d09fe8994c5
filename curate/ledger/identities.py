"""Identities of judges by earlier versions, with plain values of `extra_body`, which are sealed when found."""

import json
from collections.abc import Mapping

import sqlalchemy as sa

from curate.core.config import Json, canonical, digest
from curate.ledger.tables import batches, calls, judges, ratings
from curate.system import sealed_values

RENAMED = "renamed"
"""Key of an identity that only refers to another one."""


def seal(connection: sa.Connection) -> int:
    """Replace such values by their digests; return the number of judges renamed, with all their rows.

    A judge's name is the digest of its identity, so its rows move to the new one. The old name, which exports may hold,
    stays as a reference to it.
    """
    plain = sa.select(judges).where(judges.c.identity.like(f'%"{sealed_values.KEY}":{{"%'))
    changed = 0
    for name, text in connection.execute(plain).all():
        identity = _sealed(text)
        if identity is None or (new := digest(identity)) == name:
            continue
        if not changed and connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA secure_delete=ON")  # else what was deleted stays in free pages
        for table in (calls, ratings, batches):
            connection.execute(sa.update(table).where(table.c.judge_digest == name).values(judge_digest=new))
        connection.execute(sa.delete(judges).where(judges.c.judge_digest.in_([name, new])))
        renamed = {name: canonical({RENAMED: new}), new: canonical(identity)}
        connection.execute(sa.insert(judges), [{"judge_digest": key, "identity": renamed[key]} for key in renamed])
        changed += 1
    return changed


def current(connection: sa.Connection, name: str) -> str:
    """Return the current name of a judge; the same if it was never renamed."""
    text = connection.execute(sa.select(judges.c.identity).where(judges.c.judge_digest == name)).scalar()
    return str(json.loads(text).get(RENAMED, name)) if text and RENAMED in text else name


def _sealed(text: str) -> dict[str, Json] | None:
    """Return an identity with its values sealed; None if it is not ours."""
    try:
        identity = json.loads(text)
        model = identity["model"]
        body = model[sealed_values.KEY]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(identity, Mapping) or not isinstance(body, Mapping):
        return None
    return {**identity, "model": {**model, sealed_values.KEY: sealed_values.sealed(body)}}
