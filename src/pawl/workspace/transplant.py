"""One commit with its files, without those before it: read out of a repository, planted in a folder elsewhere.

It is the same commit there, by its name: nothing in it can be left out or put in.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pawl.core.change import BlobStore, EntryKind, Node, blob_digest, is_directory, parents
from pawl.core.errors import Conflicted, GitFailed, NotFound, NothingToDo, PathRefused, Refused, UsageError
from pawl.core.execution import Network
from pawl.core.lazy_dataclass import dataclass
from pawl.settings.config import Config
from pawl.workspace.benches import open_bench
from pawl.workspace.gate import LinkJudge, refuse_own_ground
from pawl.workspace.git import BRANCH, LIMITS, OBJECT_NAME, Git, GitEntry, opened
from pawl.workspace.project import Project

SECONDS = 300.0
"""For fetching."""
ADDRESS = re.compile(r"(?P<url>[a-z][a-z+]*://[^/\s]*/(?:[^@\s]|(?<=/)@)+)(?:@(?P<ref>\S+))?")
"""`https://host/owner/name.git@REF`."""
_REF = re.compile(r"[A-Za-z0-9][\w./+-]{0,200}")
_SCHEMES = ("https", "http", "git", "file")
_VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "GIT_SSL_CAINFO")
_LINK, _FOLDER, SUBMODULE = "120000", "40000", "160000"
"""Modes of git."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transplant:
    commit: str
    branch: str
    """As `refs/heads/main`."""
    text: bytes
    """The commit, as git has it."""
    entries: Mapping[str, GitEntry]
    """Its files and links, by path; of a submodule the name of its commit."""

    @property
    def files(self) -> dict[str, GitEntry]:
        return {path: one for path, one in self.entries.items() if one.mode != SUBMODULE}


def read(output: bytes, branch: str) -> tuple[Transplant, Mapping[str, bytes]]:
    """What git says of a commit, and the contents by the names of their objects."""
    name, _, rest = output.partition(b"\n")
    text, _, rest = rest.partition(b"\0")
    entries: dict[str, GitEntry] = {}
    while rest and not rest.startswith(b"\0"):
        row, _, rest = rest.partition(b"\0")
        fields, _, path = row.partition(b"\t")
        mode, _, entry = fields.decode("ascii").split()
        entries[os.fsdecode(path)] = GitEntry(mode, entry)
    return Transplant(commit=name.decode("ascii"), branch=branch, text=text, entries=entries), dict(_batch(rest[1:]))


def _batch(rest: bytes) -> Iterator[tuple[str, bytes]]:
    while rest:
        head, _, rest = rest.partition(b"\n")
        name, kind, size = head.decode("ascii").split()
        if kind != "blob":
            raise ValueError(f"{name} is a {kind}")
        yield name, rest[: int(size)]
        rest = rest[int(size) + 1 :]


def nodes(plant: Transplant, contents: Mapping[str, bytes], blobs: BlobStore) -> dict[str, Node]:
    """The files as nodes, their contents stored."""
    found = {}
    for path, entry in plant.files.items():
        digest = blobs.put(contents[entry.name])
        mode = 0o755 if entry.mode == "100755" else 0o644
        found[path] = Node.link(digest) if entry.mode == _LINK else Node.file(digest, mode)
    return found


def head_of(shop: Project) -> tuple[Transplant, Mapping[str, bytes]] | None:
    """The commit that HEAD names, with its contents; None where there is none, or git cannot tell."""
    try:
        with opened(shop.tree) as repository:
            head = repository.head()
            if not head.commit:
                return None
            with open_bench(shop) as bench:
                output = Git(run=bench.run, repository=repository, head=head.commit).ask("whole")
        return read(output, head.branch or "refs/heads/main")
    except (GitFailed, NotFound, PathRefused, ValueError):
        return None


