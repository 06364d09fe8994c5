"""The gate of an export: what was written stops it, mixes are made anew, and sources keep what `mask` decided."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.export import gate
from curate.core.errors import UserError
from curate.core.protocols import Benchmark
from curate.ledger import Ledger
from curate.pipeline.stage import Context
from curate.system.files import frame, write_table
from curate.tables.kinds import gradient, kind
from curate.tables.kinds.gradient import MixPair
from tests.integration.tables.test_paraphrase_kinds import QUERIES, benchmark, originals, paraphrases
from tests.support import every_kind

PHONE = "13812345678"
SOURCES = ("药药药1381234" + "慢" * 10, *(f"{each * 10}5678{each * 6}" for each in "甲乙丙丁"))
"""The first half of the first and the second half of any other make a number that stands in neither."""


def context(folder: Path, texts: Any = (), **mask: Any) -> Context:
    """Return the context of an export, of a run whose `mask` looked at the queries and at some texts more."""
    (folder / "mask").mkdir()
    queries = [{"query_id": name, "text": text} for name, text in QUERIES.items()]
    corpus = [{"doc_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(texts)]
    write_table(folder / "mask", "queries", frame("queries", queries))
    write_table(folder / "mask", "corpus", frame("corpus", corpus))
    return Context(folder, folder / "export", folder / "home", settings={"mask": mask})


def planted(table: pl.DataFrame, column: str, row: pl.Expr) -> pl.DataFrame:
    return table.with_columns(pl.when(row).then(pl.col(column) + f"，{PHONE}").otherwise(column).alias(column))


def whole(**tables: pl.DataFrame) -> Benchmark:
    made = benchmark(pairs=every_kind.pairs(), gradients=every_kind.gradients().filter(pl.col("kind") == "edit"))
    return replace(made, tables={**made.tables, **tables})


WRITTEN = {
    "paraphrase": ("paraphrases", paraphrases, "sentence2", pl.col("kind") == "paraphrase"),
    "sentence-retrieval": ("originals", originals, "paraphrase", pl.col("pair_id") == originals()["pair_id"][0]),
    "sts": ("pairs", every_kind.pairs, "sentence2", pl.col("pair_id") == "p-test-1"),
    "gradient-edit": ("gradients", every_kind.gradients, "destination", pl.col("item_id") == "e1-0.0"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_was_written_stops_the_export_and_is_named_without_its_text(name: str, tmp_path: Path) -> None:
    table, made, column, row = WRITTEN[name]
    rows = planted(made(), column, row)
    with pytest.raises(UserError) as stopped:
        gate.passed(whole(**{table: rows}), context(tmp_path))
    said = str(stopped.value)
    named = rows.filter(pl.col(column).str.contains(PHONE))["pair_id"].to_list()
    assert all(f"- {name} {pair} (" in said and "): phone" in said for pair in named)
    assert named
    assert PHONE not in said
    assert f"`curate {kind(name).stage} --run {tmp_path} --force`" in said
    settings = ({"accept": named}, {"residual": "allow"}, {"enabled": False})
    told = [replace(context_of(tmp_path), settings={"mask": each}) for each in settings]
    accepted, allowed, off = (gate.passed(whole(**{table: rows}), each)[2] for each in told)
    assert accepted == {"looked": True, "published": 0, "left_out": 0}
    assert allowed == {"looked": True, "published": len(named), "left_out": 0}
    assert off == {"looked": False, "published": 0, "left_out": 0}


def context_of(folder: Path) -> Context:
    return Context(folder, folder / "export", folder / "home")


def test_texts_of_the_sources_keep_what_mask_decided(tmp_path: Path) -> None:
    known = f"请打{PHONE}"
    pairs = every_kind.pairs().with_columns(sentence1=pl.lit(known), sentence2=pl.lit(f"{known}吗"))
    _, found, facts = gate.passed(whole(pairs=pairs), context(tmp_path, [known]))
    assert (found.height, gate.notes(facts)) == (0, []), "the text itself, and a sentence that repeats its value"


def test_a_seam_that_makes_a_number_is_listed_and_its_mix_left_out(tmp_path: Path) -> None:
    pairs = {f"m{n}": MixPair(text, f"怎么服药{n}", f"q{n}", f"d{n}") for n, text in enumerate(SOURCES)}
    rows = frame("gradients", gradient.mix_rows(pairs))
    assert rows.filter(pl.col("source").str.contains("13812345678"))["pair_id"].to_list() == ["m0"]
    made, listed, facts = gate.passed(whole(gradients=rows), context(tmp_path, SOURCES))
    found = {"kind": "gradient-mix", "id": "m0", "field": "sentence1", "found": "phone", "published": False}
    assert listed.to_dicts() == [found]
    assert facts == {"looked": True, "published": 0, "left_out": 1}
    assert "1 of mixes left out" in gate.notes(facts)[0]
    kept = made.tables["gradients"]
    assert kept["pair_id"].unique().sort().to_list() == ["m1", "m2", "m3", "m4"]
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert kind("gradient-mix").verify(kept, {}, ledger).differences == [], "mixed anew, of those that are left"
    few = frame("gradients", gradient.mix_rows(dict(list(pairs.items())[:3])))
    assert gate.passed(whole(gradients=few), context_of(tmp_path))[0].tables["gradients"].is_empty()
