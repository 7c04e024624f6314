"""The files of a bench as tools see them: plain files inside the workspace, no links, no secrets, nothing of git's."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from pawl.core.change import NodeKind, parents
from pawl.core.errors import NotAFile, NotFound, PathRefused, PawlError, PermissionDenied, SecretRefused, TooLarge
from pawl.core.lazy_dataclass import dataclass
from pawl.settings.files import Seen, Tree
from pawl.settings.guardrails import Decision, Guardrails
from pawl.workspace.ignore import IGNORE_FILES, LARGEST_IGNORE_FILE, Ignore
from pawl.workspace.masks import Entries, Listings
from pawl.workspace.paths import clean, told
from pawl.workspace.surface import Surface

if TYPE_CHECKING:
    from pawl.settings.permissions import ReadGate


_GONE = (NotFound, FileNotFoundError, NotADirectoryError, PathRefused)
"""What a folder is that was listed, and has been taken away since."""
_NEW_FILE = 0o644
_NO_TEXT = re.compile("[\ud800-\udfff]")
"""In a name that is none, which cannot be shown or asked for."""

Hold = Callable[[], AbstractContextManager[Surface]]
"""Gives the bench's surface while no command and no other edit is at work."""


class Stamp(NamedTuple):
    """Tells, without reading it, whether a file has changed."""

    path: str
    size: int
    modified_ns: int


class Files(Protocol):
    """The files of a bench, as the tools see them."""

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, data: bytes) -> None: ...

    def delete(self, path: str) -> None: ...

    def exists(self, path: str) -> bool: ...

    def walk(self, under: str = "") -> Iterable[str]:
        """Every file that is not ignored, sorted."""


class BenchFiles:
    """Fits `Files`."""

    def __init__(
        self, hold: Hold, guardrails: Guardrails, ignore: Callable[[Surface], Ignore], listings: Listings | None = None
    ) -> None:
        self._hold = hold
        self._listings = listings or Listings()
        self._guardrails = guardrails
        self._ignore = ignore
        self._made: set[str] = set()
        """Folders that a write made on the way; they go when they are empty again."""

    def read(self, path: str) -> bytes:
        with self._opened(path) as (surface, place):
            seen = _file(surface, place)
            self._check_size(place, seen.size)
            return surface.read_with(place, self._guardrails.file_bytes)[0]

    def digest(self, path: str) -> str:
        """The hash of what `read` gives."""
        with self._hold() as surface, suppress(OSError):
            if surface.is_untouched(posixpath.dirname(path)):
                return self._listings.digest(surface.workspace, path, lambda: self.read(path))
        return hashlib.sha256(self.read(path)).hexdigest()

    def write(self, path: str, data: bytes) -> None:
        """Puts the content there in one step. A file that is there keeps its mode."""
        with self._opened(path) as (surface, place):
            self._check_size(place, len(data))
            seen = surface.look(place)
            if seen is not None:
                _refuse_other_kinds(place, seen)
            missing = [above for above in parents(place) if surface.look(above) is None]
            surface.put_file(place, data, _NEW_FILE if seen is None else seen.mode)
            self._made.update(missing)

    def delete(self, path: str) -> None:
        with self._opened(path) as (surface, place):
            _file(surface, place)
            surface.remove(place)
            for above in parents(place):
                if above not in self._made or surface.kinds(above):
                    break
                surface.remove(above)
                self._made.discard(above)

    def exists(self, path: str) -> bool:
        """Whether it stands there; behind a symbolic link, such as an environment kept elsewhere, nothing does."""
        with self._opened(path, secrets=True) as (surface, place):
            try:
                return surface.look(place) is not None
            except PathRefused:
                return False

    def ignores(self, folder: str) -> bool:
        """Whether what is in the folder stays on the bench."""
        with self._opened(folder, secrets=True) as (surface, place):
            return self._ignore(surface).topmost(place, folder=True) is not None

    def walk(self, under: str = "") -> Iterator[str]:
        """Every regular file that is not ignored and not git's own, sorted; nothing when there is no such folder.

        Folders are listed as they are reached, so that little is held in memory and a reader can stop at any time.
        """
        top = clean(under) if under not in ("", ".") else ""
        with self._hold() as surface:
            seen = surface.look(top) if top else None
            if top and seen is None:
                return iter(())
            if seen is not None and seen.kind is not NodeKind.DIRECTORY:
                raise NotAFile(f"{under!r} is not a folder", advice="name a folder, or read the file")
            first = list(self._listed(surface, top, ignore := self._ignore(surface)))
        return self._walked(first, ignore)

    def _walked(self, pending: list[str], ignore: Ignore) -> Iterator[str]:
        """From the paths of a folder, the last first, whose folders end with a slash."""
        while pending:
            path = pending.pop()
            if not path.endswith("/"):
                yield path
                continue
            with self._hold() as surface, suppress(*_GONE):
                pending += self._listed(surface, path[:-1], ignore)

    def _listed(self, surface: Surface, folder: str, ignore: Ignore) -> list[str]:
        known = self._listings.entries(surface.workspace, folder) if surface.is_untouched(folder) else None
        return _kept(known or Entries(surface.kinds(folder)), folder, ignore, self._guardrails, self._guardrails.never)

    @contextmanager
    def _opened(self, path: str, *, secrets: bool = False) -> Iterator[tuple[Surface, str]]:
        """The surface and the path in its one form, with what the disk says turned into words."""
        with self._hold() as surface:
            place = clean(path, root=surface.workspace.root)
            if self._guardrails.never(place):
                raise PathRefused(f"{place!r} belongs to git itself", advice="use git commands for what you need of it")
            if not secrets and self._guardrails.is_secret(place):
                raise SecretRefused(f"{place!r} holds secrets", advice="work without its content, or ask the user")
            try:
                yield surface, place
            except OSError as error:
                raise told(error, place) from error

    def _check_size(self, path: str, size: int) -> None:
        if size > self._guardrails.file_bytes:
            raise TooLarge(
                f"{path!r} has {size:,} bytes; the limit is {self._guardrails.file_bytes:,}",
                advice="work on a smaller file, or run a command for it",
            )


