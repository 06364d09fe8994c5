"""Metadata for mteb: every value is one of mteb's, and settings fill what `is_filled()` looks at."""

import typing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curate import load_tasks
from curate.core.config import check
from curate.core.errors import ConfigError
from curate.tables.exporters.manifest import read
from curate.tables.exporters.mteb_tasks import front_matter
from curate.tables.exporters.task_metadata import MtebMetadata, block, known, licence_problem, missing
from tests.support.evaluating import benchmark, written
from tests.support.publishing import finished, full
from tests.support.runs import curate, ran, tiny

ENTRY = "@misc{wang2020,\n  title = {A set},\n}"


def test_the_values_are_those_of_mteb() -> None:
    from mteb.abstasks import task_metadata as mteb
    from mteb.types import Licenses

    theirs = {
        "domains": mteb.TaskDomain,
        "task_subtypes": mteb.TaskSubtype,
        "annotations_creators": mteb.AnnotatorType,
        "sample_creation": mteb.SampleCreationMethod,
        "license": Licenses,
    }
    for field, literal in theirs.items():
        assert set(known()[field]) == set(typing.get_args(literal)), field
    assert set(known()["category"].values()) <= set(typing.get_args(mteb.TaskCategory))
    ours = {*MtebMetadata.model_fields} - {"tasks"}
    made_by_us = {"dataset", "name", "type", "modalities", "category", "eval_splits", "eval_langs", "main_score"}
    assert ours | made_by_us | {"license"} == {*mteb.TaskMetadata.model_fields}, "a setting for every field"


def test_settings_fill_every_task_and_reach_card_and_manifest(tmp_path: Path) -> None:
    run = finished(tmp_path)
    for task in load_tasks(run / "export"):
        metadata: Any = task.metadata
        assert metadata.is_filled()
        assert (metadata.license, metadata.date) == ("cc-by-4.0", ("2020-01-01", "2020-12-31"))
        assert metadata.task_subtypes == ([] if metadata.type == "Reranking" else ["Question answering"])
    assert read(run / "export" / "mteb")["license"] == "cc-by-4.0"
    card = (run / "export" / "mteb" / "README.md").read_text(encoding="utf-8")
    assert "## Licence\n\ncc-by-4.0." in card


def test_what_nobody_gave_is_left_out_and_named(tmp_path: Path) -> None:
    tiny(tmp_path)
    done = ran(tmp_path, "run", "tiny.yaml", "--set", "export.license=cc-by-4", "--set", "export.formats=[mteb]")
    assert "metadata for mteb is not complete (retrieval, reranking): set export.mteb.reference, " in done.stderr
    assert "mteb knows no 'cc-by-4'; did you mean 'cc-by-" in done.stderr
    front = front_matter(tmp_path / "runs" / "tiny" / "export" / "mteb" / "retrieval")["mteb"]
    assert not {*known()["needed"]} & {*front}, "nothing is invented"
    complaint = curate(tmp_path, "run", full(tmp_path), "--set", "export.mteb.tasks.stss.dialect=[]").stderr
    assert "export.mteb.tasks.stss: unknown task; did you mean 'sts'?" in complaint


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"domains": ["medical"]}, "did you mean 'Medical'?"),
        ({"date": ["2021-01-01", "2020-01-01"]}, "expected the first day, then the last"),
        ({"reference": "our wiki"}, "reference"),
        ({"tasks": {"sts": {"sample_creation": "fund"}}}, "did you mean 'found'?"),
        ({"prompt": {"passage": "x"}}, "prompt"),
    ],
)
def test_a_wrong_value_is_refused_with_the_nearest(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as found:
        check(MtebMetadata, given, "export.mteb")
    assert said in str(found.value)


def test_a_citation_that_is_bibtex_is_mtebs_too_and_a_licence_may_be_an_address() -> None:
    made = block("retrieval", "Retrieval", {"citation": "@misc{x}", "license": "https://example.org/l"})
    assert (made["bibtex_citation"], made["license"]) == ("@misc{x}", "https://example.org/l")
    assert "export.mteb.bibtex_citation" in missing(block("sts", "STS", {"citation": "Wang, 2020"}))
    assert licence_problem("https://example.org/l") is None


@pytest.mark.parametrize(("citation", "shown"), [("Wang, 2020", 1), ("", 0), (ENTRY, 0)])
def test_the_bibtex_of_the_settings_is_on_the_card_once(tmp_path: Path, citation: str, shown: int) -> None:
    facts: dict[str, Any] = {"task_metadata": {"bibtex_citation": ENTRY}, "citation": citation}
    card = (written(replace(benchmark(), facts=facts), tmp_path / "mteb") / "README.md").read_text()
    section = card.partition("## Citation\n")[2].partition("\n## ")[0]
    assert section.count(f"```bibtex\n{ENTRY}\n```") == 1
    assert (section.count(ENTRY), section.count("Wang, 2020")) == (1, shown)
    assert "a benchmark made with curate" not in section, "no entry of our own beside it"
