"""Values of git's configuration files, read without git: no include is followed, nothing that a value names is run."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping

LARGEST = 1 << 20
_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]')
_KEY = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}

Values = Mapping[str, str]
"""By `section.key` or `section.subsection.key`; the last one wins, as for git."""


def values(text: str) -> dict[str, str]:
    """What a configuration file sets; a line that cannot be read sets nothing."""
    found: dict[str, str] = {}
    section = ""
    for line in _lines(text):
        rest = line.lstrip()
        if head := _SECTION.match(rest):
            name = head[1].lower()
            section = name if head[2] is None else name + "." + re.sub(r"\\(.)", r"\1", head[2])
            rest = rest[head.end() :]
        if section and (key := _KEY.match(rest)):
            found[f"{section}.{key[1].lower()}"] = _value(rest[key.end() :]) if key[2] else "true"
    return found


def is_true(value: str) -> bool:
    return value.lower() in ("true", "yes", "on") or (value.isdigit() and int(value) != 0)


def user_values(environment: Mapping[str, str]) -> dict[str, str]:
    """What the machine and the user set."""
    files = [] if is_true(environment.get("GIT_CONFIG_NOSYSTEM", "")) else ["/etc/gitconfig"]
    if "GIT_CONFIG_GLOBAL" in environment:
        files.append(environment["GIT_CONFIG_GLOBAL"])
    else:
        files += [f"{settings_home(environment)}/git/config", f"{environment.get('HOME', '')}/.gitconfig"]
    found: dict[str, str] = {}
    for file in files:
        found.update(values(read_plain(file)))
    return found


def user_attributes(environment: Mapping[str, str], configured: Values) -> str:
    """The text of the user's own attributes file."""
    named = configured.get("core.attributesfile") or f"{settings_home(environment)}/git/attributes"
    return read_plain(re.sub(r"^~(?=/)", lambda _: environment.get("HOME", ""), named))


def settings_home(environment: Mapping[str, str]) -> str:
    return environment.get("XDG_CONFIG_HOME") or f"{environment.get('HOME', '')}/.config"


def read_plain(path: str) -> str:
    """A regular file of the user's, or nothing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):
        return ""
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        return file.read(LARGEST).decode("utf-8", "surrogateescape").removeprefix("\ufeff")


def _lines(text: str) -> Iterator[str]:
    """The lines, with those that a backslash continues joined."""
    joined = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        joined += line
        if (len(line) - len(line.rstrip("\\"))) % 2 and not joined.lstrip().startswith(("#", ";")):
            joined = joined[:-1]
            continue
        yield joined
        joined = ""
    yield joined


def _value(text: str) -> str:
    """Without quotes, escapes and a comment at its end."""
    kept, quoted, settled = "", False, 0
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == '"':
            quoted = not quoted
        elif character in "#;" and not quoted:
            break
        elif character == "\\" and at < len(text):
            kept += _ESCAPES.get(text[at], text[at])
            at += 1
        else:
            kept = kept if not kept and not quoted and character in " \t" else kept + character
            if not quoted and character in " \t":
                continue
        settled = len(kept)
    return kept[:settled]
