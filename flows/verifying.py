"""Check a release as it lies on the disk, and with the original file do it again.

The public part alone is enough to check its digest and to count identical records. With the internal
part the papers are checked against each other and the counts against the evaluation, and with the
original file the protection is repeated and compared byte by byte.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pydantic import ValidationError

from kohort.errors import PlanError, WaveError
from kohort.evaluation import classes
from kohort.flows.in_memory import protect_in_memory
from kohort.flows.manifest import claimed, public_manifest
from kohort.flows.plan import SCHEMA, Plan
from kohort.flows.progress import Silent
from kohort.home import kohort_home, private_folder
from kohort.tasks.caching import code_digest, cpu, versions
from kohort.tasks.placing import (
    EVALUATION,
    INTERNAL,
    LOG,
    MANIFEST,
    PUBLIC,
    last_version,
    version_folder,
)
from kohort.tasks.release import NAME
from kohort.tasks.store import file_digest
from kohort.tasks.wave import digest_of, open_wave, read_codes


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    what: str
    holds: bool
    found: str

    def as_json(self) -> dict[str, Any]:
        """The check as a dict."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Papers:
    """A release on the disk."""

    data: Path
    inside: Path | None
    """The internal part, where a whole version is looked at."""
    public: Mapping[str, Any]
    internal: Mapping[str, Any] | None
    evaluation: Mapping[str, Any] | None


def verify_release(release: Path, original: Path | None) -> list[Check]:
    """Everything that can be checked of a release.

    Parameters
    ----------
    release : Path
        A folder of releases (its last version is taken), one version, or its public part alone.
    original : Path, optional
        The wave that was protected.
    """
    papers = _open(release)
    try:
        checks = [*_presence(papers), *_digests(papers), *_claim(papers), *_counts(papers)]
        if original is not None:
            checks += _repeat(papers, original)
    except (KeyError, TypeError, ValidationError):
        raise WaveError(
            f"the papers of {release} are not those of a release, or not of this kohort"
        ) from None
    return checks


def _open(release: Path) -> Papers:
    """The release's file and papers."""
    if not release.is_dir():
        raise WaveError(f"there is no folder {release}; name a folder of releases, or one of them")
    folder, last = release, last_version(release)
    if not (folder / PUBLIC).is_dir() and last is not None:
        folder = version_folder(release, last)
    public = folder / PUBLIC if (folder / PUBLIC).is_dir() else folder
    if not (public / NAME).is_file():
        raise WaveError(f"{release} holds no release; name a folder with {PUBLIC}/{NAME} in it")
    manifest = _json(public / MANIFEST)
    if manifest is None:
        raise WaveError(f"{public} has no {MANIFEST}, without which nothing can be checked")
    if manifest.get("schema") != SCHEMA:
        raise WaveError(f"the papers of {release} have another schema; use the kohort that wrote them")
    return Papers(
        public / NAME,
        folder / INTERNAL if folder != public else None,
        manifest,
        _json(folder / INTERNAL / MANIFEST) if folder != public else None,
        _json(folder / INTERNAL / EVALUATION) if folder != public else None,
    )


