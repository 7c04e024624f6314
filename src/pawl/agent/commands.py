"""Commands of one's own: Markdown files whose text is a request. Those of a folder count only where it is trusted."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pawl.settings.config import Config
from pawl.settings.project_files import Folder, files_of
from pawl.settings.trust import trusted_files

FOLDERS = (".pawl/commands", ".claude/commands")
MOST = 200
LONGEST = 64 << 10
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_FRONT = re.compile(r"\A---\r?\n(?P<front>.*?)^---[ \t]*\r?\n", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^(?P<name>[\w-]+):[ \t]*(?P<value>.*)$", re.MULTILINE)
_PLACE = re.compile(r"\$(?:ARGUMENTS|[0-9])\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCommand:
    name: str
    description: str
    arguments: str
    """How its arguments are hinted at."""
    text: str
    model: str
    source: str


def own_commands(config: Config, workspace: str) -> tuple[OwnCommand, ...]:
    """The user's own, and those of the workspace if it is trusted, which go before them."""
    found = {one.name: one for one in _read(config.file.parent / "commands", "your settings")}
    trusted = trusted_files(config, workspace)
    if trusted is not None:
        for folder in reversed(FOLDERS):
            found |= {one.name: one for one in _read(trusted.folder(folder), folder)}
    return tuple(found[name] for name in sorted(found))


def filled(text: str, words: str) -> str:
    """The request with its arguments: `$ARGUMENTS` for all, `$1` to `$9` for one; without a place, at its end."""
    if _PLACE.search(text) is None:
        return f"{text}\n\n{words}".strip() if words else text.strip()
    each = words.split()

    def value(found: re.Match[str]) -> str:
        name = found[0][1:]
        if name == "ARGUMENTS":
            return words
        at = int(name) - 1
        return each[at] if 0 <= at < len(each) else ""

    return _PLACE.sub(value, text).strip()


def _read(folder: Folder, source: str) -> Iterator[OwnCommand]:
    for path, _, read in itertools.islice((one for one in files_of(folder, ".md") if "/" not in one[0]), MOST):
        name = path.removesuffix(".md").lower()
        try:
            text = read()[:LONGEST]
        except (OSError, UnicodeDecodeError):
            continue
        if _NAME.fullmatch(name):
            yield _command(name, text, source)


def _command(name: str, text: str, source: str) -> OwnCommand:
    front = _FRONT.match(text)
    fields = (
        {one["name"]: one["value"].strip().strip("\"'") for one in _FIELD.finditer(front["front"])} if front else {}
    )
    body = text[front.end() :] if front else text
    first = next((line.strip("# ").strip() for line in body.splitlines() if line.strip()), "")
    return OwnCommand(
        name=name,
        description=fields.get("description") or first,
        arguments=fields.get("argument-hint", "[WORDS]" if _PLACE.search(body) else ""),
        text=body.strip(),
        model=fields.get("model", ""),
        source=source,
    )
