"""Points of the checklist on scores: every task neither trivial nor random, and its models above the floors."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from curate.commands.ready.evidence import ReadyEvidence, ReadyPoint, State

Figures = Mapping[str, Any]
CUT = re.compile(r"@\d+$")
"""What marks a model whose vectors were cut to a width, and which is no further model."""


def scored(known: ReadyEvidence) -> Iterator[ReadyPoint]:
    """Yield two points per task: on its difficulty, and on its floors."""
    for name in known.tasks:
        found = known.scores.get(name)
        yield _difficulty(known, name, found)
        yield _floors(known, name, found)


def _outside(known: ReadyEvidence) -> list[str]:
    """Return the evaluated models that were neither retriever nor judge, BM25 and the random encoder apart."""
    apart = {known.rules["random"], known.rules["bm25"]}
    models = known.evaluation["models"] if known.evaluation else []
    names = [each["model"] for each in models if not each["roles"] and each["model"] not in apart]
    return [name for name in names if not CUT.search(name)]


def _difficulty(known: ReadyEvidence, name: str, found: Figures | None) -> ReadyPoint:
    """Return whether a task is neither trivial nor random.

    Trivial: some model leaves less than a hundredth. Random: the best model from outside is not above a random encoder,
    by their 95 % intervals.
    """
    title = f"neither trivial nor random: {name}"

    def point(state: State, said: str) -> ReadyPoint:
        return ReadyPoint(title, state, said, None if state == "ok" else _next(known, found, trivial="leaves" in said))

    if found is None:
        return point("not measured", "no evaluation of this export")
    rows = {row["model"]: row for row in found["scores"]}
    others = [row for row in rows.values() if row["model"] != known.rules["random"]]
    if not others:
        return point("not measured", f"not scored: {_lacking(known, found)}")
    best = max(others, key=lambda row: row["main"])
    if best["main"] >= known.limits["trivial"]:
        return point("not ok", f"trivial: {best['model']} has {100 * best['main']:.2f}, which leaves nothing to tell")
    if lacking := _lacking(known, found):
        return point("not measured", f"not scored: {lacking}")
    outside = max((rows[model] for model in _outside(known) if model in rows), key=lambda row: row["main"])
    chance = rows[known.rules["random"]]
    apart = f"{outside['model']} {100 * outside['main']:.2f}, a random encoder {100 * chance['main']:.2f}"
    if not _above(outside["stock"], chance["stock"]):
        return point("not ok", f"random: the best model from outside is not above chance ({apart})")
    return point("ok", f"best {best['model']} {100 * best['main']:.2f}; {apart}")


def _above(one: Figures, other: Figures) -> bool:
    return None not in (one["low"], other["high"]) and bool(one["low"] > other["high"])


def _lacking(known: ReadyEvidence, found: Figures) -> str:
    """Return which models a task must still be scored with, in words; BM25 only where documents are ranked."""
    there = {row["model"] for row in found["scores"]}
    ranked = found["kind"] in ("Retrieval", "Reranking")
    wanted = [known.rules["random"], *([known.rules["bm25"]] if ranked else [])]
    need = known.limits["outside"] - len([model for model in _outside(known) if model in there])
    more = [f"{need} more that neither retrieved nor judged"] if need > 0 else []
    return ", ".join([*(model for model in wanted if model not in there), *more])


def _next(known: ReadyEvidence, found: Figures | None, *, trivial: bool = False) -> str:
    if trivial and found is not None and found["kind"] == "Reranking":
        return known.command("rerank")
    own = _outside(known)
    more = [*own, *(["ORGANISATION/NAME"] * (known.limits["outside"] - len(own)))]
    return known.command("evaluate", MODELS=",".join([known.rules["random"], known.rules["bm25"], *more]))


def _floors(known: ReadyEvidence, name: str, found: Figures | None) -> ReadyPoint:
    """Return whether a model is above all floors of a task: what needs no meaning."""
    title, against = f"floors: {name}", found and found["against_floors"]
    if found is None or not against:
        said = "no evaluation of this export" if found is None else "floors were not scored"
        return ReadyPoint(title, "not measured", said, _next(known, None))
    above = [each["model"] for each in against["models"] if each["above"] and each["model"] != known.rules["random"]]
    floor = f"{against['best']} ({100 * against['score']:.2f})"
    if not above:
        return ReadyPoint(title, "not ok", f"no model is above the {against['sort']} {floor}", _next(known, found))
    return ReadyPoint(title, "ok", f"{', '.join(above)} above the {against['sort']} {floor}")
