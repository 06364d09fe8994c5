"""Sentences of a card on retrievers with an approximate index."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from curate.core.config import Json
from curate.pipeline.stage import Context
from curate.system.files import read_json
from curate.view.run_figures import only_heuristics


def on_card(context: Context) -> dict[str, Json]:
    """Return a sentence per retriever: its index, how that was built and asked, and its recall; empty without one."""
    report = context.report("pool")
    indexes: Any = report.facts.get("indexes") if report else None
    return {
        f"documents that {name} looked at": _index_sentence(index)
        for name, index in (indexes or {}).items()
        if index.get("recall") is not None
    }


def _index_sentence(index: Mapping[str, Any]) -> str:
    numbers = ", ".join(f"{name} {parameter}" for name, parameter in index["parameters"].items())
    return (
        f"those that an approximate index finds ({index['engine']} {index['index']}: {numbers}); recall@"
        f"{index['recall_at']} against exact search is {index['recall']} on {index['recall_queries']} queries, "
        f"{index['lowest_recall']} on the worst of them"
    )


def heuristic(context: Context) -> bool:
    """Return whether only heuristics judged, whose figures are no evidence."""
    report = context.report("judge")
    panel = read_json(context.folder("judge") / "panel.json") if report else {}
    heuristics = cast("Sequence[str]", report.facts.get("heuristic") or ()) if report else ()
    return bool(panel) and only_heuristics(list(panel), heuristics)
