"""The engine as the benchmark asks it: the whole way from texts to ratings on the disk, with prompts of about 4 KB."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from curate.ask import rating
from curate.ask.judges.llm import LlmJudge
from curate.ask.rating import Key, Work
from curate.core.config import canonical, read_yaml
from curate.core.records import Document, Query
from curate.ledger import Ledger
from curate.llm import client
from curate.llm.prompts import rubric
from curate.llm.providers.openai import OpenAIProvider
from curate.llm.providers.settings import ProviderConfig

ROOT = Path(__file__).resolve().parents[1]
BATCH = 10
"""Passages in a prompt."""
DEPTH = 500
"""Passages of a query."""
LENGTH = 60
"""Characters of a passage, which make a prompt of about 4 KB in UTF-8."""
CORPUS = 5_000


def work(calls: int) -> Iterator[Work]:
    """Yield so many prompts' work: all pairs differ, while queries share a corpus as they do in a real pool."""
    lines = (ROOT / "curate" / "demo" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    text = "".join(json.loads(line)["text"] for line in lines).replace("\n", "")
    starts = [number * (len(text) - LENGTH) // CORPUS for number in range(CORPUS)]
    corpus = [Document(f"d{n}", "", f"{n}：{text[start : start + LENGTH]}") for n, start in enumerate(starts)]
    for call in range(calls):
        query, place = divmod(call * BATCH, DEPTH)
        first = (query * 7 + place) % (CORPUS - BATCH)
        yield Work(Query(f"q{query}", f"第{query}个问题：儿童发烧应该怎么办？"), tuple(corpus[first : first + BATCH]))


def judge(
    url: str, concurrency: int, calls: int, ledger_path: Path, measured: Callable[[], AbstractContextManager[None]]
) -> None:
    """Judge so many prompts; RuntimeError unless all ratings are in the ledger."""
    import openai  # noqa: F401 - the others import theirs before the clock starts, too

    provider, llm = _judge(url, concurrency)
    with Ledger(ledger_path) as ledger:
        key = Key(ledger.register(llm.identity), llm.rubric.digest)
        with measured():
            _ask(llm, provider, ledger, key, work(calls), concurrency)
        if ledger.count("ratings") != calls * BATCH or ledger.count("calls") != calls:
            raise RuntimeError(f"found {ledger.count('ratings')} ratings of {calls} calls in the ledger")


def prompts(calls: int, path: Path) -> None:
    """Write the same prompts for the other contenders: the JSON body of a request on each line."""
    provider, llm = _judge("http://127.0.0.1", 1)
    with path.open("w", encoding="utf-8") as file:
        for each in work(calls):
            request = llm.build(each.query.text, [passage.shown() for passage in each.passages])
            file.write(canonical(provider.body(request)) + "\n")


def _judge(url: str, concurrency: int) -> tuple[OpenAIProvider, LlmJudge]:
    provider = OpenAIProvider(ProviderConfig(model="m", base_url=f"{url}/v1", concurrency=concurrency))
    asked = rubric(read_yaml(ROOT / "prompts" / "rubric-zh.yaml"), "rubric-zh")
    return provider, LlmJudge("m", asked, provider.identity)


def _ask(
    llm: LlmJudge, provider: OpenAIProvider, ledger: Ledger, key: Key, jobs: Iterator[Work], concurrency: int
) -> None:
    account = client.Account(key.judge_digest, key.rubric_digest, run="bench")
    limits = client.RequestLimits(concurrency=concurrency)
    client.ask([client.Job("m", rating.tasks(llm, jobs, key), provider, account, limits)], ledger)
