"""People who review one run together: its sample, its server, and browsers that read pages as people read them."""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit

import polars as pl
import yaml

from tests import ROOT
from tests.support.html_tree import Node, Reader
from tests.support.runs import Done, curate, ran

JUDGES = ("jalpha", "jbeta")
GRADES = "SABCD"
RUN = "runs/team"
PERSONS = ("wangfang", "liqiang")
SCRIPT = '<script>alert(46)</script><img src=x onerror=alert(46)>"{{7*7}}'
QUERIES = ("q/🩺", "q..", "q<b>2", "q'3", "q%2F4", "q05", "问6", "q&7")
TOPICS = ("高血压", "胃溃疡", "发热", "偏头痛", "痛风", "失眠", "贫血", "哮喘")
DEPTH = 12


# Pages


@dataclass(frozen=True)
class Choice:
    """Something that can be pressed or chosen in a form."""

    form: Node
    name: str
    value: str
    label: str
    kind: str


class Page:
    """What came back, as it is read."""

    def __init__(self, path: str, status: int, headers: Mapping[str, str], html: str, cookies: Sequence[str]) -> None:
        self.path, self.status, self.headers, self.html, self.cookies = path, status, headers, html, cookies
        self.root = Reader(html).root

    @cached_property
    def text(self) -> str:
        """Return what is to be read on it."""
        return (self.root.all("body") or [self.root])[0].text()

    @property
    def links(self) -> list[tuple[str, str]]:
        """Return path and label of every link."""
        found = [node for node in self.root.all("a") if node.attrs.get("href", "#")[:1] != "#"]
        return [(urljoin(self.path, node.attrs["href"]), said(node)) for node in found]

    def has(self, pattern: str) -> bool:
        """Say whether a pattern is to be read on it."""
        return re.search(pattern, self.text, re.IGNORECASE) is not None

    def names(self, name: str) -> bool:
        """Say whether a name is to be read on it."""
        return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self.text) is not None

    def belongs(self, form: Node, node: Node) -> bool:
        """Say whether a control is one of a form."""
        if named := node.attrs.get("form"):
            return named == form.attrs.get("id")
        return any(above is form for above in node.ancestors)

    def label(self, control: Node) -> str:
        """Return by which words a control is known."""
        wrapped = [node.text() for node in control.ancestors if node.tag == "label"]
        mine = control.attrs.get("id")
        named = [node.text() for node in self.root.all("label") if mine and node.attrs.get("for") == mine]
        return " ".join([said(control), *wrapped, *named])

    @property
    def choices(self) -> list[Choice]:
        """Return all that can be pressed or chosen in forms that are posted."""
        found = []
        for form in self.root.all("form"):
            if form.attrs.get("method", "get").lower() != "post":
                continue
            for node in self.root.all("button", "input", "option"):
                kind = node.attrs.get("type", "submit") if node.tag == "button" else node.attrs.get("type", "text")
                if node.tag == "option":
                    select = next((above for above in node.ancestors if above.tag == "select"), node)
                    if self.belongs(form, select):
                        value = node.attrs.get("value", node.text())
                        found.append(Choice(form, select.attrs.get("name", ""), value, node.text(), "option"))
                elif kind in ("submit", "radio", "checkbox") and self.belongs(form, node):
                    name, value = node.attrs.get("name", ""), node.attrs.get("value", "")
                    found.append(Choice(form, name, value, self.label(node), kind))
        return found

    def filled(self, form: Node) -> dict[str, str]:
        """Return what a form would send as it is."""
        sent = {}
        for node in self.root.all("input", "textarea", "select"):
            name = node.attrs.get("name")
            if not name or not self.belongs(form, node):
                continue
            kind = node.attrs.get("type", "text")
            if node.tag == "textarea":
                sent[name] = node.text()
            elif node.tag == "select":
                options = node.all("option")
                chosen = [each for each in options if "selected" in each.attrs] or options[:1]
                for each in chosen:
                    sent[name] = each.attrs.get("value", each.text())
            elif kind in ("hidden", "text", "search", "number", "password", "tel") or "checked" in node.attrs:
                sent[name] = node.attrs.get("value", "on" if kind in ("checkbox", "radio") else "")
        return sent

    def hidden(self, form: Node) -> set[str]:
        """Return the names of a form's hidden fields."""
        found = [node for node in self.root.all("input") if self.belongs(form, node)]
        return {node.attrs.get("name", "") for node in found if node.attrs.get("type") == "hidden"}

    def action(self, form: Node) -> str:
        """Return where a form is sent."""
        return urljoin(self.path, form.attrs.get("action") or self.path)

    def find(self, value: str = "", pattern: str = "") -> Choice | None:
        """Return the first choice of a value, or else of words."""
        exact = [each for each in self.choices if value and each.value == value]
        worded = [each for each in self.choices if pattern and re.search(pattern, each.label, re.IGNORECASE)]
        return next(iter(exact or worded), None)

    def grade(self, label: str) -> Choice | None:
        """Return the choice of a grade."""
        return self.find(label)


