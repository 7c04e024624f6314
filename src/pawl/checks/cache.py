"""Kept verdicts as small private files beside the store, a bounded number of them."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from pawl.checks.command_step import EVERYTHING
from pawl.checks.ladder import Placed
from pawl.checks.project_facts import CheckKind, is_named
from pawl.checks.steps import Subject
from pawl.core import __version__
from pawl.core.diagnostic import INCOMPLETE, CheckResult, Status
from pawl.core.errors import PawlError
from pawl.core.execution import Ending
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted
from pawl.core.typed import Unreadable, read_json
from pawl.sandbox.cancel import CancelToken, raise_if_stopped
from pawl.settings.files import workspace_key, write_private
from pawl.workspace.bench_files import BenchFiles

MOST = 1000
LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class VerdictShelf:
    """Kept verdicts. A file that cannot be read or written is as good as none."""

    folder: Path

    def get(self, key: str) -> CheckResult | None:
        path = self.folder / f"{key}.json"
        try:
            verdict = CheckResult.from_json(json.loads(path.read_text("utf-8")))
            os.utime(path)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return verdict

    def put(self, key: str, verdict: CheckResult) -> None:
        text = json.dumps(verdict.to_json())
        # What would have to be changed before it is stored would no longer be the verdict.
        if len(text) > LARGEST or redacted(text) != text:
            return
        with suppress(OSError):
            write_private(self.folder / f"{key}.json", text)
            self._bound()

    def _bound(self) -> None:
        files = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in files[: max(0, len(files) - MOST)]:
            path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Baselines:
    """The verdicts that the user took as the state from which new findings are told, by workspace."""

    folder: Path

    def save(self, workspace: str, verdicts: Iterable[CheckResult]) -> None:
        shapes = [verdict.to_json() for verdict in verdicts]
        write_private(self._path(workspace), redacted(json.dumps({"verdicts": shapes})))

    def load(self, workspace: str) -> tuple[CheckResult, ...]:
        try:
            body = json.loads(self._path(workspace).read_text("utf-8"))
            return tuple(CheckResult.from_json(one) for one in body["verdicts"])
        except (OSError, ValueError, KeyError, TypeError):
            return ()

    def _path(self, workspace: str) -> Path:
        return self.folder / f"{workspace_key(workspace)}.json"


FORM = 3
"""Changes when steps judge otherwise than before."""
KEPT = "unchanged since it last ran"
_PASSING = (Ending.TIMED_OUT, Ending.MEMORY_LIMIT, Ending.PROCESS_LIMIT, Ending.DISK_LIMIT, Ending.CANCELLED)
"""How commands end for reasons that lie outside of the files."""


@dataclass(slots=True)
class Keeper:
    """Answers steps from the shelf during one climb."""

    shelf: VerdictShelf
    environment: str
    """A digest of what decides beside the project's files: tools, installed packages, ignored files."""
    contents: Mapping[str, str]
    """The project's files when the climb began, by path, as hashes."""
    kept: list[str] = field(default_factory=list)
    """The names of the steps that did not run."""
    unbuilt: list[Placed] = field(default_factory=list)
    """Builds that did not run; what comes after may need what they make."""

    def around(self, steps: Iterable[Placed]) -> tuple[Placed, ...]:
        return tuple(dataclasses.replace(one, step=_Kept(one, self)) for one in steps)

    def key(self, step: Placed, subject: Subject) -> str:
        whole = EVERYTHING in step.inputs
        files = [(path, digest) for path, digest in self.contents.items() if whole or is_named(path, step.inputs)]
        parts = [
            FORM,
            step.name,
            repr(step.step),
            self.environment,
            files,
            subject.changed,
            subject.test_command,
            [repr(one) for one in subject.services],
            [] if subject.chosen is None else [subject.chosen.files, subject.chosen.changed],
            [subject.limits.seconds, subject.limits.memory_bytes, subject.limits.processes],
        ]
        return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class _Kept:
    """A step that the shelf answers where it can."""

    placed: Placed
    keeper: Keeper

    @property
    def name(self) -> str:
        return self.placed.name

    def run(self, subject: Subject) -> CheckResult:
        keeper = self.keeper
        key = keeper.key(self.placed, subject)
        found = keeper.shelf.get(key)
        if found is not None:
            keeper.kept.append(self.name)
            if self.placed.kind is CheckKind.BUILD and found.standing is Status.PASS:
                keeper.unbuilt.append(self.placed)
            return dataclasses.replace(found, reason="; ".join(filter(None, (found.reason, KEPT))))
        if self.placed.kind in (CheckKind.SERVER, CheckKind.TESTS):
            while keeper.unbuilt:
                keeper.unbuilt.pop().run(subject)
        verdict = self.placed.run(subject)
        if _is_lasting(verdict):
            keeper.shelf.put(key, verdict)
        return verdict


