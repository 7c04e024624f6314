"""Guardrails: files that may be changed without asking, only with the user's own yes, or never.

Patterns are matched name by name and at any depth, in the spelling that a file system which ignores case would see:
`.GIT/hooks` and `.Env` are caught like `.git/hooks` and `.env`. Presets are named TOML files that may extend one
another; guardrails are checked against the examples that they carry.
"""

from __future__ import annotations

import functools
import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from importlib import resources
from typing import Any, Protocol

from pawl.core.change import Change, NodeKind
from pawl.core.errors import ConfigError
from pawl.core.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """One path of a change set, with how many of its lines changed."""

    path: str
    changed_lines: int


class Limit(StrEnum):
    FILES = "files"
    LINES = "lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A limit that a change set goes over, so that the user is asked."""

    limit: Limit
    allowed: int
    found: int
    path: str = ""
    """The file, for a limit that counts within one."""

    @property
    def message(self) -> str:
        match self.limit:
            case Limit.FILES:
                return f"{self.found} files change; the guardrail asks above {self.allowed}"
            case Limit.LINES:
                return f"{self.found} lines of {self.path!r} change; the guardrail asks above {self.allowed}"


class OtherNames(Protocol):
    """The further names that paths of one workspace have: through links, and of the same file."""

    def hides(self, path: str) -> bool:
        """Whether no command is shown the file, because of any of its names."""

    def hidden_among(self, folder: str, paths: Sequence[str]) -> Collection[str]: ...

    def of(self, path: str) -> Iterable[str]:
        """The other paths that lead to the same place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrails:
    """A named preset. `files` and `lines` are asked about; the other limits refuse."""

    name: str
    files: int
    lines: int
    file_bytes: int
    patch_lines: int
    line_edits: int
    secret: tuple[str, ...] = ()
    not_secret: tuple[str, ...] = ()
    """Exceptions to `secret`, such as the example file that projects commit."""
    copies: tuple[str, ...] = ()
    """How the names of copies end that programs leave beside a file; those of a secret are secret too."""
    protected: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    """Protected files that Pawl keeps itself, such as its memory bank; to models and commands they stay so."""
    others: OtherNames | None = field(default=None, compare=False, repr=False)
    """Without it a path is judged by the name that it is called by."""

    def is_secret(self, path: str) -> bool:
        """Whether the file holds keys: never read into a prompt, never written."""
        named = _matches(self.secret, path, self.copies) and not _matches(self.not_secret, path, self.copies)
        return named or (self.others is not None and self.others.hides(path))

    def leads_to_secrets(self, path: str) -> bool:
        """Whether a link at the path could show files under secret names."""
        return _matches(_starts(self.secret), path)

    def secrets_among(self, folder: str, names: Collection[str]) -> list[str]:
        return self.among(folder, names, self.is_secret)

    def among(self, folder: str, names: Collection[str], is_one: Callable[[str], bool]) -> list[str]:
        """Which of a folder's names are, of those that are secret or out of reach."""
        some = () if self.are_plain(folder, names) else names
        return [name for name in some if is_one(f"{folder}/{name}" if folder else name)]

    def are_plain(self, folder: str, names: Collection[str]) -> bool:
        """Whether one look at all of them tells that none is secret or out of reach by its name."""
        text, patterns = "/".join(names), (*self.secret, *self.forbidden)
        plain = text.isascii() and _ODD.search(text) is None and not _matches(patterns, folder)
        return plain and _last_names(patterns, self.copies).search(text.lower()) is None

    def is_protected(self, path: str) -> bool:
        """Whether the file configures or executes, and is changed only with the user's own yes."""
        return any(_matches(self.protected, name) or self.never(name) for name in self._names(path))

    def leads_to_protected(self, path: str) -> bool:
        """Whether a link at the path could show files under protected names, or keeps secret ones hidden."""
        starts = _starts((*self.protected, *self.secret))
        return self.is_protected(path) or any(_matches(starts, name) for name in self._names(path))

    def protects(self, change: Change) -> bool:
        """Whether the change needs the user's own yes; that of a link does if it matters to what would be below."""
        is_link = any(node is not None and node.kind is NodeKind.LINK for node in (change.before, change.after))
        return self.leads_to_protected(change.path) if is_link else self.is_protected(change.path)

    def _names(self, path: str) -> Iterable[str]:
        return (path,) if self.others is None else (path, *self.others.of(path))

    def is_own(self, path: str) -> bool:
        """Whether Pawl itself may write the file, though it is protected."""
        return _matches(self.own, path) and not self.is_secret(path) and not self.never(path)

    def never(self, path: str) -> bool:
        """Whether the path is out of reach whatever the user says, such as git's own folder."""
        return _matches(self.forbidden, path)

    def check(self, touched: Iterable[Touched]) -> tuple[Breach, ...]:
        """Every limit that these changes go over; empty when nobody needs to be asked."""
        every = tuple(touched)
        breaches = [
            Breach(limit=Limit.LINES, allowed=self.lines, found=one.changed_lines, path=one.path)
            for one in every
            if one.changed_lines > self.lines
        ]
        if len(every) > self.files:
            breaches.insert(0, Breach(limit=Limit.FILES, allowed=self.files, found=len(every)))
        return tuple(breaches)


