"""What a pilot found, as lines for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curate.pipeline.pipeline_edit import lines as typed
from curate.view.text import as_table

SHOWN = 12
"""Rules in the table, the best first; all of them are in checks/pilot.json."""
Row = Mapping[str, Any]


def lines(found: Row, *, accepted: bool = False) -> Iterator[str]:
    """Yield people, the best rules, what choosing does to kappa, and the proposal, with what to type."""
    read, people = f"{found['answered']:,} of {found['pairs']:,} pairs read", found["people"]
    yield f"{read}, {found['relevant']:,} relevant, of {found['queries']:,} queries"
    yield f"people with each other: {_kappa(people)} on {people['pairs']:,} pairs read twice, the ceiling of every rule"
    rules, plain, chosen = found["rules"], found["default"], found["proposal"]
    if rules:
        yield as_table([_row(each, found["currency"]) for each in _best(rules, plain, chosen)], digits=3)
    if len(rules) > SHOWN:
        yield f"the best {SHOWN} of {len(rules)} rules; all of them are in checks/pilot.json"
    if plain:
        yield f"held against {plain['rule']}, which nobody chose: {_kappa(plain)}"
    if chosen is None:
        yield "no rule is proposed"
    else:
        yield from _proposal(found)
        if not accepted:
            settings = {tuple(name.split(".")): value for name, value in found["settings"].items()}
            yield f"to take it: --accept with --pipeline FILE, or write into the pipeline file\n{typed(settings)}"
    yield from found["warnings"]


def _proposal(found: Row) -> Iterator[str]:
    chosen = found["proposal"]
    yield f"proposed: {chosen['rule']}, the cheapest within 0.05 of the best: {_kappa(chosen)}, {_cost(chosen, found)}"
    yield (
        f"its kappa is too high, for it was chosen among {len(found['rules'])} rules on these pairs; expect less on "
        "others. A pilot makes labels cheaper, not truer"
    )
    if not found["single"]:
        yield "one judge alone is proposed only with --single: nothing is contested then, and there is no kappa"


def _best(rules: Sequence[Row], plain: Row | None, chosen: Row | None) -> list[Row]:
    top = list(rules[:SHOWN])
    return [*top, *(each for each in (plain, chosen) if each and each not in top)]


def _row(each: Row, currency: str | None) -> dict[str, object]:
    interval = "-" if each["low"] is None else f"{each['low']:.3f} to {each['high']:.3f}"
    price = None if each["price"] is None else f"{each['price']:.2g}"
    return {
        "rule": each["rule"],
        "95 % interval": interval,
        "kappa": each["kappa"],
        "calls": each["calls"],
        f"{currency or 'price'} per pair": price,
        "pairs": each["pairs"],
    }


def _kappa(each: Row) -> str:
    if each["kappa"] is None:
        return "kappa is not defined"
    bounds = "" if each["low"] is None else f" ({each['low']:.3f} to {each['high']:.3f})"
    return f"kappa {each['kappa']:.3f}{bounds}"


def _cost(each: Row, found: Row) -> str:
    price = "" if each["price"] is None else f", {each['price']:.2g} {found['currency'] or ''}".rstrip()
    return f"{each['calls']} calls{price} per pair"
