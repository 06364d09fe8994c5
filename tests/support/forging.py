"""A finished run with an export of three formats, and a careful forger, who makes every file of an export fit again."""

import json
import re
import shutil
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from curate.system.files import sha256
from tests.integration.commands.sts.test_sts import HEAD
from tests.support.runs import Done, curate, ran
from tests.vendor import Call, vendor

FORMATS = ("beir", "mteb", "trec")
TOPICS = ("高血压", "胃溃疡", "小儿发热", "偏头痛", "痛风", "糖尿病", "荨麻疹", "肩周炎", "青光眼", "白内障")
ANSWERS = (
    "{}患者能喝咖啡吗？可以少量喝。",
    "{}的病因很多。",
    "得了{}以后要按时服药，少喝咖啡。",
    "{}怎样预防？",
)
WORDS = {"胃溃疡": "消化性胃溃", "痛风": "尿酸病", "偏头痛": "偏头疼", "白内障": "白内之障", "青光眼": "绿光眼"}
STAGES = "ingest, mask, diversify, pool, judge, consensus, resolve, sts, label, paraphrase, gradient, export, report"
PARAPHRASE = "retrievers: [words, use], test: 8, deciles: 1, edits: 2, pool: 2"
SETTINGS = (
    "judge.models=[one, two, three]",
    "judge.controls=0",
    f"stages=[{STAGES}]",
    "ingest.labels={path: labels.csv, side: corpus}",
    "label={panel: [], min_texts: 2, min_groups: 2, near: 1.0, test: 0.2}",
    "sts={generator: templates, panel: [], dictionary: words.tsv, faults: drop, test: 4, train: 2}",
    f"paraphrase={{generator: templates, panel: [], dictionary: words.tsv, {PARAPHRASE}}}",
    "gradient={panel: [], shortest: 5}",
)
PIPELINE = """\
version: 1
name: small
ingest: {source: data}
diversify: {enabled: false}
pool: {retrievers: [words, pairs], depth: 8, size: 10}
retrievers:
  words: {kind: bm25}
  pairs: {kind: bm25, tokens: bigrams}
export: {small: true, rerank: {negatives: 1}}
"""
AT_FIRST = "ledger-at-the-first-call"
"""Copy of the ledger as it lay on the disk when the first paid call arrived."""
PRICE = "price: {currency: USD, input: 1.0, output: 1.0, date: '2026-11-01'}"


def _chance(*words: str) -> int:
    return zlib.crc32("".join(words).encode())


def _alike(query: str, text: str) -> str:
    """Grade as two judges do, which are near-identical."""
    if query[:2] in text:
        return "S" if "咖啡" in text else "BC"[_chance(text) % 2]
    return "CD"[_chance(query, text) % 2]


def _other(query: str, text: str) -> str:
    """Grade as the third judge does, who often thinks otherwise."""
    return "SABCD"[_chance(query, text, "4") % 5] if _chance(text, query, "3") % 4 == 0 else _alike(query, text)


def ledger_bytes(home: Path) -> bytes:
    """Return the ledger of a home as it lies on the disk, with what SQLite has not moved into the file yet."""
    return b"".join(path.read_bytes() for path in sorted(home.glob("ledger.db*")) if not path.name.endswith("lock"))