def _json(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except OSError as error:
        raise WaveError(f"{path} cannot be read ({error.strerror}); check its permissions") from None
    except ValueError:
        raise WaveError(f"{path} is damaged: it is not JSON") from None
    if not isinstance(content, dict):
        raise WaveError(f"{path} is damaged: it is not a JSON object")
    return content


def _presence(papers: Papers) -> list[Check]:
    """No file too few or too many, and the internal part for its owner alone."""
    beside = sorted(path.name for path in papers.data.parent.iterdir())
    expected = sorted((NAME, MANIFEST))
    found = ", ".join(beside) if beside != expected else "the data and their manifest"
    checks = [Check("public part", beside == expected, found)]
    if papers.inside is None:
        return [*checks, Check("internal part", True, "not given: the measures are not checked")]
    missing = [name for name in (MANIFEST, EVALUATION, LOG) if not (papers.inside / name).is_file()]
    if missing:
        return [*checks, Check("internal part", False, f"{', '.join(missing)} is missing")]
    paths = (papers.inside, *papers.inside.iterdir())
    opened = [path.name for path in paths if path.stat().st_mode & 0o077]
    found = f"{', '.join(opened)} can be read by others" if opened else "for its owner alone"
    return [*checks, Check("internal part", not opened, found)]


def _claim(papers: Papers) -> list[Check]:
    """The claim follows from the plan, and the share of unique records from the evaluation."""
    if papers.internal is None or papers.evaluation is None:
        return []
    plan, output = Plan.model_validate(papers.internal["plan"]), papers.internal["output"]
    known = {*papers.internal["protected"], *plan.roles.confidential}
    claim = claimed(
        plan,
        blocks=len(papers.internal["blocks"]),
        others=[name for name in output["columns"] if name not in known],
        unique=papers.evaluation["measures"]["unique"],
    )
    same = claim == papers.public["claim_in_words"]
    return [
        Check("claim in words", same, "as the plan has it" if same else "other words than the plan's")
    ]


def _digests(papers: Papers) -> list[Check]:
    """The file against the papers, and the papers against each other."""
    found = file_digest(papers.data)
    checks = [_equal(f"digest of {NAME}", found, papers.public["output"]["sha256"])]
    if papers.internal is not None:
        named = papers.internal["output"]["sha256"]
        checks.append(_equal("digest in the internal manifest", found, named))
    if papers.internal is not None and papers.evaluation is not None:
        agree = public_manifest(papers.internal, papers.evaluation) == dict(papers.public)
        verdict = "it follows from the internal papers" if agree else "it says other things than they do"
        checks.append(Check("public manifest", agree, verdict))
    return checks


def _equal(what: str, found: str, expected: str) -> Check:
    same = found == expected
    return Check(what, same, "as recorded" if same else "other bytes than were released")


def _counts(papers: Papers) -> list[Check]:
    """Identical records, within each block and as a whole, in the file."""
    output = papers.public["output"]
    with open_wave(papers.data) as file:
        names, rows = file.schema_arrow.names, file.metadata.num_rows
    shape = names == output["columns"] and rows == output["rows"]
    checks = [Check("columns and rows", shape, f"{len(names)} columns, {rows} records")]
    if not shape:
        return checks
    k, claim = papers.public["methods"]["partition"]["k"], papers.public["claim"]
    for number, block in enumerate(papers.public["blocks"]):
        least = int(_class_sizes(papers.data, block).min())
        checks.append(Check(f"block {number}", least >= k, f"at least {least} identical, k = {k}"))
    known = _known(papers)
    sizes = _class_sizes(papers.data, known)
    least, alone = int(sizes.min()), int(np.count_nonzero(sizes == 1))
    found = f"at least {least} identical, {alone} of {rows} unique"
    checks.append(Check(f"whole records, claim {claim}", claim != "k-anonymous" or least >= k, found))
    measured = (papers.evaluation or {}).get("measures", {}).get("min_anonymity")
    counts_records = papers.internal is not None and "unit" not in papers.internal["plan"]["roles"]
    if measured is not None and counts_records:
        agree = int(measured) == least
        checks.append(Check("evaluation", agree, f"min_anonymity {int(measured)}, counted {least}"))
    return checks


def _known(papers: Papers) -> list[str]:
    """The released columns that an intruder may know; from the public part, the protected ones."""
    if papers.internal is None:
        return list(papers.public["protected"])
    confidential = papers.internal["plan"]["roles"].get("confidential", [])
    return [name for name in papers.public["output"]["columns"] if name not in confidential]


def _class_sizes(path: Path, names: Sequence[str]) -> Any:
    """Sizes of the classes of records that are identical on these columns."""
    return classes([codes.astype(np.int64) for codes in read_codes(path, names)])[1]


def _repeat(papers: Papers, original: Path) -> list[Check]:
    """Protect the original again as the manifest says, and compare."""
    manifest = papers.internal
    if manifest is None:
        raise PlanError("--original needs the internal part of the release; name the version's folder")
    same_wave = digest_of(original) == manifest["input"]["sha256"]
    checks = [Check("original", same_wave, "as recorded" if same_wave else "another file")]
    if not same_wave:
        return checks
    plan = Plan.model_validate(manifest["plan"]).model_copy(update={"evaluate": None, "gate": None})
    folder = Path(tempfile.mkdtemp(dir=private_folder(kohort_home()), prefix="verify-"))
    try:
        done = protect_in_memory(plan, original, folder / "again", listener=Silent())
        again = Path(done["out"]) / PUBLIC / NAME
        same = file_digest(again) == file_digest(papers.data)
        found = "the same bytes" if same else _difference(papers, again)
        return [*checks, Check("protection repeated", same, found)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _difference(papers: Papers, again: Path) -> str:
    """What differs between the release and its repetition, and what may be the reason."""
    manifest = papers.internal or {}
    reasons = [
        what
        for what, before, now in (
            ("code", manifest.get("code"), code_digest()),
            ("CPU type", manifest.get("cpu"), cpu()),
            ("versions", {n: manifest["versions"].get(n) for n in versions()}, versions()),
        )
        if before != now
    ]
    why = f"another {', '.join(reasons)}" if reasons else "the same code, versions and CPU type"
    ours, theirs = pq.read_table(papers.data), pq.read_table(again)
    if ours.schema != theirs.schema or ours.num_rows != theirs.num_rows:
        return f"another table, with {why}"
    largest, groups = 0.0, True
    for name in papers.public["protected"]:
        one, other = (table.column(name).to_numpy().astype(float) for table in (ours, theirs))
        scale = max(float(np.abs(one).max()), np.finfo(float).tiny)
        largest = max(largest, float(np.abs(one - other).max()) / scale)
        groups = groups and np.array_equal(classes([one])[0], classes([other])[0])
    alike = "the same groups" if groups else "other groups"
    return f"{alike}, largest difference {largest:.1e} of a column's greatest number, with {why}"
