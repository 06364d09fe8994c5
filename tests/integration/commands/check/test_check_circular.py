"""`curate check circular` on real judges, and where its figures are shown: page, card, manifest and evaluation."""

import json
from pathlib import Path
from typing import Any

import pytest

from curate.commands.check.circular import check
from curate.core.errors import ConfigError
from curate.pipeline import facts
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context, home
from curate.runs.runner import Run
from tests.support.assessed import Assessed
from tests.support.runs import complaint, ran, tiny

GRADES = "CBAS"
"""Of the five, for 0 to 3."""
FOURTH, OTHER = "Olz-gpt4o", "NISTRetrieval-reason0"


def row(name: str, value: str) -> dict[str, str]:
    return {"_id": name, "text": value}


def lines(path: Path, rows: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Run:
    """Return a run on the pairs of the shared data up to `consensus`, whose judges replay."""
    folder, known = tmp_path_factory.mktemp("real"), Assessed.read(shared_data)
    table = known.table.select("query_id", "doc_id", *known.judges)
    pairs = list(table.select("query_id", "doc_id").iter_rows())
    for name, ids in (("queries", {pair[0] for pair in pairs}), ("corpus", {pair[1] for pair in pairs})):
        lines(folder / "data" / f"{name}.jsonl", [json.dumps(row(each, f"{name} {each}")) for each in sorted(ids)])
    lines(folder / "data/qrels/test.tsv", ["query-id\tcorpus-id\tscore", *("\t".join(pair) + "\t1" for pair in pairs)])
    lines(folder / "rated.trec", [f"{query} Q0 {doc} {at} {2000 - at} r" for at, (query, doc) in enumerate(pairs, 1)])
    judges = {name: {"kind": "replay", "path": str(folder / f"{name}.tsv")} for name in known.judges}
    for name in known.judges:
        said = zip(pairs, table[name], strict=True)
        lines(folder / f"{name}.tsv", ["query_id\tdoc_id\tgrade", *("\t".join([*p, GRADES[g]]) for p, g in said)])
    settings: dict[str, Any] = {
        "version": 1,
        "name": "real",
        "language": "en",
        "ingest": {"source": str(folder / "data"), "duplicates": "keep"},
        "mask": {"enabled": False},
        "diversify": {"enabled": False},
        "retrievers": {"rated": {"kind": "runfile", "path": str(folder / "rated.trec")}},
        "pool": {"retrievers": ["rated"], "depth": 2000, "size": 2000},
        "judges": judges,
        "judge": {"models": known.panel},
    }
    run = Run(folder / "run", Pipeline.check(settings, "real"))
    run.execute(["ingest", "mask", "diversify", "pool", "judge", "consensus"])
    return run


def effects(found: Any) -> dict[str, float]:
    return {each["judge"]: round(each["effect"]["value"], 4) for each in found["judges"]}


def test_real_judges_with_a_fourth_in_their_place_and_left_out(real: Run) -> None:
    placed: Any = check(real, FOURTH, [OTHER]).to_json()
    assert effects(placed) == {"h2oloo-fewself": 0.0143, "willia-umbrela1": 0.1046, "RMITIR-llama70B": 0.0317}
    assert [each["judge"] for each in placed["judges"] if each["warned"]] == ["willia-umbrela1"]
    assert json.loads((real.folder / "checks" / "circular.json").read_text(encoding="utf-8")) == placed
    left = check(real, None, [FOURTH, OTHER]).to_json()
    assert effects(left) == {"h2oloo-fewself": 0.0, "willia-umbrela1": 0.0464, "RMITIR-llama70B": 0.0}
    assert "--fourth NAME" in str(left["warnings"])


def test_a_fourth_with_few_grades_counts_on_those_alone(real: Run) -> None:
    few = real.folder.parent / f"{FOURTH}.tsv"
    whole = few.read_text(encoding="utf-8")
    lines(few, whole.splitlines()[:401])
    try:
        found = check(real, FOURTH).to_json()
    finally:
        few.write_text(whole, encoding="utf-8")
    assert (found["pairs"], found["pool"]) == (400, 1337)
    assert "400 of the 1,337 pairs of the pool count" in str(found["warnings"])


def test_figures_of_other_grades_or_another_rule_are_not_shown(real: Run) -> None:
    check(real, FOURTH)

    def shown(policy: str) -> bool:
        settings = {**real.pipeline.frozen, "consensus": {"policy": policy}}
        return facts.checked(Context(real.folder, real.folder, home(), settings=settings)) is not None

    assert shown("unanimous")
    assert not shown("majority")
    path = real.folder / "judge" / "stage.json"
    whole = path.read_text(encoding="utf-8")
    mark = json.loads(whole)
    mark["outputs"]["ratings.parquet"] = "0" * 64
    path.write_text(json.dumps(mark), encoding="utf-8")
    assert not shown("unanimous")
    path.write_text(whole, encoding="utf-8")


def test_who_has_two_parts_or_no_grade_is_refused(real: Run) -> None:
    for fourth, others in (("h2oloo-fewself", []), (FOURTH, [FOURTH])):
        with pytest.raises(ConfigError, match="in two parts, expected judges outside of the panel"):
            check(real, fourth, others)
    with pytest.raises(ConfigError, match="found no grade of 'lexical' for the pairs of this pool"):
        check(real, "lexical")


def test_a_user_sees_it_on_card_page_and_manifest(tmp_path: Path) -> None:
    ran(tmp_path, "run", tiny(tmp_path))
    card, page = (tmp_path / "runs/tiny" / name for name in ("export/mteb/README.md", "report.html"))
    assert "| Judges that judge themselves | Not checked (`curate check circular`) |" in card.read_text("utf-8")
    undone = "<code>curate check circular</code>"
    assert undone in page.read_text("utf-8")
    said = ran(tmp_path, "check", "circular").stdout
    assert "found no grade of 'e5'" in complaint(tmp_path, "check", "circular", "--fourth", "e5")
    assert "Descriptive: no test" in said
    assert said.splitlines()[-2:] == ["next: curate export --run runs/tiny", "    its card takes these figures"]
    answer = json.loads(ran(tmp_path, "check", "circular", "--json").stdout)["data"]
    ran(tmp_path, "run", "tiny.yaml")
    assert "next:" not in ran(tmp_path, "check", "circular").stdout
    shown = card.read_text("utf-8")
    assert "## Before you read a score" in shown
    assert "Not checked" not in shown
    assert "nDCG@10 gained by judging itself" in shown
    assert undone not in page.read_text("utf-8")
    manifest = json.loads((tmp_path / "runs/tiny/export/mteb/MANIFEST.json").read_text(encoding="utf-8"))
    known = {each["judge"]: each["effect"] for each in answer["judges"]}
    assert {name: each["favour"]["effect"] for name, each in manifest["judges"].items()} == known
    assert all(each["value"] is None and each["low"] <= each["high"] for each in known.values()), "ranges"
