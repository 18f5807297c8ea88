"""The plan of a survey: one TOML file, validated before anything is run."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, ValidationError, field_validator, model_validator

import kohort
from kohort.blocking import BLOCKERS
from kohort.centroids import CENTROIDS
from kohort.claims import check_claim
from kohort.errors import PlanError
from kohort.flows.evaluating import EvaluateSection
from kohort.flows.gating import GateSection
from kohort.flows.messages import first_sentence
from kohort.flows.sections import Section, choice_of, section_of
from kohort.gate import BOUNDABLE
from kohort.methods import Blocks
from kohort.normalization import NORMALIZERS
from kohort.partitioning import PARTITIONERS
from kohort.projection import PROJECTIONS
from kohort.stages import Stages
from kohort.tasks.housekeeping import seconds_of
from kohort.tasks.measures import ALWAYS
from kohort.tasks.release import Release
from kohort.tasks.roles import Roles
from kohort.whole_file import WHOLE_FILE

SCHEMA = 1
LARGEST = 1_000_000  # bytes of a plan
DOTS = 10_000  # in a line: the reader takes the square of them for a dotted key

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
    gate: GateSection | None = None
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
        blocks: Blocks = ()
        if not stages.blocks.uses_values:
            blocks = stages.blocks.assign_blocks(np.empty((0, len(names))), names=names)
            self.check_blocks([[names[j] for j in block] for block in blocks])
        if self.evaluate is not None:  # refuses sets and limits that cannot be, before anything is run
            self.evaluate.knows.scenarios(names=names, blocks=blocks, seed=self.seed)
        if self.dependence is not None and not self.roles.confidential:
            raise PlanError("dependence needs roles.confidential; name the confidential columns")
        if stages.extends and not {"l_min", "l_one"} & set(self.bounds):
            raise PlanError(
                "dependence makes groups that agree in the confidential attributes, which discloses "
                "them; bound l_min or l_one in [gate]"
            )
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

    def check_blocks(self, blocks: Sequence[Sequence[str]]) -> None:
        """Refuse what does not fit the blocks: a projection's attribute, the claim."""
        self.stages.check_blocks(blocks)
        check_claim(self.release.claim, self.stages, len(blocks))

    @property
    def bounds(self) -> dict[str, float]:
        """The worst value of each measure that a release may have; the claim bounds one of its own."""
        bounds = {} if self.gate is None else self.gate.bounds
        if self.release.claim == "k-anonymous":
            bounds["min_anonymity"] = max(float(self.k), bounds.get("min_anonymity", 0.0))
        return bounds

    @property
    def measured(self) -> EvaluateSection | None:
        """What is measured besides what every release has: what is asked for, and what is bounded."""
        wanted = [name for name in self.bounds if name not in ALWAYS or self._by_scenario(name)]
        if self.evaluate is not None:
            return self.evaluate.including(wanted)
        return EvaluateSection(measures=wanted) if wanted else None

    def _by_scenario(self, name: str) -> bool:
        return self.evaluate is not None and BOUNDABLE[name].by_scenario

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
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise PlanError(f"the plan {path} has more than {LARGEST} bytes; a plan is a short text")
        if any(line.count(b".") > DOTS for line in text.splitlines()):
            raise PlanError(f"the plan {path} has a line with more than {DOTS} dots; break it up")
        content = tomllib.loads(text.decode())
    except FileNotFoundError:
        raise PlanError(f"there is no plan {path}; `kohort plan init WAVE` drafts one") from None
    except OSError as error:
        raise PlanError(f"the plan {path} cannot be read ({error.strerror})") from None
    except RecursionError:
        raise PlanError(
            f"the plan {path} nests too deep; a plan has sections, and few in them"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"the plan {path} is not valid TOML: {error}") from None
    try:
        return Plan.model_validate(content)
    except ValidationError as error:
        raise PlanError(f"{path}: {first_sentence(error)}") from None
