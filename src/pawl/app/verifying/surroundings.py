"""What decides about a verdict beside the project's files: tools, installed packages, and files that git ignores."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from pawl import __version__
from pawl.verify.steps.step import Subject

_PACKAGES = ("node_modules", ".venv", "venv", "env")
_NOT_LOOKED_INTO = frozenset({".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", *_PACKAGES})
_INSTALLED = (".package-lock.json", ".yarn-integrity", ".modules.yaml", ".yarn-state.yml")
_MOST = 20_000
"""Ignored files that are looked at; where there are more, nothing is kept."""
_PYTHON = """
import sys, importlib.metadata as found
print(sys.version, *sorted(f"{one.metadata['Name']}={one.version}" for one in found.distributions()))
"""
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
    for part in (*_tools(subject), *_versions(subject, paths), *_installed(Path(subject.workspace))):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    for number, part in enumerate(_ignored(Path(subject.workspace), frozenset(paths))):
        if number > _MOST:
            return None
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def _tools(subject: Subject) -> Iterator[str]:
    """Pawl's own tools, by what their files look like."""
    for name, path in sorted(subject.spare.items()):
        yield f"{name} {_stamp(path)}"


def _versions(subject: Subject, paths: Collection[str]) -> Iterator[str]:
    """What the tools on the bench say of themselves, asked of those that the project's languages need."""
    endings = {os.path.splitext(path)[1] for path in paths}
    for program, words in dict.fromkeys(_SAYS_ITS_VERSION[one] for one in sorted(endings & set(_SAYS_ITS_VERSION))):
        completed = subject.run((program, *words))
        yield f"{program} {completed.stdout.text if completed is not None else 'missing'}"
    if ".py" in endings:
        completed = subject.run((subject.python, "-c", _PYTHON))
        yield f"python {completed.stdout.text if completed is not None else 'missing'}"


def _installed(workspace: Path) -> Iterator[str]:
    """Installed packages: what the package manager noted, and the names and times of what stands there."""
    for modules in sorted({workspace / "node_modules", *workspace.glob("*/node_modules")}):
        for name in _INSTALLED:
            yield f"{name} {_stamp(modules / name)}"
        yield from _listed(modules)
        for scope in sorted(modules.glob("@*")):
            yield from _listed(scope)
    for environment in _PACKAGES[1:]:
        for folder in sorted((workspace / environment).glob("lib/python*/site-packages")):
            yield from _listed(folder)


def _listed(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(f"{entry.name} {entry.stat(follow_symlinks=False).st_mtime_ns}" for entry in entries)
    except OSError:
        return


def _ignored(workspace: Path, known: frozenset[str]) -> Iterator[str]:
    """Every other file of the workspace, by size and time: ignored, but a build or a test may read it."""
    for folder, folders, names in os.walk(workspace):
        folders[:] = sorted(name for name in folders if name not in _NOT_LOOKED_INTO)
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), workspace)
            if path not in known:
                yield f"{path} {_stamp(os.path.join(folder, name))}"


def _stamp(path: str | Path) -> str:
    try:
        seen = os.stat(path, follow_symlinks=False)
    except OSError:
        return "missing"
    return f"{seen.st_size} {seen.st_mtime_ns}"
