"""What people ask of a run and of its commands: figures that agree everywhere, help that fits, a page that answers."""

import csv
import inspect
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer
import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from markdown_it import MarkdownIt

import curate as python
from curate.cli.app import app
from curate.system import resources
from tests import ROOT
from tests.conftest import need
from tests.support import browsing, scale_runs
from tests.support.auditing import audited, labelled
from tests.support.browsing import Page
from tests.support.report_pages import visit
from tests.support.runs import Done, complaint, curate, ran, tiny

LANGUAGES = ("zh", "en")
OPENING = 4_000
"""Characters that a person reads on three screens; a question that is answered behind them is not answered."""
STATES = {
    "zh": ("可以用来比较系统", "可内部试用，尚未经人抽查", "不能用来评价模型", "尚未完成"),
    "en": (
        "Ready to compare systems",
        "Usable in-house, not yet checked by people",
        "Not fit to score models",
        "Not finished",
    ),
}
"""Of a page: green, amber, red and grey."""
RED = 2
PANELS = {
    "Start": "init run status show doctor models",
    "Build": "ingest mask diversify embed queries pool judge consensus resolve sts label paraphrase gradient report",
    "Check": "audit agree pilot review check analyze",
    "Publish": "export verify ready paper extend diff",
    "Evaluate & train": "evaluate train-set train notes tokens",
    "Utilities": "anonymise recognisers ledger schema",
}
OPTIONS_OF_0_2 = """
agree: run truth item raters counts rater rating cluster scale order positive blank missing delimiter sheet seed
agree: run-file
anonymise: field format mode placeholders recognisers without words config spans spans-key allow-residual context
anonymise: encoding on-error allow-missing processes force
audit: retrievers depth models queries score relevant-from language
check judge: controls positives again rubric prompts offline allow-weak-judges
check mask: run size most assessors assessor format sample new seed serve port residual mask accept mask-all
check mask: by
diversify: force plan sweep
evaluate: models legacy baselines floors reviews average results against device dtype dims speed speed-queries out
extend: run-file encoder depth out subset split offline
gradient: generator panel retry batch offline
init: queries corpus qrels column name language models file
judge: language models retry batch cascade offline record allow-weak-judges
mask: model retry batch offline
notes: models column floors folds seeds seed max-length device delimiter sheet out export language
paraphrase: generator panel retry batch offline
pilot export: size sample assessors overlap format out seed
pool: retrievers depth
queries: generator panel retry batch offline
review export: size target margin of contested for-scores sample assessors overlap controls known format out seed
sts: generator panel retry batch offline
tokens: models column terms limit seed out
train: base test recipe seeds few-seeds legacy device out
train-set: test retrievers depth judge queries language
"""
"""Options that version 0.2 had, beside those that every stage has, and `check mask --accept-all`, which is gone."""
REFUSALS = ("judging would send", "is not ready", "was drawn yet", "found no relevant pair", "judged by", "no key")
"""What a command says that refuses what it announces, such as to spend money: it was understood."""
MARKUP = "<img/src=x/onerror=alert(1)>"
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
UNSEEN = {"head", "nav", "noscript", "script", "style", "template"}
COMMAND = {"code", "kbd", "pre"}
INLINE = {"a", "abbr", "b", "bdi", "code", "em", "i", "kbd", "mark", "small", "span", "strong", "sub", "sup", "tspan"}
INTERVAL = re.compile(
    r"\d\s*%?\s*[\[(（]\s*[+−-]?\d[\d.,]*\s*%?\s*(?:–|-|,|，|至| to )\s*[+−-]?\d[\d.,]*\s*%?\s*[\])）]"
)
BROWSER = browsing.BROWSER.exists() and browsing.DRIVER.exists()


# Readers: of a page as a person sees it, and of the commands as a terminal and Python have them


class Seen(HTMLParser):
    """A page as its reader sees it without a script: blocks of text, and the commands among them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.blocks: list[str] = [""]
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.codes: list[tuple[int, str]] = []
        self.folded: int | None = None
        """Number of blocks before the first closed details."""
        self._open: list[str] = []
        self._unseen = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in INLINE:
            self.blocks.append("")
        if tag in VOID:
            return
        self._open.append(tag)
        if not self._unseen and (tag in UNSEEN or "hidden" in dict(attrs)):
            self._unseen = len(self._open)
        if not self._unseen and tag == "details" and "open" not in dict(attrs) and self.folded is None:
            self.folded = None if "header" in self._open else len(self.blocks)
        if tag in COMMAND and not self._unseen:
            self.codes.append((len(self.blocks), ""))

    def handle_endtag(self, tag: str) -> None:
        while tag in self._open and self._open.pop() != tag:
            pass
        if len(self._open) < self._unseen:
            self._unseen = 0
        if tag not in INLINE:
            self.blocks.append("")

    def handle_data(self, data: str) -> None:
        if self._unseen:
            return
        self.blocks[-1] += data
        if COMMAND & set(self._open):
            at, text = self.codes[-1]
            self.codes[-1] = (at, text + data)

    @property
    def text(self) -> str:
        """Return all text, one block per line, whether it is folded or not."""
        return _lines(self.blocks)

    @property
    def opening(self) -> str:
        """Return what is read before anything is opened, and not more than a person reads."""
        return _lines(self.blocks[: self.folded])[:OPENING]

    @property
    def commands(self) -> list[str]:
        """Return the commands that are seen before anything is opened."""
        seen = [" ".join(text.split()) for at, text in self.codes if self.folded is None or at <= self.folded]
        return [text for text in seen if text.startswith("curate ")]


def _lines(blocks: list[str]) -> str:
    return "\n".join(line for line in (" ".join(block.split()) for block in blocks) if line)


def cells(line: str) -> int:
    """Return the width of a line in terminal cells."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in line)
    return len(line) + wide - sum(unicodedata.combining(sign) > 0 for sign in line)


