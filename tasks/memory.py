"""Memory that stages are done with goes back to the system.

By default glibc's malloc and Arrow's pool keep freed megabytes for later. A run is a sequence of stages
with large arrays of other sizes, so that what is kept piles up to several times the table. Giving back
everything at once costs time instead: every page is faulted in anew. So malloc gives its largest blocks
back when they are freed, and it and Arrow's pool the rest when a stage is done.
"""

from __future__ import annotations

import ctypes
import functools
import platform

import pyarrow as pa

M_MMAP_THRESHOLD = -3  # of malloc.h
LARGE = 1 << 23  # smaller blocks, a column of a million numbers among them, serve again within a stage


@functools.cache
def return_large_blocks() -> None:
    """Let malloc give large blocks back when they are freed, for the rest of this process."""
    if (library := _glibc()) is not None:
        # A fixed threshold also stops glibc from raising it after the first large free.
        library.mallopt(M_MMAP_THRESHOLD, LARGE)


def return_unused() -> None:
    """Let malloc and Arrow's pool give back what they do not use."""
    pa.default_memory_pool().release_unused()
    if (library := _glibc()) is not None:
        library.malloc_trim(0)


@functools.cache
def _glibc() -> ctypes.CDLL | None:
    """The C library, where it is the one with these calls."""
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
