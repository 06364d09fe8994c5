"""`curate audit` as a user types it: offline, repaired, checked by people, by paid judges, and on real grades."""

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from curate import load_task
from curate.pipeline.stages import NAMES
from tests.support import machine
from tests.support.auditing import OPTIONS, audited, figures, labelled
from tests.support.pools import table
from tests.support.runs import complaint, curate, ran
from tests.support.steps import beir
from tests.vendor import Vendor, vendor

STAGES = ["ingest", "mask", "diversify", "pool", "judge", "consensus", "audit"]


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a TSV file."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    labelled(folder)
    done = audited(folder)
    assert done.returncode == 0, done.stderr
    assert "THE JUDGES ARE HEURISTICS" in done.stdout
    assert "no evidence about the labels" in done.stderr
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "work"))


def test_it_ends_with_the_comparison_and_is_not_done_twice(folder: Path) -> None:
    rows = machine.data(curate(folder, "status", "--json").stdout)
    assert [row["stage"] for row in rows] == STAGES
    assert {row["state"] for row in rows} == {"done"}
    again = audited(folder)
    assert again.stderr.count("up to date") == len(STAGES)
    bare = ran(folder, "audit", "--json")
    assert machine.data(bare.stdout) == figures(folder)


@pytest.mark.usefixtures("tiny_run")
def test_an_ordinary_pipeline_has_no_audit(tmp_path: Path) -> None:
    done = ran(tmp_path, "run", "tiny.yaml")
    assert "audit" not in done.stderr
    assert [row["stage"] for row in machine.data(curate(tmp_path, "status", "--json").stdout)] == list(NAMES)
    refused = complaint(tmp_path, "audit")
    assert "no run of an audit; name a folder or a task" in refused


def test_what_was_planted_is_found(folder: Path) -> None:
    compared = table(folder / "runs/audit-data", "audit", "compared")
    rows = compared.select("query_id", "doc_id", "kind", "same_as").iter_rows()
    kinds = {(query, doc): (kind, same) for query, doc, kind, same in rows}
    assert kinds["q0", "d00"] == ("confirmed", None)
    assert kinds["q0", "d20"] == ("duplicate", "d00")
    assert kinds["q5", "d00"] == ("same question", "q0")
    assert kinds["q1", "d07"] == ("false positive", None)
    assert kinds["q1", "d04"] == ("confirmed", None)
    found = figures(folder)
    assert found["unknown"] == {"labels": 1, "reasons": {"unknown document": 1}, "named": ["q2 gone"]}
    assert found["queries_without_label"] == 1


def test_means_are_those_of_the_tables(folder: Path) -> None:
    counts, found = table(folder / "runs/audit-data", "audit", "audited"), figures(folder)
    assert len(counts) == found["queries"] == 6
    for name, each in found["measures"].items():
        assert each["mean"] == pytest.approx(counts[name].mean(), abs=1e-5)
        assert each["spread"]["median"] == counts[name].median()
        assert each["low"] <= each["mean"] <= each["high"]
    means = {name: each["mean"] for name, each in found["measures"].items()}
    judged = means["original"] - means["false_positives"] - means["contested"] - means["incomplete"]
    assert means["judged_positive"] == pytest.approx(judged + means["false_negatives"], abs=1e-4)


def test_the_repaired_set_loads_and_has_no_error_left(folder: Path) -> None:
    run = folder / "runs" / "audit-data"
    patch = rows_of(run / "audit" / "patch.tsv")
    minus = [(row["query_id"], row["doc_id"], row["grades"]) for row in patch if row["sign"] == "-"]
    assert [row[:2] for row in minus] == [("q1", "d07")]
    assert all("=" in grades for *_, grades in minus)
    repaired = run / "audit" / "mteb" / "retrieval"
    assert "less those that every judge found not relevant" in (repaired.parent / "README.md").read_text("utf-8")
    again = audited(folder, source=str(repaired))
    assert again.returncode == 0, again.stderr
    found = figures(folder, "audit-retrieval")
    assert found["measures"]["false_negatives"]["total"] == found["measures"]["false_positives"]["total"] == 0
    assert set(found["patch"].values()) == {0}
    assert found["unknown"]["labels"] == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # raised inside mteb and datasets
