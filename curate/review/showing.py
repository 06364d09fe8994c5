"""Tables of the figures that samples give for the panel's labels and, next to them, for the published labels."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from curate.core.config import Json
from curate.core.figures import Record
from curate.review import published
from curate.review.desk import relevance_desks
from curate.review.proof import prove

Proof = Mapping[str, Any]
_CONFIRMED, _RELEVANT = ": confirmed", ": found relevant"
_SAID = {"confirmed": _CONFIRMED, "relevant": _RELEVANT}


@dataclass(frozen=True)
class Column:
    """Figures of one set of labels: those of the panel, by one sample, or the published ones."""

    labels: str
    """`panel` or `published`."""
    samples: tuple[str, ...]
    read: int
    outdated: bool
    shares: Mapping[str, Json]
    """Figures as returned by `shares`."""
    people: Mapping[str, Json]
    """Agreement between people in a sample, as returned by `people`."""


def columns(run: Path, resolved: Path | None = None) -> list[Column]:
    """Return one column of the panel's figures per sample with answers, and last that of the published labels, if any.

    `resolved` is the folder of the stage `resolve` if it is not yet `run/resolve`.
    """
    proofs: list[Proof] = [proof.to_json() for review in relevance_desks(run) if (proof := prove(review)).read]
    listed = [
        Column("panel", (proof["sample"],), proof["read"], False, shares(proof, proof["kappa"]["panel"]), people(proof))
        for proof in proofs
    ]
    final: Proof | None = published.prove(run, resolved)
    if final:
        published_shares = shares(final, final["kappa"])
        listed.append(
            Column("published", tuple(final["samples"]), final["read"], final["outdated"], published_shares, {})
        )
    return listed


def shares(proof: Proof, kappa: Json) -> dict[str, Json]:
    """Return name -> estimate: those in the result of `proof.prove` or `published.prove`, and `kappa` unchanged."""
    return {
        "agreement": proof["agreement"],
        **{f"{name}{_CONFIRMED}": figure for name, figure in proof["confirmed"].items()},
        **{f"{name}{_RELEVANT}": figure for name, figure in proof["relevant"].items()},
        "recall": proof["recall"],
        "kappa": kappa,
    }


def people(proof: Proof) -> dict[str, Json]:
    """Return the agreement of assessors: `pairs` (two names -> Cohen's kappas) and Krippendorff's `alpha` of all."""
    return {"pairs": proof["kappa"]["people"], "alpha": proof["alpha"]}


def note(final: Proof) -> str:
    """Return a sentence on how the figures of published labels come about, or why there are none."""
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


def lines(proof: Proof, final: Proof | None = None, *, planted: bool = True) -> Iterator[dict[str, Json]]:
    """Yield the main figures as table rows: figure (its name), value, low, high, answered.

    If `final`, the figures of published labels, is given, the value column is named `panel`, and the columns published,
    from, to are added. If many rows are open, `at worst` and `at best` are the bounds of the panel's figures for any
    answers to these. `planted` is whether the sample has controls.
    """
    labels = "labels" if final else "panel"
    words = {
        "agreement": f"agreement with the {labels}, of all decided pairs",
        "recall": "recall of relevant pairs in the pool",
        "kappa": f"kappa of {labels} and people, cut",
    }
    first = shares(proof, proof["kappa"]["panel"])
    second = shares(final, final["kappa"]) if final else {}
    rows: list[tuple[str, Json, Json]] = [
        (words.get(name, name), share, second.get(name)) for name, share in first.items()
    ]
    strata = [
        (f"  {stratum['stratum']}{_SAID[stratum['measure']]}", stratum["share"], None) for stratum in proof["strata"]
    ]
    plain = ("plain agreement of the rows read, not weighted", proof["plain"], None)
    rows = [*rows[:-2], *strata, rows[-2], plain, rows[-1]]
    order = proof["scale"]["order"]
    sides = (("cut", "cut"), ("grades, quadratic" if order == "ordinal" else "grades", "grades"))
    judges = {f"{judge} and people": kappas for judge, kappas in proof["kappa"]["judges"].items()}
    for who, kappas in (*judges.items(), *proof["kappa"]["people"].items()):
        rows += [(f"kappa of {who}, {side}", kappas[key], None) for side, key in sides]
    if proof["kappa"]["people"]:
        rows.append((f"alpha of all people, grades, {order}", proof["alpha"], None))
    readers = proof["people"].items() if planted else ()
    rows += [(f"controls right: {person}", figures["controls"], None) for person, figures in readers]
    worst_case = proof.get("worst_case")
    bounds = {words.get(name, name): figure for name, figure in shares(worst_case, None).items()} if worst_case else {}
    for what, panel_figure, final_figure in rows:
        cells = row(what, panel_figure, final_figure, beside=final is not None)
        worst = cast("Mapping[str, Json]", bounds.get(what) or {})
        yield cells | ({"at worst": worst.get("low"), "at best": worst.get("high")} if worst_case else {})


def row(what: str, one: object, other: object = None, *, beside: bool = False) -> dict[str, Json]:
    """Return a figure with its bounds as a table row; `beside` adds `other`, that of the published labels."""
    figure, also = (
        estimate.to_json() if isinstance(estimate, Record) else cast("Mapping[str, Json]", estimate or {})
        for estimate in (one, other)
    )
    cells = {"figure": what, "panel" if beside else "value": figure.get("value")}
    cells |= {"low": figure.get("low"), "high": figure.get("high"), "answered": figure.get("answered")}
    return cells | ({"published": also.get("value"), "from": also.get("low"), "to": also.get("high")} if beside else {})
