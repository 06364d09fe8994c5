"""`curate erase`: a withdrawn record leaves run, ledger, samples and caches, and does not come back.

The replies of the judges quote query and passages, as chatty models do, so that the ledger holds the texts.
"""

import json
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.erase import erasing
from curate.commands.erase.erasing import RecordsTaken
from curate.core.errors import UserError
from tests.support.forging import PIPELINE, PRICE, ledger_bytes
from tests.support.runs import Done, curate, ran
from tests.support.small import embedding_server
from tests.vendor import Call, Fault, vendor
from tests.vendor.faults import reworded

DOC, QUERY = "d05", "q2"
DOC_PART, QUERY_PART = "青花罐子里泡着七味草根", "只剩半瓶绿豆糖浆"
OTHER_DOC_PART = "竹篮底下压着五张膏药"
"""Parts of texts that stand nowhere else, and hold no personal data."""
TOPICS = ("高血压", "胃溃疡", "小儿发热", "偏头痛", "痛风")
ANSWERS = (
    "{}患者能喝咖啡吗？可以少量喝。",
    "{}的病因很多，咖啡不是其中之一。",
    "得了{}以后要少喝咖啡。",
    "{}怎样预防？",
)
WITHDRAWN = ("withdrawn", "撤回")


def _quoting(call: Call) -> Fault:
    quoted = "\n".join(f"> {text}" for text in (call.query, *call.passages.values()))
    return reworded(lambda text: f"You asked:\n{quoted}\n{text}")


