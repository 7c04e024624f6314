"""The rungs of the ladder that are a command, as values: when a project has one, what it runs, how it is read."""

from __future__ import annotations

import fnmatch
import functools
import posixpath
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pawl.checks.project import CheckKind, Folder, dependencies, make_targets, package_json, text
from pawl.core.errors import ConfigError

EVERYTHING = "*"
_GROUPS = frozenset({"path", "line", "column", "severity", "code", "message"})
_READERS = frozenset({"lines", "eslint"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSigns:
    """What shows that a project has the step; one of them is enough."""

    files: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    """Of a Makefile."""
    sections: tuple[tuple[str, re.Pattern[str]], ...] = ()

    def shown_by(self, files: Folder) -> str:
        """What was found, in words; empty when nothing was."""
        for name in self.files:
            if files.exists(name):
                return f"{name} is there"
        scripts = package_json(files).get("scripts")
        for name in self.scripts:
            if isinstance(scripts, dict) and isinstance(scripts.get(name), str):
                return f"package.json has the script {name!r}"
        for path, line in self.sections:
            if line.search(text(files, path)):
                return f"{path} configures it"
        for name in sorted(set(self.dependencies) & dependencies(files)):
            return f"{name} is a dependency"
        for name in self.targets:
            if name in make_targets(files):
                return f"the Makefile has the target {name!r}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCommand:
    words: tuple[str, ...]
    when: tuple[str, re.Pattern[str]] | None = None
    """Only where this file's text shows this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCheck:
    name: str
    kind: CheckKind
    signs: CheckSigns
    commands: tuple[CheckCommand, ...]
    """The first one whose program is there is run."""
    inputs: tuple[str, ...] = (EVERYTHING,)
    """Names of the files that decide about the verdict; a change of others is none of its business."""
    judges: tuple[str, ...] = ()
    """Names of the files that it judges; without one of them there is nothing to do."""
    reader: str = "lines"
    findings: tuple[re.Pattern[str], ...] = ()
    seconds: float = 120.0
    fallback: bool = False
    """Only where the project has no other step of this kind."""
    instead_of: tuple[str, ...] = ()
    """Rungs that this one takes the place of."""
    package: str = ""
    """What to install when the program is missing."""
    source: str = ""
    """The entry as it is written, which tells rungs apart."""

    def concerns(self, path: str) -> bool:
        return EVERYTHING in self.inputs or is_named(path, self.inputs)


def is_named(path: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern fits: by the file's name, or by the whole path when the pattern holds a slash."""
    name = posixpath.basename(path)
    return any(fnmatch.fnmatchcase(path if "/" in one else name, one) for one in patterns)


@functools.cache
def built_in() -> tuple[CommandCheck, ...]:
    text = (resources.files("pawl.checks") / "rungs.toml").read_text(encoding="utf-8")
    return load(tomllib.loads(text), "rungs.toml")


def load(data: Mapping[str, Any], source: str) -> tuple[CommandCheck, ...]:
    """Rungs from a table with `step`s; refused with the reason when one cannot be used."""
    rungs = []
    steps = data.get("step", [])
    if not isinstance(steps, list):
        raise ConfigError(f"{source}: step must be an array of tables", advice="write [[verify.step]]")
    shared = data.get("inputs", {})
    for entry in steps:
        name = str(entry.get("name", "without a name")) if isinstance(entry, Mapping) else repr(entry)
        try:
            rungs.append(_rung(entry, shared))
        except (KeyError, TypeError, ValueError, AttributeError, re.error) as error:
            said = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise ConfigError(
                f"{source}: the step {name!r} cannot be used: {said}",
                advice="a step has name, kind and command; see docs/verification.md",
            ) from error
    return tuple(rungs)


_KEYS = frozenset(
    {"name", "kind", "when", "command", "commands", "inputs", "judges", "reader", "finding", "findings", "seconds"}
    | {"fallback", "instead_of", "package"}
)


def _rung(entry: Mapping[str, Any], shared: Mapping[str, list[str]]) -> CommandCheck:
    unknown = sorted(set(entry) - _KEYS)
    if unknown:
        raise ValueError(f"there is no {unknown[0]!r} in a step")
    reader = str(entry.get("reader", "lines"))
    if reader not in _READERS:
        raise ValueError(f"there is no reader {reader!r}; known are {', '.join(sorted(_READERS))}")
    seconds = entry.get("seconds", 120.0)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds <= 0:
        raise ValueError(f"seconds must be above 0, not {seconds!r}")
    commands = entry["commands"] if "commands" in entry else [entry["command"]]
    return CommandCheck(
        name=str(entry["name"]),
        kind=CheckKind(entry["kind"]),
        signs=_signs(entry.get("when", {})),
        commands=tuple(_command(one) for one in commands),
        inputs=tuple(_expanded(entry.get("inputs", [EVERYTHING]), shared)),
        judges=_words(entry.get("judges", ())),
        reader=reader,
        findings=_patterns(entry.get("findings", [entry["finding"]] if "finding" in entry else [])),
        seconds=float(seconds),
        fallback=bool(entry.get("fallback", False)),
        instead_of=_words(entry.get("instead_of", ())),
        package=str(entry.get("package", "")),
        source=repr(entry),
    )


def _expanded(names: Iterable[str], shared: Mapping[str, list[str]]) -> Iterable[str]:
    for name in _words(names):
        yield from shared[name[1:]] if name.startswith("@") else (name,)


def _signs(when: Mapping[str, Any]) -> CheckSigns:
    return CheckSigns(
        files=_words(when.get("files", ())),
        dependencies=_words(when.get("dependencies", ())),
        scripts=_words(when.get("scripts", ())),
        targets=_words(when.get("targets", ())),
        sections=tuple((str(path), re.compile(line, re.MULTILINE)) for path, line in when.get("sections", ())),
    )


def _command(entry: Any) -> CheckCommand:
    if not isinstance(entry, Mapping):
        return CheckCommand(words=_at_least_one(_words(entry)))
    path, line = entry["when"]
    return CheckCommand(words=_at_least_one(_words(entry["words"])), when=(path, re.compile(line, re.MULTILINE)))


def _at_least_one(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words:
        raise ValueError("a command needs at least one word")
    return words


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not all(isinstance(word, str) for word in value):
        raise ValueError(f"{value!r} must be a list of texts")
    return tuple(value)


def _patterns(lines: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    patterns = tuple(re.compile(line, re.MULTILINE) for line in lines)
    for pattern in patterns:
        missing = {"message"} - set(pattern.groupindex)
        strange = set(pattern.groupindex) - _GROUPS
        if missing or strange:
            wrong = f"lacks the group {min(missing)!r}" if missing else f"has the group {min(strange)!r}"
            raise ValueError(f"the pattern {pattern.pattern!r} {wrong}; groups are {', '.join(sorted(_GROUPS))}")
    return patterns
