"""Edits of a bench's files: each is made from what is there now, checked, written and read back.

An edit that fails at any step leaves the file byte for byte as it was, and a file that has changed since it was read is
not edited at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pawl.code.code_model import Edited, EditType, FileOperation, LineEdit, Modification
from pawl.code.file_edits import EditOutcome, check_content, decoded, line_edits, modify, strict_patch, there
from pawl.code.import_map import ImportMap
from pawl.code.languages import is_test, language_of
from pawl.core.change import blob_digest
from pawl.core.errors import (
    NeverRead,
    NotFound,
    NothingToDo,
    PathRefused,
    PawlError,
    ProtectedRefused,
    RestoreFailed,
    SecretRefused,
    StaleRead,
    WriteFailed,
)
from pawl.core.text import Text
from pawl.settings.guardrails import Guardrails
from pawl.workspace.bench_files import Files
from pawl.workspace.paths import clean

Edit = Callable[[bytes | None], EditOutcome]


class BenchEditor:
    """Fits `Editor`. `allowed` are the protected files that the user said yes to."""

    def __init__(self, files: Files, guardrails: Guardrails, *, allowed: Iterable[str] = ()) -> None:
        self._files = files
        self._guardrails = guardrails
        self._allowed = frozenset(allowed)
        self._known: dict[str, str | None] = {}
        """The content each file had when it was last read or edited here; None when it was not there."""
        self._read: set[str] = set()
        """Files whose whole content the caller has seen."""
        self._told: set[str] = set()

    def over(self, files: Files) -> BenchEditor:
        """An editor of other files that knows what this one knows."""
        other = BenchEditor(files, self._guardrails, allowed=self._allowed)
        other._known, other._read = dict(self._known), set(self._read)
        return other

    def read(self, path: str) -> Text:
        path = self._readable(path)
        data = there(path, self._current(path))
        text = decoded(path, data, self._guardrails)
        self._known[path] = blob_digest(data)
        self._read.add(path)
        return text

    def write(self, path: str, content: str) -> Edited:
        path = self._writable(path)
        create = Modification(path=path, action=FileOperation.CREATE, content=content)
        overwrite = replace(create, action=FileOperation.EDIT, edit_type=EditType.FULL_REPLACE)
        return self._modified(create if self._current(path) is None else overwrite)

    def patch(self, path: str, old: str, new: str, *, end: int | None = None) -> Edited:
        path = self._writable(path)
        return self._applied(
            path, lambda data: strict_patch(path, there(path, data), old, new, self._guardrails, end=end)
        )

    def edit_lines(self, path: str, edits: Sequence[LineEdit]) -> Edited:
        path = self._writable(path)
        return self._applied(path, lambda data: line_edits(path, there(path, data), edits, self._guardrails))

    def modify(self, modification: Modification) -> Edited:
        return self._modified(replace(modification, path=self._writable(modification.path)))

    def chain(
        self, modifications: Sequence[Modification], *, justification: str, dependencies: ImportMap
    ) -> tuple[Edited, ...]:
        """Imported files come before their importers and deletions last, so that no step breaks what stands.

        A file is judged once, as all of its steps leave it. One that nothing links to the others is noted; the run
        asks for its reason before it is delivered.
        """
        if not modifications:
            raise NothingToDo("the chain has no modification", advice="name at least one file")
        steps = [replace(step, path=self._writable(step.path)) for step in modifications]
        paths = {step.path for step in steps}
        asked = unexplained(paths, justification, dependencies)
        place = {path: number for number, path in enumerate(dependencies.order(paths))}
        steps.sort(key=lambda step: (step.action is FileOperation.DELETE, place[step.path]))
        before: dict[str, bytes | None] = {}
        known, read = dict(self._known), set(self._read)
        done: dict[int, Edited] = {}
        last = {step.path: number for number, step in enumerate(steps)}
        try:
            for number, step in enumerate(steps):
                before.setdefault(step.path, self._current(step.path))
                done[number] = self._modified(step, judged=False)
            for path, number in last.items():
                after = self._current(path)
                notes = () if after is None else check_content(path, before[path], after)
                asks = (_WHY,) if path in asked else ()
                done[number] = replace(done[number], notes=(*self._untold(notes), *asks))
        except (OSError, PawlError) as error:
            self._known, self._read = known, read
            self._take_back(before)
            if isinstance(error, PawlError):
                error.advice = f"{error.advice}; every file of the chain is as it was".lstrip("; ")
            raise
        return tuple(done.values())

    def _modified(self, step: Modification, *, judged: bool = True) -> Edited:
        edited = self._applied(
            step.path,
            lambda data: modify(data, step, self._guardrails, judged=judged),
            whole=step.edit_type is EditType.FULL_REPLACE,
        )
        if step.action is FileOperation.CREATE or step.edit_type is EditType.FULL_REPLACE:
            self._read.add(step.path)
        return edited

    def _applied(self, path: str, edit: Edit, *, whole: bool = False) -> Edited:
        before = self._current(path)
        self._check_fresh(path, before, whole=whole)
        outcome = edit(before)
        self._put(path, before, outcome.data)
        self._known[path] = _digest(outcome.data)
        return Edited(
            path=path,
            before=_digest(before),
            after=_digest(outcome.data),
            changed_lines=outcome.changed_lines,
            notes=self._untold(outcome.notes),
        )

    def _untold(self, notes: Sequence[str]) -> tuple[str, ...]:
        """Remarks that were not made before: that a kind of file is not checked is said once."""
        new = tuple(note for note in notes if note not in self._told)
        self._told.update(new)
        return new

    def _check_fresh(self, path: str, data: bytes | None, *, whole: bool) -> None:
        if path in self._known and self._known[path] != _digest(data):
            raise StaleRead(
                f"{path!r} has changed since it was read, and is left as it is now",
                advice="read it again and make the edit from what it says now",
            )
        if whole and data is not None and path not in self._read:
            raise NeverRead(
                f"{path!r} is there and has not been read", advice="read it first, or edit only the part that changes"
            )

    def _put(self, path: str, before: bytes | None, after: bytes | None) -> None:
        try:
            self._set(path, after)
            landed = self._current(path)
        except (OSError, PawlError):
            self._take_back({path: before})
            raise
        if landed != after:
            self._take_back({path: before})
            raise WriteFailed(
                f"{path!r} did not hold what was written, and is as it was",
                advice="see that nothing else writes the file, then try again",
            )

    def _take_back(self, before: dict[str, bytes | None]) -> None:
        """Every file as it was; one that cannot be is named, and the others are restored all the same."""
        left = []
        for path, data in reversed(before.items()):
            try:
                if self._current(path) != data:
                    self._set(path, data)
                restored = self._current(path) == data
            except (OSError, PawlError):
                restored = False
            if not restored:
                # No content has this name, so the file has to be read before it is edited again.
                self._known[path] = ""
                left.append(path)
        if left:
            raise RestoreFailed(
                f"an edit failed and could not be taken back: {', '.join(map(repr, left))}",
                advice="the user's own files are untouched; discard this bench and start from a fresh one",
            )

    def _set(self, path: str, data: bytes | None) -> None:
        if data is None:
            self._files.delete(path)
        else:
            self._files.write(path, data)

    def _current(self, path: str) -> bytes | None:
        try:
            return self._files.read(path)
        except (NotFound, FileNotFoundError):
            return None

    def _readable(self, path: str) -> str:
        path = clean(path)
        if self._guardrails.never(path):
            raise PathRefused(f"{path!r} belongs to git itself", advice="use git commands for what you need of it")
        if self._guardrails.is_secret(path):
            raise SecretRefused(
                f"{path!r} holds secrets", advice="work without its content; the user can be asked what it should be"
            )
        return path

    def _writable(self, path: str) -> str:
        path = self._readable(path)
        if self._guardrails.is_protected(path) and path not in self._allowed:
            raise ProtectedRefused(
                f"{path!r} configures or executes", advice="ask the user, who can allow this file by its name"
            )
        return path


_WHY = "no import links it to the other files: name it in your answer and say why it changes too"


def unexplained(paths: Iterable[str], words: str, dependencies: ImportMap) -> list[str]:
    """The sources of a change over several files that the words do not name and no import links to the rest (A7).

    Tests and documents go with what they are about.
    """
    sources = {path for path in paths if language_of(path) and not is_test(path)}
    if len(sources) < 2:
        return []
    return [
        path
        for path in sorted(sources)
        if not names(words, path) and not dependencies.neighbours(path) & (sources - {path})
    ]


def names(justification: str, path: str) -> bool:
    """Whether the text names the file by its path or its last name, as a word of its own."""
    words = (path, path.rpartition("/")[2])
    return any(re.search(rf"(?<![\w./-]){re.escape(word)}(?![\w/-])", justification) for word in words)


def _digest(data: bytes | None) -> str | None:
    return None if data is None else blob_digest(data)
