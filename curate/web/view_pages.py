"""Pages of a run, read-only: overview, queries, pools and pairs, documents, judges, search."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlencode

import polars as pl
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from curate.core.errors import DataError, UserError
from curate.system import resources
from curate.view import charts
from curate.web import addresses, shown
from curate.web.filters import PAGE, PairFilter, QueryOrder, query_rows
from curate.web.guard import HEADERS
from curate.web.index import RunIndex, answers_mark, cache_of, marks, opened
from curate.web.pages import LANGUAGES, environment, fields, language_of, remembering, rendered
from curate.web.replies import JudgedTexts
from curate.web.run_state import state_of

TABS = ("overview", "queries", "pairs", "judges")
LONGEST = 200
"""Characters of a search."""
_GONE = 404


@dataclass
class IndexSource:
    """Index of a run that follows its tables: made again after a stage, and kept while one is put in place."""

    run: Path
    _index: RunIndex | None = None
    _key: tuple[str, str] = ("", "")
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def cache(self) -> Path:
        """Return the folder of the index."""
        return cache_of(self.run)

    def now(self) -> RunIndex:
        """Return the index of today's tables and answers, or the last whole one while the tables change."""
        with self._lock:
            key = (marks(self.run), answers_mark(self.run))
            if self._index is None or key != self._key:
                try:
                    self._index, self._key = opened(self.run), key
                except (DataError, OSError):
                    if self._index is None:
                        raise
            return self._index


