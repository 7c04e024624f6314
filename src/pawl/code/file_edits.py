"""Edits of one file's content, each checked: its size, that it still parses, and that it keeps the imports it uses.

What has no checker here, or did not parse before, is said to be unchecked. Where a text is not found, the message shows
where it might have been meant; no edit is applied by that.
"""

from __future__ import annotations

import difflib
import fnmatch
import functools
import heapq
import platform
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import assert_never

from pawl.code.code_model import EditType, FileOperation, LineEdit, Modification
from pawl.code.import_map import check_imports
from pawl.code.languages import language_of
from pawl.code.parsers import Parsers
from pawl.core.errors import (
    AlreadyThere,
    AmbiguousMatch,
    BadArguments,
    LineMismatch,
    NotFound,
    NothingToDo,
    ParseFailed,
    SyntaxBroken,
    TextNotFound,
    TooLarge,
    TooManyEdits,
    TooManyLines,
)
from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import Text, changed_lines, plain
from pawl.core.typed import Unreadable, read_json, read_toml
from pawl.settings.guardrails import Guardrails

PLACES = 3
SHOWN_LINES = 6
SHOWN_CHARACTERS = 200
_COMPARED_CHARACTERS = 300
_COMPARED_LINES = 100
_CANDIDATES = 12
_LEAST_LIKENESS = 0.5
_LEAST_LINE = 0.3


@dataclass(frozen=True, slots=True)
class SimilarLines:
    """A run of lines that is like the one looked for."""

    line: int
    """From 1."""
    lines: tuple[str, ...]
    only_whitespace: bool
    """Whether it differs in nothing but spaces and tabs."""


def closest(lines: Sequence[str], wanted: str) -> list[SimilarLines]:
    """The places most like `wanted`, best first."""
    sought = wanted.strip("\n").split("\n")
    anchor = max(range(len(sought)), key=lambda number: len(sought[number].strip()))
    if not sought[anchor].strip():
        return []
    starts = {max(0, number - anchor) for number in _alike(lines, sought[anchor])}
    scored = [(_likeness(lines[start : start + len(sought)], sought), start) for start in starts]
    best = sorted((pair for pair in scored if pair[0] >= _LEAST_LIKENESS), key=lambda pair: (-pair[0], pair[1]))
    return [_place(lines, start, sought) for _, start in best[:PLACES]]


def shown(places: Sequence[SimilarLines]) -> str:
    """The places as numbered lines."""
    text = []
    for place in places:
        if place.only_whitespace:
            text.append("the same but for spaces and tabs (tabs are shown as \\t):")
        for number, line in enumerate(place.lines[:SHOWN_LINES], place.line):
            visible = line.replace("\t", "\\t") if place.only_whitespace else line
            text.append(f"{number:>5} | {visible[:SHOWN_CHARACTERS]}")
        if len(place.lines) > SHOWN_LINES:
            text.append(f"      | … up to line {place.line + len(place.lines) - 1}")
    return "\n".join(text)


def _alike(lines: Sequence[str], wanted: str) -> list[int]:
    """The numbers of the lines most like one line."""
    matcher = difflib.SequenceMatcher(None, b=_reduced(wanted), autojunk=False)
    rough: list[tuple[float, int]] = []
    for number, line in enumerate(lines):
        matcher.set_seq1(_reduced(line))
        # Each is an upper bound of the next and far cheaper; the full comparison is kept for a few.
        if matcher.real_quick_ratio() > _LEAST_LINE and (likeness := matcher.quick_ratio()) > _LEAST_LINE:
            rough.append((likeness, -number))
    fine = []
    for _, number in heapq.nlargest(_COMPARED_LINES, rough):
        matcher.set_seq1(_reduced(lines[-number]))
        fine.append((matcher.ratio(), number))
    return [-number for likeness, number in heapq.nlargest(_CANDIDATES, fine) if likeness > _LEAST_LINE]


def _likeness(lines: Sequence[str], sought: Sequence[str]) -> float:
    one, other = "\n".join(lines), "\n".join(sought)
    if one.split() == other.split():
        return 1.0
    limit = _COMPARED_CHARACTERS * 4
    return difflib.SequenceMatcher(None, one[:limit], other[:limit], autojunk=False).ratio()


def _place(lines: Sequence[str], start: int, sought: Sequence[str]) -> SimilarLines:
    found = tuple(lines[start : start + len(sought)])
    return SimilarLines(start + 1, found, "\n".join(found).split() == "\n".join(sought).split())


def _reduced(line: str) -> str:
    return " ".join(line[:_COMPARED_CHARACTERS].split())


@dataclass(frozen=True, slots=True, kw_only=True)
class EditOutcome:
    """The new content of a file; None when it is deleted."""

    data: bytes | None
    changed_lines: int
    notes: tuple[str, ...] = ()


