"""Finding what of a workspace no command is shown: secrets, special files, and folders that cannot be searched.

The whole tree is looked through before a command starts. Folders that have not changed since the last look are not
listed again, which one `stat` tells; the search has no limit that a workspace could use up.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import TypeVar

from pawl.core.change import NodeKind, parents
from pawl.core.errors import PawlError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import hidden
from pawl.core.secret_names import is_mixed
from pawl.sandbox.visibility import real_path
from pawl.settings.files import Seen, Tree, kind_of
from pawl.settings.guardrails import Guardrails
from pawl.workspace.paths import held, parent

DEEPEST = 500
"""A folder with more folders above it than this is hidden: nothing but a fault or an attack makes one."""
PACKAGES = frozenset({"node_modules", ".venv", "venv", "site-packages", ".tox", ".nox"})
"""Folders of installed packages. They bring lists of certificates, without which no program inside gets far."""
_LARGEST_LIST = 4 << 20
_SOURCES = (
    ".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp",
    ".java", ".kt", ".rb", ".php", ".swift", ".cs", ".scala",
)  # fmt: skip
_PRIVATE = b"PRIVATE KEY"
_SETTLED_NS = 2_000_000_000
"""How old the last change of a folder must be to be told from a later one by its time, on any file system."""
_FRESH_SECONDS, _COST = 1.0, 10
"""How long a look counts for tools: this long, or this many times what it took."""
_MOST_NAMES = 300
_TOLD_APART = 5
"""No pattern names more folders before its stars, so that a link to its own folder has no names without end."""


@dataclass(frozen=True, slots=True)
class Masks:
    """The paths of a workspace that no command is shown."""

    secrets: frozenset[str] = frozenset()
    """Files, shown empty."""
    special: frozenset[str] = frozenset()
    """Devices, FIFOs and sockets: not shown at all."""
    closed: frozenset[str] = frozenset()
    """Folders that could not be searched, shown empty: a command may be able to open what Pawl cannot."""
    certificates: frozenset[str] = frozenset()
    """Files that are named like secrets and shown all the same."""


@dataclass(frozen=True, slots=True)
class _Listing:
    state: tuple[int, int, int, int]
    at_ns: int
    folders: tuple[str, ...]
    secrets: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    """Each with what it points to; among packages and git's own only those that are named like secrets."""
    special: tuple[str, ...]
    inodes: array[int]


@dataclass(slots=True)
class Entries:
    """The names in a folder with what each is."""

    kinds: Mapping[str, NodeKind | None]
    plain: bool = False
    """A look at all names has told that none is secret or out of reach."""
    kept: dict[tuple[str, ...], tuple[object, list[str]]] = field(default_factory=dict)
    """By the names of ignore files: the rules at a walk, and what it found by them."""


T = TypeVar("T")
_Remembered = dict[str, tuple[tuple[int, int, int, int], int, T]]
"""By path: how it looked, when that was, and what was found there."""


@dataclass(slots=True)
class Listings:
    """The folders of one workspace as they were last listed, for every search of it with the same guardrails."""

    known: Mapping[str, _Listing] = field(default_factory=dict)
    """Replaced as a whole, never changed: several searches may look at once."""
    harmless: tuple[object, frozenset[str]] = (None, frozenset())
    """The files that `harmless` found last, with what they were found by."""
    entries_of: _Remembered[Entries] = field(default_factory=dict)
    _digests: _Remembered[str] = field(default_factory=dict)

    def entries(self, tree: Tree, folder: str) -> Entries:
        """What is in a folder of the workspace now; it is listed again only where it has changed."""
        return _remembered(self.entries_of, tree, folder, lambda: Entries(tree.kinds(folder)))

    def digest(self, tree: Tree, path: str, read: Callable[[], bytes]) -> str:
        """The hash of what a file of the workspace holds; it is read again only where it was touched."""
        return _remembered(self._digests, tree, path, lambda: hashlib.sha256(read()).hexdigest())


