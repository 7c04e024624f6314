"""Whether a call of a tool may be carried out: deny, then ask, then allow, then what the preset says by kind of tool.

A pure function of the call and of rules that were read before it. It never fails, and is never weaker for a longer or
a stranger command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pawl.core.change import Change
from pawl.core.change import Kind as NodeKind
from pawl.core.errors import ConfigError
from pawl.core.guardrails import folded
from pawl.core.permission import Judge, Permission, Ruling
from pawl.core.run import Mode
from pawl.policy.allowances import CHANGES, STANDS_FOR, Kind, allowances
from pawl.policy.command_permissions import CommandJudge, Rules
from pawl.policy.permission_presets import Preset, preset
from pawl.policy.permission_rules import COMMAND_TOOL, Place, Rule, parse_rule
from pawl.policy.rule_suggestions import rule_for
from pawl.policy.shell_script import Doubt, Script, ShellCommand, plain_words
from pawl.policy.shell_words import read_shell

_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/sh", "/usr/bin/bash"})
_MOST_SUGGESTIONS = 20
_OUTSIDE = "it writes outside of the workspace"
_NOTHING_IN_CHAT = CHANGES | {Kind.DELEGATES}


class Cage(StrEnum):
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
    cage: Cage = Cage.CLOSED
    place: Place = field(default_factory=Place)
    own: Mapping[str, Kind] = field(default_factory=dict)
    """Tools of the user's own."""

    def permit(self, tool: str, arguments: Mapping[str, object]) -> Permission:
        """What the rules say of the call, with rules that would let it pass where it is asked about."""
        said = self._judged(tool, arguments)
        if said.ruling is not Ruling.ASK:
            return said
        return replace(said, suggestions=self._suggestions(tool, arguments))

    def suggest_rule(self, command: str) -> tuple[str, ...]:
        """The rules that would really let the command pass; none when no rule can."""
        return self._suggestions(COMMAND_TOOL, {"command": command})

    def may_read(self, path: str) -> bool:
        """Whether no rule denies reading the file, for tools that look at many."""
        full = self.place.of(path)
        return not any(_is_about(rule, "file_read", [full], self.place, tightens=True) for rule in self._rules.deny)

    def judge_changes(self) -> Judge:
        """What the rules say of each path that is changed, whoever changes it."""
        rules, place = self._rules, self.place
        root = [folded(name) for name in place.workspace.split("/") if name]
        speaking = [
            (rule, ruling, None if rule.path is None else rule.path.tightened(place))
            for ruling, tightening in ((Ruling.DENY, rules.deny), (Ruling.ASK, rules.ask))
            for rule in tightening
            if rule.is_about_changes
        ]

        def judged(change: Change) -> Permission | None:
            names = [*root, *map(folded, change.path.split("/"))]
            is_link = change.after is not None and change.after.kind is NodeKind.LINK
            for rule, ruling, fits in speaking:
                if rule.path is None or fits is None or fits(names):
                    return _by(rule, ruling)
                if is_link and rule.path.may_lie_below(names, place):
                    return _by(rule, ruling)
            return None

        return judged

    @property
    def _rules(self) -> Rules:
        return Rules(
            deny=(*self.deny, *self.preset.deny),
            ask=(*self.ask, *self.preset.ask),
            allow=(*self.allow, *self.preset.allow),
        )

    def _judged(self, tool: str, arguments: Mapping[str, object]) -> Permission:
        kind = allowances().tools.get(tool) or self.own.get(tool)
        if self.mode is Mode.CHAT and kind in _NOTHING_IN_CHAT:
            return Permission(ruling=Ruling.DENY, reason=f"chat mode never {kind}", firm=True)
        if tool == COMMAND_TOOL:
            return self._command(arguments)
        paths = [self.place.of(path) for path in paths_in(arguments)] if kind else []
        said = self._about(tool, kind, paths)
        # No answer could help: file tools reach nothing there, as a command or a user's tool may.
        return replace(said, ruling=Ruling.DENY) if said.reason == _OUTSIDE and tool not in self.own else said

    def _about(self, tool: str, kind: Kind | None, paths: Sequence[str]) -> Permission:
        rules = self._rules
        for ruling, tightening in ((Ruling.DENY, rules.deny), (Ruling.ASK, rules.ask)):
            for rule in tightening:
                if any(_is_about(rule, name, paths, self.place, tightens=True) for name in self._names(rule, tool)):
                    return _by(rule, ruling)
        allowing = [rule for rule in rules.allow if rule.is_about(tool)]
        whole = next((rule for rule in allowing if rule.path is None), None)
        used = [next((rule for rule in allowing if _fits(rule, path, self.place)), None) for path in paths]
        if whole is not None or (used and all(used)):
            return _by(whole or next(rule for rule in used if rule), Ruling.ALLOW)
        if kind is Kind.WRITES and not all(_is_inside(path, self.place.workspace) for path in paths):
            return Permission(ruling=Ruling.ASK, reason=_OUTSIDE, firm=True)
        return self._default(kind, own=tool in self.own)

    def _names(self, rule: Rule, tool: str) -> tuple[str, ...]:
        """What forbids reading, writing or any command forbids the tools of the user's own that do so, too."""
        everything = rule.command is None or rule.command.is_everything
        return (tool, STANDS_FOR[self.own[tool]]) if tool in self.own and everything else (tool,)

    def _default(self, kind: Kind | None, *, own: bool = False) -> Permission:
        defaults = self.preset.defaults
        # The commands of a tool of the user's own are judged one by one when it runs them.
        caged = own and self.cage is Cage.CLOSED
        by_kind = {
            Kind.READS: defaults.reads,
            Kind.WRITES: defaults.writes,
            Kind.RUNS: defaults.caged if caged else defaults.runs,
            Kind.DELEGATES: defaults.delegates,
        }
        what = "is not one of Pawl's own" if kind is None else str(kind)
        ruling = by_kind[kind] if kind else defaults.other
        return Permission(ruling=ruling, reason=f"the preset {self.preset.name} says {ruling} of a tool that {what}")

    def _command(self, arguments: Mapping[str, object]) -> Permission:
        script, directory = script_of(arguments), arguments.get("directory", "")
        if script is None or not isinstance(directory, str):
            return Permission(ruling=Ruling.DENY, reason="the arguments are not those of a command", firm=True)
        return self._judge().judge(script, directory)

    def _judge(self) -> CommandJudge:
        defaults, closed = self.preset.defaults, self.cage is Cage.CLOSED
        has_own = any(rule.is_about(COMMAND_TOOL) or rule.path for rule in (*self.deny, *self.ask))
        rules, kinds = self._rules, allowances().tools
        return CommandJudge(
            rules=replace(rules, allow=tuple(rule for rule in rules.allow if rule.is_about(COMMAND_TOOL))),
            place=self.place,
            unmatched=defaults.caged if closed else defaults.runs,
            passes_doubts=closed and defaults.doubtful is Ruling.ALLOW and not has_own,
            judge_path=lambda tool, paths: self._about(tool, kinds[tool], paths),
        )

    def _suggestions(self, tool: str, arguments: Mapping[str, object]) -> tuple[str, ...]:
        """Offered only when they work: with them the same call is allowed."""
        texts = [rule_for(tool, path) for path in paths_in(arguments)]
        if tool == COMMAND_TOOL:
            texts = self._command_suggestions(arguments)
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


