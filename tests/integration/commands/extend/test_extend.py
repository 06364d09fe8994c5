"""`curate extend`: the holes of a later system, and nothing else, are judged; the earlier version stays whole."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from curate.system.files import digests
from tests.support import machine, versions
from tests.support.graded_panel import HELD, grades, judged, recorded, write_run
from tests.support.pools import table
from tests.support.runs import complaint, curate, ran
from tests.vendor import Vendor

PAIR = ["query_id", "doc_id"]


@dataclass
class Grown:
    """Two versions of the panel's set, and what its judges were asked."""

    folder: Path
    vendors: Sequence[Vendor]
    before: dict[str, str]
    """Files of the first version, before it was extended."""
    asked: list[int]
    """Pairs that each vendor was paid for by then."""
    plan: list[dict[str, object]]
    answer: dict[str, object]

    @property
    def one(self) -> Path:
        return self.folder / "runs" / "panel"

    @property
    def two(self) -> Path:
        return self.folder / "runs" / "panel-v2"


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Grown]:
    panel: Path = request.getfixturevalue("shared_data") / "panel"
    folder = tmp_path_factory.mktemp("grown")
    with judged(folder, panel) as vendors:
        # Ten documents each: seven that are judged, and the three held out, which stand first.
        write_run(folder / "new.trec", {q: [*docs[-HELD:], *docs[: 10 - HELD]] for q, docs in recorded(panel).items()})
        before, asked = digests(folder / "runs" / "panel"), [sum(each.paid.values()) for each in vendors]
        words = ("extend", "runs/panel", "--run-file", "new.trec")
        plan = machine.data(ran(folder, *words, "--plan", "--json").stdout)
        assert [sum(each.paid.values()) for each in vendors] == asked
        assert sorted(each.name for each in (folder / "runs").iterdir()) == ["panel"]
        refused = complaint(folder, *words, "--offline")
        assert "first" in refused
        answer = machine.data(ran(folder, *words, "--yes", "--json").stdout)
        yield Grown(folder, vendors, before, asked, plan, answer)


def test_only_the_holes_are_asked_for_and_each_once(grown: Grown, shared_data: Path) -> None:
    holes = HELD * len(recorded(shared_data / "panel"))
    assert grown.asked == [17 * 30, 17 * 30]
    assert [sum(each.paid.values()) for each in grown.vendors] == [17 * 30 + holes] * 2
    assert {count for each in grown.vendors for count in each.paid.values()} == {1}
    assert grown.answer["holes"] == holes
    assert [row["judge"] for row in grown.plan][:2] == ["first", "second"]


def test_the_first_version_stays_as_it_was(grown: Grown) -> None:
    assert digests(grown.one) == grown.before


def test_no_pair_leaves_the_pool_and_every_hole_names_its_source(grown: Grown, shared_data: Path) -> None:
    old, new = table(grown.one, "pool", "pool"), table(grown.two, "pool", "pool")
    kept = new.join(old, on=PAIR, how="semi")
    assert kept.select(*PAIR, "position").equals(old.select(*PAIR, "position"))
    holes = new.join(old, on=PAIR, how="anti")
    expected = {(q, doc) for q, docs in recorded(shared_data / "panel").items() for doc in docs[-HELD:]}
    assert set(holes.select(PAIR).iter_rows()) == expected
    assert {hit["retriever"] for hits in holes["hits"] for hit in hits} == {"new"}
    assert {hit["retriever"] for hits in kept["hits"] for hit in hits} == {"rated", "new"}


def test_the_labels_are_those_of_the_recorded_grades(grown: Grown, shared_data: Path) -> None:
    given = grades(shared_data / "panel")
    verdicts = table(grown.two, "resolve", "verdicts")
    assert len(verdicts) == 600
    for query, doc, verdict in verdicts.select(*PAIR, "verdict").iter_rows():
        yes = [given[query, doc, f"assessor-{n}"] in "SA" for n in (1, 2)]
        assert verdict == ("relevant" if all(yes) else "not relevant" if not any(yes) else "contested")
    old = table(grown.one, "resolve", "verdicts")
    new = verdicts.join(old, on=PAIR, how="anti")
    assert {name: grown.answer[name] for name in ("relevant", "not relevant", "contested")} == {
        name: (new["verdict"] == name).sum() for name in ("relevant", "not relevant", "contested")
    }
    assert (grown.answer["changed"], grown.answer["same_panel"]) == (0, True)


def test_the_export_tells_what_changed_and_is_verified(grown: Grown) -> None:
    for folder in sorted((grown.two / "export").iterdir()):
        if not folder.is_dir():
            continue
        text = (folder / "CHANGES.md").read_text("utf-8")
        assert text.startswith("# Changes\n\n## Version 2\n\n90 documents joined the pool")
        assert text.endswith("## Version 1\n\nThe first version.\n")
        body = json.loads((folder / "MANIFEST.json").read_text("utf-8"))
        assert body["grown"]["parent"]["id"] == (grown.one / ".id").read_text("ascii")
        assert "CHANGES.md" in body["files"]
    for name in ("beir", "trec"):
        ran(grown.folder, "verify", f"runs/panel-v2/export/{name}")
    assert "verified, but for" in curate(grown.folder, "verify", "runs/panel-v2/export/mteb").stdout
    assert not list((grown.one / "export").glob("*/CHANGES.md"))


