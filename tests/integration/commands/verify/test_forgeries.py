"""Coherent forgeries: without the digest all are found that touch a judged pair, an id or the card; with it, all."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.ledger import Ledger
from curate.system.files import sha256
from curate.tables.exporters import manifest
from curate.tables.exporters.reading import own_kinds
from curate.tables.kinds import kind
from tests.integration.commands.sts.test_sts import WORDS, rows_of
from tests.support.every_kind import every_kind
from tests.support.forged_exports import Forgery
from tests.support.runs import curate, ran, tiny

FORMATS = ("beir", "mteb", "trec")
TWIN = "judges.twin={kind: lexical, thresholds: {S: 0.901, A: 0.7, B: 0.4, C: 0.2}}"
"""A judge that gives the grades of the judge `strict`: a warning of near-identical judges follows."""
SETTINGS = (TWIN, "judge.models=[lexical, strict, twin]", "export.license=cc-by-4.0", "consensus.policy=majority")


def words(*settings: str) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the small pipeline with two judges that are one."""
    folder = tmp_path_factory.mktemp("forged")
    tiny(folder)
    ran(folder, "run", "tiny.yaml", *words(*SETTINGS))
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """Return a folder with a copy of the run's export and ledger."""
    shutil.copytree(made / "runs" / "tiny" / "export", tmp_path / "export")
    shutil.copytree(made / "home", tmp_path / "home")
    return tmp_path


def digests(made: Path) -> dict[str, str]:
    """Return format -> digest of its manifest, as `curate export` prints it."""
    lines = ran(made, "export", "--run", "runs/tiny").stdout.splitlines()
    return dict(line.removeprefix("digest of ").split(": ") for line in lines if line.startswith("digest of "))


def pair_taken(forgery: Forgery) -> None:
    """Take away a relevant pair, whose query keeps another."""
    relevant = forgery.verdicts.filter(pl.col("verdict") == "relevant")
    pair = relevant.filter(pl.col("query_id").is_duplicated()).head(1)
    forgery.verdicts = forgery.verdicts.join(pair, on=["query_id", "doc_id"], how="anti")


def query_taken(forgery: Forgery) -> None:
    """Take away a query with its pairs, and count it as lost."""
    forgery.queries = forgery.queries[1:]
    lost = forgery.verdicts.join(forgery.queries, on="query_id", how="anti")
    forgery.verdicts = forgery.verdicts.join(forgery.queries, on="query_id", how="semi")
    forgery.body["lost"]["queries"] += 1
    forgery.body["lost"]["pairs"] += lost.height


def document_renamed(forgery: Forgery) -> None:
    forgery.renamed("doc_id", {"d00": "d99"})


def query_renamed(forgery: Forgery) -> None:
    forgery.renamed("query_id", {"q0": "q9"})


def ids_exchanged(forgery: Forgery) -> None:
    forgery.renamed("doc_id", {"d00": "d01", "d01": "d00"})


def kappa(forgery: Forgery) -> None:
    forgery.body["dependence"]["together"][0]["kappa"] = 0.946
    if "agreement" in forgery.facts:
        forgery.facts["agreement"]["Fleiss' kappa, grades"] = "0.946 (0.93–0.96)"


def warning_removed(forgery: Forgery) -> None:
    assert any("twin" in line for line in forgery.body["dependence"]["warnings"]), "else nothing is taken out"
    forgery.body["dependence"] |= {"warnings": [], "clones": []}
    if "dependence" in forgery.facts:
        forgery.facts["dependence"]["warnings"] = []


def judge_renamed(forgery: Forgery) -> None:
    def other(content: Any) -> Any:
        return json.loads(json.dumps(content).replace('"strict', '"gpt-4o'))

    forgery.body, forgery.facts = other(forgery.body), other(forgery.facts)
    rows = forgery.verdicts.to_dicts()
    for row in rows:
        row["votes"] = sorted(other(row["votes"]), key=lambda vote: vote["judge"])
    forgery.verdicts = pl.DataFrame(rows, forgery.verdicts.schema)


