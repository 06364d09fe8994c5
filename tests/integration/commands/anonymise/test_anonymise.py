"""`curate anonymise`: files of every kind come out masked, whole, and otherwise as they were."""

import codecs
import csv
import gzip
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook
from openpyxl.styles import Font

from curate.commands.anonymise.command import AnonymiseCommand, anonymise
from curate.commands.anonymise.pieces import HEAD
from curate.core.errors import ConfigError, DataError, UserError
from curate.pii import RECOGNISERS
from curate.pii.settings import listing
from curate.tables.readers.encoding import COMPRESSIONS
from tests.support import machine
from tests.support.printed import sentences
from tests.support.runs import curate

PHONE, OTHER = "13912345678", "13812345678"
PHONES = ["--recognisers", "mobile"]
"""All recognisers are another test's: here they only take their time."""
MASK = "[电话]"


def masked(folder: Path, content: bytes, ending: str, **options: Any) -> bytes:
    """Return what becomes of a file."""
    (folder / f"in{ending}").write_bytes(content)
    paths: dict[str, Any] = {"source": str(folder / f"in{ending}"), "target": str(folder / f"out{ending}")}
    some = {"placeholders": "zh", "recognisers": ["mobile", "email"], "allow_residual": True, "force": True}
    anonymise(AnonymiseCommand(**paths | some | options))
    assert sorted(path.name for path in folder.glob(".*")) == []
    return (folder / f"out{ending}").read_bytes()


