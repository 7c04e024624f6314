"""The workspace as the page shows and edits it. What the user types is theirs: it is merged with what changed meanwhile
and promoted as an entry of the history, never written over anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pawl.agent.tools.file_search import FileSearch, file_search
from pawl.agent.tools.tool_registry import Ports
from pawl.code.librarian import open_librarian, source_files
from pawl.core.change import REVERSALS, BlobReader, Change, ChangeSet, EntryKind, Node, NodeKind, blob_digest
from pawl.core.errors import (
    Conflicted,
    GitFailed,
    NoMatches,
    NotFound,
    PathRefused,
    PawlError,
    SandboxUnavailable,
    SecretRefused,
    UsageError,
)
from pawl.core.merge import difference
from pawl.core.patch import content, git_patch, hunks, summary
from pawl.core.text import is_binary
from pawl.ui.cli.encoder import Json, path_json, picked
from pawl.workspace.bench_files import WorkspaceFiles
from pawl.workspace.benches import uncommitted_paths
from pawl.workspace.ignore import LARGEST_IGNORE_FILE, Ignore
from pawl.workspace.project import Project

LARGEST_SHOWN = 4 << 20
MOST_PATHS = 50_000
MOST_HITS = 200
MOST_ENTRIES = 200
_KINDS = {NodeKind.FILE: "file", NodeKind.DIRECTORY: "directory", NodeKind.LINK: "link"}
CRLF = b"\r\n"


def folder(shop: Project, path: str) -> Json:
    """The contents of a folder: folders first, then by name."""
    path = _plain(path)
    ignore = Ignore(lambda name: _ignore_file(shop, name), global_file=shop.config.global_ignore)
    found = shop.tree.entries(path)
    ignore.note_names(path, found)
    rows = []
    for name, seen in found.items():
        if seen.kind not in _KINDS or name == ".git":
            continue
        full = f"{path}/{name}" if path else name
        is_folder = seen.kind is NodeKind.DIRECTORY
        rows.append(
            {
                "name": name,
                **path_json(full),
                "kind": _KINDS[seen.kind],
                "size": seen.size,
                "ignored": ignore.topmost(full, folder=is_folder) is not None,
                "secret": shop.guardrails.is_secret(full),
            }
        )
    rows.sort(key=lambda row: (row["kind"] != "directory", str(row["name"]).casefold()))
    return {"path": path, "entries": rows}


def all_paths(shop: Project) -> Json:
    """Every file that is neither ignored nor secret."""
    paths = [one.path for one in source_files(shop).stamps()]
    return {"paths": paths[:MOST_PATHS], "truncated": len(paths) > MOST_PATHS}


def changed_paths(shop: Project) -> Json:
    """The paths that stand otherwise than in the last commit; without one, those of the entries that stand."""
    try:
        # A secret file is empty to git, which is asked in the sandbox.
        return {"paths": sorted(one for one in uncommitted_paths(shop) if not _is_hidden(shop, one)), "since": "commit"}
    except (NotFound, PathRefused, GitFailed, SandboxUnavailable):
        made = [one.id for one in shop.entries(limit=MOST_ENTRIES) if one.active and one.kind not in REVERSALS]
        return {"paths": sorted({path for one in made for path in shop.store.journal.paths(one)}), "since": "entries"}


def file(shop: Project, path: str) -> Json:
    """A file with its text, or why there is none to show."""
    path = _plain(path)
    seen = shop.tree.find(path)
    if seen is None or seen.kind is not NodeKind.FILE:
        raise NotFound(f"there is no file {path!r}", advice="it may have been moved or deleted")
    shown: Json = {"path": path, "text": None, "digest": "", "size": seen.size, "binary": False, "why": ""}
    if _is_hidden(shop, path):
        return {**shown, "why": "it holds secrets, or is not for reading"}
    if seen.size > LARGEST_SHOWN:
        return {**shown, "why": f"it has more than {LARGEST_SHOWN >> 20} MB"}
    data = shop.tree.read(path, LARGEST_SHOWN)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {**shown, "binary": True, "why": "it is not UTF-8 text"}
    if is_binary(data):
        return {**shown, "binary": True, "why": "it is not text"}
    if data.count(CRLF) not in (0, data.count(b"\n")) or data.count(b"\r") != data.count(CRLF):
        return {**shown, "why": "its lines end in different ways, which the editor would change"}
    return {**shown, "text": text.replace("\r\n", "\n"), "digest": blob_digest(data)}


def edit(shop: Project, path: str, text: str, base: str) -> Change:
    """The user's edit of a text that was read as `base`."""
    path = _plain(path)
    if text == base:
        raise UsageError("nothing was changed", advice="edit it first")
    if _is_hidden(shop, path):
        raise SecretRefused(f"{path!r} is not edited here", advice="use your own editor for it")
    seen = shop.tree.find(path)
    if seen is not None and seen.kind is not NodeKind.FILE:
        raise PathRefused(f"{path!r} is not a file", advice="name a file")
    now = None if seen is None else shop.tree.node(path, shop.store.blobs)
    ends = CRLF if now is not None and CRLF in content(now, shop.store.blobs) else b"\n"
    mode = 0o644 if now is None else now.mode
    with shop.store.blobs.batch():
        before, after = (
            Node(NodeKind.FILE, shop.store.blobs.put(one.encode().replace(b"\n", ends)), mode) for one in (base, text)
        )
    return Change(path, None if now is None and not base else before, after)