def decoded(path: str, data: bytes, guardrails: Guardrails) -> Text:
    """The text of a file that is small enough."""
    check_size(path, data, guardrails)
    return Text.decode(data, path)


def checked(path: str, before: bytes | None, text: Text, guardrails: Guardrails, *, judged: bool = True) -> EditOutcome:
    """The outcome of an edit that passes every check; its error otherwise. A step on the way is not `judged`."""
    after = text.encode(path)
    check_size(path, after, guardrails)
    if before == after:
        raise NothingToDo(
            f"the edit leaves {path!r} as it is", advice="the file already has this content; go on with the next step"
        )
    notes = check_content(path, before, after) if judged else ()
    return EditOutcome(data=after, changed_lines=changed_lines(before or b"", after), notes=notes)


def check_content(path: str, before: bytes | None, after: bytes) -> tuple[str, ...]:
    """Refuses what breaks the syntax or drops an import in use; returns what was not checked."""
    notes = check_syntax(path, before, after)
    check_imports(path, before, after)
    return notes


def check_size(path: str, data: bytes, guardrails: Guardrails) -> None:
    if len(data) > guardrails.file_bytes:
        raise TooLarge(
            f"{path!r} has {len(data):,} bytes; the limit is {guardrails.file_bytes:,}",
            advice="work on a smaller file, or search for the part that matters",
        )


_NAMED_LINES = 5


def line_edits(path: str, data: bytes, edits: Sequence[LineEdit], guardrails: Guardrails) -> EditOutcome:
    """The content with the lines replaced, from the last to the first so that no number shifts."""
    if not edits:
        raise NothingToDo(f"no line of {path!r} is named", advice="give at least one edit")
    if len(edits) > guardrails.line_edits:
        raise TooManyEdits(
            f"{len(edits)} line edits for {path!r}; the limit is {guardrails.line_edits}",
            advice="make several calls, reading the file again in between",
        )
    text = decoded(path, data, guardrails)
    mismatches = _mismatches(text, edits)
    if mismatches:
        raise LineMismatch(
            f"{path!r} is not as the edits say, and none was applied:\n" + "\n".join(mismatches),
            advice="read the file again and give the lines as they are now",
        )
    for edit in sorted(edits, key=lambda edit: edit.line, reverse=True):
        text = replaced_line(text, edit.line, edit.new, end=edit.end)
    return checked(path, data, text, guardrails)


def replaced_line(text: Text, line: int, new: str | None, *, end: int | None = None) -> Text:
    """The text with a line (from 1), or those up to `end`, replaced by one or several, or taken out."""
    last = end or line
    if new is None:
        return text.spliced(text.line_start(line - 1), text.line_start(last), "")
    stop = text.line_start(last - 1) + len(text.lines[last - 1])
    return text.spliced(text.line_start(line - 1), stop, without_last_break(new))


def line_mismatch(text: Text, line: int, old: str | None) -> str | None:
    """The mistake in the claim that a line (from 1) is `old`; only its number is judged when that is None."""
    count = len(text.lines)
    if not 1 <= line <= count:
        where = "" if old is None else _elsewhere(text, without_last_break(old))
        return f"line {line}: the file has {count} line{'' if count == 1 else 's'}{where}"
    if old is None or text.lines[line - 1] == without_last_break(old):
        return None
    wanted = without_last_break(old)
    return f"line {line} is {text.lines[line - 1]!r}, not {wanted!r}{_elsewhere(text, wanted)}"


def without_last_break(content: str) -> str:
    """A line is the same line with or without its line break."""
    return plain(content).removesuffix("\n")


def _mismatches(text: Text, edits: Sequence[LineEdit]) -> list[str]:
    count = len(text.lines)
    wrong = [edit for edit in edits if edit.end is not None and not edit.line <= edit.end <= count]
    if wrong:
        return [f"lines {edit.line} to {edit.end} are not a range of the file's {count} lines" for edit in wrong]
    times = Counter(line for edit in edits for line in range(edit.line, (edit.end or edit.line) + 1))
    found = [f"line {line} is edited {count} times" for line, count in sorted(times.items()) if count > 1]
    said = (line_mismatch(text, edit.line, edit.old) for edit in sorted(edits, key=lambda edit: edit.line))
    return [*found, *filter(None, said)]


def _elsewhere(text: Text, wanted: str) -> str:
    """Where the line that was meant stands now."""
    if not wanted.strip():
        return ""
    places = [number for number, line in enumerate(text.lines, 1) if line == wanted]
    loose = [number for number, line in enumerate(text.lines, 1) if line.split() == wanted.split()]
    if not places and not loose:
        return "; that text is nowhere in the file"
    what = "that text is now at" if places else "that text, but for its whitespace, is at"
    numbers = ", ".join(str(number) for number in (places or loose)[:_NAMED_LINES])
    return f"; {what} line {numbers}"