LINES = (
    f'{{"_id" : 7, "text":"请打{PHONE}" ,"x":1.50, "y":[1e5,-0,{"9" * 5000}], "z":null}}\r\n',
    '{"_id":"\\u75c5","text":"没有号码\\/"}\n',
    "\n",
    f'  {{"title":"\\u7535\\u8bdd{OTHER}","text":null,"note":"{PHONE}"}}\n',
    f'{{"text":["{PHONE}",3,null,["a {OTHER}"]],"title":5}}',
)
MASKED = (
    LINES[0].replace(PHONE, MASK),
    LINES[1],
    LINES[2],
    LINES[3].replace(f'{OTHER}"', '[\\u7535\\u8bdd]"'),
    LINES[4].replace(PHONE, MASK).replace(OTHER, MASK),
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_jsonl_changes_nothing_but_the_texts(tmp_path: Path, encoding: str) -> None:
    assert masked(tmp_path, "".join(LINES).encode(encoding), ".jsonl") == "".join(MASKED).encode(encoding)


def test_half_a_surrogate_pair_and_what_an_encoding_lacks_are_escaped(tmp_path: Path) -> None:
    line = f'{{"text":"\\ud83d{PHONE}","n":1}}\n'
    assert masked(tmp_path, line.encode(), ".jsonl") == b'{"text":"\\ud83d[\\u7535\\u8bdd]","n":1}\n'
    line = f'{{"text":"醫院請打{PHONE}","a":"糖尿病患者可以吃水果嗎，應該注意什麼"}}\n'
    assert json.loads(masked(tmp_path, line.encode("big5"), ".jsonl", encoding="big5").decode("big5"))["text"] == (
        f"醫院請打{MASK}"
    )


@pytest.mark.parametrize(
    ("field", "row", "new"),
    [
        ("note", {"note": PHONE, "text": PHONE}, {"note": MASK, "text": PHONE}),
        ("meta.note", {"meta": {"note": PHONE, "tel": PHONE}}, {"meta": {"note": MASK, "tel": PHONE}}),
        ("meta.note", {"meta.note": PHONE, "meta": {"note": PHONE}}, {"meta.note": MASK, "meta": {"note": PHONE}}),
        (
            "messages.content",
            {"messages": [{"role": "user", "content": PHONE}, {"role": PHONE, "content": None}]},
            {"messages": [{"role": "user", "content": MASK}, {"role": PHONE, "content": None}]},
        ),
        ("a.b", {"a": None}, {"a": None}),
        ("a\\b", {"a\\b": PHONE}, {"a\\b": MASK}),
    ],
)
def test_fields_inside_others(tmp_path: Path, field: str, row: object, new: object) -> None:
    out = masked(tmp_path, json.dumps(row).encode(), ".jsonl", field=(field,))
    assert json.loads(out) == new


LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.just(f"请打{PHONE}")
VALUE = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


@given(
    row=st.dictionaries(st.text(), VALUE, max_size=4),
    text=st.text() | st.just(PHONE),
    ascii_=st.booleans(),
    indent=st.sampled_from([(", ", ": "), (",", ":"), (" ,\t", " : ")]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_row_of_jsonl_differs_in_its_text_alone(
    tmp_path: Path, row: dict[str, object], text: str, ascii_: bool, indent: tuple[str, str]
) -> None:
    row = {**row, "text": text}
    row.pop("title", None)
    line = json.dumps(row, ensure_ascii=ascii_, separators=indent).encode("utf-8", "surrogatepass")
    out = masked(tmp_path, line, ".jsonl", encoding="utf-8")
    if text == PHONE:
        assert json.loads(out) == {**row, "text": MASK}
        assert len(out) - len(line) in (len(MASK.encode()) - 11, len(json.dumps(MASK)) - 2 - 11)
    else:
        assert out == line


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f'{{"text": "{PHONE}"', "not valid JSON"),
        (f'["{PHONE}"]', "found a list, expected one JSON object"),
        (f'{{"tekst": "{PHONE}"}}', "found no 'text', expected 'text' in every row"),
        (f'{{"text": {{"{PHONE}": 1}}}}', "found an object as 'text', expected text, or a list of texts"),
        (f'{{"text": "{PHONE}", "text": "b"}}', "found a key twice"),
        ("[" * 100_000, "found deeper nesting, expected at most 100 levels"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_written(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "in.jsonl").write_text(f'{{"text":"a"}}\n{line}\n{{"text":"b{PHONE}"}}\n')
    done = curate(tmp_path, "anonymise", "in.jsonl", "out.jsonl", "--spans", *PHONES)
    assert done.returncode == 2
    assert "at: in.jsonl:2\n" in done.stderr
    assert said in sentences(done.stderr)
    assert PHONE not in done.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == ["in.jsonl"]
    done = curate(tmp_path, "anonymise", "in.jsonl", "out.jsonl", "--on-error", "drop", *PHONES)
    assert (tmp_path / "out.jsonl").read_text() == f'{{"text":"a"}}\n{{"text":"b{MASK}"}}\n'
    assert done.stderr == "2 texts, 1 of them changed; spans: phone 1; 1 rows dropped that could not be read\n"


def test_rows_without_a_field_pass_if_they_may_but_not_all_of_them(tmp_path: Path) -> None:
    fields = {"field": ("note",), "allow_missing": True}
    content = f'{{"a":1}}\n{{"note":"{PHONE}"}}\n'.encode()
    assert masked(tmp_path, content, ".jsonl", **fields) == content.replace(PHONE.encode(), MASK.encode())
    with pytest.raises(DataError, match="found no note in any row"):
        masked(tmp_path, b'{"a":1}\n', ".jsonl", **fields)


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    good = '{"text":"糖尿病患者可以吃水果吗"}\n'.encode() * 3
    (tmp_path / "in.jsonl").write_bytes(good + '{"text":"高血压患者"}\n'.encode("gb18030"))
    done = curate(tmp_path, "anonymise", "in.jsonl", "out.jsonl")
    assert done.returncode == 2
    assert "in.jsonl:4: found bytes that are not UTF-8" in sentences(done.stderr)
    assert "--set encoding=gb18030" in sentences(done.stderr)
    (tmp_path / "zero.txt").write_bytes(b"a\0b\n")
    done = curate(tmp_path, "anonymise", "zero.txt", "out.txt")
    assert "name its encoding with --set encoding" in sentences(done.stderr)


def test_spans_of_jsonl_are_offsets_in_the_raw_text(tmp_path: Path) -> None:
    rows = [{"text": f"打{PHONE}", "title": "a"}, {"text": ""}, {"text": [f"x@y.com {PHONE}"]}]
    content = "\n".join(json.dumps(row) for row in rows).encode() + b'\n{"text":1}\n'
    out = [json.loads(line) for line in masked(tmp_path, content, ".jsonl", spans=True).splitlines()]
    phone = {"field": "text", "start": 1, "end": 12, "label": "phone", "recogniser": "mobile"}
    assert [row["spans"] for row in out[:2]] == [[phone], []]
    assert [(span["field"], span["start"], span["end"]) for span in out[2]["spans"]] == [
        ("text.0", 0, 7),
        ("text.0", 8, 19),
    ]
    assert PHONE not in str(out)


CSV = (
    f'id;note;"text"\r\n1;{PHONE};"请打""{PHONE}"""\r\n\r\n2;a;{PHONE}\r\n3;"";"两\n行; {OTHER}"\n'
    f'4;"b";无\r\n5;c;"{PHONE}"\r\n6;d;5" {PHONE}'
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "gb18030"])
def test_csv_keeps_its_dialect(tmp_path: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    first, rest = CSV.split("\r\n", 1)
    new = rest.replace(PHONE, MASK).replace(OTHER, MASK).replace(f"1;{MASK}", f"1;{PHONE}")
    out = masked(tmp_path, (mark + CSV).encode(encoding), ".csv")
    assert out == f"{mark}{first}\r\n{new}".encode(encoding)


CELL = st.text(st.sampled_from("甲,;|\t\"'\n a1x")) | st.just(f'"{PHONE}",') | st.just(PHONE)


@given(
    rows=st.lists(st.tuples(CELL, CELL), max_size=4),
    delimiter=st.sampled_from(",;|\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_csv_differs_in_its_texts_alone(
    tmp_path: Path, rows: list[tuple[str, str]], delimiter: str, end: str, quoting: int
) -> None:
    stream = io.StringIO(newline="")
    table = csv.writer(stream, delimiter=delimiter, lineterminator=end, quoting=quoting)  # type: ignore[arg-type]
    table.writerows([("id", "text"), *rows])
    out = masked(tmp_path, stream.getvalue().encode(), ".csv").decode()
    expected = [["id", "text"], *([cell, text.replace(PHONE, MASK)] for cell, text in rows)]
    assert list(csv.reader(io.StringIO(out, newline=""), delimiter=delimiter)) == expected
    assert len(out) == len(stream.getvalue()) - sum(PHONE in text for _, text in rows) * (len(PHONE) - len(MASK))


def test_tsv_holds_quotes_as_they_are(tmp_path: Path) -> None:
    content = f'id\ttext\n1\t5" {PHONE}\n2\t"quoted ""{PHONE}"""\n3\t"left open {OTHER}\n'
    assert masked(tmp_path, content.encode(), ".tsv").decode() == content.replace(PHONE, MASK).replace(OTHER, MASK)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f"id,tekst\n1,{PHONE}\n", "in.csv:1: found the columns id, tekst, expected text"),
        (f"id,text\n1,a\n2,{PHONE},b\n", "in.csv:3: found 3 cells, expected 2 as in the header"),
        (f'id,text\n1,"a\n2,{PHONE}\n', "in.csv:2: found a quote that is not closed"),
        (f"{PHONE},张三\n", "found the columns one of 11 characters, one of 2 characters"),
    ],
)
def test_a_bad_table_is_named(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "in.csv").write_text(content)
    done = curate(tmp_path, "anonymise", "in.csv", "out.csv")
    assert done.returncode == 2
    assert said in sentences(done.stderr)
    assert PHONE not in done.stderr
    assert not (tmp_path / "out.csv").exists()


def test_a_sidecar_says_where_something_was_found(tmp_path: Path) -> None:
    masked(tmp_path, f'text,n\n"a\nb {PHONE}",1\n{OTHER},2\n'.encode(), ".csv", spans=True)
    phone = {"label": "phone", "recogniser": "mobile"}
    assert [json.loads(line) for line in (tmp_path / "out.csv.spans.jsonl").read_text().splitlines()] == [
        {"line": 2, "field": "text", "start": 4, "end": 15, **phone},
        {"line": 4, "field": "text", "start": 0, "end": 11, **phone},
    ]
    masked(tmp_path, f"a\n\nb{PHONE}\r\n".encode(), ".txt", spans=True)
    assert json.loads((tmp_path / "out.txt.spans.jsonl").read_text()) == {"line": 3, "start": 1, "end": 12, **phone}


def test_text_is_masked_line_by_line_and_ends_as_it_did(tmp_path: Path) -> None:
    content = f"请打{PHONE}\r\n\n  {OTHER}\n电话1391234\n5678"
    out = masked(tmp_path, content.encode(), ".txt").decode()
    assert out == content.replace(PHONE, MASK).replace(OTHER, MASK)
    with pytest.raises(DataError, match=r"in.txt:1: found no room in BIG5 .* take --set placeholders=en"):
        masked(tmp_path, f"請打{PHONE}".encode("big5"), ".txt", encoding="big5")
    english: dict[str, Any] = {"placeholders": "en", "recognisers": ()}
    out = masked(tmp_path, f"請打{PHONE}".encode("big5"), ".txt", encoding="big5", **english).decode("big5")
    assert out == "請打[PHONE]"


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".tsv", ".txt"])
@pytest.mark.parametrize("content", [b"", b"\n", b"\xef\xbb\xbf"])
def test_nothing_in_nothing_out(tmp_path: Path, ending: str, content: bytes) -> None:
    assert masked(tmp_path, content, ending) == content