def save(shop: Project, change: Change, text: str) -> Json:
    """Promote the user's edit."""
    path = change.path
    entry = shop.new_entry(EntryKind.EDIT, f"edit {path} in the page", allows_protected=True)
    try:
        promotion = shop.promote(entry, ChangeSet.of([change]))
    except Conflicted as error:
        error.advice = "nothing was written; your text is still in the editor: take theirs or save it elsewhere"
        raise
    stands = picked_file(shop, path)
    return {**stands, "merged": stands["text"] != text, "entry": promotion.entry}


def picked_file(shop: Project, path: str) -> Json:
    shown = file(shop, path)
    return {"text": shown["text"], "digest": shown["digest"]}


def change_json(changes: ChangeSet, blobs: BlobReader, digest: str = "") -> Json:
    """A change set with its texts and its hunks, which are counted over all files as an answer counts them."""
    files, number = [], 0
    for change, row in zip(changes, summary(changes, blobs), strict=True):
        pieces = []
        for hunk in hunks(change, blobs):
            number += 1
            lines = [one.decode("utf-8", "backslashreplace").rstrip("\r\n") for one in hunk.lines]
            pieces.append({"number": number, "header": hunk.header, "lines": lines})
        texts = {name: _text(getattr(change, name), blobs) for name in ("before", "after")}
        files.append(
            {
                **path_json(change.path),
                "what": row.what,
                **picked(row, "added removed binary"),
                **texts,
                "hunks": pieces,
            }
        )
    patch = git_patch(changes, blobs).decode("utf-8", "backslashreplace")
    return {"digest": digest, "patch": patch, "files": files}


def between(shop: Project, after: int, until: int | None) -> Json:
    """What was changed between two points of the history; up to the present it is what stands in the workspace."""
    changes = shop.history.between(after, until)
    if until is None:
        now = shop.promoter.nodes(changes.paths, changes.blobs)
        changes = difference({change.path: change.before for change in changes}, now)
    return change_json(changes, shop.store.blobs)


def outline(shop: Project, path: str) -> list[Json]:
    with open_librarian(shop, shows=lambda _: True) as librarian:
        librarian.refresh([_plain(path)])
        found = librarian.reading(lambda index: tuple(index.outlines([_plain(path)])), history=False)
    return [picked(one, "name kind line end depth") for file in found for one in file.definitions]


def definitions(shop: Project, name: str, path: str) -> list[Json]:
    """Where a name is defined; in the file that asks first."""
    with open_librarian(shop, shows=lambda _: True) as librarian:
        librarian.refresh()

        def look(index: Any) -> list[Json]:
            return [
                {"path": index.files[one.file].path, **picked(one, "line name kind")}
                for one in index.named([name]).get(name, ())
                if one.file in index.files
            ]

        found = librarian.reading(look, history=False)
    return sorted(found, key=lambda one: (one["path"] != path, str(one["path"]), one["line"]))


def search(shop: Project, query: str, *, regex: bool) -> Json:
    """Lines in which a text stands."""

    def nothing() -> Any:
        raise UsageError("a search only reads", advice="")

    ports = Ports(
        files=_Readable(source_files(shop)),
        editor=nothing,
        runner=None,  # type: ignore[arg-type]
        dependencies=nothing,
        guardrails=shop.guardrails,
    )
    try:
        found = file_search(
            ports, FileSearch(query=query, regex=regex, ignore_case=query == query.lower(), limit=MOST_HITS)
        )
    except NoMatches:
        return {"hits": [], "truncated": False}
    return {"hits": [picked(one, "path line text") for one in found.matches], "truncated": not found.complete}


class _Readable:
    """Fits `Files`, for a search."""

    def __init__(self, files: WorkspaceFiles) -> None:
        self._files = files

    def read(self, path: str) -> bytes:
        return self._files.read(path, LARGEST_SHOWN)[0]

    def exists(self, path: str) -> bool:
        return self._files.stamp(path) is not None

    def walk(self, under: str = "") -> Iterator[str]:
        return (one.path for one in self._files.stamps() if not under or one.path.startswith(f"{under}/"))

    def write(self, path: str, data: bytes) -> None:
        raise UsageError(f"{path!r} is only read here", advice="")

    def delete(self, path: str) -> None:
        self.write(path, b"")


def _plain(path: str) -> str:
    """A path inside of the workspace, as it names it."""
    parts = [one for one in path.split("/") if one not in ("", ".")]
    if ".." in parts or "\0" in path or path.startswith("/"):
        raise PathRefused(f"{path!r} is not inside the workspace", advice="name a file or folder in it")
    return "/".join(parts)


def _is_hidden(shop: Project, path: str) -> bool:
    return ".git" in path.casefold().split("/") or shop.guardrails.is_secret(path) or shop.guardrails.never(path)


def _ignore_file(shop: Project, path: str) -> bytes | None:
    try:
        return shop.tree.read(path, LARGEST_IGNORE_FILE)
    except (PawlError, OSError):
        return None


def _text(node: Node | None, blobs: BlobReader) -> str | None:
    if node is None or node.kind is not NodeKind.FILE:
        return None
    data = content(node, blobs)
    return None if is_binary(data) else data.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
