"""One contender of judge_engine.py in a process of its own: sends the prompts of a file, prints seconds and CPU.

It needs nothing of curate but for the contender of that name, so that it also runs in bespokelabs-curator's own virtual
environment. Run: python benchmarks/contenders.py NAME PROMPTS.jsonl URL CONCURRENCY CALLS
"""

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

Body = dict[str, Any]
Send = Callable[[Body], Awaitable[object]]
FIGURES: dict[str, float] = {}


@contextmanager
def measured() -> Iterator[None]:
    """Take seconds and CPU seconds of the block; imports and the building of clients stand before it."""
    wall, used = time.perf_counter(), _cpu()
    yield
    FIGURES.update(seconds=time.perf_counter() - wall, cpu=_cpu() - used)


def bodies(prompts: Path) -> Iterator[Body]:
    """Yield the JSON bodies of a file, one per line."""
    with prompts.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


async def looped(send: Send, prompts: Path, concurrency: int) -> None:
    """Send all prompts, at most `concurrency` at a time: the loop that one writes first."""
    free = asyncio.Semaphore(concurrency)

    async def one(body: Body) -> None:
        async with free:
            await send(body)

    with measured():
        await asyncio.gather(*(one(body) for body in bodies(prompts)))


async def sockets(prompts: Path, url: str, concurrency: int, calls: int) -> None:
    """Send one prompt again and again with no HTTP client at all: what the server can do."""
    body = json.dumps(next(bodies(prompts)), ensure_ascii=False).encode()
    host, _, port = url.removeprefix("http://").partition(":")
    request = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    left, over = [calls, calls], asyncio.Event()

    class Socket(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport = transport
            self.send()

        def send(self) -> None:
            if left[0]:
                left[0] -= 1
                self.transport.write(request)

        def data_received(self, _data: bytes) -> None:
            left[1] -= 1  # an answer is one small packet
            self.send()
            if not left[1]:
                over.set()

    with measured():
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.create_connection(Socket, host, int(port)) for _ in range(concurrency)))
        await over.wait()


async def plain(prompts: Path, url: str, concurrency: int, _calls: int) -> None:
    """Use one client of the SDK as its manual shows it."""
    import openai

    async with openai.AsyncOpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0) as client:
        await looped(lambda body: client.chat.completions.create(**body), prompts, concurrency)


async def sharded(prompts: Path, url: str, concurrency: int, _calls: int) -> None:
    """Use clients of 16 connections each in turn."""
    import openai

    size = 16
    clients = [
        openai.AsyncOpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0) for _ in range(-(-concurrency // size))
    ]
    turns = cycle(clients)
    await looped(lambda body: next(turns).chat.completions.create(**body), prompts, concurrency)
    for client in clients:
        await client.close()


async def over_aiohttp(prompts: Path, url: str, concurrency: int, _calls: int) -> None:
    """Use the SDK's own aiohttp transport."""
    import openai

    http = openai.DefaultAioHttpClient()
    async with openai.AsyncOpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0, http_client=http) as client:
        await looped(lambda body: client.chat.completions.create(**body), prompts, concurrency)


def curate(_prompts: Path, url: str, concurrency: int, calls: int) -> None:
    """Use our engine, with a ledger on the disk."""
    from benchmarks.engine import judge

    with tempfile.TemporaryDirectory() as folder:
        judge(url, concurrency, calls, Path(folder) / "ledger.db", measured)


def bespokelabs(prompts: Path, url: str, concurrency: int, _calls: int) -> None:
    """Use bespokelabs-curator, without its cache of earlier answers, its telemetry and its progress bars."""
    os.environ |= {
        "CURATOR_DISABLE_CACHE": "1",
        "CURATOR_DISABLE_RICH_DISPLAY": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": f"{url}/v1",
        "TELEMETRY_ENABLED": "false",
    }
    from importlib.util import find_spec

    found = find_spec("litellm")
    assert found is not None
    assert found.origin is not None
    # It would load the tokenizer's table from the internet; litellm, which it depends on, ships a copy.
    os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(found.origin).parent / "litellm_core_utils" / "tokenizers")
    from bespokelabs import curator

    class Grader(curator.LLM):
        def prompt(self, row: Body) -> list[Body]:
            return row["messages"]

        def parse(self, _row: Body, response: str) -> Body:
            return {"grades": response}

    limits = {"max_requests_per_minute": 10**6, "max_tokens_per_minute": 10**9, "max_concurrent_requests": concurrency}
    with tempfile.TemporaryDirectory() as folder:
        grader = Grader(model_name="gpt-4o-mini", backend="openai", backend_params={"base_url": f"{url}/v1", **limits})
        rows = [{"messages": body["messages"]} for body in bodies(prompts)]
        with measured():
            grader(rows, working_dir=folder)


CONTENDERS: dict[str, Callable[[Path, str, int, int], Any]] = {
    "sockets": sockets,
    "curate": curate,
    "plain": plain,
    "sharded": sharded,
    "aiohttp": over_aiohttp,
    "bespokelabs": bespokelabs,
}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def main(arguments: Sequence[str]) -> None:
    """Run one contender and print its figures as JSON on the last line."""
    name, prompts, url, concurrency, calls = arguments
    running = CONTENDERS[name](Path(prompts), url, int(concurrency), int(calls))
    if running is not None:
        asyncio.run(running)
    print(json.dumps({**FIGURES, "peak_mb": _peak_mb()}))


if __name__ == "__main__":
    main(sys.argv[1:])