def test_stock_mteb_loads_the_repaired_set(folder: Path) -> None:
    task = load_task(folder / "runs/audit-data/audit/mteb/retrieval")
    task.load_data()
    qrels = rows_of(folder / "runs/audit-data/audit/qrels.tsv")
    done = curate(folder, "verify", "runs/audit-data/audit")
    assert (done.returncode, "not checked: labels and texts" in done.stdout) == (3, True)
    labels = {(row["query-id"], row["corpus-id"]) for row in qrels}
    (data,) = [splits["test"] for splits in task.dataset.values()]
    assert {(query, doc) for query, docs in data["relevant_docs"].items() for doc in docs} == labels


def test_a_sample_of_queries_and_a_run_of_somebody_else(folder: Path) -> None:
    lines = [f"q{n} Q0 d{4 * n:02} 1 9 mine" for n in range(6)]
    (folder / "mine.trec").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = audited(folder, "--queries", "4", "--score", "mine.trec", "--run", "runs/some")
    assert done.returncode == 0, done.stderr
    found = figures(folder, "some")
    assert found["queries"] == 4
    assert {row["system"] for row in found["systems"]["systems"]} == {"words", "pairs", "mine"}
    assert found["systems"]["recall_depth"] == 8, "the pooled ones were asked for no more"
    assert all({"recall_at_8_old", "recall_at_8_new"} <= row.keys() for row in found["systems"]["systems"])
    (heads,) = [line.split() for line in done.stdout.splitlines() if line.startswith("system")]
    assert " ".join(heads) == ("system nDCG@10 old nDCG@10 new recall@8 old recall@8 new rank old rank new circular")
    assert table(folder / "runs/some", "pool", "rankings")["retriever"].unique().sort().to_list() == ["pairs", "words"]
    other = audited(folder, "--queries", "4", "--run", "runs/other", "--set", "ingest.sample_seed=8")
    assert other.returncode == 0, other.stderr
    taken = [table(folder / f"runs/{name}", "mask", "queries")["query_id"].to_list() for name in ("some", "other")]
    assert taken[0] != taken[1]


def test_a_plan_shows_the_widths_of_the_counts_that_an_audit_corrects(folder: Path) -> None:
    order = ("review", "export", "--of", "audit", "--size", "60", "--plan")
    text = ran(folder, *order).stdout
    assert "false negatives per query  " in text
    assert "false positives per query  " in text
    assert "recall" not in text
    data = machine.data(ran(folder, *order, "--json").stdout)
    assert all(data["audit"][name] >= 0 for name in ("false_negatives", "false_positives", "positives", "precision"))
    # the lists of eight documents leave no pair in the stratum `rest`
    assert data["audit"]["rest_answers"] is None
    assert data["notes"] == []


@pytest.mark.parametrize("target", [(), ("--target", "fp")], ids=["both", "fp"])
def test_people_correct_it(folder: Path, target: tuple[str, ...]) -> None:
    """The strata of `fp` are those of every sample before version 0.3, which is thus estimated, too."""
    order = ("--of", "audit", "--size", "60", "--assessors", "anna", "--controls", "0", *target)
    out = ran(folder, "review", "export", *order)
    design = json.loads((folder / "runs/audit-data/reviews/audit/design.json").read_text(encoding="utf-8"))
    assert {each["name"].rpartition(", ")[2] for each in design["strata"]} == {"legacy +", "legacy -"}
    assert figures(folder)["corrected"] == []
    sheet = folder / out.stdout.split()[0]
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.reader(stream))
    head = {name: at for at, name in enumerate(rows[0])}
    for row in rows[1:]:  # anna finds everything relevant that speaks of coffee and of what was asked
        asked = row[head["查询"]].removesuffix("患者能喝咖啡吗")
        row[head["等级"]] = "S" if "咖啡" in row[head["段落"]] and asked in row[head["段落"]] else "D"
    with sheet.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)
    ran(folder, "review", "import", str(sheet))
    done = ran(folder, "audit")
    assert "audit: started again, changed: files, models or answers" in done.stderr
    (corrected,) = figures(folder)["corrected"]
    drawn = sum(each["drawn"] for each in design["strata"])
    assert corrected["answered"] == drawn
    if drawn == sum(each["size"] for each in design["strata"]):  # all was read: people's own counts
        texts = dict(table(folder / "runs/audit-data", "mask", "queries").select("query_id", "text").iter_rows())
        docs = dict(table(folder / "runs/audit-data", "mask", "corpus").select("doc_id", "text").iter_rows())
        compared = table(folder / "runs/audit-data", "audit", "compared").filter(pl.col("verdict").is_not_null())
        yes = [
            not legacy
            for query, doc, legacy in compared.select("query_id", "doc_id", "legacy").iter_rows()
            if "咖啡" in docs[doc] and texts[query].removesuffix("患者能喝咖啡吗") in docs[doc]
        ]
        assert corrected["false_negatives"]["value"] == pytest.approx(sum(yes) / 6, abs=1e-4)
    report = ran(folder, "review", "report", "--json")
    assert machine.data(report.stdout)["read"] == drawn

    changed = ran(folder, "audit", "--set", "judges.strict.thresholds={S: 1.0, A: 0.95, B: 0.4, C: 0.2}")
    assert "the sample 'audit' was drawn of other verdicts" in changed.stderr
    assert figures(folder)["corrected"] == [{"sample": "audit", "outdated": True}]


