"""`curate analyze`: why judges disagree, and how hard the queries are."""

from collections.abc import Iterator

from curate.commands.analyze.analysis import AnalysisFigures, QuestionFigures, analyze, planned
from curate.runs.command import option
from curate.runs.options import AskingModels, OnPipeline, Plannable
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import HEURISTIC, as_table, caveats, too_few


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

    def result(self) -> Result[AnalysisFigures]:
        """Return the figures; with `plan`, what the model would be asked."""
        work = self.open_run()
        work.consent = self.consent()
        if self.plan:
            return self.cost_estimate(planned(work, self.model, self.sample))
        figures = analyze(work, self.model, self.sample)
        return Result(figures, _text(figures), caveats(figures.heuristic, figures.all.queries if figures.all else None))


def _text(figures: AnalysisFigures) -> Iterator[str]:
    say = RecordWords("analyze/analyze", empty="not defined")
    if figures.heuristic:
        yield HEURISTIC
    yield say("bm25", figures.bm25)
    if figures.all is None:
        yield say("no_positive")
    else:
        groups = [figures.all, *figures.by_bm25_rank]
        yield as_table([say.cells("group", group, title=say("rank")) for group in groups])
        yield from too_few(figures.all.queries)
    if not figures.questions:
        yield say("no_model")
    for name, question in figures.questions.items():
        yield say(name, question)
        yield from _labelled(question, say)


def _labelled(question: QuestionFigures, say: RecordWords) -> Iterator[str]:
    labels = " / ".join(share.label for share in question.shares)
    if question.shares[0].value is None:
        yield say("no_label", labels=labels)
    else:
        percents = " / ".join(f"{100 * (share.value or 0):.0f}" for share in question.shares)
        yield say("shares", labels=labels, percents=percents)
        yield as_table([say.cells("share", share) for share in question.shares])
    lacking = {name: count for name, count in question.statuses.items() if count and name != "labelled"}
    if lacking:
        yield say("lacking", counts=", ".join(f"{count:,} {name}" for name, count in lacking.items()))
    if question.groups:
        yield as_table([say.cells("group", group, title=say("label")) for group in question.groups])
