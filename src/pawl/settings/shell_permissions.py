"""Shell commands before the permission rules: each is judged with what it runs and writes.

Which programs run or write something else than they seem to, or only wrap another is a table
(`shell_programs.toml`).
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import shortened
from pawl.core.typed import data_table, written
from pawl.settings.guardrails import Decision, Permission, strictest
from pawl.settings.permission_rules import COMMAND_TOOL, MCP, PathBase, Rule, aliases, command_text
from pawl.settings.shell import Doubt, Redirection, Script, ShellCommand, Word, plain_words, read_shell

_PATTERN_START = re.compile(r"[*?\[]")
_SED_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\n]|\\[^\n])*/)"
_SED_REPLACED = r"(?:(?!\1)[^\\\n]|\\[^\n])*+\1"
_SED_COMMAND = (
    rf"(?:{_SED_ADDRESS}(?:,\+?{_SED_ADDRESS})?\s*!?)?\s*"
    rf"(?:[pdq=]|s([/|,#@:]){_SED_REPLACED}{_SED_REPLACED}[gpIi0-9]*)?"
)
_SED_SCRIPT = re.compile(rf"\s*{_SED_COMMAND}\s*")
_SED_FLAGS = re.compile(r"-[nErsuz]+|--(?:quiet|silent|regexp-extended|null-data|unbuffered|separate|posix|sandbox)")
_AWK_DANGER = re.compile(r"system|getline|[|>@]|ENVIRON|close\s*\(|fflush")
_AWK_FLAGS = re.compile(r"-[Fv].*", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    flags: tuple[str, ...] = ()
    valued: tuple[str, ...] = ()
    operands: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazards:
    """Which words make a program run or write something else."""

    options: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    first: str = ""
    most: int | None = None
    """Operands that it only reads; one more is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitWords:
    harmless: frozenset[str]
    valued: frozenset[str]
    known: frozenset[str]
    running: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellPrograms:
    carriers: frozenset[str]
    builtins: frozenset[str]
    runners: frozenset[str]
    interpreters: frozenset[str]
    writers: frozenset[str]
    writing: Mapping[str, str]
    depths: Mapping[str, int]
    wrappers: Mapping[str, Wrapper]
    programs: Mapping[str, Hazards]
    git: GitWords

    @property
    def running_others(self) -> frozenset[str]:
        return self.carriers | self.builtins | self.runners


@functools.cache
def programs() -> ShellPrograms:
    """The table that comes with Pawl."""
    return written(ShellPrograms, data_table("pawl.settings", "shell_programs.toml"))


def base_name(word: str) -> str:
    return word.rpartition("/")[2]


def unwrapped(words: Sequence[Word]) -> tuple[Word, ...] | None:
    """The command that wrappers run in the end; None when their words cannot be told from it."""
    left = tuple(words)
    while left:
        wrapper = programs().wrappers.get(left[0].text)
        if wrapper is None or not left[0].known:
            return left
        start = _behind(wrapper, left)
        if start is None:
            return None
        left = left[start:]
    return None


def _behind(wrapper: Wrapper, words: tuple[Word, ...]) -> int | None:
    """Where the wrapped command starts."""
    at = 1
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        if text in wrapper.valued:
            at += 2
        elif text in wrapper.flags or _holds_value(wrapper, text):
            at += 1
        else:
            return None
    at += wrapper.operands
    if at >= len(words) or not words[at].known or "=" in words[at].text:
        return None
    return at


def _holds_value(wrapper: Wrapper, text: str) -> bool:
    """`--signal=KILL` or `-sKILL`."""
    name, sign, _ = text.partition("=")
    return (bool(sign) and name in wrapper.valued) if text.startswith("--") else text[:2] in wrapper.valued


def git_words(words: Sequence[Word]) -> tuple[Word, ...]:
    """A git command without the options before its subcommand."""
    at = 1
    while at < len(words) and words[at].text.startswith("-"):
        at += 2 if words[at].text in programs().git.valued else 1
    return (*words[:1], *words[at:])


def hazard(words: Sequence[Word]) -> str:
    """Why the program could run or write something else than its name says; empty when it cannot.

    The words are those of one known command without its wrappers.
    """
    program, rest = words[0].text, words[1:]
    known = programs()
    if program in known.carriers or program in known.builtins:
        return f"{program!r} runs or changes what its words say"
    hazards, scripted = known.programs.get(program), _SCRIPTED.get(program)
    if (hazards or scripted) and any(_PATTERN_START.match(word.bare) for word in rest):
        return f"a file's name could become an option of {program!r}"
    if scripted is not None:
        return scripted([word.text for word in rest])
    if hazards is None:
        return ""
    found = next(_hazardous(hazards, [word.text for word in rest]), "") or (
        _git_hazard(words) if program == "git" else ""
    )
    return f"{found!r} makes {program!r} run or write something else" if found else ""


