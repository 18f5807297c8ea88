"""What commands print. Names come from files and plans of others, so none may drive a terminal."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with control characters, and those that turn the direction of writing, as escapes."""
    return UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def say(text: str) -> None:
    """Print lines for a person."""
    sys.stdout.write(printable(text) + "\n")


def say_json(content: Any) -> None:
    """Print a result for a program."""
    sys.stdout.write(json.dumps(content, indent=2) + "\n")


def complain(sentence: str) -> None:
    """One line on standard error, whatever is in the sentence."""
    sys.stderr.write("kohort: " + printable(sentence).replace("\n", "\\n") + "\n")
