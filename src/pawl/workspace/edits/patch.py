"""The strict patch: the old text occurs exactly once, or nothing happens."""

from __future__ import annotations

from pawl.core.content import Text, plain
from pawl.core.errors import AmbiguousMatch, NothingToDo, TextNotFound, TooManyLines
from pawl.core.guardrails import Guardrails
from pawl.workspace.edits.closest import closest, shown
from pawl.workspace.edits.outcome import Outcome, checked, decoded

NAMED_PLACES = 100
"""How many line numbers of an ambiguous text are spelled out."""


def strict_patch(path: str, data: bytes, old: str, new: str, guardrails: Guardrails) -> Outcome:
    """The content with `old` replaced by `new`. Line breaks of the two may be line feeds whatever the file has."""
    text = decoded(path, data, guardrails)
    if plain(old) == plain(new):
        raise NothingToDo(f"the old and the new text for {path!r} are the same", advice="give the text it shall become")
    start = find_once(path, text, old, advice="copy the old text from the lines shown, or use line_edit with a number")
    outcome = checked(path, data, text.spliced(start, start + len(plain(old)), new), guardrails)
    if outcome.changed_lines > guardrails.patch_lines:
        raise TooManyLines(
            f"the patch changes {outcome.changed_lines} lines of {path!r}; {guardrails.patch_lines} is the most",
            advice="split it into smaller patches",
        )
    return outcome


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
            advice="add the lines before and after it until it occurs once, or use line_edit with a number",
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
