"""Any judged pair of a run can be looked at: pages, filters, search, one pair in the terminal, a folder to hand on.

Everything is compared with the run's own tables. Pages are read as a person reads them: links and fields are found by
their words, figures next to the names that they belong to; where the words are not laid down, several will do.
"""

import hashlib
import http.client
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, quote, unquote, urljoin, urlsplit, urlunsplit

import httpx
import polars as pl
import pytest
import yaml

from tests import ROOT
from tests.conftest import need
from tests.support import postgres, scale_runs
from tests.support.auditing import audited, labelled
from tests.support.html_tree import Node, Reader
from tests.support.runs import curate, ran, tiny
from tests.support.trials import accepting
from tests.vendor import renamed, vendor

Pair = tuple[str, str]
JUDGES = ("jmild", "jhard", "jtape")
RETRIEVERS = ("runi", "rbig", "rlist", "rdeep")
GRADES = "SABCD"
DEPTH = 12
TOPICS = (
    *("高血压", "胃溃疡", "小儿发热", "偏头痛", "痛风", "失眠", "贫血", "哮喘", "湿疹", "感冒"),
    *("knee pain", "hay fever", "Migraine aura", "Rückenschmerzen", "кашель", "boca seca"),
)
ANSWERS = (
    "{}患者能喝咖啡吗？可以少量喝，每天一杯。",
    "{}的病因很多，先去门诊检查。",
    "得了{}以后要按时服药，少喝咖啡。",
    "{}怎样预防？多运动，早睡。",
    "{}: please drink less coffee and see your Doctor.",
)
PHONE = "13912345678"
COPY, COPIED, NOWHERE, MARKUP, LONG = "d900", "d007", "d902", "d903", "d904"
EXTRA = {
    "d901": "另一个话题：火车时刻表。 第901号。",
    NOWHERE: "Zeppelin p<0.05 (n=12) [a-z]* \\d+ 100% 第902号。",
    MARKUP: '<script>alert(1)</script>"><img src=x onerror=alert(2)>{{7*7}}\u202e反向 第903号。',
    LONG: "".join(f"第{n}段：长文讲述血压怎样随年龄变化。" for n in range(300)) + "长文到此结束。 第904号。",
}
LEGACY = ("q00\td901", "q01\td044", f"q02\t{MARKUP}", f"q03\t{LONG}")
HIDDEN = r"hidden|withheld|not shown|blind|open (review )?sample|being reviewed|under review|隐藏|不显示|盲|复核"
CHANGED = r"changed|reload|改变|变更|更新|已变"
MARK = re.compile(r"第\d+号。")
FILTERED = 100
"""Rows of a list on one page."""


# Reading pages


def squeezed(text: str) -> str:
    """Return a text without white space, for elements may cut it anywhere."""
    return re.sub(r"\s+", "", text)


def label_of(node: Node) -> str:
    """Return by which words a link or a button is known."""
    return " ".join(part for part in (node.text(), node.attrs.get("aria-label"), node.attrs.get("title")) if part)


def is_named(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def browsed(base: str, href: str) -> str:
    """Resolve an address as browsers do, for which an escaped dot is a dot."""
    parts = urlsplit(urljoin(base, href.strip()))
    kept: list[str] = []
    for segment in parts.path.split("/"):
        plain = segment.lower().replace("%2e", ".")
        if plain == "..":
            kept = kept[:-1] if len(kept) > 1 else kept
        elif plain != ".":
            kept.append(segment)
    return urlunsplit((*parts[:2], "/".join(kept) or "/", parts.query, ""))


@dataclass(frozen=True)
class Link:
    url: str
    label: str
    node: Node

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def asked(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.url).query, keep_blank_values=True).items()}

    @property
    def segments(self) -> list[str]:
        return [unquote(part) for part in self.path.split("/")[1:]]


class Page:
    """What came back, as it is read."""

    def __init__(self, response: httpx.Response) -> None:
        self.response, self.url, self.status = response, str(response.url), response.status_code
        self.html = response.text
        self.root = Reader(self.html).root

    @cached_property
    def text(self) -> str:
        return (self.root.all("body") or [self.root])[0].text()

    @cached_property
    def squeezed(self) -> str:
        return squeezed(self.text)

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @cached_property
    def links(self) -> list[Link]:
        found = [node for node in self.root.all("a") if node.attrs.get("href", "#")[:1] != "#"]
        return [Link(browsed(self.url, node.attrs["href"]), label_of(node), node) for node in found]

    @property
    def body(self) -> list[Link]:
        """Return the links that stand outside of navigation."""
        return [link for link in self.links if not any(node.tag in ("nav", "header") for node in link.node.ancestors)]

    @property
    def pairs(self) -> set[Pair]:
        """Return the pairs to which links lead."""
        parts = [link.segments for link in self.body]
        return {(part[1], part[2]) for part in parts if len(part) == 3 and part[0] == "q"}

    @property
    def queries(self) -> set[str]:
        parts = [link.segments for link in self.body]
        return {part[1] for part in parts if len(part) == 2 and part[0] == "q"}

    @property
    def documents(self) -> set[str]:
        """Return the documents to which links lead, by a page of their own or by a pair."""
        parts = [link.segments for link in self.body]
        return {part[1] for part in parts if len(part) == 2 and part[0] == "doc"} or {doc for _, doc in self.pairs}

    def under(self, name: str) -> list[str]:
        """Return what stands in tables below a head of this name, where a table has a single row below its heads."""
        found = []
        for table in self.root.all("table"):
            rows = [[cell.text() for cell in row.all("th", "td")] for row in table.all("tr")]
            if len(rows) == 2 and len(rows[0]) == len(rows[1]):
                found += [cell for head, cell in zip(*rows, strict=True) if is_named(name, head)]
        return found

    def grades(self, judge: str, labels: Sequence[str] = tuple(GRADES)) -> list[str]:
        """Return the grades that stand next to the name of a judge, or below it."""
        return grades_after(self.text, judge, labels) + [cell for cell in self.under(judge) if cell in labels]

    def next(self) -> str | None:
        """Return the address of the next part of a list."""
        for link in self.links:
            said = f"{link.label} {link.node.attrs.get('rel', '')}"
            if link.path == self.path and re.search(r"\bnext\b|下一页|后一页|下页", said, re.IGNORECASE):
                return link.url
        return None

    def has(self, pattern: str) -> bool:
        return re.search(pattern, self.text, re.IGNORECASE) is not None

    def counts(self, number: int) -> bool:
        """Say whether the number is written on the page."""
        return re.search(rf"(?<![\d,.]){number:,}(?![\d]|[,.]\d)|(?<![\d,.]){number}(?!\d)", self.text) is not None


def after(text: str, name: str, wanted: str, within: int = 60) -> list[str]:
    """Return what of a pattern stands first after each mention of a name, nearby."""
    found = []
    for mention in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text):
        near = re.search(wanted, text[mention.end() : mention.end() + within])
        found += [near.group()] if near else []
    return found


def grades_after(text: str, judge: str, labels: Sequence[str] = tuple(GRADES), within: int = 60) -> list[str]:
    either = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    return after(text, judge, rf"(?<![\w.])(?:{either})(?![\w])", within)


# The server


class View:
    """`curate view` in a process of its own, and a browser's stand-in that has opened its address."""

    def __init__(
        self, folder: Path, run: str, *options: str, prefix: Sequence[str] = (), language: str = "en", **variables: str
    ) -> None:
        self.folder, self.run = folder, folder / run
        self.log = folder / f"view-{time.monotonic_ns()}.log" if os.access(folder, os.W_OK) else Path(os.devnull)
        environment = {**os.environ, "CURATE_HOME": str(folder / "home"), "BROWSER": "true", **variables}
        environment["PYTHONPATH"] = f"{ROOT / 'tests' / 'loopback'}{os.pathsep}{ROOT}"
        command = [*prefix, sys.executable, "-m", "curate", "view", run, "--port", "0", *options]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
        self.address = self._printed()
        self.origin = f"http://{urlsplit(self.address).netloc}"
        self.client = httpx.Client(
            base_url=self.origin,
            headers={"Accept-Language": language},
            follow_redirects=True,
            trust_env=False,
            timeout=120,
        )
        self.first = self.client.get(self.address)
        self.speak(language, str(self.first.url))

    def _printed(self) -> str:
        ends = time.monotonic() + 120
        while time.monotonic() < ends:
            said = self.log.read_text(encoding="utf-8", errors="replace")
            if found := re.search(r"https?://[^\s'\"<>]+(?=\s)", said):
                return found.group()
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        self.stop()
        raise AssertionError(f"`curate view` printed no address:\n{self.log.read_text(encoding='utf-8')[-2000:]}")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if hasattr(self, "client"):
            self.client.close()

    def get(self, path: str, status: int = 200) -> Page:
        response = self.client.get(path)
        assert response.status_code == status, (path, response.status_code, response.text[:300])
        return Page(response)

    def speak(self, language: str, path: str) -> None:
        """Have pages in a language that a browser prefers; where it is a link on the page that decides, follow it."""
        self.client.headers["Accept-Language"] = language
        page = Page(self.client.get(path))
        said = {"en": r"^(english|en)\b", "zh": r"^(中文|汉语|简体|zh)"}[language]
        if not (page.root.all("html") or [page.root])[0].attrs.get("lang", "").startswith(language):
            for link in page.links:
                if re.search(said, link.label, re.IGNORECASE):
                    self.client.get(link.url)
                    return

    @contextmanager
    def speaking(self, language: str, path: str = "/") -> Iterator[None]:
        """Have pages in another language until the block ends."""
        before = self.client.headers["Accept-Language"]
        self.speak(language, path)
        try:
            yield
        finally:
            self.speak(before, path)

    def pair(self, query: str, doc: str) -> Page:
        return self.get(f"/q/{quote(query, safe='')}/{quote(doc, safe='')}")

    def raw(
        self, method: str, target: str, headers: Mapping[str, str] | None = None, body: str = ""
    ) -> tuple[int, str]:
        """Send a request as it is written here, with the cookies of the browser."""
        parts = urlsplit(self.origin)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
        cookies = "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())
        given = {"Host": parts.netloc, **({"Cookie": cookies} if cookies else {}), **(headers or {})}
        try:
            connection.putrequest(method, target, skip_host=True)
            for name, value in {**given, "Content-Length": str(len(body.encode()))}.items():
                connection.putheader(name, value)
            connection.endheaders(body.encode())
            answer = connection.getresponse()
            return answer.status, f"{answer.getheader('Location', '')}\n{answer.read().decode('utf-8', 'replace')}"
        finally:
            connection.close()

    def search_form(self) -> tuple[str, dict[str, str], str]:
        """Return where the form of the search goes, its hidden fields and the name of its field of words."""
        page = self.get("/search")
        for form in page.root.all("form"):
            fields = form.all("input")
            words = [node for node in fields if node.attrs.get("type", "text") in ("text", "search")]
            if words and form.attrs.get("method", "get").lower() == "post":
                hidden = [node for node in fields if node.attrs.get("type") == "hidden"]
                kept = {node.attrs["name"]: node.attrs.get("value", "") for node in hidden}
                return browsed(page.url, form.attrs.get("action", "") or page.url), kept, words[0].attrs["name"]
        raise AssertionError("no form of the page /search sends words by POST")

    def search(self, words: str) -> Page:
        action, hidden, name = self.search_form()
        sent = self.client.post(action, data={**hidden, name: words}, headers={"Origin": self.origin})
        assert sent.status_code == 200, (words, sent.status_code, sent.text[:300])
        return Page(sent)


class Opened:
    """A server that starts when it is first asked for, once."""

    def __init__(self, *wanted: Any, **options: Any) -> None:
        self.wanted, self.options = wanted, options
        self.running: View | None = None
        self.failed = ""

    def __call__(self) -> View:
        assert not self.failed, self.failed
        if self.running is None:
            try:
                self.running = View(*self.wanted, **self.options)
            except AssertionError as error:
                self.failed = str(error)
                raise
        return self.running

    def __getattr__(self, name: str) -> Any:
        return getattr(self(), name)

    def stop(self) -> None:
        if self.running:
            self.running.stop()


@contextmanager
def viewed(*wanted: Any, **options: Any) -> Iterator[View]:
    """Serve a run until the block ends."""
    view = View(*wanted, **options)
    try:
        yield view
    finally:
        view.stop()


# Lists


@dataclass
class Listed:
    """All parts of a list."""

    pages: list[Page]

    @property
    def pairs(self) -> set[Pair]:
        return set().union(*(page.pairs for page in self.pages))

    @property
    def queries(self) -> set[str]:
        return set().union(*(page.queries for page in self.pages))

    @property
    def documents(self) -> set[str]:
        return set().union(*(page.documents for page in self.pages))


