"""What kohort refuses, and how it says so.

::

    KohortError
     ├ PlanError        the request is wrong             exit 2, never retried
     ├ WaveError        the data breaks a rule           exit 3, never retried
     ├ GateRefused      protected, but not good enough   exit 4, nothing published
     ├ GuaranteeBroken  our bug: fewer than k            output deleted, exit 1
     └ StageFailed      anything that is not ours        exit 1: "partition, block 2: ArrowInvalid"

Every message is one sentence: what, where, what was found, what to do. It carries names, counts and
parameters and never a cell's value, because logs are read by people who may not see the data. Names
come from files and plans of others: whatever in them would move a terminal is written out.
"""

from __future__ import annotations


def on_one_line(text: str) -> str:
    r"""The text with line breaks, terminal escapes and other invisible characters written out.

    Parameters
    ----------
    text : str
        What is to be shown: a name or a title may come from a file of somebody else.

    Examples
    --------
    >>> print(on_one_line("income\n\x1b[2J"))
    income\n\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class KohortError(Exception):
    """Base of everything that kohort raises on purpose."""

    exit_code = 1

    def __str__(self) -> str:
        return on_one_line(super().__str__())


class PlanError(KohortError, ValueError):
    """The request is wrong. A `ValueError` too, so that pydantic keeps the field's location."""

    exit_code = 2


class WaveError(KohortError):
    """The data breaks a rule that the request needs."""

    exit_code = 3


class GateRefused(KohortError):
    """The wave is protected, but not well enough to be published."""

    exit_code = 4


class GuaranteeBroken(KohortError):
    """A written file holds fewer than k identical records: a bug of ours, so nothing is released."""


class StageFailed(KohortError):
    """A stage stopped on something that is not ours: a full disk, a lost server, a damaged file.

    Parameters
    ----------
    message : str
        The sentence.
    can_pass : bool
        Whether waiting may help, so that the stage is tried again.
    """

    def __init__(self, message: str = "", *, can_pass: bool = False) -> None:
        super().__init__(message)
        self.can_pass = can_pass