NAMED_PLACES = 100
"""How many line numbers of an ambiguous text are spelled out."""


def strict_patch(
    path: str, data: bytes, old: str, new: str, guardrails: Guardrails, *, end: int | None = None
) -> EditOutcome:
    """The content with `old`, or all from there to the line `end`, replaced by `new`. Line breaks of the two may be
    line feeds whatever the file has."""
    text = decoded(path, data, guardrails)
    if plain(old) == plain(new) and end is None:
        raise NothingToDo(f"the old and the new text for {path!r} are the same", advice="give the text it shall become")
    start = find_once(path, text, old, advice="copy the old text from the lines shown")
    stop = start + len(plain(old))
    notes: tuple[str, ...] = ()
    if end is not None:
        start, stop, new, notes = _to_line(path, text, (start, stop), new, end)
    outcome = checked(path, data, text.spliced(start, stop, new), guardrails)
    outcome = replace(outcome, notes=(*notes, *outcome.notes))
    if outcome.changed_lines > guardrails.patch_lines:
        raise TooManyLines(
            f"the patch changes {outcome.changed_lines} lines of {path!r}; the limit is {guardrails.patch_lines}",
            advice="split it into smaller patches",
        )
    return outcome


def _to_line(
    path: str, text: Text, found: tuple[int, int], new: str, end: int
) -> tuple[int, int, str, tuple[str, ...]]:
    """What is replaced where a patch goes on to a line, by what, and the word on where it ends. Without a new text the
    lines go as a whole, with the indentation before the old text."""
    start, stop = found
    first, least = (text.plain.count("\n", 0, place) + 1 for place in (start, stop - 1))
    if not least <= end <= len(text.lines):
        raise BadArguments(
            f"end: the text of {path!r} reaches from line {first} to {least}, and the file has {len(text.lines)} lines",
            advice="give the number of the last line that goes along, as file_read shows it now",
        )
    last = text.lines[end - 1]
    stop = text.line_start(end - 1) + len(last)
    new = without_last_break(new)
    above = text.line_start(first - 1)
    if not new and not text.plain[above:start].strip():
        start, stop = above, text.line_start(end)
    return start, stop, new, (f"lines {first} to {end}, the last of which was {last.strip()[:SHOWN_CHARACTERS]!r}",)


def find_once(path: str, text: Text, wanted: str, *, advice: str) -> int:
    """Where the only occurrence of `wanted` begins in `text.plain`."""
    wanted = plain(wanted)
    if not wanted:
        raise TextNotFound(f"the text to look for in {path!r} is empty", advice="give the text that is there now")
    places = _occurrences(text.plain, wanted)
    if not places:
        raise _not_found(path, text, wanted, advice)
    if len(places) > 1:
        lines = [text.plain.count("\n", 0, place) + 1 for place in places[:NAMED_PLACES]]
        more = f" and {len(places) - NAMED_PLACES} more places" if len(places) > NAMED_PLACES else ""
        raise AmbiguousMatch(
            f"the text occurs {len(places)} times in {path!r}: at lines {', '.join(map(str, lines))}{more}",
            advice="add the lines before and after it until it occurs once",
        )
    return places[0]


def _occurrences(whole: str, wanted: str) -> list[int]:
    """Every place, those that overlap included: which of them was meant cannot be known."""
    places = []
    place = whole.find(wanted)
    while place >= 0:
        places.append(place)
        place = whole.find(wanted, place + 1)
    return places


def _not_found(path: str, text: Text, wanted: str, advice: str) -> TextNotFound:
    places = closest(text.lines, wanted)
    message = f"the text is not in {path!r}"
    if text.bare and text.plain.endswith(wanted.rstrip("\n")):
        message += "; its last line has no line break"
    if not places:
        return TextNotFound(f"{message}, nor anything like it", advice="read the file again; is it the right one?")
    return TextNotFound(f"{message}; closest:\n{shown(places)}", advice=advice)


_BY_TARGET = (EditType.REPLACE, EditType.INSERT_BEFORE, EditType.INSERT_AFTER)
_BY_LINE = (EditType.REPLACE_LINE, EditType.INSERT_AT_LINE)
_BY_LINE_ADVICE = "edit by number: replace_line or insert_at_line with one of the line numbers shown"


