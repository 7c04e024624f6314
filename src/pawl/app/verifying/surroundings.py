"""What decides about a verdict beside the project's files: tools, installed packages, and files that git ignores."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from pawl import __version__
from pawl.verify.steps.step import Subject

_PACKAGES = frozenset({"node_modules", "site-packages", "dist-packages"})
_NOT_LOOKED_INTO = frozenset({".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
"""Unless they lie among installed packages."""
_MOST = 150_000
"""Files that are looked at; where there are more, nothing is kept."""
_PYTHON = "import json, sys; print(json.dumps([sys.version, *sys.path]))"
_SAYS_ITS_VERSION: Mapping[str, tuple[str, tuple[str, ...]]] = {
    ".go": ("go", ("version",)),
    ".rs": ("rustc", ("--version",)),
    ".js": ("node", ("--version",)),
    ".ts": ("node", ("--version",)),
    ".tsx": ("node", ("--version",)),
    ".mjs": ("node", ("--version",)),
}


def surroundings(subject: Subject, paths: Collection[str]) -> str | None:
    """A digest of them; None where they are too many to tell."""
    digest = hashlib.sha256(__version__.encode())
    python = _python(subject) if any(path.endswith(".py") for path in paths) else []
    outside = (place for place in python[1:] if not os.path.realpath(place).startswith(f"{subject.workspace}/"))
    files = itertools.chain(stamps(subject.workspace, frozenset(paths)), *map(stamps, outside))
    parts = itertools.chain(_tools(subject), _versions(subject, paths), python, files)
    for number, part in enumerate(parts):
        if number > _MOST:
            return None
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def _tools(subject: Subject) -> Iterator[str]:
    """Pawl's own tools, by what their files look like."""
    for name, path in sorted(subject.spare.items()):
        yield f"{name} {stamp(path)}"


def _versions(subject: Subject, paths: Collection[str]) -> Iterator[str]:
    """What the tools on the bench say of themselves, asked of those that the project's languages need."""
    endings = {os.path.splitext(path)[1] for path in paths}
    for program, words in dict.fromkeys(_SAYS_ITS_VERSION[one] for one in sorted(endings & set(_SAYS_ITS_VERSION))):
        completed = subject.run((program, *words))
        yield f"{program} {completed.stdout.text if completed is not None else 'missing'}"


def _python(subject: Subject) -> list[str]:
    """The version of the workspace's interpreter, and where it finds modules."""
    completed = subject.run((subject.python, "-I", "-c", _PYTHON))
    try:
        return [str(part) for part in json.loads(completed.stdout.text)] if completed is not None else ["missing"]
    except (ValueError, TypeError):
        return ["unknown"]


def stamps(root: str, known: frozenset[str] = frozenset(), skipped: frozenset[str] = _NOT_LOOKED_INTO) -> Iterator[str]:
    """Every file below that is not known by its content: ignored or installed, but a build or a test may read it."""
    if os.path.isfile(root):
        yield stamp(root)
    for folder, folders, names in os.walk(root):
        below = os.path.relpath(folder, root)
        if _PACKAGES.isdisjoint(f"{root}/{below}".split("/")):
            folders[:] = [name for name in folders if name not in skipped]
        folders.sort()
        links = (name for name in folders if os.path.islink(os.path.join(folder, name)))
        for name in sorted((*names, *links)):
            path = os.path.normpath(os.path.join(below, name))
            if path not in known:
                yield f"{path} {stamp(os.path.join(folder, name))}"


def stamp(path: str | Path) -> str:
    """Changes with every edit in place, also where its time is set back."""
    try:
        seen = os.stat(path, follow_symlinks=False)
    except OSError:
        return "missing"
    return f"{seen.st_size} {seen.st_mtime_ns} {seen.st_ctime_ns} {seen.st_ino}"