def too_wide(text: str, columns: int) -> list[str]:
    return [line for line in text.splitlines() if cells(line.rstrip()) > columns]


@cache
def tree() -> dict[str, Any]:
    """Return every command that help lists by its words; a group only if it does something of its own."""

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        context = typer.Context(command)
        names = command.list_commands(context) if hasattr(command, "list_commands") else []
        if path and (not names or command.invoke_without_command):
            yield " ".join(path), command
        for name in names:
            child = command.get_command(context, name)
            if not child.hidden:
                yield from walk(child, (*path, name))

    return dict(walk(typer.main.get_command(app), ()))


def options(path: str) -> dict[str, Any]:
    """Return the options of a command that its help shows, by their first long name."""
    shown = {}
    for each in tree()[path].params:
        if each.param_type_name == "option" and each.name != "help" and not getattr(each, "hidden", False):
            shown[next((name for name in each.opts if name.startswith("--")), each.opts[0])] = each
    return shown


def helped(path: str, folder: Path) -> str:
    return ran(folder, *path.split(), "--help", COLUMNS="80").stdout


def data(done: Done) -> Any:
    """Return the data of an envelope; NaN and Infinity are no JSON."""

    def refuse(word: str) -> None:
        raise AssertionError(word)

    return json.loads(done.stdout, parse_constant=refuse)["data"]


# Runs that the tests read


@dataclass(frozen=True)
class Demo:
    """The packaged questions and documents, judged by three heuristics of which `third` likes everything."""

    folder: Path
    said: str
    pages: dict[str, Path]

    @property
    def run(self) -> Path:
        return self.folder / "runs" / "demo"

    def seen(self, language: str) -> Seen:
        return Seen(self.pages[language].read_text(encoding="utf-8"))


