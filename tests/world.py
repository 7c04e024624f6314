"""Looking at a real folder as a value, so that two of its states can be compared to the byte."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

Snapshot = dict[bytes, tuple[str, int, bytes]]


def snapshot(root: Path | str, *, skip: frozenset[bytes] = frozenset()) -> Snapshot:
    """Every path below the root: kind, mode, and content or link target. Names are bytes, as the disk has them."""
    found: Snapshot = {}
    top = os.fsencode(os.fspath(root))

    def visit(folder: bytes, prefix: bytes) -> None:
        for entry in os.scandir(folder):
            name = prefix + entry.name
            if name in skip:
                continue
            status = entry.stat(follow_symlinks=False)
            mode = stat.S_IMODE(status.st_mode)
            if entry.is_symlink():
                found[name] = ("link", 0, os.readlink(entry.path))
            elif entry.is_dir(follow_symlinks=False):
                found[name] = ("folder", mode, b"")
                visit(entry.path, name + b"/")
            elif entry.is_file(follow_symlinks=False):
                found[name] = ("file", mode, Path(os.fsdecode(entry.path)).read_bytes())
            else:
                found[name] = ("special", mode, b"")

    visit(top, b"")
    return found


def lay(root: Path, files: Mapping[str, bytes | str | None]) -> Path:
    """Makes a folder with these files; a name that ends in / is an empty folder, a str is a link's target."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.symlink_to(content)
        else:
            path.write_bytes(content or b"")
    return root


def clear(root: Path) -> None:
    """Removes a folder whatever modes its parts have."""
    for folder, _, _ in os.walk(root):
        os.chmod(folder, 0o700)
    shutil.rmtree(root)
