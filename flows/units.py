"""Ages and sizes as people read them."""

from __future__ import annotations


def age(seconds: float) -> str:
    """A span of time in the unit that fits."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def size(count: int) -> str:
    """A number of bytes in the unit that fits."""
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count} B"