PIPELINE = """\
version: 1
name: demo
description: 中文医学问题
ingest: {{source: {source}}}
pool: {{retrievers: [words, pairs], depth: 10, size: 12}}
retrievers:
  words: {{kind: bm25}}
  pairs: {{kind: bm25, tokens: bigrams}}
judges:
  strict: {{kind: lexical, thresholds: {{S: 0.9, A: 0.7, B: 0.4, C: 0.2}}}}
  third: {{kind: lexical, thresholds: {{S: 0.02, A: 0.015, B: 0.012, C: 0.01}}}}
judge: {{models: [lexical, strict, third]}}
export: {{small: true, formats: [mteb], rerank: {{negatives: 1}}}}
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Return a run of the demo's texts without encoders, with its report in both languages."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "demo.yaml").write_text(PIPELINE.format(source=resources.demo()), encoding="utf-8")
    said = ran(folder, "run", "demo.yaml").stdout
    pages = {language: folder / f"{language}.html" for language in LANGUAGES}
    report = folder / "runs" / "demo" / "report.html"
    shutil.copy(report, pages["zh"])
    ran(folder, "report", "--run", "runs/demo", "--set", "report.language=en")
    shutil.copy(report, pages["en"])
    return Demo(folder, said, pages)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    need(BROWSER, "chromium, or chromium-driver,")
    with browsing.browsing(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def cards(run: Path) -> dict[Path, str]:
    """Return the cards of an export, the one of the whole first."""
    folder = run / "export" / "mteb"
    found = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("README.md"))}
    return {folder / "README.md": found.pop(folder / "README.md"), **found}


# Help, options, and what a terminal shows


def test_every_help_fits_eighty_columns(tmp_path: Path) -> None:
    groups = {" ".join(path.split()[:-1]) for path in tree()}
    wide = {path: too_wide(helped(path, tmp_path), 80) for path in sorted({*tree(), *groups})}
    assert not {path: lines for path, lines in wide.items() if lines}


def test_every_help_has_two_examples_that_the_command_understands(tmp_path: Path) -> None:
    """An example is a line that begins with the command's own words, perhaps behind a prompt; its options are real."""
    poor, wrong = [], []
    for path in tree():
        lines = re.findall(rf"^[\s│]*(?:\$ )?(curate {path}\b[^│\n]*)", helped(path, tmp_path), re.MULTILINE)
        examples = {line.strip() for line in lines}
        if len(examples) < 2:
            poor.append(path)
        known = {name for each in tree()[path].params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
        known |= {"--json", "--json-lines", "--quiet"}  # of the program: they stand anywhere
        for example in examples:
            typed = set(re.findall(r"(?<!\S)--[a-z][\w-]*", example.partition("#")[0]))
            wrong += [(example, option) for option in typed - known]
    assert not poor, "fewer than two examples"
    assert not wrong, "an example with an option that is not there"


def test_the_overview_of_commands_has_six_panels(tmp_path: Path) -> None:
    said = ran(tmp_path, "--help", COLUMNS="80").stdout
    places = [re.search(rf"^[\s╭─│]*{re.escape(panel)}(?::?\s*$| ─)", said, re.MULTILINE) for panel in PANELS]
    assert all(places), dict(zip(PANELS, places, strict=True))
    starts = [place.start() for place in places if place]
    assert starts == sorted(starts), "in the order of the work"
    for (panel, commands), start, end in zip(PANELS.items(), starts, [*starts[1:], len(said)], strict=True):
        listed = re.findall(r"^[\s│]+([a-z][a-z-]+)(?=\s{2,}\S)", said[start:end], re.MULTILINE)
        missing = set(commands.split()) - set(listed)
        assert not missing, panel
    top = re.findall(r"^[\s│]+([a-z][a-z-]+)(?=\s{2,}\S)", said[starts[0] :], re.MULTILINE)
    assert len(top) == len(set(top)), "each command once"
    assert {path.split()[0] for path in tree()} <= set(top)


@pytest.mark.parametrize("path", ["judge", "run", "audit", "queries"])
def test_what_spends_and_what_prints_is_grouped_and_types_are_words(path: str, tmp_path: Path) -> None:
    """Headings are lines that begin a panel or end in a colon; types are such as PATH or NUMBER, not Python's."""
    said = helped(path, tmp_path)
    heading, groups = "", {}
    for line in said.splitlines():
        if head := re.match(r"(?:╭─ )?([A-Z][\w &,-]*?)(?::$| ─)", line):
            heading = head[1]
        elif option := re.match(r"[\s│*]*(?:-\w, )?(--[a-z-]+)", line):
            groups[option[1]] = heading
    spending, output = {groups["--max-cost"], groups["--yes"]}, {groups["--json"], groups["--quiet"]}
    assert len(spending) == len(output) == 1
    assert spending != output
    assert groups["--run"] not in spending | output
    foreign = re.compile(r"list\[|<str>|\bint range\b|<int>|<float>|Optional|x>=")
    assert not {
        each: foreign.findall(helped(each, tmp_path)) for each in tree() if foreign.search(helped(each, tmp_path))
    }


@pytest.mark.xfail(strict=True, reason="58 commands and 377 options: samples for people are three commands yet")
def test_there_are_few_enough_commands_and_options() -> None:
    leaves = {path: each for path, each in tree().items() if not hasattr(each, "list_commands")}
    assert len(leaves) <= 45
    every = [each for command in leaves.values() for each in command.params if each.param_type_name == "option"]
    assert len([each for each in every if each.name != "help"]) <= 300, "hidden ones too"


def test_a_removed_option_says_what_to_type_instead(tiny_run: Path) -> None:
    """Commands that are gone have no options to ask for; every other option works or names its successor."""
    folder, gone, mute = tiny_run.parents[1], [], {}
    for line in OPTIONS_OF_0_2.strip().splitlines():
        path, _, names = line.partition(": ")
        for name in names.split() if path in tree() else []:
            if f"--{name}" in options(path) or any(f"--{name}" in each.opts for each in options(path).values()):
                continue
            gone.append((path, name))
            said = curate(folder, *path.split(), f"--{name}", "1").stderr
            others = set(re.findall(r"--[a-z][a-z-]+(?: [a-z_]+\.[a-z_.]+)?", said)) - {f"--{name}", "--help"}
            if "No such option" in said or not (others or "`curate " in said):
                mute[path, name] = said
    assert gone, "a setting is no option"
    assert not mute
    done = curate(folder, "pool", "--run", "runs/tiny", "--depth", "3")
    if done.returncode:
        (typed,) = set(re.findall(r"--set (pool\.[a-z_]+)", done.stderr))
        ran(folder, "pool", "--run", "runs/tiny", "--set", f"{typed}=3")
    assert yaml.safe_load((tiny_run / "pipeline.yaml").read_text(encoding="utf-8"))["pool"]["depth"] == 3


@pytest.mark.parametrize(
    "terminal",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "gbk"},
        {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["ascii", "gbk", "C"],
)
def test_a_terminal_of_any_encoding_gets_an_answer(terminal: dict[str, str], tiny_run: Path) -> None:
    folder = tiny_run.parents[1]
    for words in (["--help"], ["judge", "--help"], ["status", "--run", "runs/tiny"], ["show", "queries"]):
        command = [sys.executable, "-m", "curate", *words]
        environment = {
            "PATH": "/usr/bin:/bin",
            "CURATE_HOME": str(folder / "home"),
            "PYTHONPATH": str(ROOT),
            **terminal,
        }
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, (words, done.stderr)
        assert b"Traceback" not in done.stdout + done.stderr, words
        assert len(done.stdout) > 100


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("words", ["models", "status --run runs/tiny", "show pool --run runs/tiny", "show queries"])
def test_a_table_fits_a_narrow_terminal(words: str, columns: int, tiny_run: Path) -> None:
    done = ran(tiny_run.parents[1], *words.split(), COLUMNS=str(columns))
    table = "\n".join(line for line in done.stdout.splitlines() if " note: " not in line)
    assert not too_wide(table, columns)
    expected = {"models": ["claude-opus", "vllm"], "status": ["ingest", "report"], "show": ["q0"]}
    for told in expected[words.split(maxsplit=1)[0]]:
        assert told in done.stdout, "narrow, and whole"


def test_columns_line_up_beside_chinese_names(tmp_path: Path) -> None:
    rows = [
        f"{item},{grades}"
        for item, grades in zip("abcdef", ("S,A,S", "D,D,D", "A,B,A", "C,D,C", "S,S,A", "B,B,D"), strict=True)
    ]
    (tmp_path / "ratings.csv").write_text("item,王医生,li,陈小明\n" + "\n".join(rows) + "\n", encoding="utf-8")
    asked = ("agree", "ratings.csv", "--raters", "王医生,li,陈小明", "--order", "S,A,B,C,D", "--positive", "S,A")
    lines = ran(tmp_path, *asked).stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if re.match(r"raters\s+level\s+items", line))
    block = [line for line in lines[first + 1 :][:6] if "/" in line]
    assert len(block) == 6
    assert any("陈小明" in line for line in block)
    place = cells(lines[first].partition("level")[0])
    for line in block:
        (level,) = re.findall(r"\s{2,}(all ratings|cut)\s", line)
        assert cells(line.partition(level)[0]) == place, line