def test_short_prompts_of_holes_are_said(grown: Grown) -> None:
    ratings = table(grown.two, "judge", "ratings")
    old = table(grown.one, "pool", "pool")
    for judge, means in grown.answer["passages_per_prompt"].items():  # type: ignore[attr-defined]
        rows = ratings.filter(pl.col("judge") == judge)
        assert means["earlier"] == pytest.approx(rows.join(old, on=PAIR, how="semi")["batch_size"].mean(), abs=0.01)
        assert means["new"] == pytest.approx(rows.join(old, on=PAIR, how="anti")["batch_size"].mean(), abs=0.01)
    assert any("to a prompt" in said for said in grown.answer["warnings"])  # type: ignore[attr-defined]


def test_a_third_version_grows_out_of_the_second(grown: Grown, tmp_path: Path, shared_data: Path) -> None:
    folder = Path(shutil.copytree(grown.folder, tmp_path / "work"))
    write_run(folder / "third.trec", {q: docs[:5] for q, docs in recorded(shared_data / "panel").items()})
    paid = [sum(each.paid.values()) for each in grown.vendors]
    found = machine.data(
        ran(folder, "extend", "runs/panel-v2", "--run-file", "third.trec", "--offline", "--json").stdout
    )
    assert (found["version"], found["holes"], Path(found["run_folder"]).name) == (3, 0, "panel-v3")
    assert [sum(each.paid.values()) for each in grown.vendors] == paid
    text = (folder / "runs" / "panel-v3" / "export" / "beir" / "CHANGES.md").read_text("utf-8")
    assert [line for line in text.splitlines() if line.startswith("##")] == [f"## Version {n}" for n in (3, 2, 1)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "found no system"),
        (("--run-file", "gone.trec"), "gone.trec: no such file"),
        (("--run-file", "rated.trec"), "is in the pool of"),
        (("--run-file", "new.trec", "--depth", "5"), "is not this version"),
        (("--encoder", "e55", "--out", "runs/other"), "did you mean 'e5'"),
    ],
)
def test_what_cannot_be_extended_is_refused_in_a_sentence(grown: Grown, words: tuple[str, ...], said: str) -> None:
    assert said in complaint(grown.folder, "extend", "runs/panel", *words)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{} Q0 nothing 1 1.0 t", "found the document 'nothing'"),
        ("nothing Q0 {} 1 1.0 t", "no document for any of 30 queries"),
        ("", "no document for any of 30 queries"),
        ("qid,docid,score", "expected 6"),
    ],
)
def test_a_wrong_run_file_leaves_no_folder_in_the_way_of_the_mended_one(
    grown: Grown, line: str, said: str, shared_data: Path
) -> None:
    (grown.folder / "odd.trec").write_text(line.format(next(iter(recorded(shared_data / "panel")))), encoding="utf-8")
    words = ("--run-file", "odd.trec", "--out", "runs/odd")
    assert said in complaint(grown.folder, "extend", "runs/panel", *words)
    assert not (grown.one.parent / "odd").exists()


def test_diff_explains_the_two_versions_and_its_figures_are_counted_again(grown: Grown) -> None:
    found = machine.data(ran(grown.folder, "diff", "runs/panel", "runs/panel-v2", "--out", "d.csv", "--json").stdout)
    rows = pl.read_csv(grown.folder / "d.csv", infer_schema=False)
    assert set(rows.select("reason", "detail").iter_rows()) == {("joined the pool", "new")}
    assert rows["before"].null_count() == len(rows) == found["changed"] == 90
    old, new = versions.labels(grown.one), versions.labels(grown.two)
    assert found["pairs"]["both"] == len(old.keys() & new.keys())
    assert found["reasons"][0]["relevant_won"] == sum(new[pair] == "relevant" for pair in new.keys() - old.keys())
    counted = versions.effects(grown.one, grown.two)
    assert found["effects"]["queries"] == counted["queries"]
    assert found["effects"]["tau"]["value"] == pytest.approx(counted["tau"], abs=1e-6)
    assert found["effects"]["tau_ap"] == pytest.approx(counted["tau_ap"], abs=1e-6)
    joined = Counter(new[pair] for pair in new.keys() - old.keys())
    assert {each["after"]: each["pairs"] for each in found["moves"] if each["before"] is None} == joined
    assert [(each["reason"], each["pairs"]) for each in found["reasons"]] == [("joined the pool", 90)]
    for row in found["effects"]["systems"]:
        own = counted["systems"][row["system"]]
        assert [row["own_before"], row["own_after"]] == pytest.approx(own["own"], abs=1e-6)
        assert row["ndcg_before"]["value"] == pytest.approx(own["before"], abs=1e-6)
        assert row["ndcg_after"]["value"] == pytest.approx(own["after"], abs=1e-6)
        assert row["change"]["value"] == pytest.approx(own["after"] - own["before"], abs=1e-6)
        assert [row["change"]["low"], row["change"]["high"]] == pytest.approx([own["low"], own["high"]], abs=0.02)
        assert [row["rank_before"], row["rank_after"]] == own["ranks"]
        assert [row["holes_before"], row["holes_after"]] == own["holes"]
