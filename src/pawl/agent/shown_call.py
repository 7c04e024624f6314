"""A call of a tool as lines for the user who is asked about it: every argument and every command in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pawl.core.display import MARK, Shown, head_and_tail, shown_text
from pawl.settings.permission_rules import COMMAND_TOOL
from pawl.settings.shell import Doubt, ShellCommand
from pawl.settings.shell_permissions import script_of, unfolded

_COMMANDS_HEAD, _COMMANDS_TAIL = 40, 20


def shown_call(tool: str, arguments: Mapping[str, object], *, whole: bool = False) -> Shown:
    """Lines that name each argument and each separate command, with what in them may deceive."""
    flags: dict[str, None] = {}
    lines = [line for name, value in arguments.items() for line in _argument(name, value, flags, whole=whole)]
    if tool == COMMAND_TOOL:
        lines += _commands(arguments, flags, whole=whole)
    return Shown(tuple(lines), tuple(flags))


def _argument(name: str, value: object, flags: dict[str, None], *, whole: bool) -> Iterator[str]:
    label = _on_one_line(str(name), flags)
    inner: list[str] = []
    match value:
        case Mapping():
            inner = [row for key, one in value.items() for row in _argument(str(key), one, flags, whole=whole)]
        case list() | tuple() if not all(isinstance(one, int | float) for one in value):
            inner = [row for at, one in enumerate(value, 1) for row in _argument(f"[{at}]", one, flags, whole=whole)]
        case _:
            inner = _text(str(value), flags, whole=whole)
            if len(inner) == 1:
                yield f"{label}: {inner[0]}"
                return
    yield f"{label}:"
    yield from (f"  {row}" for row in inner)


def _commands(arguments: Mapping[str, object], flags: dict[str, None], *, whole: bool) -> Iterator[str]:
    script = script_of(arguments)
    if script is None:
        return
    commands, readable = unfolded(script)
    flags |= dict.fromkeys(str(doubt) for doubt in script.doubts if doubt is not Doubt.HIDDEN)
    if not readable:
        flags["more than can be read"] = None
    if len(commands) < 2:
        return
    yield f"{len(commands):,} commands:"
    rows = [f"{at}  {_written(one)}" for at, one in enumerate(commands, 1)]
    shown = rows if whole else head_and_tail(rows, "commands", _COMMANDS_HEAD, _COMMANDS_TAIL)
    yield from (f"  {row if row[0] == MARK else _on_one_line(row, flags)}" for row in shown)


def _written(command: ShellCommand) -> str:
    """The command in one way of writing it, its redirections after its words."""
    return " ".join((*(word.shown for word in (*command.assignments, *command.words)), *command.signs))


def _on_one_line(text: str, flags: dict[str, None]) -> str:
    return " \\n ".join(_text(text, flags, whole=False))


def _text(text: str, flags: dict[str, None], *, whole: bool) -> list[str]:
    shown = shown_text(text, whole=whole)
    flags |= dict.fromkeys(shown.flags)
    return list(shown.lines)