def _hazardous(hazards: Hazards, words: Sequence[str]) -> Iterator[str]:
    if words and hazards.first and fnmatchcase(words[0], hazards.first):
        yield words[0]
    for word in words:
        if any(_is(word, pattern) for pattern in (*hazards.options, *hazards.words)):
            yield word
    operands = [word for word in words if not word.startswith("-") or word == "-"]
    if hazards.most is not None and len(operands) > hazards.most:
        yield operands[-1]


def _is(word: str, pattern: str) -> bool:
    """Whether the word is the option, however it is shortened or bundled, or fits the pattern."""
    if pattern == "--":
        return word == "--"
    if pattern.startswith("--") and "*" not in pattern:
        name = word.partition("=")[0]
        return len(name) > 2 and word.startswith("--") and pattern.startswith(name)
    if len(pattern) == 2 and pattern[0] == "-":
        return word[:1] == "-" and word[:2] != "--" and pattern[1] in word[1:]
    return fnmatchcase(word, pattern)


def _git_hazard(words: Sequence[Word]) -> str:
    git, plain = programs().git, git_words(words)
    before = [word.text for word in words[1 : len(words) - len(plain) + 1]]
    for word in before:
        if word not in git.harmless:
            return word
    texts = [word.text for word in plain[1:]]
    if texts and texts[0] not in git.known:
        return texts[0]
    for running in git.running:
        if texts[:1] == [running[0]] and running[1] in texts:
            return " ".join(running)
    return ""


def _sed_hazard(words: list[str]) -> str:
    """Only scripts of the plainest kind are known to neither run nor write."""
    scripts: list[str] = []
    operands: list[str] = []
    left = iter(words)
    for word in left:
        if word in ("-e", "--expression"):
            scripts.append(next(left, ""))
        elif not word.startswith("-") or word == "-":
            operands.append(word)
        elif not _SED_FLAGS.fullmatch(word):
            return f"{word!r} makes 'sed' run or write something else"
    odd = next((script for script in scripts or operands[:1] if not _SED_SCRIPT.fullmatch(script)), None)
    return "" if odd is None else f"the script {odd!r} could run or write something"


def _awk_hazard(words: list[str]) -> str:
    for word in words:
        if word.startswith("-") and word != "-" and not _AWK_FLAGS.fullmatch(word):
            return f"{word!r} makes 'awk' run or write something else"
        if _AWK_DANGER.search(word):
            return f"the program {word!r} could run or write something"
    return ""


_SCRIPTED = {"sed": _sed_hazard, **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), _awk_hazard)}


def writes_what_it_names(words: Sequence[Word]) -> bool:
    """Whether the program changes the files that its words name."""
    program = base_name(words[0].text) if words else ""
    option = programs().writing.get(program)
    return program in programs().writers or (option is not None and any(_is(word.text, option) for word in words))


_MORE_THAN_A_WORD = re.compile(r"[\s;&|<>()$`]")
_SEPARATORS = re.compile(r"[=:@,]")
_MOST_PARTS = 8
_MOST_DIRECTORIES = 16
_LONGEST_SHOWN = 120
_HARMLESS_TARGETS = re.compile(r"/dev/(?:null|stdout|stderr|tty|fd/\d+)")

_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/sh", "/usr/bin/bash"})

