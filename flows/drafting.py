"""A first plan for a wave, for a person to correct: `kohort plan init`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa

from kohort.tasks.wave import open_wave

KEY = re.compile(r"(^|_)(id|key|person|respondent)(_id)?$|^id_", re.IGNORECASE)
NAME = re.compile(r"name|email|phone|address|street|passport|ssn", re.IGNORECASE)
WEIGHT = re.compile(r"(^|_)weight$|^wgt|^pweight", re.IGNORECASE)
UNIT = re.compile(r"(household|enterprise|family|firm)_?id|hhid", re.IGNORECASE)


def draft_plan(wave: Path) -> str:
    """A commented plan whose roles are guessed from the names and types of the columns.

    Parameters
    ----------
    wave : Path
        A Parquet file; only its footer is read.
    """
    with open_wave(wave) as file:
        fields = list(file.schema_arrow)
    roles = _guess_roles(fields)
    lines = [
        f"# A draft for {_quoted(wave.name)}: the roles are guesses from names and types. Correct them.",
        "schema = 1",
        f"title = {_quoted(wave.stem)}",
        "seed = 0",
        "",
        "[roles]",
        _single("key", roles["key"], "names a respondent across waves; never released"),
        _many("identifiers", roles["identifiers"], "dropped"),
        _many("quasi_identifiers", roles["quasi_identifiers"], "protected: numeric, known to others"),
        _many("confidential", [], "released as they are: move the sensitive ones here"),
        _single("weight", roles["weight"], "survey weight; released only if release_weight = true"),
        _unit(roles["unit"]),
        _other(roles["other"]),
        "",
        "[normalize]",
        'method = "zscore"              # zscore, minmax, rank, robust, none: for partitions in space',
        "",
        "[block]",
        'method = "whole"               # joint k-anonymity; consecutive(size) loses less, per block',
        "",
        "[project]",
        'method = "pcp"                 # pcp, zscores, sugeno, owa, choquet, attribute(name)',
        "",
        "[partition]",
        'method = "optimal"             # optimal, fixed, mdav, vmdav, md, kward: see `kohort methods`',
        'cost = "axis"                  # axis, block',
        "k = 5                          # the least number of records that look alike",
        "",
        "[centroid]",
        'method = "mean"                # mean, median, weighted_mean',
        "",
        "[release]",
        'claim = "k-anonymous"          # of whole records; several blocks claim "per-block" or "none"',
        'order = "sorted"               # "input" keeps the file\'s order, which links waves',
        "round_integers = false         # whole-number columns become floats unless this is true",
    ]
    return "\n".join(line for line in lines if line is not None) + "\n"


def _guess_roles(fields: list[pa.Field]) -> dict[str, list[str]]:
    roles: dict[str, list[str]] = {
        r: [] for r in ("key", "identifiers", "quasi_identifiers", "weight", "unit", "other")
    }
    for field in fields:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        if UNIT.search(field.name) and not roles["unit"]:
            roles["unit"].append(field.name)
            roles["identifiers"].append(field.name)
        elif KEY.search(field.name) and not roles["key"]:
            roles["key"].append(field.name)
        elif NAME.search(field.name):
            roles["identifiers"].append(field.name)
        elif number and WEIGHT.search(field.name) and not roles["weight"]:
            roles["weight"].append(field.name)
        elif number:
            roles["quasi_identifiers"].append(field.name)
        else:
            roles["other"].append(field.name)
    return roles


def _quoted(text: str) -> str:
    """A TOML string on one line; unlike JSON, TOML knows no surrogates and no bare control character."""
    quoted = json.dumps(text.encode(errors="replace").decode(), ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in quoted)


def _unit(names: list[str]) -> str:
    """Left for a person to decide: groups are of k records, seldom of k different households."""
    named = _quoted(names[0]) if names else '"..."'
    return (
        f"# unit = {named:<22} # household or enterprise, not among the identifiers then: distinct ones "
        "are counted"
    )


def _single(role: str, names: list[str], comment: str) -> str:
    setting = f"{role} = {_quoted(names[0])}" if names else f'# {role} = "..."'
    return f"{setting:<30} # {comment}"


def _many(role: str, names: list[str], comment: str) -> str:
    listed = "".join(f"  {_quoted(name)},\n" for name in names)
    if names:
        return f"{role} = [  # {comment}\n{listed}]"
    return f"{f'{role} = []':<30} # {comment}"


def _other(names: list[str]) -> str | None:
    if not names:
        return None
    return f'other = "drop"                 # no role yet, not numeric: {", ".join(map(_quoted, names))}'
