"""From a patch that was read to a change set of a tree: exactly, or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from itertools import islice

from pawl.code.editor import BenchEditor
from pawl.code.patch_reader import LINK_MODE, FileAction, FilePatch, PatchHunk, bad, read_patch
from pawl.core.change import BlobStore, Change, ChangeSet, Node, NodeKind, is_directory, parents
from pawl.core.errors import Conflicted, ProtectedRefused, SecretRefused, TooLarge
from pawl.core.lazy_dataclass import dataclass
from pawl.core.merge import difference
from pawl.core.patch import content, git_object_name, summary
from pawl.core.text import split_lines
from pawl.settings.guardrails import Touched
from pawl.workspace.benches import open_bench
from pawl.workspace.gate import LinkJudge, in_repositories, refuse_denied, refuse_links
from pawl.workspace.paths import clean
from pawl.workspace.project import Project

_SHOWN_LINES = 3
_SHOWN_PLACES = 5
_SHOWN_BYTES = 80
_COMMON = 64
"""A line that occurs more often than this says nothing about where a hunk belongs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedHunk:
    """A part of a patch that does not fit the tree, with the lines that come closest to what it expects."""

    path: str
    line: int
    """Of the patch, counted from 1."""
    problem: str
    closest: tuple[tuple[int, bytes], ...] = ()
    """Lines of the file with their numbers, counted from 1."""

    def __str__(self) -> str:
        nearest = f"; line {self.closest[0][0]} is {_shown(self.closest[0][1])}" if self.closest else ""
        return f"{self.path!r} (line {self.line} of the patch): {self.problem}{nearest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    data: bytes
    notices: tuple[str, ...] = ()


def already_there(patch: FilePatch, source: bytes) -> RejectedHunk:
    """A file that the patch would create, with the first lines that are not as the patch has them."""
    lines = split_lines(source)
    wanted = [line for hunk in patch.hunks for line in hunk.new]
    same = next((at for at, (one, two) in enumerate(zip(lines, wanted, strict=False)) if one != two), None)
    at = same if same is not None else min(len(lines), len(wanted))
    problem = "it already exists with this content" if lines == wanted else "it already exists"
    return RejectedHunk(path=patch.new_path, line=patch.line, problem=problem, closest=_numbered(lines, at))


def left_over(patch: FilePatch, left: bytes) -> RejectedHunk:
    """A file that the patch would delete, which holds more than the patch knows of."""
    lines = split_lines(left)
    problem = f"it holds {len(lines)} lines that the patch does not delete"
    numbers = _numbered(lines, 0) if not patch.hunks else ()
    return RejectedHunk(path=patch.new_path, line=patch.line, problem=problem, closest=numbers)


def fitted(patch: FilePatch, source: bytes, *, is_proven: bool) -> Fitted | RejectedHunk:
    """The text after all hunks of a patch. `is_proven` says that the text is known to be the one it was made from."""
    lines = split_lines(source)
    result: list[bytes] = []
    notices: list[str] = []
    at = shift = 0
    for number, hunk in enumerate(patch.hunks, 1):
        place = _Placing(patch.new_path, lines, hunk, at).found(hunk.start + shift, is_proven=is_proven)
        if isinstance(place, RejectedHunk):
            return place
        if place - hunk.start != shift:
            shift = place - hunk.start
            notices.append(f"{patch.new_path!r}: hunk {number} was found at line {place + 1}, {_moved(shift)}")
        result += lines[at:place]
        result += hunk.new
        at = place + len(hunk.old)
    result += lines[at:]
    if any(not line.endswith(b"\n") for line in result[:-1]):
        problem = "a line without a newline would no longer be the last one"
        return RejectedHunk(path=patch.new_path, line=patch.hunks[-1].line, problem=problem)
    return Fitted(data=b"".join(result), notices=tuple(notices))


