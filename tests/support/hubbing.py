"""A server that speaks the part of the Hugging Face hub's protocol by which a data set is made and filled."""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.http_server import Reply, serving


@dataclass
class Hub:
    """What the server was told."""

    url: str = ""
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """Name -> path -> content."""
    private: dict[str, bool] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    requests: list[str] = field(default_factory=list)
    refuse: int | None = None
    """A status that every request is answered with."""


@contextmanager
def hub() -> Iterator[Hub]:
    """Run the server on a free port of loopback."""
    state = Hub()

    def answer(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        state.requests.append(f"{method} {path}")
        state.tokens.add(headers.get("authorization", ""))
        status, data = (state.refuse, {}) if state.refuse else reply(state, path.partition("?")[0], body)
        return status, {"content-type": "application/json"}, json.dumps(data).encode()

    with serving(answer) as state.url:
        yield state


def reply(state: Hub, path: str, body: bytes) -> tuple[int, Any]:
    """Return status and JSON of an answer."""
    if path == "/api/repos/create":
        asked = json.loads(body)
        name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
        new = name not in state.repositories
        state.repositories.setdefault(name, {})
        state.private.setdefault(name, asked.get("visibility") == "private")
        return (200 if new else 409), {"url": f"{state.url}/datasets/{name}"}
    if path == "/api/validate-yaml":
        return 200, {"errors": [], "warnings": []}
    _, _, kind, organisation, name, *rest = path.split("/")
    repository = f"{organisation}/{name}"
    files = state.repositories[repository]
    step = rest[0] if rest else ""
    answers: dict[str, Any] = {
        "": {"id": repository, "private": state.private[repository], "sha": "1", "siblings": [], "tags": []},
        "tree": [{"type": "file", "path": each, "size": len(files[each]), "oid": "1"} for each in files],
        "commit": {"commitUrl": f"{state.url}/datasets/{repository}/commit/1", "commitOid": "1", "success": True},
    }
    if step == "preupload":
        asked = [each["path"] for each in json.loads(body)["files"]]
        answers[step] = {"files": [{"path": each, "uploadMode": "regular", "shouldIgnore": False} for each in asked]}
    if step == "commit":
        commit(files, body)
    return (200, answers[step]) if kind == "datasets" else (404, {})


def commit(files: dict[str, bytes], body: bytes) -> None:
    """Do what the lines of a commit say."""
    for line in body.splitlines():
        item = json.loads(line)
        if item["key"] == "file":
            files[item["value"]["path"]] = base64.b64decode(item["value"]["content"])
        elif item["key"] == "deletedFile":
            files.pop(item["value"]["path"])
