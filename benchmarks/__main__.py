"""Run every benchmark, or the ones named: `python -m benchmarks [protect pipeline ...]`."""

from __future__ import annotations

import importlib
import sys

ALL = ("protect", "pipeline", "mdav", "kward", "mic1d", "measures")


def main() -> None:
    """Print one table a benchmark."""
    for name in sys.argv[1:] or ALL:
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