def parquet() -> pa.Table:
    """Return a table with texts in every place that a column has for them."""
    person = pa.struct([("note", pa.string()), ("n", pa.int8())])
    columns = {
        "id": pa.array([1, 2, 3], pa.int16()),
        "text": pa.array([f"请打{PHONE}", None, "无"], pa.large_string()),
        "title": pa.array([OTHER, OTHER, "a"]).dictionary_encode(),
        "tags": pa.array([[PHONE, None], None, []], pa.list_(pa.string())),
        "person": pa.array([{"note": PHONE, "n": 1}, None, {"note": None, "n": None}], person),
        "at": pa.array([1, None, 3], pa.timestamp("ns", "Asia/Shanghai")),
        "phone": pa.array([PHONE, PHONE, None]),
    }
    return pa.table(columns).replace_schema_metadata({"pandas": "{}", "made": "by hand"})


def test_parquet_keeps_schema_compression_and_row_groups(tmp_path: Path) -> None:
    table = parquet()
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(table, source, compression={"text": "zstd", "id": "gzip", "title": "none"}, row_group_size=2)
    fields = ("text", "title", "tags", "person.note")
    done = anonymise(AnonymiseCommand(source=str(source), target=str(target), field=fields, spans=True))
    assert (done.texts, done.changed, dict(done.spans)) == (7, 5, {"phone": 5})
    before, after = pq.ParquetFile(source), pq.ParquetFile(target)
    assert after.schema_arrow.equals(before.schema_arrow, check_metadata=True)
    groups = [[file.metadata.row_group(at) for at in range(2)] for file in (before, after)]
    assert [
        [(group.num_rows, group.column(1).compression, group.column(0).compression) for group in each]
        for each in groups
    ] == [[(2, "ZSTD", "GZIP"), (1, "ZSTD", "GZIP")]] * 2
    new = after.read()
    for name in ("id", "at", "phone"):
        assert new[name].equals(table[name])
    assert new["text"].to_pylist() == [f"请打{MASK}", None, "无"]
    assert new["title"].to_pylist() == [MASK, MASK, "a"]
    assert new["tags"].to_pylist() == [[MASK, None], None, []]
    assert new["person"].to_pylist() == [{"note": MASK, "n": 1}, None, {"note": None, "n": None}]
    told = [json.loads(line) for line in Path(f"{target}.spans.jsonl").read_text().splitlines()]
    assert [(row["row"], row["field"]) for row in told] == [
        (1, "text"),
        (1, "title"),
        (2, "title"),
        (1, "tags.0"),
        (1, "person.note"),
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (("id",), "found int16 as 'id', expected text or lists of it"),
        (("person",), "as 'person', expected text"),
        (("person.x",), "found the columns id, text, title, tags, person, at, phone, .*, expected person.x"),
    ],
)
def test_a_parquet_column_that_holds_no_text(tmp_path: Path, fields: tuple[str, ...], said: str) -> None:
    pq.write_table(parquet(), tmp_path / "in.parquet")
    with pytest.raises(DataError, match=said):
        masked(tmp_path, (tmp_path / "in.parquet").read_bytes(), ".parquet", field=fields)


