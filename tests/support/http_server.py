"""A small HTTP server on loopback whose replies a test decides."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Reply = tuple[int, Mapping[str, str], bytes]
"""Status, headers and body."""
Answer = Callable[[str, str, Mapping[str, str], bytes], Reply | None]
"""Method, path, headers by lower-case name, and body of a request -> its reply; None closes the connection."""


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """Run the server on a free port, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(answer))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(answer: Answer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            sent = {name.lower(): value for name, value in self.headers.items()}
            reply = answer(self.command, self.path, sent, body)
            if reply is None:
                return
            status, headers, text = reply
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST  # noqa: N815 - the name in the base class

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
            pass

    return Handler
