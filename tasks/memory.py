"""Memory that stages are done with goes back to the system.

By default glibc's malloc and Arrow's pool keep freed megabytes for later. A run is a sequence of stages
with large arrays of other sizes, so that what is kept piles up to several times the table. Giving back
everything at once costs time instead: every page is faulted in anew. So large blocks of malloc go back
when they are freed, and Arrow's pool, which is used in smaller pieces, when a stage is done.
"""

from __future__ import annotations

import ctypes
import functools
import platform

import pyarrow as pa

M_MMAP_THRESHOLD = -3  # of malloc.h
LARGE = 1 << 22  # smaller blocks are used again and again, and would be faulted in each time


@functools.cache
def return_large_blocks() -> None:
    """Let malloc give large blocks back when they are freed, for the rest of this process."""
    if platform.libc_ver()[0] == "glibc":
        # A fixed threshold also stops glibc from raising it after the first large free.
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)


def return_unused() -> None:
    """Let Arrow's pool give back what it does not use."""
    pa.default_memory_pool().release_unused()
