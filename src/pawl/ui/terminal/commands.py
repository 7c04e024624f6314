"""The commands of a session as data: those of `commands.toml`, and the user's own."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from pawl.core.errors import UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import data_table, written
from pawl.settings.permission_rules import MCP

if TYPE_CHECKING:
    from pawl.settings.config import Config

IDLE, MODEL = "idle", "model"
OWN = "yours"
"""The group of the commands that are Markdown files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCommand:
    name: str
    help: str
    group: str
    arguments: str = ""
    others: tuple[str, ...] = ()
    """Other names for it."""
    line: tuple[str, ...] = ()
    """The command of the command line that carries it out."""
    needs: frozenset[str] = frozenset()
    prompt: str = ""
    """The request that it stands for, for one that is a file."""
    model: str = ""
    """The model that such a one wants."""
    tools: tuple[str, ...] = ()
    """The tools that such a one needs."""
    source: str = ""
    page: tuple[str, ...] = ()
    """Why the page does not carry it out, and where it is done instead."""

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.arguments}".rstrip()

    @property
    def is_served(self) -> bool:
        """Whether it is a prompt of an MCP server."""
        return self.group == OWN and self.name.startswith(MCP)


@lru_cache(maxsize=1)
def built_in() -> tuple[SessionCommand, ...]:
    table = data_table("pawl.ui.terminal", "commands.toml")
    return tuple(written(SessionCommand, one) for one in table["command"])


@dataclass(frozen=True, slots=True)
class Commands:
    """Those that come with Pawl, and the user's own, which cannot take the name of one of them."""

    own: tuple[SessionCommand, ...] = ()

    @property
    def every(self) -> tuple[SessionCommand, ...]:
        return (*built_in(), *(one for one in self.own if one not in self.shadowed))

    @property
    def shadowed(self) -> tuple[SessionCommand, ...]:
        """Those of the user's own that cannot be typed."""
        taken = {name for one in built_in() for name in (one.name, *one.others)}
        return tuple(one for one in self.own if one.name in taken)

    def find(self, name: str) -> SessionCommand:
        names = self._names()
        if name in names:
            return names[name]
        meant = [*(one for one in names if name and one.startswith(name)), *difflib.get_close_matches(name, names, n=1)]
        advice = f"did you mean /{meant[0]}?" if meant else "/help lists them"
        raise UsageError(f"there is no command {'/' + name!r}", advice=advice)

    def knows(self, name: str) -> bool:
        return name in self._names()

    def _names(self) -> Mapping[str, SessionCommand]:
        return {name: one for one in self.every for name in (one.name, *one.others)}


def commands_of(config: Config, workspace: str) -> Commands:
    """The commands of a workspace, its skills among them."""
    # They read files of the workspace, which a session does after its first prompt is drawn.
    from pawl.agent.own_commands import own_commands

    return Commands(
        tuple(
            SessionCommand(
                name=one.name,
                help=one.description,
                group=OWN,
                arguments=one.arguments,
                prompt=one.text,
                model=one.model,
                tools=one.tools,
                source=one.source,
                needs=frozenset({IDLE}),
            )
            for one in own_commands(config, workspace)
        )
    )


def split(line: str) -> tuple[str, str] | None:
    """The name and the words of a command; None for what is a request. A path such as /etc/hosts is a request."""
    text = line.strip()
    if not text.startswith("/"):
        return None
    name, _, rest = text[1:].partition(" ")
    if "/" in name or "\n" in name:
        return None
    return name.lower(), rest.strip()


def is_shell(line: str) -> bool:
    """`!make test` is a command of the user's."""
    return line.startswith("!") and bool(line[1:].strip())


def is_note(line: str) -> bool:
    """`#tests run with make` is to be remembered; a heading of a longer text, or an issue's number, is not."""
    return re.fullmatch(r"#\s?(?![\s#\d]).+", line) is not None


def words_of(text: str) -> list[str]:
    """The words of a command as a shell would read them."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r} cannot be read: {error}", advice="close the quotes") from error


def spoken_here(text: str, *, ends: bool = False) -> str:
    """A hint of the command line in the words of a session, or of the command line again where the session `ends`."""
    text = re.sub(r"\bpawl (?:do|loop) --resume\b", "pawl -r" if ends else "pawl resume", text)
    if ends:
        return text
    names = "|".join(one.name for one in built_in())
    text = re.sub(r"\b(pawl approve \S+) \[.*\]", r"\1", text)
    text = (
        text.replace("pawl queue", "/jobs")
        .replace(", and continue with: pawl do -c REQUEST", "")
        .replace("with --model ", "with /model ")
    )
    text = re.sub(r"\bwith --(?:max-)?(turns|seconds) N", r"by \1 of [budget] in the settings", text)
    return re.sub(rf"\bpawl (?=(?:{names})\b)", "/", text)