def planted(folder: Path, plant: Transplant, contents: Mapping[str, bytes], remote: str = "") -> None:
    """Make the folder a repository that has this one commit; `ValueError` where it does not match its hash, `Refused`
    where a path of it is git's own or none inside."""
    for each in plant.entries:
        refuse_own_ground(each)
    algorithm = "sha1" if len(plant.commit) == 40 else "sha256"
    place = folder / ".git"
    if not OBJECT_NAME.fullmatch(plant.commit) or not BRANCH.fullmatch(plant.branch):
        raise ValueError(f"{plant.commit[:80]!r} on {plant.branch[:80]!r} is not a commit")
    objects = [("blob", contents[one.name]) for one in plant.files.values()]
    trees, top = _trees(plant.entries, algorithm)
    objects += [("tree", data) for data in trees]
    objects.append(("commit", plant.text))
    made = {_name(kind, data, algorithm): (kind, data) for kind, data in objects}
    wanted = {one.name for one in plant.files.values()}
    if plant.commit not in made or not wanted <= made.keys() or not plant.text.startswith(f"tree {top}\n".encode()):
        raise ValueError(f"the commit {plant.commit[:12]} is incomplete")
    for name, (kind, data) in made.items():
        path = place / "objects" / name[:2] / name[2:]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.compress(_framed(kind, data), 1))
    _skeleton(place, plant.branch, algorithm, remote)
    branch = place / plant.branch
    branch.parent.mkdir(parents=True, exist_ok=True)
    branch.write_text(f"{plant.commit}\n")
    (place / "shallow").write_text(f"{plant.commit}\n")
    (place / "index").write_bytes(_index(plant.entries, algorithm))


def _skeleton(place: Path, branch: str, algorithm: str, remote: str) -> None:
    for name in ("objects", "refs/heads"):
        (place / name).mkdir(parents=True, exist_ok=True)
    (place / "HEAD").write_text(f"ref: {branch}\n")
    sha256 = algorithm == "sha256"
    lines = ["[core]", f"\trepositoryformatversion = {int(sha256)}", "\tbare = false"]
    lines += ["[extensions]", "\tobjectformat = sha256"] * sha256
    lines += ['[remote "origin"]', f"\turl = {remote}", "\tfetch = +refs/heads/*:refs/remotes/origin/*"] * bool(remote)
    (place / "config").write_text("\n".join((*lines, "")))


def object_name(content: bytes, commit: str) -> str:
    """The name of a content in the repository of that commit."""
    return _name("blob", content, "sha1" if len(commit) == 40 else "sha256")


def _framed(kind: str, data: bytes) -> bytes:
    return f"{kind} {len(data)}\0".encode() + data


def _name(kind: str, data: bytes, algorithm: str) -> str:
    return hashlib.new(algorithm, _framed(kind, data), usedforsecurity=False).hexdigest()


def _trees(entries: Mapping[str, GitEntry], algorithm: str) -> tuple[list[bytes], str]:
    """The tree objects of these paths, and the name of the topmost."""
    below: dict[str, dict[str, GitEntry]] = {}
    here: dict[str, GitEntry] = {}
    for path, entry in entries.items():
        name, slash, rest = path.partition("/")
        if slash:
            below.setdefault(name, {})[rest] = entry
        else:
            here[name] = entry
    made = []
    for name, inner in below.items():
        more, tree = _trees(inner, algorithm)
        made += more
        here[name] = GitEntry(_FOLDER, tree)
    rows = sorted((os.fsencode(name) + b"/" * (one.mode == _FOLDER), name, one) for name, one in here.items())
    data = b"".join(
        f"{one.mode} ".encode() + os.fsencode(name) + b"\0" + bytes.fromhex(one.name) for _, name, one in rows
    )
    return [*made, data], _name("tree", data, algorithm)


def _index(entries: Mapping[str, GitEntry], algorithm: str) -> bytes:
    """An index without what the files look like: git reads them once."""
    data = struct.pack(">4sII", b"DIRC", 2, len(entries))
    for path, entry in sorted((os.fsencode(path), entry) for path, entry in entries.items()):
        row = struct.pack(">24xI12x", int(entry.mode, 8)) + bytes.fromhex(entry.name)
        row += struct.pack(">H", min(len(path), 0xFFF)) + path
        data += row + b"\0" * (8 - len(row) % 8)
    return data + hashlib.new(algorithm, data, usedforsecurity=False).digest()