def said(node: Node) -> str:
    """Return by which words a link or a button is known."""
    return " ".join(part for part in (node.text(), node.attrs.get("aria-label"), node.attrs.get("title")) if part)


# Servers and browsers


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class Site:
    """`curate review serve` in a process of its own."""

    def __init__(
        self, folder: Path, *options: str, run: str = RUN, port: int = 0, public: str = "", **more: str
    ) -> None:
        self.folder, self.public, self.port = folder, public, free_port()
        self.log = folder / f"serve-{time.monotonic_ns()}.log"
        environment = {**os.environ, "CURATE_HOME": str(folder / "home"), "BROWSER": "true", **more}
        environment["PYTHONPATH"] = f"{ROOT / 'tests' / 'loopback'}{os.pathsep}{ROOT}"
        command = [sys.executable, "-m", "curate", "review", "serve", "--run", run, "--port", str(self.port), *options]
        command += ["--public-url", public] if public else []
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
        self._wait()

    def _wait(self) -> None:
        ends = time.monotonic() + 120
        while time.monotonic() < ends and self.process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return
            except OSError:
                time.sleep(0.05)
        self.stop()
        raise AssertionError(f"`curate review serve` takes no connections:\n{self.said[-2000:]}")

    @property
    def said(self) -> str:
        """Return what it printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def host(self) -> str:
        """Return the host that browsers name."""
        return urlsplit(self.public).netloc if self.public else f"127.0.0.1:{self.port}"

    @property
    def origin(self) -> str:
        """Return the origin of its pages."""
        return f"https://{self.host}" if self.public else f"http://{self.host}"

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it as Ctrl-C or a service manager would."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()


@contextmanager
def serving(folder: Path, *options: str, **more: Any) -> Iterator[Site]:
    """Serve until the block ends."""
    site = Site(folder, *options, **more)
    try:
        yield site
    finally:
        site.stop()


class Browser:
    """A browser's stand-in that has cookies, and names any host and origin."""

    def __init__(self, site: Site, language: str = "en", cookies: Mapping[str, str] | None = None) -> None:
        self.site, self.language, self.cookies = site, language, dict(cookies or {})

    def raw(
        self,
        method: str,
        path: str,
        fields: Mapping[str, str] | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Page:
        """Send one request; headers replace the usual ones, None leaves one out."""
        body = urlencode(fields).encode() if fields is not None else b""
        given: dict[str, str | None] = {"Host": self.site.host, "Accept-Language": self.language}
        if self.cookies:
            given["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if method == "POST":
            given |= {"Origin": self.site.origin, "Sec-Fetch-Site": "same-origin"}
            given |= {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(len(body))}
        given |= headers or {}
        connection = http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=60)
        try:
            connection.putrequest(method, quote(path, safe="/?&=%:;,+~!*'()@$-._"), skip_host=True)
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value.encode("utf-8"))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
            named = {name.lower(): value for name, value in answer.getheaders()}
            cookies = answer.headers.get_all("Set-Cookie") or []
        finally:
            connection.close()
        for line in cookies:
            for name, morsel in SimpleCookie(line).items():
                if morsel.value:
                    self.cookies[name] = morsel.value
                else:
                    self.cookies.pop(name, None)
        return Page(path, answer.status, named, text, cookies)

    def get(self, path: str, headers: Mapping[str, str | None] | None = None) -> Page:
        """Open an address and go where it leads."""
        page = self.raw("GET", path, headers=headers)
        for _ in range(8):
            if page.status not in (301, 302, 303, 307, 308):
                break
            page = self.raw("GET", self.led(page), headers=headers)
        return page

    def led(self, page: Page) -> str:
        """Return to which path a page leads on."""
        parts = urlsplit(urljoin(f"{self.site.origin}{page.path}", page.headers.get("location", "")))
        assert parts.netloc == self.site.host, parts.netloc
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def press(
        self,
        page: Page,
        choice: Choice | None,
        headers: Mapping[str, str | None] | None = None,
        more: Mapping[str, str] | None = None,
    ) -> Page:
        """Press or choose something and send its form, with all that the form has in it."""
        assert choice is not None, page.text[:500]
        fields = page.filled(choice.form)
        if choice.name:
            fields[choice.name] = choice.value
        return self.raw("POST", page.action(choice.form), {**fields, **(more or {})}, headers)


