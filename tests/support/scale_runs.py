"""Small runs on scales that are not the five grades; the judges are heuristics."""

from dataclasses import dataclass
from pathlib import Path

import yaml

from curate.core.config import read_yaml
from tests import ROOT
from tests.support.runs import ran, tiny

SEVEN = {
    "grades": {
        "完全相关": "完整回答了问题。",
        "很相关": "回答了问题的主要部分。",
        "较相关": "回答了一部分。",
        "一般": "略有帮助。",
        "略相关": "主题相同，没有回答。",
        "不相关": "主题不同。",
        "无效": "读不懂。",
    },
    "relevant_from": "较相关",
    "gains": {"完全相关": 10, "很相关": 6, "较相关": 3, "一般": 1, "略相关": 0, "不相关": 0, "无效": 0},
    "translations": {},
    "name": "seven",
}


@dataclass(frozen=True)
class Case:
    """A scale, and what people answer in a sheet: one label as a spreadsheet or a hurried person may write it."""

    rubric: str
    strict: dict[str, float]
    """Thresholds of a second heuristic."""
    typed: str
    meant: str
    wrong: str


CASES = {
    "0-3": Case("rubric-zh-trec", {"3": 0.9, "2": 0.7, "1": 0.4}, " ３", "3", "4"),
    "yes-no": Case("rubric-zh-binary", {"yes": 0.7}, "YES", "yes", "maybe"),
    "seven": Case(
        "seven", dict(zip(SEVEN["grades"], (0.9, 0.8, 0.7, 0.5, 0.4, 0.2), strict=False)), "很相关", "很相关", "相关"
    ),
}


def make(folder: Path, case: Case) -> None:
    """Run the tiny pipeline once on a scale, in a folder; its run is runs/tiny."""
    tiny(folder)
    (folder / "prompts").mkdir()
    base = read_yaml(ROOT / "prompts" / "rubric-zh.yaml")
    (folder / "prompts" / "seven.yaml").write_text(
        yaml.safe_dump({**base, **SEVEN}, allow_unicode=True, sort_keys=False), encoding="utf-8"
    )
    settings = yaml.safe_load((folder / "tiny.yaml").read_text(encoding="utf-8"))
    settings["judges"]["strict"]["thresholds"] = case.strict
    settings["judge"]["rubric"] = case.rubric
    settings["export"]["labels"] = "both"
    (folder / "tiny.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    ran(folder, "run", "tiny.yaml")
