"""Every protocol between the rooms of the house. Adapters do not inherit from these; they fit."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pawl.core.change import ChangeSet
    from pawl.core.code import Commit, Edited, Hit, LineEdit, Modification, Outline, Query, Stamp
    from pawl.core.diagnostic import Check, CheckResult
    from pawl.core.dialogue import ModelEvent, Request, ToolOffer
    from pawl.core.execution import Completed, Execution, Protection, Stream, View
    from pawl.core.history import Checkpoint, Entry, EntryState, NewEntry, Retention
    from pawl.core.run import RequestRecord
    from pawl.core.text import Text


class BlobReader(Protocol):
    def get(self, digest: str) -> bytes:
        """The content of that name; `MissingBlob` when it is not stored."""
        ...


class BlobStore(BlobReader, Protocol):
    def put(self, data: bytes) -> str:
        """Stores a content and returns its name."""
        ...

    def batch(self) -> AbstractContextManager[None]:
        """Many puts as one durable step."""
        ...


class Journal(Protocol):
    """The write-ahead record of what is done to a workspace, and its history."""

    def record(self, entry: NewEntry, changes: ChangeSet) -> int:
        """Keeps a change set that is not in the workspace; returns its number."""
        ...

    def begin(self, entry: NewEntry, changes: ChangeSet, modes: Mapping[str, int]) -> int:
        """Writes the intent durably (state PREPARED) before the first file is touched; returns its number.

        `modes` are files and directories whose mode must be put back whatever happens. `Conflicted` when another entry
        has taken back what this one would.
        """
        ...

    def finish(self, entry: int, state: EntryState) -> None:
        """Sets the outcome of an entry, and with DONE the links between an undo and what it took back."""
        ...

    def pending(self, workspace: str) -> Sequence[Entry]: ...

    def modes(self, entry: int) -> Mapping[str, int]: ...

    def entry(self, workspace: str, number: int) -> Entry: ...

    def entries(self, workspace: str, *, run: str | None = None, limit: int | None = None) -> Sequence[Entry]:
        """Newest first."""
        ...

    def changes(self, entry: int) -> ChangeSet: ...

    def add_checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """Stores it and returns it with its number."""
        ...

    def checkpoints(self, workspace: str) -> Sequence[Checkpoint]:
        """Newest first."""
        ...

    def prune(self, retention: Retention) -> tuple[int, int]:
        """Drops what retention no longer keeps; returns the entries pruned and the bytes freed."""
        ...


class EventLog(Protocol):
    def append(self, workspace: str, run: str, kind: str, body: Mapping[str, object]) -> int: ...

    def read(self, workspace: str, *, run: str | None = None, after: int = 0) -> Iterable[Mapping[str, object]]: ...


class Cancel(Protocol):
    """A request to stop that can be waited on together with pipes."""

    def fileno(self) -> int: ...

    @property
    def requested(self) -> bool: ...


class Sandbox(Protocol):
    def run(
        self,
        view: View,
        execution: Execution,
        *,
        on_output: Callable[[Stream, bytes], None] | None = None,
        cancel: Cancel | None = None,
    ) -> Completed:
        """Runs the command confined to the view, or raises `SandboxUnavailable`; never runs it bare.

        Raises `OverlayUnavailable` before anything has run when the view's overlay cannot be mounted.
        """
        ...

    def protection(self) -> Protection:
        """What this machine gives, probed."""
        ...


class Files(Protocol):
    """The files of a bench, as the tools see them."""

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, data: bytes) -> None: ...

    def delete(self, path: str) -> None: ...

    def exists(self, path: str) -> bool: ...

    def walk(self, under: str = "") -> Iterable[str]:
        """Every file that is not ignored, sorted."""
        ...


class DependencyMap(Protocol):
    def neighbours(self, path: str) -> frozenset[str]:
        """The files that this one imports, and those that import it."""
        ...

    def order(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Imported files before their importers; cycles in a stable order."""
        ...