def licence_changed(forgery: Forgery) -> None:
    forgery.facts["license"] = "mit"


FORGERIES: dict[Callable[[Forgery], None], str] = {
    pair_taken: "pool: 1 pairs of exported queries were judged and are missing, for example of 'q",
    query_taken: "pool: 1 queries have a relevant document by the ledger and are missing",
    document_renamed: "ids of judged pairs, or their texts, are not those that `curate export` recorded",
    query_renamed: "ids of queries are not those that `curate export` recorded",
    ids_exchanged: "ids of judged pairs, or their texts, are not those that `curate export` recorded",
    kappa: "dependence: the ledger's votes give another one",
    warning_removed: "dependence: the ledger's votes give another one",
    judge_renamed: "panel: others than those of the pool record in the ledger",
    licence_changed: "license: not what `curate export` recorded in the ledger",
}
"""Forgery -> what is said of it without the digest."""


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_coherent_forgery_is_found_without_and_with_the_digest(
    made: Path, place: Path, name: str, forge: Callable[[Forgery], None]
) -> None:
    forgery = Forgery.of(place / "export" / name)
    forge(forgery)
    forgery.write()
    done = curate(place, "verify", f"export/{name}")
    assert done.returncode == 1, done.stdout
    assert FORGERIES[forge] in done.stdout
    assert "SHA-256" not in done.stdout, "every file fits every other"
    assert "README.md:" not in done.stdout, "they say what the manifest says"
    done = curate(place, "verify", f"export/{name}", "--digest", digests(made)[name])
    assert "MANIFEST.json: its digest is " in done.stdout


def test_every_number_of_the_card_that_follows_from_votes_is_computed_again(place: Path) -> None:
    forgery = Forgery.of(place / "export" / "mteb")
    kappa(forgery)
    forgery.facts["counts"]["relevant"] += 1
    forgery.write()
    said = curate(place, "verify", "export/mteb").stdout
    assert "card: agreement: 1 figures are others by the ledger, for example \"Fleiss' kappa, grades\": '0.946" in said
    assert "card: counts: 1 figures are others by the ledger, for example 'relevant': 1" in said
    assert "card: agreement, card: counts, dependence: not what `curate export` recorded" in said
    [unchecked] = [line for line in said.splitlines() if "what the READMEs say" in line]
    assert not {"agreement", "counts", "dependence"} & {*unchecked.replace(")", ",").replace("(", ", ").split(", ")}


@pytest.mark.parametrize("name", FORMATS)
def test_an_export_put_together_again_is_the_same(made: Path, place: Path, name: str) -> None:
    """Else a forgery might be found for how it was made."""
    Forgery.of(place / "export" / name).write()
    done = curate(place, "verify", f"export/{name}", "--digest", digests(made)[name])
    assert done.returncode == (3 if name == "mteb" else 0), done.stdout
    assert sha256(place / "export" / name / manifest.NAME) == digests(made)[name]


def test_digests_of_all_formats_are_printed_and_checked(made: Path) -> None:
    answer = json.loads(ran(made, "export", "--run", "runs/tiny", "--json").stdout)["data"]
    by_format = {row["format"]: row["digest"] for row in answer}
    assert by_format == digests(made)
    assert {*by_format} == {*FORMATS}
    given = [word for digest in by_format.values() for word in ("--digest", digest.upper())]
    assert curate(made, "verify", "runs/tiny/export", *given).returncode == 3
    done = curate(made, "verify", "runs/tiny/export", *given[2:])
    assert done.returncode == 1
    assert f"MANIFEST.json: its digest is {by_format['beir']}, and none of those given" in done.stdout
    done = curate(made, "verify", "runs/tiny/export/trec", "--digest", by_format["trec"], "--digest", "0" * 64)
    assert done.returncode == 1
    assert f"no manifest here has the digest {'0' * 64}" in done.stdout


def forged_only_with_digest(forgery: Forgery) -> None:
    """Change a text that nobody judged: no pair, no id and no number says so."""
    judged = {*forgery.verdicts["doc_id"]}
    at = next(at for at, document in enumerate(forgery.documents) if document.doc_id not in judged)
    forgery.documents[at] = type(forgery.documents[at])(forgery.documents[at].doc_id, "", "没有人评过的文本。")


