"""A reader of the docs: what lies in their folder, what they set, and what they do between two commands."""

import csv
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

import httpx
import openpyxl
import polars as pl
import yaml

from curate.core.config import read_yaml
from curate.system import resources
from tests import ROOT
from tests.support import noting
from tests.support.runs import Done, curate, started
from tests.support.small import minilm

QUERIES, DOCUMENTS = slice(8, 24), 40
"""Of the demo; of the queries three are in a part of a tenth. The documents are short ones, which are encoded fast."""
ANSWERS = {"wang": "A", "li": "D", "back": "clean"}
"""What stands in every row of a sheet that a person brings back, by the file's name."""
NOTES = {
    "note": "患者张伟，电话13912345678",
    "messages": [{"role": "user", "content": "我住在北京市海淀区中关村大街1号"}],
}


def data(folder: Path, demo: Path) -> pl.DataFrame:
    """Write a part of a demo's data as a BEIR folder; return the documents."""
    texts = {name: pl.read_ndjson(demo / f"{name}.jsonl") for name in ("queries", "corpus")}
    asked = texts["queries"][QUERIES]
    qrels = pl.read_csv(demo / "qrels" / "test.tsv", separator="\t")
    known = qrels.filter(pl.col("query-id").is_in(asked["_id"].implode()))
    liked = pl.col("_id").is_in(known["corpus-id"].implode())
    answers = texts["corpus"].sort(~liked, pl.col("text").str.len_chars(), "_id").head(DOCUMENTS)
    known = known.filter(pl.col("corpus-id").is_in(answers["_id"].implode()))
    (folder / "qrels").mkdir(parents=True)
    asked.write_ndjson(folder / "queries.jsonl")
    answers.write_ndjson(folder / "corpus.jsonl")
    known.write_csv(folder / "qrels" / "test.tsv", separator="\t")
    return answers


def paired(folder: Path) -> pl.DataFrame:
    """Return the queries of `folder / "data"`, each with the text of one document that answers it."""
    qrels = pl.read_csv(folder / "data" / "qrels" / "test.tsv", separator="\t").unique("query-id", keep="first")
    asked, answers = (pl.read_ndjson(folder / "data" / f"{name}.jsonl") for name in ("queries", "corpus"))
    rows = qrels.join(asked, left_on="query-id", right_on="_id").join(answers, left_on="corpus-id", right_on="_id")
    return rows.sort("query-id").select(问题="text", 回答="text_right")


