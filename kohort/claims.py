"""What a release claims: how many records look alike, and on which of its columns.

Microaggregation makes records identical within a block of attributes. An intruder who knows attributes
of several blocks joins them, so that only a single block promises anything about whole records. The
default claim is that promise; a weaker one has to be made in so many words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from kohort.errors import PlanError
from kohort.stages import Stages

Claim = Literal["k-anonymous", "per-block", "none"]
CLAIMS: tuple[Claim, ...] = get_args(Claim)


def check_claim(claim: Claim, stages: Stages, blocks: int) -> None:
    """Refuse a claim that the methods cannot keep.

    Parameters
    ----------
    claim : {"k-anonymous", "per-block", "none"}
        What the release is to claim.
    stages : Stages
        The methods.
    blocks : int
        How many blocks there are.
    """
    if stages.whole_file is not None and claim != "none":
        raise PlanError(
            f"{stages.whole_file.method!r} makes no groups of records, so that it cannot claim "
            f'"{claim}"; set claim = "none" in [release]'
        )
    if claim == "k-anonymous" and blocks > 1:
        raise PlanError(
            f"{blocks} blocks make records identical within each block, not as a whole; set "
            'claim = "per-block" or claim = "none" in [release], or protect all attributes as one block'
        )


def claim_in_words(
    claim: Claim,
    stages: Stages,
    *,
    k: int,
    blocks: int,
    others: Sequence[str] = (),
    unit: str | None = None,
) -> str:
    """The claim as manifest, report and terminal repeat it.

    Parameters
    ----------
    claim : {"k-anonymous", "per-block", "none"}
        What the release claims.
    stages : Stages
        The methods.
    k : int
        The least group size.
    blocks : int
        How many blocks there are.
    others : sequence of str
        Other released columns that are not confidential.
    unit : str, optional
        The column that names households or enterprises.
    """
    if claim == "none":
        lead = "no number of identical records is claimed"
        return f"{lead}; {stages.guarantee(k, blocks)}" if stages.whole_file is not None else lead
    if claim == "per-block":
        return stages.guarantee(k, blocks)
    on = " and ".join(["all quasi-identifiers", *([", ".join(others)] if others else [])])
    counted = f", counting distinct {unit}" if unit is not None else ""
    return f"every record is identical to at least {k - 1} others on {on}{counted}"
