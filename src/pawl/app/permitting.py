"""The permissions of a workspace: the user's rules, and of the repository's what the user lets it say."""

from __future__ import annotations

import itertools
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from pawl.app.config import Config
from pawl.app.extending import extension_settings, own_kinds
from pawl.app.project_files import ProjectFiles
from pawl.app.project_settings import SETTINGS, project_settings
from pawl.app.trust import trusted_files
from pawl.core.errors import ConfigError, UsageError
from pawl.core.guardrails import Guardrails
from pawl.core.permission import Judge, Permission, Ruling
from pawl.core.run import Mode
from pawl.policy.allowances import Kind, allowances
from pawl.policy.permission_presets import DEFAULT, preset, presets
from pawl.policy.permission_rules import COMMAND_TOOL, Place, Rule, aliases, parse_rule
from pawl.policy.permissions import Cage, Permissions, paths_in

__all__ = [
    "Cage",
    "Permission",
    "PermissionSettings",
    "Permissions",
    "Permitting",
    "Ruling",
    "asked",
    "changes_judge",
    "permission_settings",
    "permissions_of",
    "permit_of",
    "presets",
]

Permit = Callable[[str, Mapping[str, object]], Permission]
READ_TOOL = "file_read"
LISTS = ("deny", "ask", "allow")