def finished(folder: Path) -> Path:
    """Run ten queries and forty documents with three paid judges, and stages that nobody confirms."""
    (folder / "data" / "qrels").mkdir(parents=True)
    queries = [{"_id": f"q{n}", "text": f"{topic}患者能喝咖啡吗"} for n, topic in enumerate(TOPICS)]
    texts = [answer.format(topic) for topic in TOPICS for answer in ANSWERS]
    corpus = [{"_id": f"d{n:02}", "title": "", "text": text} for n, text in enumerate(texts)]
    for name, rows in (("queries", queries), ("corpus", corpus)):
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / "data" / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    qrels = "".join(f"q{n}\td{4 * n:02}\t1\n" for n in range(len(TOPICS)))
    (folder / "data" / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{qrels}")
    classes = "".join(f"{row['_id']},{'coffee' if '咖啡' in row['text'] else 'other'}\n" for row in corpus)
    (folder / "labels.csv").write_text(f"id,label\n{classes}")
    words = "".join(f"{term}\t{synonym}\texact\ttest\tboth\n" for term, synonym in WORDS.items())
    (folder / "words.tsv").write_text(HEAD + words, encoding="utf-8")
    (folder / "small.yaml").write_text(PIPELINE, encoding="utf-8")

    def watch(_call: Call) -> None:
        if not (folder / AT_FIRST).exists():
            (folder / AT_FIRST).write_bytes(ledger_bytes(folder / "home"))

    with ExitStack() as servers:
        judges = []
        for name, family, script in (("one", "alpha", _alike), ("two", "beta", _alike), ("three", "gamma", _other)):
            url = servers.enter_context(vendor(script, watch)).url
            about = f"kind: openai, model: m-{name}, family: {family}, base_url: '{url}', {PRICE}"
            judges.append(f"judges.{name}={{{about}}}")
        ran(folder, "run", "small.yaml", "--yes", *[word for each in (*SETTINGS, *judges) for word in ("--set", each)])
    return folder / "runs" / "small"


class Export:
    """One format of a copied export, whose files a forger changes and makes fit."""

    def __init__(self, made: Path, name: str, folder: Path) -> None:
        self.name, self.made, self.folder = name, made, folder / name
        shutil.copytree(made / "runs" / "small" / "export" / name, self.folder)

    # What a forger does

    def tables(self, change: Callable[[str, pl.DataFrame], pl.DataFrame]) -> None:
        """Change every Parquet table; the function is told its path without content digest and ending."""
        for path in sorted(self.folder.rglob("*.parquet")):
            name = re.sub(r"-[0-9a-f]{16}$", "", path.relative_to(self.folder).with_suffix("").as_posix())
            before = pl.read_parquet(path)
            after = change(name, before)
            if not after.equals(before):
                schema = pq.read_schema(path)
                pq.write_table(pa.Table.from_pylist(after.to_dicts(), schema=schema), path)

    def lines(self, change: Callable[[str], str | None]) -> None:
        """Change every line of the text files of BEIR and TREC; None takes it away."""
        for path in sorted(self.folder.rglob("*")):
            if path.suffix in (".jsonl", ".tsv", ".txt"):
                lines = map(change, path.read_text("utf-8").splitlines())
                path.write_text("".join(f"{line}\n" for line in lines if line is not None), "utf-8")

    def cards(self, change: Callable[[str], str]) -> None:
        """Change every README."""
        for path in sorted(self.folder.rglob("README.md")):
            path.write_text(change(path.read_text("utf-8")), "utf-8")

    def body(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change what the manifest says."""
        path = self.folder / "MANIFEST.json"
        told = json.loads(path.read_text("utf-8"))
        change(told)
        path.write_text(json.dumps(told, ensure_ascii=False, indent=1, sort_keys=True) + "\n", "utf-8")

    def facts(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the facts of the card, which the manifest of mteb holds."""

        def within(told: dict[str, Any]) -> None:
            facts = told["card"]["facts"]
            data = json.loads(facts) if isinstance(facts, str) else facts
            change(data)
            told["card"]["facts"] = json.dumps(data, ensure_ascii=False) if isinstance(facts, str) else data

        if "card" in json.loads((self.folder / "MANIFEST.json").read_text("utf-8")):
            self.body(within)

    def everywhere(self, old: str, new: str) -> None:
        """Put one word in the place of another in manifest and READMEs."""
        assert old in (self.folder / "MANIFEST.json").read_text("utf-8"), old
        self.cards(lambda text: text.replace(old, new))
        path = self.folder / "MANIFEST.json"
        path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")

    def sign(self) -> None:
        """Name tables by their content again, and write digests and numbers of rows into the manifest."""
        for path in sorted(self.folder.rglob("*.parquet")):
            stem, _, digest = path.stem.rpartition("-")
            if len(digest) == 16 and digest != sha256(path)[:16]:
                new = path.rename(path.with_name(f"{stem}-{sha256(path)[:16]}.parquet"))
                self._renamed(path, new.name)

        def signed(told: dict[str, Any]) -> None:
            there = {
                path.relative_to(self.folder).as_posix(): path for path in self.folder.rglob("*") if path.is_file()
            }
            told["files"] = {name: sha256(path) for name, path in sorted(there.items()) if name != "MANIFEST.json"}
            told["rows"] = {**told["rows"], **{name: self.rows(name) for name in ("corpus", "queries")}}

        self.body(signed)

    def _renamed(self, path: Path, new: str) -> None:
        folder = path.parent.name
        for card, old, name in (
            (self.folder / "README.md", f"{folder}/{path.name}", f"{folder}/{new}"),
            (path.parent / "README.md", path.name, new),
        ):
            if card.exists():
                card.write_text(card.read_text("utf-8").replace(old, name), "utf-8")

    # What is there

    def rows(self, table: str) -> int:
        """Return the number of queries or documents."""
        files = {"beir": f"{table}.jsonl", "trec": {"corpus": "docs.jsonl", "queries": "topics.jsonl"}[table]}
        if self.name in files:
            return len((self.folder / files[self.name]).read_text("utf-8").splitlines())
        return len(self.table(f"retrieval/{table}"))

    def table(self, name: str) -> pl.DataFrame:
        """Return a table of the format mteb by its path without digest, of the split test."""
        [path] = [
            path for path in self.folder.glob(f"{name}-*.parquet") if re.fullmatch("[0-9a-f]{16}", path.stem[-16:])
        ]
        return pl.read_parquet(path)

    def manifest(self) -> str:
        """Return the SHA-256 of the manifest as it is now."""
        return sha256(self.folder / "MANIFEST.json")

    def verify(self, *words: str) -> Done:
        """Run `curate verify` on this format alone, with the ledger of the run."""
        return curate(self.made, "verify", str(self.folder), "--ledger", str(self.made / "home" / "ledger.db"), *words)

    def said(self, *words: str) -> tuple[int, dict[str, Any]]:
        """Return exit code and the row of this format that `curate verify --json` prints; none where it refused."""
        done = self.verify("--json", *words)
        data = json.loads(done.stdout)["data"] if done.stdout.strip().startswith("{") else None
        return done.returncode, data[0] if data else {}


def replaced(value: Any, names: dict[str, str]) -> Any:
    """Return a value in which whole strings are replaced, however deep."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [replaced(each, names) for each in value]
    if isinstance(value, dict):
        return {key: replaced(each, names) for key, each in value.items()}
    return value


def renamed(table: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    """Return a table in which whole strings are replaced."""
    return pl.DataFrame([replaced(row, names) for row in table.to_dicts()], table.schema)


def without(table: pl.DataFrame, gone: Callable[[str, str], bool]) -> pl.DataFrame:
    """Return a table of judged pairs without some, by query and document; other tables stay."""
    query, doc = (next((name for name in names if name in table.columns), None) for names in (QUERY, DOC))
    if query and doc:
        return pl.DataFrame([row for row in table.to_dicts() if not gone(row[query], row[doc])], table.schema)
    if query and "corpus-ids" in table.columns:
        rows = [
            {**row, "corpus-ids": [each for each in row["corpus-ids"] if not gone(row[query], each)]}
            for row in table.to_dicts()
        ]
        return pl.DataFrame([row for row in rows if row["corpus-ids"]], table.schema)
    return table


QUERY, DOC = ("query-id", "query_id"), ("corpus-id", "doc_id")


def tidy(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table in the order of its ids, as an export writes it; one without ids stays."""
    if "corpus-ids" in table.columns:
        table = table.with_columns(pl.col("corpus-ids").list.sort())
    keys = [name for name in (*QUERY, *DOC, "id") if name in table.columns and table.schema[name] == pl.String]
    return table.sort(keys, maintain_order=True) if keys and "sentence1" not in table.columns else table
