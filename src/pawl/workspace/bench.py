"""A bench: a copy-on-write view of the workspace on which commands run and tools edit, until it is discarded."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path

from pawl.core.change import BlobReader, BlobStore, ChangeSet, NodeKind
from pawl.core.errors import ConfigError, DiskFull, GitFailed, OverlayUnavailable, PathRefused, PawlError, UsageError
from pawl.core.execution import Completed, CopyView, Execution, OverlayView, Secrets, Stream, View
from pawl.core.lazy_dataclass import dataclass
from pawl.sandbox.cancel import CancelToken, raise_if_stopped
from pawl.sandbox.choice import ChosenSandbox
from pawl.sandbox.visibility import is_below
from pawl.settings.files import LARGEST_BLOB, Tree
from pawl.settings.guardrails import Guardrails, Judge
from pawl.workspace.bench_files import BenchFiles
from pawl.workspace.capture import Capture, CaptureRules, capture
from pawl.workspace.git import Git, opened
from pawl.workspace.ignore import LARGEST_IGNORE_FILE, Ignore
from pawl.workspace.masks import HiddenSearch, Listings, Names, harmless
from pawl.workspace.overlay import LayeredSurface
from pawl.workspace.paths import FOLDER, OwnTree, empty, held
from pawl.workspace.surface import LARGEST_COPY, CopiedSurface, Copier, Surface, apply

_LOCK = "lock"
_UNLOCKED_SECONDS = 3600
"""How long a folder without a lock is taken for one that is being made."""


class BenchFolder:
    """A private folder that is locked while its owner lives."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, place: Path, identity: str) -> BenchFolder:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(place)
        path = place / identity
        path.mkdir(mode=0o700)
        draft = path / f"{_LOCK}.new"
        lock = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # It gets its name while it is held, so that one that is free is a dead owner's.
        draft.rename(path / _LOCK)
        return cls(path, lock)

    def discard(self) -> None:
        """Removes the folder with everything in it, whatever a command did to it."""
        try:
            remove(self.path)
        finally:
            os.close(self._lock)


def _check_private(place: Path) -> None:
    """Whoever can write here can swap what a bench is made of."""
    status = place.lstat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022 or not stat.S_ISDIR(status.st_mode):
        raise ConfigError(
            f"{str(place)!r} is not a folder that only you can write", advice="remove it, or set another state folder"
        )


def new_identity() -> str:
    return f"b{secrets.token_hex(6)}"


def remove(path: Path) -> None:
    """Removes a bench's folder; its lock goes last."""
    path.chmod(0o700)
    for part in path.iterdir():
        if part.is_dir() and not part.is_symlink():
            part.chmod(0o700)
            with held(os.open(part, FOLDER)) as fd:
                empty(fd)
            part.rmdir()
    for part in sorted(path.iterdir(), key=lambda part: part.name == _LOCK):
        part.unlink()
    path.rmdir()


def benches(place: Path) -> list[Path]:
    """The folders of benches in a place; none where others can write: they could plant what is then removed."""
    try:
        _check_private(place)
        return [path for path in sorted(place.iterdir()) if path.is_dir() and not path.is_symlink()]
    except (OSError, ConfigError):
        return []


def sweep(place: Path) -> int:
    """Removes every bench whose owner is dead; returns how many there were."""
    count = 0
    for path in benches(place):
        if not _is_abandoned(path):
            continue
        # One that belongs to another user, such as root after sudo, does not keep the others from going.
        with suppress(OSError):
            remove(path)
            count += 1
    return count


def _is_abandoned(path: Path) -> bool:
    """Whether nobody holds the lock: the kernel frees it with its owner."""
    try:
        with held(os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)) as fd:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        with suppress(FileNotFoundError):
            return time.time() - path.stat().st_mtime > _UNLOCKED_SECONDS
        return False
    return True


