"""The review page behind nginx with TLS, by the configuration in the docs."""

import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from curate.review import Desk, Sample
from curate.review.access import Access
from tests import ROOT
from tests.conftest import need
from tests.support.reviewing import TEXTS, sample

NGINX, OPENSSL = shutil.which("nginx") or "/usr/sbin/nginx", shutil.which("openssl") or ""


@dataclass
class Proxy:
    """nginx in front of a served sample."""

    url: str
    folder: Path
    client: httpx.Client

    def enter(self, person: str) -> httpx.Response:
        """Enter by a link of a person's own."""
        _, token = Access(Desk(Sample.load(self.folder))).invite(person, "assessor")
        return self.client.post("/enter", data={"token": token}, headers={"Origin": self.url.removesuffix("/curate")})


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module", params=["", "/curate"], ids=["host", "path"])
def proxy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    need(Path(NGINX).exists() and bool(OPENSSL), "nginx, or openssl,")
    made = tmp_path_factory.mktemp("proxy")
    folder = made / "run" / "reviews" / "expert"
    sample(folder, TEXTS, ("wang", "li"), "en")
    certificate, key = made / "review.pem", made / "review.key"
    request_words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([OPENSSL, *request_words, *names], check=True, capture_output=True)
    port, app_port = free_port(), free_port()
    url = f"https://localhost:{port}{request.param}"
    block = re.search(r"```nginx\n(.*?)```", (ROOT / "docs/review.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block
    server = block[1].replace("listen 443", f"listen 127.0.0.1:{port}").replace("review.example.org", "localhost")
    server = server.replace("/etc/nginx/review.pem", str(certificate)).replace("/etc/nginx/review.key", str(key))
    server = server.replace("127.0.0.1:8765", f"127.0.0.1:{app_port}").replace(
        "location /", f"location {request.param}/"
    )
    temporary = "".join(
        f"{name}_temp_path {made / name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (made / "nginx.conf").write_text(
        f"daemon off; pid {made}/nginx.pid; error_log {made}/error.log; events {{}} http {{ {temporary} {server} }}"
    )
    words = [
        "-m",
        "curate",
        "review",
        "serve",
        "--run",
        str(made / "run"),
        "--port",
        str(app_port),
        "--public-url",
        url,
    ]
    app = subprocess.Popen([sys.executable, *words], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    front = subprocess.Popen([NGINX, "-c", str(made / "nginx.conf")], stderr=subprocess.DEVNULL)
    try:
        assert app.stdout
        assert app.stdout.readline().strip() == f"{url}/enter", "no secret is printed"
        with httpx.Client(
            base_url=url, verify=ssl.create_default_context(cafile=certificate), trust_env=False, timeout=30
        ) as client:
            ends = time.monotonic() + 120
            while time.monotonic() < ends:
                try:
                    client.get("/enter")
                    break
                except httpx.ConnectError:
                    time.sleep(0.1)
            yield Proxy(url, folder, client)
    finally:
        for process in (front, app):
            process.terminate()
            process.wait()
        if app.stdout:
            app.stdout.close()


def test_a_reader_enters_and_answers_through_tls(proxy: Proxy) -> None:
    entered = proxy.enter("wang")
    assert entered.status_code == 303
    cookie = entered.headers["set-cookie"]
    assert {"Secure", "HttpOnly", "SameSite=lax"} <= set(cookie.split("; "))
    assert cookie.startswith("__Host-" if proxy.url.count("/") == 2 else "__Secure-")
    page = proxy.client.get("/review", follow_redirects=True)
    assert page.status_code == 200
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text))
    origin = {"Origin": proxy.url.removesuffix("/curate")}
    row_id = page.url.path.rsplit("/", 1)[1]
    answered = proxy.client.post(page.url, data={**fields, "answer": "A"}, headers=origin)
    assert answered.status_code == 303
    assert Desk(Sample.load(proxy.folder)).said("wang")[row_id].answer == "A"
    for address in re.findall(r'(?:href|src|action)="(/[^"]*)"', page.text):
        assert proxy.client.get(httpx.URL(proxy.url).join(address)).status_code in (200, 303), address


def test_other_origins_hosts_and_the_shared_secret_are_refused(proxy: Proxy) -> None:
    proxy.client.cookies.clear()
    secret = (proxy.folder / "page.token").read_text(encoding="ascii").strip()
    assert proxy.client.get("/review", params={"token": secret}).status_code == 403
    for origin in ("https://evil.example", "http://localhost", "null", f"{proxy.url}.evil.example"):
        assert proxy.client.post("/enter", data={"token": "x"}, headers={"Origin": origin}).status_code == 403
    assert proxy.client.get("/enter", headers={"Host": "evil.example"}).status_code in (403, 404, 421)
    assert proxy.client.get("/review", headers={"X-Forwarded-Host": "evil.example"}).status_code == 403
