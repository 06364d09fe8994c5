"""`pool.queries`: so many queries get a pool and are judged; the others are queries of the run that nobody judged."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.core.config import digest
from curate.pipeline.configs import PoolConfig
from curate.pipeline.facts import drawn
from tests.support import machine
from tests.support.runs import complaint, curate, ran, tiny

SOME = ("--set", "pool.queries=3")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    ran(folder, "run", tiny(folder), *SOME)
    return folder


def rows(folder: Path, stage: str, name: str) -> pl.DataFrame:
    return pl.read_parquet(folder / "runs" / "tiny" / stage / f"{name}.parquet")


def test_only_those_are_judged_and_counted(made: Path) -> None:
    chosen = set(rows(made, "pool", "pool")["query_id"])
    assert len(chosen) == 3
    assert set(rows(made, "judge", "ratings")["query_id"]) == chosen
    assert rows(made, "diversify", "queries").height == 5, "other stages have the others, too"
    assert set(rows(made, "export", "dropped")["id"]) <= chosen
    mark = json.loads((made / "runs" / "tiny" / "consensus" / "stage.json").read_text())
    assert mark["report"]["facts"]["queries"] == 3
    said = ran(made, "run", "tiny.yaml", *SOME).stdout
    assert "of 3 are exported" in said
    assert "2 more were not drawn for a pool, by pool.queries" in said
    assert curate(made, "verify", "runs/tiny/export").returncode == 3, "nothing differs"


def test_a_plan_counts_them(made: Path) -> None:
    model = "{kind: openai, base_url: 'http://127.0.0.1:9/v1', model: m}"
    words = ("tiny.yaml", "--set", f"judges.m={model}", "--set", "judge.models=[lexical, m]", "--run", "other")
    found = machine.data(ran(made, "run", *words, *SOME, "--plan", "--json").stdout)
    assert [row["calls"] for row in found["rows"]] == [3]


def test_an_audit_of_some_is_refused(tmp_path: Path) -> None:
    tiny(tmp_path)
    said = complaint(tmp_path, "audit", "data", "--models", "lexical,use", *SOME)
    assert "take a sample with ingest.sample" in said


def test_a_pool_of_before_stays_up_to_date() -> None:
    assert "queries" not in PoolConfig().model_dump()
    assert digest(PoolConfig(queries=3)) != digest(PoolConfig())


@given(st.integers(1, 30), st.integers(1, 40), st.integers())
def test_the_draw_is_by_id_and_seed(number: int, size: int, seed: int) -> None:
    queries = pl.DataFrame({"query_id": [f"q{n}" for n in range(number)]})
    found = drawn(queries, size, seed)["query_id"].to_list()
    assert len(found) == min(size, number)
    assert found == [each for each in queries["query_id"] if each in found], "in their order"
    assert {*drawn(queries.reverse(), size, seed)["query_id"]} == {*found}
