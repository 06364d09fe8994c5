"""Loading of FAISS, with matrix products by the instructions that the processor has."""

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np  # noqa: F401 - loads its own BLAS before `CORE` is set, which would change it too

from curate.core.errors import MissingExtra

CORE, KERNELS = "OPENBLAS_CORETYPE", "Haswell"
"""Variable by which OpenBLAS chooses its kernels, and the fastest of 0.3.15 on processors with AVX2."""
DATABASE_BLOCK = 4096
"""Number of documents that FAISS multiplies at a time; by its default of 1,024 it takes a tenth longer."""


@cache
def library() -> Any:  # noqa: ANN401 - faiss has no types
    """Return the module `faiss`; MissingExtra if it cannot be imported.

    OpenBLAS 0.3.15, which its wheels contain, takes a processor that it does not know (Intel's since Sapphire Rapids)
    for one without AVX, and multiplies in four times the time. So its kernels are named while it is loaded, unless the
    user has named some.
    """
    named = CORE not in os.environ and sys.platform == "linux" and has_avx2()
    if named:
        os.environ[CORE] = KERNELS
    try:
        import faiss
    except ImportError as error:
        raise MissingExtra(f"search needs the package faiss ({error}): pip install faiss-cpu") from error
    finally:
        if named:
            del os.environ[CORE]
    faiss.cvar.distance_compute_blas_database_bs = DATABASE_BLOCK
    return faiss


def has_avx2() -> bool:
    """Return whether the processor has the instructions of AVX2; False where Linux does not say."""
    try:
        return " avx2 " in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