def _grade(query: str, text: str) -> str:
    if query[:2] in text:
        return "S" if "咖啡" in text else "C"
    return "D"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with a finished run, its index of pages and two samples; the models answer all the while."""
    folder = tmp_path_factory.mktemp("erase")
    (folder / "data" / "qrels").mkdir(parents=True)
    texts = [answer.format(topic) for topic in TOPICS for answer in ANSWERS]
    texts[5] += f"{DOC_PART}，喝了三天。"
    texts[9] += f"{OTHER_DOC_PART}，贴了三天。"
    queries = [f"{topic}患者能喝咖啡吗" for topic in TOPICS]
    queries[2] += f"，家里{QUERY_PART}"
    rows = {
        "queries": [{"_id": f"q{n}", "text": text} for n, text in enumerate(queries)],
        "corpus": [{"_id": f"d{n:02}", "title": "", "text": text} for n, text in enumerate(texts)],
    }
    for name, each in rows.items():
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in each)
        (folder / "data" / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    qrels = "".join(f"q{n}\td{4 * n:02}\t1\n" for n in range(len(TOPICS)))
    (folder / "data" / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{qrels}")
    with ExitStack() as servers:
        encoder = servers.enter_context(embedding_server())
        pipeline = PIPELINE.replace("retrievers: [words, pairs]", "retrievers: [words, near]").replace(
            "  pairs: {kind: bm25, tokens: bigrams}\n", "  near: {kind: dense, encoder: letters}\n"
        )
        pipeline += f"encoders:\n  letters: {{kind: api, base_url: '{encoder.url}', model: m, dim: 64, local: true}}\n"
        pipeline += "judges:\n"
        for name, family in (("one", "alpha"), ("two", "beta")):
            url = servers.enter_context(vendor(_grade, _quoting)).url
            pipeline += f"  {name}: {{kind: openai, model: m-{name}, family: {family}, base_url: '{url}', {PRICE}}}\n"
        pipeline += "judge: {models: [one, two], controls: 0}\n"
        (folder / "small.yaml").write_text(pipeline, encoding="utf-8")
        ran(folder, "run", "small.yaml", "--yes")
        ran(folder, "view", "runs/small", "--pair", "q1", DOC)
        ran(folder, "check", "mask", "--size", "20")
        ran(folder, "review", "export", "--size", "20", "--assessors", "anna")
        yield folder


def _content(path: Path) -> str:
    """Return all that can be read in a file of any kind."""
    if path.suffix == ".parquet":
        return json.dumps(pl.read_parquet(path).to_dicts(), ensure_ascii=False, default=str)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            return "".join(packed.read(name).decode("utf-8", "ignore") for name in packed.namelist())
    return path.read_bytes().decode("utf-8", "ignore")


def holders(folder: Path, part: str) -> list[str]:
    """Return the files of runs and home in which a part of a text stands, also with its characters escaped."""
    forms = (part, json.dumps(part)[1:-1], json.dumps(part)[1:-1].upper().replace("\\U", "\\u"))
    paths = [path for place in ("runs", "home", ".curate") for path in sorted((folder / place).rglob("*"))]
    files = [path for path in paths if path.is_file()]
    return [path.relative_to(folder).as_posix() for path in files if any(each in _content(path) for each in forms)]


def _unpublished(names: list[str]) -> list[str]:
    return [name for name in names if "/export/" not in name]


def _data(done: Done) -> dict[str, Any]:
    data = json.loads(done.stdout)["data"]
    assert isinstance(data, dict), done.stdout
    return data


@pytest.fixture(scope="module")
def erased(made: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Return a copy of the folder in which a document and a query were erased, and what the command said in JSON."""
    work = tmp_path_factory.mktemp("erased") / "w"
    shutil.copytree(made, work)
    done = curate(work, "erase", "--doc", DOC, "--query", QUERY, "--run", "runs/small", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    return work, _data(done)


@pytest.fixture(scope="module")
def again(erased: tuple[Path, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """Return a copy of that folder in which the pipeline has run again, and what the command said."""
    work = tmp_path_factory.mktemp("again") / "w"
    shutil.copytree(erased[0], work)
    done = curate(work, "run", "small.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    return work, done


def test_without_yes_nothing_goes_and_all_that_would_is_listed(made: Path, tmp_path: Path) -> None:
    """A user can rely on it that `curate erase` alone only shows what it would take away."""
    shutil.copytree(made, tmp_path / "w")
    work = tmp_path / "w"
    before = {part: holders(work, part) for part in (DOC_PART, QUERY_PART)}
    assert any(name.endswith("ledger.db") for name in _unpublished(before[DOC_PART])), "else nothing is to be erased"
    said = _data(curate(work, "erase", "--doc", DOC, "--query", QUERY, "--run", "runs/small", "--json"))
    assert said["erased"] is False
    assert (said["queries"], said["documents"]) == ([QUERY], [DOC])
    assert said["removed"]
    assert {part: holders(work, part) for part in (DOC_PART, QUERY_PART)} == before
    text = curate(work, "erase", "--doc", DOC, "--run", "runs/small")
    assert DOC in text.stdout + text.stderr
    assert {part: holders(work, part) for part in (DOC_PART, QUERY_PART)} == before


def test_what_was_taken_away_is_told_by_place(erased: tuple[Path, dict[str, Any]]) -> None:
    """A user can rely on it that JSON says that it was done, of which ids, and in how many rows of which place."""
    _, said = erased
    assert said["erased"] is True
    assert (said["queries"], said["documents"]) == ([QUERY], [DOC])
    assert all(isinstance(each["place"], str) and each["rows"] >= 0 for each in said["removed"])
    assert sum(each["rows"] for each in said["removed"]) > 0


@pytest.mark.parametrize("place", ["tables", "ledger", "view", "samples", "caches", "pages"])
def test_no_file_holds_the_text_any_more(made: Path, erased: tuple[Path, dict[str, Any]], place: str) -> None:
    """A user can rely on it that the text of an erased record stands in no file of run, ledger and caches."""
    work, _ = erased

    def there(names: list[str]) -> list[str]:
        return [name for name in _unpublished(names) if _place(name) == place]

    assert there([*holders(work, DOC_PART), *holders(work, QUERY_PART)]) == []
    if place in ("tables", "ledger", "samples"):
        assert there(holders(made, DOC_PART)), "else nothing was erased"


def _place(name: str) -> str:
    """Return the sort of a file of a run folder or of the home."""
    if "ledger.db" in name:
        return "ledger"
    if "/.view/" in name:
        return "view"
    if name.startswith("home/"):
        return "caches"
    if "/checks/" in name or "/reviews/" in name or "/review/" in name:
        return "samples"
    return "pages" if name.endswith(".html") else "tables"


def test_the_ledger_forgets_replies_that_quote_and_keeps_the_others(
    made: Path, erased: tuple[Path, dict[str, Any]]
) -> None:
    """A user can rely on it that no byte of a quoted text is left in the ledger, and that other ratings stay."""
    work, _ = erased
    held = ledger_bytes(work / "home").decode("utf-8", "ignore")
    assert DOC_PART not in held
    assert QUERY_PART not in held
    with closing(sqlite3.connect(work / "home" / "ledger.db")) as database:
        [(left,)] = database.execute("SELECT count(*) FROM ratings").fetchall()
    with closing(sqlite3.connect(made / "home" / "ledger.db")) as database:
        [(before,)] = database.execute("SELECT count(*) FROM ratings").fetchall()
    assert 0 < left <= before


def test_records_that_were_not_named_stay(made: Path, erased: tuple[Path, dict[str, Any]]) -> None:
    """A user can rely on it that nothing else goes: the text of another document stands where it stood."""
    work, _ = erased
    tables = [
        name for name in holders(made, OTHER_DOC_PART) if name.endswith("corpus.parquet") and "/export/" not in name
    ]
    assert tables
    assert {*tables} <= {*holders(work, OTHER_DOC_PART)}


def test_published_files_that_still_hold_it_are_named(erased: tuple[Path, dict[str, Any]]) -> None:
    """A user can rely on a list of what was published with the text, for it has to be taken back there."""
    work, said = erased
    named = [(work / path).resolve() for path in said["published"]]
    for part in (DOC_PART, QUERY_PART):
        for name in holders(work, part):
            path = (work / name).resolve()
            assert any(path == each or each in path.parents for each in named), name


def test_the_next_run_does_not_bring_it_back_and_says_so(again: tuple[Path, Done]) -> None:
    """A user can rely on it that a source that still holds the record fills no file with it again."""
    work, done = again
    assert DOC_PART in (work / "data" / "corpus.jsonl").read_text("utf-8")
    for part in (DOC_PART, QUERY_PART):
        assert holders(work, part) == []
    said = (done.stdout + done.stderr).lower()
    assert any(word in said for word in (*WITHDRAWN, "erased")), said


@pytest.mark.parametrize("where", ["status", "report", "card"])
def test_figures_count_it_as_withdrawn(again: tuple[Path, Done], where: str) -> None:
    """A reader can rely on it that figures say how many records were withdrawn."""
    work, _ = again
    if where == "status":
        done = curate(work, "status", "--run", "runs/small")
        told = done.stdout + done.stderr
    else:
        path = {"report": "report.html", "card": "export/mteb/README.md"}[where]
        told = (work / "runs" / "small" / path).read_text("utf-8")
    assert any(word in told.lower() for word in WITHDRAWN)


def test_erasing_twice_is_harmless(erased: tuple[Path, dict[str, Any]]) -> None:
    """A user can rely on it that a second call succeeds, and changes nothing."""
    work, _ = erased
    done = curate(work, "erase", "--doc", DOC, "--query", QUERY, "--run", "runs/small", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert _unpublished(holders(work, DOC_PART)) == []
    assert OTHER_DOC_PART in "".join(map(_content, sorted((work / "runs" / "small" / "mask").glob("corpus.parquet"))))


@pytest.mark.parametrize(("option", "typed", "meant"), [("--doc", "d0.5", "d05"), ("--query", "q-2", "q2")])
def test_an_unknown_id_is_refused_with_a_suggestion(made: Path, option: str, typed: str, meant: str) -> None:
    """A user can rely on it that a mistyped id erases nothing, and that the message names one that there is."""
    before = holders(made, DOC_PART)
    done = curate(made, "erase", option, typed, "--run", "runs/small", "--yes")
    assert done.returncode == 2
    assert typed in done.stderr
    assert meant in done.stderr.replace(typed, "")
    assert holders(made, DOC_PART) == before


def test_several_ids_may_be_named(made: Path, tmp_path: Path) -> None:
    """A user can rely on it that each option may be given more than once."""
    shutil.copytree(made, tmp_path / "w")
    words = ("--doc", DOC, "--doc", "d09", "--query", QUERY, "--query", "q3")
    done = curate(tmp_path / "w", "erase", *words, "--run", "runs/small", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    said = _data(done)
    assert (sorted(said["queries"]), sorted(said["documents"])) == ([QUERY, "q3"], [DOC, "d09"])
    for part in (DOC_PART, OTHER_DOC_PART, QUERY_PART):
        assert _unpublished(holders(tmp_path / "w", part)) == []


def test_an_interrupted_erasing_goes_on_when_it_is_repeated(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user can rely on it that a command that ended before its last step erases what is left when it is repeated."""

    def interrupted(*_: Any) -> None:
        raise UserError("interrupted")

    work = tmp_path / "work"
    shutil.copytree(made, work, symlinks=True)
    words = ["erase", "--doc", DOC, "--run", "runs/small", "--yes"]
    with monkeypatch.context() as patched:
        patched.setattr(erasing, "_filter_kept", interrupted)
        assert curate(work, *words).returncode == 2
    assert any("/mask/" in name for name in holders(work, DOC_PART))
    ran(work, *words)
    assert _unpublished(holders(work, DOC_PART)) == []


def test_checks_are_kept_where_an_id_is_only_a_number(tmp_path: Path) -> None:
    """A user can rely on it that a record with the id 7 does not take every file with a 7 along."""
    record = RecordsTaken(frozenset(), frozenset({"7"}), frozenset(), frozenset({"一段很长的原文，不会出现。"}))
    for name, content, holds in (
        ("a.json", '{"kappa": 7, "rows": [7]}', False),
        ("b.json", '{"doc": "7"}', True),
        ("c.tsv", "q1\t0\t7\t1\n", True),
        ("d.tsv", "q7\t0\t17\t1\n", False),
        ("e.html", "<p>7 of 9</p>", False),
        ("f.html", "<p>一段很长的原文，不会出现。</p>", True),
    ):
        (tmp_path / name).write_text(content, "utf-8")
        assert record.in_file(tmp_path / name) == holds, name