@pytest.mark.parametrize("name", FORMATS)
def test_a_text_that_nobody_judged_is_found_with_the_digest_alone(tmp_path: Path, name: str) -> None:
    tiny(tmp_path)
    ran(tmp_path, "run", "tiny.yaml", *words("pool.size=2", "pool.depth=2"))
    export = tmp_path / "runs" / "tiny" / "export"
    digest = sha256(export / name / manifest.NAME)
    forgery = Forgery.of(export / name)
    forged_only_with_digest(forgery)
    forgery.write()
    assert curate(tmp_path, "verify", str(export / name)).returncode == (3 if name == "mteb" else 0)
    done = curate(tmp_path, "verify", str(export / name), "--digest", digest)
    assert done.returncode == 1
    assert "MANIFEST.json: its digest is" in done.stdout


@pytest.mark.parametrize("name", FORMATS)
def test_new_ids_are_checked_by_the_export_record(tmp_path: Path, name: str) -> None:
    tiny(tmp_path)
    ran(tmp_path, "run", "tiny.yaml", *words("export.ids=new"))
    export = tmp_path / "runs" / "tiny" / "export"
    assert curate(tmp_path, "verify", str(export / name)).returncode == (3 if name == "mteb" else 0)
    forgery = Forgery.of(export / name)
    forgery.renamed("doc_id", {"d000001": "d000002", "d000002": "d000001"})
    forgery.write()
    done = curate(tmp_path, "verify", str(export / name))
    assert done.returncode == 1
    assert "ids of judged pairs" in done.stdout


# Labels as given: kinds that no panel confirmed.

SIZES = "min_texts: 2, min_groups: 2, near: 1.0, test: 0.2"