def entered_as(site: Site, secret: str, what: str = "token", language: str = "en") -> tuple[Browser, Page]:
    """Open the page /enter and send a token or a code as its form does; return browser and answer."""
    browser = Browser(site, language)
    page = browser.get("/enter")
    assert page.status == 200, (page.status, page.text[:300])
    fields: dict[str, str] = {}
    path = page.path
    for form in page.root.all("form"):
        inputs = {node.attrs.get("name") for node in page.root.all("input") if page.belongs(form, node)}
        if what in inputs:
            fields, path = page.filled(form), page.action(form)
            break
    return browser, browser.raw("POST", path, {**fields, what: secret})


def enters(site: Site, secret: str, what: str = "token", language: str = "en") -> Browser:
    """Enter, and hold that it worked."""
    browser, answer = entered_as(site, secret, what, language)
    assert answer.status in (200, 302, 303), (answer.status, answer.text[:300])
    assert answer.cookies, "no cookie was made"
    return browser


def is_inside(browser: Browser, row: str) -> bool:
    """Say whether an item can be opened to be graded."""
    page = browser.raw("GET", f"/review/{row}")
    return page.status == 200 and page.grade("S") is not None


# The run


def make(folder: Path) -> None:
    """Finish a run of 8 queries with 12 documents each, whose ids and texts have markup, by two written judges."""
    data = folder / "data"
    (data / "qrels").mkdir(parents=True)
    queries = [
        {"_id": name, "text": f"{topic}患者能喝咖啡吗（问{at}）"}
        for at, (name, topic) in enumerate(zip(QUERIES, TOPICS, strict=True))
    ]
    corpus, ranked, tapes = [], [], []
    for at, name in enumerate(QUERIES):
        for rank in range(DEPTH):
            number = at * DEPTH + rank
            doc = (f"d/{number}", f"d../{number}", f"d<i>{number}", f"文{number}", f"d{number}")[number % 5]
            end = SCRIPT if number % 4 == 0 else ""
            text = f"{TOPICS[at]}的说明，少喝咖啡。{end} 第{number}号。"
            corpus.append({"_id": doc, "title": "", "text": text})
            ranked.append(f"{name} Q0 {doc} {rank + 1} {100 - rank} t\n")
            pattern = ("SS", "AS", "SD", "DD", "CD", "BC", "AA", "DD", "AC", "DD", "CC", "DD")[(number * 5) % 12]
            tapes += [f"{name}\t{doc}\t{judge}\t{grade}\n" for judge, grade in zip(JUDGES, pattern, strict=True)]
    for name, rows in (("queries", queries), ("corpus", corpus)):
        (data / f"{name}.jsonl").write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
        )
    known = "".join(f"{name}\t{corpus[at * DEPTH]['_id']}\t1\n" for at, name in enumerate(QUERIES))
    (data / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{known}", encoding="utf-8")
    (folder / "ranked.trec").write_text("".join(ranked), encoding="utf-8")
    (folder / "tape.tsv").write_text("query_id\tdoc_id\tassessor\tgrade\n" + "".join(tapes), encoding="utf-8")
    pipeline = {
        "version": 1,
        "name": "team",
        "language": "zh",
        "ingest": {"source": "data"},
        "diversify": {"enabled": False},
        "retrievers": {"listed": {"kind": "runfile", "path": "ranked.trec"}},
        "pool": {"retrievers": ["listed"], "depth": DEPTH, "size": DEPTH},
        "judges": {name: {"kind": "replay", "path": "tape.tsv", "assessor": name} for name in JUDGES},
        "judge": {"models": list(JUDGES)},
        "export": {"small": True, "rerank": {"negatives": 1}},
    }
    (folder / "team.yaml").write_text(yaml.safe_dump(pipeline, allow_unicode=True), encoding="utf-8")
    ran(folder, "run", "team.yaml")


@dataclass(frozen=True)
class Team:
    """A run with a sample, and the commands of whoever leads its review."""

    folder: Path
    sample: str = "expert"
    run_name: str = RUN

    @property
    def run(self) -> Path:
        """Return the folder of the run."""
        return self.folder / self.run_name

    @property
    def review(self) -> Path:
        """Return the folder of the sample."""
        return self.run / "reviews" / self.sample

    def draw(self, size: int = 40, people: str = ",".join(PERSONS), overlap: str = "1", *words: str) -> "Team":
        """Draw the sample."""
        options = ("--size", str(size), "--assessors", people, "--overlap", overlap, "--controls", "0")
        words = ("--sample", self.sample, *options, *words, "--run", self.run_name)
        ran(self.folder, "review", "export", *words)
        return self

    def cli(self, *words: str) -> Done:
        """Type a command of the review."""
        return curate(self.folder, "review", *words, "--run", self.run_name)

    def data(self, *words: str) -> dict[str, Any]:
        """Return what a command of the review says to machines."""
        done = self.cli(*words, "--json")
        assert done.returncode == 0, done.stderr or done.stdout
        found: dict[str, Any] = json.loads(done.stdout)["data"]
        return found

    def invite(self, name: str, *words: str) -> dict[str, Any]:
        """Invite a person and return what is said of that."""
        return self.data("invite", name, *(() if "--role" in words else ("--role", "assessor")), *words)

    def token(self, name: str, *words: str) -> str:
        """Return the token of a new link."""
        return token_of(self.invite(name, *words)["link"])

    def code(self, name: str, *words: str) -> str:
        """Return a new one-time code."""
        return str(self.invite(name, "--code", *words)["code"])

    def rows(self, person: str = "") -> list[str]:
        """Return the items of the sample, or those of a person."""
        survey = pl.read_parquet(self.review / "survey.parquet")
        return [
            row for row, people in survey.select("row_id", "assessors").iter_rows() if not person or person in people
        ]

    def texts(self, row: str) -> list[str]:
        """Return the texts of an item."""
        survey = pl.read_parquet(self.review / "survey.parquet")
        found: list[str] = survey.filter(pl.col("row_id") == row)["texts"].to_list()[0]
        return found

    def lines(self, person: str) -> list[dict[str, Any]]:
        """Return what is written of a person's answers, the oldest first."""
        path = self.review / "answers" / f"{person}.jsonl"
        if not path.exists():
            return []
        found = []
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError):  # what a crash left of a line
                found.append(json.loads(line))
        return found

    def answers(self, person: str) -> dict[str, str | None]:
        """Return the answer to every item as it stands."""
        return {line["row_id"]: line["answer"] for line in self.lines(person)}

    def events(self, event: str = "") -> list[dict[str, Any]]:
        """Return the log, or its events of one name."""
        found = self.data("log")["events"]
        return [each for each in found if not event or each["event"] == event]

    def flags(self) -> list[dict[str, Any]]:
        """Return what is written of flags."""
        path = self.review / "flags.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def token_of(link: str) -> str:
    """Return the token of a link, which stands behind its #."""
    found = re.fullmatch(r"https?://[^\s#]+/enter#(\S+)", link)
    assert found, "no link to /enter"
    return found.group(1)