def _moved(shift: int) -> str:
    if not shift:
        return "where the patch says"
    return (
        f"{abs(shift)} {'line' if abs(shift) == 1 else 'lines'} {'below' if shift > 0 else 'above'} what the patch says"
    )


@dataclass(frozen=True, slots=True)
class _Placing:
    path: str
    lines: Sequence[bytes]
    hunk: PatchHunk
    earliest: int
    """Where the hunk before it ends."""

    def found(self, expected: int, *, is_proven: bool) -> int | RejectedHunk:
        old = self.hunk.old
        if not old:
            return self._without_context(expected, is_proven=is_proven)
        if self._fits(expected, old):
            return expected
        last = len(self.lines) - len(old)
        candidates = (at for at in range(self.earliest, last + 1) if self.lines[at] == old[0])
        places = list(islice((at for at in candidates if self._fits(at, old)), _SHOWN_PLACES))
        if len(places) == 1:
            return places[0]
        if places:
            numbers = ", ".join(str(at + 1) for at in places)
            return self._misfit(f"the hunk fits in several places: lines {numbers}")
        return self._nowhere(expected, old)

    def _fits(self, at: int, old: tuple[bytes, ...]) -> bool:
        return at >= self.earliest and tuple(self.lines[at : at + len(old)]) == old

    def _without_context(self, expected: int, *, is_proven: bool) -> int | RejectedHunk:
        """Lines are only added, and nothing around them is shown: the line number must be known to be right."""
        if not self.lines and not expected:
            return 0
        if is_proven and self.earliest <= expected <= len(self.lines):
            return expected
        return self._misfit("the hunk shows no line of the file to place it by")

    def _nowhere(self, expected: int, old: tuple[bytes, ...]) -> RejectedHunk:
        best = self._closest(expected, old)
        at = next((at for at, line in enumerate(old) if self.lines[best + at : best + at + 1] != [line]), 0)
        found = self.lines[best + at] if best + at < len(self.lines) else b""
        ends_differ = found and found.rstrip(b"\r\n") == old[at].rstrip(b"\r\n")
        reason = ", which differs only in its line end" if ends_differ else ""
        problem = f"the hunk expects {_shown(old[at])} at line {best + at + 1}{reason}"
        return self._misfit(problem, _numbered(self.lines, best + at))

    def _closest(self, expected: int, old: tuple[bytes, ...]) -> int:
        """Where most of the hunk's lines would be right; the nearest such place."""
        places: dict[bytes, list[int]] = {line: [] for line in old}
        for at, line in enumerate(self.lines):
            if line in places:
                places[line].append(at)
        votes = Counter(
            place - at for at, line in enumerate(old) if len(places[line]) <= _COMMON for place in places[line]
        )
        possible = [place for place in votes if place >= 0]
        limit = max(0, len(self.lines) - 1)
        return max(possible, key=lambda place: (votes[place], -abs(place - expected)), default=min(expected, limit))

    def _misfit(self, problem: str, closest: tuple[tuple[int, bytes], ...] = ()) -> RejectedHunk:
        return RejectedHunk(path=self.path, line=self.hunk.line, problem=problem, closest=closest)


def _numbered(lines: Sequence[bytes], start: int) -> tuple[tuple[int, bytes], ...]:
    return tuple((at + 1, lines[at]) for at in range(start, min(start + _SHOWN_LINES, len(lines))))


def _shown(line: bytes) -> str:
    text = line.rstrip(b"\r\n").decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= _SHOWN_BYTES else f"{text[:_SHOWN_BYTES]}…")


Tree = Callable[[str], Node | None]
"""The node at a path; directories are nodes too."""

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    changes: ChangeSet
    notices: tuple[str, ...] = ()
    """Remarks, such as a hunk that was found on other lines than the patch says."""