def test_a_damaged_parquet_file_and_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found no sound Parquet file"):
        masked(tmp_path, b"PAR1", ".parquet")
    pq.write_table(parquet().slice(0, 0), tmp_path / "in.parquet")
    out = masked(tmp_path, (tmp_path / "in.parquet").read_bytes(), ".parquet")
    assert pq.read_table(io.BytesIO(out)).num_rows == 0
    bad = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    pq.write_table(pa.table({"text": bad}), tmp_path / "in.parquet")
    with pytest.raises(DataError, match="row 1 or behind it: found bytes that are no UTF-8"):
        masked(tmp_path, (tmp_path / "in.parquet").read_bytes(), ".parquet")


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv", "text", "parquet"])
def test_standard_input_and_output(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "parquet":
        pq.write_table(parquet(), tmp_path / "in")
    else:
        head = {"jsonl": '{{"text":"{}"}}\n', "csv": "text\n{}\n", "tsv": "text\n{}\n", "text": "{}\n"}[kind]
        (tmp_path / "in").write_text(head.format(PHONE))
    words = ["anonymise", "-", "-", "--format", kind, *PHONES]
    with (tmp_path / "in").open("rb") as stream:
        if kind == "parquet":  # through real pipes
            command = [sys.executable, "-m", "curate", *words]
            process = subprocess.run(command, stdin=stream, capture_output=True, check=False)
            code, said = process.returncode, process.stderr.decode()
            text = pq.read_table(io.BytesIO(process.stdout))["text"][0].as_py()
        else:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
            done = curate(tmp_path, *words)
            code, said, text = done.returncode, done.stderr, done.stdout
    assert (code, said.count("\n"), text.count(MASK)) == (0, 1, 1)
    assert "1 of them changed; spans: phone 1" in said or kind == "parquet"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["in.txt", "in.txt"], "is the input too"),
        (["in.txt", "link.txt", "--force"], "is the input too"),
        (["in.txt", "there.txt"], "write over it with --force"),
        (["in.txt", "/dev/null", "--force"], "is no plain file"),
        (["in.txt", "no/out.txt"], "no such folder"),
        (["no.txt", "out.txt"], "no such file"),
        (["in.txt", "out.csv"], "found the ending of csv, expected text"),
        (["-", "-"], "standard input: its format is not known; name one with --format"),
        (["in.xz", "out.xz"], "is packed; unpack it"),
        (["in.gz", "out.jsonl.gz"], "found a gzip archive that is damaged"),
        (["in.parquet.gz", "out.parquet"], "found a packed parquet file"),
        (["in.txt", "-", "--spans"], "expected a file, beside which they are written"),
        (["in.txt", "out.txt", "--recognisers", "mobil"], "did you mean 'mobile'"),
        (["in.txt", "out.txt", "--words", "no.txt"], "no.txt cannot be read"),
        (["in.txt", "out.txt", "--config", "bad.yaml"], "bad.yaml: mdoe: unknown key; did you mean 'mode'"),
        (["in.txt", "out.txt", "--format", "xml"], "'xml' is not one of"),
        (["in.txt", "out.txt", "--set", "encoding=latin1"], "encoding: expected"),
        (["in.txt", "out.txt", "--on-error", "skip"], "is not one of 'stop', 'drop'"),
    ],
)
def test_what_cannot_be_begun(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "in.txt").write_text(PHONE)
    for name in ("in.xz", "in.gz", "in.parquet.gz"):
        (tmp_path / name).write_text(PHONE)
    (tmp_path / "there.txt").write_text("kept")
    (tmp_path / "link.txt").symlink_to("in.txt")
    (tmp_path / "bad.yaml").write_text("mdoe: tag\n")
    done = curate(tmp_path, "anonymise", *words)
    assert done.returncode == 2
    assert said in sentences(done.stderr)
    assert (tmp_path / "there.txt").read_text() == "kept"
    assert (tmp_path / "in.txt").read_text() == PHONE
    assert not (tmp_path / "home").exists()  # no key is drawn that nobody needs