# HFS+ leaves these out when it compares names, so `.g<U+200C>it` opens `.git` there.
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def folded(name: str) -> str:
    """The name as the most careless file system compares it."""
    plain = name.lower() if name.isascii() else _folded_unicode(name)
    # NTFS drops trailing dots and spaces, and reads what follows a colon as a stream of the same file.
    return plain.partition(":")[0].rstrip(" .")


@functools.lru_cache(maxsize=4096)
def _folded_unicode(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", _IGNORED.sub("", name)).casefold())


def is_git(name: str) -> bool:
    """Whether some file system takes the name for `.git`; `git~1` is its short name."""
    return folded(name) in (".git", "git~1")


# Names that some file system reads otherwise than they are written; a path without one is only put into lower case.
_ODD = re.compile(r":|[ .](?:/|\Z)|//|\A/|/\Z")


def _folded_path(path: str) -> str:
    if path.isascii() and _ODD.search(path) is None:
        return path.lower()
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(folded(name))
    return "/".join(names)


@functools.cache
def _starts(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The folders that the patterns name on their way."""
    ways = (pattern.split("/") for pattern in patterns)
    return tuple(dict.fromkeys("/".join(names[:count]) for names in ways for count in range(1, len(names))))


def _matches(patterns: tuple[str, ...], path: str, copies: tuple[str, ...] = ()) -> bool:
    return bool(patterns) and _expression(patterns, copies).search(_folded_path(path)) is not None


@functools.cache
def _expression(patterns: tuple[str, ...], copies: tuple[str, ...]) -> re.Pattern[str]:
    """All patterns as one expression, because a walk asks about every file."""
    before, behind = _around(copies)
    every = "|".join(_translated(pattern) for pattern in patterns)
    return re.compile(f"(?:^|/){before}(?:{every}){behind}\\Z", re.DOTALL)


def _around(copies: tuple[str, ...]) -> tuple[str, str]:
    """Expressions for the start and the end of a copy's name; editors put dots and hashes before it."""
    return ("[.#]{0,2}", f"(?:{'|'.join(map(re.escape, copies))})?") if copies else ("", "")


@functools.cache
def _last_names(patterns: tuple[str, ...], copies: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the last name of a path that fits a pattern, anywhere in names with slashes between them."""
    names = [pattern.removesuffix("/**").rpartition("/")[2] for pattern in patterns]
    # A star at the start means any place of a name, which is found far sooner without it.
    whole = [_translated(name) for name in names if not name.startswith("*")]
    ends = [_translated(name.lstrip("*")) for name in names if name.startswith("*")]
    before, behind = _around(copies)
    every = f"(?:^|/){before}(?:{'|'.join(whole) or '(?!)'})|{'|'.join(ends) or '(?!)'}"
    return re.compile(f"(?:{every}){behind}(?:/|\\Z)", re.DOTALL)


def _translated(pattern: str) -> str:
    """`*` and `?` stay within a name; `**` is any number of names, none included."""
    words = []
    for position, name in enumerate(pattern.casefold().split("/")):
        if name == "**":
            words.append("(?:/[^/]+)*")
        else:
            escaped = re.escape(name).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
            words.append(f"/{escaped}" if position else escaped)
    return "".join(words)


class Decision(StrEnum):
    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


_WEAKEST_FIRST = (Decision.ALLOW, Decision.ASK, Decision.DENY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """The ruling on one call."""

    ruling: Decision
    reason: str
    """For the user who is asked, and for the model that is refused."""
    rule: str = ""
    """The rule that decided; empty when none did."""
    source: str = ""
    """Where that rule stands."""
    firm: bool = False
    """A rule or a danger decided, which a hook's own yes does not lift."""
    suggestions: tuple[str, ...] = ()
    """Rules that would let this call pass, for a user who does not want to be asked again."""

    @property
    def allowed(self) -> bool:
        return self.ruling is Decision.ALLOW


Judge = Callable[[Change], Permission | None]
"""Rules on a change, whoever made it: deny, ask, or None where no rule speaks of it."""


def strictest(permissions: tuple[Permission, ...]) -> Permission:
    """The one that stands in the way most; the first of several."""
    return max(permissions, key=lambda one: _WEAKEST_FIRST.index(one.ruling))


DEFAULT = "standard"
GUARDRAILS = "guardrails"


def presets(kind: str = GUARDRAILS) -> tuple[str, ...]:
    """The names of the presets that come with Pawl; a kind is a folder."""
    folder = resources.files("pawl.settings") / kind
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def preset_text(name: str, kind: str = GUARDRAILS) -> str:
    if name not in presets(kind):
        raise ConfigError(
            f"no {kind.removesuffix('s')} preset {name!r}", advice=f"use one of {', '.join(presets(kind))}"
        )
    return (resources.files("pawl.settings") / kind / f"{name}.toml").read_text("utf-8")


def preset_tables(text: str, kind: str = GUARDRAILS) -> dict[str, dict[str, Any]]:
    """The tables of a preset, laid over those it extends."""
    own = tomllib.loads(text)
    extended = own.pop("extends", None)
    below = preset_tables(preset_text(extended, kind), kind) if extended else {}
    return {name: {**below.get(name, {}), **own.get(name, {})} for name in {**below, **own}}


def preset(name: str = DEFAULT) -> Guardrails:
    """The guardrails of that name. A test holds them to their examples: here it would cost 12 ms."""
    return _laid_out(name, preset_tables(preset_text(name)))


def parse(name: str, text: str) -> Guardrails:
    """Guardrails from their TOML; `extends` names a preset whose values stand where this has none."""
    sections = preset_tables(text)
    guardrails = _laid_out(name, sections)
    _check_examples(guardrails, sections["examples"])
    return guardrails


def _laid_out(name: str, sections: Mapping[str, Mapping[str, Any]]) -> Guardrails:
    paths: dict[str, Any] = {key: tuple(patterns) for key, patterns in sections["paths"].items()}
    return Guardrails(name=name, **sections["limits"], **paths)


def _check_examples(guardrails: Guardrails, examples: Mapping[str, list[str]]) -> None:
    questions: Mapping[str, Callable[[str], bool]] = {
        "secret": guardrails.is_secret,
        "protected": guardrails.is_protected,
        "forbidden": guardrails.never,
        "own": guardrails.is_own,
    }
    wrong = []
    for key, paths in examples.items():
        is_one = (word := key.removeprefix("not_")) == key
        wrong += [
            f"{path!r} should{'' if is_one else ' not'} be {word}" for path in paths if questions[word](path) != is_one
        ]
    if wrong:
        raise ConfigError(
            f"the guardrail preset {guardrails.name!r} disagrees with its examples: " + "; ".join(wrong),
            advice="correct the patterns in [paths] or the examples",
        )