def library(folder: Path) -> None:
    """Write the data, run the demo's pipeline on it, and lay out every file that a page takes for granted."""
    answers = data(folder / "data", resources.demo())
    answers.select(doc=pl.struct("title", id="_id", body="text")).write_ndjson(folder / "answers.jsonl")
    wards = [("north", "south")[at % 2] for at in range(answers.height)]  # departments of these few are too small
    answers.select(id="_id", label=pl.Series(wards)).write_csv(folder / "labels.csv")
    asked = pl.read_ndjson(folder / "data" / "queries.jsonl")
    asked.select(qid="_id", question="text").write_csv(folder / "queries.csv")
    paired(folder).write_csv(folder / "faq.csv")
    data(folder / "data-en", resources.demo() / "en")
    (folder / "pipelines").mkdir()
    for name, source in (("demo", "data"), ("demo-en", "data-en")):
        packaged = (ROOT / "pipelines" / f"{name}.yaml").read_text(encoding="utf-8")
        place = folder / "pipelines" / f"{name}.yaml"
        here = packaged.replace(f"source: {name}\n", f"source: {source}\n")
        place.write_text(here.replace("columns: {label: metadata.department}", "path: labels.csv"), encoding="utf-8")
    done = curate(folder, "run", "demo")
    assert done.returncode == 0, done.stderr
    export = folder / "runs" / "demo" / "export"
    for name in ("exports/mine", "exports/older", "downloaded"):
        shutil.copytree(export, folder / name)
    (folder / "my-model").symlink_to(minilm())
    shutil.copytree(folder / "data", folder / "my-beir-folder")
    shutil.copytree(export / "mteb" / "retrieval", folder / "CmedqaRetrieval")  # a folder goes before mteb's task
    shutil.copy(folder / "home" / "ledger.db", folder)
    shutil.copytree(folder / "runs" / "demo", folder / "runs" / "mine")
    (folder / "notes.jsonl").write_text(json.dumps(NOTES, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "ratings.csv").write_text("item;ann;ben\n1;S;S\n2;A;B\n3;B;B\n4;D;D\n", encoding="utf-8")
    noting.written(folder / "visits.csv")
    (folder / "in.csv").write_text("id,text\n1,电话13912345678\n", encoding="utf-8")
    book = openpyxl.Workbook()
    for row in (("客户提问", "客服回复"), ("我的电话是13912345678", "好的，请稍等。")):
        book.active.append(row)
    book.save(folder / "tickets.xlsx")


def left(folder: Path) -> None:
    """Make the newest run one whose masking left seven places that look like personal data."""
    shutil.copytree(folder / "data", folder / "raw")
    corpus = pl.read_ndjson(folder / "raw" / "corpus.jsonl")
    signs = pl.Series([f"编号{number}223344." for number in range(1, 7)] + ["姓名：王五。"])
    doubtful = corpus.head(7).with_columns(text=pl.col("text") + signs)
    pl.concat([doubtful, corpus.tail(-7)]).write_ndjson(folder / "raw" / "corpus.jsonl")
    asked = ("--set=ingest.source=raw", "--set=mask.recognisers=[mobile]")
    for stage in ("ingest", "mask"):
        done = curate(folder, stage, "--pipeline", "demo", "--run", "runs/raw", *asked)
        assert done.returncode == 0, done.stderr


def models(folder: Path, url: str, *, keyed: bool = False) -> None:
    """Write a models.yaml by which every preset is asked at another address, with the same key and price.

    `keyed` leaves out those that need no key, which `curate init` would propose.
    """
    presets = read_yaml(ROOT / "curate/llm/providers/presets.yaml")
    kept = ("key_env", "price")
    table = {
        name: {"base_url": url, **{key: each[key] for key in kept if key in each}}
        for name, each in presets.items()
        if isinstance(each, dict) and ("key_env" in each or not keyed)
    }
    (folder / "models.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(table, default=str))), encoding="utf-8")


def shown(folder: Path, page: str, url: str) -> None:
    """Write the pipeline that a page shows, if it shows one, as the file of its name.

    A model of the hub is one that is on this machine, a server at the usual port one that is there.
    """
    for block in re.findall(r"^```yaml\n(version: .*?)^```", page, re.MULTILINE | re.DOTALL):
        text = block.replace("http://localhost:8000/v1", url).replace("Alibaba-NLP/gte-multilingual-base", minilm())
        (folder / f"{yaml.safe_load(block)['name']}.yaml").write_text(text, encoding="utf-8")


@dataclass
class Reader:
    """Somebody at a shell in `folder`, who sets what a page tells them to set."""

    folder: Path
    values: Mapping[str, str]
    """What the reader writes where a page can only write a placeholder, by variable."""
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.variables["HOME"] = str(self.folder)

    def type(self, line: str) -> Done:
        """Do what a line of a page says; AssertionError for what is neither `curate` nor `export`."""
        words = shlex.split(line)
        assert words[0] in ("curate", "export"), f"{line}: neither run nor listed in NOT_RUN"
        if words[0] == "export":
            for name, _, value in (word.partition("=") for word in words[1:]):
                self.variables[name] = self.values.get(name, Template(value).safe_substitute(self.values))
            return Done(0, "", "")
        if set("<>|&") & set(line) or "--install-completion" in words:  # which asks what shell it was called by
            return self._shell(line)
        words = [Template(word).substitute({**self.values, **self.variables}) for word in words[1:]]
        self._bring(words)
        if words[:2] == ["review", "serve"] or (words[0] == "view" and not {"--pair", "--export"} & set(words)):
            return self._serve(words)
        run = started if "--push" in words or "PYTHONPATH" in self.variables else curate
        return run(self.folder, *words, **self.variables)

    def _shell(self, line: str) -> Done:
        command = ["bash", "-c", f"{line}\nexit $?"]  # the last line of a script may take the shell's place
        with self._process(command) as process:
            out, err = process.communicate()
        return Done(process.returncode, out, err)

    def _serve(self, words: Iterable[str]) -> Done:
        """Open the page at the address that the command prints, then press Ctrl-C."""
        command = [sys.executable, "-m", "curate", *words, "--port", "0"]  # the usual port may be taken
        with (
            self._process(command) as process,
            httpx.Client(follow_redirects=True, trust_env=False, timeout=60) as browser,
        ):
            assert process.stdout
            said = process.stdout.readline()
            assert said, process.communicate()[1]
            try:
                browser.get(said.strip()).raise_for_status()
            finally:
                process.send_signal(signal.SIGINT)
            out, err = process.communicate()
        assert "Traceback" not in err
        return Done(0, said + out, err)  # whoever stops a page is done with it, whatever the exit code

    def _process(self, command: Sequence[str]) -> "subprocess.Popen[str]":
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "CURATE_HOME": str(self.folder / "home"), "PATH": path, **self.variables}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=pipe, stderr=pipe, text=True)

    def _bring(self, words: Iterable[str]) -> None:
        """Fill in the sheets that a command takes back, as the people who were asked would."""
        for name in words:
            person, _, kind = name.partition(".")
            if person not in ANSWERS or kind not in ("csv", "xlsx"):
                continue
            written = {"back": "assessor"}.get(person, person)
            sheets = (self.folder / "runs").rglob(f"{written}.{kind}")
            sheet = max(sheets, key=lambda path: path.stat().st_mtime)
            fill = _fill_csv if kind == "csv" else _fill_xlsx
            fill(sheet, self.folder / name, ANSWERS[person])


def _fill_csv(sheet: Path, back: Path, answer: str) -> None:
    rows = list(csv.reader(io.StringIO(sheet.read_text(encoding="utf-8-sig"), newline="")))
    for row in rows[1:]:
        row[_place(rows[0])] = answer
    with back.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)


def _fill_xlsx(sheet: Path, back: Path, answer: str) -> None:
    book = openpyxl.load_workbook(sheet)
    page = book.worksheets[0]
    place = _place([str(cell.value) for cell in page[1]])
    for number in range(2, page.max_row + 1):
        page.cell(number, place + 1).value = answer
    book.save(back)


def _place(headers: list[str]) -> int:
    return next(at for at, name in enumerate(headers) if name in ("等级", "判断"))
