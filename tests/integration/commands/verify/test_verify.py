"""`curate verify`: every label of an export is derived again from the ledger, whoever wrote the manifest."""

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.verify.verification import Verified, verify
from curate.core.errors import DataError
from curate.ledger import Ledger
from curate.system.files import sha256
from curate.tables.exporters import manifest
from tests.support.runs import complaint, curate, ran, tiny

FORMATS = ("beir", "mteb", "trec")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the small pipeline, whose verdicts are of every kind but incomplete."""
    folder = tmp_path_factory.mktemp("verify")
    tiny(folder)
    ran(folder, "run", "tiny.yaml")
    return folder


@pytest.fixture
def export(made: Path, tmp_path: Path) -> Path:
    """Return a copy of the export, and of the ledger beside it."""
    shutil.copytree(made / "runs" / "tiny" / "export", tmp_path / "export")
    shutil.copytree(made / "home", tmp_path / "home")
    return tmp_path / "export"


def verified(export: Path) -> dict[str, Verified]:
    with Ledger(export.parent / "home" / "ledger.db") as ledger:
        return {each.folder.name: each for each in verify(export, ledger)}


def alone(export: Path, name: str) -> Verified:
    with Ledger(export.parent / "home" / "ledger.db") as ledger:
        [found] = verify(export / name, ledger)
    return found


def signed_again(folder: Path) -> None:
    """Write the manifest anew, as whoever wants to deceive would."""
    body = manifest.read(folder)
    manifest.write(folder, {name: body[name] for name in body if name not in ("files", "version")})


def said(export: Path, name: str) -> str:
    """Return the differences of one format, all in one, with the files' own hashes forged first."""
    signed_again(export / name)
    return "\n".join(alone(export, name).differences)


def parquet(folder: Path, config: str) -> Path:
    [path] = folder.glob(f"{config}*.parquet")
    return path


