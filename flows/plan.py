"""The plan of a survey: one TOML file, validated before anything is run."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, ValidationError, field_validator, model_validator

import kohort
from kohort.blocking import BLOCKERS
from kohort.centroids import CENTROIDS
from kohort.errors import PlanError
from kohort.flows.evaluating import EvaluateSection
from kohort.flows.messages import first_sentence
from kohort.flows.sections import Section, choice_of, section_of
from kohort.normalization import NORMALIZERS
from kohort.partitioning import PARTITIONERS
from kohort.projection import PROJECTIONS
from kohort.stages import Stages
from kohort.tasks.housekeeping import seconds_of
from kohort.tasks.release import Release
from kohort.tasks.roles import Roles
from kohort.whole_file import WHOLE_FILE

SCHEMA = 1

RolesSection = section_of(Roles)
ReleaseSection = section_of(Release)
NormalizeSection: Any = choice_of(NORMALIZERS)
BlockSection: Any = choice_of(BLOCKERS)
ProjectSection: Any = choice_of(PROJECTIONS)
CentroidSection: Any = choice_of(CENTROIDS)
PartitionSection: Any = choice_of(
    (*PARTITIONERS, *WHOLE_FILE),
    k=(int, Field(ge=2, description="the least number of records in a group")),
    allow_pairs=(bool, Field(default=False, description="whether k may be 2")),
)


class DependenceSection(Section):
    """How much groups agree in the confidential attributes."""

    weight: float = Field(ge=0, le=1, description="lambda: 0 not at all, 1 by nothing else")


class StoreSection(Section):
    """How long intermediate files live."""

    keep: str = Field(description="how long after their last use: 12h, 7d, 4w")

    @field_validator("keep")
    @classmethod
    def _is_clear(cls, keep: str) -> str:
        if keep.strip("0mhdw") == "":
            raise PlanError("a lifetime of nothing is `kohort protect --discard`; leave it out")
        seconds_of(keep)
        return keep


class Plan(Section):
    """How the waves of one survey are protected."""

    version: int = Field(alias="schema")
    title: str = ""
    seed: int = Field(default=0, ge=0)
    roles: RolesSection  # type: ignore[valid-type]
    normalize: NormalizeSection = Field(default={"method": "zscore"}, validate_default=True)
    block: BlockSection = Field(default={"method": "whole"}, validate_default=True)
    project: ProjectSection | None = None
    partition: PartitionSection
    dependence: DependenceSection | None = None
    centroid: CentroidSection = Field(default={"method": "mean"}, validate_default=True)
    evaluate: EvaluateSection | None = None
    store: StoreSection | None = None
    release: ReleaseSection = Field(default_factory=ReleaseSection)  # type: ignore[valid-type]

    @field_validator("version")
    @classmethod
    def _known_schema(cls, version: int) -> int:
        if version != SCHEMA:
            remedy = "write schema = 1" if version < SCHEMA else "install the kohort that wrote the plan"
            raise PlanError(
                f"schema = {version} is not known to kohort {kohort.__version__}, which reads schema "
                f"{SCHEMA}; {remedy}"
            )
        return version

    @field_validator("partition")
    @classmethod
    def _no_pairs_unawares(cls, partition: Any) -> Any:
        if partition.k == 2 and not partition.allow_pairs:
            raise PlanError(
                "k = 2 lets each of two respondents compute the other's value (2c - x); "
                "use k = 3 or more, or set allow_pairs = true"
            )
        return partition

    @model_validator(mode="after")
    def _fits_together(self) -> Plan:
        stages = self.stages
        names = self.roles.quasi_identifiers
        if stages.whole_file is not None and stages.whole_file.unfit_for_release:
            raise PlanError(f"partition: {stages.whole_file.unfit_for_release}")
        if not stages.blocks.uses_values:
            blocks = stages.blocks.assign_blocks(np.empty((0, len(names))), names=names)
            stages.check_blocks([[names[j] for j in block] for block in blocks])
        if self.dependence is not None and not self.roles.confidential:
            raise PlanError("dependence needs roles.confidential; name the confidential columns")
        if stages.centroid.takes_weights and self.roles.weight is None:
            raise PlanError(
                f"centroid {stages.centroid.method!r} needs roles.weight; name the weight column"
            )
        return self

    @property
    def k(self) -> int:
        """The least number of records in a group."""
        return int(self.partition.k)

    @property
    def stages(self) -> Stages:
        """One method a stage; refuses what has no effect."""
        return Stages(
            normalize=self.normalize.build(),
            blocks=self.block.build(),
            project=None if self.project is None else self.project.build(),
            partition=self.partition.build(),
            centroid=self.centroid.build(),
            dependence=None if self.dependence is None else self.dependence.weight,
        )

    def as_json(self) -> dict[str, Any]:
        """The plan as the manifest and a deployment's parameter have it."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def load_plan(path: Path) -> Plan:
    """Read and validate a plan.

    Parameters
    ----------
    path : Path
        A TOML file.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PlanError(f"there is no plan {path}; `kohort plan init WAVE` drafts one") from None
    except OSError as error:
        raise PlanError(f"the plan {path} cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"the plan {path} is not valid TOML: {error}") from None
    try:
        return Plan.model_validate(content)
    except ValidationError as error:
        raise PlanError(f"{path}: {first_sentence(error)}") from None