def resolve(patches: Sequence[FilePatch], tree: Tree, blobs: BlobStore) -> Resolved:
    """Resolve a patch against this tree, with the directories that new files need.

    Raises `Conflicted` with every `Misfit` when any part of it does not fit; nothing is resolved by guessing. A
    directory whose files the patch deletes can become a file; whether it holds others is seen when it is promoted.
    """
    resolving = _Resolving(tree, blobs)
    with blobs.batch():
        resolving.add(patches)
    misfits = tuple(resolving.misfits)
    if misfits:
        shown = "; ".join(str(misfit) for misfit in misfits[:_SHOWN])
        more = f"; and {len(misfits) - _SHOWN} more" if len(misfits) > _SHOWN else ""
        raise Conflicted(
            f"the patch does not fit: {shown}{more}", misfits, advice="make it again from the files as they are now"
        )
    return Resolved(changes=difference(resolving.original, resolving.state), notices=tuple(resolving.notices))


class _NoFit(Exception):
    def __init__(self, misfit: RejectedHunk) -> None:
        super().__init__()
        self.misfit = misfit


@dataclass(slots=True)
class _Resolving:
    tree: Tree
    blobs: BlobStore
    original: dict[str, Node | None] = field(default_factory=dict)
    state: dict[str, Node | None] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    misfits: list[RejectedHunk] = field(default_factory=list)

    def add(self, patches: Sequence[FilePatch]) -> None:
        """Every file starts from the tree before the patch, so that two files can trade their names."""
        written: dict[str, Node | None] = {}
        made: list[FilePatch] = []
        for patch in patches:
            try:
                self._add(patch, written, made)
            except _NoFit as error:
                self.misfits.append(error.misfit)
        moved = {patch.old_path for patch in patches if patch.action is FileAction.RENAME}
        freed = moved | {patch.new_path for patch in patches if patch.action is FileAction.DELETE}
        for path in moved:
            written.setdefault(path, None)
        for patch in made:
            self._make_room(patch, freed, written)
            self._add_parents(patch, written)
        self.state.update(written)

    def _add(self, patch: FilePatch, written: dict[str, Node | None], made: list[FilePatch]) -> None:
        patch = self._located(patch)
        if patch.action is FileAction.CREATE:
            made.append(patch)
            written[patch.new_path] = self._created(patch)
        elif patch.action is FileAction.DELETE:
            self._check_deleted(patch)
            written[patch.new_path] = None
        else:
            if patch.action is not FileAction.MODIFY:
                made.append(patch)
            written[patch.new_path] = self._modified(patch)

    def _located(self, patch: FilePatch) -> FilePatch:
        """Settles what a plain diff leaves open: which of two names is meant, and whether the file is new."""
        if patch.action is not FileAction.MODIFY:
            return patch
        path = patch.new_path if self._node(patch.new_path) is not None else patch.old_path
        if self._node(path) is None and not patch.old_object and patch.hunks and not patch.hunks[0].old:
            return replace(patch, action=FileAction.CREATE, old_path=patch.new_path)
        return replace(patch, old_path=path, new_path=path)

    def _created(self, patch: FilePatch) -> Node:
        data = self._patched(patch, b"")
        return self._new_node(data, patch.new_mode or 0o100644)

    def _check_deleted(self, patch: FilePatch) -> None:
        source = content(self._source(patch), self.blobs)
        if patch.hunks or patch.binary is not None:
            left = self._patched(patch, source)
        else:
            left = b"" if _is_object(source, patch.old_object) else source
        if left:
            raise _NoFit(left_over(patch, left))

    def _modified(self, patch: FilePatch) -> Node:
        node = self._source(patch)
        source = content(node, self.blobs)
        has_content = patch.hunks or patch.binary is not None
        blob = self.blobs.put(self._patched(patch, source)) if has_content else node.blob
        assert blob is not None
        if node.kind is NodeKind.LINK:
            return Node.link(blob)
        return Node.file(blob, self._mode(patch, node))

    def _source(self, patch: FilePatch) -> Node:
        """The node that the patch starts from, which must be there and of the right kind."""
        node = self._node(patch.old_path)
        if node is None or is_directory(node):
            found = "a directory is there" if node is not None else "there is no such file"
            raise _NoFit(RejectedHunk(path=patch.old_path, line=patch.line, problem=found))
        if patch.old_mode is not None and (patch.old_mode == LINK_MODE) != (node.kind is NodeKind.LINK):
            expected = "a link" if patch.old_mode == LINK_MODE else "a file"
            problem = f"it is a {node.kind}, the patch expects {expected}"
            raise _NoFit(RejectedHunk(path=patch.old_path, line=patch.line, problem=problem))
        return node

    def _patched(self, patch: FilePatch, source: bytes) -> bytes:
        if patch.binary is not None:
            return self._patched_binary(patch, source)
        if not patch.hunks:
            return source
        result = fitted(patch, source, is_proven=_is_object(source, patch.old_object))
        if isinstance(result, RejectedHunk):
            raise _NoFit(result)
        self.notices.extend(result.notices)
        return result.data

    def _patched_binary(self, patch: FilePatch, source: bytes) -> bytes:
        assert patch.binary is not None
        if patch.action is not FileAction.CREATE and not _is_object(source, patch.old_object):
            problem = "its content is not the one that the patch starts from"
            raise _NoFit(RejectedHunk(path=patch.old_path, line=patch.line, problem=problem))
        data = patch.binary
        is_named = patch.action is not FileAction.DELETE and len(patch.new_object) in (40, 64)
        if is_named and not _is_object(data, patch.new_object):
            raise bad(patch.line, "the binary content is not the one that the 'index' line names")
        return data

    def _new_node(self, data: bytes, mode: int) -> Node:
        blob = self.blobs.put(data)
        return Node.link(blob) if mode == LINK_MODE else Node.file(blob, mode & 0o777)

    def _mode(self, patch: FilePatch, node: Node) -> int:
        """Git only knows whether a file runs; the other permissions stay as they are."""
        if patch.new_mode is None or patch.new_mode == patch.old_mode:
            return node.mode
        runs = bool(node.mode & 0o100)
        if patch.old_mode is not None and bool(patch.old_mode & 0o100) != runs:
            self.notices.append(f"{patch.new_path!r} already had the permissions that the patch gives it")
        if patch.new_mode & 0o100:
            return node.mode | (node.mode & 0o444) >> 2
        return node.mode & ~0o111

    def _make_room(self, patch: FilePatch, freed: set[str], written: dict[str, Node | None]) -> None:
        """A new file's place must be free or become free by the same patch, with the directories emptied below it."""
        path, node = patch.new_path, self._node(patch.new_path)
        if node is None or path in freed:
            return
        if not is_directory(node):
            self.misfits.append(already_there(patch, content(node, self.blobs)))
            return
        emptied = {parent for other in freed for parent in parents(other) if path == parent or path in parents(parent)}
        if not emptied:
            problem = "a directory is in its place"
            self.misfits.append(RejectedHunk(path=path, line=patch.line, problem=problem))
        for folder in emptied - {path}:
            self._node(folder)
            written.setdefault(folder, None)

    def _add_parents(self, patch: FilePatch, written: dict[str, Node | None]) -> None:
        for parent in parents(patch.new_path):
            standing = self._node(parent)
            node = written.get(parent, standing)
            if node is None:
                written[parent] = Node.directory()
            elif not is_directory(node):
                problem = f"{parent!r} is a {node.kind}, not a directory"
                self.misfits.append(RejectedHunk(path=patch.new_path, line=patch.line, problem=problem))

    def _node(self, path: str) -> Node | None:
        if path not in self.state:
            self.state[path] = self.original[path] = self.tree(path)
        return self.state[path]