@dataclass(slots=True)
class HiddenSearch:
    """Looks through one workspace, again and again."""

    tree: Tree
    guardrails: Guardrails
    shared: Listings = field(default_factory=Listings)
    _listings: Mapping[str, _Listing] = field(default_factory=dict)
    """Those of this look."""
    _links: dict[str, str] = field(default_factory=dict)
    _targets: dict[str, str] = field(default_factory=dict)
    """The place inside the workspace that each link leads to, all links followed."""
    _leading: dict[str, list[str]] = field(default_factory=dict)
    """The links that lead to a place."""
    _ends: frozenset[str] = frozenset()
    """The links and the places: what lies below none of them has one name."""

    def hides(self) -> Callable[[str], bool]:
        """Whether a file is masked, for who copies the workspace: also one that is put there meanwhile."""
        masks = self.masks()

        def hides(path: str) -> bool:
            return path in masks.secrets or (path not in masks.certificates and self.guardrails.is_secret(path))

        return hides

    def masks(self) -> Masks:
        known = self.shared.known
        found: dict[str, _Listing] = {}
        closed: set[str] = set()
        pending = [("", 0)]
        while pending:
            folder, depth = pending.pop()
            listing = self._listed(folder, known.get(folder)) if depth <= DEEPEST else None
            if listing is None:
                closed.add(folder)
                continue
            found[folder] = listing
            pending.extend((_join(folder, name), depth + 1) for name in listing.folders)
        self._listings = self.shared.known = found
        self._resolve({_join(folder, name): to for folder, one in found.items() for name, to in one.links})
        named = {_join(folder, name) for folder, listing in found.items() for name in listing.secrets}
        named.update(self._linked())
        certificates = frozenset(path for path in named if self._is_certificate(path))
        secrets = named - certificates
        secrets.update(self._same_files(secrets))
        special = frozenset(_join(folder, name) for folder, listing in found.items() for name in listing.special)
        return Masks(frozenset(secrets), special, frozenset(closed), certificates)

    def hiding(self, masks: Masks, also: Callable[[str], bool]) -> Masks:
        """These masks with all names of the files that `also` says, as of the last look."""
        found = set(masks.secrets)
        for folder, listing in self._listings.items():
            links = {name for name, _ in listing.links}
            with suppress(OSError, PawlError):
                for name in self.tree.names(folder) if not self.guardrails.never(folder) else ():
                    path = _join(folder, name)
                    if path not in self._listings and name not in links and also(path):
                        found.add(path)
        return replace(masks, secrets=frozenset({*found, *self._same_files(found)}))

    def _listed(self, folder: str, known: _Listing | None) -> _Listing | None:
        with suppress(OSError):
            if known is not None and _holds(known.state, known.at_ns, os.lstat(f"{self.tree.root}/{folder}")):
                return known
        with suppress(OSError, PawlError), held(self.tree.open_folder(folder)) as fd:
            return self._list(fd, folder)
        return None

    def _list(self, fd: int, folder: str) -> _Listing:
        at = time.time_ns()
        status = os.fstat(fd)
        inodes, kinds = array("Q"), dict[str, NodeKind | None]()
        gits = self.guardrails.never(folder)
        with os.scandir(fd) as entries:
            for entry in entries:
                kinds[entry.name] = kind = kind_of(entry)
                if kind is NodeKind.FILE:
                    inodes.append(entry.inode())
        folders, names, links, special = (
            [name for name, kind in kinds.items() if kind is wanted]
            for wanted in (NodeKind.DIRECTORY, NodeKind.FILE, NodeKind.LINK, None)
        )
        if gits:  # as many as git likes, and all its own
            folders = [name for name in folders if name != "objects"]
        packages, plain = gits or not PACKAGES.isdisjoint(folder.split("/")), self.guardrails.are_plain(folder, kinds)
        if not packages:  # where nobody walks
            self.shared.entries_of[folder] = _state(status), at, Entries(kinds, plain)
        secrets = [] if plain else self.guardrails.secrets_among(folder, names)
        if links and packages:
            links = self.guardrails.secrets_among(folder, links)
        targets = tuple((name, os.readlink(name, dir_fd=fd)) for name in links)
        return _Listing(_state(status), at, tuple(folders), tuple(secrets), targets, tuple(special), inodes)

    def _is_certificate(self, path: str) -> bool:
        """Whether a package's file is named like a key and holds none."""
        if not path.lower().endswith(".pem") or PACKAGES.isdisjoint(path.split("/")):
            return False
        with suppress(OSError, PawlError):
            return _PRIVATE not in self.tree.read(path, _LARGEST_LIST)
        return False

    def other_names(self, path: str) -> Iterator[str]:
        """The names that lead to the same place through links, as far as a pattern could tell them apart."""
        seen: set[tuple[str, ...]] = set()
        pending = deque(() if self.have_one_name(parent(path), (path,)) else [(path, "", frozenset[str]())])
        while pending:
            if len(seen) > _MOST_NAMES:
                yield f".git/{path}"  # too many to be told, so that nothing but the user's own yes changes it
                return
            real, tail, used = pending.popleft()
            for top in (real, *parents(real), ""):
                rest = real[len(top) :].strip("/")
                rest = _join(rest, tail) if tail else rest
                for link in (*self._leading.get(top, ()), *([self._targets[top]] if top in self._targets else ())):
                    key = (link, *rest.split("/")[:_TOLD_APART])
                    # Twice through a link to a folder above it tells no pattern anything that once does not.
                    if key not in seen and link not in used:
                        seen.add(key)
                        pending.append((link, rest, used | {link}))
                        yield _join(link, rest) if rest else link or "."

    def have_one_name(self, folder: str, paths: Iterable[str]) -> bool:
        """Whether no link leads to these paths of a folder, or to one above them."""
        return self._ends.isdisjoint((folder, *parents(folder), "")) and self._ends.isdisjoint(paths)

    def _resolve(self, links: dict[str, str]) -> None:
        if links == self._links:
            return
        self._links, self._targets, self._leading = links, {}, {}
        root = self.tree.root
        for link in links:
            place = real_path(os.path.join(root, link))
            target = place[len(root) + 1 :]
            if (place == root or place.startswith(f"{root}/")) and target != link:  # the same: it leads nowhere
                self._targets[link] = target
                self._leading.setdefault(target, []).append(link)
        self._ends = frozenset((*self._targets, *self._leading))

    def _linked(self) -> Iterator[str]:
        """The files of the workspace that links with the name of a secret, or of a folder of secrets, lead to.

        Source code is no file of keys, whatever a link to it is called: it is shown as it is without the link.
        """
        for target, links in self._leading.items():
            for name in dict.fromkeys((*links, *self.other_names(target))):
                if target in self._listings and (
                    self.guardrails.is_secret(name) or self.guardrails.leads_to_secrets(name)
                ):
                    yield from self._below(target, name)
                elif (
                    target
                    and target not in self._listings
                    and self.guardrails.is_secret(name)
                    and not target.lower().endswith(_SOURCES)
                ):
                    yield target

    def _below(self, top: str, link: str) -> Iterator[str]:
        """The files below a folder that are secret by the name of a link to it, such as `.ssh`."""
        for folder in [one for one in self._listings if one == top or one.startswith(f"{top}/")]:
            with suppress(OSError, PawlError):
                names = self.tree.names(folder)
                for name in self.guardrails.secrets_among(link + folder[len(top) :], names):
                    yield _join(folder, name)

    def _same_files(self, secrets: set[str]) -> Iterator[str]:
        """Further names of the same files."""
        wanted: set[tuple[int, int]] = set()
        for path in frozenset(secrets):
            seen = self.tree.find(path)
            if seen is not None and seen.links > 1:
                wanted.add((seen.device, seen.inode))
        if not wanted:
            return
        inodes = {inode for _, inode in wanted}
        for folder, listing in self._listings.items():
            if not inodes.isdisjoint(listing.inodes):
                with suppress(OSError, PawlError):
                    for name, seen in self.tree.entries(folder).items():
                        if (seen.device, seen.inode) in wanted:
                            yield _join(folder, name)


