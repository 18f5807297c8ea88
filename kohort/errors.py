"""What kohort refuses, and how it says so.

::

    KohortError
     ├ PlanError        the request is wrong             exit 2, never retried
     ├ WaveError        the data breaks a rule           exit 3, never retried
     ├ GateRefused      protected, but not good enough   exit 4, nothing published
     ├ GuaranteeBroken  our bug: fewer than k            output deleted, exit 1
     └ StageFailed      anything that is not ours        exit 1: "partition, block 2: ArrowInvalid"

Every message is one sentence: what, where, what was found, what to do. It carries names, counts and
parameters and never a cell's value, because logs are read by people who may not see the data.
"""

from __future__ import annotations


class KohortError(Exception):
    """Base of everything that kohort raises on purpose."""

    exit_code = 1


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
