"""`curate tokens`: tokens per word, unknown words and truncation of a collection, by model."""

from collections.abc import Iterator
from pathlib import Path

from curate.commands.tokens.report import TokenRequest, TokensFigures, head, overview, report, terms
from curate.runs.command import Command, Names, argument, option, setting
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import as_table

SHOWN = 5
"""Number of terms per model in the terminal."""


class TokensCommand(Command):
    """Compare tokenizers.

    Tokens per word, split words, unknown ones, texts that would be cut.
    """

    words = "tokens"
    examples = ("tokens runs/demo --models e5,minilm", "tokens texts.csv minilm --out tokens")

    folder: Path = argument("A run folder, an export, a folder of queries and corpus, or a file.")
    others: Names = argument("More models, as after --models.", (), metavar="[MODEL]...")
    models: Names = option(
        "minilm, use, e5, a folder, or a model of the hub; separated by commas.",
        (),
        flag="--models,-m",
        metavar="NAMES",
    )
    out: Path | None = option("Folder for tokens.json and README.md.", None, metavar="FOLDER")
    column: str | None = setting("Column of a file's texts; default: text or query.", None)
    terms: int = setting("Split terms listed per model.", 20, ge=0)
    limit: int | None = setting("Read the first texts alone, of queries and documents.", None, ge=1, le=2**63 - 1)
    seed: int = setting("Seed of the resamples.", 0, ge=0)

    def result(self) -> Result[TokensFigures]:
        """Return the figures of every collection of texts and model."""
        names = [*self.models, *self.others]
        request = TokenRequest(self.folder, names, self.column, self.terms, self.limit, self.out, self.seed)
        figures = report(request, self.progress)
        return Result(figures, _text(figures), figures.notes)


def _text(figures: TokensFigures) -> Iterator[str]:
    say = RecordWords("tokens/tokens")
    for collection in figures.parts:
        yield head(collection, say)
        yield as_table(overview(collection, say))
        for heading, rows in terms(collection, say, SHOWN):
            yield heading
            yield as_table(rows)
        yield ""
    yield from figures.notes
    if figures.folder:
        yield say("folder", figures)