class BenchKind(StrEnum):
    """How a bench starts; an overlay that cannot be mounted becomes a copy by itself."""

    OVERLAY = "overlay"
    COPY = "copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSettings:
    second_place: Path | None = None
    """Where to put the upper layer when the first place cannot hold one, such as a folder in memory."""
    global_ignore: Path | None = None
    """The caller's own git ignore file."""
    largest_file: int = LARGEST_BLOB
    """Larger files are held back when changed."""
    largest_copy: int = LARGEST_COPY
    ground: BenchKind = BenchKind.OVERLAY
    include_ignored: bool = False
    """Ignored files are captured too."""
    judge: Judge | None = None
    """Asks the permission rules about each captured change."""
    listings: Listings = field(default_factory=Listings)
    """The workspace's folders as last listed, so that a fresh bench need not list them again."""
    stop: CancelToken | None = None
    """Ends every command on the bench."""


@dataclass(frozen=True, slots=True)
class _Means:
    sandbox: ChosenSandbox
    blobs: BlobStore
    guardrails: Guardrails
    settings: BenchSettings


class Bench:
    """One bench. Edits and commands do not interleave; several benches can stand side by side."""

    def __init__(
        self, place: Path, folder: BenchFolder, surface: LayeredSurface | CopiedSurface, means: _Means
    ) -> None:
        self.id = folder.path.name
        self.notices: tuple[str, ...] = ()
        self._place = place
        self._folder = folder
        self._surface = surface
        self._names = Names(surface.workspace, means.guardrails, means.settings.listings)
        self.stop = means.settings.stop
        self._brought: set[str] = set()
        self._means = replace(means, guardrails=replace(means.guardrails, others=self._names))
        self._lock = threading.RLock()
        self._discarded = False
        self._attached = False
        self.files = BenchFiles(self._held, self._means.guardrails, self._ignore, means.settings.listings)

    @classmethod
    def create(
        cls,
        workspace: Path,
        place: Path,
        sandbox: ChosenSandbox,
        blobs: BlobStore,
        guardrails: Guardrails,
        settings: BenchSettings | None = None,
    ) -> Bench:
        """A new bench of the workspace; `place` is where its files are kept, outside of the workspace."""
        means = _Means(sandbox, blobs, guardrails, settings or BenchSettings())
        tree = Tree(os.path.realpath(workspace, strict=True))
        try:
            places = _outside(tree.root, place, means.settings.second_place)
            identity = new_identity()
            if means.settings.ground is BenchKind.OVERLAY:
                for candidate in places:
                    made = _layered(tree, candidate, identity)
                    if made is not None:
                        return cls(places[0], *made, means)
            folder, surface = _copied(tree, places[0], identity, means)
            return cls(places[0], folder, surface, means)
        except BaseException:
            tree.close()
            raise

    @classmethod
    def attached(
        cls, workspace: Path, folder: Path, sandbox: ChosenSandbox, blobs: BlobStore, guardrails: Guardrails
    ) -> Bench:
        """The bench of another process, which owns its folder; only one with a layer can be shared."""
        if not (folder / "upper").is_dir():
            raise OverlayUnavailable("this bench is a copy, which has one owner", advice="work on it directly")
        surface = LayeredSurface(Tree(os.path.realpath(workspace, strict=True)), folder)
        bench = cls(
            folder.parent, BenchFolder(folder, -1), surface, _Means(sandbox, blobs, guardrails, BenchSettings())
        )
        bench._attached = True
        return bench

    def close(self) -> None:
        """Lets go of a bench of another process."""
        with self._lock:
            self._discarded = True
            self._surface.close()
            self._surface.workspace.close()

    def renew(self) -> None:
        """Forgets what it remembers of its files, because another process was at work."""
        with self._held() as surface:
            surface.renew()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    @property
    def workspace(self) -> str:
        return self._surface.workspace.root

    @property
    def folder(self) -> Path:
        return self._folder.path

    @property
    def view(self) -> View:
        return self._surface.view

    def run(
        self,
        execution: Execution,
        on_output: Callable[[Stream, bytes], None] | None = None,
        cancel: CancelToken | None = None,
        hides: Callable[[str], bool] | None = None,
    ) -> Completed:
        """Runs a command on the bench. Where an overlay cannot be mounted the bench becomes a copy, and says so.

        A bench that is stopped raises `Cancelled`; `cancel` ends this command alone. Files that it `hides` are shown
        empty, as secrets are.
        """
        with self._held():
            known = len(self.notices)
            masks = self._names.masks()
            if masks.secrets and execution.secrets == Secrets.HIDDEN:
                masks = harmless(self._surface.workspace, masks, self._means.settings.listings, self._tracked)
            if hides is not None:
                masks = self._names.hiding(masks, hides)
            while True:
                try:
                    self._surface.cover(masks, secrets=execution.secrets != Secrets.SHOWN)
                    sandbox, stop = self._means.sandbox, cancel or self.stop
                    done = sandbox.run(self.view, execution, on_output=on_output, cancel=stop)
                    break
                except OverlayUnavailable as error:
                    self._fall_back(error)
                finally:
                    self._surface.renew()
            raise_if_stopped(self.stop)
            return replace(done, notices=(*done.notices, *self.notices[known:]))

    def capture(self) -> Capture:
        """Reads off what the bench changed, without the folders that were brought to it. It stays as it is."""
        with self._held():
            self._names.masks()
            while True:
                try:
                    found = capture(self._surface, self._rules())
                    return replace(found, changes=found.changes.without(self._brought & found.changes.paths))
                except OverlayUnavailable as error:
                    self._fall_back(error)

    def apply(self, changes: ChangeSet, blobs: BlobReader) -> None:
        """Puts a change set onto the bench; `Conflicted`, with nothing written, where it does not start from here."""
        with self._held() as surface:
            apply(surface, changes, blobs)

    def bring(self, source: Path, path: str) -> None:
        """Copies a folder of this machine to a path of the bench where nothing stands."""
        with self._held() as surface:
            surface.make_folder(path, 0o755)
            self._brought.add(path)
            shutil.copytree(source, self._own(path), symlinks=True, dirs_exist_ok=True)
            surface.renew()

    def hand_out(self, path: str, target: Path) -> None:
        """Copies a folder that was made on the bench to a folder of this machine that is not there yet."""
        with self._held():
            shutil.copytree(self._own(path), target, symlinks=True)

    def made_folders(self, name: str) -> list[str]:
        """Every folder of this name that was made on the bench and lies in no other such folder."""
        found = []
        with self._held() as surface:
            root = self._own("")
            for folder, folders, _ in os.walk(root):
                if name in folders:
                    found.append(os.path.relpath(os.path.join(folder, name), root))
                folders[:] = [one for one in folders if one not in (name, ".git")]
            return sorted(path for path in found if surface.workspace.find(path) is None)

    def _own(self, path: str) -> str:
        """Where a folder that was made on the bench lies on disk; refused where a link would lead elsewhere."""
        view = self.view
        root = os.path.realpath(view.upper if isinstance(view, OverlayView) else view.copy)
        place = os.path.normpath(os.path.join(root, path))
        if os.path.realpath(place) != place:
            raise PathRefused(f"{path!r} is a link on the bench", advice="name a folder")
        return place

    def discard(self) -> None:
        """Removes everything the bench has on disk. The workspace is not touched."""
        with self._lock:
            if self._discarded:
                return
            self._discarded = True
            self._surface.close()
            self._surface.workspace.close()
            self._folder.discard()

    @contextmanager
    def _held(self) -> Iterator[Surface]:
        with self._lock:
            if self._discarded:
                raise UsageError(f"the bench {self.id!r} was discarded", advice="make a new one")
            try:
                yield self._surface
            finally:
                self._surface.restore()

    def _ignore(self, surface: Surface) -> Ignore:
        def read(path: str) -> bytes | None:
            with suppress(PawlError, OSError):
                return surface.read_with(path, LARGEST_IGNORE_FILE)[0]
            return None

        return Ignore(read, global_file=self._means.settings.global_ignore)

    def _rules(self) -> CaptureRules:
        means = self._means
        return CaptureRules(
            blobs=means.blobs,
            guardrails=means.guardrails,
            ignore=None if means.settings.include_ignored else self._ignore(self._surface),
            tracked=self._tracked,
            largest=means.settings.largest_file,
            judge=means.settings.judge,
        )

    def _tracked(self, paths: Sequence[str]) -> frozenset[str]:
        """Asked on a view of its own, so that nothing git could be talked into shows up on this bench."""
        workspace = self._surface.workspace
        if workspace.find(".git") is None:
            return frozenset()
        if isinstance(self._surface, CopiedSurface):
            with tempfile.TemporaryDirectory(dir=self.folder) as place:
                _copy_index(workspace, Path(place))
                return self._tracked_in(CopyView(workspace=workspace.root, copy=place), paths)
        made = _layered(workspace, self.folder.parent, new_identity())
        if made is None:
            return frozenset()
        folder, surface = made
        try:
            return self._tracked_in(surface.view, paths)
        finally:
            surface.close()
            folder.discard()

    def _tracked_in(self, view: View, paths: Sequence[str]) -> frozenset[str]:
        """None where git gives no answer."""
        try:
            with opened(self._surface.workspace) as repository:
                run = partial(self._means.sandbox.run, view)
                return Git(run=run, repository=repository).tracked(paths)
        except (GitFailed, PathRefused):
            return frozenset()

    def _fall_back(self, error: OverlayUnavailable) -> None:
        """Becomes a copy, with everything that is on the bench."""
        old, old_folder = self._surface, self._folder
        if isinstance(old, CopiedSurface) or self._attached:
            raise error
        identity = self.id if old_folder.path.parent != self._place else f"{self.id}c"
        folder, surface = _copied(old.workspace, self._place, identity, self._means)
        try:
            surface.adopt(old.tree, old.differences())
        except BaseException:
            surface.close()
            folder.discard()
            raise
        self.notices += (f"this bench is a full copy of the workspace, because {error.message}",)
        self._folder, self._surface = folder, surface
        old.close()
        old_folder.discard()