class Names:
    """Fits `guardrails.OtherNames`, for one workspace; looks again when the last look is a while ago."""

    def __init__(self, tree: Tree, guardrails: Guardrails, shared: Listings | None = None) -> None:
        self._search = HiddenSearch(tree, replace(guardrails, others=None), shared or Listings())
        self._lock = threading.Lock()
        self._masks = Masks()
        self._until = 0.0

    def masks(self) -> Masks:
        """As the workspace stands now."""
        with self._lock:
            return self._look()

    def hiding(self, masks: Masks, also: Callable[[str], bool]) -> Masks:
        """These masks with the files that `also` hides, which are no secrets beyond one command."""
        with self._lock:
            return self._search.hiding(masks, also)

    def hides(self, path: str) -> bool:
        with self._lock:
            if path in self._fresh().secrets:
                return True
            if not any(map(self._search.guardrails.is_secret, self._search.other_names(path))):
                return False
        with suppress(OSError, PawlError):
            return self._search.tree.find(path) is None
        return True

    def hidden_among(self, folder: str, paths: Sequence[str]) -> Collection[str]:
        with self._lock:
            secrets = self._fresh().secrets
            if self._search.have_one_name(folder, paths):
                return secrets.intersection(paths)
        return [path for path in paths if self.hides(path)]

    def of(self, path: str) -> tuple[str, ...]:
        with self._lock:
            self._fresh()
            return tuple(self._search.other_names(path))

    def _fresh(self) -> Masks:
        return self._masks if time.monotonic() < self._until else self._look()

    def _look(self) -> Masks:
        started = time.monotonic()
        self._masks = self._search.masks()
        ended = time.monotonic()
        self._until = ended + max(_FRESH_SECONDS, _COST * (ended - started))
        return self._masks