@pytest.mark.parametrize("asked", ["--help", "pool --help", "completion"])
def test_help_and_completion_import_nothing_heavy(asked: str, tmp_path: Path) -> None:
    completing = {"_CURATE_COMPLETE": "complete_bash", "COMP_WORDS": "curate ev", "COMP_CWORD": "1"}
    words = [] if asked == "completion" else asked.split()
    command = [sys.executable, "-X", "importtime", "-m", "curate", *words]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), **(completing if not words else {})}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ("evaluate" if asked == "completion" else "Usage") in done.stdout
    loaded = set(re.findall(r"\|\s+([\w.]+)$", done.stderr, re.MULTILINE))
    assert "typer" in loaded, "what was imported is listed"
    heavy = {"polars", "numpy", "sqlalchemy", "scipy", "pyarrow", "aiohttp", "openai", "jinja2"}
    heavy |= {"pydantic"} if asked == "--help" else set()
    assert not {name.partition(".")[0] for name in loaded} & heavy
    rooms = {"_".join(path.split()[:1]).replace("-", "_") for path in tree()}
    work = {name for name in loaded if name.startswith("curate.commands.") and name.split(".")[2] in rooms}
    assert not work, "an index holds what help and completion need"


# Python


def in_python(path: str) -> Callable[..., Any] | None:
    """Return what Python has for a command: `check pool` as curate.check.pool or curate.check_pool."""
    words = path.replace("-", "_").split()
    others: dict[str, Callable[..., Any]] = {
        "anonymise": python.anonymise_file,
        "view": python.view_run,
    }  # names of a function and of a package
    if path in others:
        return others[path]
    nested: Any = python
    for word in words:
        nested = getattr(nested, word, None)
    return next((each for each in (nested, getattr(python, "_".join(words), None)) if callable(each)), None)


def test_every_command_is_in_python_under_the_same_words_and_keywords() -> None:
    """What only a terminal needs is left out: JSON, quiet, the plan; `--set` may be `settings`."""
    lacking = sorted(path for path in tree() if in_python(path) is None)
    terminal = {"json", "json_lines", "quiet", "set", "plan", "help"}
    different = {}
    for path in tree():
        found = in_python(path)
        if found is None:
            continue
        parameters = inspect.signature(found).parameters.values()
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            continue  # as it says, it takes all further options of the command
        keywords = {parameter.name.removesuffix("_") for parameter in parameters}
        keywords |= {name.removesuffix("_file") for name in keywords if name == "words_file"}  # `words` is the command
        wanted = {name.removeprefix("--").replace("-", "_") for name in options(path)} - terminal
        if wanted - keywords:
            different[path] = sorted(wanted - keywords)
    assert not lacking
    assert not different


def bound() -> Any:
    call = in_python("check pool")
    assert call, "check pool is in Python"
    return call(depth=0)