def fetched(config: Config, address: str) -> tuple[Path, tuple[str, ...]]:
    """A workspace of its own for a commit of a repository elsewhere, which is fetched in the sandbox, and the links of
    it that were left out; the same commit has the same workspace. Nothing of the user's goes with it: no key, no
    password, no configuration."""
    found = ADDRESS.fullmatch(address)
    if found is None:
        raise UsageError(f"{address!r} is not the address of a repository", advice="https://HOST/OWNER/NAME.git@BRANCH")
    url, ref = found["url"], found["ref"] or "HEAD"
    scheme, _, host = url.partition("://")
    if scheme not in _SCHEMES or "@" in host.partition("/")[0] or not _REF.fullmatch(ref):
        raise UsageError(
            f"{address!r} cannot be fetched: only https, http, git and file, without a key or password",
            advice="clone it yourself, and give the folder: --workspace DIR",
        )
    place = config.clones  # not in Pawl's own state, which no command may be run on
    fresh = place / f".{secrets.token_hex(8)}"
    fresh.mkdir(parents=True, mode=0o700)
    made = fresh
    try:
        _skeleton(fresh / ".git", "refs/heads/main", "sha1", "")
        plant, contents = _fetch(config, fresh, url, ref)
        name = (
            re.sub(r"[^\w.-]", "-", url.rstrip("/").rpartition("/")[2].removesuffix(".git")).lstrip(".") or "repository"
        )
        folder = place / f"{name}-{plant.commit[:12]}-{blob_digest(url.encode())[:6]}"
        if not folder.exists():
            shutil.rmtree(fresh / ".git")
            planted(fresh, plant, contents, url)
            os.rename(fresh, folder)
            made = folder
        with Project.open(config, folder) as shop:
            # Where this was broken off, it is done again.
            fresh_files = {} if shop.entries(limit=1) else nodes(plant, contents, shop.store.blobs)
            return folder, settled(shop, f"the files of {plant.commit[:12]}", fresh_files)
    except (Refused, Conflicted) as error:
        shutil.rmtree(made, ignore_errors=True)
        message = f"{address} holds what no workspace may hold: {error.message}"
        raise Refused(message, advice="nothing of it was kept") from error
    except GitFailed as error:
        advice = "are address and branch right? What needs a key or password, clone yourself: --workspace DIR"
        raise GitFailed(f"{address} cannot be fetched: {error.message}", advice=advice) from error
    except ValueError as error:
        raise GitFailed(f"what {url} sent is incomplete: {error}", advice="try again") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def settled(shop: Project, title: str, wanted: Mapping[str, Node]) -> tuple[str, ...]:
    """The files of a workspace elsewhere, as the first entry of this one. Links that would lead out are left out, and
    returned.

    Rules that deny an edit have no say: this is what stands there before anybody edits it.
    """
    from pawl.core.merge import difference

    for path in wanted:
        if any(above in wanted and not is_directory(wanted[above]) for above in parents(path)):
            raise PathRefused(f"{path!r} would lie below something that is not a folder")
    kept = dict(wanted)
    while outside := LinkJudge(shop.tree, shop.store.blobs).faults(difference({}, kept)):
        kept = {path: node for path, node in kept.items() if path not in outside}
    entry = shop.new_entry(EntryKind.EDIT, title, allows_protected=True)
    try:
        replace(shop.promoter, judging=None).promote(entry, difference({}, kept))
    except (Conflicted, NothingToDo):
        if kept and not shop.entries(limit=1):  # else another process was faster
            raise
    return tuple(sorted(wanted.keys() - kept.keys()))


def _fetch(config: Config, folder: Path, url: str, ref: str) -> tuple[Transplant, Mapping[str, bytes]]:
    given = {name: config.environment.get(name, "") for name in _VARIABLES}
    variables = {name: value for name, value in given.items() if value and "@" not in value}
    shown = (url.removeprefix("file://"),) if url.startswith("file://") else ()
    with (
        Project.open(config, folder) as shop,
        opened(shop.tree) as repository,
        open_bench(shop, extra_readonly=shown) as bench,
    ):
        git, limits = Git(run=bench.run, repository=repository), replace(LIMITS, seconds=SECONDS)
        output = git.ask("fetched", url, ref, environment=variables, network=Network.ON, limits=limits)
    branch = "" if OBJECT_NAME.fullmatch(ref) or ref == "HEAD" else ref.removeprefix("refs/heads/")
    return read(output, f"refs/heads/{branch or 'main'}")
