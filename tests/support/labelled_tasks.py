"""Hand-written folders of labelled texts, pairs and levels, and the kinds that evaluation finds them by."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from curate.system.files import sha256
from curate.tables.kinds.benchmark_kind import MtebClass
from tests.support.toy_kind import Fever

SCORERS = "curate.commands.evaluate"
WORDS = {0: ["肝炎", "乙肝", "转氨酶"], 1: ["胃痛", "反酸", "胃炎"], 2: ["癫痫", "头痛", "失眠"]}
FILL = ["怎么办", "需要吃什么药", "可以喝酒吗", "医生您好", "最近两天", "家里老人", "会不会传染", "能不能治好"]


class Labelled(Fever):
    """Classification, as the toy kind has it."""

    name = title = "labelled"
    scorer = f"{SCORERS}.scorers_by_type:ClassificationScorer"


class Clustered(Fever):
    name = title = "clustered"
    mteb = MtebClass("Clustering", "clustering.AbsTaskClustering", "v_measure", "V", "text-clustering")
    scorer = f"{SCORERS}.scorers_by_type:ClusteringScorer"


class Paired(Fever):
    name = title = "paired"
    mteb = MtebClass("PairClassification", "pair_classification.AbsTaskPairClassification", "max_ap", "AP", "x")
    scorer = f"{SCORERS}.scorers_by_type:PairClassificationScorer"


class Levelled(Fever):
    name = title = "levelled"
    mteb = MtebClass("STS", "sts.AbsTaskSTS", "cosine_spearman", "Spearman", "sentence-similarity")
    scorer = f"{SCORERS}.scorers_by_type:LevelScorer"


KINDS = {each.name: f"{__name__}:{each.__name__}" for each in (Labelled, Clustered, Paired, Levelled)}


def texts(number: int, seed: int = 1, extra: str = "") -> list[tuple[str, int]]:
    """Return different texts of three classes, of which two in three hold a word of their class."""
    import random

    draw, found = random.Random(seed), dict[str, int]()
    while len(found) < number:
        label = len(found) % 3
        word = draw.choice(WORDS[label] if draw.random() < 0.67 else WORDS[draw.randrange(3)])
        found.setdefault(f"{draw.choice(FILL)}{extra}{word}{draw.choice(FILL)}{draw.randrange(1000)}", label)
    return list(found.items())


def classification(folder: Path, train: Sequence[tuple[Any, Any]], test: Sequence[tuple[Any, Any]]) -> Path:
    """Write a classification task; rows are of text and label."""
    splits = {
        split: pl.DataFrame(rows, schema=["text", "label"], orient="row")
        for split, rows in (("train", train), ("test", test))
    }
    return task(folder, Labelled.mteb, splits, {})


def clustering(folder: Path, rows: Sequence[tuple[Any, Any]], **attributes: Any) -> Path:
    """Write a clustering task that embeds every text; rows are of text and label."""
    whole = {"max_fraction_of_documents_to_embed": None, "max_document_to_embed": 2048}
    table = pl.DataFrame(rows, schema=["sentences", "labels"], orient="row")
    return task(
        folder, Clustered.mteb, {"test": table}, {**whole, "max_documents_per_cluster": len(rows), **attributes}
    )


def pairs(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write a task of pair classification; rows have sentence1, sentence2 and labels."""
    return task(folder, Paired.mteb, {"test": pl.DataFrame(rows)}, {})


def levels(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write a task of levels; rows have sentence1, sentence2 and score."""
    return task(folder, Levelled.mteb, {"test": pl.DataFrame(rows)}, {"min_score": 0, "max_score": 4})


def task(folder: Path, mteb: MtebClass, splits: Mapping[str, pl.DataFrame], attributes: Mapping[str, Any]) -> Path:
    """Write a folder as the exporter `mteb` does, its files named by their content."""
    folder.mkdir(parents=True)
    named = []
    for split, table in splits.items():
        table.write_parquet(folder / "x.parquet")
        name = f"rows-{split}-{sha256(folder / 'x.parquet')[:16]}.parquet"
        (folder / "x.parquet").rename(folder / name)
        named.append({"split": split, "path": name})
    front = {
        "configs": [{"config_name": "default", "data_files": named}],
        "abstask": {"class": mteb.abstask, "attributes": dict(attributes)},
        "mteb": {
            "name": f"small-{folder.name}",
            "type": mteb.type,
            "eval_langs": ["cmn-Hans"],
            "main_score": mteb.main_score,
            "description": "small",
        },
    }
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump(front)}---\n", encoding="utf-8")
    return folder