def _kept(entries: Entries, folder: str, ignore: Ignore, rails: Guardrails, unread: Callable[[str], bool]) -> list[str]:
    """The folders and files in a folder that are neither ignored nor unread by name, the last first; a folder ends with
    a slash. Where neither the folder nor the rules have changed, that was found out before."""
    ignore.note_names(folder, entries.kinds)
    rules = ignore.rules(folder)
    known, found = entries.kept.get(ignore.names, (None, []))
    if known != rules:
        found, hidden = [], () if entries.plain else rails.among(folder, entries.kinds, unread)
        for name, kind in entries.kinds.items():
            path, is_folder = f"{folder}/{name}" if folder else name, kind is NodeKind.DIRECTORY
            if not (is_folder or kind is NodeKind.FILE) or name in hidden:
                continue
            if ignore.topmost(path, folder=is_folder) is None:
                found.append(f"{path}/" if is_folder else path)
        # With its slash a folder comes where its files come among all paths.
        found.sort(reverse=True)
        entries.kept[ignore.names] = rules, found
    ignore.note_kept(path[:-1] for path in found if path.endswith("/"))
    return found


class UnopenedSurface:
    """The workspace in the place of a bench that nobody has opened yet: what is read there stands here."""

    def __init__(self, workspace: Tree) -> None:
        self.workspace = workspace
        self.look, self.read_with = workspace.look, workspace.read_with

    def files(self, guardrails: Guardrails) -> BenchFiles:
        """For `read` and `exists`."""
        surface = cast("Surface", self)
        return BenchFiles(lambda: nullcontext(surface), guardrails, lambda _: Ignore(lambda path: None))


def _file(surface: Surface, path: str) -> Seen:
    seen = surface.look(path)
    if seen is None:
        raise NotFound(f"there is no file {path!r}", advice="check the spelling, or search for it")
    _refuse_other_kinds(path, seen)
    return seen


def _refuse_other_kinds(path: str, seen: Seen) -> None:
    match seen.kind:
        case NodeKind.FILE:
            return
        case NodeKind.LINK:
            raise PathRefused(f"{path!r} is a symbolic link", advice="name the file it points to")
        case NodeKind.DIRECTORY:
            raise NotAFile(f"{path!r} is a folder", advice="name a file in it")
        case None:
            raise NotAFile(f"{path!r} is a device, FIFO or socket", advice="Pawl works on regular files only")


