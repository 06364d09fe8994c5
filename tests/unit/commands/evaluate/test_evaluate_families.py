"""Models of a judge's family stand beside what that judge gains by judging itself."""

import json
from pathlib import Path
from typing import Any

from curate.commands.evaluate import provenance
from curate.commands.evaluate.provenance import FamilyModel
from curate.commands.evaluate.tasks import EvaluationTask
from curate.tables.kinds import kind
from curate.view.record_words import RecordWords

FAVOUR = {
    "effect": {"value": 0.105, "low": 0.02, "high": 0.186},
    "ranks": 2,
    "queries": 70,
    "replaced_by": "d",
    "warned": True,
}


def rows(folder: Path, judges: dict[str, Any] | None) -> tuple[FamilyModel, ...]:
    body = {} if judges is None else {"judges": judges}
    (folder / "MANIFEST.json").write_text(json.dumps(body), encoding="utf-8")
    models = ["Qwen/Qwen3-Embedding-0.6B", "BAAI/bge-m3", "bm25"]
    made: Any = None  # nothing of mteb is asked
    return provenance.of_family(
        models, [EvaluationTask("small", kind("retrieval"), "", "", made, folder / "retrieval")], None
    )


def test_only_models_of_a_judges_family_are_named(tmp_path: Path) -> None:
    judges = {"wide": {"family": "qwen", "favour": FAVOUR}, "own": {"family": None, "favour": None}}
    (found,) = rows(tmp_path, judges)
    assert (found.model, found.judge) == ("Qwen/Qwen3-Embedding-0.6B", "wide")
    assert "| wide | 10.50 (2.00 to 18.60) points of nDCG@10 |" in "\n".join(
        provenance.family_section([found], RecordWords("evaluate/evaluate"))
    )
    assert next(provenance.family_notes([found])).startswith(
        "circular: Qwen/Qwen3-Embedding-0.6B is of the family qwen"
    )
    assert rows(tmp_path, None) == (), "an export of an older version names no judges"


def test_without_the_check_nothing_is_claimed(tmp_path: Path) -> None:
    found = rows(tmp_path, {"wide": {"family": "qwen", "favour": None}})
    assert "| wide | not checked (`curate check circular`) |" in "\n".join(
        provenance.family_section(found, RecordWords("evaluate/evaluate"))
    )
    assert list(provenance.family_notes(found)) == []
    quiet = rows(tmp_path, {"wide": {"family": "qwen", "favour": {**FAVOUR, "warned": False}}})
    assert list(provenance.family_notes(quiet)) == []
