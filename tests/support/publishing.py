"""A tiny run whose settings give all that mteb's metadata asks for."""

from pathlib import Path

from tests.support.runs import PIPELINE, ran, tiny

EXPORT = """\
export:
  small: true
  formats: [mteb]
  rerank: {negatives: 1}
  license: cc-by-4.0
  mteb:
    reference: https://example.org/paper
    date: [2020-01-01, 2020-12-31]
    domains: [Medical, Written]
    task_subtypes: [Question answering]
    annotations_creators: LM-generated
    dialect: []
    sample_creation: found
    bibtex_citation: ""
    contributed_by: A laboratory
    is_public: false
    tasks: {reranking: {task_subtypes: []}}
"""


def full(folder: Path) -> str:
    """Write the data of `tiny` and a pipeline with all metadata; return its name."""
    tiny(folder)
    head, _, _ = PIPELINE.partition("export:")
    (folder / "full.yaml").write_text(head.replace("name: tiny", "name: full") + EXPORT, encoding="utf-8")
    return "full.yaml"


def finished(folder: Path) -> Path:
    """Return the folder of a finished run of that pipeline."""
    ran(folder, "run", full(folder))
    return folder / "runs" / "full"