@pytest.mark.parametrize(
    ("call", "words", "argument", "option"),
    [
        (lambda: python.run("tiny.yaml", max_cost="much"), "run tiny.yaml --max-cost much", "max_cost", "--max-cost"),
        (
            lambda: python.run("tiny.yaml", settings={"judge.models": ["deepseek"]}),
            "run tiny.yaml --set judge.models=[deepseek]",
            "max_cost=",
            "--max-cost",
        ),
        (
            lambda: python.agree(pl.DataFrame({"item": ["a", "b"], "ann": ["S", "A"]})),
            "agree one.csv",
            "raters",
            "--raters",
        ),
        (bound, "check pool --depth 0", "depth", "--depth"),
    ],
    ids=["amount", "consent", "raters", "bound"],
)
def test_an_error_names_an_argument_in_python_and_an_option_in_a_terminal(
    call: Callable[[], Any], words: str, argument: str, option: str, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_run.parents[1]
    (folder / "one.csv").write_text("item,ann\na,S\nb,A\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DEEPSEEK_API_KEY", "none")
    with pytest.raises(python.CurateError) as raised:
        call()
    assert re.search(rf"\b{argument}", str(raised.value))
    assert not re.search(r"(?<![\w-])--[a-z]", str(raised.value)), "no flag in Python"
    said = complaint(folder, *words.split())
    assert option in said
    assert f"{argument.rstrip('=')}=" not in said, "and no keyword in a terminal"


# JSON


def lacking(schema: Any, definitions: Any, path: str = "") -> Iterator[str]:
    """Yield the properties without a description, of their own or of the type that they refer to."""
    if isinstance(schema, list):
        for each in schema:
            yield from lacking(each, definitions, path)
    elif isinstance(schema, dict):
        for name, each in schema.get("properties", {}).items():
            named = definitions.get(str(each.get("$ref", "")).rpartition("/")[2], {})
            if not (each.get("description") or named.get("description")):
                yield f"{path}.{name}"
        for key, each in schema.items():
            if isinstance(each, dict | list):
                yield from lacking(each, definitions, f"{path}.{key}")


def test_every_property_of_every_schema_is_described(tmp_path: Path) -> None:
    names = [row["command"] for row in data(ran(tmp_path, "schema", "--json"))]
    assert len(names) >= 30
    assert {"status", "agree", "check pool"} <= set(names)
    bare = {}
    for name in names:
        schema = json.loads(ran(tmp_path, "schema", *name.split()).stdout)
        Draft202012Validator.check_schema(schema)
        if found := sorted(set(lacking(schema, schema.get("$defs", {})))):
            bare[name] = found
    assert not bare, f"{sum(map(len, bare.values()))} properties"


def test_answers_are_as_their_schemas_say(tiny_run: Path) -> None:
    folder = tiny_run.parents[1]
    asked = (
        "status",
        "show pool",
        "show agreement",
        "agree --run runs/tiny",
        "ready runs/tiny",
        "check pool",
        "check circular",
        "models",
        "recognisers",
        "ledger stats",
        "ledger check",
        "verify runs/tiny/export",
        "run tiny.yaml --plan",
        "review export --size 40 --plan",
        "review export --size 40",
        "review report",
        "paper runs/tiny",
        "schema",
    )
    envelope = json.loads(ran(folder, "schema", "envelope").stdout)
    for words in asked:
        done = curate(folder, *words.split(), "--json")
        answer = json.loads(done.stdout)
        assert best_match(Draft202012Validator(envelope).iter_errors(answer)) is None, words
        assert answer["data"] is not None, (words, done.stderr)
        schema = json.loads(ran(folder, "schema", *answer["command"].split()).stdout)
        error = best_match(Draft202012Validator(schema).iter_errors(data(done)))
        assert error is None, (words, error and error.message)


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


def printed(value: float, name: str, text: str) -> bool:
    """Tell whether a text has a figure, rounded as it likes, within a line or two behind its name."""
    behind = re.findall(rf"(?:{name})(?=(?s:(.{{0,160}})))", text)
    for number in re.findall(r"(?<![\d.])[−-]?\d[\d,]*(?:\.\d+)?(?![\d.]*\d)", " ".join(behind)):
        plain = number.replace("−", "-").replace(",", "")
        if f"{value:.{len(plain.partition('.')[2])}f}" == plain:
            return True
    return False


def test_a_figure_is_the_same_in_terminal_json_page_card_and_paper(demo: Demo) -> None:
    folder, run = demo.folder, python.open(demo.run)
    frame = run.agreement().frame.filter(pl.col("measure") == "fleiss")
    kappas = [value for value in frame["value"].to_list() if value is not None][:2]
    assert len({round(kappa, 3) for kappa in kappas}) == 2, "of the grades, and of relevant or not"
    positives = float(run.labels.filter(pl.col("score") > 0).height)
    queries = run.labels["query_id"].n_unique()
    terminal = ran(folder, "agree", "--run", "runs/demo").stdout
    answer = [*numbers(data(ran(folder, "agree", "--run", "runs/demo", "--json")))]
    card = "\n".join(cards(demo.run).values())
    page = demo.seen("en").text
    ran(folder, "paper", "runs/demo", "--out", "paper", "--language", "en")
    tables = {path.name: path.read_text(encoding="utf-8") for path in (folder / "paper").rglob("*.csv")}
    for kappa in kappas:
        assert any(abs(each - kappa) < 1e-6 for each in answer)
        for place, text in {"terminal": terminal, "page": page, "card": card}.items():
            assert printed(kappa, r"Fleiss\S* (?:κ|kappa)", text), place
        (row, *_) = csv.reader(io.StringIO(tables["agreement.csv"].split("\n", 1)[1]))
        assert any(abs(float(cell) - kappa) < 1e-6 for cell in row if re.fullmatch(r"-?[\d.]+", cell))
    status = data(ran(folder, "status", "--run", "runs/demo", "--json"))
    assert next(row["rows_out"] for row in status if row["stage"] == "export") == positives
    for place, text in {"page": page, "card": card}.items():
        assert printed(positives, "[Pp]ositives|[Rr]elevant", text), place
    assert f"{positives:.0f} positives ({positives / queries:.1f} per exported query)" in demo.said
    assert printed(positives / queries, "positives per query", card)
    statistics = [*csv.DictReader(io.StringIO(tables["statistics.csv"]))]
    retrieval = next(row for row in statistics if row["task"].removesuffix("-small").endswith("retrieval"))
    assert float(retrieval["positives"]) == pytest.approx(positives / queries, abs=1e-6)


@pytest.mark.parametrize(
    ("ratings", "undefined"),
    [
        ("a,S,S\nb,S,S\nc,S,S\n", ("fleiss", "alpha_nominal")),
        ("a,S,\nb,,A\nc,S,\n", ("fleiss", "alpha_nominal", "percent")),
    ],
    ids=["one category", "no pairs"],
)
def test_what_is_not_defined_is_null_and_never_a_number(
    ratings: str, undefined: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "ratings.csv").write_text(f"item,ann,ben\n{ratings}", encoding="utf-8")
    asked = ("agree", "ratings.csv", "--raters", "ann,ben", "--order", "S,A,B,C,D", "--positive", "S,A")
    answer = data(ran(tmp_path, *asked, "--json"))["ratings"]
    assert {name: answer[name] for name in undefined} == dict.fromkeys(undefined)
    said = ran(tmp_path, *asked).stdout
    names = {"fleiss": "Fleiss' κ", "alpha_nominal": "Krippendorff's α (nominal)", "percent": "percent agreement"}
    for name in undefined:
        (line,) = [line for line in said.splitlines() if line.startswith(names[name])]
        assert not re.search(r"\d", line.removeprefix(names[name])), line
        assert re.search(r"not defined|[-–—]\s*$", line), line


# The page


@pytest.mark.parametrize("language", LANGUAGES)
def test_may_i_publish(language: str, demo: Demo) -> None:
    """The first words of the page are its state, and why: rules judged, and nobody read."""
    opening = demo.seen(language).opening
    told = [state for state in STATES[language] if state in opening]
    assert told == [STATES[language][RED]]
    first = opening.partition(told[0])
    assert len(first[0]) < 200, "what is read first"
    rules, unread = {
        "zh": (r"评审\S{0,6}(?:是|都是|全是|均为)\S{0,4}(?:规则|启发式)", r"还没有人|尚未经人|尚无人"),
        "en": (r"(?:rules|heuristics?)\b", r"[Nn]obody has|Not yet checked|not yet checked|[Nn]o assessor has"),
    }[language]
    assert re.search(rules, first[2][:400])
    assert re.search(unread, first[2][:600])


@pytest.mark.parametrize("language", LANGUAGES)
def test_how_many_positives_and_how_sure(language: str, demo: Demo) -> None:
    """Five figures with intervals, each with what it was counted in; at least two of the demo's have an interval."""
    labels = python.open(demo.run).labels.filter(pl.col("score") > 0)
    opening = demo.seen(language).opening
    words = {"zh": "正例|相关|查询", "en": "positive|relevant|quer"}[language]
    for count in (labels.height, labels["query_id"].n_unique(), 64):
        assert re.search(
            rf"(?:{words})[^\n]{{0,40}}\n?[^\n]{{0,20}}(?<![\d.,]){count}(?![\d.,]*\d)|"
            rf"(?<![\d.,]){count}(?![\d.,]*\d)[^\n]{{0,40}}\n?[^\n]{{0,20}}(?:{words})",
            opening,
        ), count
    head = opening[:2_000]
    assert len(INTERVAL.findall(head)) >= 2
    assert len(re.findall(r"\bn\s*[=＝]\s*[\d,]+|\bof [\d,]+ \w+|[\d,]+\s*(?:个|对)", head)) >= 3


@pytest.mark.parametrize("which", ["report", "audit"])
def test_what_do_i_type_next(which: str, tiny_run: Path) -> None:
    """The first command of the page can be typed as it is, and is the one that the terminal proposes."""
    folder = tiny_run.parents[1]
    if which == "report":
        page = tiny_run / "report.html"
        said = ran(folder, "run", "tiny.yaml").stdout
        (proposed,) = set(re.findall(r"^next: curate ([a-z-]+)", said, re.MULTILINE))
    else:
        shutil.rmtree(folder / "data")
        labelled(folder)
        done = audited(folder)
        assert done.returncode == 0, done.stderr
        page, proposed = folder / "runs" / "audit-data" / "audit.html", ""
    seen = Seen(page.read_text(encoding="utf-8"))
    assert seen.commands, "there is one before anything is opened"
    command = seen.commands[0]
    assert command in seen.opening[:1_500], "and it is among what is read first"
    assert not re.search(r"\b[A-Z][A-Z_]+\b|…|<", command), "nothing to fill in"
    words = shlex.split(command)[1:]
    assert words[0].startswith(proposed)
    done = curate(folder, *words)
    assert done.returncode == 0 or any(each in done.stderr for each in REFUSALS), (command, done.stderr)


@pytest.mark.parametrize("rubric", ["rubric-zh", "rubric-en", "seven"])
def test_what_does_a_grade_mean(rubric: str, tmp_path: Path) -> None:
    """The legend is in the words of the rubric that the judges were given, whatever the scale."""
    if rubric == "seven":
        scale_runs.make(tmp_path, scale_runs.CASES["seven"])
        meanings: dict[str, str] = scale_runs.SEVEN["grades"]  # type: ignore[assignment]
    else:
        tiny(tmp_path)
        language = rubric.removeprefix("rubric-")
        ran(tmp_path, "run", "tiny.yaml", "--set", f"judge.rubric={rubric}", "--set", f"report.language={language}")
        meanings = yaml.safe_load((ROOT / "prompts" / f"{rubric}.yaml").read_text(encoding="utf-8"))["grades"]
    opening = Seen((tmp_path / "runs" / "tiny" / "report.html").read_text(encoding="utf-8")).opening
    plain = re.sub(r"\s+", "", opening)
    for grade, meaning in meanings.items():
        words = re.sub(r"\s+", "", meaning).rstrip("。.")
        assert words in plain, grade
        assert re.search(re.escape(grade), plain[max(0, plain.index(words) - 30) : plain.index(words)]), grade


@pytest.mark.parametrize("language", LANGUAGES)
def test_which_judge_is_odd(language: str, demo: Demo) -> None:
    """A sentence of its own names the judge that likes everything, and how it differs; it names no other."""
    sentences = re.split(r"[。！？；\n]|[.;!?](?=\s)", demo.seen(language).opening)
    own = [each for each in sentences if re.search(r"\bthird\b|(?<![a-z])third(?![a-z])", each)]
    own = [each for each in own if not re.search(r"lexical|strict(?!er|ness)", each)]
    differs = {
        "zh": r"宽松|偏|不同|不一致|异常|最低|最高|突出|例外",
        "en": r"lenient|differ|odd|apart|lowest|highest|disagree|outlier|stands out|more often",
    }[language]
    assert [each for each in own if re.search(differs, each)], own


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_not_done_is_one_list(language: str, demo: Demo) -> None:
    """Each check that was left out stands on the page once, with what to type."""
    text = demo.seen(language).text
    for command in ("check circular", "check pool", "check mask", "check leaks"):
        assert len(re.findall(rf"curate {command}\b", text)) == 1, command


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_report_is_three_screens_and_the_rest_is_folded(language: str, demo: Demo, browser: Page) -> None:
    page = demo.pages[language]
    assert page.stat().st_size <= 1_000_000
    visit(browser, page)
    closed = "[...document.querySelectorAll('main details:not([open])')]"
    assert browser.see(f"{closed}.length") >= 5
    assert browser.see(f"{closed}[0].getBoundingClientRect().top + scrollY") <= 3 * 800
    assert browser.see("document.documentElement.scrollHeight") <= 5 * 800, "three screens, and heads of what is folded"
    assert browser.see("document.querySelectorAll('details[open]').length") == 0
    visit(browser, page, size=(390, 844))
    assert browser.see("document.documentElement.scrollWidth") <= 390
    assert browser.log("browser") == []


def test_paper_has_everything_and_heads_on_every_sheet(demo: Demo, browser: Page) -> None:
    visit(browser, demo.pages["zh"])
    folded = browser.see("document.querySelectorAll('main details').length")
    assert folded >= 5
    assert browser.see("document.querySelectorAll('main table').length") >= 5
    browser.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    browser.size(794, 1123)
    unseen = """[...document.querySelectorAll('main details')].filter(each =>
        ![...each.children].some(child => child.localName !== 'summary' && child.checkVisibility()
        && child.getBoundingClientRect().height > 0)).length"""
    assert browser.see(unseen) == 0, "details are open on paper"
    styles = "(each, name) => getComputedStyle(each)[name]"
    tables = f"""(style => [...document.querySelectorAll('main table')].filter(each => each.rows.length > 10)
        .map(each =>
        [!!each.tHead && style(each.tHead, 'display'), style(each.rows[3], 'breakInside')]))({styles})"""
    found = browser.see(tables)
    assert found
    assert {(head, rows) for head, rows in found} == {("table-header-group", "avoid")}
    heads = "[...document.querySelectorAll('main h2, main h3')].map(each => getComputedStyle(each).breakAfter)"
    assert set(browser.see(heads)) == {"avoid"}
    assert not browser.see("[...document.querySelectorAll('nav, main input')].some(each => each.checkVisibility())")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_without_a_script_has_all_that_is_in_it(language: str, demo: Demo, browser: Page) -> None:
    visit(browser, demo.pages[language])
    browser.see("document.querySelectorAll('details').forEach(each => each.open = true)")
    shown = " ".join(browser.see("document.querySelector('main').innerText").split())
    seen = " ".join(demo.seen(language).text.split())
    numbers = set(re.findall(r"(?<![\w.,])\d[\d.,]*\d(?![\w.,]*\w)", shown))
    assert len(numbers) > 50
    assert not {each for each in numbers if each not in seen}, "a number that only a script writes"
    heads = browser.see("[...document.querySelectorAll('main h2, main summary')].map(each => each.textContent.trim())")
    assert len(heads) >= 8
    assert not [each for each in heads if " ".join(each.split()) not in seen]
    ids = python.open(demo.run).table("consensus/verdicts")["query_id"].unique()
    assert sum(each in seen for each in ids) >= 20, "the hardest queries are there"


def test_markup_in_texts_and_ids_is_text_on_every_page(tmp_path: Path) -> None:
    """Every document, a query, and an id try to be markup; every page and the card only show them."""
    tiny(tmp_path)
    for name in ("queries", "corpus"):
        path = tmp_path / "data" / f"{name}.jsonl"
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        rows = [{**row, "text": f"{row['text']}{MARKUP}{row['_id'][-1]}"} for row in rows]
        rows.append({"_id": f"{name[0]}{MARKUP}", "title": "", "text": f"痛风患者能喝咖啡吗？{MARKUP}"})
        path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n", encoding="utf-8")
    ran(tmp_path, "run", "tiny.yaml", "--set", f"description={MARKUP}")
    ran(tmp_path, "review", "export", "--run", "runs/tiny", "--size", "40")
    ran(tmp_path, "report", "--run", "runs/tiny")
    done = audited(tmp_path)
    assert done.returncode == 0, done.stderr
    pages = {path: path.read_text(encoding="utf-8") for path in (tmp_path / "runs").rglob("*.html")}
    assert {"report.html", "audit.html", "GUIDE.html"} <= {path.name for path in pages}
    for path in (tmp_path / "runs" / "tiny" / "export").rglob("*.md"):
        pages[path] = MarkdownIt("commonmark").enable("table").render(path.read_text(encoding="utf-8"))
    for path, html in pages.items():
        seen = Seen(html)
        live = [
            (tag, attributes)
            for tag, attributes in seen.tags
            if "onerror" in attributes or attributes.get("src") == "x"
        ]
        assert not live, path
    for name in ("report.html", "audit.html"):
        assert MARKUP in Seen((next(path for path in pages if path.name == name)).read_text(encoding="utf-8")).text, (
            name
        )


def test_a_chinese_report_is_in_chinese_and_in_the_words_of_the_field(tiny_run: Path) -> None:
    html = (tiny_run / "report.html").read_text(encoding="utf-8")
    text = Seen(re.sub(r"(?s)<(code|pre)\b.*?</\1>", "·", html)).text
    assert re.search(r"Fleiss|Krippendorff", text), "names stay"
    english = re.findall(r"[A-Za-z][A-Za-z'’-]*(?:[ ,:]+[A-Za-z][A-Za-z'’-]*){3,}", text)
    assert not english
    old = ("看分数之前", "有争议", "底线", "去冗余", "评审员", "界线", "做了什么、没做什么", "自评的影响", "评判者")
    assert not [word for word in old if word in text]
    for word in ("评审模型", "有分歧", "自我偏好"):
        assert word in text


def test_a_reader_who_disagrees_stops_the_publication(tiny_run: Path) -> None:
    """A person who finds a third of the labels right: report of the review, and page, say so before all figures."""
    folder = tiny_run.parents[1]
    ran(folder, "review", "export", "--run", "runs/tiny", "--size", "40", "--assessors", "wang")
    sheet = next((tiny_run / "reviews").rglob("*.csv"))
    head, *rows = csv.reader(io.StringIO(sheet.read_text(encoding="utf-8-sig"), newline=""))
    place = next(at for at, name in enumerate(head) if name in ("等级", "grade"))
    for number, row in enumerate(rows):
        row[place] = "D" if number % 3 else "A"
    with (folder / "back.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([head, *rows])
    ran(folder, "review", "import", "back.csv", "--run", "runs/tiny")
    confirmed = data(ran(folder, "review", "report", "--run", "runs/tiny", "--json"))["confirmed"]["relevant"]["value"]
    assert 0 < confirmed < 0.8
    share = rf"(?<![\d.])(?:{100 * confirmed:.0f}|{100 * confirmed:.1f})\s*%"
    first = "\n".join(ran(folder, "review", "report", "--run", "runs/tiny").stdout.splitlines()[:4])
    assert re.search(r"do not publish", first, re.IGNORECASE)
    assert re.search(share, first)
    for language, refusal in (("zh", "不要发布|不宜发布|请勿发布|不应发布|暂勿发布"), ("en", "[Dd]o not publish")):
        ran(folder, "report", "--run", "runs/tiny", "--set", f"report.language={language}")
        opening = Seen((tiny_run / "report.html").read_text(encoding="utf-8")).opening[:800]
        assert re.search(rf"{refusal}|{STATES[language][RED]}", opening), language
        assert re.search(share, opening), language
        assert re.search({"zh": "复核人|人工|人", "en": "assessor|reader|[Pp]eople"}[language], opening)


# The card


def prose(card: str) -> str:
    """Return what a card says in words: without its head, code, addresses and comments."""
    body = re.sub(r"(?s)\A---\n.*?\n---\n", "", card)
    body = re.sub(r"(?s)```.*?```|<!--.*?-->", "", body)
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)|https?://\S+", "", body)


def test_a_card_shows_an_example_and_what_baselines_reach(demo: Demo) -> None:
    """The reader of a card sees a query with a document that answers it, a score to expect, and both languages."""
    (_, card), *_ = cards(demo.run).items()
    run = python.open(demo.run)
    texts = dict(run.table("mask/corpus").select("doc_id", "text").iter_rows())
    asked = dict(run.table("mask/queries").select("query_id", "text").iter_rows())
    plain = re.sub(r"\s+", "", card)
    pairs = [
        (query, doc)
        for query, doc, _ in run.labels.filter(pl.col("score") > 0).select("query_id", "doc_id", "score").iter_rows()
        if re.sub(r"\s+", "", asked[query]) in plain and re.sub(r"\s+", "", texts[doc])[:20] in plain
    ]
    assert pairs, "a query of the benchmark with a document that answers it"
    sections = re.split(r"(?m)^#+ ", card)
    baselines = [each for each in sections if re.match(r"[^\n]*(?:[Bb]aseline|基线)", each)]
    assert baselines
    rows = re.findall(r"(?m)^\|[^\n]*(?:bm25|BM25|random)[^\n]*\|[^\n]*\d[^\n]*$", baselines[0])
    assert rows, "a baseline with its score"
    example = {text[:10] for query, doc in pairs for text in (asked[query], texts[doc])}
    own = "\n".join(line for line in prose(card).splitlines() if not any(each in line for each in example))
    assert re.search(r"[\u4e00-\u9fff][\u4e00-\u9fff，、：]{11,}[^\n]*。", own), "a summary in Chinese"
    assert re.search(r"\b[A-Za-z]+(?: [A-Za-z]+){5,}", own), "and one in English"


def test_a_card_explains_every_column_and_has_no_raw_key(demo: Demo) -> None:
    """Tasks are sections of one page; each column has a row that says what it means, and prose is in words."""
    page, *fronts = cards(demo.run).values()
    assert all(len(prose(front).split()) < 90 for front in fronts), "one page, not one a task: a folder's links to it"
    card = page
    folder = demo.run / "export" / "mteb"
    tasks = sorted(path.name for path in folder.iterdir() if path.is_dir())
    assert len(tasks) >= 2
    heads = "\n".join(re.findall(r"(?m)^#+ .*$", card)).lower()
    assert not [task for task in tasks if task not in heads and task.replace("-", " ") not in heads]
    columns = {name for path in folder.rglob("*.parquet") for name in pl.read_parquet_schema(path)}
    assert {"query-id", "corpus-id", "score", "text"} <= columns
    unexplained = {
        name
        for name in columns
        if not re.search(rf"(?m)^\|.*`{re.escape(name)}`[^|\n]*\|[^\n]*[a-z]{{3,}} [a-z]{{2,}}", card)
    }
    assert not unexplained
    assert not re.findall(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b", prose(card))
