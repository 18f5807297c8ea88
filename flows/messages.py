"""One sentence for what pydantic says in many lines."""

from __future__ import annotations

from pydantic import ValidationError

TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "a text",
    "bool_type": "true or false",
    "list_type": "a list",
    "model_type": "a table",
    "dict_type": "a table",
    "model_attributes_type": "a table",
}


def first_sentence(error: ValidationError) -> str:
    """The first thing that is wrong, where it is, and how many more there are."""
    details = error.errors(include_url=False)
    details.sort(key=lambda detail: detail["type"] == "missing")  # a misspelt one is missing too
    sentence = _sentence(details[0])
    more = len(details) - 1
    return f"{sentence} (and {more} more)" if more else sentence


def _sentence(detail: dict[str, object]) -> str:  # type: ignore[type-arg]
    kind = str(detail["type"])
    context = detail.get("ctx") or {}
    field = _field(detail["loc"])  # type: ignore[arg-type]
    where = field or "the plan"
    if kind == "value_error":
        return f"{field}: {context['error']}" if field else str(context["error"])  # type: ignore[index]
    if kind == "missing":
        return f"{where} is missing; add it"
    if kind == "extra_forbidden":
        return f"{where} is not a field of this section; remove it or check its spelling"
    if kind == "union_tag_not_found":
        return f"{where}.method is missing; say which method"
    if kind == "union_tag_invalid":
        return f"{where}.method must be one of {context['expected_tags']}, got {context['tag']!r}"  # type: ignore[index]
    if kind == "literal_error":
        return f"{where} must be {context['expected']}, got {detail['input']!r}"  # type: ignore[index]
    if kind == "greater_than_equal":
        return f"{where} must be at least {context['ge']}, got {detail['input']!r}"  # type: ignore[index]
    if kind == "less_than_equal":
        return f"{where} must be at most {context['le']}, got {detail['input']!r}"  # type: ignore[index]
    if kind in TYPES:
        return f"{where} must be {TYPES[kind]}, got {detail['input']!r}"
    return f"{where}: {detail['msg']}"


def _field(location: tuple[object, ...]) -> str:
    """`partition.k` for ("partition", "optimal", "k"): the chosen method is no part of the name."""
    if len(location) > 2 and isinstance(location[1], str):
        location = (location[0], *location[2:])
    return ".".join(str(part) for part in location)
