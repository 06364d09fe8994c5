"""Labels that a reviewed threshold or one more judge decides: from the sample to the export, verified offline."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import yaml

from curate.panel.voting import ACCEPTED
from curate.review import Answer, Desk, Sample
from curate.review.agreement import checked
from tests.support.pools import table
from tests.support.runs import PIPELINE, complaint, curate, ran, tiny
from tests.vendor import Vendor, vendor

PRICE = {"input": 2.0, "output": 10.0, "date": "2026-01-01"}


def script(_query: str, passage: str) -> str:
    """Grade as one more judge: what advises on coffee is relevant."""
    return "A" if "咖啡" in passage else "D"


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Vendor]]:
    """Run the small pipeline with a language model that settles what its two judges contest."""
    folder = tmp_path_factory.mktemp("settled")
    tiny(folder)
    with vendor(script) as server:
        settings = yaml.safe_load(PIPELINE)
        model = {"kind": "openai", "model": "m-1", "base_url": server.url, "price": PRICE}
        settings["judges"]["third"] = model
        settings["consensus"] = {"settle": "third"}
        (folder / "tiny.yaml").write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
        yield folder, server


def verdicts(folder: Path, stage: str = "resolve") -> pl.DataFrame:
    return table(folder / "runs" / "tiny", stage, "verdicts")


def verified(folder: Path) -> str:
    done = curate(folder, "verify", "runs/tiny/export")
    assert done.returncode == 3, done.stdout  # what READMEs say of the run is never checked
    return done.stdout + done.stderr


def test_a_settling_judge_is_planned_then_paid_for_contested_pairs_alone(settled: tuple[Path, Vendor]) -> None:
    folder, server = settled
    assert "judging would send:" in complaint(folder, "run", "tiny.yaml")
    assert server.calls == [], "nothing without permission"
    done = ran(folder, "run", "tiny.yaml", "--max-cost", "1")
    contested = verdicts(folder, "consensus").filter(pl.col("verdict") == "contested")
    assert sum(len(call.passages) for call in server.calls) == contested.height > 0
    final = verdicts(folder)
    own = final.filter(pl.col("policy") == "settled-by-third")
    assert own.height == contested.height
    assert set(own["verdict"]) <= {"relevant", "not relevant"}
    assert final.filter(pl.col("policy") == "unanimous").equals(
        verdicts(folder, "consensus").filter(pl.col("verdict") != "contested")
    )
    assert f"third, one judge, decided {own.height} contested pairs" in done.stderr
    assert f"one judge, third, decided {own.height} of the pairs that the panel contested" in done.stdout
    facts = json.loads((folder / "runs/tiny/resolve/stage.json").read_text("utf-8"))["report"]
    assert facts["cost"] > 0
    assert facts["facts"]["settle"]["pairs"] == own.height
    card = (folder / "runs/tiny/export/mteb/README.md").read_text("utf-8")
    assert "decided by one judge more, third" in card
    assert "contested pairs decided by one judge, third" in card
    body = json.loads((folder / "runs/tiny/export/mteb/MANIFEST.json").read_text("utf-8"))
    assert body["labels"]["settle"]["pairs"] == own.height
    assert "as judge lexical, strict, third had a part in this set" in card, "a model of its name is circular"
    page = (folder / "runs/tiny/report.html").read_text("utf-8")
    assert "有分歧的对中由评审 third 单独裁定" in page
    assert all(f"number of positives ({labels})" in page for labels in ("panel", "published"))


def test_settled_labels_are_derived_again_from_the_ledger(settled: tuple[Path, Vendor]) -> None:
    folder, _ = settled
    assert "settled" not in verified(folder)
    calls = len(settled[1].calls)
    ran(folder, "resolve", "--force")
    assert len(settled[1].calls) == calls, "what the ledger holds is not paid twice"
    path = folder / "runs/tiny/export/beir/verdicts.parquet"
    kept = path.read_bytes()
    forged = pl.read_parquet(path)
    flipped = pl.when(pl.col("policy") == "settled-by-third").then(pl.lit("relevant")).otherwise("verdict")
    forged.with_columns(verdict=flipped).write_parquet(path)
    assert curate(folder, "verify", "runs/tiny/export/beir").returncode != 0
    path.write_bytes(kept)


def test_what_cannot_settle_is_refused_with_what_to_type(settled: tuple[Path, Vendor]) -> None:
    folder, _ = settled
    for command in ("ingest", "consensus", "resolve"):
        said = complaint(folder, command, "--set", "consensus.settle=strict")
        assert "'strict' has voted already, as a judge of the panel" in said, command
        assert "curate review export --contested" in said
    assert "consensus.settle: unknown judge 'thrid'" in complaint(folder, "resolve", "--set", "consensus.settle=thrid")
    both = complaint(folder, "consensus", "--set", "consensus.accept.wrong=0.4")
    assert "what a judge settles is outside of what a review promises" in both
    graded = complaint(folder, "export", "--set", "export.labels=graded")
    assert "consensus.settle has 'third' decide them" in graded


def test_people_settle_contested_pairs_first_and_the_judge_the_rest(
    settled: tuple[Path, Vendor], tmp_path: Path
) -> None:
    shutil.copytree(settled[0], tmp_path, dirs_exist_ok=True)
    ran(tmp_path, "review", "export", "--contested", "--size", "2")
    desk = Desk(Sample.find(tmp_path / "runs" / "tiny", "contested"))
    rows = checked(desk)
    desk.record("assessor", [Answer(row.row_id, "S") for row in rows])
    ran(tmp_path, "resolve", "--set", "resolve.policy=expert-over-panel", "--max-cost", "1")
    final = verdicts(tmp_path)
    people = final.filter(pl.col("policy") == "expert-over-panel")
    assert sorted(people.select("query_id", "doc_id").rows()) == sorted(tuple(row.ids) for row in rows)
    assert set(people["verdict"]) == {"relevant"}
    assert final.filter(pl.col("policy") == "settled-by-third").height > 0
    shown = ran(tmp_path, "review", "report", "--sample", "contested").stdout
    assert "2 of 2 rows read" in shown
    assert "not random" in shown


def accepting(tiny_run: Path, folder: Path) -> Desk:
    """Draw a review of the whole frame of the small run; its people find relevant what the first judge does."""
    ran(folder, "run", "tiny.yaml", "--set", "consensus.accept.wrong=0.45")
    ran(folder, "review", "export", "--target", "accept", "--size", "40", "--controls", "0")
    desk = Desk(Sample.find(tiny_run, "accept"))
    totals = {row.row_id: int(row.stratum.removeprefix("sum ")) for row in checked(desk)}
    desk.record("assessor", [Answer(row_id, "A" if total >= 5 else "D") for row_id, total in totals.items()])
    return desk


def test_a_reviewed_threshold_makes_the_labels_and_the_export_verifies(tiny_run: Path, tmp_path: Path) -> None:
    desk = accepting(tiny_run, tmp_path)
    done = ran(tmp_path, "run", "tiny.yaml", "--set", "consensus.accept.wrong=0.45")
    facts = json.loads((tiny_run / "resolve" / "stage.json").read_text("utf-8"))["report"]["facts"]["accept"]
    least = facts["threshold"]["least"]
    final = verdicts(tmp_path)
    worth = {"S": 4, "A": 3, "B": 2, "C": 1, "D": 0}
    sums = [sum(worth[vote["grade"]] for vote in votes) for votes in final["votes"]]
    assert (final["verdict"] == "relevant").to_list() == [total >= least for total in sums]
    assert set(final.filter(pl.col("verdict") == "relevant")["policy"]) == {ACCEPTED}
    assert f"whose grades add up to {least} or more" in done.stderr
    assert "threshold" not in verified(tmp_path)
    manifest = json.loads((tiny_run / "export/mteb/MANIFEST.json").read_text("utf-8"))
    assert manifest["labels"]["accept"]["least"] == least
    card = (tiny_run / "export/mteb/README.md").read_text("utf-8")
    assert f"whose grades add up to {least} or more" in card
    forged(tiny_run / "export/beir", tmp_path)
    desk.record("assessor", [Answer(row.row_id, "D") for row in checked(desk)])
    again = curate(tmp_path, "run", "tiny.yaml", "--set", "consensus.accept.wrong=0.45")
    assert "the best share is 100.0% wrong" in again.stderr
    assert verdicts(tmp_path).equals(verdicts(tmp_path, "consensus")), "without a threshold the policy's labels stay"


def forged(folder: Path, work: Path) -> None:
    """Hold that another threshold than the labels follow from is noticed, and one below the sampled frame."""
    path = folder / "MANIFEST.json"
    body = json.loads(path.read_text("utf-8"))
    for least, said in ((1, "below the lowest sum"), (8, "verdicts.parquet")):
        body["labels"]["accept"]["least"] = least
        path.write_text(json.dumps(body), encoding="utf-8")
        done = curate(work, "verify", str(folder))
        assert done.returncode == 1
        assert said in done.stdout + done.stderr


def test_a_sample_for_a_threshold_needs_the_promise_first(tiny_run: Path, tmp_path: Path) -> None:
    assert tiny_run.is_dir()
    said = complaint(tmp_path, "review", "export", "--target", "accept", "--size", "20")
    assert "found no consensus.accept in the run's settings" in said
    assert "curate consensus --run runs/tiny --set consensus.accept.wrong=0.4" in said
    odd = complaint(tmp_path, "review", "export", "--contested", "--margin", "0.1")
    assert "--margin: found together with --contested" in odd