def change(path: Path, made: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """Put another table in the place of one."""
    made(pl.read_parquet(path)).write_parquet(path)


def edit(path: Path, made: Callable[[list[str]], list[str]]) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("".join(f"{line}\n" for line in made(lines)), encoding="utf-8")


def test_an_export_verifies_in_every_format(export: Path) -> None:
    found = verified(export)
    assert {name: each.differences for name, each in found.items()} == {name: [] for name in FORMATS}
    assert {each.pairs for each in found.values()} == {40}
    assert found["mteb"].labels > found["trec"].labels > 0


def test_it_verifies_where_it_was_moved_to_and_one_format_alone(export: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "copy"
    shutil.copytree(export / "mteb", elsewhere)
    with Ledger(tmp_path / "home" / "ledger.db") as ledger:
        [found] = verify(elsewhere, ledger)
    assert found.differences == []


@pytest.mark.parametrize("name", FORMATS)
def test_the_manifest_names_every_file_with_its_digest(export: Path, name: str) -> None:
    folder = export / name
    files = manifest.read(folder)["files"]
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert set(files) == there - {"MANIFEST.json"}
    assert {sha256(folder / path) for path in files} == set(files.values())


@pytest.mark.parametrize("name", FORMATS)
def test_a_changed_a_missing_and_a_foreign_file_are_noticed(export: Path, name: str) -> None:
    (export / name / "notes.txt").write_text("mine")
    first, second = list(manifest.read(export / name)["files"])[:2]
    (export / name / first).unlink()
    with (export / name / second).open("ab") as stream:
        stream.write(b" ")
    found = verified(export)[name].differences
    assert f"{first}: the manifest names it and it is missing" in found
    assert f"{second}: it is not the file that was exported, for its SHA-256 is another" in found
    assert "notes.txt: it is no part of the export" in found


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_no_part_of_a_format_is_refused_though_the_manifest_lists_it(export: Path, name: str) -> None:
    for path in ("conftest.py", "retrieval/evil.py", "sts/pairs-x.parquet", "qrels/train.tsv"):
        (export / name / path).parent.mkdir(exist_ok=True)
        (export / name / path).write_text("")
    (export / name / "notes-0123456789abcdef.parquet").symlink_to(export / name / "verdicts.parquet")
    (export / name / ".hidden.py").write_text("")
    found = said(export, name)
    assert found.count(f"the format {name} has no such file") == 5
    assert "notes-0123456789abcdef.parquet: it is a link" in found
    assert ".hidden.py: it is no part of the export" in found
    body = manifest.read(export / name)
    (export / name / manifest.NAME).write_text(json.dumps({**body, "files": {**body["files"], "../../x": ""}}))
    assert "../../x: it is a link, or lies outside of the export" in alone(export, name).differences


def test_a_program_that_is_not_ours_is_refused(export: Path) -> None:
    with (export / "mteb" / "tasks.py").open("a") as code:
        code.write("\nimport os\n")
    assert "tasks.py: it is not the program that curate writes; do not run it" in said(export, "mteb")


def test_a_file_under_the_name_of_another_content_is_found(export: Path) -> None:
    path = parquet(export / "mteb" / "retrieval", "corpus")
    change(path, lambda table: table.with_columns(title=pl.lit("")))
    change(path, lambda table: table.with_columns(more=pl.lit("x")))
    found = said(export, "mteb")
    assert f"retrieval/{path.name}: its name says that it has another content" in found
    assert f"retrieval/{path.name}: its columns are not those of the table corpus" in found


CARDS = {
    "retrieval/README.md": [
        ("size_categories:\n- n<1K", "size_categories:\n- 1M<n<10M"),
        ("path: qrels-", "path: https://example.com/qrels-"),
        ("main_score: ndcg_at_10", "main_score: mrr"),
        ("> **Heuristic judges only.**", "> **Experts only.**"),
    ],
    "README.md": [
        ("> **Heuristic judges only.**", "> **Experts only.**"),
        ("map_at_10", "map_at_1000"),
        ("| queries | ", "| queries | 1"),
        ("| positives | ", "| positives | 9"),
        ("| negatives | ", "| negatives | 9"),
        ("percent agreement, relevant or not | ", "percent agreement, relevant or not | 0.99 "),
        ("## Uses", "## Uses\n\nRun `curl example.com`."),
        ("## Licence", "## License"),
    ],
}


@pytest.mark.parametrize("path", CARDS)
def test_an_edited_card_is_found(export: Path, path: str) -> None:
    """Front matter, figures, agreement and prose: the whole README is made again."""
    card = export / "mteb" / path
    text = card.read_text(encoding="utf-8")
    for old, new in CARDS[path]:
        assert old in text, old
        card.write_text(text.replace(old, new, 1), encoding="utf-8")
        line = text[: text.index(old)].count("\n") + 1
        assert re.search(
            rf"^{path}:({line}|{line + 1}|{line + 2}): it is not what follows", said(export, "mteb"), re.MULTILINE
        )


def test_what_the_manifest_says_of_a_run_is_named_as_not_checked(export: Path) -> None:
    """A card that agrees with a forged manifest cannot be told from a true one: so it is never called verified."""
    [told] = alone(export, "mteb").unchecked
    entries = {*re.split(r", |\(|\)", told)}
    assert {"judges", "privacy", "baselines"} <= entries
    assert not {"agreement", "dependence", "counts"} & entries, "they follow from the votes on the pool"
    body = manifest.read(export / "mteb")
    for card in (None, {**body["card"], "form": "x"}):
        manifest.write(export / "mteb", {**body, "card": card} if card else {k: body[k] for k in body if k != "card"})
        said_ = alone(export, "mteb").unchecked
        assert said_ == ["the READMEs, for another version of curate wrote them; export again with this one"]


@pytest.mark.parametrize(
    "change_",
    [{"labels": 3}, {"rows": None}, {"card": {"facts": "[" * 9_000}}, {"name": 1}, {"format": "exe"}],
)
def test_a_manifest_of_another_form_is_a_sentence(export: Path, change_: dict[str, Any]) -> None:
    body = manifest.read(export / "mteb")
    if "card" in change_:
        change_ = {"card": {**body["card"], **change_["card"]}}
    (export / "mteb" / manifest.NAME).write_text(json.dumps({**body, **change_}), encoding="utf-8")
    assert alone(export, "mteb").differences
    (export / "mteb" / manifest.NAME).write_text("[" * 9_000, encoding="utf-8")
    with pytest.raises(DataError, match="not valid JSON"):
        alone(export, "mteb")


def test_a_flipped_label_is_found(export: Path) -> None:
    flip = pl.when(pl.int_range(pl.len()) == 0).then(1 - pl.col("score")).otherwise("score").alias("score")
    change(parquet(export / "mteb" / "retrieval", "qrels"), lambda table: table.with_columns(flip))
    change(parquet(export / "mteb" / "reranking", "qrels"), lambda table: table.with_columns(flip))
    edit(export / "trec" / "qrels.txt", lambda lines: [lines[0][:-1] + str(1 - int(lines[0][-1])), *lines[1:]])
    edit(export / "beir" / "qrels" / "test.tsv", lambda lines: [lines[0], lines[1][:-1] + "0", *lines[2:]])
    mteb = said(export, "mteb")
    assert mteb.count("1 rows say otherwise than the ledger") == 2
    assert "retrieval/qrels" in mteb
    assert "reranking/qrels" in mteb
    assert "qrels.txt: 1 rows say otherwise than the ledger, for example 'q0 d" in said(export, "trec")
    assert "qrels/test.tsv: 1 rows say otherwise than the ledger" in said(export, "beir")


@pytest.mark.parametrize("table", ["retrieval/qrels", "retrieval/grades", "reranking/qrels", "reranking/top_ranked"])
def test_a_removed_row_is_found(export: Path, table: str) -> None:
    folder, _, config = table.partition("/")
    change(parquet(export / "mteb" / folder, config), lambda rows: rows[1:])
    assert f"{table}" in said(export, "mteb")
    assert "1 rows are missing" in said(export, "mteb")


def test_candidates_that_were_all_removed_are_found(export: Path) -> None:
    change(parquet(export / "mteb" / "reranking", "qrels"), lambda rows: rows.clear())
    assert "12 rows are missing" in said(export, "mteb")
    shutil.rmtree(export / "mteb" / "reranking")
    assert "reranking: 12 candidates should be there, and the whole folder is missing" in said(export, "mteb")


def test_a_removed_row_of_text_files_is_found(export: Path) -> None:
    edit(export / "trec" / "qrels.txt", lambda lines: lines[:-1])
    edit(export / "beir" / "qrels" / "test.tsv", lambda lines: lines[:-1])
    assert "qrels.txt: 1 rows are missing" in said(export, "trec")
    assert "qrels/test.tsv: 1 rows are missing" in said(export, "beir")


QUERIES = {"beir": "queries.jsonl", "trec": "topics.jsonl", "mteb": "queries"}
TEXTS = {"beir": "corpus.jsonl", "trec": "docs.jsonl", "mteb": "corpus"}
Lines = Callable[[list[str]], list[str]]
EDITS: dict[str, tuple[dict[str, str], pl.Expr, Lines, tuple[str, ...]]] = {
    "text": (
        TEXTS,
        pl.when(pl.col("id") == "d00").then(pl.col("text") + "。").otherwise("text").alias("text"),
        lambda lines: [lines[0].replace("咖啡", "可乐", 1), *lines[1:]],
        ("the ledger holds no rating by lexical of", " d00'"),
    ),
    "query": (
        QUERIES,
        pl.col("text") + "？",
        lambda lines: [line.replace("咖啡", "茶") for line in lines],
        ("the ledger holds no rating by lexical of 40 pairs",),
    ),
    "swapped ids": (
        TEXTS,
        pl.col("id").replace({"d00": "d01", "d01": "d00"}),
        lambda lines: [lines[0].replace('"d00"', '"d01"'), lines[1].replace('"d01"', '"d00"'), *lines[2:]],
        ("the ledger",),
    ),
}


@pytest.mark.parametrize("what", EDITS)
@pytest.mark.parametrize("name", FORMATS)
def test_an_edit_of_texts_is_found(export: Path, name: str, what: str) -> None:
    file, column, lines, found = EDITS[what]
    if name == "mteb":
        change(parquet(export / "mteb" / "retrieval", file[name]), lambda table: table.with_columns(column))
    else:
        edit(export / name / file[name], lines)
    differences = said(export, name)
    assert all(each in differences for each in found)


def test_swapped_ids_in_the_qrels_are_found(export: Path) -> None:
    swap = pl.col("query-id").replace({"q0": "q1", "q1": "q0"})
    change(parquet(export / "mteb" / "retrieval", "qrels"), lambda table: table.with_columns(swap))
    assert "rows should not be there" in said(export, "mteb")
    assert "rows are missing" in said(export, "mteb")


@pytest.mark.parametrize("name", FORMATS)
def test_a_changed_grade_in_the_ledger_is_found(export: Path, name: str) -> None:
    with closing(sqlite3.connect(export.parent / "home" / "ledger.db")) as database, database:
        [rating] = database.execute("SELECT rating_id FROM ratings WHERE grade = 'S' ORDER BY 1 LIMIT 1").fetchone()
        database.execute("UPDATE ratings SET grade = 'D' WHERE rating_id = ?", (rating,))
    found = "\n".join(verified(export)[name].differences)
    assert "verdicts.parquet: 1 votes of" in found
    assert "S here, D there" in found


@pytest.mark.parametrize("name", FORMATS)
def test_a_ledger_without_the_ratings_verifies_nothing(export: Path, tmp_path: Path, name: str) -> None:
    with Ledger(tmp_path / "other.db") as ledger:
        found = {each.folder.name: each.differences for each in verify(export, ledger)}
    assert "the ledger holds no rating by lexical of 40 pairs" in "\n".join(found[name])


def test_a_label_that_pretends_to_be_an_experts_is_found(export: Path) -> None:
    people = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("expert-over-panel")).otherwise("policy")
    change(export / "beir" / "verdicts.parquet", lambda table: table.with_columns(policy=people))
    assert "1 labels are said to be experts', the manifest says 0" in said(export, "beir")


def test_the_command_says_what_differs_and_exits_with_1(made: Path, export: Path) -> None:
    done = curate(made, "verify", "runs/tiny/export")
    assert done.returncode == 3, done.stderr
    assert done.stdout.count(": verified\n") == 2
    assert "mteb: verified, but for what was not checked\n  not checked: what the READMEs say of the run" in done.stdout
    for name in ("beir", "trec"):
        ran(made, "verify", f"runs/tiny/export/{name}")
    edit(export / "trec" / "qrels.txt", lambda lines: lines[1:])
    done = curate(made, "verify", str(export / "trec"), "--ledger", str(made / "home" / "ledger.db"))
    assert done.returncode == 1
    assert "qrels.txt: it is not the file that was exported" in done.stdout
    assert "qrels.txt: 1 rows are missing" in done.stdout


def test_no_ledger_and_no_export_are_said(made: Path, tmp_path: Path) -> None:
    done = complaint(made, "verify", "runs/tiny/export", "--ledger", "nowhere.db")
    assert "nowhere.db: no ledger" in done
    assert not (made / "nowhere.db").exists()
    with Ledger(tmp_path / "new.db") as ledger, pytest.raises(DataError, match="give a folder that `curate export`"):
        verify(tmp_path, ledger)


def replayed(folder: Path, *settings: str) -> Path:
    """Run the small pipeline with three replayed judges that disagree; return its export."""
    tiny(folder)
    for number, judge in enumerate(("one", "two", "three")):
        rows = [
            f"q{n}\td{m:02}\t{'SABCD'[(n * 7 + m * (number + 3)) % 5] if n else 'D'}"
            for n in range(5)
            for m in range(20)
        ]
        (folder / f"{judge}.tsv").write_text("\n".join(["query_id\tdoc_id\tgrade", *rows, ""]), encoding="utf-8")
    judges = ", ".join(f"{name}: {{kind: replay, path: {name}.tsv}}" for name in ("one", "two", "three"))
    words = [f"judges={{{judges}}}", "judge.models=[one, two, three]", *settings]
    ran(folder, "run", "tiny.yaml", *[word for setting in words for word in ("--set", setting)])
    return folder / "runs" / "tiny" / "export"


RECORDED = tuple(word for name in ("one", "two", "three") for word in ("--recorded", f"{name}={name}.tsv"))


@pytest.mark.parametrize("policy", ["unanimous", "unanimous-grade", "majority", "dawid-skene"])
def test_labels_of_every_policy_are_derived_again(tmp_path: Path, policy: str) -> None:
    export = replayed(tmp_path, f"consensus.policy={policy}", "consensus.corpus=refined")
    done = curate(tmp_path, "verify", "runs/tiny/export", *RECORDED)
    assert done.returncode == 3, done.stdout
    outside = manifest.read(export / "mteb")["labels"]["outside"]
    assert bool(outside) == (policy == "dawid-skene"), "a query without a positive, or a document that was left out"


def test_a_judge_that_replays_needs_its_file(tmp_path: Path) -> None:
    replayed(tmp_path)
    done = curate(tmp_path, "verify", "runs/tiny/export")
    assert done.returncode == 1
    assert "one replayed recorded grades, which no ledger holds; give its file: --recorded one=FILE" in done.stdout
    with (tmp_path / "two.tsv").open("a", encoding="utf-8") as stream:
        stream.write("q9\td99\tS\n")
    done = curate(tmp_path, "verify", "runs/tiny/export", *RECORDED)
    assert "two.tsv: not the file that two replayed" in done.stdout
    assert curate(tmp_path, "verify", "runs/tiny/export", "--recorded", "one").returncode == 2


def test_ids_with_prefixes_are_verified(tmp_path: Path) -> None:
    tiny(tmp_path)
    queries = tmp_path / "data" / "queries.jsonl"
    rows = [json.loads(line) for line in queries.read_text(encoding="utf-8").splitlines()]
    rows[0]["_id"] = "d00"
    queries.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    qrels = tmp_path / "data" / "qrels" / "test.tsv"
    qrels.write_text(qrels.read_text().replace("q0\t", "d00\t"))
    ran(tmp_path, "run", "tiny.yaml")
    assert manifest.read(tmp_path / "runs" / "tiny" / "export" / "mteb")["labels"]["prefixed"]
    done = curate(tmp_path, "verify", "runs/tiny/export")
    assert done.returncode == 3, done.stdout


def test_a_text_that_judges_saw_cut_is_verified(tmp_path: Path) -> None:
    tiny(tmp_path)
    corpus = tmp_path / "data" / "corpus.jsonl"
    rows = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row["text"] += "这是一句话。" * 30
    corpus.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    ran(tmp_path, "run", "tiny.yaml", "--set", "judge.passage_tokens=50")
    done = curate(tmp_path, "verify", "runs/tiny/export")
    assert done.returncode == 3, done.stdout


@pytest.mark.parametrize("draw", ["by_grade", "by_rank"])
def test_candidates_of_every_draw_are_verified(tmp_path: Path, draw: str) -> None:
    tiny(tmp_path)
    ran(tmp_path, "run", "tiny.yaml", "--set", f"export.rerank.draw={draw}")
    done = curate(tmp_path, "verify", "runs/tiny/export")
    assert done.returncode == 3, done.stdout


@pytest.mark.parametrize("name", FORMATS)
def test_files_in_each_others_places_are_sentences_without_texts(export: Path, name: str) -> None:
    folder = export / name
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != manifest.NAME]
    held = {path: path.read_bytes() for path in files}
    pairs = [pair for pair in combinations(files, 2) if held[pair[0]] != held[pair[1]]]
    for one, other in pairs[:: 5 if name == "mteb" else 1]:  # of 132 pairs, 43 were tracebacks
        one.write_bytes(held[other])
        other.write_bytes(held[one])
        differences = verified(export)[name].differences
        assert any(one.name in each for each in differences)
        assert not any("高血压" in each or "咖啡" in each for each in differences)
        one.write_bytes(held[one])
        other.write_bytes(held[other])


@pytest.mark.parametrize("text", ["[]", "{}", '{"version": 1}', '{"version": 1, "files": [], "format": "beir"}', "\0"])
def test_a_manifest_that_is_none_is_a_sentence(export: Path, text: str) -> None:
    (export / "beir" / manifest.NAME).write_text(text)
    with pytest.raises(DataError, match=r"beir/MANIFEST\.json: "):
        verified(export)
