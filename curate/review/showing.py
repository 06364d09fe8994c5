"""What samples prove, for people to read: the panel's figures, and those of the published labels beside them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from curate.core.config import Json
from curate.review import published
from curate.review.desk import relevance_desks
from curate.review.proof import prove

Proof = Mapping[str, Any]
_CONFIRMED, _RELEVANT = ": confirmed", ": found relevant"
_SAID = {"confirmed": _CONFIRMED, "relevant": _RELEVANT}


@dataclass(frozen=True)
class Column:
    """What is known of one set of labels: the panel's by one sample, or those that are published."""

    labels: str
    """panel or published."""
    samples: tuple[str, ...]
    read: int
    outdated: bool
    shares: Mapping[str, Json]
    """As `shares` has them."""
    people: Mapping[str, Json]
    """Of a sample how far people agree with each other, as `people` has it."""


def columns(run: Path, resolved: Path | None = None) -> list[Column]:
    """Return the panel's figures by every sample that was read, and at last those of the published labels.

    `resolved` is the folder of the stage `resolve`, if it is not in its place yet.
    """
    proofs: list[Proof] = [proof for desk in relevance_desks(run) if (proof := prove(desk))["read"]]
    found = [
        Column("panel", (proof["sample"],), proof["read"], False, shares(proof, proof["kappa"]["panel"]), people(proof))
        for proof in proofs
    ]
    final: Proof | None = published.prove(run, resolved)
    if final:
        about = shares(final, final["kappa"])
        found.append(Column("published", tuple(final["samples"]), final["read"], final["outdated"], about, {}))
    return found


def shares(proof: Proof, kappa: Json) -> dict[str, Json]:
    """Return what is said of the panel's labels and of published ones alike, by name."""
    return {
        "agreement": proof["agreement"],
        **{f"{name}{_CONFIRMED}": figure for name, figure in proof["confirmed"].items()},
        **{f"{name}{_RELEVANT}": figure for name, figure in proof["relevant"].items()},
        "recall": proof["recall"],
        "kappa": kappa,
    }


def people(proof: Proof) -> dict[str, Json]:
    """Return how far people agree with each other: `pairs`, two names -> Cohen's kappas, and `alpha` of all of them."""
    return {"pairs": proof["kappa"]["people"], "alpha": proof["alpha"]}


def note(final: Proof) -> str:
    """Return what a reader must know of the figures of published labels."""
    if final["beyond"]:
        return (
            f"nothing is said of the published labels, for {', and '.join(final['beyond'])}; draw a sample of its own "
            "to measure them"
        )
    if final["outdated"]:
        return (
            "the published labels come from other answers than those that there are, so nothing is said of them; "
            "`curate resolve` makes them anew"
        )
    return (
        f"published: where people read ({final['read']:,} pairs) their answer is the label, and right as far as they "
        "are; elsewhere it is the panel's, with the panel's errors"
    )


def lines(proof: Proof, final: Proof | None = None) -> Iterator[dict[str, Json]]:
    """Yield the figures that people look at first as rows: what, value, low, high, answers.

    With those of published labels the value is called that of the `panel`, and theirs stand beside it.
    """
    labels = "labels" if final else "panel"
    words = {
        "agreement": f"agreement with the {labels}, of all decided pairs",
        "recall": "recall of relevant pairs in the pool",
        "kappa": f"kappa of {labels} and people, cut",
    }
    first = shares(proof, proof["kappa"]["panel"])
    second = shares(final, final["kappa"]) if final else {}
    named: list[tuple[str, Json, Json]] = [
        (words.get(name, name), each, second.get(name)) for name, each in first.items()
    ]
    strata = [(f"  {each['stratum']}{_SAID[each['measure']]}", each["share"], None) for each in proof["strata"]]
    plain = ("plain agreement of the rows read, not weighted", proof["plain"], None)
    named = [*named[:-2], *strata, named[-2], plain, named[-1]]
    order = proof["scale"]["order"]
    sides = (("cut", "cut"), ("grades, quadratic" if order == "ordinal" else "grades", "grades"))
    judges = {f"{judge} and people": each for judge, each in proof["kappa"]["judges"].items()}
    for who, found in (*judges.items(), *proof["kappa"]["people"].items()):
        named += [(f"kappa of {who}, {side}", found[key], None) for side, key in sides]
    if proof["kappa"]["people"]:
        named.append((f"alpha of all people, grades, {order}", proof["alpha"], None))
    named += [(f"controls right: {person}", done["controls"], None) for person, done in proof["people"].items()]
    for what, one, other in named:
        yield row(what, one, other, beside=final is not None)


def row(what: str, one: Json, other: Json = None, *, beside: bool = False) -> dict[str, Json]:
    """Return a figure with its bounds as a row; `beside` it that of the published labels."""
    shown, also = (cast("Mapping[str, Json]", each or {}) for each in (one, other))
    cells = {"figure": what, "panel" if beside else "value": shown.get("value")}
    cells |= {"low": shown.get("low"), "high": shown.get("high"), "answered": shown.get("answered")}
    return cells | ({"published": also.get("value"), "from": also.get("low"), "to": also.get("high")} if beside else {})
