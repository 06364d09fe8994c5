"""A task of sentence pairs, written by hand, whose card names the measure that leads."""

from pathlib import Path

import polars as pl
import yaml

from curate.system.files import sha256

PAIRS = [
    ("发烧怎么办", "发热怎么办", 5.0),
    ("胃疼吃什么药", "胃痛吃什么药", 4.9),
    ("高血压能喝咖啡吗", "高血压患者可以喝咖啡吗", 4.8),
    ("痛风能吃豆腐吗", "痛风病人能吃海鲜吗", 1.5),
    ("小儿发热怎么处理", "孩子发烧如何处理", 4.0),
    ("偏头痛怎么治", "偏头痛怎样预防", 1.0),
    ("发烧怎么办", "骨折怎么办", 0.2),
    ("胃疼", "耳鸣", 0.1),
    ("咳嗽有痰", "今天的股市行情", 0.0),
    ("糖尿病饮食", "糖尿病的饮食", 4.7),
    ("失眠怎么办", "睡不着怎么办", 3.0),
    ("肩周炎锻炼", "白内障手术", 0.05),
]


def sentence_task(folder: Path, measure: str) -> Path:
    """Write pairs of sentences as a task of the kind STS."""
    folder.mkdir(parents=True)
    table = pl.DataFrame(PAIRS, schema=["sentence1", "sentence2", "score"], orient="row")
    table.write_parquet(folder / "pairs.parquet")
    name = f"pairs-{sha256(folder / 'pairs.parquet')[:16]}.parquet"
    (folder / "pairs.parquet").rename(folder / name)
    front = {
        "configs": [{"config_name": "default", "data_files": [{"split": "test", "path": name}]}],
        "mteb": {
            "name": "own-sts",
            "type": "STS",
            "eval_langs": ["cmn-Hans"],
            "main_score": measure,
            "description": "pairs",
        },
    }
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump(front)}---\n", encoding="utf-8")
    return folder
