"""A server that speaks the part of the Hugging Face hub's protocol by which a data set is made and filled."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


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

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["content-length"] or 0)))

        def _answer(self, body: bytes) -> None:
            state.requests.append(f"{self.command} {self.path}")
            state.tokens.add(self.headers.get("authorization", ""))
            status, data = (state.refuse, {}) if state.refuse else reply(state, self.path.partition("?")[0], body)
            text = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


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
