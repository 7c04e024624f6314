"""The permissions of a workspace: the user's rules, and of the repository's what the user lets it say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pawl.app.config import Config
from pawl.app.extending import own_kinds
from pawl.app.project_files import ProjectFiles
from pawl.app.project_settings import SETTINGS, project_settings
from pawl.app.trust import trusted_files
from pawl.core.errors import ConfigError, UsageError
from pawl.core.permission import Permission, Ruling
from pawl.core.run import Mode
from pawl.policy.permission_presets import DEFAULT, preset, presets
from pawl.policy.permission_rules import COMMAND_TOOL, Place, Rule, aliases, parse_rule
from pawl.policy.permissions import Cage, Permissions

__all__ = [
    "Cage",
    "Permission",
    "PermissionSettings",
    "Permissions",
    "Permitting",
    "Ruling",
    "asked",
    "permission_settings",
    "permissions_of",
    "presets",
]

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
    own = permission_settings(config.tables.permissions, str(config.file))
    added = own_kinds(config)
    known = (*tools, *added)
    notices: list[str] = []
    theirs = _of_project(workspace, known, notices, trusted=trusted_files(config, workspace))
    return Permitting(
        Permissions(
            preset=preset(own.preset),
            deny=(*_rules(own.deny, str(config.file), known), *theirs["deny"]),
            ask=(*_rules(own.ask, str(config.file), known), *theirs["ask"]),
            allow=(*_rules(own.allow, str(config.file), known), *theirs["allow"]),
            mode=mode,
            cage=cage,
            place=Place(workspace, str(config.home)),
            own=added,
        ),
        tuple(notices),
    )


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


def asked(permissions: Permissions, call: str) -> Permission:
    """What the rules say of a call that is written as rules are, such as `Bash(git push)` or `mcp__docs__search`."""
    found = _CALL.fullmatch(call.strip())
    if found is None:
        raise UsageError(f"{call!r} is not a call", advice="write it as 'Bash(git push)' or 'Edit(src/app.py)'")
    name, what = found["tool"], found["what"] or ""
    tools = aliases().get(name, frozenset({name}))
    tool = next((one for one in (COMMAND_TOOL, "file_read", "file_write") if one in tools), sorted(tools)[0])
    return permissions.permit(tool, {"command": what} if tool == COMMAND_TOOL else {"path": what} if what else {})