def _outside(workspace: str, *places: Path | None) -> list[Path]:
    usable = [place for place in places if place is not None and not is_below(os.path.realpath(place), workspace)]
    if not usable:
        raise ConfigError(
            f"benches of {workspace!r} cannot be kept inside of it", advice="choose a state folder somewhere else"
        )
    return usable


def _copy_index(workspace: Tree, place: Path) -> None:
    """The index of the workspace's repository, for git to read: commands may have written the one on a bench."""
    (place / ".git/objects").mkdir(parents=True)
    target = OwnTree(place)
    with target, suppress(NotADirectoryError):
        copier = Copier(workspace, target, LARGEST_COPY)
        for name, seen in workspace.entries(".git").items():
            if seen.kind is NodeKind.FILE and (name == "index" or name.startswith("sharedindex.")):
                copier.copy_over(f".git/{name}", seen)


def _layered(tree: Tree, place: Path, identity: str) -> tuple[BenchFolder, LayeredSurface] | None:
    """None where the place is not private or its file system cannot hold an upper layer."""
    try:
        folder = BenchFolder.create(place, identity)
    except (OSError, ConfigError):
        return None
    try:
        return folder, LayeredSurface.create(tree, folder.path)
    except BaseException as error:
        folder.discard()
        if isinstance(error, OSError):
            return None
        raise


def _copied(tree: Tree, place: Path, identity: str, means: _Means) -> tuple[BenchFolder, CopiedSurface]:
    folder = BenchFolder.create(place, identity)
    try:
        hides = HiddenSearch(tree, replace(means.guardrails, others=None), means.settings.listings).hides()
        return folder, CopiedSurface.create(tree, folder.path, hides, limit=means.settings.largest_copy)
    except BaseException as error:
        folder.discard()
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(
                f"no room in {str(place)!r} for a copy of {tree.root!r}", advice="free some space and try again"
            ) from error
        raise