class Editor(Protocol):
    """Edits of a bench's files that are checked before they are written, and leave the file as it was if they fail."""

    def read(self, path: str) -> Text:
        """The text of the file; later edits are refused when the file has changed since."""
        ...

    def write(self, path: str, content: str) -> Edited:
        """The whole file; one that is there must have been read."""
        ...

    def patch(self, path: str, old: str, new: str) -> Edited: ...

    def edit_lines(self, path: str, edits: Sequence[LineEdit]) -> Edited: ...

    def modify(self, modification: Modification) -> Edited: ...

    def chain(
        self, modifications: Sequence[Modification], *, justification: str, dependencies: DependencyMap
    ) -> tuple[Edited, ...]:
        """Several files as one: applied one at a time, all taken back if one fails."""
        ...


class CommandRunner(Protocol):
    def run(self, execution: Execution) -> Completed:
        """Runs the command on the bench, confined."""
        ...


class Outliner(Protocol):
    def outline(self, files: Files, path: str) -> Outline:
        """What a file defines, or the files of a folder at their top; empty or `.` is everything.

        Bounded in time and size, and never a secret. `ParseFailed` for a file in an unknown language.
        """
        ...


class SourceFiles(Protocol):
    """The files of a workspace for whoever only reads: no link, no secret, nothing of git's, nothing ignored."""

    def stamps(self) -> Sequence[Stamp]:
        """Every file, sorted by path."""
        ...

    def stamp(self, path: str) -> Stamp | None:
        """One file; None when it is not among them."""
        ...

    def read(self, path: str, limit: int) -> tuple[bytes, Stamp]:
        """The content with the stamp that belongs to it; `TooLarge` above the limit."""
        ...


class CommitLog(Protocol):
    """The history of a workspace, of which only what HEAD reaches is told."""

    def head(self) -> str:
        """The commit that is checked out; empty without one."""
        ...

    def commits(self, most: int) -> Sequence[Commit]:
        """Those that HEAD reaches, newest first, at most so many, without merges; none where git does not answer."""
        ...


class Librarian(Protocol):
    """Finds the right code without a model. The same index and query give the same answer."""

    def locate(self, query: Query, top: int) -> Sequence[Hit]:
        """The files that are likeliest to change, the likeliest first."""
        ...

    def refresh(self, paths: Iterable[str] | None = None) -> None:
        """Brings the index up to date: with these files, or with every file that has changed."""
        ...


class Checker(Protocol):
    def check(self, what: Check, *, seconds: float) -> Sequence[CheckResult]:
        """A verdict for each check that was asked for, with its limit in seconds; a missing tool is skipped."""
        ...

    def diagnose(self, paths: Sequence[str], *, seconds: float) -> Sequence[CheckResult]:
        """What each language server that knows these files finds in them; one that does not answer is skipped."""
        ...


class Model(Protocol):
    """Whatever answers a request: a provider, a local file, a script."""

    def stream(self, request: Request, *, cancel: Cancel | None = None) -> Generator[ModelEvent, None, None]:
        """What happens while the model answers; the last event is `Answered`, or a `ModelError` is raised.

        Closing the generator aborts the request. After `cancel`, `Cancelled` is raised within a second.
        """
        ...


class RequestLog(Protocol):
    def record(self, workspace: str, record: RequestRecord) -> int: ...

    def records(self, workspace: str, *, run: str | None = None, limit: int | None = None) -> Sequence[RequestRecord]:
        """Oldest first; with a limit, the newest of them."""
        ...


class ToolReply(Protocol):
    """How a tool call ended, for the model."""

    @property
    def text(self) -> str: ...

    @property
    def failed(self) -> bool: ...


class Toolset(Protocol):
    """The tools that there are, by name."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def offers(self, names: Sequence[str]) -> tuple[ToolOffer, ...]:
        """These tools as a model sees them, in a stable order."""
        ...

    def call(self, name: str, arguments: Mapping[str, object]) -> ToolReply:
        """Never raises for what a model did wrong: that is a reply that failed."""
        ...
