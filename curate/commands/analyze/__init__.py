"""`curate analyze`: why judges disagree, and how hard the queries are."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curate.runs.command import option
from curate.runs.options import AskingModels, OnPipeline, Plannable
from curate.view.answers import Result
from curate.view.text import HEURISTIC, as_table, caveats, ranged, too_few

Figures = Mapping[str, Any]


class AnalyzeCommand(OnPipeline, Plannable, AskingModels):
    """Explain disagreement.

    Why judges disagree and how hard queries are: by counts, and with --model by labels of a sample.
    """

    words = "analyze"
    examples = ("analyze", "analyze --model qwen --sample 100 --plan")

    model: str | None = option(
        "Language model that labels a sample; by default nothing is sent.", None, complete="models", metavar="NAME"
    )
    sample: int = option("Number of contested pairs, and of queries, that the model labels.", 100, ge=1)

    def result(self) -> Result[Any]:
        """Return the figures; with `plan`, what the model would be asked."""
        from curate.commands.analyze import analysis

        work = self.open_run()
        work.consent = self.consent()
        options = analysis.AnalysisOptions(self.model, self.sample)
        if self.plan:
            return self.cost_estimate(analysis.planned(work, options))
        summary: Figures = analysis.analyze(work, options)
        queries = summary["all"]["queries"] if summary["all"] else None
        return Result(summary, _text(summary), caveats(summary["heuristic"], queries))


def _text(summary: Figures) -> Iterator[str]:
    if summary["heuristic"]:
        yield HEURISTIC
    bm25 = summary["bm25"]
    yield (
        f"How hard queries are, by what can be counted (BM25 `{bm25['retriever']}`, {bm25['tokens']}, "
        f"to rank {bm25['depth']}; means over queries)"
    )
    if summary["all"] is None:
        yield "not defined: no query has a positive"
    else:
        yield as_table(list(_groups([summary["all"], *summary["by_bm25_rank"]], "best rank of a positive")))
        yield from too_few(summary["all"]["queries"])
    questions = summary["questions"]
    if not questions:
        yield "why judges disagree, and L1 / L2 / L3, are labelled by a model: name one with --model"
        return
    for name, title, what in (
        ("reasons", "Why judges disagree", "contested pairs"),
        ("difficulty", "How hard queries are, by a model", "queries, each with one of its positives"),
    ):
        yield from _labelled(questions[name], title, what)


def _labelled(question: Figures, title: str, what: str) -> Iterator[str]:
    shares = question["shares"]
    labels = " / ".join(share["label"] for share in shares)
    drawn = f"{question['drawn']:,} of {question['population']:,} {what}"
    yield f"\n{title}: {drawn}, by {question['model']}, {question['prompt']}"
    if shares[0]["value"] is None:
        yield f"{labels}: not defined, for nothing was labelled"
    else:
        percents = " / ".join(f"{100 * share['value']:.0f}" for share in shares)
        yield f"{labels}: {percents} %"
        yield as_table([{"label": share["label"], "count": share["count"], "share": ranged(share)} for share in shares])
    lacking = {name: count for name, count in question["statuses"].items() if count and name != "labelled"}
    if lacking:
        yield "without a label: " + ", ".join(f"{count:,} {name}" for name, count in lacking.items())
    if question["groups"]:
        yield as_table(list(_groups(question["groups"], "label")))


def _groups(groups: Sequence[Figures], title: str) -> Iterator[dict[str, object]]:
    for group in groups:
        yield {
            title: group["name"],
            "queries": group["queries"],
            "share": f"{100 * group['share']:.0f} %",
            "words in closest positive": ranged(group["overlap"]),
            "in all positives": ranged(group["overlap_mean"]),
            "characters": ranged(group["length"], 1),
            "median rank": "not defined" if group["median_rank"] is None else f"{group['median_rank']:g}",
            "found": group["found"],
        }