def is_kept(verdict: CheckResult) -> bool:
    """Whether the shelf gave it."""
    return verdict.reason.endswith(KEPT)


def _is_lasting(verdict: CheckResult) -> bool:
    """Whether the files decided: a missing tool, a limit or a run that broke off may be otherwise the next time."""
    if verdict.standing is Status.SKIPPED or any(f"stopped: {one.value}" in verdict.reason for one in _PASSING):
        return False
    return all(finding.code != INCOMPLETE for finding in verdict.findings) and "gave up" not in verdict.reason


def contents_of(files: BenchFiles, paths: Iterable[str] | None = None) -> dict[str, str]:
    """The hash of each file, by default of all that are not ignored; one that may not be read counts by its name."""
    found: dict[str, str] = {}
    for path in files.walk() if paths is None else paths:
        try:
            found[path] = files.digest(path)
        except PawlError as error:
            found[path] = type(error).__name__
    return found


_PACKAGES = frozenset({"node_modules", "site-packages", "dist-packages"})
_NOT_LOOKED_INTO = frozenset({".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
"""Unless they lie among installed packages."""
_MOST = 150_000
"""Files that are looked at; where there are more, nothing is kept."""
_PYTHON = "import json, sys; print(json.dumps([sys.version, *sys.path]))"
_LOCAL = ("/usr/local",)
"""Where distributions put what they did not bring themselves."""
_SAYS_ITS_VERSION: Mapping[str, tuple[str, tuple[str, ...]]] = {
    ".go": ("go", ("version",)),
    ".rs": ("rustc", ("--version",)),
    ".js": ("node", ("--version",)),
    ".ts": ("node", ("--version",)),
    ".tsx": ("node", ("--version",)),
    ".mjs": ("node", ("--version",)),
}


def surroundings(what: Subject, paths: Collection[str], searched: str | None, stop: CancelToken | None) -> str | None:
    """A digest of them; None where they are too many to tell, or lie where nobody looks because a workspace says so."""
    digest = hashlib.sha256(__version__.encode())
    python = _python(what) if any(path.endswith(".py") for path in paths) else []
    outside = _outside(what, python[1:], searched)
    if outside is None:
        return None
    files = itertools.chain(stamps(what.workspace, frozenset(paths)), *map(stamps, outside))
    parts = itertools.chain(_tools(what), _versions(what, paths), python, files)
    for number, part in enumerate(parts):
        raise_if_stopped(stop)
        if number > _MOST:
            return None
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def _tools(subject: Subject) -> Iterator[str]:
    """Pawl's own tools, by what their files look like."""
    for name, path in sorted(subject.spare.items()):
        yield f"{name} {stamp(path)}"


def _versions(subject: Subject, paths: Collection[str]) -> Iterator[str]:
    """The versions of the tools on the bench that the project's languages need."""
    endings = {os.path.splitext(path)[1] for path in paths}
    for program, words in dict.fromkeys(_SAYS_ITS_VERSION[one] for one in sorted(endings & set(_SAYS_ITS_VERSION))):
        completed = subject.run((program, *words))
        yield f"{program} {completed.stdout.text if completed is not None else 'missing'}"


def _python(subject: Subject) -> list[str]:
    """The version of the workspace's interpreter, and where it finds modules."""
    completed = subject.run((subject.python, "-I", "-c", _PYTHON))
    try:
        said = read_json(completed.stdout.text) if completed is not None else ["missing"]
    except Unreadable:
        return ["unknown"]
    return said if isinstance(said, list) and all(isinstance(one, str) for one in said) else ["unknown"]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _outside(subject: Subject, places: Iterable[str], search_path: str | None) -> list[str] | None:
    """Those of the places outside of the workspace, all of them folders of modules of the interpreter as it is found
    from here; None where one is not, for the interpreter may be a program of the workspace that says anything.
    """
    found = subject.python if os.path.isabs(subject.python) else shutil.which(subject.python, path=search_path) or ""
    folders = {os.path.dirname(os.path.dirname(path)) for path in (found, os.path.realpath(found)) if found}
    if not os.path.isabs(subject.python) and os.path.dirname(found).endswith("/shims"):
        folders |= {entry.path for folder in folders for entry in _entries(f"{folder}/versions")}
    modules = [f"{os.path.realpath(prefix)}/{lib}/python" for prefix in (*folders, *_LOCAL) for lib in ("lib", "lib64")]
    outside = []
    for place in places:
        if "\0" in place or not os.path.isabs(place):
            return None
        real = os.path.realpath(place)
        if real.startswith(tuple(modules)):
            outside.append(real)
        elif not real.startswith(f"{subject.workspace}/") and os.path.lexists(real):
            return None
    return outside


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
