"""A vendor of language models on loopback: a real HTTP server that reads our prompts and grades by a script.

    with vendor(lambda query, passage: "S" if query in passage else "D", faults=[error(429, retry_after=1)]) as server:
        config = ProviderConfig(kind="openai", model="m", base_url=server.url)   # kind anthropic: the same address
        ...
    assert len(server.calls) == 2

It speaks OpenAI chat completions (any path that ends in /chat/completions) and Anthropic messages (/v1/messages). The
script sees what a model could see: the texts between the markers of the prompt. `faults` are used up one a call, in the
order in which calls arrive; None is no fault; a function `(Call) -> Fault | None` decides a call at a time instead. A
fault changes the answer, so faults combine: `lambda answer: no_usage(cut(9)(answer))`.
"""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Script = Callable[[str, str], str]
BLOCK = re.compile(r"<(\w+) (\w+)>\n(.*?)\n</\1 \2>", re.DOTALL)


@dataclass(frozen=True)
class Answer:
    """What the vendor is about to say, before it is worded in the protocol of the caller."""

    text: str | None
    finish: str = "stop"
    """stop, length or refusal."""
    model: str = ""
    usage: Mapping[str, int] | None = None
    """Keys prompt, cached, written, output, reasoning; prompt includes cached and written."""
    reasoning: str | None = None
    status: int = 200
    code: str = ""
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before the first byte."""
    drop: bool = False
    """Close the connection in the middle of the body."""
    page: str | None = None
    """Sent as it is, instead of the protocol's JSON."""


Fault = Callable[[Answer], Answer]


@dataclass(frozen=True)
class Call:
    """One request as it arrived."""

    api: str
    """openai or anthropic."""
    model: str
    query: str
    passages: Mapping[str, str]
    """Label -> text, in the order of the prompt."""
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    """Names in lower case."""


@dataclass
class Vendor:
    """The running server, and what it has seen."""

    script: Script
    faults: Callable[[Call], Fault | None]
    key: str | None
    url: str = ""
    calls: list[Call] = field(default_factory=list)
    """Every call in order of arrival, refused ones too."""
    paid: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(model, query, passage) -> in how many whole answers of status 200 it stood: what a user pays for."""
    busy: int = 0
    peak: int = 0
    """Most calls that were open at the same time."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, call: Call) -> Answer:
        """Return the scripted answer to a call, after its fault."""
        with self.lock:
            self.calls.append(call)
            fault = self.faults(call)
        shown = call.headers.get("authorization", "") + call.headers.get("x-api-key", "")
        if self.key is not None and self.key not in shown:
            return error(401, "invalid_api_key", f"wrong key: {shown}")(Answer(None))
        grades = {label: self.script(call.query, text) for label, text in call.passages.items()}
        text = json.dumps(grades)
        usage = {"prompt": len(json.dumps(call.body["messages"])), "output": len(text)}
        plain = Answer(text, model=call.model, usage=usage)
        given = fault(plain) if fault else plain
        if given.status == 200 and not given.drop:
            with self.lock:
                self.paid.update((call.model, call.query, passage) for passage in call.passages.values())
        return given


def error(status: int, code: str = "", message: str = "", retry_after: float | str | None = None) -> Fault:
    """Refuse with an HTTP status, a vendor's code and message, and a Retry-After of seconds or a date."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return lambda answer: replace(answer, status=status, code=code, message=message, headers=headers)


def says(text: str | None, finish: str = "stop") -> Fault:
    """Answer with this text whatever was asked."""
    return lambda answer: replace(answer, text=text, finish=finish)


def page(body: str) -> Fault:
    """Send this body as it is, instead of the protocol's JSON."""
    return lambda answer: replace(answer, page=body)


def cut(characters: int) -> Fault:
    """Stop at the length bound after so many characters of the answer."""
    return lambda answer: replace(answer, text=(answer.text or "")[:characters], finish="length")


def edit(change: Callable[[dict[str, str]], Mapping[str, str]]) -> Fault:
    """Answer with changed grades: drop labels, add foreign ones, write wrong letters."""
    return lambda answer: replace(answer, text=json.dumps(change(json.loads(answer.text or "{}"))))


def missing(*labels: str) -> Fault:
    """Leave these labels out."""
    return edit(lambda grades: {label: grade for label, grade in grades.items() if label not in labels})


def slow(seconds: float) -> Fault:
    """Answer after a while."""
    return lambda answer: replace(answer, delay=seconds)


