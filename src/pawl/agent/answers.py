"""Whether an answer that was given before still holds: what it was asked, and what it rests on.

An answer rests on everything that was read, listed or looked for on the way to it. Where that is much, it rests on all
contents of the folders that were searched: any change below them then counts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from pawl.core.errors import PawlError, TimedOut
from pawl.core.memory import Dependency, RestKind
from pawl.workspace.bench_files import Files

SIMILAR = 0.7
"""The part of the words that two queries share, from which on they ask the same."""
MOST_RESTS = 256
"""Files that are named one by one."""
MOST_FILES = 20_000
"""Above so many it takes too long to look whether an answer still holds."""

_UNREADABLE = "unreadable"
_WORD = re.compile(r"\w+")


def normalised(query: str) -> str:
    """The same question however it is spaced and ended; its words stay, because names of code differ by their case."""
    if "\n" in query.strip():
        return query.strip()
    return " ".join(query.split()).rstrip("?!. ") or query.strip()


def overlap(one: str, other: str) -> float:
    """The part of the words that both have, of those of the longer one."""
    words, others = (set(_WORD.findall(text.casefold())) for text in (one, other))
    return len(words & others) / max(len(words), len(others), 1)


def are_similar(one: str, other: str) -> bool:
    return overlap(one, other) >= SIMILAR


class WatchedFiles:
    """Fits `Files`: the same files, and a record of what was seen of them."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._rests: dict[tuple[RestKind, str], str] = {}
        self._walked: dict[str, tuple[str, ...]] = {}
        self._unsteady = False
        """Something was written, or was otherwise at a second look."""

    def read(self, path: str) -> bytes:
        try:
            data = self._files.read(path)
        except (PawlError, OSError) as error:
            self._note(RestKind.FILE, path, "" if isinstance(error, TimedOut) else _UNREADABLE)
            raise
        self._note(RestKind.FILE, path, _digest(data))
        return data

    def exists(self, path: str) -> bool:
        found = self._files.exists(path)
        self._note(RestKind.PRESENCE, path, str(found))
        return found

    def walk(self, under: str = "") -> Iterable[str]:
        found: list[str] = []
        try:
            for path in self._files.walk(under):
                found.append(path)
                # A list that is too long to look after is not kept.
                self._unsteady = self._unsteady or len(found) > MOST_FILES
                if self._unsteady:
                    found = []
                yield path
        except (PawlError, OSError) as error:
            self._note(RestKind.LISTING, under, "" if isinstance(error, TimedOut) else _UNREADABLE)
            raise
        except GeneratorExit:
            self._unsteady = True
            raise
        self._note(RestKind.LISTING, under, _listing(found))
        self._walked[under] = tuple(found)

    def write(self, path: str, data: bytes) -> None:
        self._unsteady = True
        self._files.write(path, data)

    def delete(self, path: str) -> None:
        self._unsteady = True
        self._files.delete(path)

    @property
    def seen(self) -> dict[str, str]:
        """The digest of each file whose content was read."""
        files = (item for item in self._rests.items() if item[0][0] is RestKind.FILE)
        return {path: digest for (_, path), digest in files if digest != _UNREADABLE}

    def rests(self) -> tuple[Dependency, ...]:
        """What an answer from these files rests on; nothing when that cannot be told, or is too much to look after."""
        if self._unsteady:
            return ()
        found = tuple(sorted(Dependency(kind, path, digest) for (kind, path), digest in self._rests.items()))
        if len(found) <= MOST_RESTS:
            return found
        covered = {path for paths in self._walked.values() for path in paths}
        if len(covered) > MOST_FILES:
            return ()
        # Where a folder was walked, all below it counts, so that neither its files nor its list are named.
        tops = _topmost(self._walked)
        single = [rest for rest in found if rest.kind is not RestKind.LISTING and rest.path not in covered]
        failed = [rest for rest in found if rest.kind is RestKind.LISTING and rest.path not in self._walked]
        try:
            trees = [Dependency(RestKind.TREE, top, self._tree(top)) for top in tops]
        except TimedOut:
            return ()
        return tuple(sorted([*trees, *single, *failed])) if len(single) + len(failed) <= MOST_RESTS else ()

    def _tree(self, top: str) -> str:
        seen = {path: self._rests.get((RestKind.FILE, path)) for path in self._walked[top]}
        return _tree((path, digest or _content(self._files, path)) for path, digest in seen.items())

    def _note(self, kind: RestKind, path: str, digest: str) -> None:
        if len(self._rests) >= MOST_FILES:
            self._unsteady = True
            return
        known = self._rests.setdefault((kind, path), digest)
        if known != digest or not digest:
            self._unsteady = True


def still_holds(files: Files, rests: Iterable[Dependency]) -> bool:
    """Whether everything stands as it stood; False when that cannot be found out in time."""
    try:
        return all(_standing(files, rest) == rest.digest for rest in rests)
    except TimedOut:
        return False


def _standing(files: Files, rest: Dependency) -> str:
    match rest.kind:
        case RestKind.FILE:
            return _content(files, rest.path)
        case RestKind.PRESENCE:
            return str(files.exists(rest.path))
    try:
        found = tuple(files.walk(rest.path))
    except TimedOut:
        raise
    except (PawlError, OSError):
        return _UNREADABLE
    if rest.kind is RestKind.LISTING:
        return _listing(found)
    return _tree((path, _content(files, path)) for path in found)


def _content(files: Files, path: str) -> str:
    try:
        return _digest(files.read(path))
    except TimedOut:
        raise
    except (PawlError, OSError):
        return _UNREADABLE


def _topmost(folders: Iterable[str]) -> list[str]:
    """Those that are not below another of them."""
    tops: list[str] = []
    for folder in sorted(folders):
        if not any(not top or folder == top or folder.startswith(f"{top}/") for top in tops):
            tops.append(folder)
    return tops


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _listing(paths: Iterable[str]) -> str:
    return _digest("\0".join(paths).encode("utf-8", "surrogateescape"))


def _tree(contents: Iterable[tuple[str, str]]) -> str:
    return _listing(part for pair in contents for part in pair)