class ViewPages:
    """Handlers of the pages of a run; `reviewed` is whether the app has pages of a sample too."""

    def __init__(self, source: IndexSource, version: str, base: str = "", *, reviewed: bool = False) -> None:
        self.source, self.version, self.reviewed, self.templates = source, version, reviewed, environment()
        self.links = addresses.Links(base)

    def routes(self) -> list[Route]:
        """Return the addresses and their handlers."""
        return [
            Route("/", self.overview),
            Route("/queries", self.queries),
            Route("/q/{rest:path}", self.pool),
            Route("/pairs", self.pairs),
            Route("/doc/{rest:path}", self.doc),
            Route("/judges", self.judges),
            Route("/judges.{kind}", self.judges_file),
            Route("/search", self.search, methods=["GET", "POST"]),
            Route("/static/grades.css", self.colours),
        ]

    def overview(self, request: Request) -> Response:
        """Show what the run holds."""
        index = self.source.now()
        chosen = PairFilter(index, {})
        return self._page(
            request,
            index,
            "overview",
            state=state_of(index.run, language_of(request, index.language)),
            verdicts=shown.verdict_counts(index),
            filter=chosen,
            orders=_orders(index)[1:],
        )

    def queries(self, request: Request) -> Response:
        """Show the queries in an order, a page at a time."""
        index, params = self.source.now(), request.query_params
        order = QueryOrder(params.get("order", ""), params.get("of", ""))
        rows = query_rows(index, order)
        chosen, page, pages = _paged(rows, params.get("page", ""))
        return self._page(
            request,
            index,
            "queries",
            rows=chosen.to_dicts(),
            order=order,
            orders=_orders(index),
            total=len(rows),
            page=page,
            pages=pages,
            link=partial(self._query_address, order),
        )

    def pool(self, request: Request) -> Response:
        """Show a query with its pool, and one of its documents if the address names one."""
        index = self.source.now()
        names = addresses.names(request.scope["raw_path"], "/q/")
        if len(names) == len(("query", "document", "raw")) and names[2] == "raw":
            return self._raw(request, index, names[0], names[1])
        if len(names) not in (1, 2) or names[0] not in index.query_rows:
            raise self._absent(index, "queries", names[0] if names else "")
        seen = shown.pair(index, *names) if len(names) == 2 else None
        if len(names) == 2 and seen is None:
            raise self._absent(index, "corpus", names[1])
        row = index.query_rows[names[0]]
        chosen = PairFilter(index, request.query_params)
        return self._page(
            request,
            index,
            "pool",
            query_id=names[0],
            query=index.queries.row(row, named=True),
            rows=list(shown.rows(index, index.pool(row), 0 if seen else shown.EXCERPT // 2)),
            pair=seen,
            filter=chosen,
            place=shown.in_list(chosen, seen) if seen and seen.pooled else None,
            pool_link=self._pair_address,
            pair_link=lambda ids: chosen.address(self.links.pair(*ids)),
        )

    def _raw(self, request: Request, index: RunIndex, query_id: str, doc_id: str) -> Response:
        """Show the replies to a pair; 403 while a document of its prompt is in an open sample."""
        seen = shown.pair(index, query_id, doc_id)
        if seen is None or not seen.pooled:
            raise self._absent(index, "corpus", doc_id)
        if not index.hidden.filter(pl.col("query") == index.query_rows[query_id]).is_empty():
            raise HTTPException(403)
        trouble = ""
        try:
            replies = JudgedTexts(index.run, seen.query, seen.title, seen.text).replies()
        except DataError as error:
            replies, trouble = [], str(error)
        return self._page(request, index, "raw", pair=seen, replies=replies, trouble=trouble)

    def pairs(self, request: Request) -> Response:
        """Show the pairs that the filters of the address keep, a page at a time."""
        index = self.source.now()
        chosen = PairFilter(index, request.query_params)
        pairs = chosen.pairs
        on_page, page, pages = _paged(pairs, request.query_params.get("page", ""))
        return self._page(
            request,
            index,
            "pairs",
            filter=chosen,
            rows=list(shown.rows(index, on_page)),
            total=len(pairs),
            page=page,
            pages=pages,
            link=lambda number: chosen.address(self.links.page("pairs"), page=str(number)),
            pool_link=lambda row: chosen.address(self._pair_address(row)),
        )

    def doc(self, request: Request) -> Response:
        """Show a document, and the pools that it is in, or why it is in none."""
        index = self.source.now()
        names = addresses.names(request.scope["raw_path"], "/doc/")
        row = index.doc_row(names[0]) if len(names) == 1 else None
        dropped = shown.dropped(index, "corpus", names[0]) if len(names) == 1 else None
        if row is None and dropped is None:
            raise self._absent(index, "corpus", names[0] if names else "")
        doc = None if row is None else index.docs.row(row, named=True)
        held = index.pairs.filter(pl.col("doc") == row) if row is not None else index.pairs.clear()
        rows = list(shown.rows(index, held))
        return self._page(
            request, index, "doc", doc_id=names[0], doc=doc, rows=rows, dropped=dropped, pool_link=self._pair_address
        )

    def judges(self, request: Request) -> Response:
        """Show the grades of every two judges against each other."""
        index = self.source.now()
        return self._page(request, index, "judges", matrices=shown.matrices(index))

    def judges_file(self, request: Request) -> Response:
        """Return the matrices as CSV, or as tables of LaTeX."""
        kinds = {"csv": (shown.as_csv, "text/csv"), "tex": (shown.as_latex, "application/x-tex")}
        if request.path_params["kind"] not in kinds:
            raise HTTPException(404)
        write, media_type = kinds[request.path_params["kind"]]
        index = self.source.now()
        return Response(write(index.scale.labels, shown.matrices(index)), 200, HEADERS, media_type=media_type)

    async def search(self, request: Request) -> Response:
        """Show the form, or the texts with the words of a form; words are in no address."""
        typed = await fields(request) if request.method == "POST" else {}
        return await run_in_threadpool(self._found, request, typed)

    def _found(self, request: Request, typed: Mapping[str, str]) -> Response:
        index = self.source.now()
        page = _page_number(typed.get("page", ""))
        found = shown.search(index, typed.get("words", "")[:LONGEST], page) if typed else None
        return self._page(request, index, "search", found=found)

    def colours(self, _request: Request) -> Response:
        """Return a style sheet with the colours of the grades; empty for the default scale of five grades."""
        return Response(charts.styles(self.source.now().scale), media_type="text/css")

    def refused(self, name: str, status: int, values: dict[str, Any]) -> Response:
        """Return a page of the guard, which shows nothing of the run; a refusal is in all languages."""
        words: Any = resources.words("web/templates/words.yaml", "en")
        if name == "entered":
            return self._plain(status, "en", words["entered"], [], words["entered"], values["target"])
        reasons = [
            resources.words("web/templates/words.yaml", language)["refused_why"][values["why"]]
            for language in LANGUAGES
        ]
        lines = [reason.format(command=values["command"]) for reason in reasons]
        return self._plain(status, "en", words["refused"], lines, words["back"])

    def wrong(self, request: Request, error: Exception) -> Response:
        """Show an error as a page."""
        language = language_of(request, "en")
        words: Any = resources.words("web/templates/view.words.yaml", language)
        if isinstance(error, HTTPException):
            status, detail = error.status_code, error.detail if error.status_code == _GONE else ""
        else:
            status, detail = (503, str(error)) if isinstance(error, UserError) else (500, "")
        title, hint = words["errors"].get(str(status), words["errors"]["500"])
        return self._plain(status, language, title, [detail, hint], words["back"])

    def _plain(
        self, status: int, language: str, title: str, lines: Sequence[str], link: str, target: str = ""
    ) -> Response:
        """Return a page without anything of the run but what `lines` say."""
        html = self.templates.get_template("view_wrong.html.j2").render(
            language=language, title=title, lines=lines, link=link, target=target, base=self.links.base
        )
        return Response(html, status, HEADERS, media_type="text/html")

    def _absent(self, index: RunIndex, table: str, name: str) -> HTTPException:
        """Return the error of an id that is not in the run; a dropped one is named with its reason."""
        dropped = shown.dropped(index, table, name)
        if dropped is None:
            return HTTPException(404, name)
        nearest = f" ({dropped.nearest})" if dropped.nearest else ""
        return HTTPException(404, f"{name}: {dropped.stage}: {dropped.reason}{nearest}")

    def _page(self, request: Request, index: RunIndex, name: str, **values: Any) -> Response:  # noqa: ANN401
        language = language_of(request, index.language)
        other = next(tag for tag in LANGUAGES if tag != language)
        html = rendered(
            self.templates,
            index,
            name,
            language,
            links=self.links,
            tabs=[*TABS, *(["review"] if self.reviewed else [])],
            version=self.version,
            proof=request.state.proof,
            other=other,
            other_link=f"?{urlencode({**request.query_params, 'lang': other})}",
            **values,
        )
        response = Response(html, 200, HEADERS, media_type="text/html")
        return remembering(response, request, self.links.base)

    def _pair_address(self, row: Mapping[str, Any]) -> str:
        return self.links.pair(row["query_id"], row["doc_id"])

    def _query_address(self, order: QueryOrder, number: int = 1) -> str:
        page = str(number) if number > 1 else ""
        return self.links.page("queries", {"order": order.name, "of": order.of, "page": page})


def _paged(rows: pl.DataFrame, number: str) -> tuple[pl.DataFrame, int, int]:
    """Return one page of a table, its number, and the number of pages."""
    pages = max(1, math.ceil(len(rows) / PAGE))
    page = min(_page_number(number), pages)
    return rows.slice((page - 1) * PAGE, PAGE), page, pages


def _page_number(text: str) -> int:
    """Return the number of a page in an address or form, 1 for anything else."""
    return max(1, int(text)) if re.fullmatch(r"[0-9]{1,8}", text) else 1


def _orders(index: RunIndex) -> list[QueryOrder]:
    """Return the orders of the list of queries that fit a run."""
    names = [name for name in ("synthetic", "masked") if index.queries[name].any()]
    if index.judges:
        names = ["none", "contested", *(["gap"] if len(index.retrievers) > 1 else []), *names]
    fails = [QueryOrder("fails", name) for name in index.retrievers] if index.judges else []
    return [QueryOrder(), *map(QueryOrder, names), *fails]
