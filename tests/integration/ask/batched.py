"""Everything that a language model can be asked, in sizes that fill a batch, behind a vendor that keeps the accounts.

`python -m tests.integration.ask.batched WORDS...` is the command `curate WORDS...` that looks at its batches without
pause, in a process that can be killed.
"""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from curate.cli.main import main
from curate.llm.client.batch import judge_batches
from tests import ROOT
from tests.support import machine
from tests.support.batching import FAST
from tests.support.runs import Done, curate, ran
from tests.support.steps import beir, jsonl
from tests.vendor import Answer, Call, Fate, Fault, Rules, Vendor, says, tokens, vendor

BOUND = 100
"""A wave of fewer requests than about this many may be asked online."""
MANY = 132
"""Texts of a set whose waves are all above the bound."""
PRICE: Mapping[str, Any] = {"input": 2.0, "output": 10.0, "written": 2.0, "date": "2026-01-01"}
CREATED = {"openai": "/batches", "anthropic": "/v1/messages/batches"}
RESULTS = re.compile(r"/files/[^/]+/content|/v1/messages/batches/[^/]+/results")
LOOK = re.compile(r"/batches/[^/]+|/v1/messages/batches/[^/]+")
MODELS = {"g": "alpha-1", "a": "beta-1", "b": "gamma-1"}
FORMS = ("openai", "anthropic")
Behaviour = Callable[[Call], Fault]


# What is asked


@dataclass(frozen=True)
class Kind:
    """A command that asks language models: its input, its settings, and an honest model."""

    command: str
    language: str
    before: tuple[str, ...]
    """The stages that it needs."""
    models: str
    """The names of those that are asked."""
    write: Callable[[Path, int], dict[str, Any]]
    """Write the input for so many texts; return what the pipeline file says of it and of the stage."""
    answer: Behaviour
    tables: tuple[str, ...] = ()
    """What the stage writes, and what its answers decide."""


def vote(label: str) -> Fault:
    """Pick a label."""
    return says(json.dumps({"label": label, "reason": "so"}, ensure_ascii=False))


def user(call: Call) -> str:
    """Return what stands in the user's turn."""
    return str(next(turn["content"] for turn in call.body["messages"] if turn["role"] == "user"))


def system(call: Call) -> str:
    """Return what a model is told before, in either form."""
    told = call.body.get("system") or call.body["messages"][0]["content"]
    return told if isinstance(told, str) else "".join(block["text"] for block in told)


