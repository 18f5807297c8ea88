"""One method a stage, checked against each other: what has no effect is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from kohort.blocking import Blocker, Whole
from kohort.centroids import Centroid, Mean
from kohort.dependence import check_dependence
from kohort.errors import PlanError
from kohort.normalization import Normalizer, Zscore
from kohort.partitioning import Partitioner
from kohort.projection import Attribute, Choquet, Pcp, Projection
from kohort.whole_file import WHOLE_FILE, WholeFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The methods of one request."""

    normalize: Normalizer
    blocks: Blocker
    project: Projection | None
    partition: Partitioner | WholeFile
    centroid: Centroid
    dependence: float | None = None

    def __post_init__(self) -> None:
        if self.dependence is not None:
            check_dependence(self.dependence)
        if self.whole_file is not None:
            self._check_whole_file()
        else:
            self._check_partitioner()

    @property
    def whole_file(self) -> WholeFile | None:
        """The method that protects the file as a whole, if that is what was asked for."""
        return self.partition if isinstance(self.partition, WHOLE_FILE) else None

    @property
    def partitioner(self) -> Partitioner:
        """The method that makes groups of records."""
        if isinstance(self.partition, WHOLE_FILE):
            raise PlanError(f"{self.partition.method!r} makes no groups of records")
        return cast(Partitioner, self.partition)

    @property
    def extends(self) -> bool:
        """Whether confidential attributes take part in the partition."""
        return self.dependence is not None and self.dependence > 0

    def _check_whole_file(self) -> None:
        for stage, given, default in (
            ("normalize", self.normalize, Zscore()),
            ("block", self.blocks, Whole()),
            ("project", self.project, None),
            ("centroid", self.centroid, Mean()),
            ("dependence", self.dependence, None),
        ):
            if given != default:
                raise PlanError(
                    f"{stage} has no effect: {self.partition.method!r} protects the file as a whole; "
                    "leave it out"
                )

    def _check_partitioner(self) -> None:
        partition = self.partitioner
        if self.project is not None and not partition.needs_axis:
            raise PlanError(
                f"project {self.project.method!r} has no effect: partition {partition.method!r} works "
                "in space; leave the projection out"
            )
        if self.extends and self.normalize != Zscore():
            raise PlanError(
                f"dependence needs normalize 'zscore', got {self.normalize.method!r}: the weight of "
                "the confidential attributes is defined on standardised ones"
            )
        if self.extends and self.project is not None and not self.project.has_extension:
            raise PlanError(
                f"project {self.project.method!r} is not defined with dependence; use 'pcp' or 'zscores'"
            )
        if not partition.uses_normalized and self.normalize != Zscore():
            raise PlanError(
                f"normalize {self.normalize.method!r} has no effect: nothing uses normalised values "
                f"with partition {partition.method!r} as it is set; leave normalize out or use "
                "cost='block'"
            )

    def check_blocks(self, blocks: Sequence[Sequence[str]]) -> None:
        """Refuse a projection that names an attribute that no block, or not every block, has."""
        if isinstance(self.project, Attribute):
            for names in blocks:
                self.project.check(names)
        if isinstance(self.project, Choquet):
            self.project.check([name for names in blocks for name in names])

    def projection_of(self, names: Sequence[str]) -> Projection:
        """The projection of a block: the plan's, else pcp, else the only attribute itself."""
        if self.project is not None:
            return self.project
        return Attribute(name=names[0]) if len(names) == 1 and not self.extends else Pcp()

    def guarantee(self, k: int, blocks: int) -> str:
        """What the result promises, in words.

        Parameters
        ----------
        k : int
            The least group size.
        blocks : int
            The number of blocks.
        """
        if self.whole_file is not None:
            return self.whole_file.guarantee(k)
        others = f"every record is identical to at least {k - 1} others on"
        if blocks == 1:
            return f"{others} all quasi-identifiers"
        return f"{others} the attributes of each of {blocks} blocks, but not on all of them together"
