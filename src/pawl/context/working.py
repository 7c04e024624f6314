"""The working context of a run: its tasks, the files it has at hand, its diagnostics, within a number of tokens.

A value, of which each helper returns a new one. When it is too much the oldest goes first, and never a critical task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pawl.core.packs import tokens_of

MOST_TASKS = 20
MOST_FILES = 50
MOST_DIAGNOSTICS = 100
MOST_TOKENS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNote:
    text: str
    critical: bool = False
    """Stays, whatever the room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedFile:
    path: str
    digest: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingContext:
    """The oldest of each kind first."""

    tasks: tuple[TaskNote, ...] = ()
    files: tuple[CachedFile, ...] = ()
    """One for each path; what was used last stands last."""
    diagnostics: tuple[Diagnostic, ...] = ()
    most_tokens: int = MOST_TOKENS

    @property
    def tokens(self) -> int:
        kinds = (self.tasks, self.files, self.diagnostics)
        return sum(tokens_of(one.text) for kind in kinds for one in kind)

    @property
    def text(self) -> str:
        """What a role is told of it, the tasks first."""
        parts = ["What was said before is left out; this is what is at hand.", ""]
        parts += ["Tasks:", *(f"- {one.text}" for one in self.tasks), ""] if self.tasks else []
        if self.diagnostics:
            parts += ["What the checks said last:"]
            parts += [f"- {one.path}: {one.text}" if one.path else f"- {one.text}" for one in self.diagnostics]
            parts += [""]
        for file in self.files:
            parts += [f"{file.path} as it stands now:", f"```\n{file.text.rstrip()}\n```", ""]
        return "\n".join(parts).rstrip("\n")

    def with_task(self, text: str, *, critical: bool = False) -> WorkingContext:
        return replace(self, tasks=(*self.tasks, TaskNote(text=text, critical=critical)))._bounded()

    def with_file(self, path: str, digest: str, text: str) -> WorkingContext:
        others = tuple(one for one in self.files if one.path != path)
        return replace(self, files=(*others, CachedFile(path=path, digest=digest, text=text)))._bounded()

    def file(self, path: str, digest: str) -> CachedFile | None:
        """The file as it is cached; None when it is another content by now."""
        return next((one for one in self.files if one.path == path and one.digest == digest), None)

    def with_diagnostics(self, path: str, *texts: str) -> WorkingContext:
        """Replaces what was known of the file: diagnostics are those of its latest content."""
        others = tuple(one for one in self.diagnostics if one.path != path)
        added = tuple(Diagnostic(path=path, text=text) for text in texts)
        return replace(self, diagnostics=(*others, *added))._bounded()

    def _bounded(self) -> WorkingContext:
        """Files go before diagnostics, and those before tasks: a file can be read again."""
        made = replace(
            self,
            tasks=_without_oldest(self.tasks, len(self.tasks) - MOST_TASKS),
            files=self.files[-MOST_FILES:],
            diagnostics=self.diagnostics[-MOST_DIAGNOSTICS:],
        )
        over = made.tokens - self.most_tokens
        while over > 0:
            if made.files:
                over -= tokens_of(made.files[0].text)
                made = replace(made, files=made.files[1:])
            elif made.diagnostics:
                over -= tokens_of(made.diagnostics[0].text)
                made = replace(made, diagnostics=made.diagnostics[1:])
            else:
                fewer = _without_oldest(made.tasks, 1)
                if fewer == made.tasks:
                    break
                made = replace(made, tasks=fewer)
                over = made.tokens - self.most_tokens
        return made


def _without_oldest(tasks: tuple[TaskNote, ...], count: int) -> tuple[TaskNote, ...]:
    """So many of the oldest go, none of them critical."""
    places = [place for place, task in enumerate(tasks) if not task.critical][: max(0, count)]
    return tuple(task for place, task in enumerate(tasks) if place not in places)
