"""Creating, editing and deleting a file in the eight ways that `modify` knows."""

from __future__ import annotations

from typing import assert_never

from pawl.core.content import Text, changed_lines, plain
from pawl.core.edits import Action, EditType, Modification
from pawl.core.errors import AlreadyThere, BadArguments, LineMismatch, NotFound
from pawl.core.guardrails import Guardrails
from pawl.workspace.edits.lines import line_mismatch, replaced_line
from pawl.workspace.edits.outcome import Outcome, checked, decoded
from pawl.workspace.edits.patch import find_once

_BY_TARGET = (EditType.REPLACE, EditType.INSERT_BEFORE, EditType.INSERT_AFTER)
_BY_LINE = (EditType.REPLACE_LINE, EditType.INSERT_AT_LINE)
_BY_LINE_ADVICE = "edit by number: replace_line or insert_at_line with one of the line numbers shown"


def modify(data: bytes | None, modification: Modification, guardrails: Guardrails) -> Outcome:
    """What becomes of a file whose content is `data`, or that is not there when it is None."""
    path = modification.path
    _check_arguments(modification)
    match modification.action:
        case Action.CREATE:
            if data is not None:
                raise AlreadyThere(f"{path!r} is already there", advice="edit it, or choose another name")
            return checked(path, None, Text.new(modification.content or ""), guardrails)
        case Action.DELETE:
            return Outcome(data=None, changed_lines=changed_lines(_there(path, data), b""))
        case Action.EDIT:
            before = _there(path, data)
            text = decoded(path, before, guardrails)
            return checked(path, before, _edited(text, modification), guardrails)
        case never:
            assert_never(never)


def _edited(text: Text, modification: Modification) -> Text:
    edit_type, content = modification.edit_type, modification.content or ""
    assert edit_type is not None
    if edit_type in _BY_TARGET:
        return _edited_at_target(text, modification, content)
    if edit_type in _BY_LINE:
        return _edited_at_line(text, modification, content)
    match edit_type:
        case EditType.APPEND:
            return _inserted(text, len(text.lines), content)
        case EditType.PREPEND:
            return _inserted(text, 0, content)
        case _:
            return text.spliced(0, len(text.plain), content)


def _edited_at_target(text: Text, modification: Modification, content: str) -> Text:
    target = plain(modification.target or "")
    start = find_once(modification.path, text, target, advice=_BY_LINE_ADVICE)
    stop = start + len(target)
    if modification.edit_type is EditType.REPLACE:
        return text.spliced(start, stop, content)
    # Content is inserted as lines of its own, around the lines that the target lies on.
    first = text.plain.count("\n", 0, start)
    last = text.plain.count("\n", 0, stop - 1)
    return _inserted(text, first if modification.edit_type is EditType.INSERT_BEFORE else last + 1, content)


def _edited_at_line(text: Text, modification: Modification, content: str) -> Text:
    line = modification.line or 0
    if modification.edit_type is EditType.INSERT_AT_LINE and line == len(text.lines) + 1:
        return _inserted(text, line - 1, content)
    mismatch = line_mismatch(text, line, modification.target)
    if mismatch is not None:
        raise LineMismatch(
            f"{modification.path!r}: {mismatch}", advice="read the file again and give the line as it is now"
        )
    if modification.edit_type is EditType.REPLACE_LINE:
        return replaced_line(text, line, content)
    return _inserted(text, line - 1, content)


def _inserted(text: Text, line: int, content: str) -> Text:
    """The content as lines of its own above a line (from 0), or below the last one."""
    content = plain(content).removesuffix("\n")
    if line < len(text.lines) or not text.bare:
        place = text.line_start(line)
        return text.spliced(place, place, content + "\n")
    # A file whose last line has no line break keeps it that way.
    return text.spliced(len(text.plain), len(text.plain), "\n" + content)


def _there(path: str, data: bytes | None) -> bytes:
    if data is None:
        raise NotFound(f"there is no file {path!r}", advice="search for it, or create it")
    return data


def _check_arguments(modification: Modification) -> None:
    missing = []
    if modification.action is Action.EDIT:
        if modification.edit_type is None:
            missing.append("edit_type")
        if modification.edit_type in _BY_TARGET and modification.target is None:
            missing.append("target")
        if modification.edit_type in _BY_LINE and modification.line is None:
            missing.append("line")
    if modification.action is not Action.DELETE and modification.content is None:
        missing.append("content")
    if missing:
        what = f"{modification.action} {modification.edit_type or ''}".strip()
        raise BadArguments(f"{what} of {modification.path!r} needs {', '.join(missing)}", advice="give what is missing")
