"""Whether a call of a tool may be carried out: deny, then ask, then allow, then what the preset says by kind of tool.

A pure function of the call and of rules that were read before it. It never fails, and is never weaker for a longer or
a stranger command.
"""

from __future__ import annotations

import functools
import itertools
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from pawl.core.change import Change, ChangeSet, NodeKind
from pawl.core.diagnostic import Diagnostic
from pawl.core.errors import ConfigError, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Mode
from pawl.core.typed import Reader, written
from pawl.settings.config import Config
from pawl.settings.extensions import extension_settings, own_kinds
from pawl.settings.guardrails import (
    Decision,
    Guardrails,
    Judge,
    OtherNames,
    Permission,
    folded,
    preset_tables,
    preset_text,
)
from pawl.settings.guardrails import presets as preset_names
from pawl.settings.permission_rules import (
    CHANGES,
    COMMAND_TOOL,
    DELETE,
    MCP,
    STANDS_FOR,
    WEB_FETCH,
    WEB_SEARCH,
    PathBase,
    Rule,
    ToolKind,
    aliases,
    allowances,
    has_wildcards,
    parse_rule,
    web_host,
)
from pawl.settings.shell import Script, ShellCommand
from pawl.settings.shell_permissions import TIGHTENING, CommandJudge, rule_for, script_of
from pawl.settings.trust import SETTINGS, ProjectFiles, project_settings, trusted_files