_CALL = re.compile(r"(?P<tool>[A-Za-z][A-Za-z0-9_-]*)(?:\((?P<what>.*)\))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionSettings:
    """The table [permissions]."""

    preset: str = DEFAULT
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Permitting:
    permissions: Permissions
    notices: tuple[str, ...] = ()
    """What of the repository's settings does not count, and why."""


def permissions_of(
    config: Config,
    workspace: str,
    *,
    mode: Mode = Mode.AGENT,
    cage: Cage = Cage.CLOSED,
    tools: Iterable[str] = (),
) -> Permitting:
    """The rules that count in the workspace; `tools` are further names that they may speak of.

    A repository adds to what is denied and asked about. What it would allow counts only where the user trusts it.
    """
    added = own_kinds(config)
    read, notices = _read(config, workspace, (*tools, *added))
    return Permitting(replace(read, mode=mode, cage=cage, own=added), notices)


def changes_judge(config: Config, workspace: str) -> Judge:
    """What the rules say of each change, whoever made it; tools of the user's own are not loaded for that."""
    known = extension_settings(config).tools if config.tables.extensions else ()
    return _read(config, workspace, known)[0].judge_changes()


def _read(config: Config, workspace: str, known: Iterable[str]) -> tuple[Permissions, tuple[str, ...]]:
    own = permission_settings(config.tables.permissions, str(config.file))
    notices: list[str] = []
    theirs = _of_project(workspace, known, notices, trusted=trusted_files(config, workspace))
    made = Permissions(
        preset=preset(own.preset),
        deny=(*_tightening(own.deny, config, known), *theirs["deny"]),
        ask=(*_tightening(own.ask, config, known), *theirs["ask"]),
        allow=(*_rules(own.allow, str(config.file), known), *theirs["allow"]),
        place=Place(workspace, str(config.home)),
    )
    return made, tuple(notices)


def permit_of(found: Permitting, guardrails: Guardrails) -> Permit:
    """What is said of a call: by the rules, and by the guardrails, which let no tool at secrets or at git's own files.

    The one function that decides, for every tool of a run and for `pawl permissions check`.
    """
    rules = found.permissions

    def permit(tool: str, arguments: Mapping[str, object]) -> Permission:
        said = rules.permit(tool, arguments)
        refused = "" if said.ruling is Ruling.DENY else _refused(rules, guardrails, tool, arguments)
        return Permission(ruling=Ruling.DENY, reason=refused, firm=True) if refused else said

    return permit


def _refused(rules: Permissions, guardrails: Guardrails, tool: str, arguments: Mapping[str, object]) -> str:
    if tool != READ_TOOL and allowances().tools.get(tool) is not Kind.WRITES:
        return ""
    for path in paths_in(arguments):
        inside = posixpath.relpath(rules.place.of(path), rules.place.workspace)
        if guardrails.is_secret(inside):
            return f"{path!r} holds secrets, which no tool reads or writes"
        if guardrails.never(inside):
            return f"{path!r} is out of reach of every tool"
    return ""


def permission_settings(table: Mapping[str, object], source: str) -> PermissionSettings:
    """The table as it is meant; every mistake of its form is reported at once."""
    mistakes = [f"{key!r} is not one of its fields" for key in table if key not in ("preset", *LISTS)]
    for key in LISTS:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            mistakes.append(f"{key} must be a list of rules, not {value!r:.200}")
    chosen = table.get("preset", DEFAULT)
    if chosen not in presets():
        mistakes.append(f"there is no preset {chosen!r:.80}")
    if mistakes:
        raise ConfigError(
            f"{source!r}: [permissions]: " + "; ".join(mistakes),
            advice=f"it takes preset ({', '.join(presets())}), deny, ask and allow",
        )
    lists = {key: tuple(map(str, value)) for key in LISTS if isinstance(value := table.get(key, []), list)}
    return PermissionSettings(preset=str(chosen), **lists)


def _rules(texts: Iterable[str], source: str, known: Iterable[str]) -> tuple[Rule, ...]:
    return tuple(parse_rule(text, source, known=known) for text in texts)


def _tightening(texts: Iterable[str], config: Config, known: Iterable[str]) -> tuple[Rule, ...]:
    """The rules; one with a path from / or ~ comes once more with its links followed, as the workspace is named."""
    rules = _rules(texts, str(config.file), known)
    return (*rules, *(real for rule in rules if (real := _followed(rule, str(config.home))) is not None))


def _followed(rule: Rule, home: str) -> Rule | None:
    pattern = rule.path
    if pattern is None or pattern.root not in ("/", "home"):
        return None
    names = [*(home.split("/") if pattern.root == "home" else ()), *pattern.names]
    plain = list(itertools.takewhile(lambda name: not {"*", "?"} & set(name), filter(None, names)))
    rest = [name for name in names if name][len(plain) :]
    real = [name for name in os.path.realpath("/" + "/".join(plain)).split("/") if name]
    return replace(rule, path=replace(pattern, names=(*real, *rest), root="/")) if real != plain else None


def _of_project(
    workspace: str, known: Iterable[str], notices: list[str], *, trusted: ProjectFiles | None
) -> Mapping[str, tuple[Rule, ...]]:
    """A mistake in the files of a repository that is not trusted must not stop the user's work."""
    rules: dict[str, tuple[Rule, ...]] = dict.fromkeys(LISTS, ())
    try:
        table = project_settings(workspace, trusted).permissions
        given = permission_settings({**table, "preset": DEFAULT}, SETTINGS)
    except ConfigError as error:
        if trusted is not None:
            raise
        notices.append(f"not used: {error.message}")
        return rules
    if "preset" in table:
        notices.append(f"{SETTINGS}: the preset is the user's to choose; it does not count")
    if given.allow and trusted is None:
        notices.append(f"{SETTINGS}: what it allows does not count, because the folder is not trusted ('pawl trust')")
    for name, texts in (
        ("deny", given.deny),
        ("ask", given.ask),
        ("allow", given.allow if trusted is not None else ()),
    ):
        for text in texts:
            try:
                rules[name] = (*rules[name], parse_rule(text, SETTINGS, known=known))
            except ConfigError as error:
                if trusted is not None:
                    raise
                notices.append(f"not used: {error.message}")
    return rules


def asked(permit: Permit, call: str) -> Permission:
    """What is said of a call that is written as rules are, such as `Bash(git push)` or `mcp__docs__search`."""
    found = _CALL.fullmatch(call.strip())
    if found is None:
        raise UsageError(f"{call!r} is not a call", advice="write it as 'Bash(git push)' or 'Edit(src/app.py)'")
    name, what = found["tool"], found["what"] or ""
    tools = aliases().get(name, frozenset({name}))
    tool = next((one for one in (COMMAND_TOOL, READ_TOOL, "file_write") if one in tools), sorted(tools)[0])
    return permit(tool, {"command": what} if tool == COMMAND_TOOL else {"path": what} if what else {})
