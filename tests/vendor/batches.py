"""Batches of both vendors: files and batches of OpenAI, message batches of Anthropic, in states that polls move on."""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.vendor.records import Call, Fault, call
from tests.vendor.state import Vendor
from tests.vendor.wording import worded

Fate = Literal["succeeded", "missing", "errored", "expired", "canceled"]
MB = 1_000_000


def all_succeed(_call: Call) -> Fate:
    """Answer every item."""
    return "succeeded"


@dataclass(frozen=True)
class Rules:
    """How batches go."""

    steps: Sequence[str] = ("validating", "in_progress", "finalizing")
    """What one poll after the other is told before the end; Anthropic calls all of them in_progress."""
    end: Literal["completed", "failed", "expired"] = "completed"
    """How OpenAI's batches end; items that their fate lets succeed are in the output file even if it is `expired`."""
    fate: Callable[[Call], Fate] = all_succeed
    """What becomes of an item; `missing` is in no file at all."""
    trouble: Callable[[str, str], Fault | None] = lambda _method, _path: None
    """A fault of the requests around batches, by method and path: a refusal does nothing, a broken answer did it."""
    most_lines: int = 50_000
    most_bytes: int = 200 * MB
    most_requests: int = 100_000
    most_request_bytes: int = 256 * MB


@dataclass
class Item:
    """One request of a batch; the result is there once the batch has ended."""

    custom_id: str
    call: Call
    result: tuple[Fate, int, dict[str, Any]] = ("canceled", 0, {})
    """Fate, HTTP status, and the JSON of the message or of the error."""


@dataclass
class Batch:
    """One batch of either vendor."""

    id: str
    items: list[Item]
    about: Mapping[str, Any]
    """What the vendor repeats of the request that made it."""
    errors: list[dict[str, Any]] = field(default_factory=list)
    """Why it failed its validation."""
    polls: int = 0
    cancelled_at: int | None = None
    """The poll before which it was cancelled."""
    over: bool = False
    files: dict[str, str] = field(default_factory=dict)
    """Of an ended batch of OpenAI: output and error -> id of the file, without those that would be empty."""


@dataclass
class Batches:
    """All files and batches of a running vendor."""

    vendor: Vendor
    rules: Rules
    files: dict[str, tuple[dict[str, Any], bytes]] = field(default_factory=dict)
    """Id -> what is told of it, and its content."""
    kept: dict[str, Batch] = field(default_factory=dict)

    def store(self, name: str, purpose: str, content: bytes) -> dict[str, Any]:
        """Keep a file; return what is told of it."""
        shown = {"id": f"file-{len(self.files)}", "object": "file", "bytes": len(content), "created_at": 1_700_000_000}
        shown |= {"filename": name, "purpose": purpose, "status": "processed"}
        self.files[str(shown["id"])] = shown, content
        return shown

    def start(self, items: list[Item], about: Mapping[str, Any], errors: Sequence[dict[str, Any]] = ()) -> Batch:
        """Take a batch on; one with errors ends as failed."""
        prefix = "batch" if "input_file_id" in about else "msgbatch"
        batch = Batch(f"{prefix}_{len(self.kept)}", items, about, list(errors))
        self.kept[batch.id] = batch
        return batch

    def state(self, batch: Batch) -> str:
        """Return the state of a batch without moving it on."""
        steps = self.rules.steps
        if batch.over:
            failed = bool(batch.errors) or self.rules.end == "failed"
            return "failed" if failed else self.rules.end if batch.cancelled_at is None else "cancelled"
        if batch.cancelled_at is not None or not steps:
            return "in_progress" if batch.cancelled_at is None else "cancelling"
        return steps[min(batch.polls, len(steps) - 1)]

    def poll(self, batch: Batch) -> str:
        """Return the state that this poll is told, and move on; the last move answers the items and bills them."""
        last = len(self.rules.steps) if batch.cancelled_at is None else batch.cancelled_at + 1
        if batch.polls >= last and not batch.over:
            self._end(batch)
        state = self.state(batch)
        batch.polls += 1
        return state

    def cancel(self, batch: Batch) -> None:
        """Stop a batch after one more poll; every second item was answered before that, and is billed."""
        if not batch.over and batch.cancelled_at is None:
            batch.cancelled_at = batch.polls

    def _end(self, batch: Batch) -> None:
        batch.over = True
        for number, item in enumerate([] if self.state(batch) == "failed" else batch.items):
            if batch.cancelled_at is None or number % 2 == 0:
                item.result = self._result(item.call)

    def _result(self, asked: Call) -> tuple[Fate, int, dict[str, Any]]:
        fate = self.rules.fate(asked)
        if fate in ("missing", "expired", "canceled"):
            return fate, 0, {}
        answer = self.vendor.scripted(asked, self.vendor.faults(asked))
        if fate == "succeeded" and answer.paid:
            self.vendor.paid_in_batches.update(asked.pairs)
            return "succeeded", 200, worded(asked.api, answer)
        if answer.status != 200:
            return "errored", answer.status, worded(asked.api, answer)
        error = {"message": "The server had an error", "type": "server_error", "code": "server_error"}
        return "errored", 500, {"error": error} if asked.api == "openai" else {"type": "error", "error": error}


def shuffled(batch: Batch) -> Iterator[tuple[Item, Fate, int, dict[str, Any]]]:
    """Yield the items that are not missing with their results, in an order that is not that of the requests."""
    items = list(batch.items)
    random.Random(batch.id).shuffle(items)
    for item in items:
        if item.result[0] != "missing":
            yield (item, *item.result)


def lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def read_lines(content: bytes, headers: Mapping[str, str]) -> tuple[list[Item], list[dict[str, Any]]]:
    """Return the items of an input file, or the errors of its validation."""
    items, errors, seen = [], [], set()
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            row = json.loads(line)
            items.append(Item(row["custom_id"], call("openai", row["body"], headers)))
        except (ValueError, KeyError, TypeError):
            told = {"code": "invalid_json_line", "message": "This line is not parseable as valid JSON."}
            errors.append({**told, "line": number, "param": None})
            continue
        if row["custom_id"] in seen or row.get("url") != "/v1/chat/completions":
            code = "duplicate_custom_id" if row["custom_id"] in seen else "url_mismatch"
            errors.append({"code": code, "message": code.replace("_", " "), "line": number, "param": None})
        seen.add(row["custom_id"])
    if len({item.call.model for item in items}) > 1:
        errors.append({"code": "model_mismatch", "message": "One file, one model.", "line": None, "param": "model"})
    return items, errors
