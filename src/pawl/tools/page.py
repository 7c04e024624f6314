"""The page of text that tells a model what a tool is for. A variable that is unknown is an error, and so is a page that
is longer than it says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from pawl.core.errors import ConfigError

_PAGE = re.compile(r"---\npurpose: (?P<purpose>[^\n]+)\nwords: (?P<words>\d+)\n---\n(?P<body>.+)", re.DOTALL)
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Page:
    purpose: str
    """One line for a list of tools."""
    text: str


def page(name: str, variables: Mapping[str, object]) -> Page:
    """The page beside the tool's module, with its variables filled in."""
    source = (resources.files("pawl.tools") / f"{name}.md").read_text("utf-8")
    return rendered(name, source, variables)


def rendered(name: str, source: str, variables: Mapping[str, object]) -> Page:
    parts = _PAGE.fullmatch(source)
    if parts is None:
        raise ConfigError(f"the page of {name!r} does not begin with its purpose and words", advice="add the two lines")
    unknown = sorted(set(_VARIABLE.findall(source)) - set(variables))
    if unknown:
        raise ConfigError(
            f"the page of {name!r} uses unknown variables: {', '.join(unknown)}",
            advice=f"known are {', '.join(sorted(variables))}",
        )
    text = _VARIABLE.sub(lambda match: str(variables[match[1]]), parts["body"]).strip()
    if len(text.split()) > int(parts["words"]):
        raise ConfigError(f"the page of {name!r} has over {parts['words']} words", advice="shorten it")
    return Page(parts["purpose"].strip(), text)
