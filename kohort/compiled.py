"""numba, set up once for every kernel.

Kernels release the interpreter's lock and are never `parallel`: blocks run in threads, and numba's
own pool aborts when several threads enter it. Without `fastmath` LLVM keeps the order of additions,
so that a kernel gives the same bits on every CPU of an architecture. Machine code is cached under
KOHORT_HOME, because an install may be read-only and a service may have no home; the folder is named by
a digest of all kernels, because numba looks only at a kernel's own file and would keep code that was
inlined from another.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba

from kohort.errors import PlanError
from kohort.home import kohort_home, private_folder

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def _cache_is_usable() -> bool:
    if os.environ.get("NUMBA_CACHE_DIR"):
        return True
    try:
        folder = private_folder(kohort_home() / "numba" / _digest_of_kernels())
    except (PlanError, OSError):
        return False
    if not os.access(folder, os.W_OK):
        return False
    numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    return True


def _digest_of_kernels() -> str:
    digest = hashlib.sha256()
    for path in sorted((Path(__file__).parent / "kernels").glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


_CACHED = _cache_is_usable()


def compiled(function: Kernel) -> Kernel:
    """Compile a kernel on its first call."""
    return cast(Kernel, numba.njit(nogil=True, cache=_CACHED, error_model="numpy")(function))


def compiled_minimum(function: Kernel) -> Kernel:
    """Compile a kernel that searches minima of values that are never NaN, so that it may use SIMD."""
    jit = numba.njit(nogil=True, cache=_CACHED, error_model="numpy", fastmath={"nnan", "nsz"})
    return cast(Kernel, jit(function))