def null_content(answer: Answer) -> Answer:
    """Put the whole answer into the thoughts and leave the content null."""
    return replace(answer, text=None, reasoning=answer.text)


def refusal(answer: Answer) -> Answer:
    """Refuse to answer."""
    return replace(answer, text=None, finish="refusal")


def no_usage(answer: Answer) -> Answer:
    """Answer without a word on tokens."""
    return replace(answer, usage=None)


def drop(answer: Answer) -> Answer:
    """Break the connection in the middle of the answer."""
    return replace(answer, drop=True)


def used(**usage: int) -> Fault:
    """Report these tokens: prompt, cached, written, output, reasoning."""
    return lambda answer: replace(answer, usage=usage)


@contextmanager
def vendor(
    script: Script,
    faults: Sequence[Fault | None] | Callable[[Call], Fault | None] = (),
    key: str | None = None,
) -> Iterator[Vendor]:
    """Run the server while the `with` block lasts; `key`, if given, is the only one that it accepts."""
    waiting = iter(()) if callable(faults) else iter(faults)
    choose = faults if callable(faults) else lambda _call: next(waiting, None)
    state = Vendor(script, choose, key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(state: Vendor) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: unbuffered, each call would wait for a delayed acknowledgement

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            api = "openai" if self.path.endswith("/chat/completions") else "anthropic"
            with state.lock:
                state.busy += 1
                state.peak = max(state.peak, state.busy)
            try:
                answer = state.answer(_call(api, body, {name.lower(): value for name, value in self.headers.items()}))
                time.sleep(answer.delay)
            finally:
                with state.lock:
                    state.busy -= 1
            self._send(answer, _openai(answer) if api == "openai" else _anthropic(answer))

        def _send(self, answer: Answer, message: Mapping[str, Any]) -> None:
            data = (answer.page or json.dumps(message, ensure_ascii=False)).encode()
            self.send_response(answer.status)
            self.send_header("content-type", "application/json" if answer.page is None else "text/html")
            self.send_header("content-length", str(len(data)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.close_connection = answer.drop
            try:
                self.wfile.write(data[: len(data) // 2] if answer.drop else data)
                self.wfile.flush()
            except ConnectionError:  # the client gave up first
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
            pass

    return Handler


def _call(api: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> Call:
    user = next(turn["content"] for turn in body["messages"] if turn["role"] == "user")
    texts = {label: text for label, _code, text in BLOCK.findall(user)}
    query = texts.pop("query", "")
    return Call(api, body["model"], query, texts, body, headers)


def _openai(answer: Answer) -> dict[str, Any]:
    if answer.status != 200:
        return {"error": {"message": answer.message, "type": answer.code, "code": answer.code}}
    refused = answer.finish == "refusal"
    message = {"role": "assistant", "content": answer.text, "refusal": "No." if refused else None}
    if answer.reasoning is not None:
        message["reasoning_content"] = answer.reasoning
    choice = {"index": 0, "finish_reason": "stop" if refused else answer.finish, "message": message}
    usage: Any = answer.usage and {
        "prompt_tokens": answer.usage["prompt"],
        "completion_tokens": answer.usage["output"],
        "prompt_tokens_details": {"cached_tokens": answer.usage.get("cached", 0)},
        "completion_tokens_details": {"reasoning_tokens": answer.usage.get("reasoning", 0)},
    }
    return {"id": "c", "object": "chat.completion", "model": answer.model, "choices": [choice], "usage": usage}


def _anthropic(answer: Answer) -> dict[str, Any]:
    if answer.status != 200:
        return {"type": "error", "error": {"type": answer.code, "message": answer.message}}
    thoughts = [] if answer.reasoning is None else [{"type": "thinking", "thinking": answer.reasoning}]
    texts = [] if answer.text is None else [{"type": "text", "text": answer.text}]
    stop = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"}[answer.finish]
    cached, written = ((answer.usage or {}).get(name, 0) for name in ("cached", "written"))
    usage: Any = answer.usage and {
        "input_tokens": answer.usage["prompt"] - cached - written,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": answer.usage["output"],
        "output_tokens_details": {"thinking_tokens": answer.usage.get("reasoning", 0)},
    }
    head = {"id": "m", "type": "message", "role": "assistant", "model": answer.model}
    return {**head, "content": [*thoughts, *texts], "stop_reason": stop, "usage": usage}
