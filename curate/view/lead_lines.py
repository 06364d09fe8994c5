"""What page and card begin with, in the words of a language: titles with lines, commands between backticks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curate.view import run_figures

Words = Mapping[str, Any]
Figures = Mapping[str, Any]


@dataclass(frozen=True)
class LeadRow:
    """One thing to know: its title, and what is known of it."""

    title: str
    lines: Sequence[str]


def lead_rows(lead: Figures, words: Words) -> list[LeadRow]:
    """Return what `review.lead.lead` found, in `words`, those of the report in a language."""
    own = words["lead"]
    rule = own["rules"].get(lead["policy"], lead["policy"])
    wrote = lead.get("synthetic")
    rows = {
        **({own["synthetic"]: _synthetic(wrote, own)} if wrote else {}),
        own["worth"]: _worth(lead, words),
        own["kappa"]: _kappa(lead, own, words),
        own["cost"].format(rule): _cost(lead, own, words),
        own["read"]: [own["orders"][lead["orders"]], own["levels"][lead["levels"]]],
        own["circular"]: _circular(lead["circular"], own),
    }
    return [LeadRow(title, list(lines)) for title, lines in rows.items()]


def _synthetic(writers: Sequence[Figures], own: Words) -> Iterator[str]:
    for each in writers:
        yield own["wrote"].format(each["queries"], each["of"], each["writer"])
        if each["kin"]:
            yield own["kin"].format(each["family"], own["comma"].join(each["kin"]))
    yield own["apart"]


def _worth(lead: Figures, words: Words) -> Iterator[str]:
    found, own = lead["effective"], words["lead"]
    if found is None:
        reason = words["dependence"]["reasons"][lead["not_measured"]].format(who=words["dependence"]["who"]["judges"])
        yield own["unmeasured"].format(reason)
    else:
        yield own["of"].format(_bounded(found), found["judges"])


def _kappa(lead: Figures, own: Words, words: Words) -> Iterator[str]:
    if lead["sample"] is None:
        yield own["nobody"]
        return
    yield own["by"].format(_shown(lead["kappa"], words), lead["sample"], lead["read"])
    yield own["people"].format(_bounded(lead["people"])) if lead["people"] else own["alone"]


def _cost(lead: Figures, own: Words, words: Words) -> Iterator[str]:
    if lead["sample"]:
        for side, prefix in (("positives", ""), ("negatives", "negative_")):
            yield own[side].format(*(_shown(lead[f"{prefix}{name}"], words) for name in ("precision", "recall")))
    share = f"{lead['contested'] / lead['judged']:.1%}" if lead["judged"] else words["undefined"]
    yield own["contested"].format(share, lead["contested"])
    if lead["sample"] and lead["contested"]:
        yield own["relevant"].format(*(_shown(lead[name], words) for name in ("relevant", "held")))
    if not lead["sample"]:
        yield own["unread"]


def _circular(judges: Sequence[Figures] | None, own: Words) -> Iterator[str]:
    if judges is None:
        yield own["unchecked"]
        return
    known = sorted(judges, key=lambda each: -(each["effect"]["value"] or 0))
    warned = [each for each in known if each["warned"]]
    shown = [own["favour"].format(each["judge"], _bounded(each["effect"], "+.3f")) for each in warned or known[:1]]
    yield own["warned" if warned else "quiet"].format(own["comma"].join(shown)) if shown else own["unscored"]


def _shown(figure: Figures | None, words: Words) -> str:
    return _bounded(figure) if figure else str(words["undefined"])


def _bounded(figure: Figures, form: str = ".2f") -> str:
    """Return a figure with its interval, such as `0.62 (0.55–0.70)`."""
    value = format(figure["value"], form)
    if figure["low"] is None:
        return value
    shown = run_figures.ranged(0.0, (figure["low"], figure["high"])) or ""
    return f"{value} {shown.partition(' ')[2]}"