TIGHTENING = (Decision.DENY, Decision.ASK)
JudgePath = Callable[[str, Sequence[str]], Permission]
"""The ruling on a tool that reads or writes these full paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandJudge:
    rules: Mapping[Decision, tuple[Rule, ...]]
    """The user's rules, then the preset's."""
    place: PathBase
    unmatched: Decision
    """The ruling on a command that no rule names."""
    passes_doubts: bool
    judge_path: JudgePath

    def judge(self, script: Script, directory: str) -> Permission:
        """Deny, then ask, then allow; every command must be allowed."""
        commands, readable = unfolded(script)
        places = _directories(script, directory)
        if not readable:
            reason = "the command is longer or more deeply nested than can be read"
            return Permission(ruling=Decision.DENY, reason=reason, firm=True)
        for ruling in TIGHTENING:
            found = self._tightening(self.rules[ruling], ruling, commands, places)
            if found is not None:
                return found
        perhaps = self._perhaps(commands)
        if perhaps is not None:
            return perhaps
        if script.doubts and not self.passes_doubts:
            ruling = Decision.DENY if self.unmatched is Decision.DENY else Decision.ASK
            reason = f"what it does cannot be known: it holds {', '.join(script.doubts)}"
            return Permission(ruling=ruling, reason=reason, firm=True)
        if not script.commands:
            return Permission(ruling=Decision.ASK, reason="there is no command in it")
        return strictest(tuple(self._one(command, places) for command in dict.fromkeys(script.commands)))

    def _tightening(
        self, rules: Sequence[Rule], ruling: Decision, commands: Sequence[ShellCommand], places: Sequence[str]
    ) -> Permission | None:
        about_commands = [rule for rule in rules if rule.is_about(COMMAND_TOOL)]
        about_paths = [rule for rule in rules if rule.path is not None]
        for command in commands:
            rule = _named(about_commands, command) or self._touched(about_paths, command, places)
            if rule is not None:
                return rule.permission(ruling, f"{_shown(command)!r} is what {rule.text} is about")
        return None

    def _touched(self, rules: Sequence[Rule], command: ShellCommand, places: Sequence[str]) -> Rule | None:
        """The rule about a file that the command names as one that it reads or writes."""
        for rule, word in _files(rules, command):
            paths = (self.place.of(part, place) for part in _paths_in(word.text) for place in places)
            if any(rule.path and rule.path.fits(path, self.place, tightens=True) for path in paths):
                return rule
        return None

    def _perhaps(self, commands: Sequence[ShellCommand]) -> Permission | None:
        """A pattern that could stand for a file of a rule."""
        rules = [rule for ruling in TIGHTENING for rule in self.rules[ruling] if rule.path is not None]
        for command in commands:
            for rule, word in _files(rules, command):
                if word.is_pattern and rule.path and rule.path.may_meet(word.text):
                    return rule.permission(
                        Decision.ASK, f"{word.text!r} may stand for a file that {rule.text} is about"
                    )
        return None

    def _one(self, command: ShellCommand, places: Sequence[str]) -> Permission:
        said = [self._words(command)] if command.words or command.assignments else []
        said += [self._redirected(one, places) for one in command.redirections]
        return strictest(tuple(said))

    def _redirected(self, one: Redirection, places: Sequence[str]) -> Permission:
        text = one.target.text
        if _HARMLESS_TARGETS.fullmatch(text):
            return Permission(ruling=Decision.ALLOW, reason="nothing is kept of it")
        if one.target.is_pattern:
            return Permission(ruling=Decision.ASK, reason=f"which file {text!r} is cannot be known")
        tool = "file_write" if one.writes else "file_read"
        return self.judge_path(tool, [self.place.of(text, place) for place in places])

    def _words(self, command: ShellCommand) -> Permission:
        """The program and its words, without what is redirected."""
        whole = command_text((*command.assignments, *command.words))
        rules = [rule for rule in self.rules[Decision.ALLOW] if rule.is_about(COMMAND_TOOL)]
        exact = [rule for rule in rules if rule.command and rule.command.is_exact and rule.command.fits(whole)]
        if exact:
            return exact[0].permission(Decision.ALLOW)
        general = [rule for rule in rules if rule.is_general]
        if general:
            return general[0].permission(Decision.ALLOW)
        inner = unwrapped(command.words)
        rule = self._matching(rules, command, inner)
        danger = hazard(inner) if inner else ""
        if rule is not None and not danger:
            return rule.permission(Decision.ALLOW)
        reason = danger or f"no rule allows {shortened(whole.strip(), _LONGEST_SHOWN)!r}"
        if self.unmatched is Decision.ALLOW:
            reason = "it runs in the sandbox without a network"
        return Permission(ruling=self.unmatched, reason=reason)

    def _matching(self, rules: Sequence[Rule], command: ShellCommand, inner: tuple[Word, ...] | None) -> Rule | None:
        """The rule that means this command; one that does not name the variables does not mean it with them."""
        if not inner or not inner[0].known or inner[0].is_pattern:
            return None
        before = command_text(command.assignments)
        text = before + command_text(inner)
        for rule in rules:
            if rule.command and rule.command.fits(text) and len(rule.command.parts[0]) >= len(before):
                return rule
        return None


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


def unfolded(script: Script) -> tuple[list[ShellCommand], bool]:
    """Every command, and those that programs would run from the text of a word; and whether all could be read."""
    found, readable = list(script.commands), script.readable
    waiting = [(command, 1) for command in script.commands]
    while waiting:
        command, depth = waiting.pop()
        if not command.words or base_name(command.words[0].text) not in programs().running_others:
            continue
        for word in command.words[1:]:
            if _MORE_THAN_A_WORD.search(word.text):
                inner = read_shell(word.text, depth)
                readable = readable and inner.readable
                found += inner.commands
                waiting += [(one, depth + 1) for one in inner.commands]
    return found, readable


def _named(rules: Sequence[Rule], command: ShellCommand) -> Rule | None:
    """The first rule that the command fits in any way of writing it."""
    if not rules:
        return None
    texts = list(_texts(command))
    for rule in rules:
        if rule.is_general:
            return rule
        if rule.command and any(rule.command.fits(text, start) for text, starts in texts for start in starts):
            return rule
    return None


def _texts(command: ShellCommand) -> Iterator[tuple[str, Sequence[int]]]:
    """The command as rules that tighten look at it, and where in it a command may begin."""
    words = command.words
    if command.assignments:
        yield command_text((*command.assignments, *words)), (0,)
    if not words:
        return
    runs = base_name(words[0].text) in programs().running_others
    yield command_text(words), _starts(words) if runs else (0,)
    last = len(words) if runs else 1
    if any("/" in word.text for word in words[:last]):
        short = [Word(base_name(word.text), "", word.known) for word in words[:last]]
        yield command_text((*short, *words[last:])), _starts(short)
    git = next((at for at, word in enumerate(words[:last]) if base_name(word.text) == "git"), None)
    if git is not None:
        yield f"git {command_text(git_words(words[git:])[1:])}", (0,)


def _starts(words: Sequence[Word]) -> list[int]:
    starts, at = [], 0
    for word in words:
        starts.append(at)
        at += len(word.shown) + 1
    return starts


def _directories(script: Script, start: str) -> list[str]:
    """Every folder that the command may be in at some time."""
    found = [start]
    for command in script.commands:
        words = command.words
        if words and words[0].text in ("cd", "pushd") and len(found) < _MOST_DIRECTORIES:
            target = words[1].text if len(words) > 1 else "~"
            found += [target if target.startswith("~") else posixpath.join(place, target) for place in found]
    return list(dict.fromkeys(found))


def _paths_in(text: str) -> Iterator[str]:
    """The parts of a word that may be a path: `.env`, `--file=.env`, `-f.env`, `HEAD:.env`, `@.env`."""
    if text:
        yield text
    for separator in list(_SEPARATORS.finditer(text))[:_MOST_PARTS]:
        if text[separator.end() :]:
            yield text[separator.end() :]
    if text.startswith("-") and len(text) > 2:
        yield text[2:]


def _files(rules: Sequence[Rule], command: ShellCommand) -> Iterator[tuple[Rule, Word]]:
    """Each word that may name a file, with each rule that is about what the command does to it."""
    if not rules:
        return
    writes = writes_what_it_names(command.words)
    named = [(word, writes) for word in command.words[1:]]
    named += [(one.target, one.writes) for one in command.redirections]
    for word, is_written in named:
        for rule in rules:
            if rule.is_about("file_read") or (is_written and rule.is_about("file_write")):
                yield rule, word


def _shown(command: ShellCommand) -> str:
    return shortened(command_text(command.words).strip(), _LONGEST_SHOWN) or "the command"


_OPTION_OR_PATH = re.compile(r"-|.*[/.=]")
_ONE_MORE = frozenset({"run", "exec", "run-script", "x", "compose", "-m"})


def rule_for(tool: str, what: ShellCommand | str) -> str:
    """The rule for a command, for a tool that names a path, or for the tool as a whole."""
    if isinstance(what, ShellCommand):
        return f"Bash({_command_rule(what)})"
    name = next((alias for alias in ("Read", "Edit") if tool in aliases()[alias]), tool)
    if tool.startswith(MCP) or not what or name == tool:
        return name
    root = "" if what.startswith("~") else "/" if what.startswith("/") else "./"
    return f"{name}({root}{what.removeprefix('./')})"


def _command_rule(command: ShellCommand) -> str:
    inner = unwrapped(command.words)
    exact = _literal((*command.assignments, *command.words))
    if command.assignments or not inner or hazard(inner):
        return exact
    program = inner[0].text
    texts = [word.text for word in inner]
    if program in programs().interpreters:
        # `python -m pytest` names what is run as well as `git diff` does.
        return f"{_literal(inner[:3])} *" if texts[1:2] == ["-m"] and len(texts) > 2 else exact
    depth = programs().depths.get(program, 1)
    if depth > 1 and len(texts) > 1 and texts[1] in _ONE_MORE:
        depth += 1
    kept = inner[:1]
    for word in inner[1:depth]:
        if _OPTION_OR_PATH.match(word.text) or word.is_pattern:
            break
        kept = (*kept, word)
    return f"{_literal(kept)} *"


def _literal(words: tuple[Word, ...]) -> str:
    """The words as a rule has to write them, with stars that mean themselves."""
    return " ".join(_star_quoted(word) for word in words)


def _star_quoted(word: Word) -> str:
    shown = command_text((word,)).strip() if word.text.strip() else word.shown
    plain = not shown.startswith("'") and re.search(r"[*$~#{}!]", word.text)
    return f"'{word.text}'" if plain else shown
