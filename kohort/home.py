"""Where kohort keeps its state: the folder that `KOHORT_HOME` names, else `~/.kohort`."""

from __future__ import annotations

import os
from pathlib import Path

from kohort.errors import PlanError


def kohort_home() -> Path:
    """The state folder, not necessarily there yet."""
    named = os.environ.get("KOHORT_HOME")
    if named:
        return Path(named).expanduser().absolute()
    try:
        return Path.home() / ".kohort"
    except RuntimeError:
        raise PlanError("there is no home folder for kohort's state; set KOHORT_HOME") from None


def private_folder(path: Path) -> Path:
    """Make `path` (and what leads to it) if need be; a folder made here is for its owner alone.

    Parameters
    ----------
    path : Path
        The folder wanted.
    """
    for folder in [*reversed(path.parents), path]:
        if not folder.exists():
            try:
                folder.mkdir(mode=0o700)
            except FileExistsError:  # another process was faster
                continue
            folder.chmod(0o700)  # whatever the umask takes away
    return path
