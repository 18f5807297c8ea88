"""What commands print. Names come from files and plans of others, so none may drive a terminal."""

from __future__ import annotations

import json
import sys
from typing import Any

from kohort.errors import on_one_line


def say(text: str) -> None:
    """Print lines for a person."""
    sys.stdout.write("\n".join(map(on_one_line, text.split("\n"))) + "\n")


def say_json(content: Any) -> None:
    """Print a result for a program."""
    sys.stdout.write(json.dumps(content, indent=2) + "\n")


def complain(sentence: str) -> None:
    """One line on standard error, whatever is in the sentence."""
    sys.stderr.write(f"kohort: {on_one_line(sentence)}\n")