DEFAULT = "caged"
"""Whoever works on a confined bench need not be asked at each step: nothing there is the user's yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The rulings where no rule speaks, by kind of tool."""

    reads: Decision
    writes: Decision
    runs: Decision
    caged: Decision
    """Of a shell command in the sandbox without a network."""
    doubtful: Decision
    """Of one that cannot be read for certain, there, where no rule of the user's could be broken."""
    delegates: Decision
    other: Decision
    """Of a tool that is not Pawl's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    name: str
    defaults: Defaults
    examples: Mapping[Decision, tuple[str, ...]]
    """Commands, and what must be said of them."""
    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    allow: tuple[Rule, ...] = ()


def presets() -> tuple[str, ...]:
    """The names of the presets that come with Pawl."""
    return preset_names("permissions")


@functools.cache
def preset(name: str = DEFAULT) -> Preset:
    """The preset of that name."""
    tables = preset_tables(preset_text(name, "permissions"), "permissions")
    rules = {
        key: tuple(parse_rule(text, f"the preset {name}") for text in texts) for key, texts in tables["rules"].items()
    }
    examples = {Decision(ruling): tuple(commands) for ruling, commands in tables["examples"].items()}
    return Preset(name=name, defaults=written(Defaults, tables["defaults"]), examples=examples, **rules)


_MOST_SUGGESTIONS = 20
_OUTSIDE = "it writes outside of the workspace"
_NOTHING_IN_CHAT = CHANGES | {ToolKind.DELEGATES}


class SandboxMode(StrEnum):
    """How the commands that are judged would run."""

    CLOSED = "closed"
    """In the sandbox, without a network."""
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """The user's rules over a preset, for one run."""

    preset: Preset = field(default_factory=preset)
    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    allow: tuple[Rule, ...] = ()
    mode: Mode = Mode.AGENT
    cage: SandboxMode = SandboxMode.CLOSED
    place: PathBase = field(default_factory=PathBase)
    own: Mapping[str, ToolKind] = field(default_factory=dict)
    """Tools of the user's own."""

    def permit(self, tool: str, arguments: Mapping[str, object]) -> Permission:
        """The ruling on the call, with rules that would let it pass where it is asked about."""
        said = self._judged(tool, arguments)
        if said.ruling is not Decision.ASK:
            return said
        return replace(said, suggestions=self._suggestions(tool, arguments))

    @property
    def has_read_rules(self) -> bool:
        return bool(self._speaking(lambda rule: rule.is_about(READ_TOOL)))

    def judge_reads(self, *, searching: bool = False) -> Callable[[str], Permission | None]:
        """Says of a path which rule denies reading it, or asks about it; with `searching`, finding it in a search."""
        place = self.place

        def about(rule: Rule) -> bool:
            found = searching and rule.path is not None and rule.is_about(SEARCH_TOOL)
            return found or rule.is_about(READ_TOOL)

        speaking = self._speaking(about)

        def judged(path: str) -> Permission | None:
            names = [folded(name) for name in place.of(path).split("/") if name] if speaking else []
            return next(
                (rule.permission(ruling) for rule, ruling, fits in speaking if fits is None or fits(names)), None
            )

        return judged

    def judge_changes(self) -> Judge:
        """The ruling on each path that is changed, whoever changes it."""
        place = self.place
        root = [folded(name) for name in place.workspace.split("/") if name]
        speaking = self._speaking(lambda rule: rule.is_about_changes)

        def judged(change: Change) -> Permission | None:
            if not speaking:
                return None
            paths = (change.path, *(place.others.of(change.path) if place.others is not None else ()))
            every = [[*root, *map(folded, path.split("/"))] for path in paths]
            is_link = change.after is not None and change.after.kind is NodeKind.LINK
            before, after = (node and node.kind for node in (change.before, change.after))
            for rule, ruling, fits in speaking:
                if rule.promoted == DELETE and before in (None, after):
                    continue
                if rule.path is None or fits is None or any(map(fits, every)):
                    return rule.permission(ruling)
                if is_link and any(rule.path.may_lie_below(names, place) for names in every):
                    return rule.permission(ruling)
            return None

        return judged

    def _speaking(
        self, about: Callable[[Rule], bool]
    ) -> list[tuple[Rule, Decision, Callable[[Sequence[str]], bool] | None]]:
        """The rules that deny or ask, each with what says whether the folded names of a full path fit it."""
        return [
            (rule, ruling, None if rule.path is None else rule.path.tightened(self.place))
            for ruling in TIGHTENING
            for rule in self._rules(ruling)
            if about(rule)
        ]

    def _rules(self, ruling: Decision) -> tuple[Rule, ...]:
        """The user's rules, then the preset's; the lists are named after their rulings."""
        return (*getattr(self, ruling), *getattr(self.preset, ruling))

    def _judged(self, tool: str, arguments: Mapping[str, object]) -> Permission:
        kind = allowances().tools.get(tool) or self.own.get(tool)
        if self.mode is Mode.CHAT and kind in _NOTHING_IN_CHAT:
            return Permission(ruling=Decision.DENY, reason=f"chat mode never {kind}", firm=True)
        if tool == COMMAND_TOOL:
            return self._command(arguments)
        if tool in (WEB_FETCH, WEB_SEARCH):
            return self._web(tool, web_host(arguments.get("url", "")))
        paths = [self.place.of(path) for path in paths_in(arguments)] if kind else []
        said = self._about(tool, kind, paths)
        # No answer could help: file tools reach nothing there, as a command or a user's tool may.
        return replace(said, ruling=Decision.DENY) if said.reason == _OUTSIDE and tool not in self.own else said

    def _about(self, tool: str, kind: ToolKind | None, paths: Sequence[str]) -> Permission:
        for ruling in TIGHTENING:
            for rule in self._rules(ruling):
                about = any(map(rule.is_about, self._names(rule, tool)))
                if about and (rule.path is None or _fits(rule, paths, self.place, tightens=True)):
                    return rule.permission(ruling)
        allowing = [rule for rule in self._rules(Decision.ALLOW) if rule.is_about(tool)]
        whole = next((rule for rule in allowing if rule.path is None), None)
        used = [
            next((rule for rule in allowing if _fits(rule, [path], self.place, tightens=False)), None) for path in paths
        ]
        if whole is not None or (used and all(used)):
            return (whole or next(rule for rule in used if rule)).permission(Decision.ALLOW)
        if kind is ToolKind.WRITES and not all(
            PurePosixPath(path).is_relative_to(self.place.workspace) for path in paths
        ):
            return Permission(ruling=Decision.ASK, reason=_OUTSIDE, firm=True)
        # What a server says of its own tools settles nothing.
        return self._default(None if tool.startswith(MCP) else kind, own=tool in self.own)

    def _web(self, tool: str, host: str) -> Permission:
        """Whatever leaves this machine is asked about where no rule speaks."""
        for ruling in (*TIGHTENING, Decision.ALLOW):
            for rule in self._rules(ruling):
                if rule.is_about(tool) and (not rule.host or fnmatchcase(host, rule.host)):
                    return rule.permission(ruling)
        return replace(self._default(None), reason=f"it leaves this machine, and no rule is about {host or tool}")

    def _names(self, rule: Rule, tool: str) -> tuple[str, ...]:
        """A rule against reading, writing or any command is also against the tools of the user's own that do so."""
        everything = rule.command is None or rule.command.is_everything
        return (tool, STANDS_FOR[self.own[tool]]) if tool in self.own and everything else (tool,)

    def _default(self, kind: ToolKind | None, *, own: bool = False) -> Permission:
        defaults = self.preset.defaults
        # The commands of a tool of the user's own are judged one by one when it runs them.
        caged = own and self.cage is SandboxMode.CLOSED
        by_kind = {
            ToolKind.READS: defaults.reads,
            ToolKind.WRITES: defaults.writes,
            ToolKind.RUNS: defaults.caged if caged else defaults.runs,
            ToolKind.DELEGATES: defaults.delegates,
        }
        what = "are not Pawl's own" if kind is None else str(kind).removesuffix("s")
        ruling = by_kind[kind] if kind else defaults.other
        does = {Decision.ALLOW: "allows", Decision.ASK: "asks about", Decision.DENY: "denies"}[ruling]
        return Permission(ruling=ruling, reason=f"the preset {self.preset.name} {does} tools that {what}")

    def _command(self, arguments: Mapping[str, object]) -> Permission:
        script, directory = script_of(arguments), arguments.get("directory", "")
        if script is None or not isinstance(directory, str):
            return Permission(ruling=Decision.DENY, reason="the arguments are not those of a command", firm=True)
        return self._judge().judge(script, directory)

    def _judge(self) -> CommandJudge:
        defaults, closed = self.preset.defaults, self.cage is SandboxMode.CLOSED
        has_own = any(rule.is_about(COMMAND_TOOL) or rule.path for rule in (*self.deny, *self.ask))
        kinds = allowances().tools
        return CommandJudge(
            rules={ruling: self._rules(ruling) for ruling in Decision},
            place=self.place,
            unmatched=defaults.caged if closed else defaults.runs,
            passes_doubts=closed and defaults.doubtful is Decision.ALLOW and not has_own,
            judge_path=lambda tool, paths: self._redirected(self._about(tool, kinds[tool], paths)),
        )

    def _redirected(self, said: Permission) -> Permission:
        """What a confined command writes outside of the workspace is lost with it, or refused by the sandbox."""
        lost = said.reason == _OUTSIDE and self.cage is SandboxMode.CLOSED
        return replace(said, ruling=self.preset.defaults.caged, firm=False) if lost else said

    def _suggestions(self, tool: str, arguments: Mapping[str, object]) -> tuple[str, ...]:
        """Offered only when they work: with them the same call is allowed."""
        texts = [rule_for(tool, path) for path in paths_in(arguments)]
        if tool == COMMAND_TOOL:
            texts = self._command_suggestions(arguments)
        elif tool == WEB_FETCH:
            texts = [f"WebFetch(domain:{web_host(arguments.get('url', ''))})"]
        try:
            rules = tuple(parse_rule(text, known=(tool,)) for text in dict.fromkeys(texts or [rule_for(tool, "")]))
        except ConfigError:
            return ()
        tried = replace(self, allow=(*self.allow, *rules))._judged(tool, arguments)
        return tuple(rule.text for rule in rules) if tried.allowed else ()

    def _command_suggestions(self, arguments: Mapping[str, object]) -> list[str]:
        script = script_of(arguments)
        if script is None or script.doubts or not script.readable or len(script.commands) > _MOST_SUGGESTIONS:
            return []
        judge, texts = self._judge(), []
        for command in script.commands:
            alone = replace(command, redirections=())
            if (alone.words or alone.assignments) and not judge.judge(Script((alone,)), "").allowed:
                texts.append(rule_for(COMMAND_TOOL, command))
            for one in command.redirections:
                if not judge.judge(Script((ShellCommand((), (), (one,)),)), "").allowed:
                    texts.append(rule_for("file_write" if one.writes else "file_read", one.target.text))
        return texts


