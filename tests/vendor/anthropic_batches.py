"""The requests around Anthropic's message batches."""

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from tests.vendor.batches import Batch, Batches, Item, lines, shuffled
from tests.vendor.http import Asked
from tests.vendor.records import call
from tests.vendor.refused import Refused

Said = Mapping[str, Any] | bytes
_DAY, _NEXT_DAY = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def create(batches: Batches, asked: Asked) -> Said:
    """Start a batch; what is wrong with the request is told at once."""
    if len(asked.body) > batches.rules.most_request_bytes:
        raise Refused(413, "request_too_large", "Request exceeds the maximum size")
    requests = json.loads(asked.body)["requests"]
    names = [each["custom_id"] for each in requests]
    if not 0 < len(names) <= batches.rules.most_requests:
        message = f"requests: a batch has 1 to {batches.rules.most_requests} requests"
        raise Refused(400, "invalid_request_error", message)
    if len(set(names)) < len(names) or not all(0 < len(name) <= 64 for name in names):
        raise Refused(400, "invalid_request_error", "custom_id: must be unique, 1 to 64 characters")
    items = [Item(each["custom_id"], call("anthropic", each["params"], asked.headers)) for each in requests]
    return _shown(asked, batches.start(items, {}), "in_progress")


def retrieve(batches: Batches, asked: Asked, name: str) -> Said:
    """Return a batch as it stands at this poll."""
    batch = _batch(batches, name)
    state = batches.poll(batch)
    return _shown(asked, batch, "ended" if batch.over else "canceling" if state == "cancelling" else "in_progress")


def cancel(batches: Batches, asked: Asked, name: str) -> Said:
    """Stop a batch; one that has ended stays as it is."""
    batch = _batch(batches, name)
    batches.cancel(batch)
    return _shown(asked, batch, "ended" if batch.over else "canceling")


def listed(batches: Batches, asked: Asked) -> Said:
    """Return a page of batches, newest first; asking for it is no poll."""
    wanted = parse_qs(asked.query)
    every = [each for each in reversed(batches.kept.values()) if each.id.startswith("msgbatch_")]
    after, limit = wanted.get("after_id", [""])[0], int(wanted.get("limit", ["20"])[0])
    start = next((place for place, each in enumerate(every, start=1) if each.id == after), 0)
    states = {"cancelling": "canceling"}
    found = [
        _shown(asked, each, "ended" if each.over else states.get(batches.state(each), "in_progress"))
        for each in every[start : start + limit]
    ]
    ends = {"first_id": found[0]["id"], "last_id": found[-1]["id"]} if found else {"first_id": None, "last_id": None}
    return {"data": found, "has_more": start + limit < len(every), **ends}


def results(batches: Batches, _asked: Asked, name: str) -> Said:
    """Return a line per item of an ended batch."""
    batch = _batch(batches, name)
    if not batch.over:
        raise Refused(404, "not_found_error", "The batch has not ended")
    rows = []
    for item, fate, _status, body in shuffled(batch):
        result: dict[str, Any] = {"type": fate}
        if fate == "succeeded":
            result["message"] = body
        elif fate == "errored":
            result["error"] = {**body, "request_id": "req_1"}
        rows.append({"custom_id": item.custom_id, "result": result})
    return lines(rows)


ROUTES: Mapping[tuple[str, str], Callable[..., Said]] = {
    ("POST", r"/messages/batches"): create,
    ("GET", r"/messages/batches"): listed,
    ("GET", r"/messages/batches/([^/]+)"): retrieve,
    ("GET", r"/messages/batches/([^/]+)/results"): results,
    ("POST", r"/messages/batches/([^/]+)/cancel"): cancel,
}


def _batch(batches: Batches, name: str) -> Batch:
    if name not in batches.kept:
        raise Refused(404, "not_found_error", f"No batch {name}")
    return batches.kept[name]


def _shown(asked: Asked, batch: Batch, state: str) -> dict[str, Any]:
    fates = [item.result[0] for item in batch.items] if batch.over else []
    counts = {name: fates.count(name) for name in ("succeeded", "errored", "expired", "canceled")}
    address = f"http://{asked.headers['host']}/v1/messages/batches/{batch.id}"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": state,
        "request_counts": {**counts, "processing": len(batch.items) - sum(counts.values())},
        "created_at": _DAY,
        "expires_at": _NEXT_DAY,
        "ended_at": _DAY if batch.over else None,
        "archived_at": None,
        "cancel_initiated_at": None if batch.cancelled_at is None else _DAY,
        "results_url": f"{address}/results" if batch.over else None,
    }