def permissions(
    name: str = "standard", *, deny: Iterable[str] = (), ask: Iterable[str] = (), allow: Iterable[str] = ()
) -> Permissions:
    """The rules of the texts over the preset of that name."""
    return Permissions(
        preset=preset(name),
        deny=tuple(map(parse_rule, deny)),
        ask=tuple(map(parse_rule, ask)),
        allow=tuple(map(parse_rule, allow)),
    )


def applies(rule: Rule, tool: str, arguments: Mapping[str, object], place: Place) -> bool:
    """Whether the rule is about the call; so it is of a command that cannot be read for certain."""
    empty = replace(preset("standard"), deny=(), ask=(), allow=())
    said = Permissions(preset=empty, ask=(rule,), place=place)._judged(tool, arguments)
    return rule.is_about(tool) and (said.rule == rule.text or said.firm)


def paths_in(arguments: Mapping[str, object]) -> list[str]:
    """The paths that a call of one of Pawl's own tools names."""
    return list(_paths(arguments))


def _paths(arguments: Mapping[str, object]) -> Iterator[str]:
    path, changes = arguments.get("path"), arguments.get("changes")
    if isinstance(path, str):
        yield path
    if isinstance(changes, Sequence) and not isinstance(changes, str | bytes):
        for change in changes:
            if isinstance(change, Mapping) and isinstance(change.get("path"), str):
                yield change["path"]


def script_of(arguments: Mapping[str, object]) -> Script | None:
    """The command of the call, whether a shell reads it or not."""
    command, argv = arguments.get("command"), arguments.get("argv")
    if argv is not None and not (isinstance(argv, Sequence) and all(isinstance(word, str) for word in argv)):
        return None
    if (command is not None and not isinstance(command, str)) or isinstance(argv, str | bytes):
        return None
    words = tuple(str(word) for word in argv or ())
    if len(words) == 3 and words[0] in _SHELLS and words[1] == "-c":
        command, words = f"{command}\n{words[2]}" if command else words[2], ()
    script = read_shell(command or "")
    if not words:
        return script
    given = (Doubt.HIDDEN,) if read_shell(" ".join(words)).doubts[:1] == (Doubt.HIDDEN,) else ()
    return replace(script, commands=(*script.commands, plain_words(words)), doubts=(*script.doubts, *given))


def _is_about(rule: Rule, tool: str, paths: Sequence[str], place: Place, *, tightens: bool) -> bool:
    if not rule.is_about(tool):
        return False
    pattern = rule.path
    return pattern is None or any(pattern.fits(path, place, tightens=tightens) for path in paths)


def _fits(rule: Rule, path: str, place: Place) -> bool:
    return rule.path is not None and rule.path.fits(path, place, tightens=False)


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _by(rule: Rule, ruling: Ruling) -> Permission:
    says = {Ruling.DENY: "denies", Ruling.ASK: "asks about", Ruling.ALLOW: "allows"}[ruling]
    return Permission(
        ruling=ruling,
        reason=f"{rule.text} {says} it",
        rule=rule.text,
        source=rule.source,
        firm=ruling is not Ruling.ALLOW,
    )
