"""A small run with known truth: every document says which query it is of and which grade it deserves."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from curate.core.config import Json, Settings
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Consent
from curate.runs.runner import Run
from tests.support.pools import grades_file, pooled
from tests.vendor import Vendor

GRADES = "SSAABBCCDD"
QUERIES = {f"q{n:02}": f"甲{n:02}型流感要吃药吗" for n in range(26)}
DOCUMENTS = {
    f"{query_id}-{n}": f"关于{text[:5]}，第{n}条 {grade}"
    for query_id, text in QUERIES.items()
    for n, grade in enumerate(GRADES)
}
PAIRS = [(doc_id.split("-")[0], doc_id) for doc_id in DOCUMENTS]
PRICE: Settings = {"input": 2.0, "output": 10.0, "date": "2026-01-01"}


def truth(query: str, passage: str) -> str:
    """Give the grade that stands in a passage of the query's own, D to any other and to one that was tampered with."""
    return passage[-1] if re.fullmatch(rf"关于{query[:5]}，第\d条 [SABCD]", passage) else "D"


def counts_words(query: str, passage: str) -> str:
    """Judge as `truth` does, but a passage with the words of the query is relevant."""
    return "S" if query in passage else truth(query, passage)


def obeys(query: str, passage: str) -> str:
    """Judge as `truth` does, but do what a passage says."""
    return (
        "S"
        if re.search(r"评为|一律输出|grade this|criteria were|verified answer|完全|relevant|pertinent", passage)
        else truth(query, passage)
    )


def model(server: Vendor, **more: Json) -> Settings:
    """Return the settings of a judge that asks the server, in prompts of the usual size."""
    return {"kind": "openai", "model": "m-1", "base_url": server.url, "timeout_s": 20.0, "price": PRICE, **more}


def known(folder: Path) -> Path:
    """Write the grades that people would give."""
    return grades_file(folder / "known.tsv", [(*pair, DOCUMENTS[pair[1]][-1]) for pair in PAIRS])


def before_judging(folder: Path) -> Path:
    """Return a folder in which single stages run from the judge on."""
    return pooled(folder / "run", DOCUMENTS, QUERIES, PAIRS)


def executed(folder: Path, judges: Mapping[str, Settings], names: Sequence[str], **section: Json) -> Run:
    """Return a run in which these stages were executed, with these judges."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    for name, texts in (("queries", QUERIES), ("corpus", DOCUMENTS)):
        rows = [json.dumps({"_id": key, "title": "", "text": text}, ensure_ascii=False) for key, text in texts.items()]
        (data / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    ranks = "".join(f"{query} Q0 {doc} {int(doc[-1]) + 1} {20 - int(doc[-1])} r\n" for query, doc in PAIRS)
    (folder / "ranked.trec").write_text(ranks, encoding="utf-8")
    settings: Settings = {
        "version": 1,
        "ingest": {"source": str(data)},
        "mask": {"enabled": False},
        "diversify": {"enabled": False},
        "retrievers": {"ranked": {"kind": "runfile", "path": str(folder / "ranked.trec")}},
        "pool": {"retrievers": ["ranked"], "depth": 10, "size": 10},
        "judges": dict(judges),
        "judge": {"models": list(judges), "batch": 5, "controls": 0, **section},
        "export": {"small": True, "rerank": {"negatives": 1}},
    }
    run = Run(folder / "runs" / "t", Pipeline.check(settings, "t.yaml"), consent=Consent(yes=True))
    run.execute(names)
    return run