def test_modes_lists_and_settings(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(f"{PHONE} 张三丰 A-17 x@y.com +86 {PHONE}\n")
    (tmp_path / "staff.txt").write_text("张三丰\n")
    (tmp_path / "own.yaml").write_text("patterns: {ward: {pattern: 'A-\\d+', kind: ward}}\nwithout: [email]\n")
    said = curate(
        tmp_path, "anonymise", "in.txt", "-", "--words", "staff.txt", "--config", "own.yaml", "--allow-residual"
    )
    assert said.stdout == "[PHONE] [private] [ward] x@y.com [PHONE]\n"
    assert said.stderr == (
        "line 1, 21-28: account\n1 texts, 1 of them changed; spans: phone 2, private 1, ward 1; "
        "1 places still look like personal data\n"
    )
    assert curate(tmp_path, "anonymise", "in.txt", "-", "--mode", "tag", "--set", "placeholders=en").stdout.startswith(
        "[PHONE＊＊"
    )
    first, *_, last = curate(tmp_path, "anonymise", "in.txt", "-", "--mode", "pseudonym").stdout.split()
    assert first == last != PHONE
    assert (
        curate(tmp_path, "anonymise", "in.txt", "-", "--recognisers", "email", "--allow-residual").stdout.count(PHONE)
        == 2
    )


def test_a_name_that_two_lists_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("words: {words: {words: [a]}}\n")
    with pytest.raises(ConfigError, match="is the name that --words has"):
        AnonymiseCommand(
            source="-", target="-", config=tmp_path / "own.yaml", words_file=tmp_path / "staff.txt"
        ).masking()


def many(path: Path, rows: int) -> None:
    """Write rows of JSONL, every hundredth with a number."""
    filler = "糖尿病患者可以吃水果吗，应该注意什么。" * 100
    with path.open("w", encoding="utf-8") as stream:
        for row in range(rows):
            stream.write(f'{{"_id":{row},"text":"{filler}{PHONE if row % 100 == 0 else ""}"}}\n')


def test_all_cores_give_what_one_gives_in_bounded_memory(tmp_path: Path) -> None:
    many(tmp_path / "in.jsonl", 12_000)
    size = (tmp_path / "in.jsonl").stat().st_size
    assert size > 4 * HEAD
    code = "import resource, sys; from curate.cli.main import main\ntry: main()\n"
    code += "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    sizes = []
    for name, words in (("one", [*PHONES, "--set", "processes=1"]), ("all", [*PHONES, "--set", "processes=2"])):
        command = [sys.executable, "-c", code, "anonymise", "in.jsonl", f"{name}.jsonl", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        said, peak = done.stderr.splitlines()
        assert said == "12,000 texts, 120 of them changed; spans: phone 120"
        sizes.append(int(peak))
    many(tmp_path / "small.jsonl", 10)
    command = [sys.executable, "-c", code, "anonymise", "small.jsonl", "tiny.jsonl", *PHONES]
    least = int(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr.split()[-1])
    assert max(sizes) * 1024 - least * 1024 < size
    one, both = (tmp_path / f"{name}.jsonl" for name in ("one", "all"))
    assert one.read_bytes() == both.read_bytes()
    assert one.read_text().replace(MASK, PHONE) == (tmp_path / "in.jsonl").read_text()


def test_ctrl_c_leaves_nothing_but_a_sentence(tmp_path: Path) -> None:
    many(tmp_path / "in.jsonl", 40_000)
    command = [sys.executable, "-m", "curate", "anonymise", "in.jsonl", "out.jsonl", *PHONES, "--set", "processes=2"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size for path in tmp_path.glob(".out.jsonl.*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # what a terminal does: everybody gets it
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "curate: stopped; nothing was written\n")
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == ["in.jsonl"]


def test_a_closed_pipe_is_one_sentence(tmp_path: Path) -> None:
    many(tmp_path / "in.jsonl", 1_000)
    command = [sys.executable, "-m", "curate", "anonymise", "in.jsonl", "-", *PHONES]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    process.stdout.read(10)
    process.stdout.close()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said.decode() == "curate: the reader of the output closed it; it is not whole\n"


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    many(tmp_path / "in.jsonl", 500)
    command = [sys.executable, "-m", "curate", "anonymise", "in.jsonl", "out.jsonl", *PHONES]

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, preexec_fn=bounded, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "error: out.jsonl: no space left on the disk; free some, or write elsewhere\n",
    )
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == ["in.jsonl"]


def test_every_recogniser_is_listed_with_its_kind(tmp_path: Path) -> None:
    rows = listing()
    assert [row.recogniser for row in rows] == RECOGNISERS.names()
    assert {row.recogniser: row.kind for row in rows}["mobile"] == "phone"
    assert all(row.finds.endswith(".") for row in rows)
    assert all(row.kind != "-" for row in rows), "give pii/examples.yaml a text for it"
    assert machine.data(curate(tmp_path, "recognisers", "--json").stdout) == [row.to_json() for row in rows]


def test_the_order_is_checked_before_a_file_is_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        AnonymiseCommand(source=__file__, target=str(tmp_path / "no" / "out.txt"), format="text")()


# what is left, and rows with spans of their own


LEFT = f'{{"text":"打{PHONE}"}}\n{{"text":"a"}}\n{{"title":"{PHONE}，加QQ 123456吧","text":"姓名：王五。"}}\n'


def test_what_is_left_is_listed_and_withheld(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(LEFT)
    for out in ("out.jsonl", "-"):
        said = curate(tmp_path, "anonymise", "in.jsonl", out, "--spans", *PHONES)
        assert said.returncode == 1
        assert said.stdout == ""
        assert "line 3, text, 3-5: name\nline 3, title, 16-22: account\n" in said.stderr  # offsets in the raw text
        assert "was not written, for 2 places still look like personal data" in said.stderr
        assert "123456" not in said.stderr
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["in.jsonl"]
    shown = curate(tmp_path, "anonymise", "in.jsonl", "-", "--context", *PHONES)
    assert "account  [PHONE]，加QQ »123456«吧" in shown.stderr.replace("[电话]", "[PHONE]")
    done = curate(tmp_path, "anonymise", "in.jsonl", "out.jsonl", "--allow-residual", *PHONES)
    assert done.returncode == 0, done.stderr
    assert "2 places still look like personal data" in done.stderr
    assert (tmp_path / "out.jsonl").read_text() == LEFT.replace(PHONE, MASK)
    assert curate(tmp_path, "anonymise", "in.jsonl", "all.jsonl").returncode == 0


def test_a_long_list_of_what_is_left_is_cut(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,text\n" + "1,加QQ 123456吧\n" * 1_200)
    said = curate(tmp_path, "anonymise", "in.csv", "out.csv", *PHONES)
    assert said.stderr.count(": account\n") == 1_000
    assert "and 200 places more" in said.stderr
    assert "1,200 places still look like personal data" in said.stderr


def test_rows_that_have_spans_of_their_own_keep_them(tmp_path: Path) -> None:
    rows = [{"text": f"打{PHONE}", "spans": [[1, 2]]}, {"text": f"打{PHONE}"}, {"text": "a", "spans": "x", "n": 1}]
    content = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "in.jsonl").write_text(content)
    said = curate(tmp_path, "anonymise", "in.jsonl", "out.jsonl", "--spans", *PHONES)
    assert said.returncode == 0, said.stderr
    assert "2 rows had a key `spans`, so theirs is `pii_spans`" in said.stderr
    out = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    phone = {"field": "text", "start": 1, "end": 12, "label": "phone", "recogniser": "mobile"}
    assert out == [
        {"text": f"打{MASK}", "spans": [[1, 2]], "pii_spans": [phone]},
        {"text": f"打{MASK}", "spans": [phone]},
        {"text": "a", "spans": "x", "n": 1, "pii_spans": []},
    ]
    named = curate(tmp_path, "anonymise", "in.jsonl", "-", "--spans", "--set", "spans_key=found", *PHONES)
    assert [sorted(json.loads(line)) for line in named.stdout.splitlines()][1] == ["found", "text"]
    (tmp_path / "both.jsonl").write_text('{"text":"a","spans":1,"pii_spans":2}\n')
    refused = curate(tmp_path, "anonymise", "both.jsonl", "-", "--spans")
    assert refused.returncode == 2
    assert "name it with --set spans_key=KEY" in refused.stderr


@pytest.mark.parametrize("words", [(), ("--set", "encoding=utf-8")])
def test_line_ends_of_an_old_macintosh_are_named(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "in.csv").write_bytes(b"id,text\rq1,13800138000\r")
    done = curate(tmp_path, "anonymise", "in.csv", "out.csv", *words)
    assert (done.returncode, done.stderr.count("carriage returns alone")) == (2, 1), done.stderr
    assert not (tmp_path / "out.csv").exists()


# escapes, documents, packed files, and columns of any name


@pytest.mark.parametrize(
    ("source", "new"),
    [
        (f'"a\\/b {PHONE} \\u0041\\n"', '"a\\/b [\\u7535\\u8bdd] \\u0041\\n"'),
        (f'"病\\/{PHONE}\\t\\u75c5"', '"病\\/[电话]\\t\\u75c5"'),
        (f'"\\ud83d\\ude00\\ud83d{PHONE}\\"😀\\\\{OTHER}\\\\"', '"\\ud83d\\ude00\\ud83d[电话]\\"😀\\\\[电话]\\\\"'),
        ('"' + "".join(f"\\u{ord(digit):04x}" for digit in PHONE) + '\\/"', '"[\\u7535\\u8bdd]\\/"'),
    ],
)
def test_all_but_the_spans_keeps_its_escapes(tmp_path: Path, source: str, new: str) -> None:
    line = '{"a" :"\\/", "text": %s}\n'
    assert masked(tmp_path, (line % source).encode(), ".jsonl").decode() == line % new


DOCUMENT = f"""
[
  {{"_id": 1, "text": "请打{PHONE}\\/" , "n": 1e5}} ,

  {{"text": ["a", "{OTHER}"],
    "title": null}}
]
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
@pytest.mark.parametrize(
    "content", [DOCUMENT, "[]", "[\n]\n", f'{{\n "text": "{PHONE}"}}\n', f'[{{"text":"{PHONE}"}},{{"text":"无"}}]']
)
def test_a_json_document_keeps_what_is_between_its_texts(tmp_path: Path, content: str, encoding: str) -> None:
    new = content.replace(PHONE, MASK).replace(OTHER, MASK).encode(encoding)
    assert masked(tmp_path, content.encode(encoding), ".json", encoding=encoding.removesuffix("-sig")) == new


def test_a_long_document_is_read_part_by_part(tmp_path: Path) -> None:
    rows = [{"text": f"糖尿病{PHONE if row % 7 == 0 else ''}😀" * 5, "n": row} for row in range(5_000)]
    for indent in (None, 1):
        content = json.dumps(rows, ensure_ascii=False, indent=indent)
        assert masked(tmp_path, content.encode(), ".json").decode() == content.replace(PHONE, MASK)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f'[{{"text": "a"}}, {{"tekst": "{PHONE}"}}]', r"in.json:2: found no 'text', expected 'text' in every row"),
        (f'[{{"text": "a"}}, "{PHONE}"]', "in.json:2: found text, expected one JSON object"),
        (f'[{{"text": "{PHONE}"}}', "a list without an end"),
        (f'[{{"text": "{PHONE}"}}] x', "text after the end"),
        (f'[{{"text": "{PHONE}", "text": "b"}}]', "found a key twice"),
    ],
)
def test_a_damaged_document_is_refused_whole(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        masked(tmp_path, content.encode(), ".json", on_error="drop")


@pytest.mark.parametrize("packing", [".gz", ".zst", ".bz2"])
def test_a_packed_file_is_packed_again(tmp_path: Path, packing: str) -> None:
    content = f'{{"text":"{PHONE}"}}\n'.encode()
    with pa.CompressedOutputStream(str(tmp_path / "raw"), COMPRESSIONS[packing]) as stream:
        stream.write(content)
    out = masked(tmp_path, (tmp_path / "raw").read_bytes(), f".jsonl{packing}")
    assert pa.CompressedInputStream(pa.BufferReader(out), COMPRESSIONS[packing]).read() == content.replace(
        PHONE.encode(), MASK.encode()
    )


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow_keeps_schema_and_batches(tmp_path: Path, new: Any) -> None:
    table = parquet().drop_columns("title")
    sink = io.BytesIO()
    with new(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=2):
            writer.write_batch(batch)
    out = io.BytesIO(masked(tmp_path, sink.getvalue(), ".arrow", field=("text", "tags", "person.note")))
    reader = pa.ipc.open_stream(out) if new is pa.ipc.new_stream else pa.ipc.open_file(out)
    after = reader.read_all()
    assert after.schema.equals(table.schema, check_metadata=True)
    assert [len(batch) for batch in after.to_batches()] == [2, 1]
    assert after["text"].to_pylist() == [f"请打{MASK}", None, "无"]
    assert after["tags"].to_pylist() == [[MASK, None], None, []]
    assert after["phone"].to_pylist() == [PHONE, PHONE, None]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("in.csv", "id,问题,Answer,电话\n1,{0},b {0},{1}\n"),
        ("in.csv", "sep=;\nid;问题;Answer;电话\n1;{0};b {0};{1}\n"),
        ("in.jsonl", '{{"问题":"{0}","Answer":"b {0}","电话":"{1}"}}\n'),
        ("in.json", '[{{"问题":"{0}",\n"Answer":"b {0}","电话":"{1}"}}]\n'),
    ],
)
def test_columns_named_like_texts_are_taken_and_said(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content.format(PHONE, OTHER))
    done = curate(tmp_path, "anonymise", name, f"out{name}", *PHONES, "--allow-residual")
    assert (done.returncode, done.stderr.count("no field text or title; masking 问题, Answer")) == (0, 1), done.stderr
    assert (tmp_path / f"out{name}").read_text() == content.format(MASK, OTHER)


def test_a_title_alone_is_not_taken_for_the_text(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found no 'text', expected 'text' in every row"):
        masked(tmp_path, f'{{"name":"{PHONE}","tekst":"{PHONE}"}}\n'.encode(), ".jsonl")


def test_rows_of_a_document_are_said_by_number(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('[{"text":"a"},\n\n{"text":"加QQ 123456吧"}]')
    done = curate(tmp_path, "anonymise", "in.json", "out.json", *PHONES)
    assert "row 2, text, 4-10: account" in done.stderr


def test_a_table_keeps_its_blank_rows_and_equal_names(tmp_path: Path) -> None:
    content = f'\n , \nid,text,,\r\n\r\n1,"{PHONE}""x",,\n,,,\n2,无,,{OTHER}\n\n\n'
    assert masked(tmp_path, content.encode(), ".csv").decode() == content.replace(PHONE, MASK)


@pytest.mark.parametrize(
    ("name", "content", "option"),
    [
        ("in.jsonl", b'{"text":"' + b"a" * 200 + b'"}\n', "max_record=100"),
        ("in.json", b'[{"text":"' + b"a" * 200 + b'"}]\n', "max_record=100"),
        ("in.csv", b'text\n"' + b"a\n" * 100 + b'"\n', "max_record=100"),
        ("in.csv", b"text,b,c\n", "max_columns=2"),
        ("in.csv", b"text\na\nb\n", "max_rows=1"),
        ("in.txt", b"a\nb\n", "max_rows=1"),
        ("in.txt.gz", gzip.compress((b"a" * (1 << 20) + b"\n") * 80, 1), "max_ratio=100"),
    ],
)
def test_a_bound_names_the_setting_that_lifts_it(tmp_path: Path, name: str, content: bytes, option: str) -> None:
    (tmp_path / name).write_bytes(content)
    done = curate(tmp_path, "anonymise", name, f"out-{name}", *PHONES, "--set", option)
    assert done.returncode == 2
    assert f"lift the bound with --set {option.partition('=')[0]}=NUMBER" in done.stderr
    assert not (tmp_path / f"out-{name}").exists()


@given(
    lines=st.lists(st.text(st.sampled_from("甲a1,;|\t\"'\\ {}[]:\r\x85\u2028")), max_size=6),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "gb18030"]),
    end=st.sampled_from(["\n", "\r\n", "\n\n"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_text_with_nothing_to_mask_is_what_it_was(tmp_path: Path, lines: list[str], encoding: str, end: str) -> None:
    mark = codecs.BOM_UTF16_BE if encoding == "utf-16-be" else b""
    named = "utf-16" if mark else encoding.removesuffix("-sig")
    texts = "".join(line.rstrip("\r") + end for line in lines)
    rows = "".join(json.dumps({"text": line}, ensure_ascii=False) + end for line in lines)
    document = json.dumps([{"text": line} for line in lines], indent=len(lines))
    table = io.StringIO(newline="")
    csv.writer(table, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(
        [("text", "id"), *((line, "1") for line in lines)]
    )
    for ending, content in ((".txt", texts), (".jsonl", rows), (".json", document), (".csv", table.getvalue())):
        raw = mark + content.encode(encoding)
        assert masked(tmp_path, raw, ending, encoding=named) == raw


# workbooks


MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
KINDS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRINGS = [
    "<t>编号</t>",
    "<t>text</t>",
    "<t>电话</t>",
    f'<t xml:space="preserve">请打{PHONE} &amp; &lt;b&gt; </t>',
    f'<r><rPr><b/></rPr><t>富</t></r><r><t>文本{PHONE}</t></r><rPh sb="0" eb="1"><t>ふ</t></rPh>',
    f"<t>{OTHER}</t>",
    f"<t>两处{PHONE}</t>",
    "<t>没有</t>",
]
CELLS = (
    ('<c r="A1" t="s"><v>0</v></c>', '<c r="B1" t="s"><v>1</v></c>', '<c r="C1" t="s"><v>2</v></c>'),
    ('<c r="A2"><v>1</v></c>', '<c r="B2" s="0" t="s"><v>3</v></c>', '<c r="C2" t="s"><v>5</v></c>'),
    (
        '<c r="A3"><v>2</v></c>',
        '<c r="B3" t="s"><v>4</v></c>',
        f'<c r="C3" t="str"><f>B2</f><v>请打{PHONE} &amp; &lt;b&gt; </v></c>',
    ),
    ("<c r='A4'/>", '<c r="B4" t="s"><v>7</v></c>', f'<c r="C4" t="str"><f>"x"&amp;C2</f><v>x{OTHER}</v></c>'),
    ('<c r="B5" t="str"><f>"打"&amp;C2</f>', f"<v>打{OTHER}</v></c>", '<c r="C5" t="b"><v>1</v></c>'),
    ('<c r="B6"><f>1+1</f><v>2</v></c>', '<c r="C6" t="str"><f>"a"</f><v>a</v></c>'),
    ('<c r="B7"><v>1.3912345678E10</v></c>', '<c r="C7" t="s"/>'),
)
SHEET = "\n".join(f'<row r="{row}" ht="20">{"".join(cells)}</row>' for row, cells in enumerate(CELLS, start=1))
HIDDEN = f"""<row r="1"><c r="A1" t="s"><v>1</v></c></row>
<row r="9"><c r="A9" t="inlineStr"><is><t>{PHONE}</t></is></c></row>"""
SPLIT = """<row r="8"><c r="B8" t="str"><f t="shared" ref="B8:C8" si="0">1</f><v>a</v></c>
<c r="C8"><f t="shared" si="0"/><v>1</v></c></row></sheetData>"""


def workbook(path: Path, changes: Mapping[str, str] | None = None, extra: Mapping[str, str] | None = None) -> None:
    """Write a workbook as spreadsheet programs do: with shared strings, rich text, formulas and a calculation chain."""
    sheets = {"客服": SHEET, "说明": '<row r="1"><c r="A1" t="s"><v>0</v></c></row>', "旧": HIDDEN}
    kinds = {"rId8": "sharedStrings.xml", "rId9": "calcChain.xml"}
    kinds |= {f"rId{number}": f"worksheets/sheet{number}.xml" for number in range(1, len(sheets) + 1)}
    related = "".join(
        f'<Relationship Id="{key}" Type="{KINDS}/{"worksheet" if "sheet" in name else name[:-4]}" Target="{name}"/>'
        for key, name in kinds.items()
    )
    spreadsheet = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    types = "".join(
        f'<Override PartName="/xl/{name}.xml" ContentType="{spreadsheet}.{kind}+xml"/>'
        for name, kind in (("workbook", "sheet.main"), ("sharedStrings", "sharedStrings"), ("calcChain", "calcChain"))
    )
    tags = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(sheets, start=1))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="a/b"/>'
        f"{types}</Types>",
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="a" '
        f'Type="{KINDS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{KINDS}"><sheets>{tags}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{related}</Relationships>',
        "xl/sharedStrings.xml": f"<sst {MAIN}>{''.join(f'<si>{text}</si>' for text in STRINGS)}</sst>",
        "xl/calcChain.xml": f'<calcChain {MAIN}><c r="B5" i="1"/><c r="C3"/></calcChain>',
    }
    for number, rows in enumerate(sheets.values(), start=1):
        parts[f"xl/worksheets/sheet{number}.xml"] = f"<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>"
    for part, text in (changes or {}).items():
        parts[part] = text.join(parts[part].rsplit("</sheetData>", 1))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {**parts, **(extra or {})}.items():
            archive.writestr(name, text)


def parts_of(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_a_workbook_keeps_all_but_the_masked_cells(tmp_path: Path) -> None:
    workbook(tmp_path / "in.xlsx")
    done = curate(tmp_path, "anonymise", "in.xlsx", "out.xlsx", "--spans", "--allow-residual", *PHONES)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "in.xlsx: the sheet 说明 has none of these columns and stays as it is",
        "in.xlsx: not kept: formats within cells (1), formulas (2), stored results of formulas (2)",
        "7 texts, 5 of them changed; spans: phone 5",
    ]
    before, after = parts_of(tmp_path / "in.xlsx"), parts_of(tmp_path / "out.xlsx")
    assert PHONE not in "".join(after.values())
    assert set(before) - set(after) == {"xl/calcChain.xml"}
    assert "calcChain" not in "".join(after.values())
    escaped = MASK.encode("ascii", "xmlcharrefreplace").decode()
    text = '<is><t xml:space="preserve">{}</t></is>'.format
    assert after["xl/worksheets/sheet1.xml"] == (
        before["xl/worksheets/sheet1.xml"]
        .replace('s="0" t="s"><v>3</v>', f's="0" t="inlineStr">{text(f"&#35831;&#25171;{escaped} &amp; &lt;b&gt; ")}')
        .replace('t="s"><v>4</v>', f't="inlineStr">{text(f"&#23500;&#25991;&#26412;{escaped}")}')
        .replace(f"<v>请打{PHONE} &amp; &lt;b&gt; </v>", "")
        .replace(f"<v>x{OTHER}</v>", "")
        .replace(f't="str"><f>"打"&amp;C2</f><v>打{OTHER}</v>', f't="inlineStr">{text(f"&#25171;{escaped}")}')
        .replace("<f>1+1</f>", "")
        .replace('r="B7"><v>1.3912345678E10</v>', f'r="B7" t="inlineStr">{text(escaped)}')
    )
    assert after["xl/worksheets/sheet2.xml"] == before["xl/worksheets/sheet2.xml"]
    assert f'r="A9" t="inlineStr">{text(escaped)}' in after["xl/worksheets/sheet3.xml"]
    assert after["xl/sharedStrings.xml"].count("<si/>") == 3
    assert [cell.value for cell in load_workbook(tmp_path / "out.xlsx")["客服"]["B"]] == [
        "text", f"请打{MASK} & <b> ", f"富文本{MASK}", "没有", f"打{MASK}", 2, MASK,
    ]  # fmt: skip
    spans = [json.loads(line) for line in (tmp_path / "out.xlsx.spans.jsonl").read_text().splitlines()]
    assert [(span["row"], span["field"]) for span in spans] == [
        (2, "客服!text"), (3, "客服!text"), (5, "客服!text"), (7, "客服!text"), (9, "旧!text"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("xl/comments1.xml", f"<comments><t>见{PHONE}</t></comments>"),
        ("xl/worksheets/_rels/sheet1.xml.rels", f'<Relationships><Relationship Target="tel:{PHONE}"/></Relationships>'),
        ("xl/drawings/vmlDrawing1.vml", f"<xml><br>{PHONE}</xml>"),
        ("xl/pivotCache/pivotCacheRecords1.xml", f'<r><s v="富文本{PHONE}"/></r>'),
        ("xl/worksheets/sheet1.xml", f'</sheetData><autoFilter><filter val="富文本{PHONE}"/></autoFilter>'),
    ],
)
def test_a_workbook_that_repeats_a_masked_text_is_refused(tmp_path: Path, part: str, text: str) -> None:
    in_sheet = text.startswith("</sheetData>")
    workbook(tmp_path / "in.xlsx", {part: text} if in_sheet else None, None if in_sheet else {part: text})
    done = curate(tmp_path, "anonymise", "in.xlsx", "out.xlsx", "--allow-residual", *PHONES)
    assert (done.returncode, f"found the text of a masked cell in {part} too" in sentences(done.stderr)) == (2, True), (
        done.stderr
    )
    assert PHONE not in done.stderr
    assert not (tmp_path / "out.xlsx").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "found a formula that fills columns of texts and others"),
        (("--field", "tekst"), "expected tekst; name the column of the texts with --field"),
        (("--set", "max_ratio=1"), "lift the bound with --set max_ratio=NUMBER"),
    ],
)
def test_a_workbook_that_is_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    filler = {"xl/media/a.bin": "0" * (1 << 26)} if "max_ratio=1" in words else None
    workbook(tmp_path / "in.xlsx", {} if words else {"xl/worksheets/sheet1.xml": SPLIT}, filler)
    done = curate(tmp_path, "anonymise", "in.xlsx", "out.xlsx", *words)
    assert (done.returncode, said in sentences(done.stderr)) == (2, True), done.stderr
    (tmp_path / "bad.xlsx").write_bytes(b"PK")
    assert "got no sound .xlsx file" in curate(tmp_path, "anonymise", "bad.xlsx", "out.xlsx").stderr


def test_a_workbook_of_a_library_and_columns_named_like_texts(tmp_path: Path) -> None:
    book = Workbook()
    book.active.append(["编号", "问题", "电话"])
    book.active.append([1, f"请打{PHONE}\r\n_x000D_ ", OTHER])
    book.active.append([2, int(PHONE), int(OTHER)])
    book.active["B2"].font = Font(bold=True)
    book.properties.creator, book.properties.title = PHONE, "表"
    book.save(tmp_path / "in.xlsx")
    done = curate(tmp_path, "anonymise", "in.xlsx", "out.xlsx", "--recognisers", "mobile")
    assert done.returncode == 0, done.stderr
    assert "in.xlsx: Sheet: no field text or title; masking 问题 (others: --field NAME)" in done.stderr
    pages = [load_workbook(tmp_path / name).active for name in ("in.xlsx", "out.xlsx")]
    before, after = ([str(cell.value) for row in page.iter_rows() for cell in row] for page in pages)
    assert after == [cell.replace(PHONE, MASK) for cell in before]
    assert pages[1].parent.properties.title == "表"
    assert PHONE not in "".join(parts_of(tmp_path / "out.xlsx").values())
    assert pages[1]["B2"].font.bold
