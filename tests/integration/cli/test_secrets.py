"""A planted secret is nowhere: in no table, ledger, cache, log, manifest, report, export, error or prompt of a run."""

import gzip
import json
import sqlite3
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from tests.support.runs import Done, curate, tiny
from tests.vendor import Vendor, vendor

SECRETS = {
    "phone": ("13987654321", "联系电话{}，谢谢"),
    "spaced": ("139 8765 4322", "手机号是{}请回电"),
    "spoken": ("一三九八七六五四三二三", "打我电话{}吧"),
    "landline": ("0531-89016768", "家里座机{}"),
    "email": ("lihua.zhang@example.com", "报告发到{}谢谢"),
    "wechat": ("zhanglihua_1980", "加我微信{}"),
    "qq": ("2723768346", "我的QQ号{}"),
    "id_card": ("11010519491231002X", "身份证号{}帮我查"),
    "bank_card": ("6222021234567890128", "银行卡号{}转账"),
    "passport": ("E87654321", "护照号{}"),
    "plate": ("京A·8K7L6", "车牌{}停在门口"),
    "record": ("住院号00987654", "{}已出院"),
    "name": ("欧阳晓月", "我叫{}，今年45岁"),
    "doctor": ("诸葛明德", "谢谢{}医生"),
    "address": ("浙江省杭州市西湖区文三路478号3幢501室", "家住{}"),
    "birth": ("1956年11月23日", "出生日期：{}"),
}
"""What is planted, and the words around it; the last digits of the numbers do not occur anywhere else."""


def luhn(number: str) -> str:
    """Return the number with its last digit made right."""
    digits = [int(digit) for digit in number[-2::-1]]
    total = sum(sum(divmod(2 * digit, 10)) if place % 2 == 0 else digit for place, digit in enumerate(digits))
    return f"{number[:-1]}{-total % 10}"


KEY = "the-key-of-this-test"
VALUES = {name: luhn(value) if name == "bank_card" else value for name, (value, _) in SECRETS.items()}


def needles(value: str) -> list[str]:
    """Return what must not be seen: the value, however its separators were changed, and however JSON writes it."""
    bare = "".join(character for character in value if character not in " -·")
    return sorted({value, bare, json.dumps(value)[1:-1]})


def plant(folder: Path) -> None:
    """Put every secret in a query, in a document and in a title."""
    for name, key in (("queries", "text"), ("corpus", "text"), ("corpus", "title")):
        path = folder / "data" / f"{name}.jsonl"
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for number, (secret, (_, around)) in enumerate(SECRETS.items()):
            row = rows[number % len(rows)]
            row[key] = f"{row[key]}。{around.format(VALUES[secret])}"
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def words(path: Path) -> Iterator[str]:
    """Yield all that can be read in a file: cells of tables, rows of databases, parts of archives."""
    yield str(path)
    yield path.read_bytes().decode("utf-8", "ignore")
    if path.suffix == ".parquet":
        yield json.dumps(pl.read_parquet(path).to_dicts(), ensure_ascii=False, default=str)
    elif path.suffix == ".db":
        with sqlite3.connect(path) as connection:
            yield "\n".join(connection.iterdump())
    elif path.suffix == ".gz":
        yield gzip.decompress(path.read_bytes()).decode("utf-8", "ignore")
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            yield from (archive.read(name).decode("utf-8", "ignore") for name in archive.namelist())