class GatedFiles:
    """Fits `Files`: the files that a model may see. Lists leave out what the gate refuses.

    What was written through it can be read back as long as it stands as it was written.
    """

    def __init__(self, files: Files, gate: ReadGate) -> None:
        self._files = files
        self._gate = gate
        self._granted: set[str] = set()
        self._written: dict[str, bytes] = {}
        self.was_hidden = False
        """A command was run that was shown some files empty."""

    def grant(self, path: str) -> None:
        """The user lets this file be read that a rule asks about; what a rule denies stays denied."""
        self._granted.add(posixpath.normpath(path))

    def read(self, path: str) -> bytes:
        plain = posixpath.normpath(path)
        said = self._gate.judge(path)
        if said is None or (said.ruling is Decision.ASK and plain in self._granted):
            return self._files.read(path)
        if plain in self._written and self._files.exists(path):
            data = self._files.read(path)
            if data == self._written[plain]:
                return data
        raise PermissionDenied(f"{path!r} may not be read: {said.reason}", advice="work without its content")

    def write(self, path: str, data: bytes) -> None:
        self._files.write(path, data)
        if self._gate.judge(path) is not None:
            self._written[posixpath.normpath(path)] = data

    def delete(self, path: str) -> None:
        self._files.delete(path)

    def exists(self, path: str) -> bool:
        return self._files.exists(path)

    def walk(self, under: str = "") -> Iterator[str]:
        return filter(self._gate.lists, self._files.walk(under))

    def refusal(self, path: str) -> str:
        """The rule that keeps a file from the model; empty where it may read it, or has written it itself."""
        plain, said = posixpath.normpath(path), self._gate.judge(path)
        if said is None or plain in self._written or (said.ruling is Decision.ASK and plain in self._granted):
            return ""
        return said.rule or said.reason

    @property
    def granted(self) -> frozenset[str]:
        return frozenset(self._granted)

    @property
    def written(self) -> frozenset[str]:
        return frozenset(self._written)

    @property
    def hides(self) -> Callable[[str], bool] | None:
        """Says which files a command of the model's is not shown; None where no rule is about reading."""
        return None if self._gate.is_open else lambda path: bool(self.refusal(path))


INDEX_IGNORE_FILES = (*IGNORE_FILES, ".pawlignore")
"""Files whose patterns keep paths out of the index; .pawlignore says nothing about what a bench keeps."""
_MOST_FILES = 200_000


@dataclass(slots=True)
class WorkspaceFiles:
    """The files of a workspace for whoever only reads: no link, no secret, nothing of git's, nothing ignored."""

    tree: Tree
    guardrails: Guardrails
    global_ignore: Path | None = None
    listings: Listings = field(default_factory=Listings)

    def stamps(self) -> list[Stamp]:
        found: list[Stamp] = []
        ignore, others, named = self._ignore(), self.guardrails.others, replace(self.guardrails, others=None)

        def is_unread(path: str) -> bool:
            """Because of its name, whatever links lead to it."""
            return named.never(path) or named.is_secret(path) or bool(_NO_TEXT.search(path))

        pending = [""]
        while pending and len(found) < _MOST_FILES:
            folder = pending.pop()
            # What may not be looked into, or is gone since, has nothing in it.
            with suppress(OSError, PawlError):
                paths = _kept(self.listings.entries(self.tree, folder), folder, ignore, named, is_unread)
                hidden = others.hidden_among(folder, [path.rstrip("/") for path in paths]) if others else ()
                shown = [path for path in paths if path.rstrip("/") not in hidden] if hidden else paths
                pending += (path[:-1] for path in shown if path[-1] == "/")
                found += filter(None, map(self._stamp, (path for path in shown if path[-1] != "/")))
        return sorted(found)

    def _stamp(self, path: str) -> Stamp | None:
        """Of what is there by this name; only what is read has to be reached without links."""
        with suppress(OSError):
            status = os.stat(path, dir_fd=self.tree.fd, follow_symlinks=False)
            return Stamp(path, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None
        return None if len(path) < 1000 else self.stamp(path)  # too long a path for one call

    def stamp(self, path: str) -> Stamp | None:
        seen = self.tree.find(path)
        if seen is None or seen.kind is not NodeKind.FILE or self._is_hidden(path):
            return None
        if self._ignore().topmost(path, folder=False) is not None:
            return None
        return Stamp(path, seen.size, seen.modified_ns)

    def read(self, path: str, limit: int) -> tuple[bytes, Stamp]:
        if self._is_hidden(path):
            raise SecretRefused(f"{path!r} is not for reading", advice="work without its content")
        data, seen = self.tree.read_with(path, limit)
        return data, Stamp(path, seen.size, seen.modified_ns)

    def _is_hidden(self, path: str) -> bool:
        return self.guardrails.never(path) or self.guardrails.is_secret(path)

    def _ignore(self) -> Ignore:
        def read(path: str) -> bytes | None:
            with suppress(PawlError, OSError):
                return self.tree.read(path, LARGEST_IGNORE_FILE)
            return None

        return Ignore(read, global_file=self.global_ignore, names=INDEX_IGNORE_FILES)
