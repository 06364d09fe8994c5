"""Migration of judge identities from earlier versions, and the scales of the grades in a ledger."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from curate.core.config import Json, canonical, digest
from curate.core.errors import DataError
from curate.core.scale import FIVE, Scale
from curate.ledger.tables import batches, calls, insert, judges, ratings, rubrics
from curate.system import sealed_values

RENAMED = "renamed"
"""Key of an identity that only refers to the new name of its judge."""


def seal(connection: sa.Connection) -> int:
    """Replace plain values of `extra_body` by digests in all judge identities; return the number of renamed judges.

    A judge's name is the digest of its identity, so its rows move to the new name. The old name remains as a reference
    to the new one, because exports may contain it.
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
    """Return the current name of a judge; unchanged unless the judge was renamed."""
    text = connection.execute(sa.select(judges.c.identity).where(judges.c.judge_digest == name)).scalar()
    return str(json.loads(text).get(RENAMED, name)) if text and RENAMED in text else name


def _sealed(text: str) -> dict[str, Json] | None:
    """Return an identity with its values replaced by digests; None if its structure is unknown."""
    try:
        identity = json.loads(text)
        model = identity["model"]
        body = model[sealed_values.KEY]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(identity, Mapping) or not isinstance(body, Mapping):
        return None
    return {**identity, "model": {**model, sealed_values.KEY: sealed_values.sealed(body)}}


# Scales of the ledger's grades: that of the rubric, or of a judge that reads none.

Said = tuple[str, str, str | None]
"""Digest of a judge, digest of its rubric (empty for a judge without one), and a grade."""


@dataclass(frozen=True)
class Noted:
    """The scales stored in a ledger; rubrics and judges that have none use the default five grades."""

    rubrics: Mapping[str, Scale | None]
    """Digest of a rubric -> its scale; None if the stored scale is unreadable."""
    judges: Mapping[str, Scale]
    """Digest of a judge without rubric -> its scale."""

    def of(self, judge_digest: str, rubric_digest: str) -> Scale | None:
        """Return the scale of a judge's grades under a rubric; None if it cannot be read."""
        return self.rubrics.get(rubric_digest, FIVE) if rubric_digest else self.judges.get(judge_digest, FIVE)


def noted(connection: sa.Connection) -> Noted:
    """Return all scales stored in a ledger."""
    judge_scales = ((name, _scale_of_identity(identity)) for name, identity in connection.execute(sa.select(judges)))
    return Noted(
        {name: parsed(text) for name, text in connection.execute(sa.select(rubrics))},
        {name: scale for name, scale in judge_scales if scale},
    )


def add(connection: sa.Connection, scales: Mapping[str, Scale]) -> None:
    """Store the scales of rubrics (digest -> scale); DataError if a rubric has another scale already."""
    for rubric, scale in sorted(scales.items()):
        agree(connection, rubric, scale)
        if scale != FIVE:
            row = rubric, canonical(scale.to_json())
            connection.exec_driver_sql(insert(rubrics, connection.dialect), row)
            agree(connection, rubric, scale)  # another process may have been faster


def agree(connection: sa.Connection, rubric: str, scale: Scale, unsaid: Scale | None = None) -> None:
    """Raise DataError if a rubric's stored scale differs, or none is stored but its ratings are on the default scale.

    `unsaid` is the rubric's declared scale that is not stored yet.
    """
    text = connection.scalar(sa.select(rubrics.c.scale).where(rubrics.c.rubric_digest == rubric))
    if text is None and scale != FIVE:
        # judge by judge, for the index of ratings begins with them
        same = (ratings.c.judge_digest == judges.c.judge_digest) & (ratings.c.rubric_digest == rubric)
        rated = sa.select(sa.literal(1)).select_from(judges.join(ratings, same)).limit(1)
        unsaid = FIVE if connection.scalar(rated) else unsaid
    if text is None and unsaid is not None:
        text = canonical(unsaid.to_json())
    if text is not None and parsed(text) != scale:
        raise DataError(
            f"rubric {rubric[:12]}: its ratings in the ledger are on the scale {text}, not on "
            f"{canonical(scale.to_json())}; a scale is never changed, so give the other one to a rubric of its own"
        )


def check(connection: sa.Connection, grades: Iterable[Said]) -> None:
    """Raise DataError if a grade is not on the scale of its rubric or judge."""
    scales = noted(connection)
    for judge, rubric, grade in grades:
        scale = scales.of(judge, rubric)
        if grade is not None and (scale is None or grade not in scale.labels):
            under = f"under rubric {rubric[:12]}" if rubric else "without a rubric"
            description = "cannot be read" if scale is None else f"is {scale.described()}"
            raise DataError(
                f"the grade {grade!r} of judge {judge[:12]} {under}, whose scale {description}; a rubric's scale is "
                "noted before anything is asked, and a judge without a rubric names its `scale` in its identity"
            )


def parsed(text: str) -> Scale | None:
    """Return the scale in a JSON text; None if there is none."""
    try:
        return Scale.from_json(json.loads(text))
    except (ValueError, TypeError, AttributeError):  # no JSON, other keys, no mapping
        return None


def _scale_of_identity(identity: str) -> Scale | None:
    """Return the scale in a judge's identity; None if the identity has none, or a value of another type."""
    try:
        return parsed(json.dumps(json.loads(identity)["scale"]))
    except (ValueError, TypeError, KeyError):
        return None