def modify(
    data: bytes | None, modification: Modification, guardrails: Guardrails, *, judged: bool = True
) -> EditOutcome:
    """Apply the steps to a file whose content is `data`, or that is not there when it is None."""
    path = modification.path
    _check_arguments(modification)
    match modification.action:
        case FileOperation.CREATE:
            if data is not None:
                raise AlreadyThere(f"{path!r} already exists", advice="edit it, or choose another name")
            return checked(path, None, Text.new(modification.content or ""), guardrails, judged=judged)
        case FileOperation.DELETE:
            return EditOutcome(data=None, changed_lines=changed_lines(there(path, data), b""))
        case FileOperation.EDIT:
            before = there(path, data)
            text = decoded(path, before, guardrails)
            return checked(path, before, _edited(text, modification), guardrails, judged=judged)
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


def there(path: str, data: bytes | None) -> bytes:
    if data is None:
        raise NotFound(f"there is no file {path!r}", advice="search for it, or create it")
    return data


def _check_arguments(modification: Modification) -> None:
    missing = []
    if modification.action is FileOperation.EDIT:
        if modification.edit_type is None:
            missing.append("edit_type")
        if modification.edit_type in _BY_TARGET and modification.target is None:
            missing.append("target")
        if modification.edit_type in _BY_LINE and modification.line is None:
            missing.append("line")
    if modification.action is not FileOperation.DELETE and modification.content is None:
        missing.append("content")
    if missing:
        what = f"{modification.action} {modification.edit_type or ''}".strip()
        raise BadArguments(f"{what} of {modification.path!r} needs {', '.join(missing)}", advice="give what is missing")


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    line: int
    message: str


def _python(data: bytes) -> SyntaxProblem | None:
    with warnings.catch_warnings():
        # A doubtful escape sequence is a warning of the user's file, not of Pawl.
        warnings.simplefilter("ignore")
        try:
            compile(data, "file", "exec", dont_inherit=True)
        except SyntaxError as error:
            return SyntaxProblem(error.lineno or 1, f"{error.msg} (as Python {platform.python_version()} reads it)")
        except (ValueError, RecursionError, MemoryError) as error:
            return SyntaxProblem(1, str(error) or "it is nested too deeply")
    return None


def _json(data: bytes) -> SyntaxProblem | None:
    try:
        read_json(data)
    except Unreadable as error:
        return SyntaxProblem(error.line or 1, str(error))
    return None


def _toml(data: bytes) -> SyntaxProblem | None:
    try:
        read_toml(data.decode("utf-8"))
    except ValueError as error:
        place = re.search(r"at line (\d+)", str(error))
        return SyntaxProblem(int(place[1]) if place else 1, str(error))
    return None


CHECKERS: Mapping[str, Callable[[bytes], SyntaxProblem | None]] = {
    ".py": _python,
    ".pyi": _python,
    ".json": _json,
    ".toml": _toml,
}


@functools.cache
def _parsers() -> Parsers:
    return Parsers()


def _grammar(path: str) -> Callable[[bytes], SyntaxProblem | None] | None:
    """A checker by the grammar of the file's language, if that can be relied on."""
    language = language_of(path)
    if language is None or not language.strict:
        return None

    def check(data: bytes) -> SyntaxProblem | None:
        parsed = _parsers().parse(Text.decode(data, path).plain.encode("utf-8", "replace"), language)
        if parsed.error is not None:
            return SyntaxProblem(parsed.error[0], f"{parsed.error[1]} (as its grammar reads it)")
        if not parsed.complete:
            raise ParseFailed(f"the parser did not get through {path!r}", advice="")
        return None

    return check


COMMENTED_JSON = ("tsconfig*.json", "jsconfig*.json", ".eslintrc.json", "devcontainer.json", "*.code-workspace")
"""JSON in name only: comments and trailing commas are allowed there."""


def check_syntax(path: str, before: bytes | None, after: bytes) -> tuple[str, ...]:
    """Raises `SyntaxBroken` when the file parsed before and does not any more; returns what was not checked."""
    name = PurePosixPath(path).name.lower()
    suffix = PurePosixPath(name).suffix
    checker = CHECKERS.get(suffix) or _grammar(path)
    if checker is None or any(fnmatch.fnmatchcase(name, pattern) for pattern in COMMENTED_JSON):
        return (f"the syntax of {suffix or name!r} files is not checked",)
    try:
        problem = checker(after)
        if problem is None:
            return ()
        if before is None:
            return (f"the new file does not parse: line {problem.line}: {problem.message}",)
        if checker(before) is not None:
            return (f"{path!r} did not parse before the edit and does not now, so its syntax is not checked",)
    except ParseFailed as error:
        return (f"{error.message}, so its syntax is not checked",)
    shown = after.split(b"\n")[problem.line - 1 : problem.line] or [b""]
    raise SyntaxBroken(
        f"{path!r} would no longer parse: line {problem.line}: {problem.message}: "
        f"{shown[0].decode('utf-8', 'replace').rstrip()[:200]!r}",
        advice="nothing was written; mind indentation, brackets and quotes of the new text, and edit again",
    )
