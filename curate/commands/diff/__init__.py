"""`curate diff`: reasons why labels of two versions of a benchmark differ, and the effect on system scores."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curate.runs.command import Command, argument, option, setting
from curate.view.answers import Result
from curate.view.text import as_table, too_few

Figures = Mapping[str, Any]
SIDE = "A run folder, or an export."
WORDS = {"before_only": "first alone", "after_only": "second alone", "text_differs": "text differs"}


class DiffCommand(Command):
    """Compare two versions.

    Every label that differs, why, and what that does to systems.
    """

    words = "diff"
    examples = ("diff runs/demo runs/demo-v2", "diff v1/export v2/export --out changes.csv")

    before: Path = argument(SIDE, complete="runs")
    after: Path = argument(SIDE, complete="runs")
    run_file: tuple[Path, ...] = option("A TREC run or mteb's predictions; may be repeated.", (), metavar="FILE")
    out: Path | None = option("File for every changed label with its reason: .csv or .parquet.", None, metavar="FILE")
    subset: str | None = setting("Subset of an mteb file that has several.", None)
    split: str | None = setting("Split of an mteb file that has several.", None)

    def result(self) -> Result[Any]:
        """Return the figures of the comparison; with `out`, write every changed label."""
        from curate.commands.diff.diff import DiffOptions, diff, need_form, write
        from curate.runs.outputs import free_place

        if self.out is not None:
            free_place(need_form(self.out), file=True)
        figures, table = diff(self.before, self.after, DiffOptions(self.run_file, self.subset, self.split))
        if self.out is not None:
            write(table, self.out)
        effects: Figures = figures["effects"] or {"queries": {"both": 0}}  # type: ignore[assignment]
        warnings = too_few(effects["queries"]["both"]) if figures["effects"] else []
        return Result({**figures, "file": self.out}, _text(figures, self.out), warnings)


def _text(figures: Figures, out: Path | None) -> Iterator[str]:
    pairs = figures["pairs"]
    yield f"{figures['before']} -> {figures['after']}"
    yield (
        f"judged pairs: {pairs['both']:,} in both, {pairs['before_only']:,} in the first alone, "
        f"{pairs['after_only']:,} in the second alone"
    )
    for text_kind, ids_by_change in figures["texts"].items():
        if counts := ", ".join(
            f"{len(ids):,} {WORDS[name]} ({', '.join(ids[:3])}{', ...' if len(ids) > 3 else ''})"
            for name, ids in ids_by_change.items()
            if ids
        ):
            yield f"{text_kind}: {counts}"
    yield from _labels(figures)
    yield from _effects(figures["effects"])
    if out is not None:
        yield f"every changed label: {out}"
    elif figures["changed"] or (figures["gains"] or {}).get("changed"):
        yield "every changed label with its reason: --out FILE.csv"


def _labels(figures: Figures) -> Iterator[str]:
    if not figures["changed"]:
        yield "no label of a document differs" if figures["kinds"] else "no label differs"
    else:
        yield f"labels that differ: {figures['changed']:,}"
        moves = [
            {"before": move["before"] or "not judged", "after": move["after"] or "not judged", "pairs": move["pairs"]}
            for move in figures["moves"]
        ]
        yield as_table(moves)
        names = {"pairs": "pairs", "relevant_won": "relevant won", "relevant_lost": "relevant lost"}
        yield as_table(
            [
                {"reason": reason["reason"], "": "", **{word: reason[name] for name, word in names.items()}}
                for reason in figures["reasons"]
            ]
        )
    if figures["gains"] and figures["gains"]["changed"]:
        yield f"graded labels that differ: {figures['gains']['changed']:,}"
        yield as_table(
            [
                {"gain": f"{_shown(move['gain_before'])} -> {_shown(move['gain_after'])}", "pairs": move["pairs"]}
                for move in figures["gains"]["moves"]
            ]
        )
        yield as_table(figures["gains"]["reasons"])
    if figures["kinds"]:
        yield "exported tables of kinds with labels of their own that differ (rows):"
        heads = {"kind": "kind", "table": "table", "both": "both", **WORDS}
        yield as_table([{heads[name]: table[name] for name in heads if name in table} for table in figures["kinds"]])
    if figures["other_votes"]:
        yield f"same label, other grades of the judges: {figures['other_votes']:,} pairs (graded labels may differ)"


def _effects(effects: Figures | None) -> Iterator[str]:
    if effects is None:
        yield "systems: neither version holds a ranking; give one by --run-file where one side is a run"
        return
    queries = effects["queries"]
    yield (
        f"nDCG@10 of the {queries['both']:,} queries with a relevant document in both "
        f"({queries['before']:,} in the first, {queries['after']:,} in the second); 95 % intervals"
    )
    yield as_table([_row(system) for system in effects["systems"]], digits=4)
    tau = effects["tau"]
    if tau["value"] is None:
        yield "order of the systems: tau-b is not defined"
    else:
        yield f"order of the systems: tau-b {tau['value']:.3f}{_between(tau, 3)}, tau_AP {effects['tau_ap']:.3f}"


def _row(system: Figures) -> dict[str, object]:
    change = system["change"]
    return {
        "system": system["system"],
        "ranking": system["ranking"],
        "before": system["ndcg_before"]["value"],
        "after": system["ndcg_after"]["value"],
        "change": None if change["value"] is None else f"{change['value']:+.4f}{_between(change, 4, '+')}",
        "rank": f"{_shown(system['rank_before'])} -> {_shown(system['rank_after'])}",
        "not judged": f"{system['holes_before']:,} -> {system['holes_after']:,}",
    }


def _shown(number: int | None) -> str:
    return "-" if number is None else str(number)


def _between(figure: Figures, digits: int, sign: str = "") -> str:
    if figure["low"] is None:
        return ""
    return f" ({figure['low']:{sign}.{digits}f} to {figure['high']:{sign}.{digits}f})"
