"""How much memory this process can still have."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Bytes that can still be allocated: the least of what machine, container and limits leave."""
    return max(0, min([*_machine(), *_containers(), *_address_space()]))


def resident_memory() -> int:
    """Bytes that this process has in memory; 0 where the system does not say."""
    return _field(PROC / "self" / "status", "VmRSS:") or 0


def _machine() -> Iterator[int]:
    free = _field(PROC / "meminfo", "MemAvailable:")
    yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if free is None else free


def _containers() -> Iterator[int]:
    """What each control group around this process leaves; pages of files that can go count as free.

    In a container the path may be that of the host, which is not to be seen: then only the folders
    that are there count, up to the container's own at the top.
    """
    for line in _text(PROC / "self" / "cgroup").splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            root, limit, used, idle = CGROUPS, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            root, limit = CGROUPS / "memory", "memory.limit_in_bytes"
            used, idle = "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        inner = root / name.lstrip("/")
        for folder in (inner, *inner.parents):
            if not folder.is_relative_to(root):
                break
            most, taken = _text(folder / limit).strip(), _text(folder / used).strip()
            if most.isdigit() and taken.isdigit():  # "max" is no limit
                yield int(most) - int(taken) + (_field(folder / "memory.stat", f"{idle} ") or 0)


def _address_space() -> Iterator[int]:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        yield limit - (_field(PROC / "self" / "status", "VmSize:") or 0)


def _field(path: Path, name: str) -> int | None:
    """The number behind a name, in bytes."""
    for line in _text(path).splitlines():
        if line.startswith(name):
            words = line[len(name) :].split()
            return int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