def applies(rule: Rule, tool: str, arguments: Mapping[str, object], place: PathBase) -> bool:
    """Whether the rule is about the call; so it is of a command that cannot be read for certain."""
    empty = replace(preset("standard"), deny=(), ask=(), allow=())
    said = Permissions(preset=empty, ask=(rule,), place=place)._judged(tool, arguments)
    return rule.is_about(tool) and (said.rule == rule.text or said.firm)


def paths_in(arguments: Mapping[str, object]) -> list[str]:
    """The paths that a call of one of Pawl's own tools names."""
    changes = arguments.get("changes")
    several = changes if isinstance(changes, list | tuple) else ()
    named = (one.get("path") for one in (arguments, *several) if isinstance(one, Mapping))
    return [path for path in named if isinstance(path, str)]


def _fits(rule: Rule, paths: Iterable[str], place: PathBase, *, tightens: bool) -> bool:
    return rule.path is not None and any(rule.path.fits(path, place, tightens=tightens) for path in paths)


Permit = Callable[[str, Mapping[str, object]], Permission]
READ_TOOL, SEARCH_TOOL = "file_read", "file_search"
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
    """The repository's settings that do not count, and why."""


def permissions_of(
    config: Config,
    workspace: str,
    *,
    mode: Mode = Mode.AGENT,
    cage: SandboxMode = SandboxMode.CLOSED,
    tools: Iterable[str] = (),
    served: Mapping[str, ToolKind] | None = None,
) -> Permitting:
    """The rules that count in the workspace; `tools` are further names that they may speak of, and `served` the kinds
    of the tools of MCP servers.

    A repository adds to what is denied and asked about. What it would allow counts only where the user trusts it.
    """
    added = {**own_kinds(config), **(served or {})}
    read, notices = _read(config, workspace, (*tools, *added))
    return Permitting(replace(read, mode=mode, cage=cage, own=added), notices)