def opened(browser: Browser, row: str) -> Page:
    """Return the page of an item."""
    page = browser.get(f"/review/{row}")
    assert page.status == 200, (page.status, page.text[:300])
    return page


def graded(browser: Browser, row: str, grade: str, **more: str) -> Page:
    """Open an item and give a grade."""
    page = opened(browser, row)
    return browser.press(page, page.grade(grade), more=more)


def flagged(browser: Browser, row: str, flag: str, reason: str = "") -> Page:
    """Open an item and say that it cannot be judged, for a reason, or that it holds personal data."""
    page = opened(browser, row)
    words = {"cannot_judge": r"cannot judge|无法判断", "personal_data": r"personal data|个人信息"}[flag]
    why = {"query": r"query|查询", "text": r"text|文本|段落", "field": r"field|专业|领域", "other": r"other|其他"}
    for_reason = [
        each
        for each in page.choices
        if reason and re.fullmatch(rf"(?:{flag}\W)?{reason}", each.value) and each.value not in GRADES
    ] or [each for each in page.choices if reason and re.search(why[reason], each.label, re.IGNORECASE)]
    choice = page.find(flag, words)
    picked = {for_reason[0].name: for_reason[0].value} if for_reason else {}
    if choice is None or (for_reason and for_reason[0].kind == "submit"):
        choice = for_reason[0] if for_reason else choice
    return browser.press(page, choice, more={name: value for name, value in picked.items() if name})


def decided(browser: Browser) -> Page:
    """Return the page on which an adjudicator decides the next item, or the one that says that none is left."""
    page = browser.get("/review/decide")
    assert page.status == 200, (page.status, page.text[:300])
    if page.grade("S") is None:
        for path, _ in page.links:
            if re.search(r"/decide/.", unquote(path)):
                return browser.get(path)
    return page
