"""`curate view`: any pair of a run, in the browser or in the terminal."""

import csv
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from curate.core.errors import NotFound
from curate.runs.command import Command, argument, option
from curate.view.answers import PACKAGE, Result
from curate.view.text import terminal_width, wrapped

if TYPE_CHECKING:
    from curate.web.index import RunIndex
    from curate.web.shown import ShownPair


class ViewCommand(Command):
    """Look at any pair.

    Pages of a run in the browser, on this machine: pools, grades, ranks, full texts. Nothing is changed.
    """

    words = "view"
    examples = ("view runs/demo", "view runs/demo --pair q109 d1001")
    speaks_json = False

    folder: Path | None = argument("Run folder; default: the newest run.", None, complete="runs", metavar="RUN")
    open: str | None = option("Pair to begin with.", None, metavar="QUERY/DOC")
    pair: tuple[str, str] | None = option("Print one pair instead.", None, metavar="QUERY DOC")
    export: Path | None = option("Write the published pairs as pages into a new folder.", None, metavar="DIR")
    private: bool = option("With --export: contested pairs too, for yourself.", False)
    port: int = option("Port of the page; 0 takes a free one.", 8766, ge=0, le=65535)

    def result(self) -> Result[None]:
        """Serve the pages until Ctrl-C, or print a pair."""
        from curate.runs.opening import run_folder
        from curate.web import view
        from curate.web.index import opened

        run = run_folder(self.folder, "give a run folder", tell=self.notify)
        if self.pair is not None:
            width = min(terminal_width() or 80, 100)
            lines = _lines(opened(run), *self.pair)
            return Result(None, (part for line in lines for part in wrapped(line, width)))
        if self.export is not None:
            return Result(None, self._exported(opened(run), self.export))
        path = "/" if self.open is None else _address(opened(run), self.open)
        self.notify("Ctrl-C stops it")
        view(run, path=path, port=self.port, tell=typer.echo)
        return Result(None)

    def _exported(self, index: "RunIndex", folder: Path) -> list[str]:
        """Write the pages, and return lines on what they hold and what not."""
        from curate.pipeline.pipeline import Pipeline
        from curate.pipeline.stage import Context, home
        from curate.web.exporting import export

        settings = Pipeline.load(index.run / "pipeline.yaml").frozen
        context = Context(run=index.run, out=index.run, home=home(), settings=settings, progress=self.progress)
        written = export(index, context, folder, version=version(PACKAGE), private=self.private)
        counts = f"{written.pairs:,} pairs of {written.queries:,} queries in {written.files:,} pages"
        lines = [f"{counts}; open {folder}/index.html"]
        if left_out := len(index.pairs) - written.pairs:
            reasons = [] if self.private else ["contested", "of a query without a relevant document"]
            reasons += ["in an open sample", "or neither relevant nor in the top 10 of a retriever"]
            lines.append(f"left out: {left_out:,} pairs of the run: {', '.join(reasons)}")
        return lines


def _address(index: "RunIndex", pair_ids: str) -> str:
    """Return the address of the pair QUERY/DOC, whose ids may hold slashes; NotFound if the run has none such."""
    from curate.web.addresses import Links

    segments = pair_ids.split("/")
    for cut in range(1, len(segments)):
        query_id, doc_id = "/".join(segments[:cut]), "/".join(segments[cut:])
        query_id, doc_id = _of_run(index, query_id, doc_id)
        if query_id in index.query_rows and index.doc_row(doc_id) is not None:
            return Links().pair(query_id, doc_id)
    raise NotFound(f"--open {pair_ids}: no such pair in {index.run}; give QUERY/DOC by ids of the run")


def _of_run(index: "RunIndex", query_id: str, doc_id: str) -> tuple[str, str]:
    """Return the ids in the run of a pair whose ids may be those of its export, where these were renamed."""
    path = index.run / "export" / "renamed_ids.tsv"
    if not path.is_file():
        return query_id, doc_id
    with path.open(encoding="utf-8", newline="") as stream:
        old_ids = {(row["table"], row["new_id"]): row["old_id"] for row in csv.DictReader(stream, delimiter="\t")}
    if query_id not in index.query_rows:
        query_id = old_ids.get(("queries", query_id), query_id)
    if index.doc_row(doc_id) is None:
        doc_id = old_ids.get(("corpus", doc_id), doc_id)
    return query_id, doc_id


def _lines(index: "RunIndex", query_id: str, doc_id: str) -> Iterator[str]:
    """Yield a pair as lines of text; NotFound if the run has no such query or document."""
    from curate.system import resources
    from curate.web import shown

    query_id, doc_id = _of_run(index, query_id, doc_id)
    pair = shown.pair(index, query_id, doc_id)
    if pair is None:
        what = f"query {query_id!r}" if query_id not in index.query_rows else f"document {doc_id!r}"
        raise NotFound(f"--pair: no {what} in {index.run}; `curate show queries` and `curate show corpus` list the ids")
    if not pair.pooled:
        raise NotFound(f"--pair: document {doc_id!r} is not in the pool of query {query_id!r} of {index.run}")
    words = resources.words("web/templates/view.words.yaml", "en")
    yield from _figures(index, pair, words)
    for heading, text in ((words["query"], pair.query), (words["document"], f"{pair.title}\n{pair.text}".strip())):
        yield f"\n{heading}:\n{text}"


def _figures(index: "RunIndex", pair: "ShownPair", words: Mapping[str, Any]) -> Iterator[str]:
    yield words["pair"].format(query=pair.query_id, doc=pair.doc_id)
    if pair.hidden:
        yield words["hidden"]
    else:
        verdict = pair.verdict or "none"
        overruled = words["overruled"].format(policy=pair.overruled_by) if pair.overruled_by else ""
        yield f"{words['label']}: {words['verdicts'][verdict]}. {overruled or words['verdict_meanings'][verdict]}"
    meanings = index.meanings.get("en") or next(iter(index.meanings.values()), {})
    for entry in () if pair.hidden else pair.grades:
        status = words["statuses"].get(entry.grade or "none", entry.grade)
        meaning = meanings.get(entry.grade or "", "")
        yield f"  {entry.judge}: {status}" + (f" ({meaning})" if meaning else "")
    for person, grade in pair.assessors:
        yield f"  {person}: {grade}"
    for retriever, rank in pair.ranks:
        form = words["not_in"] if rank is None else words["rank_in"]
        yield f"  {form.format(retriever=retriever, depth=index.depth, rank=rank)}"
    yield f"{words['original']}: {words['original_yes'] if pair.original else words['original_no']}"
