"""Memory that stages are done with goes back to the system at once.

By default Arrow's pool and glibc's malloc keep freed megabytes for later. A run is a sequence of
stages with large arrays of other sizes, so that what is kept piles up to several times the table.
"""

from __future__ import annotations

import ctypes
import functools
import platform

import pyarrow as pa

M_MMAP_THRESHOLD = -3  # of malloc.h
LARGE = 1 << 20


@functools.cache
def return_freed_memory() -> None:
    """Let this process give large blocks back when they are freed."""
    pa.set_memory_pool(pa.system_memory_pool())
    if platform.libc_ver()[0] == "glibc":
        # A fixed threshold also stops glibc from raising it after the first large free.
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)
