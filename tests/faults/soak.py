"""`make soak MINUTES=10`: the fault tests with random seeds, again and again, and their tally."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
COUNTS = ("tried", "lost", "wrong", "recovered")


def main(minutes: float) -> int:
    """Repeat until the time is over, or to the first failure."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kohort-soak-") as folder:
        tally, code, rounds = Path(folder) / "tally.jsonl", 0, 0
        while code == 0 and (rounds == 0 or time.monotonic() - started < 60 * minutes):
            seed, rounds = secrets.randbelow(2**31), rounds + 1
            print(f"round {rounds}, KOHORT_FAULT_SEED={seed}", flush=True)
            environment = {
                **os.environ,
                "KOHORT_FAULT_SEED": str(seed),
                "KOHORT_FAULT_TALLY": str(tally),
            }
            command = [sys.executable, "-m", "pytest", "-q", "-x", str(HERE)]
            code = subprocess.run(command, env=environment).returncode
        lines = tally.read_text().splitlines() if tally.exists() else []
    spent = (time.monotonic() - started) / 60
    print(f"\n{rounds} rounds in {spent:.0f} minutes\n\n{table(lines)}")
    if code:
        print(f"\nstopped at the first failure; again with KOHORT_FAULT_SEED={seed} pytest {HERE.name}")
    return code


def table(lines: list[str]) -> str:
    """The tally in Markdown, a line a fault."""
    faults: dict[str, Counter[str]] = {}
    for noted in map(json.loads, lines):
        counted = faults.setdefault(noted["fault"], Counter())
        counted.update({name: noted[name] for name in COUNTS})
    rows = [("fault", "times tried", *COUNTS[1:]), ("---", *["---:"] * len(COUNTS))]
    rows += [(fault, *(str(counts[name]) for name in COUNTS)) for fault, counts in faults.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