def coined(number: int) -> str:
    """Return one of many words of six letters that no dictionary has."""
    parts = [first + second for first, second in product("bdfgklmnprstvz", "aeiou")]
    return parts[number % 70] + parts[number // 70 % 70] + parts[(7 * number + 3) % 70]


ENDS = {"cardiology": "palpitation", "gastrology": "indigestion", "orthopedy": "dislocation"}
"""Class -> the word that tells it; all of one length, and so are the prompts."""


def labelled(folder: Path, size: int) -> dict[str, Any]:
    """Write texts of three classes, all of one length."""
    rows = [
        {"_id": f"t{n:03}", "text": f"{coined(n)} {coined(3 * n + 5000)} reports a {word}", "ward": name}
        for n in range(size)
        for name, word in [list(ENDS.items())[n % 3]]
    ]
    beir(folder / "data", rows, [{"_id": "d1", "title": "", "text": "Drink some water."}])
    ingest = {"source": "data", "labels": {"columns": {"label": "ward"}}}
    return {"ingest": ingest, "label": {"panel": ["a", "b"], "near": 0.95, "texts": 4000}}


def labels(call: Call) -> Fault:
    """Pick the class whose word stands in the text."""
    return vote(next(name for name, word in ENDS.items() if word in call.passages["text"]))


SICK = "肝胆胃肠心肺肾脾骨皮耳眼"


@cache
def illnesses(size: int) -> list[str]:
    """Return so many names of illnesses."""
    return [f"{one}{two}症" for one, two in product(SICK, SICK)][:size]


def documented(folder: Path, size: int) -> dict[str, Any]:
    """Write a corpus without a query, a document an illness."""
    rows = [
        {"_id": f"d{n:03}", "text": f"{name}患者应当定期复查，饮食以清淡为主，遵照医嘱服药。"}
        for n, name in enumerate(illnesses(size))
    ]
    jsonl(folder / "corpus.jsonl", rows)
    section = {"generator": "g", "panel": ["a"], "wanted": size, "documents": size, "length": 0.9}
    return {
        "ingest": {"corpus": {"path": "corpus.jsonl"}, "no_queries": "allow"},
        "queries": {**section, "lengths": [12, 14]},
    }


def questions(call: Call) -> Fault:
    """Write a query on the illness of a document, and find every one good."""
    if "document" not in call.passages:
        return vote("good")
    return says(json.dumps({"query": call.passages["document"][:3] + "要多久去一趟医院呢"}, ensure_ascii=False))


def asked_in_german(folder: Path, size: int) -> dict[str, Any]:
    """Write German queries."""
    rows = [{"_id": f"q{n:03}", "text": f"Was hilft gegen {coined(n)} und {coined(n + 900)}?"} for n in range(size)]
    beir(folder / "data", rows, [{"_id": "d1", "title": "", "text": "Viel Wasser."}])
    section = {"generator": "g", "panel": ["a"], "retrievers": ["bm25", "use"], "test": size, "pool": 2}
    return {"ingest": {"source": "data"}, "paraphrase": {**section, "neighbours": 1}}


def rewordings(call: Call) -> Fault:
    """Write the query with words before it, and confirm no other pair."""
    if "passage" not in call.passages:
        return says(json.dumps({"paraphrase": f"Sagen Sie bitte: {call.query}"}, ensure_ascii=False))
    one, two = (text.removeprefix("Sagen Sie bitte: ") for text in (call.query, call.passages["passage"]))
    return vote("yes" if one == two else "no")


PAIRED = {f"{one}溃疡": f"{one}部溃烂" for one in SICK}
BODIES = tuple(f"能{verb}{food}吗" for verb in ("喝点", "多吃", "少放") for food in ("酒水", "辣椒", "白糖", "豆腐"))


def dictionary(folder: Path) -> None:
    """Write synonyms of illnesses."""
    rows = "".join(f"{term}\t{synonym}\texact\ttest\tboth\n" for term, synonym in PAIRED.items())
    (folder / "words.tsv").write_text("term\tsynonym\tkind\tsource\tunseen\n" + rows, encoding="utf-8")


def with_synonyms(folder: Path, size: int) -> dict[str, Any]:
    """Write queries that each hold a word of the dictionary."""
    texts = [term + body for body in BODIES for term in PAIRED][:size]
    rows = [{"_id": f"q{n:03}", "text": text} for n, text in enumerate(texts)]
    beir(folder / "data", rows, [{"_id": "d1", "title": "", "text": "多喝水。"}])
    dictionary(folder)
    section = {"generator": "g", "panel": ["a", "b"], "dictionary": "words.tsv", "faults": "drop"}
    return {"ingest": {"source": "data"}, "sts": {**section, "test": 60, "train": 30}}


def required(value: Any) -> list[str]:
    """Return the keys that the form of a reply demands, wherever a vendor has its form."""
    if isinstance(value, Mapping):
        here = [value["required"]] if isinstance(value.get("required"), list) else []
        return next(iter([*here, *filter(None, map(required, value.values()))]), [])
    return next(filter(None, map(required, value)), []) if isinstance(value, list) else []


def sentences(call: Call) -> Fault:
    """Write sentences of the same and of another meaning, and judge as one who knows the dictionary."""
    if "term" in call.passages:
        term, synonym = call.passages["term"], call.passages["synonym"]
        body = call.query.removeprefix(term)
        made = {"positive": synonym + body, "hard": f"{synonym}不{body}", "easy": f"{term}不{body}"}
        wanted = required({name: part for name, part in call.body.items() if name != "messages"}) or list(made)
        return says(json.dumps({kind: made[kind] for kind in wanted}, ensure_ascii=False))
    one, two = call.query, call.passages["passage"]
    for term, synonym in PAIRED.items():
        one, two = one.replace(synonym, term), two.replace(synonym, term)
    return vote("yes" if one == two else "no")


def in_series(folder: Path, size: int) -> dict[str, Any]:
    """Write queries with a word of the dictionary, and a document for each of its words."""
    texts = [f"{term}患者饭前{body}" for body in BODIES for term in PAIRED][:size]
    rows = [{"_id": f"q{n:03}", "text": text} for n, text in enumerate(texts)]
    documents = [
        {"_id": f"d{n:02}", "title": "", "text": f"{term}患者饭前能喝点酒水吗？最好饭后再服药，剂量按医生说的来。"}
        for n, term in enumerate(PAIRED)
    ]
    beir(folder / "data", rows, documents)
    dictionary(folder)
    return {
        "ingest": {"source": "data"},
        "retrievers": {"words": {"kind": "bm25", "tokens": "bigrams"}},
        "pool": {"retrievers": ["words"], "depth": 2, "size": 2},
        "judge": {"models": ["lexical"], "allow_weak_judges": True, "controls": 0, "sanity": {"ratings": 0}},
        "gradient": {"panel": ["a"], "dictionary": "words.tsv", "faults": "drop", "shortest": 5},
    }


def agreeable(_call: Call) -> Fault:
    """Say yes to all."""
    return vote("yes")


def named(number: int) -> str:
    """Return the name of one of many persons."""
    return f"欧阳{SICK[number % 12]}{'岚晓峰雪梅兰竹菊松柏杨柳'[number // 12 % 12]}"


def letters(folder: Path, size: int) -> dict[str, Any]:
    """Write texts of persons who say their names."""
    rows = [{"_id": f"q{n:03}", "text": f"我叫{named(n)}，最近两个星期一直头痛，请问怎么办"} for n in range(size)]
    beir(folder / "data", rows, [{"_id": "d1", "title": "", "text": "少吃盐，多喝水。"}], ["q000 d1 1"])
    return {"ingest": {"source": "data"}, "mask": {"model": "a"}}


def names(call: Call) -> Fault:
    """Quote the name in a text."""
    found = re.findall("欧阳..", call.passages["text"])
    return says(json.dumps({"spans": [{"text": each, "kind": "name"} for each in found]}, ensure_ascii=False))


def gardens(folder: Path, size: int) -> dict[str, Any]:
    """Write English queries and passages whose grade stands at their end."""
    rows = [{"_id": f"q{n:02}", "text": f"How to water {coined(n)} at midwinter"} for n in range(-(-size // 4))]
    documents = [
        {"_id": f"d{n:02}{m}", "title": "", "text": f"Gardener {coined(90 * m + n)} waters {coined(n)} daily: {grade}"}
        for n in range(-(-size // 4))
        for m, grade in enumerate("SACD")
    ]
    beir(folder / "data", rows, documents)
    return {
        "ingest": {"source": "data"},
        "mask": {"enabled": False},
        "retrievers": {"words": {"kind": "bm25"}},
        "pool": {"retrievers": ["words"], "depth": 4, "size": 4},
        "judge": {"models": ["a", "b"], "batch": 1, "controls": 0, "sanity": {"ratings": 0}},
    }


def grades(call: Call) -> Fault:
    """Read the grade at the end of each passage."""
    return says(json.dumps({label: text[-1] for label, text in call.passages.items()}))


TEXTS = ("ingest", "mask", "diversify")
JUDGED = (*TEXTS, "pool", "judge", "consensus", "resolve")
KINDS = {
    each.command: each
    for each in (
        Kind("judge", "en", (*TEXTS, "pool"), "ab", gardens, grades, ("ratings",)),
        Kind("label", "en", TEXTS, "ab", labelled, labels, ("classified",)),
        Kind("paraphrase", "de", TEXTS, "ga", asked_in_german, rewordings, ("paraphrases", "originals")),
        Kind("queries", "zh", TEXTS, "ga", documented, questions, ("synthetic",)),
        Kind("sts", "zh", TEXTS, "gab", with_synonyms, sentences, ("pairs",)),
        Kind("gradient", "zh", JUDGED, "a", in_series, agreeable, ("gradients",)),
        Kind("mask", "zh", ("ingest",), "a", letters, names, ("queries", "corpus", "spans")),
    )
}


# Whom it is asked of


@dataclass
class Desk:
    """A vendor's accounts: what was asked online and in batches, and what it bills."""

    answer: Behaviour
    fate: Callable[[Call], Fate] = lambda _call: "succeeded"
    """What becomes of an item of a batch."""
    odd: Callable[[Call], Fault | None] = lambda _call: None
    """What a model says instead of the honest answer."""
    usage: tuple[int, int] | None = None
    """Tokens of each prompt and answer; None is the vendor's own count."""
    moment: Callable[[str, str], None] = lambda _method, _path: None
    """Told of each request around batches before it is answered."""
    held: list[str] = field(default_factory=list)
    """States that batches pass through; clear it to let them end."""
    server: Vendor = field(init=False)
    created: int = 0
    online: Counter[str] = field(default_factory=Counter)
    batched: Counter[str] = field(default_factory=Counter)
    """Request -> how often it was answered, online or in a batch."""
    sent: Counter[str] = field(default_factory=Counter)
    """Request -> how often it stood in a batch that ended."""
    models: Counter[str] = field(default_factory=Counter)
    """Model -> how many requests it answered in batches."""
    spent: float = 0.0
    _item: tuple[Call | None, Fate] = (None, "succeeded")

    def fated(self, call: Call) -> Fate:
        """Note an item, and decide of it."""
        self._item = call, self.fate(call)
        self.sent[written(call)] += 1
        return self._item[1]

    def fault(self, call: Call) -> Fault:
        """Answer by the kind's model, and charge half for what stands in a batch."""
        item, fate = self._item
        by_batch, said = call is item, self.odd(call) or self.answer(call)

        def told(answer: Answer) -> Answer:
            found = said(answer)
            prompt, output = self.usage or (call.prompt_tokens, tokens(found.text or "x"))
            found = replace(found, usage={"prompt": prompt, "output": output})
            if found.paid and (not by_batch or fate == "succeeded"):
                (self.batched if by_batch else self.online)[written(call)] += 1
                self.models[call.model] += by_batch
                whole = (prompt * PRICE["input"] + output * PRICE["output"]) / 1e6
                self.spent += whole / 2 if by_batch else whole
            return found

        return told

    def trouble(self, method: str, path: str) -> None:
        """Count the batches that are made."""
        self.created += method == "POST" and path in CREATED.values()
        self.moment(method, path)

    @property
    def answered(self) -> Counter[str]:
        """Return request -> how often it was answered and billed."""
        return self.online + self.batched

    @property
    def twice(self) -> int:
        """Return how many answers were billed beyond one a request."""
        return self.answered.total() - len(self.answered)


def written(call: Call) -> str:
    """Return a request as it was sent."""
    return json.dumps(call.body, sort_keys=True, ensure_ascii=False)


@contextmanager
def desk(kind: Kind, **more: Any) -> Iterator[Desk]:
    """Run a vendor that answers a kind, in batches that are there at the first look unless they are held."""
    end = more.pop("end", "completed")
    found = Desk(kind.answer, **more)
    rules = Rules(steps=found.held, end=end, fate=found.fated, trouble=found.trouble)
    with vendor(lambda _query, text: text[-1], found.fault, batches=rules) as found.server:
        yield found


def prepared(folder: Path, kind: Kind, at: Desk, forms: Sequence[str] = FORMS, size: int = MANY, **more: Any) -> Path:
    """Run all stages before a command, in a folder of its own; `more` are settings of every model."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    (home / "pii.key").write_text("the same key in every folder, and long enough", encoding="ascii")
    judges = {
        name: {"kind": forms[n % len(forms)], "model": MODELS[name], "base_url": at.server.url, "vendor": "v"}
        | {"batch": True, "local": True, "price": dict(PRICE), "timeout_s": 20.0, **more}
        for n, name in enumerate(kind.models)
    }
    stages = [*kind.before, kind.command]
    settings = {"version": 1, "name": "t", "language": kind.language, "judges": judges, "stages": stages}
    settings |= {"diversify": {"enabled": False}, **kind.write(folder, size)}
    (folder / "t.yaml").write_text(json.dumps(settings, ensure_ascii=False), encoding="utf-8")
    ran(folder, "run", "t.yaml", "--set", f"stages=[{', '.join(kind.before)}]")
    assert at.server.calls == []
    return folder


def words(kind: Kind, *more: str) -> list[str]:
    """Return the words of a command."""
    return [kind.command, "--run", "runs/t", *more]


def asks(folder: Path, kind: Kind, *more: str, **variables: str) -> Done:
    """Run a command, and hold that it succeeded."""
    done = curate(folder, *words(kind, *more), **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def planned(folder: Path, *line: str) -> Any:
    """Return the plan of a command."""
    return machine.data(ran(folder, *line, "--plan", "--json").stdout)


def price(rows: Sequence[Mapping[str, Any]], *, batch: bool) -> float:
    """Return what a plan says in all, online or by batches, whichever of the two forms of plans it has."""
    last = rows[-1]
    by_batch = last.get("batches") if batch else None
    found = by_batch if by_batch is not None else last["cost"] if last.get("cost") is not None else last["online"]
    return float(found)


# What is left of it


def calls(folder: Path, columns: str = "request_digest", ledger: Path | None = None) -> list[tuple[Any, ...]]:
    """Return columns of the calls of a ledger."""
    with closing(sqlite3.connect(ledger or folder / "home" / "ledger.db")) as connection:
        return connection.execute(f"SELECT {columns} FROM calls ORDER BY call_id").fetchall()


def report(folder: Path, kind: Kind) -> dict[str, Any]:
    """Return what a stage reports of itself."""
    found = json.loads((folder / "runs" / "t" / kind.command / "stage.json").read_text(encoding="utf-8"))
    return dict(found["report"])


def table(folder: Path, kind: Kind, name: str) -> pl.DataFrame:
    """Return a table of a stage."""
    return pl.read_parquet(folder / "runs" / "t" / kind.command / f"{name}.parquet")


def tables(folder: Path, kind: Kind) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of the tables that a stage has written."""
    return {name: sorted(table(folder, kind, name).rows(), key=repr) for name in kind.tables}


def files_that_say(folder: Path, texts: Sequence[str]) -> list[str]:
    """Return the files below the home and the runs in which a text stands, as it is or as JSON writes it."""
    found = []
    for path in (each for name in ("home", "runs") for each in (folder / name).rglob("*") if each.is_file()):
        content = path.read_bytes().decode("utf-8", "replace")
        content += str(pl.read_parquet(path).rows()) if path.suffix == ".parquet" else ""
        if any(text in content or json.dumps(text)[1:-1] in content for text in texts):
            found.append(str(path.relative_to(folder)))
    return found


# Processes


def process(folder: Path, *line: str, **variables: str) -> "subprocess.Popen[str]":
    """Start the command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CURATE_HOME": str(folder / "home"), **variables}
    command = [sys.executable, "-m", "tests.integration.ask.batched", *line]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def killed(at: Desk, path: re.Pattern[str], number: int, start: Callable[[], "subprocess.Popen[str]"]) -> None:
    """Kill a process when it reads of its batches for the nth time; these then go on at the vendor.

    What it looks at is not ready before; what it fetches is.
    """
    children: list[subprocess.Popen[str]] = []
    moment = At(path, number, lambda: os.kill(children[0].pid, signal.SIGKILL))
    at.moment = moment
    at.held += ["in_progress"] * 10_000 if path is LOOK else []
    children.append(start())
    for _ in range(2400):  # two minutes
        if moment.over.wait(0.05):
            break
        assert children[0].poll() is None, children[0].communicate()[1]
    children[0].kill()
    complaint = children[0].communicate()[1]
    at.moment = lambda _method, _path: None
    at.held.clear()
    assert moment.over.is_set(), complaint


class At:
    """Something that happens when batches of one kind are read for the nth time."""

    def __init__(self, path: re.Pattern[str], number: int, happens: Callable[[], None]) -> None:
        self.path, self.number, self.happens = path, number, happens
        self.seen, self.over = 0, threading.Event()

    def __call__(self, method: str, path: str) -> None:
        """Count a request."""
        if method == "GET" and self.path.fullmatch(path):
            self.seen += 1
            if self.seen == self.number:
                self.happens()
                self.over.set()


def hasten() -> None:
    """Look at batches again at once, in this process."""
    setattr(judge_batches, "PollingPolicy", lambda: FAST)  # noqa: B010 - mypy


if __name__ == "__main__":
    hasten()
    sys.argv[0] = "curate"
    main()