def _is_object(data: bytes, name: str) -> bool:
    """Whether git's name, possibly shortened, is that of this content."""
    return len(name) >= 7 and git_object_name(data, "sha256" if len(name) > 40 else "sha1").startswith(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchProposal:
    """A change that is ready to be promoted, and what the user should be asked about."""

    changes: ChangeSet
    breaches: tuple[str, ...]
    """Guardrails and rules by which the user is asked first."""
    notices: tuple[str, ...] = ()


def propose_patch(shop: Project, text: bytes, *, allow_protected: bool) -> PatchProposal:
    """The change set of a patch against the workspace as it stands; refused as a whole when one path is refused."""
    patches = read_patch(text)
    for patch in patches:
        for path in {patch.old_path, patch.new_path}:
            check_path(shop, path, allow_protected=allow_protected)

    def node(path: str) -> Node | None:
        return shop.tree.node(path, shop.store.blobs) if shop.tree.look(path) is not None else None

    resolved = resolve(patches, node, shop.store.blobs)
    for change in resolved.changes:
        check_path(shop, change.path, allow_protected=allow_protected)
        _check_size(shop, change)
    refuse_denied(resolved.changes, shop.judge_changes())
    links = LinkJudge(shop.tree, shop.store.blobs)
    refuse_links(links.faults(resolved.changes))
    if not allow_protected:
        linked = {change.path for change in resolved.changes if shop.guardrails.protects(change)}
        linked |= links.turned(resolved.changes, shop.guardrails)
        for path in sorted(linked | in_repositories(shop.tree, resolved.changes)):
            raise _protected(path)
    return _proposal(shop, resolved.changes, resolved.notices)


def propose_text(shop: Project, path: str, old: str, new: str, *, allow_protected: bool) -> PatchProposal:
    """A strict patch, made on a bench: `old` occurs exactly once and becomes `new`. The file may be an ignored one."""
    check_path(shop, path, allow_protected=allow_protected)
    with open_bench(shop, include_ignored=True) as bench:
        editor = BenchEditor(bench.files, shop.guardrails, allowed=(clean(path),))
        editor.read(path)
        editor.patch(path, old, new)
        captured = bench.capture()
    if captured.conflicts:
        raise Conflicted(f"you changed {path!r} meanwhile", captured.conflicts, advice="nothing was written; try again")
    refuse_denied((one.change for one in captured.held if one.change), shop.judge_changes())
    allowed = ChangeSet.of(one.change for one in captured.held if one.change and one.needs_yes)
    return _proposal(shop, captured.changes.then(allowed), ())


def check_path(shop: Project, path: str, *, allow_protected: bool) -> None:
    """Refuses a path that may not be written."""
    name = clean(path)
    if shop.guardrails.never(name):
        raise ProtectedRefused(f"{name!r} is git's own; Pawl never writes it", advice="use git for that")
    if shop.guardrails.is_secret(name):
        raise SecretRefused(f"{name!r} holds secrets; Pawl never writes it", advice="change it by hand")
    if shop.guardrails.is_protected(name) and not allow_protected:
        raise _protected(name)


def _protected(path: str) -> ProtectedRefused:
    return ProtectedRefused(
        f"{path!r} configures or executes things and is protected",
        advice="look at it closely, then repeat with --allow-protected",
    )


def _check_size(shop: Project, change: Change) -> None:
    for node in (change.before, change.after):
        if node is None or node.kind is not NodeKind.FILE or node.blob is None or change.after is None:
            continue
        size, most = len(shop.store.blobs.get(node.blob)), shop.guardrails.file_bytes
        if size > most:
            raise TooLarge(
                f"{change.path!r} has {size:,} bytes; the limit is {most:,}",
                advice="change it with a command: pawl run",
            )


def _proposal(shop: Project, changes: ChangeSet, notices: tuple[str, ...]) -> PatchProposal:
    rows = summary(changes, shop.store.blobs)
    touched = [Touched(path=row.path, changed_lines=row.added + row.removed) for row in rows if row.what != "directory"]
    breaches = (*(breach.message for breach in shop.guardrails.check(touched)), *shop.asked_about(changes))
    return PatchProposal(changes=changes, breaches=breaches, notices=notices)
