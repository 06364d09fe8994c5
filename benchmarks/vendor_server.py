"""A fast vendor of language models on loopback, in a process of its own: it costs the client it measures nothing.

It speaks OpenAI chat completions and Anthropic messages as far as our prompts need: each passage between the markers of
the prompt gets the grade that its text comes to, after a settable latency. GET /counters tells what it has seen.
Run: python benchmarks/vendor_server.py [--latency 0.3] [--port 0]; it prints its address and serves until it is killed.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar
from urllib.request import urlopen

GRADES = "SABCD"
BLOCK = re.compile(r"<(\w+) (\w+)>\n(.*?)\n</\1 \2>", re.DOTALL)
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@contextmanager
def serving(latency: float) -> Iterator[str]:
    """Run the server in another process while the block lasts, and give its address."""
    command = [sys.executable, __file__, "--latency", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def counters(url: str) -> dict[str, int]:
    """Return what a server has counted: requests, connections, peak of open requests, grades given."""
    with urlopen(f"{url}/counters") as reply:
        return dict(json.load(reply))


def grade(passage: str) -> str:
    """Return the grade of a passage: the same text always gets the same one."""
    return GRADES[zlib.crc32(passage.encode()) % len(GRADES)]


def answer(path: bytes, body: bytes) -> bytes:
    """Return the JSON that answers a request."""
    asked = json.loads(body)
    user = next(
        (turn["content"] for turn in asked["messages"] if turn["role"] == "user"), ""
    )  # bespokelabs-curator first sends none
    grades = {label: grade(text) for label, _code, text in BLOCK.findall(user) if label != "query"}
    word = _openai if path.endswith(b"/chat/completions") else _anthropic
    return json.dumps(word(asked["model"], json.dumps(grades), len(body) // 3, 8 * len(grades))).encode()


class Connection(asyncio.Protocol):
    """One kept-alive connection; requests on it are answered one after the other."""

    latency: ClassVar[float] = 0.0
    seen: ClassVar[Counter[str]] = Counter()
    transport: asyncio.Transport

    def __init__(self) -> None:
        self.waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.seen["connections"] += 1

    def data_received(self, data: bytes) -> None:
        """Take every request that is whole."""
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            length = LENGTH.search(self.waiting, 0, end)
            start, size = end + 4, int(length[1]) if length else 0
            if len(self.waiting) < start + size:
                return
            path = self.waiting[: self.waiting.index(b"\r\n")].split(b" ")[1]
            body, self.waiting = self.waiting[start : start + size], self.waiting[start + size :]
            self._take(path, body)

    def _take(self, path: bytes, body: bytes) -> None:
        if path == b"/counters":
            self._send(json.dumps(self.seen).encode())
            return
        seen = self.seen
        seen["requests"] += 1
        seen["open"] += 1
        seen["peak"] = max(seen["peak"], seen["open"])
        asyncio.get_running_loop().call_later(self.latency, self._answer, path, body)

    def _answer(self, path: bytes, body: bytes) -> None:
        self.seen["open"] -= 1
        self._send(answer(path, body))

    def _send(self, text: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(text)
        self.transport.write(head + text)


def _openai(model: str, text: str, prompt: int, output: int) -> Mapping[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message, "logprobs": None}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output},
    }


def _anthropic(model: str, text: str, prompt: int, output: int) -> Mapping[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": prompt, "output_tokens": output},
    }


async def serve(port: int) -> None:
    """Print the address, and serve until the process is killed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", port, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.3, help="seconds from a request to its answer")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    options = parser.parse_args()
    Connection.latency = options.latency
    asyncio.run(serve(options.port))
