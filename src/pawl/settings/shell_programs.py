"""Knowledge of programs: which run or write something else than they seem to, and which only wrap."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib import resources

from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import written
from pawl.settings.shell import Word

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
    return written(ShellPrograms, tomllib.loads((resources.files("pawl.settings") / "shell_programs.toml").read_text()))


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
