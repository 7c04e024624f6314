"""Many different schemas with a request each, and a check of a value against the keywords that they use."""

from __future__ import annotations

import re
from collections.abc import Mapping

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
BOUNDS = {"minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"}
SHAPES = {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "pattern"}
KEYWORDS = BOUNDS | SHAPES | {"$ref", "$defs"}


def mistakes(value: object, schema: Mapping, root: Mapping | None = None, at: str = "$") -> list[str]:
    """Where a value does not fit a schema. A keyword that is not checked here is refused, not passed over."""
    root = schema if root is None else root
    if unknown := schema.keys() - KEYWORDS:
        raise ValueError(f"not checked: {sorted(unknown)}")
    if "$ref" in schema:
        target: object = root
        for step in schema["$ref"].split("/")[1:]:
            target = target[step]
        return mistakes(value, target, root, at)
    found = [] if _has_type(value, schema.get("type")) else [f"{at} is no {schema['type']}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{at} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at} is none of {schema['enum']}")
    if "anyOf" in schema and all(mistakes(value, one, root, at) for one in schema["anyOf"]):
        found.append(f"{at} fits no alternative")
    match value:
        case dict():
            return found + _object(value, schema, root, at)
        case list():
            return found + _array(value, schema, root, at)
        case str():
            return found + _string(value, schema, at)
        case int() if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            return [*found, f"{at} is out of bounds"]
    return found


def _has_type(value: object, kind: str | None) -> bool:
    is_number = kind in ("integer", "number")
    return kind is None or (isinstance(value, TYPES[kind]) and not (is_number and isinstance(value, bool)))


def _object(value: dict, schema: Mapping, root: Mapping, at: str) -> list[str]:
    properties = schema.get("properties", {})
    found = [f"{at} lacks {name}" for name in schema.get("required", ()) if name not in value]
    if schema.get("additionalProperties") is False:
        found += [f"{at} has {name}" for name in value.keys() - properties.keys()]
    for name, inner in value.items():
        if name in properties:
            found += mistakes(inner, properties[name], root, f"{at}.{name}")
    return found


def _array(value: list, schema: Mapping, root: Mapping, at: str) -> list[str]:
    fits = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
    found = [] if fits else [f"{at} has {len(value)} items"]
    for number, inner in enumerate(value):
        found += mistakes(inner, schema.get("items", {}), root, f"{at}[{number}]")
    return found


def _string(value: str, schema: Mapping, at: str) -> list[str]:
    fits = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
    found = [] if fits else [f"{at} has {len(value)} characters"]
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{at} does not match")
    return found


def closed(**properties: Mapping) -> dict:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT = {"type": "string", "maxLength": 40}
COUNT = {"type": "integer", "minimum": 1, "maximum": 9}
SUBJECTS = (
    "a function that adds two numbers",
    "a bug in a login form",
    "a test that fails on Windows",
    "the file src/main.py",
    "a pull request about caching",
    "a slow database query",
    "an import that is missing",
    "a typo in README.md",
    "a release of version 2",
    "a memory leak",
)


def requests() -> list[tuple[str, dict]]:
    """Fifty different requests: ten subjects in five shapes, each with names and limits of its own."""
    made = []
    for number, subject in enumerate(SUBJECTS, start=1):
        item = closed(name=TEXT, weight={"type": "number"}, kind={"enum": ["a", "b", number]})
        made += [
            (
                f"Describe {subject} as JSON.",
                closed(title=TEXT, **{f"score_{number}": COUNT}, open={"type": "boolean"}),
            ),
            (
                f"List steps for {subject}.",
                closed(steps={"type": "array", "items": TEXT, "minItems": 1, "maxItems": 3}),
            ),
            (
                f"Judge {subject}.",
                closed(verdict={"enum": ["DONE", "NEEDS_WORK"], "type": "string"}, why=TEXT, level={"const": number}),
            ),
            (
                f"Name the parts of {subject}.",
                {
                    **closed(first={"$ref": "#/$defs/part"}, rest={"anyOf": [{"type": "null"}, item]}),
                    "$defs": {"part": item},
                },
            ),
            (
                f"Give {subject} an identifier and an owner.",
                closed(
                    id={"type": "string", "pattern": f"^[A-Z]{{2}}-[0-9]{{{1 + number % 4}}}$"},
                    owner={"anyOf": [TEXT, {"type": "null"}]},
                    tags={"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 2},
                ),
            ),
        ]
    return made