_MOST_JUDGED, _LARGEST_JUDGED = 200, 64 << 10
_VALUES = re.compile(r"[\s=:,;\"'{}\[\]()<>]+")
_SHORTEST_KEY = 6


def harmless(tree: Tree, masks: Masks, shared: Listings, tracked: Callable[[Sequence[str]], frozenset[str]]) -> Masks:
    """The masks without files that git tracks and in which no value looks like a secret, such as a test's `.env`.

    For commands only: what is named like a secret is never read for a model.
    """
    looks = [(path, _found(tree, path)) for path in sorted(masks.secrets)[:_MOST_JUDGED]]
    key = (_found(tree, ".git/index"), *looks)
    if shared.harmless[0] != key:
        plain = [path for path, seen in looks if seen is not None and _holds_no_key(tree, path)]
        shared.harmless = key, tracked(plain) & frozenset(plain) if plain else frozenset()
    return replace(masks, secrets=masks.secrets - shared.harmless[1]) if shared.harmless[1] else masks


def _found(tree: Tree, path: str) -> Seen | None:
    with suppress(OSError, PawlError):
        return tree.find(path)
    return None


def _holds_no_key(tree: Tree, path: str) -> bool:
    try:
        text = tree.read(path, _LARGEST_JUDGED).decode("utf-8")
    except (OSError, PawlError, UnicodeDecodeError):
        return False
    values = (word for word in _VALUES.split(text) if len(word) >= _SHORTEST_KEY)
    return not {"\0", "@"} & set(text) and hidden(text) == text and not any(map(is_mixed, values))


def hidden_note(tree: Tree, guardrails: Guardrails, option: str = "") -> str:
    """Says which files in the root no command is shown, and the option that shows them; empty where there are none."""
    try:
        names = sorted(guardrails.secrets_among("", tree.names("")))
    except (OSError, PawlError):
        return ""
    if not names:
        return ""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    listed = ", ".join(map(repr, names[:3])) + more
    shows = f"; {option} shows {'it' if len(names) == 1 else 'them'}" if option else ""
    return f"{listed} {'is' if len(names) == 1 else 'are'} hidden from commands{shows}"


def _remembered(kept: _Remembered[T], tree: Tree, path: str, look: Callable[[], T]) -> T:
    """What was found at the path, looked for again where it may have changed."""
    known, at = kept.get(path), time.time_ns()
    try:
        status = os.lstat(f"{tree.root}/{path}")
    except OSError:  # gone, or too long a path for one call
        return look()
    if known is None or not _holds(*known[:2], status):
        known = kept[path] = _state(status), at, look()
    return known[2]


def _holds(state: tuple[int, int, int, int], at_ns: int, status: os.stat_result) -> bool:
    """Whether a path is as it was. A change right before it was looked at may have had one right after that."""
    return state == _state(status) and status.st_ctime_ns < at_ns - _SETTLED_NS


def _state(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