@pytest.fixture(scope="module")
def unconfirmed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the small pipeline with kinds that nobody was asked about."""
    folder = tmp_path_factory.mktemp("given")
    tiny(folder)
    lines = (folder / "data" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [f"{row['_id']},{'coffee' if '咖啡' in row['text'] else 'other'}\n" for row in map(json.loads, lines)]
    (folder / "labels.csv").write_text(f"id,label\n{''.join(rows)}", encoding="utf-8")
    (folder / "words.tsv").write_text(rows_of(WORDS), encoding="utf-8")
    stages = "stages=[ingest, mask, diversify, pool, judge, consensus, resolve, sts, label, export]"
    sts = "sts={dictionary: words.tsv, test: 2, train: 1}"
    labels = "ingest.labels={path: labels.csv, side: corpus}"
    ran(folder, "run", "tiny.yaml", *words(stages, labels, f"label={{{SIZES}}}", sts))
    return folder


def of_kinds(change: Callable[[pl.DataFrame], pl.DataFrame], table: str) -> Callable[[Forgery], None]:
    def forge(forgery: Forgery) -> None:
        changed = change(forgery.tables[table])
        assert not changed.equals(forgery.tables[table]), "else nothing is forged"
        forgery.tables[table] = changed

    return forge


def first(column: str, content: object) -> Callable[[pl.DataFrame], pl.DataFrame]:
    is_first = pl.int_range(pl.len()) == 0
    return lambda table: table.with_columns(pl.when(is_first).then(pl.lit(content)).otherwise(column).alias(column))


def other_label(table: pl.DataFrame) -> pl.DataFrame:
    rows = table.to_dicts()
    other = next(row for row in rows if row["label"] != rows[0]["label"])
    return pl.DataFrame([{**rows[0], "label": other["label"], "label_id": other["label_id"]}, *rows[1:]], table.schema)


def texts_exchanged(table: pl.DataFrame) -> pl.DataFrame:
    rows = table.to_dicts()
    other = next(row for row in rows if row["label"] != rows[0]["label"] and row["split"] == rows[0]["split"])
    rows[0]["text"], other["text"] = other["text"], rows[0]["text"]
    return pl.DataFrame(rows, table.schema)


AS_GIVEN = {
    "a label with its name": of_kinds(other_label, "classified"),
    "a text": of_kinds(first("text", "这句话没有人问过。"), "classified"),
    "a row": of_kinds(lambda table: table[1:], "classified"),
    "texts of two rows": of_kinds(texts_exchanged, "classified"),
    "a text of sts": of_kinds(first("sentence1", "这句话没有人问过。"), "pairs"),
    "a pair of sts": of_kinds(lambda table: table[1:], "pairs"),
}


@pytest.mark.parametrize("forge", AS_GIVEN.values(), ids=AS_GIVEN)
def test_labels_as_given_are_named_and_a_forgery_of_them_is_found_with_the_digest(
    unconfirmed: Path, tmp_path: Path, forge: Callable[[Forgery], None]
) -> None:
    shutil.copytree(unconfirmed / "runs" / "tiny" / "export" / "mteb", tmp_path / "mteb")
    shutil.copytree(unconfirmed / "home", tmp_path / "home")
    digest = sha256(tmp_path / "mteb" / manifest.NAME)
    for forged in (False, True):
        if forged:
            forgery = Forgery.of(tmp_path / "mteb")
            forge(forgery)
            forgery.write()
        done = curate(tmp_path, "verify", "mteb")
        assert done.returncode == 3, done.stdout
        head = done.stdout.splitlines()[0]
        assert "labels as given, confirmed by no panel: classification, clustering, sts" in head
        assert "verified" not in done.stdout
        assert curate(tmp_path, "verify", "mteb", "--digest", digest).returncode == (1 if forged else 3)


def test_the_first_line_of_all_formats_names_labels_as_given(unconfirmed: Path) -> None:
    done = curate(unconfirmed, "verify", "runs/tiny/export")
    assert "mteb: nothing differs, but for what was not checked; labels as given" in done.stdout.splitlines()[0]
    rows = json.loads(curate(unconfirmed, "verify", "runs/tiny/export", "--json").stdout)["data"]
    as_given = {Path(row["folder"]).name: row["as_given"] for row in rows}
    assert as_given == {"beir": [], "mteb": ["classification", "clustering", "sts"], "trec": []}


def test_every_kind_says_itself_that_nobody_was_asked(tmp_path: Path) -> None:
    """So of sentence-retrieval, paraphrase and gradients too; the labels of mixes follow from their texts."""
    every_kind(tmp_path / "mteb")
    with Ledger(tmp_path / "ledger.db") as ledger:
        checks = {
            name: kind(name).verify(kind(name).read(tables), {}, ledger)
            for name, tables in own_kinds(tmp_path / "mteb").items()
        }
    assert {"sentence-retrieval", "sts", "gradient-edit", "classification"} < {*checks}
    assert {name for name, check in checks.items() if not check.as_given} == {"gradient-mix"}


# What must go on to be verified.


def odd(folder: Path) -> None:
    """Add queries without a relevant document, and as many documents that a pool is deeper than 50."""
    with (folder / "data" / "queries.jsonl").open("a", encoding="utf-8") as stream:
        for name, text in (("a1", "股票市场如何运作"), ("z1", "完全不同的天文学问题")):
            stream.write(json.dumps({"_id": name, "text": text}, ensure_ascii=False) + "\n")
    with (folder / "data" / "corpus.jsonl").open("a", encoding="utf-8") as stream:
        for number in range(60):
            row = {"_id": f"f{number:02}", "title": "", "text": f"第{number}种咖啡怎样冲泡"}
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")


def doubled(folder: Path) -> None:
    """Give every document a second id."""
    path = folder / "data" / "corpus.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows += [{**row, "_id": f"e{row['_id']}"} for row in rows]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.parametrize(
    ("prepare", "settings"),
    [
        (odd, ("consensus.corpus=refined",)),
        (odd, ("pool.size=70", "pool.depth=70", "consensus.policy=majority")),
        (odd, ("export.labels=both", "export.ids=new")),
        (doubled, ("ingest.duplicates=keep",)),
    ],
)
def test_what_is_left_out_by_rule_is_no_difference(
    tmp_path: Path, prepare: Callable[[Path], None], settings: tuple[str, ...]
) -> None:
    tiny(tmp_path)
    prepare(tmp_path)
    ran(tmp_path, "run", "tiny.yaml", *words(*settings))
    export = tmp_path / "runs" / "tiny" / "export"
    for name in FORMATS:
        done = curate(tmp_path, "verify", str(export / name))
        assert done.returncode == (3 if name == "mteb" else 0), done.stdout
    facts = json.loads(manifest.read(export / "mteb")["card"]["facts"])
    assert ("grades, top 50" in str(facts["agreement"])) == ("pool.size=70" in settings)
    if prepare is odd:
        assert manifest.read(export / "trec")["lost"]["queries"], "else no query was left out"


def test_a_ledger_that_was_copied_holds_the_records(made: Path, place: Path) -> None:
    ran(made, "ledger", "export", str(place / "copy"))
    ran(place, "ledger", "import", str(place / "copy"), CURATE_HOME=str(place / "other"))
    done = curate(place, "verify", "export", CURATE_HOME=str(place / "other"))
    assert done.returncode == 3, done.stdout
    assert done.stdout.count(": verified\n") == 2


def test_another_licence_after_judging_is_no_forgery(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "again"
    shutil.copytree(made, folder)
    ran(folder, "export", "--run", "runs/tiny", *words(*SETTINGS[:2], "export.license=mit", SETTINGS[3]))
    for name in ("beir", "trec"):
        assert manifest.read(folder / "runs" / "tiny" / "export" / name)["license"] == "mit"
        assert curate(folder, "verify", f"runs/tiny/export/{name}").returncode == 0


def test_a_pool_that_grew_is_followed_by_its_own_record(tmp_path: Path) -> None:
    tiny(tmp_path)
    ran(tmp_path, "run", "tiny.yaml", *words("pool.size=4"))
    shutil.copytree(tmp_path / "runs" / "tiny" / "export", tmp_path / "before")
    ran(tmp_path, "run", "tiny.yaml", *words("pool.size=8"))
    before, after = (
        manifest.read(folder / "trec")["pool"]["record"]
        for folder in (tmp_path / "before", tmp_path / "runs" / "tiny" / "export")
    )
    assert before != after
    for folder in ("before", "runs/tiny/export"):
        assert curate(tmp_path, "verify", f"{folder}/trec").returncode == 0


def test_a_resumed_run_writes_one_record(made: Path, place: Path) -> None:
    ledger = place / "home" / "ledger.db"
    with closing(sqlite3.connect(ledger)) as database:
        before = database.execute("SELECT count(*) FROM records WHERE follows = ''").fetchall()
    shutil.copytree(made / "runs", place / "runs")
    shutil.copytree(made / "data", place / "data")
    shutil.copy(made / "tiny.yaml", place)
    ran(place, "judge", "--run", "runs/tiny", "--force", *words(*SETTINGS))
    ran(place, "run", "tiny.yaml", *words(*SETTINGS))
    with closing(sqlite3.connect(ledger)) as database:
        assert database.execute("SELECT count(*) FROM records WHERE follows = ''").fetchall() == before == [(1,)]
    assert curate(place, "verify", "runs/tiny/export/beir").returncode == 0


def test_without_a_record_the_pool_is_not_checked(place: Path) -> None:
    """So it is with exports of the versions before, whose manifests name none."""
    for name in FORMATS:
        body = manifest.read(place / "export" / name)
        manifest.write(place / "export" / name, {key: body[key] for key in body if key not in ("files", "pool")})
    done = curate(place, "verify", "export")
    assert done.returncode == 3
    assert done.stdout.count("not checked: the pool, for the ledger holds no record") == 3


def test_a_ledger_that_lacks_the_record_is_a_difference(place: Path) -> None:
    with closing(sqlite3.connect(place / "home" / "ledger.db")) as database, database:
        database.execute("DELETE FROM records")
    done = curate(place, "verify", "export/beir")
    assert done.returncode == 1
    assert "the ledger holds no record of the pool" in done.stdout