def leaks(texts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return (secret, place) of everything that is seen."""
    return [
        (name, place)
        for place, text in texts
        for name, value in VALUES.items()
        if any(needle in text for needle in needles(value))
    ]


def seen(folder: Path) -> list[tuple[str, str]]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and folder / "data" not in path.parents]
    return [(str(path.relative_to(folder)), text) for path in files for text in words(path)]


@pytest.fixture(scope="module")
def server() -> Iterator[Vendor]:
    with vendor(lambda _query, passage: "S" if "咖啡" in passage else "D") as running:
        yield running


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, server: Vendor) -> tuple[Path, list[Done]]:
    """Return the folder of a whole run with a judge behind HTTP, and what every command said."""
    folder = tmp_path_factory.mktemp("secrets")
    pipeline = tiny(folder)
    plant(folder)
    judge = json.dumps({"kind": "openai", "model": "m", "base_url": server.url, "price": None})
    text = (folder / pipeline).read_text("utf-8").replace("models: [lexical, strict]", "models: [lexical, m]")
    (folder / pipeline).write_text(text.replace("judges:\n", f"judges:\n  m: {judge}\n"), "utf-8")
    commands = (
        ["run", pipeline, "--run", "runs/t", "--yes"],
        ["status", "--run", "runs/t"],
        ["show", "mask/spans", "--run", "runs/t"],
        ["show", "mask/queries", "--run", "runs/t"],
        ["judge", "--record", "recorded.jsonl", "--run", "runs/t"],
        ["agree", "--run", "runs/t"],
        ["review", "export", "--run", "runs/t", "--size", "40"],
        ["check", "mask", "--run", "runs/t"],
        ["ledger", "export", "parts"],
        ["judge", "--plan", "--run", "runs/t"],
        ["run", pipeline, "--run", "runs/again", "--set", "mask.mode=pseudonym", "--yes"],
    )
    said = [curate(folder, *command, CURATE_PII_KEY=KEY) for command in commands]
    assert [
        (" ".join(command), done.stderr) for command, done in zip(commands, said, strict=True) if done.returncode
    ] == []
    return folder, said


def test_every_secret_was_found(run: tuple[Path, list[Done]]) -> None:
    folder, said = run
    assert said[0].returncode == 0, said[0].stderr
    spans = pl.read_parquet(folder / "runs/t/mask/spans.parquet")
    assert spans.height >= 3 * len(SECRETS)
    assert set(spans["kind"]) >= {"phone", "email", "wechat", "qq", "id_card", "bank_card", "plate", "name", "address"}


def test_no_secret_is_in_any_file(run: tuple[Path, list[Done]]) -> None:
    folder, _ = run
    texts = seen(folder)
    assert len({place for place, _ in texts}) > 30
    assert leaks(texts) == []
    assert not [path for name in ("queries", "corpus") for path in folder.glob(f"runs/*/ingest/{name}.parquet")]


def test_no_secret_was_said(run: tuple[Path, list[Done]]) -> None:
    _, said = run
    assert leaks([(f"command {number}", each.stdout + each.stderr) for number, each in enumerate(said)]) == []
    assert KEY not in "".join(each.stdout + each.stderr for each in said)


def test_no_secret_was_sent(run: tuple[Path, list[Done]], server: Vendor) -> None:
    prompts = [(f"call {number}", str(call)) for number, call in enumerate(server.calls)]
    assert len(prompts) >= 5
    assert leaks(prompts) == []


def test_the_key_is_in_no_file(run: tuple[Path, list[Done]]) -> None:
    folder, _ = run
    assert [place for place, text in seen(folder) if KEY in text] == []


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    """A test that searches must be able to find."""
    value = VALUES["name"]
    pl.DataFrame({"a": [[value]]}).write_parquet(tmp_path / "t.parquet")
    with sqlite3.connect(tmp_path / "l.db") as connection:
        connection.execute("CREATE TABLE t (a TEXT)")
        connection.execute("INSERT INTO t VALUES (?)", [json.dumps(value)])
    (tmp_path / "x.gz").write_bytes(gzip.compress(value.encode()))
    for path in tmp_path.iterdir():
        assert leaks([(path.name, text) for text in words(path)]), path


def test_a_bad_row_is_named_by_its_place_alone(tmp_path: Path) -> None:
    """An error of reading shows no text: what is wrong in a row often stands beside what must not be shown."""
    tiny(tmp_path)
    plant(tmp_path)
    path = tmp_path / "data" / "queries.jsonl"
    secret = "，".join(VALUES.values())
    for row in (f'{{"_id": "x", "text": "{secret}"', f'{{"_id": ["{secret}"], "text": "a"}}', secret):
        path.write_text(path.read_text("utf-8") + row + "\n", "utf-8")
    done = curate(tmp_path, "run", "tiny.yaml", "--run", "runs/t")
    assert done.returncode == 2
    assert leaks([("error", done.stdout + done.stderr), *seen(tmp_path)]) == []