def listed(view: View, page: Page) -> Listed:
    """Return a list with all that follows on further pages."""
    pages, seen = [page], {page.url}
    while (url := pages[-1].next()) and url not in seen:
        seen.add(url)
        pages.append(view.get(url))
        assert len(pages) < 50
    return Listed(pages)


def context(node: Node) -> str:
    """Return the words around a link or a field: those of its row, group or label."""
    said = []
    for above in node.ancestors:
        if above.tag in ("main", "body", "form", "table", "#"):
            break
        said += [above.attrs.get("aria-label", "")]
        if len(text := above.text()) < 200:
            said.append(text)
    return " ".join(said)


def fits(own: str, around: str, phrase: str, name: str) -> bool:
    """Say whether a link or a choice is meant: by its own words, or as a name in a group with these words."""
    if re.search(phrase, own, re.IGNORECASE):
        return not name or is_named(name, own)
    alone = re.sub(r"[\s\d,()（）]+$", "", own).strip()
    return bool(name) and alone == name and re.search(phrase, around, re.IGNORECASE) is not None


def labels(form: Node, control: Node) -> str:
    """Return the words of a field of a form."""
    wrapped = [node.text("select") for node in control.ancestors if node.tag == "label"]
    named = [node.text() for node in form.all("label") if control.attrs.get("id", "-") == node.attrs.get("for")]
    groups = [
        node.all("legend")[0].text() for node in control.ancestors if node.tag == "fieldset" and node.all("legend")
    ]
    return " ".join([*named, *wrapped, *groups, control.attrs.get("aria-label", "")])


def filled(form: Node) -> dict[str, str]:
    """Return what a form would send as it is."""
    sent = {}
    for node in form.all("input"):
        kind, name = node.attrs.get("type", "text"), node.attrs.get("name")
        if name and (kind in ("hidden", "text", "search", "number") or "checked" in node.attrs):
            sent[name] = node.attrs.get("value", "on" if kind in ("checkbox", "radio") else "")
    for node in form.all("select"):
        options = node.all("option")
        chosen = [option for option in options if "selected" in option.attrs] or options[:1]
        if chosen and "name" in node.attrs:
            sent[node.attrs["name"]] = chosen[0].attrs.get("value", chosen[0].text())
    return sent


def choices(form: Node) -> Iterator[tuple[str, str, str, str]]:
    """Yield the own words, the words around, name and value of all that can be chosen in a form."""
    for node in form.all("input", "button"):
        kind = node.attrs.get("type", "submit" if node.tag == "button" else "text")
        if kind in ("checkbox", "radio", "submit") and "name" in node.attrs:
            own = label_of(node) if node.tag == "button" else labels(form, node)
            yield own, labels(form, node) + context(node), node.attrs["name"], node.attrs.get("value", "on")
    for node in form.all("select"):
        for option in node.all("option"):
            around = f"{labels(form, node)} {option.parent.attrs.get('label', '') if option.parent else ''}"
            yield option.text(), around, node.attrs.get("name", ""), option.attrs.get("value", option.text())


def chosen(view: View, phrase: str, name: str = "") -> Page:
    """Follow the link, or make the choice in a form, that has these words, on a page where one would look for it."""
    for start in ("/pairs", "/queries", "/judges", "/"):
        page = view.get(start)
        for link in page.links:
            if link.path in ("/pairs", "/queries") and fits(link.label, context(link.node), phrase, name):
                return view.get(link.url)
        for form in page.root.all("form"):
            if form.attrs.get("method", "get").lower() != "get":
                continue
            for own, around, field_name, value in choices(form):
                if fits(own, around, phrase, name):
                    url = httpx.URL(browsed(page.url, form.attrs.get("action", "") or page.path))
                    return view.get(str(url.copy_with(params={**filled(form), field_name: value})))
    raise AssertionError(f"nothing to choose says {phrase} {name}")


def holds(view: View, page: Page, wanted: set[Pair]) -> None:
    """Hold that a list is that of these pairs, or of the queries that have one of them, and says how many."""
    assert wanted, "this filter is to be tried on pairs that there are"
    found = listed(view, page)
    if page.path == "/queries":
        queries = {query for query, _ in wanted}
        assert found.queries == queries
        assert page.counts(len(queries))
    else:
        assert found.pairs == wanted
        assert page.counts(len(wanted))


# The runs


