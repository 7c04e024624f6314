"""Which language a source file is in, and what is needed to parse it: all of it data."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources

_HEAD = 4096


class Docs(StrEnum):
    """Where a definition is described."""

    INSIDE = "inside"
    ABOVE = "above"


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    name: str
    extensions: frozenset[str]
    """Lower case, without the dot."""
    names: frozenset[str]
    shebangs: frozenset[str]
    signs: re.Pattern[bytes] | None
    """Found in a file of this language whose extension it shares with another."""
    grammar: tuple[str, str]
    """The module and its function."""
    queries: tuple[str, ...]
    docs: Docs
    comment: str
    one_line: bool

    @property
    def query(self) -> str:
        folder = resources.files("pawl.context") / "queries"
        return "\n".join((folder / name).read_text("utf-8") for name in self.queries)


@functools.cache
def languages() -> Mapping[str, Language]:
    """Every language by its name."""
    data = tomllib.loads((resources.files("pawl.context") / "languages.toml").read_text("utf-8"))
    return {
        entry["name"]: Language(
            name=entry["name"],
            extensions=frozenset(entry["extensions"]),
            names=frozenset(entry.get("names", ())),
            shebangs=frozenset(entry.get("shebangs", ())),
            signs=re.compile(entry["signs"].encode(), re.MULTILINE) if "signs" in entry else None,
            grammar=(entry["grammar"][0], entry["grammar"][1]),
            queries=tuple(entry["queries"]),
            docs=Docs(entry["docs"]),
            comment=entry["comment"],
            one_line=entry.get("one_line", False),
        )
        for entry in data["language"]
    }


def may_be_source(path: str) -> bool:
    """Whether it is worth reading the file to learn its language."""
    name = path.rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    return not (dot and stem) or extension.lower() in _by_extension() or name in _by_name()


def language_of(path: str, source: bytes = b"") -> Language | None:
    """By its name, by its extension, or by the program that its first line names; None when it is none of these."""
    name = path.rpartition("/")[2]
    if name in _by_name():
        return _by_name()[name]
    stem, dot, extension = name.rpartition(".")
    if dot and stem:
        return _claimed(_by_extension().get(extension.lower(), ()), source)
    program = _program(source)
    return next((language for language in languages().values() if program in language.shebangs), None)


def _claimed(candidates: tuple[Language, ...], source: bytes) -> Language | None:
    for language in reversed(candidates):
        if len(candidates) == 1 or language.signs is None or language.signs.search(source):
            return language
    return None


@functools.cache
def _by_extension() -> Mapping[str, tuple[Language, ...]]:
    found: dict[str, tuple[Language, ...]] = {}
    for language in languages().values():
        for extension in language.extensions:
            found[extension] = (*found.get(extension, ()), language)
    return found


@functools.cache
def _by_name() -> Mapping[str, Language]:
    return {name: language for language in languages().values() for name in language.names}


def _program(source: bytes) -> str:
    """The program that runs the file, from its first line."""
    if not source.startswith(b"#!"):
        return ""
    words = source[2:_HEAD].split(b"\n", 1)[0].decode("utf-8", "replace").split()
    names = [word.rpartition("/")[2] for word in words if not word.startswith("-") and "=" not in word]
    if names[:1] == ["env"]:
        names = names[1:]
    # python3.11 is a python3.
    return re.sub(r"(?<=\d)\.\d+$", "", names[0]) if names else ""