def read_rules(config: Config, workspace: str, others: OtherNames | None = None) -> Permissions:
    """The rules for judging paths under every name; tools of the user's own are known by name and not loaded."""
    known = extension_settings(config).tools if config.tables.extensions else ()
    return _knowing(_read(config, workspace, known)[0], others)


def _knowing(rules: Permissions, others: OtherNames | None) -> Permissions:
    return replace(rules, place=replace(rules.place, others=others))


def _read(config: Config, workspace: str, known: Iterable[str]) -> tuple[Permissions, tuple[str, ...]]:
    own = permission_settings(config.tables.permissions, str(config.file))
    notices: list[str] = []
    theirs = project_rules(workspace, known, notices, trusted=trusted_files(config, workspace))
    made = Permissions(
        preset=preset(own.preset),
        deny=(*_tightening(own.deny, config, known), *theirs["deny"]),
        ask=(*_tightening(own.ask, config, known), *theirs["ask"]),
        allow=(*_workspace_rules(own.allow, str(config.file), known), *theirs["allow"]),
        place=PathBase(workspace, str(config.home)),
    )
    return made, tuple(notices)


def permit_of(found: Permitting, guardrails: Guardrails) -> Permit:
    """The ruling on a call: by the rules, and by the guardrails, which let no tool at secrets or at git's own files.

    The one function that decides, for every tool of a run and for `pawl permissions check`.
    """
    rules = _knowing(found.permissions, guardrails.others)

    def permit(tool: str, arguments: Mapping[str, object]) -> Permission:
        said = rules.permit(tool, arguments)
        refused = "" if said.ruling is Decision.DENY else _refused(rules, guardrails, tool, arguments)
        return Permission(ruling=Decision.DENY, reason=refused, firm=True) if refused else said

    return permit


def unasked(permit: Permit) -> Permit:
    """The rules where nobody can be asked: what would be asked about is refused."""

    def permitted(tool: str, arguments: Mapping[str, object]) -> Permission:
        found = permit(tool, arguments)
        if found.ruling is not Decision.ASK:
            return found
        # The policy decides who may send whom, and sending alone does nothing.
        if allowances().tools.get(tool) is ToolKind.DELEGATES:
            return replace(found, ruling=Decision.ALLOW)
        why = found.reason or "it needs the user's yes"
        return replace(found, ruling=Decision.DENY, reason=f"{why}, and nobody can be asked here")

    return permitted


def _refused(rules: Permissions, guardrails: Guardrails, tool: str, arguments: Mapping[str, object]) -> str:
    if tool != READ_TOOL and allowances().tools.get(tool) is not ToolKind.WRITES:
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
    reader = Reader()
    read = reader.table(PermissionSettings, table, "permissions") or PermissionSettings()
    if read.preset not in presets():
        reader.wrong("permissions.preset", f"must be one of {', '.join(presets())}, not {read.preset!r:.80}")
    reader.check(source)
    return read


def own_rules(config: Config) -> tuple[Rule, ...]:
    """All rules of the user's settings. Tools of the user's own are known by name."""
    tools = config.tables.extensions.get("tools", ())
    known = [str(one) for one in tools] if isinstance(tools, list) else []
    own = permission_settings(config.tables.permissions, str(config.file))
    return _workspace_rules((*own.deny, *own.ask, *own.allow), str(config.file), known)