def script(_query: str, passage: str) -> str:
    return "S" if "咖啡" in passage else "D"


@pytest.fixture
def server() -> Iterator[Vendor]:
    with vendor(script) as running:
        yield running


def test_paid_judges_are_planned_first_and_named_in_the_patch(tmp_path: Path, server: Vendor) -> None:
    labelled(tmp_path)
    judge = {
        "kind": "openai",
        "model": "m",
        "base_url": server.url,
        "price": {"input": 1, "output": 1, "date": "2026-01-01"},
    }
    words = ["audit", "data", "--models", "m", *OPTIONS, "--set", f"judges.m={json.dumps(judge)}"]
    plan = ran(tmp_path, *words, "--plan")
    assert "prompt_tokens" in plan.stdout
    stopped = complaint(tmp_path, *words)
    assert "--max-cost" in stopped
    assert not server.calls
    done = ran(tmp_path, *words, "--max-cost", "5")
    assert "HEURISTICS" not in done.stdout
    patch = rows_of(tmp_path / "runs/audit-data/audit/patch.tsv")
    named = {row["calls"] for row in patch if row["reason"].startswith("judged")}
    assert named
    assert all(calls.startswith("m=") for calls in named)
    ran(tmp_path, "ledger", "export", "ledger")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere/at-all"], "no such folder"),
        (["data", "--set", "diversify.enabled=true"], "diversify.enabled: false"),
        (["data", "--set", "ingest.duplicates=merge"], "set ingest.duplicates: keep"),
        (["data", "--score", "gone.trec"], "no such file"),
        (["data", "--retrievers", "nobody"], "nobody"),
        (["data", "--set", "stages=[judge, ingest]"], "in this order"),
    ],
)
def test_a_mistake_is_a_sentence(tmp_path: Path, words: list[str], said: str) -> None:
    labelled(tmp_path)
    done = complaint(tmp_path, "audit", *words, *([] if "--retrievers" in words else OPTIONS))
    assert said in done
    assert "Traceback" not in done


def test_a_set_without_labels_cannot_be_audited(tmp_path: Path) -> None:
    labelled(tmp_path)
    shutil.rmtree(tmp_path / "data" / "qrels")
    done = audited(tmp_path)
    assert done.returncode == 2
    assert "found no label above 0" in done.stderr
    sample = curate(tmp_path, "review", "export", "--of", "audit", "--size", "20")
    assert "found no legacy label" in sample.stderr


def test_judges_of_one_family_that_say_the_same_are_named_wherever_labels_stand(tmp_path: Path) -> None:
    labelled(tmp_path)
    pairs = [(f"q{query}", f"d{doc:02}") for query in range(6) for doc in range(21)]
    said = ((*pair, "SABCD"[int(pair[1][1:]) % 5], name) for name in ("cl1", "cl2") for pair in pairs)
    rows = ["query_id\tdoc_id\tgrade\tjudge\n", *("\t".join(row) + "\n" for row in said)]
    (tmp_path / "said.tsv").write_text("".join(rows), encoding="utf-8")
    twins = [
        f"--set=judges.{name}={{kind: replay, path: said.tsv, assessor: {name}, family: kin}}"
        for name in ("cl1", "cl2")
    ]
    done = ran(tmp_path, "audit", "data", *OPTIONS, *twins, "--models", "cl1,cl2")
    run = tmp_path / "runs/audit-data"
    cards = [(run / "audit/mteb" / name).read_text(encoding="utf-8") for name in ("README.md", "retrieval/README.md")]
    kin, near = (
        "judges of one family (kin): cl1, cl2",
        "near-identical judges: cl1 and cl2: one family (kin), 100.0% of ",
    )
    worth = "effective number of judges: not measured (no grades by people of what all of them rated)"
    for place in (done.stdout, curate(tmp_path, "audit").stdout, done.stderr, *cards):
        assert (kin in place, near in place) == (True, True)
    page = (run / "audit.html").read_text(encoding="utf-8")
    assert "同一模型系列（kin）的评审：cl1、cl2" in page
    assert "几乎相同的评审：cl1 与 cl2" in page
    assert worth in done.stdout
    assert worth.capitalize() in cards[0]


