"""The requests around OpenAI's files and batches."""

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from tests.vendor.batches import Batch, Batches, lines, read_lines, shuffled
from tests.vendor.http import Asked
from tests.vendor.refused import Refused

Said = Mapping[str, Any] | bytes
EXPIRED = {
    "code": "batch_expired",
    "message": "This request could not be executed before the completion window expired.",
}


def upload(batches: Batches, asked: Asked) -> Said:
    """Keep a file that came as a form of several parts."""
    boundary = re.search(r'boundary="?([^";]+)', asked.headers["content-type"])
    assert boundary is not None
    parts = {}
    for part in asked.body.split(b"--" + boundary[1].encode())[1:-1]:
        head, _, content = part[2:-2].partition(b"\r\n\r\n")
        names = dict(re.findall(r'(\w+)="([^"]*)"', head.decode("utf-8")))
        parts[names["name"]] = (names.get("filename", ""), content)
    name, content = parts["file"]
    if len(content) > batches.rules.most_bytes:
        raise Refused(400, "invalid_request_error", "File is too large.")
    return batches.store(name, parts["purpose"][1].decode(), content)


def file(batches: Batches, _asked: Asked, name: str) -> Said:
    """Return what is known of a file."""
    return _file(batches, name)[0]


def content(batches: Batches, _asked: Asked, name: str) -> Said:
    """Return what stands in a file."""
    return _file(batches, name)[1]


def create(batches: Batches, asked: Asked) -> Said:
    """Start a batch; what is wrong with its file is told by its state, later."""
    about = json.loads(asked.body)
    items, errors = read_lines(_file(batches, about["input_file_id"])[1], asked.headers)
    if len(items) > batches.rules.most_lines:
        errors.append({"code": "too_many_tasks", "message": f"{len(items)} requests are too many.", "line": None})
    if not items and not errors:
        errors.append({"code": "empty_file", "message": "The file is empty.", "line": None})
    return _shown(batches, batches.start(items, about, errors), "validating")


def retrieve(batches: Batches, _asked: Asked, name: str) -> Said:
    """Return a batch as it stands at this poll."""
    return _polled(batches, _batch(batches, name))


def cancel(batches: Batches, _asked: Asked, name: str) -> Said:
    """Stop a batch."""
    batch = _batch(batches, name)
    if batch.over:
        raise Refused(409, "invalid_request_error", "Cannot cancel a batch that is over.")
    batches.cancel(batch)
    return _shown(batches, batch, "cancelling")


def listed(batches: Batches, asked: Asked) -> Said:
    """Return a page of batches, newest first; asking for it is no poll."""
    wanted = parse_qs(asked.query)
    every = [each for each in reversed(batches.kept.values()) if each.id.startswith("batch_")]
    after, limit = wanted.get("after", [""])[0], int(wanted.get("limit", ["20"])[0])
    start = next((place for place, each in enumerate(every, start=1) if each.id == after), 0)
    found = [_shown(batches, each, batches.state(each)) for each in every[start : start + limit]]
    ends = {"first_id": found[0]["id"], "last_id": found[-1]["id"]} if found else {"first_id": None, "last_id": None}
    return {"object": "list", "data": found, "has_more": start + limit < len(every), **ends}


ROUTES: Mapping[tuple[str, str], Callable[..., Said]] = {
    ("POST", r"/files"): upload,
    ("GET", r"/files/([^/]+)"): file,
    ("GET", r"/files/([^/]+)/content"): content,
    ("POST", r"/batches"): create,
    ("GET", r"/batches"): listed,
    ("GET", r"/batches/([^/]+)"): retrieve,
    ("POST", r"/batches/([^/]+)/cancel"): cancel,
}


def _file(batches: Batches, name: str) -> tuple[dict[str, Any], bytes]:
    if name not in batches.files:
        raise Refused(404, "not_found", f"No such File object: {name}")
    return batches.files[name]


def _batch(batches: Batches, name: str) -> Batch:
    if name not in batches.kept:
        raise Refused(404, "not_found", f"No batch found with id '{name}'.")
    return batches.kept[name]


def _polled(batches: Batches, batch: Batch) -> dict[str, Any]:
    state = batches.poll(batch)
    if batch.over and not batch.errors and not batch.files:
        _write(batches, batch)
    return _shown(batches, batch, state)


def _write(batches: Batches, batch: Batch) -> None:
    """Write what succeeded into one file and the rest into another; nothing is said of what was cancelled."""
    good: list[dict[str, Any]] = []
    bad: list[dict[str, Any]] = []
    for item, fate, status, body in shuffled(batch):
        row = {"id": f"batch_req_{item.custom_id[:8]}", "custom_id": item.custom_id, "error": None, "response": None}
        response = {"status_code": status, "request_id": "req_1", "body": body}
        if fate == "succeeded":
            good.append({**row, "response": response})
        elif fate == "errored":
            bad.append({**row, "response": response})
        elif fate == "expired":
            bad.append({**row, "error": EXPIRED})
    for kind, rows in (("output", good), ("error", bad)):
        if rows:
            batch.files[kind] = batches.store(f"{batch.id}_{kind}.jsonl", "batch_output", lines(rows))["id"]


def _shown(batches: Batches, batch: Batch, state: str) -> dict[str, Any]:
    fates = [item.result[0] for item in batch.items] if batch.over else []
    return {
        "object": "batch",
        "id": batch.id,
        "created_at": int(time.time()),
        "status": state,
        **{name: batch.about.get(name) for name in ("endpoint", "completion_window", "input_file_id", "metadata")},
        "output_file_id": batch.files.get("output"),
        "error_file_id": batch.files.get("error"),
        "errors": {"object": "list", "data": batch.errors} if state == "failed" else None,
        "request_counts": {
            "total": len(batch.items),
            "completed": fates.count("succeeded"),
            "failed": sum(fate in ("errored", "expired") for fate in fates),
        },
    }
