"""Whether a GPU gives what the processor gives, and how fast: search, thinning, encoding, memory, evaluation, training.

It needs no network and no installation of this package: models have random weights in the shapes of MiniLM and bge-m3,
texts are the packaged English demo, and packages that the machine lacks come out of `gpu-bundle.tar.xz`, which
`make gpu-bundle` writes elsewhere. A check that fails is printed with its traceback, stands in the table as failed, and
makes the exit code 1; the others go on. Without a CUDA device nothing is done, which is said, with exit code 0.

Run: python -m benchmarks.gpu [--write] [--dry-run]     --dry-run: the same on the processor, in small sizes
"""

import os
import shutil
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks import harness

ROOT = Path(__file__).resolve().parents[1]
BUNDLE, UNPACKED = ROOT / "gpu-bundle.tar.xz", ROOT / ".gpu-bundle"
PYTHON = (3, 12)
"""Of the archive's compiled packages."""
HEADS = ["check", "of what", "processor", "device", "result"]


def prepare() -> None:
    """Put the archive's packages onto the path of this process and of those that it starts, if it is there."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # every model lies in a folder: no library need wait for a network
    paths = [ROOT]
    if BUNDLE.is_file() and sys.version_info[:2] == PYTHON:
        if not UNPACKED.is_dir() or UNPACKED.stat().st_mtime < BUNDLE.stat().st_mtime:
            shutil.rmtree(UNPACKED, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=ROOT, prefix=f"{UNPACKED.name}-") as name:
                with tarfile.open(BUNDLE) as archive:
                    archive.extractall(Path(name) / "whole", filter="data")
                (Path(name) / "whole").rename(UNPACKED)  # so that one which was interrupted is never taken
            os.utime(UNPACKED)
        paths.append(UNPACKED)
    elif BUNDLE.is_file():
        print(f"{BUNDLE.name} is for Python {PYTHON[0]}.{PYTHON[1]}: taking the installed packages", file=sys.stderr)
    sys.path[:0] = [str(path) for path in paths]
    before = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, paths), *before])


def lacking() -> str | None:
    """Return why nothing can be checked on a GPU here; None if it can."""
    if find_spec("torch") is None:
        return "torch is not installed"
    import torch

    return None if torch.cuda.is_available() else f"torch {torch.__version__} finds no CUDA device"


def checked(device: str) -> Iterator[list[str]]:
    """Yield the rows of all checks; a failed check ends with a row that says so."""
    from benchmarks import gpu_checks

    sizes = gpu_checks.SMALL if device == "cpu" else gpu_checks.FULL
    with tempfile.TemporaryDirectory() as name:
        bench = gpu_checks.Bench(device, sizes, Path(name))
        for title, check in gpu_checks.CHECKS.items():
            began = time.monotonic()
            try:
                yield from ([title, *cells] for cells in check(bench))
            except Exception as error:  # noqa: BLE001 - printed, a failed row and exit code 1; the other checks go on
                traceback.print_exc()
                why = (str(error).splitlines() or [""])[0].replace("|", "/")
                yield [title, "", "", "", f"failed: {type(error).__name__}: {why}"]
            print(f"{title}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)


def body(device: str, rows: list[list[str]], seconds: float) -> str:
    """Return the block: what it ran on, and the table."""
    import torch

    card = "the processor in place of a GPU (`--dry-run`)"
    if device == "cuda":
        facts = torch.cuda.get_device_properties(0)
        card = f"{facts.name}, {facts.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}"
    head = (
        f"On {card}, {seconds:.0f} s in all. Weights are random, so that speed and rounding are shown and no quality."
    )
    return f"{head}\n\n{harness.table(HEADS, rows, 2)}"


def main() -> None:
    """Run the checks, and publish what they came to."""
    options = harness.parser(__doc__)
    options.add_argument("--dry-run", action="store_true", help="on the processor, in small sizes")
    typed = options.parse_args()
    prepare()
    if not typed.dry_run and (why := lacking()):
        print(f"skipped: {why}")
        return
    device, began = "cpu" if typed.dry_run else "cuda", time.monotonic()
    rows = list(checked(device))
    harness.publish("gpu", body(device, rows, time.monotonic() - began), None if typed.dry_run else typed.write)
    if failed := [row[0] for row in rows if row[-1].startswith("failed: ")]:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