def test_real_grades_give_the_figures_published_for_them(shared_data: Path, tmp_path: Path) -> None:
    panel = shared_data / "panel"
    with (panel / "ratings.tsv").open(encoding="utf-8", newline="") as stream:
        pairs = sorted({(row["query_id"], row["doc_id"]) for row in csv.DictReader(stream, delimiter="\t")})
    run = "".join(f"{query_id} Q0 {doc_id} 1 1 rated\n" for query_id, doc_id in pairs)
    (tmp_path / "rated.trec").write_text(run, encoding="utf-8")
    settings = ["mask.enabled=false", f"ingest.qrels={{path: {panel / 'qrels_legacy.tsv'}}}"]
    settings += ["retrievers.rated={kind: runfile, path: rated.trec}"]
    names = ("first", "second", "third")
    for number, name in enumerate(names, start=1):
        settings.append(f"judges.{name}={{kind: replay, path: {panel / 'ratings.tsv'}, assessor: assessor-{number}}}")
    words = [word for each in settings for word in ("--set", each)]
    options = ["--retrievers", "rated", "--depth", "1000", "--models", ",".join(names), "--json"]
    done = ran(tmp_path, "audit", str(panel), *options, *words)
    found = machine.data(done.stdout)
    means = {name: round(each["mean"], 2) for name, each in found["measures"].items()}
    wanted = {
        "original": 0.47,
        "confirmed": 0.33,
        "false_positives": 0.13,
        "false_negatives": 3.20,
        "judged_positive": 3.53,
    }
    assert {name: means[name] for name in wanted} == wanted
    totals = {name: each["total"] for name, each in found["measures"].items()}
    assert totals["original"] == totals["confirmed"] + totals["false_positives"] + totals["contested"]
    assert found["queries"] == 30
    assert not found["heuristic"]
    assert found["patch"]["removed"] == totals["false_positives"]


CITIES = tuple("京沪粤深蓉杭汉秦宁津渝苏湘郑青连厦甬合榕")
"""Of 20 institutions that masking makes equal."""


@pytest.fixture(scope="module")
def blurred(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an audit of a set whose 20 institutions masking makes equal; the last two documents were equal before."""
    folder = tmp_path_factory.mktemp("blurred")
    texts = [f"{city}市第一人民医院" for city in CITIES] + ["医院怎样挂号", "医院怎样挂号"]
    corpus = [{"_id": f"d{n:02}", "title": "", "text": text} for n, text in enumerate(texts)]
    queries = [{"_id": "q0", "text": "医院"}, {"_id": "q1", "text": "医院怎样挂号"}]
    beir(folder / "data", queries, corpus, ["q0 d00 1", "q1 d20 1"])
    done = audited(folder, "--depth", "3")
    assert done.returncode == 0, done.stderr
    return folder


def test_a_text_that_masking_made_equal_to_a_judged_one_gets_no_label(blurred: Path) -> None:
    run = blurred / "runs/audit-data"
    assert table(run, "mask", "corpus")["text"].to_list()[:20] == ["[医院]"] * 20
    added = [row for row in rows_of(run / "audit" / "patch.tsv") if row["sign"] == "+"]
    judged = set(table(run, "consensus", "verdicts").select("query_id", "doc_id").rows())
    assert [row for row in added if (row["query_id"], row["doc_id"]) not in judged] == []
    assert added, "what was retrieved was judged as it was shown"
    kinds = dict(table(run, "audit", "compared").select(pl.concat_str("query_id", "doc_id"), "kind").rows())
    assert {kind for pair, kind in kinds.items() if pair.startswith("q0")} == {"confirmed", "false negative"}
    assert kinds["q1d21"] == "duplicate", "a text that was equal before masking is one still"
    found = figures(blurred)
    assert found["measures"]["duplicates"]["total"] == 1
    assert found["patch"]["added_copies"] == 0
    assert found["masking"] == {"made_equal": 20, "shortened": 20, "patched": len(added) - 1}


def test_status_and_page_say_what_masking_made_equal(blurred: Path) -> None:
    status = curate(blurred, "status").stdout
    assert "mask: note: masking made 20 documents equal to others" in status
    page = (blurred / "runs/audit-data/audit.html").read_text(encoding="utf-8")
    assert "20 条文本脱敏后与原本不同的文本变得相同" in page
    assert "评审没有看到原文" in page
