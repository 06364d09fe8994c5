"""Chains of real sections: the pairs, the ceiling, and the figures of MiniLM that were measured elsewhere before."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.notes import NotesCommand, encoders, evaluate
from curate.commands.notes.table import NotesLayout, read
from curate.stats.neighbour_recall import ranks
from tests.support.small import minilm

KNOWN = {
    "card": (0.0496, 0.6231, 0.8050),
    "card_own_out": (0.2188, 0.6687, 0.8245),
    "next": (0.5692, 0.8080, 0.8891),
}
AUROC = {"auroc_random": 0.985, "auroc_disjoint": 0.958, "auroc_leak": 0.027}


@pytest.fixture(scope="module")
def sections(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sections as notes: an article is a group, the part of the id before `_` its source."""
    corpus = pl.read_ndjson(shared_data / "medquad_legacy_en" / "corpus.jsonl")
    parts = pl.col("_id").str.extract_groups(r"^(?<group>(?<label>[^_]+)_.*)_Sec(?<order>\d+)$")
    path = tmp_path_factory.mktemp("medquad") / "notes.parquet"
    corpus.select("title", "text", parts.alias("parts"), id="_id").unnest("parts").write_parquet(path)
    return path


def test_the_chains_of_real_sections(sections: Path) -> None:
    table = read(sections, NotesLayout())
    assert (len(table.texts), len(table.chains.query), table.chains.chains) == (3599, 2985, 596)
    assert [round(table.chains.ceiling(depth), 4) for depth in (1, 5, 10)] == [0.1997, 1, 1]
    assert round(table.chains.ceiling(1) * 2985) == 596


def test_chance_finds_nothing_in_real_sections(sections: Path) -> None:
    table = read(sections, NotesLayout())
    (chance,) = (each for each in encoders.floors() if each.name == "random")
    found = ranks(chance.encode(table.texts), table.chains)
    assert found["next"].by_chance(1).mean() < 0.01
    assert found["group"].by_chance(10).mean() < 0.05


@pytest.mark.accept
def test_minilm_finds_the_next_section_as_it_was_measured_before(sections: Path) -> None:
    minilm()
    found: Any = evaluate(NotesCommand(table=sections, models=["minilm"], max_length=64, floors=False)).to_json()
    values = {(row["figure"], row["at"]): row for row in found["figures"]}
    for protocol, known in KNOWN.items():
        assert tuple(round(values[protocol, at]["value"], 4) for at in (1, 5, 10)) == known
    for name, area in AUROC.items():
        row = values[name, None]
        assert row["low"] < area < row["high"]
        assert row["value"] == pytest.approx(area, abs=0.004)