def lines(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write(folder: Path, taped: int | None = None) -> str:
    """Write 16 queries, 84 documents in several languages, labels, a tape of grades and a pipeline; return its name.

    Two judges are heuristics; the third plays grades of a tape, of which only so many may be there.
    """
    data = folder / "data"
    (data / "qrels").mkdir(parents=True)
    queries = [
        {
            "_id": f"q{n:02}",
            "text": f"{topic}患者能喝咖啡吗（问{n:02}）" if n < 10 else f"May I drink coffee with {topic} (no. {n})",
            "source": "synthetic:mini" if n % 5 == 4 else "people",
        }
        for n, topic in enumerate(TOPICS)
    ]
    texts = {
        f"d{5 * n + m:03}": f"{answer.format(topic)} 第{5 * n + m}号。"
        for n, topic in enumerate(TOPICS)
        for m, answer in enumerate(ANSWERS)
    }
    for name in ("d000", "d003"):
        texts[name] = f"请拨打{PHONE}。{texts[name]}"
    texts |= {COPY: texts[COPIED].replace("，", "、"), **EXTRA}
    corpus = [
        {
            "_id": name,
            "title": TOPICS[int(name[1:]) // 5] if name[1:] < "080" and int(name[1:]) % 5 == 1 else "",
            "text": text,
        }
        for name, text in texts.items()
    ]
    lines(data / "queries.jsonl", queries)
    lines(data / "corpus.jsonl", corpus)
    known = [f"q{n:02}\td{5 * n:03}" for n in range(16)]
    (data / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"{pair}\t1\n" for pair in [*known, *LEGACY]), encoding="utf-8"
    )
    tape = []
    for query in queries:
        for name in texts:
            code = int(hashlib.sha256(f"{query['_id']} {name}".encode()).hexdigest(), 16)
            own = name[1:] < "080" and int(name[1:]) // 5 == int(query["_id"][1:])
            grade = "SSAAB"[code % 5] if own else "ABCDDDD"[code % 7]
            grade = "D" if f"{query['_id']}\t{name}" in LEGACY else grade
            tape.append(f"{query['_id']}\t{name}\tjtape\t{grade}\n")
    (folder / "tape.tsv").write_text("query_id\tdoc_id\tassessor\tgrade\n" + "".join(tape[:taped]), encoding="utf-8")
    for name, step, late in (("rlist", 7, 0), ("rdeep", 4, 1)):
        ranked = [
            f"q{n:02} Q0 d{(5 * n + step * rank + late * (n % 2)) % 80:03} {rank + 1} {100 - rank} t\n"
            for n in range(16)
            for rank in range(6)
        ]
        (folder / f"{name}.trec").write_text("".join(ranked), encoding="utf-8")
    pipeline: dict[str, Any] = {
        "version": 1,
        "name": "shown",
        "language": "zh",
        "ingest": {"source": "data"},
        "retrievers": {
            "runi": {"kind": "bm25"},
            "rbig": {"kind": "bm25", "tokens": "bigrams"},
            "rlist": {"kind": "runfile", "path": "rlist.trec"},
            "rdeep": {"kind": "runfile", "path": "rdeep.trec"},
        },
        "pool": {"retrievers": list(RETRIEVERS), "depth": DEPTH, "size": 16},
        "judges": {
            "jmild": {"kind": "lexical", "thresholds": {"S": 0.5, "A": 0.3, "B": 0.2, "C": 0.1}},
            "jhard": {"kind": "lexical", "thresholds": {"S": 0.9, "A": 0.7, "B": 0.4, "C": 0.2}},
            "jtape": {"kind": "replay", "path": "tape.tsv", "assessor": "jtape"},
        },
        "judge": {"models": list(JUDGES)},
        "export": {"small": True, "rerank": {"negatives": 1}},
    }
    (folder / "shown.yaml").write_text(yaml.safe_dump(pipeline, allow_unicode=True), encoding="utf-8")
    return "shown.yaml"


class Tables:
    """What a run's tables say, as this file works it out."""

    def __init__(self, run: Path) -> None:
        self.run = run

    def read(self, name: str) -> pl.DataFrame:
        return pl.read_parquet(self.run / f"{name}.parquet")

    @cached_property
    def pairs(self) -> set[Pair]:
        return set(self.read("pool/pool").select("query_id", "doc_id").iter_rows())

    @cached_property
    def queries(self) -> dict[str, str]:
        return dict(self.read("diversify/queries").select("query_id", "text").iter_rows())

    @cached_property
    def documents(self) -> dict[str, tuple[str, str]]:
        return {name: (title, text) for name, title, text, *_ in self.read("diversify/corpus").iter_rows()}

    @cached_property
    def grades(self) -> dict[Pair, dict[str, str]]:
        found: dict[Pair, dict[str, str]] = defaultdict(dict)
        for query, doc, judge, grade in (
            self.read("judge/ratings")
            .filter(pl.col("status") == "rated")
            .select("query_id", "doc_id", "judge", "grade")
            .iter_rows()
        ):
            found[query, doc][judge] = grade
        return found

    @cached_property
    def verdicts(self) -> dict[Pair, str]:
        rows = self.read("resolve/verdicts").select("query_id", "doc_id", "verdict").iter_rows()
        return {(query, doc): verdict for query, doc, verdict in rows}

    @cached_property
    def ranks(self) -> dict[Pair, dict[str, int]]:
        found: dict[Pair, dict[str, int]] = defaultdict(dict)
        for query, retriever, doc, rank in (
            self.read("pool/rankings").select("query_id", "retriever", "doc_id", "rank").iter_rows()
        ):
            found[query, doc][retriever] = rank
        return found

    @cached_property
    def relevant(self) -> dict[Pair, dict[str, bool]]:
        """Return for each pair on which side of the threshold each judge is."""
        return {pair: {judge: grade in "SA" for judge, grade in given.items()} for pair, given in self.grades.items()}

    def having(self, *verdicts: str) -> set[Pair]:
        return {pair for pair, verdict in self.verdicts.items() if verdict in verdicts}

    def against(self, judge: str) -> set[Pair]:
        """Return the pairs on which a judge is alone on its side."""
        return {
            pair
            for pair, sides in self.relevant.items()
            if {side for name, side in sides.items() if name != judge} == {not sides[judge]}
        }

    def only(self, judge: str) -> set[Pair]:
        return {pair for pair in self.against(judge) if self.relevant[pair][judge]}

    def gap(self, least: int) -> set[Pair]:
        places = {pair: [GRADES.index(grade) for grade in given.values()] for pair, given in self.grades.items()}
        return {pair for pair, found in places.items() if max(found) - min(found) >= least}

    def missed(self, retriever: str) -> set[Pair]:
        return {pair for pair in self.having("relevant") if retriever not in self.ranks[pair]}

    def rejected(self) -> set[Pair]:
        rows = [row.split("\t") for row in (self.run / "resolve" / "legacy.tsv").read_text("utf-8").splitlines()[1:]]
        return {(row[0], row[1]) for row in rows if row[2] == "rejected"}

    def synthetic(self) -> set[Pair]:
        table = self.read("diversify/queries").filter(pl.col("source").str.starts_with("synthetic"))
        return {pair for pair in self.pairs if pair[0] in set(table["query_id"])}

    def masked(self) -> set[Pair]:
        places = set(self.read("mask/spans").select("table", "id").iter_rows())
        return {pair for pair in self.pairs if ("queries", pair[0]) in places or ("corpus", pair[1]) in places}

    def cell(self, chosen: Mapping[str, str]) -> set[Pair]:
        return {pair for pair, given in self.grades.items() if chosen.items() <= given.items()}

    def published(self) -> set[Pair]:
        """Return the pairs with a published label, of queries that are exported."""
        exported = (self.run / "export" / "beir" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
        queries = {json.loads(line)["_id"] for line in exported}
        return {pair for pair in self.having("relevant", "not relevant") if pair[0] in queries}


@pytest.fixture(scope="module")
def opened(folder: Path) -> Iterator[Opened]:
    server = Opened(folder, "runs/shown")
    yield server
    server.stop()


@pytest.fixture
def view(opened: Opened) -> View:
    """Return the server of the finished run; it starts when a test first asks it for something."""
    return cast("View", opened)


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """Return a folder with a finished run of one's own."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "runs" / "shown" / ".view", ignore_errors=True)
    return tmp_path


def test_the_run_has_what_the_pages_are_tried_on(tables: Tables) -> None:
    """Every filter has pairs to show and pairs to leave out, and lists are longer than a page."""
    assert len(tables.having("contested")) > FILTERED
    every = [tables.against(judge) for judge in JUDGES] + [tables.missed(name) for name in RETRIEVERS[2:]]
    every += [tables.only("jmild"), tables.only("jtape"), tables.gap(2), tables.rejected(), tables.synthetic()]
    for pairs in [*every, tables.masked(), tables.having("relevant"), tables.having("not relevant")]:
        assert 0 < len(pairs) < len(tables.pairs)
    assert {("q00", "d901"), ("q02", MARKUP)} <= tables.pairs
    assert NOWHERE in tables.documents
    assert NOWHERE not in {doc for _, doc in tables.pairs}
    assert tables.read("diversify/dropped").select("id", "nearest_id").rows() == [(COPY, COPIED)]


# 1: addresses and pages


def test_an_address_is_printed_and_only_this_machine_is_served(view: View) -> None:
    assert urlsplit(view.address).hostname in ("127.0.0.1", "localhost", "::1")
    port = urlsplit(view.address).port
    assert view.first.status_code == 200
    listening = []
    for name in ("tcp", "tcp6"):
        for row in Path(f"/proc/net/{name}").read_text(encoding="ascii").splitlines()[1:]:
            local, state = row.split()[1], row.split()[3]
            if state == "0A" and int(local.rpartition(":")[2], 16) == port:
                listening.append(local.partition(":")[0])
    loopback = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
    assert listening
    assert set(listening) <= loopback


@pytest.mark.parametrize(
    "path", ["/", "/queries", "/q/q00", "/q/q00/d000", "/pairs", "/pairs?jmild=S", "/doc/d000", "/judges", "/search"]
)
def test_every_page_answers(view: View, path: str) -> None:
    page = view.get(path)
    assert page.response.headers["content-type"].startswith("text/html")
    assert len(page.text) > 40
    assert view.raw("HEAD", path)[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/q/nobody",
        "/q/q00/nobody",
        "/q/nobody/d000",
        "/doc/nobody",
        "/nothing",
        "/q/q00/d000/more",
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(view: View, path: str) -> None:
    page = view.get(path, status=404)
    assert page.root.all("title")
    assert 10 < len(page.text) < 5000
    assert not page.has("traceback|exception|starlette")


def test_a_pair_of_no_pool_is_no_pair(view: View) -> None:
    """Of a known query and a known document that is not in its pool there is nothing to show, and that is said."""
    page = Page(view.client.get(f"/q/q00/{NOWHERE}"))
    assert page.status in (200, 404)
    assert page.has(r"\bpool\b")
    assert not [judge for judge in JUDGES if grades_after(page.text, judge, within=12)]


def shows(page: Page, tables: Tables, pair: Pair) -> list[str]:
    """Return what a page lacks of a pair."""
    query, doc = pair
    lacking = []
    title, text = tables.documents[doc]
    for wanted in (tables.queries[query], title, text):
        parts = (wanted[:300], wanted[-100:]) if doc == LONG else (wanted,)
        lacking += [f"text {part[:30]}" for part in parts if squeezed(part) not in page.squeezed]
    lacking += [f"id {name}" for name in pair if not is_named(name, page.text)]
    for judge in JUDGES:
        if tables.grades[pair][judge] not in page.grades(judge):
            lacking.append(f"{judge} {tables.grades[pair][judge]}")
    for retriever in RETRIEVERS:
        rank = tables.ranks[pair].get(retriever)
        near = after(page.text, retriever, r"(?<![\w.])\d+|not in|不在|[-–—](?=\s|$)") + page.under(retriever)
        wrong = ("not in", "不在", "-", "–", "—")
        if not set(near) & ({str(rank)} if rank else set(wrong)):
            lacking.append(f"{retriever} {rank}")
    words = {
        "relevant": r"(?<!not )\brelevant\b",
        "not relevant": r"\bnot relevant\b",
        "contested": r"\bcontested\b",
        "incomplete": "incomplete|not fully judged",
    }
    # The legend says `relevant` and `not relevant` on every page, so the label is read where it is named.
    kinds = "not relevant|relevant|contested|incomplete|not fully judged"
    labelled = after(page.text.lower(), "label", kinds) + after(page.text.lower(), "published", kinds)
    labelled += page.under("label") + page.under("published")
    if not any(re.fullmatch(words[tables.verdicts[pair]], found, re.IGNORECASE) for found in labelled):
        lacking.append(tables.verdicts[pair])
    return lacking


@pytest.mark.parametrize("part", range(4))
def test_every_pair_has_a_page_that_shows_all_that_is_known_of_it(view: View, tables: Tables, part: int) -> None:
    pairs = sorted(tables.pairs)[part::4]
    wrong = {pair: found for pair in pairs if (found := shows(view.pair(*pair), tables, pair))}
    assert not wrong, dict(list(wrong.items())[:5])


def test_a_pair_shows_its_own_texts_and_no_others(view: View, tables: Tables) -> None:
    for pair in [("q00", "d000"), ("q10", "d050"), ("q04", "d020")]:
        own = MARK.findall(tables.documents[pair[1]][1])[0]
        assert set(MARK.findall(view.pair(*pair).squeezed)) == {own}


def test_the_whole_pool_of_a_query_is_on_its_page(view: View, tables: Tables) -> None:
    for query in ("q00", "q07", "q15"):
        wanted = {pair for pair in tables.pairs if pair[0] == query}
        page = view.get(f"/q/{query}")
        assert squeezed(tables.queries[query]) in page.squeezed
        found = listed(view, page)
        assert {pair for pair in found.pairs if pair[0] == query} == wanted


def test_all_queries_are_listed_with_their_texts(view: View, tables: Tables) -> None:
    page = view.get("/queries")
    found = listed(view, page)
    assert found.queries == set(tables.queries)
    assert [text for text in tables.queries.values() if squeezed(text) not in page.squeezed] == []


def test_all_pairs_are_reached_by_links_alone(view: View, tables: Tables) -> None:
    """From the first page one comes to the queries, from there to each, from there to each pair."""
    start = view.get("/")
    assert "/queries" in {link.path for link in start.links}
    found: set[Pair] = set()
    for query in listed(view, view.get("/queries")).queries:
        found |= listed(view, view.get(f"/q/{query}")).pairs
    assert found >= tables.pairs


def test_a_long_text_is_there_to_its_end_and_it_is_said_up_to_where_judges_read(view: View) -> None:
    """Judges are shown 1,500 tokens of a passage; the page shows all of it, with a line where they stopped."""
    page = view.pair("q03", LONG)
    assert squeezed(EXTRA[LONG][-60:]) in page.squeezed
    assert page.has(r"judges saw|saw up to|up to here|评审(模型)?只看到")
    assert not view.pair("q03", "d015").has(r"judges saw up to|评审(模型)?只看到")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_grades_are_explained_in_the_readers_language(view: View, tables: Tables, language: str) -> None:
    """The meanings are those of the rubric, in `judge/scale.json`; the reader's language is the browser's."""
    meanings = json.loads((tables.run / "judge" / "scale.json").read_text(encoding="utf-8"))["meanings"][language]
    with view.speaking(language):
        page = view.get("/q/q00/d000")
    for grade in set(tables.grades["q00", "d000"].values()):
        assert squeezed(meanings[grade]) in squeezed(
            page.text + " ".join(n.attrs.get("title", "") for n in page.root.all())
        )


def test_an_overview_names_one_state_and_its_reason(view: View, tables: Tables) -> None:
    page = view.get("/")
    states = {"Ready to compare systems", "Usable in-house", "Not fit to score models", "Not finished"}
    heads = " ".join(node.text() for node in page.root.all("h1", "h2", "p", "strong", "div", "section")[:60])
    assert [state for state in states if state.lower() in heads.lower()]
    assert page.counts(len(tables.queries))


def test_the_command_says_what_it_does(folder: Path) -> None:
    assert re.search(r"^\s+view\s", ran(folder, "--help").stdout, re.MULTILINE)
    said = ran(folder, "view", "--help").stdout
    for option in ("--open", "--pair", "--port", "--export", "--private"):
        assert option in said


# 2: filters and matrices


def test_contested_pairs_are_listed_by_hundreds(view: View, tables: Tables) -> None:
    wanted = tables.having("contested")
    page = chosen(view, r"^\W*contested|^\W*有分歧")
    if page.path == "/pairs":
        found = listed(view, page)
        assert [len(part.pairs) for part in found.pages] == [FILTERED, len(wanted) - FILTERED]
    holds(view, page, wanted)


@pytest.mark.parametrize("judge", JUDGES)
def test_one_judge_against_the_rest(view: View, tables: Tables, judge: str) -> None:
    """The judge is on one side of the threshold, all others are on the other side."""
    page = chosen(view, r"against (the )?(rest|others)|alone against|与其余|与其他|和其他", judge)
    holds(view, page, tables.against(judge))


@pytest.mark.parametrize("judge", ["jmild", "jtape"])
def test_only_one_judge_says_relevant(view: View, tables: Tables, judge: str) -> None:
    holds(view, chosen(view, r"\bonly\b.*relevant|只有.*相关", judge), tables.only(judge))


@pytest.mark.parametrize("retriever", ["rlist", "rdeep"])
def test_relevant_but_missed_by_a_retriever(view: View, tables: Tables, retriever: str) -> None:
    holds(view, chosen(view, r"missed|没找到|未找到", retriever), tables.missed(retriever))


def test_grades_that_are_two_or_more_apart(view: View, tables: Tables) -> None:
    holds(view, chosen(view, r"(two|2) or more|gap\W*(≥|>=)\W*2|两级以上"), tables.gap(2))


def test_labels_of_the_data_that_the_panel_rejects(view: View, tables: Tables) -> None:
    holds(
        view,
        chosen(view, r"(original|legacy|brought).*reject|reject.*(original|legacy|label)|原始标注.*(否|驳|不相关)"),
        tables.rejected(),
    )


def test_synthetic_queries(view: View, tables: Tables) -> None:
    holds(view, chosen(view, r"synthetic|合成"), tables.synthetic())


def test_masked_texts(view: View, tables: Tables) -> None:
    holds(view, chosen(view, r"masked|脱敏"), tables.masked())


def test_what_is_masked_stays_masked(view: View, tables: Tables) -> None:
    for pair in sorted(tables.masked())[:3]:
        assert PHONE not in view.pair(*pair).html
    assert not view.search(PHONE).documents


@pytest.mark.parametrize(("one", "other"), list(combinations(JUDGES, 2)))
def test_cells_of_two_judges_lead_to_their_pairs(view: View, tables: Tables, one: str, other: str) -> None:
    """A cell is a count with a link such as /pairs?one=S&other=D; an empty one may be without."""
    linked = {}
    for link in view.get("/judges").links:
        if link.path == "/pairs" and set(link.asked) & set(JUDGES) == {one, other}:
            linked[link.asked[one], link.asked[other]] = link
    for first in GRADES:
        for second in GRADES:
            wanted = tables.cell({one: first, other: second})
            cell = linked.get((first, second))
            assert cell or not wanted, (first, second)
            if cell is None:
                continue
            numbers = re.findall(r"\d[\d,]*", cell.node.text())
            assert numbers
            assert int(numbers[0].replace(",", "")) == len(wanted)
            if wanted:
                found = listed(view, view.get(cell.url))
                assert found.pairs == wanted
                assert found.pages[0].counts(len(wanted))


def test_a_matrix_holds_every_pair_once(view: View, tables: Tables) -> None:
    """The cells of two judges add up to the pairs that both graded, and agreement is given as kappa."""
    page = view.get("/judges")
    cells = [link for link in page.links if link.path == "/pairs" and {"jmild", "jhard"} <= set(link.asked)]
    numbers = {tuple(sorted(link.asked.items())): int(re.findall(r"\d+", link.node.text())[0]) for link in cells}
    assert sum(numbers.values()) == len(tables.pairs)
    assert page.has("kappa|κ")


@pytest.mark.parametrize("form", ["csv", "latex"])
def test_matrices_are_to_be_had_as_files(view: View, form: str) -> None:
    links = [link for link in view.get("/judges").links if form in link.label.lower()]
    assert links
    answer = view.client.get(links[0].url)
    assert answer.status_code == 200
    assert "text/html" not in answer.headers["content-type"]
    assert ("&" if form == "latex" else ",") in answer.text
    assert any(judge in answer.text for judge in JUDGES)


def test_an_address_of_grades_is_enough(view: View, tables: Tables) -> None:
    for chosen_grades in ({"jmild": "S"}, {"jmild": "S", "jhard": "B"}, {"jmild": "A", "jtape": "D", "jhard": "C"}):
        wanted = tables.cell(chosen_grades)
        asked = "&".join(f"{judge}={grade}" for judge, grade in chosen_grades.items())
        assert listed(view, view.get(f"/pairs?{asked}")).pairs == wanted


def test_all_pairs_are_the_list_without_a_filter(view: View, tables: Tables) -> None:
    page = view.get("/pairs")
    assert page.counts(len(tables.pairs))
    found = listed(view, page)
    assert found.pairs == tables.pairs
    assert [len(part.pairs) for part in found.pages] == [FILTERED, FILTERED, len(tables.pairs) - 2 * FILTERED]


def test_a_list_that_holds_nothing_says_so(view: View, tables: Tables) -> None:
    empty = next((one, other) for one in GRADES for other in GRADES if not tables.cell({"jmild": one, "jhard": other}))
    page = view.get(f"/pairs?jmild={empty[0]}&jhard={empty[1]}")
    assert not page.pairs
    assert page.has(r"\b0\b|\bno pairs?\b|nothing|none|没有|无")


@pytest.mark.parametrize(
    "asked",
    ["jmild=Z", "nobody=S", "jmild=S&jmild=D", "page=-1", "page=x", "page=99999999999999999999", "jmild=", "%ff=%ff"],
)
def test_an_address_that_means_nothing_breaks_nothing(view: View, asked: str) -> None:
    """It is refused with a sentence, or what is not understood is left out; grades that nobody gave list no pair."""
    status, said = view.raw("GET", f"/pairs?{asked}")
    assert status in (200, 400, 404, 422)
    assert "Traceback" not in said
    if asked == "jmild=Z":
        assert status != 200 or not re.search(r'href="[^"]*/q/[^/"]+/[^/"]+', said)


# 3: search


def folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


SEARCHES = {
    "two Chinese characters": "痛风",
    "the name of an illness": "高血压",
    "two words of English": "coffee doctor",
    "two words of two languages": "Migraine 病因",
    "another alphabet": "кашель",
    "mixed case": "KNEE Pain",
    "full-width letters": "ＫＮＥＥ",
    "an umlaut": "rückenschmerzen",
    "characters of a regular expression": "[a-z]*",
    "a bracket": "(n=12)",
    "a backslash": "\\d+",
    "a percent sign": "100%",
    "markup": "<script>alert(1)</script>",
    "braces": "{{7*7}}",
    "a word of no text": "quux",
    "a pattern that is no text": "knee.*pain",
    "white space around": "  感冒\t",
}


@pytest.mark.parametrize("name", list(SEARCHES))
def test_search_finds_texts_that_hold_all_words(view: View, tables: Tables, name: str) -> None:
    words = folded(SEARCHES[name]).split()
    texts = {doc: folded(f"{title}\n{text}") for doc, (title, text) in tables.documents.items()}
    docs = {doc for doc, text in texts.items() if all(word in text for word in words)}
    asked = {query for query, text in tables.queries.items() if all(word in folded(text) for word in words)}
    page = view.search(SEARCHES[name])
    assert {doc for doc in page.documents if doc != COPY} == docs
    assert page.queries == asked
    assert "<script>alert(1)" not in page.html
    if not docs | asked:
        assert page.has(r"\b0\b|\bno\b|nothing|none|没有|未找到")


def test_a_search_is_sent_by_post_and_leaves_no_word_in_an_address(view: View) -> None:
    words = "coffee doctor"
    page = view.search(words)
    assert page.documents
    for url in [str(earlier.url) for earlier in page.response.history] + [page.url, *(link.url for link in page.links)]:
        assert not any(word in unquote(url).lower() for word in words.split()), url
    for form in view.get("/search").root.all("form"):
        if [node for node in form.all("input") if node.attrs.get("type", "text") in ("text", "search")]:
            assert form.attrs.get("method", "get").lower() == "post"


def test_a_search_in_an_address_is_not_answered(view: View) -> None:
    _, _, name = view.search_form()
    status, said = view.raw("GET", f"/search?{name}={quote('coffee')}")
    assert status in (200, 400, 405)
    assert not Reader(said).root.text().count("see your Doctor")


def test_words_that_are_searched_are_marked_in_a_form_that_is_safe(view: View) -> None:
    page = view.search('"><img src=x onerror=alert(2)>')
    assert "<img" not in page.html
    assert MARKUP in page.documents


# 4: where a document is


def test_a_document_says_at_which_ranks_it_was_found(view: View, tables: Tables) -> None:
    for doc in ("d000", "d003", "d044", LONG):
        page = view.get(f"/doc/{doc}")
        assert squeezed(tables.documents[doc][1][:200]) in page.squeezed
        pools = {pair for pair in tables.pairs if pair[1] == doc}
        assert {pair for pair in page.pairs if pair[1] == doc} == pools
        for query, _ in pools:
            rows = [link.node for link in page.body if link.segments[:3] == ["q", query, doc]]
            around = " ".join(above.text() for row in rows for above in list(row.ancestors)[:3])
            for retriever, rank in tables.ranks[query, doc].items():
                known = is_named(str(rank), around) or str(rank) in after(page.text, retriever, r"\d+")
                assert known, (doc, query, retriever, rank)


def test_a_document_of_no_pool_says_so(view: View) -> None:
    page = view.get(f"/doc/{NOWHERE}")
    assert squeezed(EXTRA[NOWHERE]) in page.squeezed
    assert page.has(r"no pool|not in (any|a) pool|in none of the pools|不在(任何)?候选池|没有进入")
    assert not page.pairs


def test_a_near_duplicate_says_whose_copy_it_is(view: View) -> None:
    page = view.get(f"/doc/{COPY}")
    assert page.has(r"near-duplicate|duplicate|copy|重复")
    assert [link for link in page.body if link.segments == ["doc", COPIED]]


def test_a_document_that_labels_alone_brought_has_no_rank(view: View) -> None:
    """The positives of the data join the pool without a rank."""
    page = view.get("/doc/d901")
    assert ("q00", "d901") in page.pairs
    [article] = view.pair("q00", "d901").root.all("article")  # the pool beside it has ranks of other documents
    for retriever in RETRIEVERS:
        assert after(article.text(), retriever, r"\d+|not in|不在") == ["not in"]


# 5: from the terminal


def width(text: str) -> int:
    """Return how many columns a line takes."""
    drawn = [letter for letter in text if unicodedata.combining(letter) == 0]
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in drawn)


@pytest.mark.parametrize("pair", [("q00", "d000"), ("q10", "d050"), ("q03", LONG), ("q00", "d901")])
def test_one_pair_is_printed_in_eighty_columns(folder: Path, tables: Tables, pair: Pair) -> None:
    said = ran(folder, "view", "runs/shown", "--pair", *pair).stdout
    assert max(width(line) for line in said.splitlines()) <= 80
    query, doc = pair
    assert squeezed(tables.queries[query]) in squeezed(said)
    assert squeezed(tables.documents[doc][1][:100]) in squeezed(said)
    for judge, grade in tables.grades[pair].items():
        assert grade in grades_after(said, judge)
    for retriever, rank in tables.ranks[pair].items():
        assert str(rank) in after(said, retriever, r"\d+")
    assert tables.verdicts[pair] in said


@pytest.mark.parametrize("pair", [("q00", "nobody"), ("nobody", "d000"), ("q00", NOWHERE)])
def test_a_pair_that_is_not_there_is_refused_in_the_terminal(folder: Path, pair: Pair) -> None:
    done = curate(folder, "view", "runs/shown", "--pair", *pair)
    assert done.returncode == 2
    assert "No such command" not in done.stderr
    assert next(name for name in pair if name not in ("q00", "d000")) in done.stderr
    assert "Traceback" not in done.stderr


def test_the_newest_run_is_looked_at_without_naming_it(folder: Path, tables: Tables) -> None:
    said = ran(folder, "view", "--pair", "q00", "d000").stdout
    assert squeezed(tables.queries["q00"]) in squeezed(said)


def test_a_pair_is_named_by_the_ids_of_its_export_too(folder: Path, tables: Tables, tmp_path: Path) -> None:
    run = Path(shutil.copytree(folder / "runs/shown", tmp_path / "runs/shown"))
    (run / "export").mkdir(exist_ok=True)
    rows = ("table\told_id\tnew_id", "queries\tq00\tq-q00", "corpus\td000\td-d000", "")
    (run / "export/renamed_ids.tsv").write_text("\n".join(rows), encoding="utf-8")
    said = ran(tmp_path, "view", "runs/shown", "--pair", "q-q00", "d-d000").stdout
    assert squeezed(tables.queries["q00"]) in squeezed(said)


def test_open_prints_the_address_of_a_pair(folder: Path, tables: Tables) -> None:
    with viewed(folder, "runs/shown", "--open", "q04/d020") as view:
        page = Page(view.first)
        assert page.path == "/q/q04/d020"
        assert not shows(page, tables, ("q04", "d020"))


def test_open_of_a_pair_that_is_not_there_starts_nothing(folder: Path) -> None:
    done = curate(folder, "view", "runs/shown", "--port", "0", "--open", "q04/nobody")
    assert done.returncode == 2
    assert "nobody" in done.stderr
    assert "No such command" not in done.stderr


ODD = (
    *(
        "a/b",
        "a/b/c",
        "#1",
        "100%",
        "c%2Fd",
        "why?",
        "查询",
        "🩺7",
        "..",
        ".",
        "%2e%2e",
        "a\\b",
        "a&b=c",
        "a+b",
        "q1;x",
    ),
    *("<script>alert(1)</script>", '"><img/src=x/onerror=alert(1)>', "{{7*7}}", "'q'", "x" * 150),
)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run whose ids are as bad as ids may be; white space is refused by `ingest`."""
    made = tmp_path_factory.mktemp("odd")
    tiny(made)
    shutil.rmtree(made / "data")
    (made / "data" / "qrels").mkdir(parents=True)
    lines(
        made / "data" / "queries.jsonl",
        [{"_id": name, "text": f"第{n}号问题：能喝咖啡吗"} for n, name in enumerate(ODD)],
    )
    lines(
        made / "data" / "corpus.jsonl",
        [{"_id": name, "title": "", "text": f"第{n}号回答：能喝咖啡，一天{n}杯"} for n, name in enumerate(ODD)],
    )
    (made / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n..\t..\t1\n", encoding="utf-8")
    settings = yaml.safe_load((made / "tiny.yaml").read_text(encoding="utf-8"))
    settings["pool"] |= {"depth": 30, "size": 30}
    settings["stages"] = ["ingest", "mask", "diversify", "pool", "judge", "consensus", "resolve"]
    (made / "tiny.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    ran(made, "run", "tiny.yaml")
    return made


@pytest.fixture(scope="module")
def odd_opened(odd: Path) -> Iterator[Opened]:
    server = Opened(odd, "runs/tiny")
    yield server
    server.stop()


def test_pairs_of_odd_ids_are_reached_by_links(odd: Path, odd_opened: Opened) -> None:
    """Followed as a browser follows them, the links of the queries' list lead to every query, and on to every pair."""
    view = odd_opened()
    tables = Tables(odd / "runs" / "tiny")
    pairs = 0
    shown: set[str] = set()
    for link in view.get("/queries").body:
        if not link.path.startswith("/q/"):
            continue
        page = view.get(link.url)
        number = {n for n in range(len(ODD)) if f"第{n}号问题" in page.squeezed}
        shown |= {ODD[n] for n in number if squeezed(ODD[n]) in page.squeezed}
        first = [
            inner
            for inner in page.body
            if inner.path.startswith("/q/") and inner.path.count("/") > link.path.count("/")
        ]
        assert first
        for inner in first[:3]:
            pair = view.get(inner.url)
            asked = {n for n in range(len(ODD)) if f"第{n}号问题" in pair.squeezed}
            answers = {n for n in range(len(ODD)) if f"第{n}号回答" in pair.squeezed}
            assert asked == number
            assert len(answers) == 1
            doc = ODD[answers.pop()]
            grade = tables.grades[ODD[next(iter(asked))], doc]["lexical"]
            assert grade in pair.grades("lexical")
            assert squeezed(doc) in pair.squeezed
            pairs += 1
    assert shown == {query for query, _ in tables.pairs}
    assert pairs >= len(ODD)


@pytest.mark.parametrize("name", ODD)
def test_odd_ids_on_the_command_line(odd: Path, name: str) -> None:
    tables = Tables(odd / "runs" / "tiny")
    doc = min(doc for query, doc in tables.pairs if query == name)
    said = ran(odd, "view", "runs/tiny", "--pair", name, doc).stdout
    assert squeezed(tables.queries[name]) in squeezed(said)
    assert squeezed(tables.documents[doc][1]) in squeezed(said)
    assert tables.grades[name, doc]["strict"] in grades_after(said, "strict")


@pytest.mark.parametrize("name", ["c%2Fd", "..", "🩺7", *accepting("a/b", "100%", "#1", "why?")])
def test_a_pair_of_odd_ids_is_opened(odd: Path, name: str) -> None:
    """QUERY/DOC is cut where both halves are ids of a pair of the pool."""
    tables = Tables(odd / "runs" / "tiny")
    doc = next(
        doc for query, doc in sorted(tables.pairs) if query == name and doc in ("查询", "'q'", "a+b", "..", "100%")
    )
    with viewed(odd, "runs/tiny", "--open", f"{name}/{doc}") as view:
        page = Page(view.first)
        assert squeezed(tables.queries[name]) in page.squeezed
        assert squeezed(tables.documents[doc][1]) in page.squeezed


def test_markup_in_ids_and_texts_is_text(view: View, odd_opened: Opened) -> None:
    pages = [view.pair("q02", MARKUP), view.get("/q/q02"), view.get(f"/doc/{MARKUP}"), odd_opened().get("/queries")]
    pages += [odd_opened().get(link.url) for link in pages[-1].body if link.path.startswith("/q/")][:20]
    for page in pages:
        assert "alert(1)" not in " ".join(str(node.children) for node in page.root.all("script"))
        assert not [node for node in page.root.all() if any(name.startswith("on") for name in node.attrs)]
        assert not [node for node in page.root.all("img") if node.attrs.get("src") == "x"]
    assert "{{7*7}}" in pages[0].squeezed
    assert "49" not in MARK.sub("", pages[0].squeezed).split("alert(2)>")[1][:12]


def test_a_text_that_turns_the_direction_is_kept_to_itself(view: View) -> None:
    """A sign that reverses what follows is written out, or its text is an isolated one (bdi, dir=auto)."""
    page = view.pair("q02", MARKUP)
    holders = [
        node for node in page.root.all() if "\u202e" in "".join(part for part in node.children if isinstance(part, str))
    ]
    for holder in holders:
        line = [holder, *holder.ancestors]
        assert any(node.tag == "bdi" or "dir" in node.attrs for node in line if node.tag not in ("html", "body"))
    assert "反向" in page.text


# 6: kinds of runs


def test_an_audit_is_looked_at(tmp_path: Path) -> None:
    """An audit has no stage `resolve`; which labels of the data it rejects is in its table `compared`."""
    labelled(tmp_path)
    assert audited(tmp_path).returncode == 0
    run = tmp_path / "runs" / "audit-data"
    tables = Tables(run)
    compared = tables.read("audit/compared")
    wrong = set(
        compared.filter(pl.col("legacy") & (pl.col("verdict") == "not relevant"))
        .select("query_id", "doc_id")
        .iter_rows()
    )
    with viewed(tmp_path, "runs/audit-data") as view:
        for path in ("/", "/queries", "/pairs", "/judges", "/search"):
            view.get(path)
        for pair in sorted(tables.pairs):
            page = view.pair(*pair)
            assert squeezed(tables.documents[pair[1]][1]) in page.squeezed
            for judge, grade in tables.grades[pair].items():
                assert grade in page.grades(judge)
        page = chosen(
            view, r"(original|legacy|brought).*reject|reject.*(original|legacy|label)|原始标注.*(否|驳|不相关)"
        )
        holds(view, page, wanted=wrong)
        assert wrong == {("q1", "d07")}


def test_a_run_that_is_only_pooled(tmp_path: Path) -> None:
    """There are texts and ranks; that nobody has judged is said, and no grade is made up."""
    name = tiny(tmp_path)
    settings = yaml.safe_load((tmp_path / name).read_text(encoding="utf-8"))
    settings["stages"] = ["ingest", "mask", "diversify", "pool"]
    (tmp_path / name).write_text(yaml.safe_dump(settings), encoding="utf-8")
    ran(tmp_path, "run", name)
    tables = Tables(tmp_path / "runs" / "tiny")
    with viewed(tmp_path, "runs/tiny") as view:
        assert view.get("/").has("not finished")
        for path in ("/queries", "/pairs", "/search"):
            view.get(path)
        assert view.client.get("/judges").status_code in (200, 404)
        for pair in sorted(tables.pairs)[:8]:
            page = view.pair(*pair)
            assert squeezed(tables.documents[pair[1]][1]) in page.squeezed
            assert page.has(r"not (yet )?judged|not fully judged|no grades?|nobody|unjudged|incomplete")
            assert not grades_after(page.text, "lexical", within=12)
            for retriever, rank in tables.ranks[pair].items():
                assert str(rank) in after(page.text, retriever, r"\d+")


def test_a_run_without_a_pool_is_looked_at_or_refused_with_a_sentence(tmp_path: Path) -> None:
    name = tiny(tmp_path)
    ran(tmp_path, "ingest", "--pipeline", name, "--run", "runs/tiny")
    failed = ""
    try:
        with viewed(tmp_path, "runs/tiny") as view:
            failed = "" if view.get("/").has("not finished") else "it is not said that the run is not finished"
    except AssertionError as error:
        failed = str(error)
    assert not failed or re.search(r"curate: .*(pool|run|stage)", failed), failed
    assert "Traceback" not in failed


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """Return a folder with a run whose third judge has graded some pairs only; the rest of the tape is `whole.tsv`."""
    name = write(tmp_path, taped=700)
    assert curate(tmp_path, "run", name).returncode == 1
    other = tmp_path / "other"
    other.mkdir()
    write(other)
    shutil.copy(other / "tape.tsv", tmp_path / "whole.tsv")
    shutil.rmtree(other)
    return tmp_path


def test_a_run_half_judged_shows_what_there_is(half: Path) -> None:
    tables = Tables(half / "runs" / "shown")
    open_pairs = sorted(pair for pair, given in tables.grades.items() if "jtape" not in given)
    whole = sorted(pair for pair, given in tables.grades.items() if len(given) == len(JUDGES))
    assert open_pairs
    assert whole
    with viewed(half, "runs/shown") as view:
        assert view.get("/").has("not finished")
        for path in ("/queries", "/pairs", "/judges", "/search", "/q/q00", "/q/q15"):
            view.get(path)
        for pair in [*open_pairs[:5], *whole[:5]]:
            page = view.pair(*pair)
            for judge in JUDGES:
                near = grades_after(page.text, judge, within=12)
                assert (tables.grades[pair].get(judge) in near) if judge in tables.grades[pair] else not near
        wanted = tables.cell({"jmild": "S", "jtape": "A"})
        assert listed(view, view.get("/pairs?jmild=S&jtape=A")).pairs == wanted


def test_a_run_that_is_judged_further_is_seen_anew(half: Path) -> None:
    """While another process works in the run, pages are of before or of after, or say that it changed."""
    before = Tables(half / "runs" / "shown")
    pair = min(pair for pair, given in before.grades.items() if "jtape" not in given)
    with viewed(half, "runs/shown") as view:
        assert not grades_after(view.pair(*pair).text, "jtape", within=12)
        shutil.copy(half / "whole.tsv", half / "tape.tsv")
        codes: Counter[int] = Counter()
        ended = threading.Event()

        def look() -> None:
            with httpx.Client(base_url=view.origin, cookies=view.client.cookies, trust_env=False, timeout=120) as other:
                while not ended.is_set():
                    for path in ("/", "/pairs", "/judges", f"/q/{pair[0]}/{pair[1]}"):
                        codes[other.get(path).status_code] += 1

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            done = curate(half, "run", "shown.yaml")
        finally:
            ended.set()
            watcher.join()
        assert done.returncode == 0, done.stderr
        assert max(codes) < 500
        tables = Tables(half / "runs" / "shown")
        ends = time.monotonic() + 120
        lacking = ["not looked at"]
        while lacking and time.monotonic() < ends:
            answer = view.client.get(f"/q/{pair[0]}/{pair[1]}")
            page = Page(answer)
            assert answer.status_code < 500
            lacking = [] if page.has(CHANGED) and not page.has("jtape") else shows(page, tables, pair)
        assert not lacking
        cells = [
            link
            for link in view.get("/judges").links
            if link.path == "/pairs" and {"jmild", "jtape"} <= set(link.asked)
        ]
        numbers = {tuple(sorted(link.asked.items())): int(re.findall(r"\d+", link.node.text())[0]) for link in cells}
        assert sum(numbers.values()) == len(tables.pairs)


def test_two_servers_of_a_run_that_is_judged_further(half: Path) -> None:
    """The one that makes the index anew takes nothing from under the other."""
    before = Tables(half / "runs" / "shown")
    pairs = sorted(pair for pair, given in before.grades.items() if "jtape" not in given)[:3]
    with viewed(half, "runs/shown") as one, viewed(half, "runs/shown") as other:
        for view in (one, other):
            view.pair(*pairs[0])
            view.search("感冒")
        shutil.copy(half / "whole.tsv", half / "tape.tsv")
        ran(half, "run", "shown.yaml")
        tables = Tables(half / "runs" / "shown")
        for view in (other, one, other):
            for pair in pairs:
                ends = time.monotonic() + 120
                while (lacking := shows(view.pair(*pair), tables, pair)) and time.monotonic() < ends:
                    time.sleep(0.05)
                assert not lacking
            assert {doc for doc in view.search("感冒").documents if doc != COPY} == {
                doc for doc, (title, text) in tables.documents.items() if "感冒" in title + text
            }


def test_another_rule_for_labels_is_seen_while_the_server_runs(tmp_path: Path) -> None:
    ran(tmp_path, "run", tiny(tmp_path))
    before = Tables(tmp_path / "runs" / "tiny").verdicts
    with viewed(tmp_path, "runs/tiny") as view:
        pair = min(pair for pair, verdict in before.items() if verdict == "contested")
        assert view.pair(*pair).has("contested")
        rule = "consensus.policy={positive: {at_least: 1}, negative: {at_least: 2}}"
        ran(tmp_path, "run", "tiny.yaml", "--set", rule)
        now = Tables(tmp_path / "runs" / "tiny").verdicts[pair]
        assert now == "relevant"
        ends = time.monotonic() + 120
        seen = False
        while not seen and time.monotonic() < ends:
            page = view.pair(*pair)
            words = after(page.text.lower(), "label", r"not relevant|relevant|contested")
            words += after(page.text.lower(), "published", r"not relevant|relevant|contested")
            seen = now in words or page.has(CHANGED)
        assert seen


def test_a_run_that_goes_away_breaks_nothing(copy: Path) -> None:
    with viewed(copy, "runs/shown") as view:
        view.get("/q/q00/d000")
        (copy / "runs" / "shown").rename(copy / "runs" / "elsewhere")
        for path in ("/", "/queries", "/pairs", "/judges", "/q/q00/d000", "/doc/d000", "/search"):
            answer = view.client.get(path)
            assert answer.status_code != 500
            assert "Traceback" not in answer.text
            assert len(Page(answer).text) > 10
        (copy / "runs" / "elsewhere").rename(copy / "runs" / "shown")
        view.get("/q/q00/d000")


def test_judges_may_have_the_names_of_other_parts_of_an_address(tmp_path: Path) -> None:
    """A cell leads to as many pairs as it says, also if judges are called `page` and `verdict`."""
    name = tiny(tmp_path)
    settings = yaml.safe_load((tmp_path / name).read_text(encoding="utf-8"))
    strict = settings["judges"]["strict"]
    settings["judges"] = {"page": {"kind": "lexical"}, "verdict": strict}
    settings["judge"] = {"models": ["page", "verdict"]}
    (tmp_path / name).write_text(yaml.safe_dump(settings), encoding="utf-8")
    ran(tmp_path, "run", name)
    tables = Tables(tmp_path / "runs" / "tiny")
    with viewed(tmp_path, "runs/tiny") as view:
        cells = [link for link in view.get("/judges").links if link.path == "/pairs" and link.node.text().isdigit()]
        found = Counter(frozenset(listed(view, view.get(link.url)).pairs) for link in cells)
        assert sorted(int(link.node.text()) for link in cells if link.node.text() != "0") == sorted(
            len(pairs) for pairs in found if pairs
        )
        wanted = Counter((given["page"], given["verdict"]) for given in tables.grades.values())
        assert sorted(wanted.values()) == sorted(len(pairs) for pairs in found if pairs)


@pytest.mark.parametrize("name", list(scale_runs.CASES))
def test_other_scales_show_their_own_grades(tmp_path: Path, name: str) -> None:
    scale_runs.make(tmp_path, scale_runs.CASES[name])
    tables = Tables(tmp_path / "runs" / "tiny")
    told = json.loads((tables.run / "judge" / "scale.json").read_text(encoding="utf-8"))
    grades, meanings = told["scale"]["labels"], told["meanings"]
    with viewed(tmp_path, "runs/tiny", language="zh") as view:
        for pair in sorted(tables.pairs)[:10]:
            page = view.pair(*pair)
            for judge, grade in tables.grades[pair].items():
                assert grade in page.grades(judge, grades)
                said = [words.get(grade) for words in meanings.values()] if meanings else []
                assert not said or [words for words in said if words and squeezed(words) in page.squeezed]
        cells = defaultdict(set)
        for pair, given in tables.grades.items():
            cells[given["lexical"], given["strict"]].add(pair)
        for (one, other), wanted in cells.items():
            path = f"/pairs?lexical={quote(one)}&strict={quote(other)}"
            assert listed(view, view.get(path)).pairs == wanted


def test_a_run_of_a_kind_on_labels_without_order(tmp_path: Path) -> None:
    """Texts with a class have neither pool nor threshold; the pages answer, and texts are found."""
    data = tmp_path / "data"
    (data / "qrels").mkdir(parents=True)
    words = ("头", "胸", "腹", "背", "手", "脚", "眼", "耳", "喉", "皮肤")
    texts = [
        (f"d{n:03}", f"{words[n % 10]}疼了{n}天，{words[(n // 10) % 10]}也不舒服，号{n * n}", "北南"[n % 2])
        for n in range(80)
    ]
    lines(data / "corpus.jsonl", [{"_id": name, "title": "", "text": text} for name, text, _ in texts])
    lines(data / "queries.jsonl", [{"_id": "q0", "text": "头疼怎么办"}])
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td000\t1\n", encoding="utf-8")
    (tmp_path / "labels.csv").write_text(
        "id,label\n" + "".join(f"{name},{label}\n" for name, _, label in texts), encoding="utf-8"
    )
    labels_given = {"path": "labels.csv", "side": "corpus", "columns": {"id": "id", "label": "label"}}
    pipeline = {
        "version": 1,
        "name": "classes",
        "language": "zh",
        "stages": ["ingest", "mask", "diversify", "label"],
        "ingest": {"source": "data", "labels": labels_given},
    }
    (tmp_path / "classes.yaml").write_text(yaml.safe_dump(pipeline, allow_unicode=True), encoding="utf-8")
    ran(tmp_path, "run", "classes.yaml")
    with viewed(tmp_path, "runs/classes") as view:
        for path in ("/", "/queries", "/q/q0", "/pairs", "/search", "/doc/d000"):
            view.get(path)
        assert view.client.get("/judges").status_code in (200, 404)
        found = view.search("头疼")
        assert "d000" in found.documents
        assert "q0" in found.queries


@pytest.mark.parametrize(
    ("language", "words"), [("en", ("Overview", "Queries", "Judges")), ("zh", ("概览", "查询", "评审"))]
)
def test_pages_are_in_the_readers_language(folder: Path, view: View, language: str, words: Sequence[str]) -> None:
    other = {"en": ("概览", "评审模型"), "zh": ("Overview", "Published label")}[language]
    for path in ("/", "/queries", "/q/q10/d050"):
        with view.speaking(language):
            page = view.get(path)
        assert page.root.all("html")[0].attrs.get("lang", "").startswith(language)
        assert [word for word in words if word not in page.text] == []
        assert [word for word in other if word in page.text] == []


def test_the_state_of_a_run_of_heuristics_is_red(tmp_path: Path) -> None:
    ran(tmp_path, "run", tiny(tmp_path))
    with viewed(tmp_path, "runs/tiny") as view:
        assert view.get("/").has("not fit to score models")
        with view.speaking("zh"):
            assert "不能用来评价模型" in view.get("/").text


# Models that answered, and their ledger


@contextmanager
def asked(folder: Path, **variables: str) -> Iterator[Any]:
    """Judge the small run with two models on this machine, one of which answers by another name; yield their vendor."""

    def grade(query: str, passage: str) -> str:
        return GRADES[(len(passage) + 3 * (query[:2] == passage[:2])) % 5]

    with vendor(grade, lambda call: renamed("echo-2026-11") if call.model == "echo" else None) as server:
        name = tiny(folder)
        settings = yaml.safe_load((folder / name).read_text(encoding="utf-8"))
        price = {"input": 0.0, "output": 0.0, "date": "2026-11-01"}
        settings["judges"] = {
            judge: {"kind": "openai", "model": model, "base_url": server.url, "price": price, "local": True}
            for judge, model in (("jfirst", "echo"), ("jsecond", "glm-1"))
        }
        settings["judge"] = {"models": ["jfirst", "jsecond"], "controls": 0}
        settings["stages"] = ["ingest", "mask", "diversify", "pool", "judge", "consensus", "resolve"]
        (folder / name).write_text(yaml.safe_dump(settings), encoding="utf-8")
        ran(folder, "run", name, "--yes", OPENAI_API_KEY="sk-for-judging-only", **variables)
        yield server


def raw_replies(view: View, page: Page) -> str:
    """Return the page of a pair with what its links to raw replies lead to."""
    told = [page.text]
    raw = [link.url for link in page.links if re.search(r"raw|原始回复", link.label, re.IGNORECASE)]
    told.extend(view.get(url).text for url in raw)
    return " ".join(told)


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_place(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the variables by which a ledger is found: none for a file, the address of a server's database."""
    if request.param == "sqlite":
        return {}
    return {"CURATE_LEDGER": postgres.database(request.getfixturevalue("postgres_server"))}


def test_raw_replies_are_read_from_the_ledger_and_no_model_is_called(
    tmp_path: Path, ledger_place: dict[str, str]
) -> None:
    """A reply is shown with its model and the place of the pair in the prompt; no reason was asked for."""
    with asked(tmp_path, **ledger_place) as server:
        tables = Tables(tmp_path / "runs" / "tiny")
        calls = len(server.calls)
        assert calls
        slots = {
            (query, doc): slot
            for query, doc, judge, slot in tables.read("judge/ratings")
            .select("query_id", "doc_id", "judge", "slot")
            .iter_rows()
            if judge == "jfirst"
        }
        ledger = tmp_path / "home" / "ledger.db"
        before = hashlib.sha256(ledger.read_bytes()).hexdigest() if not ledger_place else ""
        with viewed(tmp_path, "runs/tiny", OPENAI_API_KEY="", **ledger_place) as view:
            for pair in sorted(tables.pairs)[:6]:
                page = view.pair(*pair)
                for judge in ("jfirst", "jsecond"):
                    assert tables.grades[pair][judge] in page.grades(judge)
                told = raw_replies(view, page)
                assert "echo-2026-11" in told
                assert is_named(str(slots[pair] + 1), told) or is_named(str(slots[pair]), told)
                assert re.search(r"no reason|未要求说明理由|没有要求", told, re.IGNORECASE)
            for path in ("/", "/queries", "/pairs", "/judges", "/q/q0", "/doc/d00"):
                view.get(path)
            view.search("咖啡")
        assert len(server.calls) == calls
        if not ledger_place:
            assert hashlib.sha256(ledger.read_bytes()).hexdigest() == before


def unprivileged() -> list[str]:
    """Return a command by which a process cannot write where the mode of a folder forbids it, even started by root."""
    if os.geteuid() != 0:
        return []
    need(shutil.which("setpriv") is not None, "the command setpriv")
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner"]


@contextmanager
def read_only(*roots: Path) -> Iterator[None]:
    """Take the right to write from folders and all that is in them until the block ends."""
    paths = [path for root in roots for path in (root, *root.rglob("*"))]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    for path, mode in modes.items():
        path.chmod(mode & 0o555)
    try:
        yield
    finally:
        for path in sorted(modes, key=lambda path: len(path.parts)):
            path.chmod(modes[path] | (0o700 if path.is_dir() else 0o600))


def test_a_ledger_that_cannot_be_written_is_read_all_the_same(tmp_path: Path) -> None:
    with asked(tmp_path):
        tables = Tables(tmp_path / "runs" / "tiny")
        shelf = tmp_path / "shelf"
        shelf.mkdir()
        for path in (tmp_path / "home").glob("ledger.db*"):
            shutil.move(path, shelf / path.name)
        place = {"CURATE_LEDGER": str(shelf / "ledger.db")}
        with read_only(shelf), viewed(tmp_path, "runs/tiny", prefix=unprivileged(), **place) as view:
            pair = min(tables.pairs)
            assert "echo-2026-11" in raw_replies(view, view.pair(*pair))


def test_without_the_ledger_all_but_raw_replies_is_shown(tmp_path: Path) -> None:
    with asked(tmp_path):
        tables = Tables(tmp_path / "runs" / "tiny")
        for path in (tmp_path / "home").glob("ledger.db*"):
            path.unlink()
        with viewed(tmp_path, "runs/tiny") as view:
            page = view.pair(*min(tables.pairs))
            for judge, grade in tables.grades[min(tables.pairs)].items():
                assert grade in page.grades(judge)
            assert "echo-2026-11" not in raw_replies(view, page)
        assert not list((tmp_path / "home").glob("ledger.db"))


# The index of pages


def index_files(run: Path) -> list[Path]:
    return sorted(path for path in (run / ".view").rglob("*") if path.is_file())


@pytest.mark.parametrize("damage", ["cut", *accepting("gone", "empty", "noise")])
def test_a_damaged_index_is_made_again(copy: Path, tables: Tables, damage: str) -> None:
    run = copy / "runs" / "shown"
    with viewed(copy, "runs/shown") as view:
        view.pair("q00", "d000")
        view.search("感冒")
    assert index_files(run)
    for path in index_files(run):
        content = path.read_bytes()
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(
                {"empty": b"", "cut": content[: len(content) // 2], "noise": b"\x00\xff" * len(content)}[damage]
            )
    with viewed(copy, "runs/shown") as view:
        assert not shows(view.pair("q00", "d000"), tables, ("q00", "d000"))
        assert view.search("感冒").documents


def test_the_index_is_only_for_its_owner_and_nothing_else_changes(copy: Path) -> None:
    run = copy / "runs" / "shown"

    def state() -> dict[str, tuple[str, int]]:
        found = {}
        for path in sorted(run.rglob("*")):
            if path.is_file() and ".view" not in path.relative_to(run).parts:
                found[str(path)] = (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        return found

    before = state()
    with viewed(copy, "runs/shown") as view:
        for path in ("/", "/queries", "/pairs", "/judges", "/search", "/q/q00", "/q/q00/d000", "/doc/d000"):
            view.get(path)
        view.search("咖啡")
        assert state() == before
        assert stat.S_IMODE((run / ".view").stat().st_mode) == 0o700
        assert [
            path
            for path in index_files(run)
            if stat.S_IMODE(path.stat().st_mode) & 0o077 and path.parent != run / ".view"
        ] == []
    assert state() == before


def test_the_index_holds_masked_texts_only_and_is_in_no_export(copy: Path) -> None:
    with viewed(copy, "runs/shown") as view:
        view.search("感冒")
    assert index_files(copy / "runs" / "shown")
    for path in index_files(copy / "runs" / "shown"):
        assert PHONE.encode() not in path.read_bytes()
    ran(copy, "export", "--force")
    assert not list((copy / "runs" / "shown" / "export").rglob(".view"))
    assert not list((copy / "runs" / "shown" / "export").rglob("*.arrow"))


def test_a_run_that_cannot_be_written_is_looked_at(copy: Path, tables: Tables) -> None:
    """What would be in the run folder is then under CURATE_HOME."""
    run = copy / "runs" / "shown"
    with read_only(run), viewed(copy, "runs/shown", prefix=unprivileged()) as view:
        assert not shows(view.pair("q00", "d000"), tables, ("q00", "d000"))
        assert view.search("感冒").documents
    assert not (run / ".view").exists()


def test_two_servers_of_one_run(copy: Path, tables: Tables) -> None:
    with viewed(copy, "runs/shown") as one, viewed(copy, "runs/shown") as other:
        for view in (one, other):
            assert not shows(view.pair("q00", "d000"), tables, ("q00", "d000"))
    done = curate(copy, "status", "--run", "runs/shown")
    assert done.returncode == 0


# 7: who is refused


@pytest.mark.parametrize(
    "target",
    [
        *("/q/..%2f..", "/q/..%2f..%2f..%2f..%2fetc%2fpasswd", "/q/../../etc/passwd", "/doc/..%2f..%2fpipeline.yaml"),
        *(
            "/static/..%2f..%2f..%2fpipeline.yaml",
            "/static/../../pipeline.yaml",
            "/static/%2fetc%2fpasswd",
            "/.view/docs.arrow",
        ),
        *(
            "/q/%00/%00",
            "/q/%ff%fe",
            "/q/q00/%2e%2e%2fd000",
            "/doc/" + "x" * 9000,
            "//evil.example/%2f..",
            "/%5cevil.example",
        ),
        *("/queries?page=%00", "/pairs?" + "a=b&" * 2000),
    ],
)
def test_no_path_leads_out(view: View, target: str) -> None:
    status, said = view.raw("GET", target)
    assert status < 500
    assert "root:" not in said
    assert "version: 1" not in said
    assert "Traceback" not in said
    assert "evil.example" not in said.split("\n")[0]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "192.168.0.1", "localhost.evil.example:80"])
def test_a_foreign_host_is_refused(view: View, host: str) -> None:
    for path in ("/", "/q/q00/d000", "/pairs"):
        status, said = view.raw("GET", path, {"Host": host})
        assert 400 <= status < 500
        assert "咖啡" not in said


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_search_from_another_page_is_refused(view: View, headers: dict[str, str]) -> None:
    action, hidden, name = view.search_form()
    sent = view.client.post(action, data={**hidden, name: "coffee"}, headers=headers)
    assert 400 <= sent.status_code < 500
    assert not Page(sent).documents


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND"])
def test_other_methods_are_refused(view: View, method: str) -> None:
    for path in ("/", "/q/q00/d000", "/search"):
        assert 400 <= view.raw(method, path)[0] < 502


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_browser_without_a_pass_is_told_the_command_that_shows_the_address(view: View, language: str) -> None:
    refused = httpx.get(view.origin, headers={"Accept-Language": language}, trust_env=False, timeout=120)
    assert refused.status_code == 403
    assert "curate view" in refused.text
    assert "review serve" not in refused.text


@pytest.mark.parametrize("path", ["/", "/q/q00/d000", "/pairs", "/judges"])
def test_nothing_is_sent_to_pages_that_only_show(view: View, path: str) -> None:
    status, _ = view.raw(
        "POST", path, {"Origin": view.origin, "Content-Type": "application/x-www-form-urlencoded"}, "a=b"
    )
    assert status in (403, 404, 405)


@pytest.fixture(scope="module")
def crawl(opened: Opened) -> Callable[[], list[Page]]:
    """Return pages of every sort, as many as are reached from the first by a few links each."""
    found: list[Page] = []

    def crawled() -> list[Page]:
        if found:
            return found
        view = opened()
        starts = [
            "/",
            "/queries",
            "/q/q00",
            "/q/q00/d000",
            "/q/q02/d903",
            "/pairs",
            "/pairs?jmild=S",
            "/doc/d000",
            "/judges",
        ]
        pages = [view.get(path) for path in [*starts, "/search", "/doc/d900"]]
        pages += [view.search("咖啡"), Page(view.client.get("/q/nobody"))]
        seen = {page.url for page in pages}
        sorts: Counter[tuple[str, ...]] = Counter()
        for page in list(pages):
            for link in page.links:
                sort = (link.segments[0], str(len(link.segments)), *sorted(link.asked))
                if link.url in seen or not link.url.startswith(view.origin) or sorts[sort] >= 3 or len(pages) > 90:
                    continue
                seen.add(link.url)
                sorts[sort] += 1
                answer = view.client.get(link.url)
                assert answer.status_code < 400, (page.url, link.url, answer.status_code)
                if "html" in answer.headers["content-type"]:
                    pages.append(Page(answer))
        found.extend(pages)
        return found

    return crawled


def test_no_link_is_broken(crawl: Callable[[], list[Page]]) -> None:
    assert len(crawl()) > 15


def test_no_page_runs_what_stands_in_it(crawl: Callable[[], list[Page]]) -> None:
    for page in crawl():
        policy = page.response.headers.get("content-security-policy", "")
        rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split(";") if rule.strip()}
        scripts = rules.get("script-src", rules.get("default-src", ["*"]))
        assert not {"'unsafe-inline'", "'unsafe-eval'", "*", "data:", "https:", "http:"} & set(scripts), page.url
        assert rules.get("default-src", ["*"])[0] in ("'none'", "'self'")
        assert rules.get("form-action", ["*"])[0] in ("'none'", "'self'")
        assert rules.get("base-uri", ["*"])[0] in ("'none'", "'self'")
        assert "frame-ancestors" in rules or "x-frame-options" in page.response.headers
        assert page.response.headers.get("x-content-type-options") == "nosniff"
        assert page.response.headers.get("referrer-policy") in ("no-referrer", "same-origin")
        for script in page.root.all("script"):
            assert "src" in script.attrs or script.attrs.get("type") == "application/json" or "nonce" in script.attrs
        assert not [node for node in page.root.all() if any(name.startswith("on") for name in node.attrs)]


def test_nothing_is_loaded_from_elsewhere(view: View, crawl: Callable[[], list[Page]]) -> None:
    kinds = {"src", "href", "action", "srcset", "poster", "data", "formaction", "xlink:href"}
    files = set()
    for page in crawl():
        for node in page.root.all():
            for name in kinds & set(node.attrs):
                url = browsed(page.url, node.attrs[name])
                assert url.startswith((view.origin, "data:image/")), (page.url, node.attrs[name])
                files |= {url} if node.tag in ("link", "script", "img") and url.startswith("http") else set()
    assert files
    for url in files:
        answer = view.client.get(url)
        assert answer.status_code == 200
        assert not re.search(r"url\(\s*['\"]?(https?:)?//|@import|https?://(?!www\.w3\.org)", answer.text)


def test_no_address_holds_words_of_a_text(crawl: Callable[[], list[Page]]) -> None:
    """Ids of this run are plain, so an address has no Chinese and no word of a query."""
    for page in crawl():
        for url in [page.url, *(link.url for link in page.links)]:
            plain = unquote(url)
            assert not re.search(r"[\u4e00-\u9fff]", plain), plain
            assert not re.search("coffee|doctor|knee|fever", plain, re.IGNORECASE), plain


# 8: people who read an open sample stay blind


@pytest.fixture(scope="module")
def sampled(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run with a sample that one person has yet to read."""
    made = tmp_path_factory.mktemp("sampled")
    shutil.copytree(folder, made, dirs_exist_ok=True)
    shutil.rmtree(made / "runs" / "shown" / ".view", ignore_errors=True)
    ran(made, "review", "export", "--size", "80", "--assessors", "wang", "--run", "runs/shown")
    return made


def drawn(folder: Path) -> set[Pair]:
    """Return the pairs of the pool in the sample."""
    survey = pl.read_parquet(folder / "runs" / "shown" / "reviews" / "expert" / "survey.parquet")
    pairs = {(ids[0], ids[1]) for ids in survey["ids"].to_list()}
    return pairs & Tables(folder / "runs" / "shown").pairs


@pytest.fixture(scope="module")
def sampled_opened(sampled: Path) -> Iterator[Opened]:
    server = Opened(sampled, "runs/shown")
    yield server
    server.stop()


def reveals(page: Page, tables: Tables, pair: Pair) -> list[str]:
    """Return what a page of a pair tells of its judges and its label."""
    told = [f"{judge} {near}" for judge in JUDGES for near in grades_after(page.text, judge, within=12)]
    for name in ("label", "published"):
        near = after(
            page.text.lower(), name, r"not relevant|relevant|contested|incomplete|hidden|withheld|not shown", 30
        )
        told += [word for word in near if word == tables.verdicts[pair]]
    return told


def shown_or_refused(view: View, path: str) -> Page | None:
    """Return a page, or None where it is refused with a sentence that says why."""
    page = Page(view.client.get(path))
    if page.status == 403:
        assert page.has(HIDDEN)
        return None
    assert page.status == 200, (path, page.status)
    return page


def test_the_page_of_a_pair_that_is_being_read_hides_grades(
    sampled: Path, sampled_opened: Opened, tables: Tables
) -> None:
    view = sampled_opened()
    pairs = sorted(drawn(sampled))
    assert len(pairs) > 40
    for pair in pairs[::3]:
        page = shown_or_refused(view, f"/q/{pair[0]}/{pair[1]}")
        if page:
            assert not reveals(page, tables, pair), pair
            assert page.has(HIDDEN), pair


def test_other_pairs_are_shown_while_a_sample_is_open(sampled: Path, sampled_opened: Opened, tables: Tables) -> None:
    """For pairs of no sample nothing is hidden, unless all of view is refused while a sample is open."""
    view = sampled_opened()
    for pair in sorted(tables.pairs - drawn(sampled))[:10]:
        page = shown_or_refused(view, f"/q/{pair[0]}/{pair[1]}")
        if page:
            assert not shows(page, tables, pair)


def read_all(out: Path) -> list[Page]:
    """Return the pages of a folder."""
    found = []
    for path in sorted(out.rglob("*.html")):
        request = httpx.Request("GET", path.resolve().as_uri())
        found.append(Page(httpx.Response(200, text=path.read_text(encoding="utf-8"), request=request)))
    return found


def told_in_rows(page: Page, names: set[str]) -> list[str]:
    """Return the rows of a list that name a document and hold a grade in a cell of its own."""
    found = []
    for row in page.root.all("tr", "li", "article"):
        links = [browsed(page.url, node.attrs.get("href", "")) for node in row.all("a")]
        docs = {unquote(urlsplit(url).path.split("/")[-1]) for url in links}
        cells = {cell.text() for cell in row.all("td", "span", "b", "abbr", "dd")}
        if docs & names and (cells & set(GRADES) or any(grades_after(row.text(), judge, within=4) for judge in JUDGES)):
            found.append(row.text()[:80])
    return found


def test_the_pool_of_a_query_hides_grades_of_pairs_that_are_being_read(sampled: Path, sampled_opened: Opened) -> None:
    view = sampled_opened()
    hidden = drawn(sampled)
    for query in ("q00", "q05", "q12"):
        page = shown_or_refused(view, f"/q/{query}")
        if page:
            for part in listed(view, page).pages:
                assert not told_in_rows(part, {doc for name, doc in hidden if name == query})


def test_filters_do_not_give_away_pairs_that_are_being_read(
    sampled: Path, sampled_opened: Opened, tables: Tables
) -> None:
    view = sampled_opened()
    hidden = drawn(sampled)
    for grade in GRADES:
        for judge in JUDGES:
            page = shown_or_refused(view, f"/pairs?{judge}={grade}")
            if page:
                assert listed(view, page).pairs == tables.cell({judge: grade}) - hidden
    if shown_or_refused(view, "/pairs"):
        page = chosen(view, r"^\W*contested|^\W*有分歧")
        wanted = tables.having("contested") - hidden
        found = listed(view, page)
        assert found.queries == {query for query, _ in wanted} if page.path == "/queries" else found.pairs == wanted


def test_matrices_leave_out_pairs_that_are_being_read(sampled: Path, sampled_opened: Opened, tables: Tables) -> None:
    page = shown_or_refused(sampled_opened(), "/judges")
    if page is None:
        return
    hidden = drawn(sampled)
    assert page.has(HIDDEN)
    for one, other in combinations(JUDGES, 2):
        for link in page.links:
            if link.path == "/pairs" and set(link.asked) & set(JUDGES) == {one, other}:
                cell = tables.cell({one: link.asked[one], other: link.asked[other]}) - hidden
                assert int(re.findall(r"\d+", link.node.text())[0]) == len(cell)


def test_the_terminal_hides_grades_of_a_pair_that_is_being_read(sampled: Path, tables: Tables) -> None:
    for pair in sorted(drawn(sampled))[:4]:
        done = curate(sampled, "view", "runs/shown", "--pair", *pair)
        said = done.stdout + done.stderr
        assert "No such command" not in said
        assert re.search(HIDDEN, said, re.IGNORECASE)
        assert not [judge for judge in JUDGES if grades_after(said, judge, within=12)]


def test_an_export_gives_away_nothing_that_is_being_read(sampled: Path, tmp_path: Path) -> None:
    out = tmp_path / "handed"
    done = curate(sampled, "view", "runs/shown", "--export", str(out))
    assert "No such command" not in done.stderr
    if done.returncode:
        assert re.search(HIDDEN, done.stderr, re.IGNORECASE)
        assert not out.exists()
        return
    hidden, tables = drawn(sampled), Tables(sampled / "runs" / "shown")
    documents = {MARK.findall(text)[-1]: doc for doc, (_, text) in tables.documents.items()}
    queries = {squeezed(text): query for query, text in tables.queries.items()}
    for page in read_all(out):
        for query in {query for query, _ in hidden if is_named(query, page.text)}:
            assert not told_in_rows(
                page, {f"{doc}{end}" for name, doc in hidden if name == query for end in ("", ".html")}
            )
        docs = {documents[mark] for mark in MARK.findall(page.squeezed)}
        asked_here = {query for text, query in queries.items() if text in page.squeezed}
        if len(docs) == len(asked_here) == 1 and (asked_here.pop(), docs.pop()) in hidden:
            assert not [judge for judge in JUDGES if page.grades(judge)]


def test_grades_are_shown_again_once_all_was_answered(sampled: Path, tables: Tables, tmp_path: Path) -> None:
    shutil.copytree(sampled, tmp_path, dirs_exist_ok=True)
    pair = min(drawn(tmp_path))
    with viewed(tmp_path, "runs/shown") as view:
        assert Page(view.client.get(f"/q/{pair[0]}/{pair[1]}")).has(HIDDEN)
        sheet = pl.read_csv(tmp_path / "runs/shown/reviews/expert/sheets/wang.csv", infer_schema=False)
        column = next(name for name in sheet.columns if "grade" in name.lower() or "等级" in name)
        sheet.with_columns(pl.lit("B").alias(column)).write_csv(tmp_path / "wang.csv")
        ran(tmp_path, "review", "import", "wang.csv", "--run", "runs/shown")
        ends = time.monotonic() + 120
        lacking = ["not looked at"]
        while lacking and time.monotonic() < ends:
            page = Page(view.client.get(f"/q/{pair[0]}/{pair[1]}"))
            lacking = shows(page, tables, pair) if page.status == 200 else ["refused"]
        assert not lacking
        assert "B" in grades_after(page.text, "wang") + after(page.text, "People", "B") + after(
            page.text, "people", "B"
        )


# 9: a folder to hand on


def handed(folder: Path, out: Path, *options: str) -> list[Path]:
    """Export the pages of a run, hold that each pair of the run is counted as shown or left out; return all files."""
    said = ran(folder, "view", "runs/shown", "--export", str(out), *options).stdout
    shown, left_out = (int(found[1].replace(",", "")) for found in re.finditer(r"([\d,]+) pairs of", said))
    assert shown + left_out == len(pl.read_parquet(folder / "runs/shown/pool/pool.parquet"))
    return sorted(path for path in out.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def exported(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Return a function that exports once and gives the folder."""
    out = tmp_path_factory.mktemp("exported") / "view"

    def once() -> Path:
        if not out.exists():
            handed(folder, out)
        return out

    return once


def contents(out: Path) -> dict[Path, str]:
    """Return what can be read in every file, packed ones too."""
    found = {}
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        found[path] = squeezed(
            Reader(path.read_text(encoding="utf-8", errors="replace")).root.text()
            if path.suffix == ".html"
            else path.read_bytes().decode("utf-8", "replace")
        )
    return found


def test_published_pairs_are_exported_with_their_texts(exported: Callable[[], Path], tables: Tables) -> None:
    out = exported()
    assert (out / "index.html").is_file()
    texts = contents(out)
    for query, doc in sorted(pair for pair in tables.published() if tables.verdicts[pair] == "relevant"):
        text = squeezed(tables.documents[doc][1])[:200]
        assert [path for path, said in texts.items() if text in said and squeezed(tables.queries[query]) in said], (
            query,
            doc,
        )


def test_what_is_not_published_is_in_no_file(exported: Callable[[], Path], tables: Tables) -> None:
    """Texts of no published pair, and queries that were left out, are in no page, script, name or index."""
    out = exported()
    published = tables.published()
    docs, queries = {doc for _, doc in published}, {query for query, _ in published}
    secret = [text for doc, (_, text) in tables.documents.items() if doc not in docs]
    secret += [text for query, text in tables.queries.items() if query not in queries]
    assert len(secret) > 5
    said = "\n".join(contents(out).values()) + "\n".join(str(path) for path in out.rglob("*"))
    raw = b"\n".join(path.read_bytes() for path in out.rglob("*") if path.is_file()).decode("utf-8", "replace")
    for text in secret:
        part = MARK.findall(text)[0] if MARK.search(text) else squeezed(text)[:40]
        assert part not in said
        assert part not in raw
    assert PHONE not in raw


def test_contested_pairs_are_exported_only_where_it_is_asked_for(
    folder: Path, exported: Callable[[], Path], tables: Tables, tmp_path: Path
) -> None:
    """`--private` writes contested pairs too; without it no page shows the texts of a contested pair as a pair."""
    out = exported()
    contested = sorted(tables.having("contested"))
    for page in read_all(out):
        head = " ".join(node.text() for node in page.root.all("title", "h1"))
        assert not [pair for pair in contested if all(is_named(name, head) for name in pair)]
    handed(folder, tmp_path / "private", "--private")
    texts = "\n".join(contents(tmp_path / "private").values())
    for query, doc in contested[::10]:
        assert squeezed(tables.documents[doc][1])[:200] in texts, (query, doc)


def test_links_of_an_export_are_relative_and_lead_to_files(exported: Callable[[], Path]) -> None:
    out = exported()
    links = 0
    for path in out.rglob("*.html"):
        page = Reader(path.read_text(encoding="utf-8")).root
        assert not page.all("form")
        assert not page.all("base")
        for node in page.all():
            for name in {"href", "src", "action", "data", "srcset"} & set(node.attrs):
                value = node.attrs[name]
                if value.startswith(("#", "data:image/")):
                    continue
                parts = urlsplit(value)
                assert not parts.scheme, (path, value)
                assert not parts.netloc, (path, value)
                assert not value.startswith("/"), (path, value)
                target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                assert target.is_relative_to(out.resolve()), (path, value)
                assert target.is_file(), (path, value)
                links += 1
    assert links > 20


def test_every_page_of_an_export_is_reached_from_its_first(exported: Callable[[], Path]) -> None:
    out = exported()
    todo, seen = [out / "index.html"], {(out / "index.html").resolve()}
    while todo:
        path = todo.pop()
        for node in Reader(path.read_text(encoding="utf-8")).root.all("a"):
            parts = urlsplit(node.attrs.get("href", ""))
            target = (path.parent / unquote(parts.path)).resolve()
            if parts.path and target.suffix == ".html" and target not in seen:
                seen.add(target)
                todo.append(target)
    assert {path.resolve() for path in out.rglob("*.html")} == seen


def test_an_export_holds_nothing_of_the_machine_and_nothing_that_reaches_out(
    exported: Callable[[], Path], folder: Path
) -> None:
    for path, said in contents(exported()).items():
        assert str(folder) not in said, path
        assert str(ROOT) not in said, path
    for path in exported().rglob("*"):
        if path.suffix in (".css", ".js", ".html"):
            raw = path.read_text(encoding="utf-8")
            assert not re.search(r"""(src|href|url\(|@import|fetch\()\s*=?\s*['"(]*(https?:)?//""", raw), path


def test_an_export_holds_no_raw_reply_and_no_name_of_an_assessor(tmp_path: Path) -> None:
    with asked(tmp_path):
        ran(tmp_path, "review", "export", "--size", "30", "--assessors", "assessor-lin", "--run", "runs/tiny")
        sheet = pl.read_csv(tmp_path / "runs/tiny/reviews/expert/sheets/assessor-lin.csv", infer_schema=False)
        column = next(name for name in sheet.columns if "grade" in name.lower() or "等级" in name)
        sheet.with_columns(pl.lit("B").alias(column)).write_csv(tmp_path / "lin.csv")
        ran(tmp_path, "review", "import", "lin.csv", "--run", "runs/tiny")
        ran(tmp_path, "view", "runs/tiny", "--export", "handed", "--private")
        files = contents(tmp_path / "handed")
        assert files
        for path, said in files.items():
            assert "echo-2026-11" not in said, path
            assert "assessor-lin" not in said, path


def test_an_export_is_refused_while_personal_data_is_unresolved(tmp_path: Path) -> None:
    name = tiny(tmp_path)
    corpus = tmp_path / "data" / "corpus.jsonl"
    rows = [json.loads(line) for line in corpus.read_text("utf-8").splitlines()]
    rows[0]["text"] += "加QQ 123456。"
    lines(corpus, rows)
    assert curate(tmp_path, "run", name, "--set", "mask.recognisers=[mobile]").returncode == 2
    for options in ((), ("--private",)):
        done = curate(tmp_path, "view", "runs/tiny", "--export", "handed", *options)
        assert done.returncode == 2
        assert "curate check mask --residual" in " ".join(done.stderr.split())
        assert not (tmp_path / "handed").exists() or not list((tmp_path / "handed").iterdir())
    with viewed(tmp_path, "runs/tiny") as view:
        assert view.get("/q/q0/d00")


def test_an_export_goes_into_no_folder_that_holds_other_files(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear all", encoding="utf-8")
    done = curate(folder, "view", "runs/shown", "--export", str(tmp_path / "mine"))
    assert done.returncode == 2
    assert "No such command" not in done.stderr
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_two_exports_of_one_run_are_equal(folder: Path, exported: Callable[[], Path], tmp_path: Path) -> None:
    handed(folder, tmp_path / "again")
    one = {path.relative_to(exported()): path.read_bytes() for path in exported().rglob("*") if path.is_file()}
    other = {
        path.relative_to(tmp_path / "again"): path.read_bytes()
        for path in (tmp_path / "again").rglob("*")
        if path.is_file()
    }
    assert one == other


def test_the_report_links_into_the_pages_next_to_it(copy: Path, tables: Tables) -> None:
    """Where the folder `view` is next to the report, samples are links; else the command that opens one is printed."""
    run = copy / "runs" / "shown"
    ran(copy, "report", "--force", "--run", "runs/shown")
    report = Reader((run / "report.html").read_text(encoding="utf-8")).root
    assert re.search(r"curate view\b.*--open", report.text())
    assert not [node for node in report.all("a") if node.attrs.get("href", "").startswith("view/")]
    handed(copy, run / "view")
    ran(copy, "report", "--force", "--run", "runs/shown")
    report = Reader((run / "report.html").read_text(encoding="utf-8")).root
    links = [node.attrs["href"] for node in report.all("a") if node.attrs.get("href", "").startswith("view/")]
    assert links
    assert [href for href in links if not (run / unquote(urlsplit(href).path)).is_file()] == []


# 11: for everybody


def test_every_page_has_a_language_a_title_and_one_heading(crawl: Callable[[], list[Page]]) -> None:
    for page in crawl():
        assert page.root.all("html")[0].attrs.get("lang"), page.url
        assert [node.text() for node in page.root.all("title") if node.text()], page.url
        assert len(page.root.all("h1")) == 1, page.url
        assert page.root.all("h1")[0].text(), page.url
        assert len(page.root.all("main")) == 1, page.url
    titles = {page.url: page.root.all("title")[0].text() for page in crawl()}
    assert len(set(titles.values())) > 5


def test_every_field_has_a_label(crawl: Callable[[], list[Page]]) -> None:
    for page in crawl():
        for node in page.root.all("input", "select", "textarea"):
            if node.attrs.get("type") in ("hidden", "submit", "button", "image"):
                continue
            ids = node.attrs.get("aria-labelledby", "").split()
            named = [other.text() for other in page.root.all() if other.attrs.get("id") in ids and ids]
            said = labels(page.root, node).strip() or node.attrs.get("title") or "".join(named)
            assert said, (page.url, node.attrs)
        for node in page.root.all("button", "a"):
            pictures = [inner.attrs.get("alt", "") + inner.text() for inner in node.all("img", "svg")]
            assert label_of(node) or "".join(pictures), (page.url, node.attrs)


def test_tables_say_what_their_heads_are_of(crawl: Callable[[], list[Page]]) -> None:
    heads = 0
    for page in crawl():
        for table in page.root.all("table"):
            assert table.all("th"), page.url
            for head in table.all("th"):
                heads += 1
                assert head.attrs.get("scope") in ("col", "row", "colgroup", "rowgroup"), (page.url, head.text())
    assert heads


def test_the_order_of_the_keyboard_is_that_of_the_page(crawl: Callable[[], list[Page]]) -> None:
    for page in crawl():
        orders = [node.attrs["tabindex"] for node in page.root.all() if "tabindex" in node.attrs]
        assert not [order for order in orders if int(order) > 0], page.url
        names = [node.attrs["id"] for node in page.root.all() if "id" in node.attrs]
        assert len(names) == len(set(names)), page.url


def test_everything_works_without_script(crawl: Callable[[], list[Page]]) -> None:
    for page in crawl():
        for node in page.root.all("a"):
            href = node.attrs.get("href")
            assert href, (page.url, node.text())
            assert not href.lower().startswith("javascript:")
            if href.startswith("#"):
                assert href[1:] in {other.attrs.get("id") for other in page.root.all()} | {"", "top"}, (page.url, href)
        for form in page.root.all("form"):
            buttons = [
                node for node in form.all("button", "input") if node.attrs.get("type", "submit") in ("submit", "image")
            ]
            texts = [node for node in form.all("input") if node.attrs.get("type", "text") in ("text", "search")]
            assert buttons or (texts and not form.all("select")), page.url
        for image in page.root.all("img"):
            assert "alt" in image.attrs, page.url


def test_every_list_leads_on_to_the_next_and_back(view: View, tables: Tables) -> None:
    """A pair that was opened from a list says which of how many it is, and has links to the one before and after."""
    first = view.get("/pairs?jmild=S")
    wanted = tables.cell({"jmild": "S"})
    opening = [link for link in first.body if len(link.segments) == 3 and link.segments[0] == "q"]
    assert opening
    page = view.get(opening[0].url)
    assert page.counts(len(wanted))
    onward = [
        link
        for link in page.links
        if re.search(r"next|下一", f"{link.label} {link.node.attrs.get('rel', '')}", re.IGNORECASE)
    ]
    assert onward
    following = view.get(onward[0].url)
    assert following.path != page.path
    assert tuple(Link(following.url, "", Node("a")).segments[1:3]) in wanted