def _parsed(texts: Iterable[str], source: str, known: Iterable[str]) -> tuple[tuple[Rule, ...], list[ConfigError]]:
    """The rules of the texts, and why others are none."""
    rules: list[Rule] = []
    wrong: list[ConfigError] = []
    for text in texts:
        try:
            rules.append(parse_rule(text, source, known=known))
        except ConfigError as error:
            wrong.append(error)
    return tuple(rules), wrong


def _workspace_rules(texts: Iterable[str], source: str, known: Iterable[str]) -> tuple[Rule, ...]:
    rules, wrong = _parsed(texts, source, known)
    if wrong:
        raise ConfigError("; ".join(error.message for error in wrong), advice=wrong[0].advice)
    return rules


def _tightening(texts: Iterable[str], config: Config, known: Iterable[str]) -> tuple[Rule, ...]:
    """The rules; one with a path from / or ~ comes once more with its links followed, as the workspace is named."""
    rules = _workspace_rules(texts, str(config.file), known)
    return (*rules, *(real for rule in rules if (real := _followed(rule, str(config.home))) is not None))


def _followed(rule: Rule, home: str) -> Rule | None:
    pattern = rule.path
    if pattern is None or pattern.root not in ("/", "home"):
        return None
    names = [*(home.split("/") if pattern.root == "home" else ()), *pattern.names]
    plain = list(itertools.takewhile(lambda name: not has_wildcards(name), filter(None, names)))
    rest = [name for name in names if name][len(plain) :]
    real = [name for name in os.path.realpath("/" + "/".join(plain)).split("/") if name]
    return replace(rule, path=replace(pattern, names=(*real, *rest), root="/")) if real != plain else None


def project_rules(
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
        notices.append(f"{SETTINGS}: only the user chooses a preset; this one is ignored")
    if given.allow and trusted is None:
        notices.append(f"{SETTINGS}: what it allows is ignored, because the folder is not trusted ('pawl trust')")
    for name, texts in (("deny", given.deny), ("ask", given.ask), ("allow", given.allow if trusted else ())):
        rules[name], wrong = _parsed(texts, SETTINGS, known)
        if wrong and trusted is not None:
            raise wrong[0]
        notices += (f"not used: {error.message}" for error in wrong)
    return rules


def asked(permit: Permit, call: str) -> Permission:
    """The ruling on a call that is written as rules are, such as `Bash(git push)` or `mcp__docs__search`."""
    found = _CALL.fullmatch(call.strip())
    if found is None:
        raise UsageError(f"{call!r} is not a call", advice="write it as 'Bash(git push)' or 'Edit(src/app.py)'")
    name, what = found["tool"], found["what"] or ""
    tools = aliases().get(name, frozenset({name}))
    tool = next((one for one in (COMMAND_TOOL, READ_TOOL, "file_write") if one in tools), sorted(tools)[0])
    return permit(tool, {"command": what} if tool == COMMAND_TOOL else {"path": what} if what else {})


class ReadGate:
    """The rules about reading, with the guardrails.

    A rule that asks refuses here, because whoever packs or searches cannot ask. A single file that the user says yes to
    is granted where it was asked about.
    """

    def __init__(self, permissions: Permissions, guardrails: Guardrails) -> None:
        self._guardrails = guardrails
        self.is_open = not permissions.has_read_rules
        """No rule is about reading."""
        self._reads = permissions.judge_reads()
        self._lists = permissions.judge_reads(searching=True)

    def judge(self, path: str) -> Permission | None:
        """The rule that denies reading the file or asks about it; None where none does."""
        return self._reads(path)

    def lists(self, path: str) -> bool:
        """Whether the file may be named in a list or a search."""
        return self._lists(path) is None

    def shows(self, path: str) -> bool:
        """Whether the file may be named and quoted: no rule is against it, and it holds no secrets."""
        return self.lists(path) and not self._guardrails.is_secret(path) and not self._guardrails.never(path)

    def told(self, findings: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """The findings of checks, without the messages of those in files that may not be quoted."""
        left_out = "[it is in a file that may not be read]"
        return tuple(
            replace(one, message=left_out) if one.path and not self.shows(one.path) else one for one in findings
        )

    def shown(self, changes: ChangeSet) -> ChangeSet:
        """The changes of files that may be quoted."""
        return changes.without(path for path in changes.paths if not self.shows(path))


def read_gate(config: Config, workspace: str, guardrails: Guardrails) -> ReadGate:
    """The gate of a workspace, by the rules as they stand now."""
    return ReadGate(read_rules(config, workspace, guardrails.others), guardrails)
