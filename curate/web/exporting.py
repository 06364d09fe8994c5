"""The pages of a run as files, which open without a server and hold nothing that must not leave."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from curate.ask import privacy_guard
from curate.core.errors import UserError
from curate.core.languages import served_by
from curate.core.progress import StepLabel
from curate.core.protocols import Progress
from curate.pipeline.stage import Context
from curate.review import flags
from curate.runs.published_ids import published_identifiers
from curate.system import resources
from curate.system.files import write_text
from curate.view import charts
from curate.web import shown
from curate.web.addresses import FileLinks, anchor
from curate.web.filters import PAGE, TOP, QueryOrder, query_rows, rank
from curate.web.index import RunIndex
from curate.web.pages import FILES, environment, rendered
from curate.web.run_state import state_of

STYLES = ("report.css", "view.css", "icon.svg")
TABS = ("queries", "judges")


@dataclass(frozen=True)
class Exported:
    """What an exported folder holds."""

    queries: int
    pairs: int
    files: int


def export(index: RunIndex, context: Context, folder: Path, *, version: str, private: bool = False) -> Exported:
    """Write the published pairs of a run as pages: relevant ones, and those in the top of a retriever, in full text.

    With `private`, contested and incomplete pairs too. No page has a reply, a note or the name of an assessor.
    UserError if personal data is unresolved, or if the folder is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"--export {folder}: not empty; give a new folder")
    exported = _leaving(index, private=private)
    if exported.queries.is_empty():
        raise UserError(
            f"--export: found no published pair in {index.run}, expected labels of `curate resolve`; pairs of an open "
            "sample are hidden until it is read"
        )
    flags.stop("view --export", index.run)
    texts = {"queries": exported.queries["query_id"], "corpus": exported.docs["doc_id"]}
    leaving = [(pl.col("table") == table) & pl.col("id").is_in(ids.implode()) for table, ids in texts.items()]
    privacy_guard.stop("view --export", privacy_guard.residual(context).filter(pl.any_horizontal(leaving)), context)
    exported = _named(exported, context)
    pages = dict(_pages(exported, version, context.progress))
    (folder / "q").mkdir(parents=True)
    for name, html in pages.items():
        write_text(folder / name, html)
    for name in STYLES:
        write_text(folder / name, resources.template(FILES[name][1]))
    write_text(folder / "grades.css", charts.styles(exported.scale))
    return Exported(len(exported.queries), len(exported.pairs), len(pages))


def _leaving(index: RunIndex, *, private: bool) -> RunIndex:
    """Return the index of the pairs that may leave, of queries with a relevant document, without assessors' answers."""
    read = pl.any_horizontal([rank(name) <= TOP for name in index.retrievers] or [pl.lit(value=False)])
    published = pl.col("published").is_not_null() & ((pl.col("published") == 1) | read)
    undecided = pl.col("verdict").is_not_null() & pl.col("published").is_null() & read  # a hidden pair has no verdict
    pairs = index.pairs.filter(published | undecided if private else published)
    with_relevant = index.pairs.filter(pl.col("published") == 1)["query"].unique()
    if not private:
        pairs = pairs.filter(pl.col("query").is_in(with_relevant.implode()))
    queries, docs = (sorted(set(pairs[name])) for name in ("query", "doc"))
    numbers = {name: {old: new for new, old in enumerate(rows)} for name, rows in (("query", queries), ("doc", docs))}
    pairs = pairs.with_columns(
        pl.col(name).replace_strict(of_old, return_dtype=pl.Int32).alias(name) for name, of_old in numbers.items()
    )
    return replace(
        index, queries=index.queries[queries], docs=index.docs[docs], pairs=pairs, hidden=index.hidden.clear()
    )


def _named(index: RunIndex, context: Context) -> RunIndex:
    """Return the index under published ids."""
    ids = published_identifiers(context)
    return replace(index, queries=ids.of(index.queries), docs=ids.of(index.docs))


def _pages(index: RunIndex, version: str, progress: Progress) -> Mapping[str, str]:
    """Return path -> HTML of every page."""
    templates, language = environment(), served_by(index.language, ("zh", "en"))
    links, below = FileLinks(rows=index.query_rows), FileLinks(rows=index.query_rows, above="../")
    common: Mapping[str, Any] = {"tabs": TABS, "version": version, "proof": ""}
    verdicts = shown.verdict_counts(index)
    state = state_of(index.run, language)
    pages = {
        "index.html": rendered(
            templates, index, "overview", language, links=links, verdicts=verdicts, state=state, **common
        )
    }
    matrices = shown.matrices(index)
    pages["judges.html"] = rendered(templates, index, "judges", language, links=links, matrices=matrices, **common)
    rows = query_rows(index, QueryOrder())
    total = -(-len(rows) // PAGE)
    for number in range(1, total + 1):
        pages[links.page("queries", {"page": str(number)})] = rendered(
            templates,
            index,
            "queries",
            language,
            links=links,
            rows=rows.slice((number - 1) * PAGE, PAGE).to_dicts(),
            total=len(rows),
            page=number,
            pages=total,
            link=lambda to: links.page("queries", {"page": str(to)}),
            **common,
        )
    label = StepLabel("writing pages", "queries")
    for row, query in enumerate(index.queries.iter_rows(named=True)):
        progress(label, len(index.queries), row)
        name, pool = query["query_id"], index.pool(row)
        held = list(shown.rows(index, pool))
        pairs = [shown.pair(index, name, entry["doc_id"]) for entry in held]
        pages[links.query(name)] = rendered(
            templates,
            index,
            "exported",
            language,
            links=below,
            query_id=name,
            query=query,
            rows=held,
            pairs=[replace(pair, assessors=()) for pair in pairs if pair],
            pool_link=lambda entry: anchor(entry["doc_id"]),
            **common,
        )
    progress(label, len(index.queries), len(index.queries))
    return pages
