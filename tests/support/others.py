"""Folders of others' results in mteb's layout, made by hand, and a small export beside which they are read."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.runs import curate

RETRIEVAL, SECOND, RERANK, OLD = "CmedqaRetrieval", "MedicalRetrieval", "T2Reranking", "CMedQAv1-reranking"
STS = "STSB"
GOOD = {"m1": 0.61, "m2": 0.62, "m3": 0.63}


@cache
def task(name: str) -> Any:
    import mteb

    return mteb.get_task(name)


def put(
    root: Path,
    model: str,
    name: str = RETRIEVAL,
    score: Any = 0.5,
    revision: str = "r1",
    *,
    file: str | None = None,
    meta: Any = "right",
    splits: dict[str, Any] | None = None,
    **more: Any,
) -> Path:
    """Write a result as mteb does, but for what is given; `splits` are rows of scores by split."""
    metadata = task(name).metadata
    if splits is None:
        splits = {
            split: [row(score, subset, **{metadata.main_score: score}) for subset in task(name).hf_subsets]
            for split in metadata.eval_splits
        }
    whole = {
        "task_name": name,
        "dataset_revision": metadata.revision,
        "mteb_version": "2.26.0",
        "evaluation_time": 1.0,
        "kg_co2_emissions": None,
        "scores": splits,
    }
    folder = root / "results" / f"maker__{model}" / revision
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{file or name}.json"
    path.write_text(json.dumps(whole | more), encoding="utf-8")
    if meta == "right":
        meta = json.dumps({"name": f"maker/{model}", "revision": revision})
    if meta is not None:
        (folder / "model_meta.json").write_text(meta, encoding="utf-8")
    return path


def row(score: Any, subset: str = "default", **more: Any) -> dict[str, Any]:
    return {"hf_subset": subset, "languages": ["cmn-Hans"], "main_score": score, **more}


@dataclass(frozen=True)
class Told:
    """What came out: figures, and everything that a user can read."""

    data: dict[str, Any]
    text: str

    def score(self, model: str, name: str) -> float | None:
        """Return the one score of a model on a task; None where it has none."""
        found = {
            each["scores"][name]
            for each in self.data["results"]
            if each["model"] == model and each["scores"].get(name) is not None
        }
        assert len(found) < 2, f"{model} stands there with several scores of {name}"
        return next(iter(found), None)

    def names(self, word: str) -> bool:
        return any(word in note for note in self.data["notes"])


@dataclass
class Bench:
    """A small export whose models are scored once, beside which folders of results are read."""

    folder: Path
    export: Path
    number: int = 0

    def root(self) -> Path:
        self.number += 1
        return self.folder / f"others{self.number}"

    def told(self, root: Path, *names: str, groups: tuple[str, ...] = ()) -> Told:
        groups = groups or tuple(f"G{at}={name}" for at, name in enumerate(names))
        words = ["evaluate", str(self.export), "-m", "bm25", "--no-baselines", "--no-floors"]
        words += ["--out", str(self.folder / "out"), "--results", str(root)]
        words += [word for group in groups for word in ("--average", group)]
        done = curate(self.folder, *words, "--json", HF_HUB_OFFLINE="1")
        assert done.returncode == 0, done.stderr
        page = (self.folder / "out" / "README.md").read_text(encoding="utf-8")
        return Told(json.loads(done.stdout)["data"], done.stdout + done.stderr + page)


def good(root: Path, *names: str) -> None:
    """Write three ordinary models for each task."""
    for name in names or (RETRIEVAL,):
        for model, score in GOOD.items():
            put(root, model, name, score)
