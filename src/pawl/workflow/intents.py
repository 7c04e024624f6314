"""What a request asks for, where that can be told without a model: phrases of a data file, and the request form."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pawl.core.runs import Intent
from pawl.workflow.request_form import request_form

LONGEST = 400
"""Characters of a request that phrases are held against; a longer one needs a reader."""

_END = re.compile(r"[\s.!?]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """What is asked for. `command` is `tests`, `lint`, `types`, or a command line as it was said."""

    intent: Intent
    command: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phrase:
    intent: Intent
    command: str
    pattern: re.Pattern[str]


def understood(request: str) -> Understood | None:
    """What the request obviously asks for; None when it takes a model to tell."""
    if request_form(request) is not None:
        return Understood(intent=Intent.EDIT)
    plain = _plain(request)
    if len(plain) > LONGEST:
        return None
    for phrase in _phrases():
        match = phrase.pattern.fullmatch(plain)
        if match is not None:
            named = match.groupdict().get("named") or ""
            return Understood(intent=phrase.intent, command=_command(phrase.command, named))
    return None


def tests_may_change(request: str) -> bool:
    """Whether the request itself asks for tests to be removed or changed."""
    patterns, exceptions = _test_words()
    text = request.lower().replace("’", "'")
    return patterns.search(text) is not None and exceptions.search(text) is None


def examples() -> Sequence[tuple[Intent, str]]:
    """One way to say each thing that is understood without a model."""
    return [(Intent(row["name"]), row["examples"][0]) for row in _file()["intent"]]


def _plain(request: str) -> str:
    """In one line, without what is only polite; a question keeps its mark."""
    text = " ".join(request.replace("’", "'").split())
    asks = text.endswith("?")
    text = _END.sub("", text)
    text = re.sub(rf"(?i)^(?:{_file()['words']['polite']}[, ]+)+", "", text)
    text = re.sub(r"(?i)[, ]+(?:please|pls|thanks|thank you)$", "", text)
    return f"{text}?" if asks and not _is_known(text) else text


def _is_known(text: str) -> bool:
    """Whether the words alone fit something other than a question."""
    return any(phrase.intent is not Intent.READ and phrase.pattern.fullmatch(text) for phrase in _phrases())


def _command(kind: str, named: str) -> str:
    if kind != "file":
        return kind
    ending = named.rpartition(".")[2]
    program = {"py": "python3", "sh": "sh", "rb": "ruby"}.get(ending, "node")
    return f"{program} {named}"


@functools.cache
def _file() -> Mapping[str, Any]:
    return tomllib.loads((resources.files("pawl.workflow") / "intents.toml").read_text("utf-8"))


@functools.cache
def _phrases() -> tuple[_Phrase, ...]:
    words = _file()["words"]
    return tuple(
        _Phrase(
            intent=Intent(row["name"]),
            command=row.get("command", ""),
            pattern=re.compile(
                "|".join(one.replace("<file>", words["file"]) for one in row["patterns"]), re.IGNORECASE
            ),
        )
        for row in _file()["intent"]
    )


@functools.cache
def _test_words() -> tuple[re.Pattern[str], re.Pattern[str]]:
    row = _file()["tests_may_change"]
    return re.compile("|".join(row["patterns"])), re.compile("|".join(row["exceptions"]))
