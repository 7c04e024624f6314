"""Packages that the workspace lacks: brought onto a bench from an earlier installation, or installed there as the
project's files say, where the user allows a network.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path

from pawl.checks.cache import contents_of, stamp, stamps
from pawl.checks.output import cleaned, printed
from pawl.checks.project_facts import Folder, Within, installer_of, missing_modules, nested_projects, runs_code
from pawl.checks.python_packages import PythonInstallation, environment_folder, python_installation, source_variables
from pawl.checks.settings import verify_settings
from pawl.checks.steps import stopped
from pawl.core.change import is_directory
from pawl.core.errors import CommandNotFound, PawlError
from pawl.core.execution import Execution, Network
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted
from pawl.workspace.bench import Bench
from pawl.workspace.bench_files import BenchFiles
from pawl.workspace.benches import open_bench
from pawl.workspace.environments import found_environment
from pawl.workspace.project import Project

SECONDS = 300.0
FORM = 4
"""Changes when installations are made or kept otherwise than before."""
MOST_KEPT = 8
"""Installations; of more the one that was not used for the longest time goes."""
HOW = "--install does it on the bench, with a network"
_PLACES = "places.json"
_SHOWN_LINES = 3
_SPEAKER = re.compile(r"^(?:npm|pnpm|yarn)? ?(?:error|ERR!|ERR_\w+)")
_NOISE = re.compile(r"^(?:npm warn|npm notice|code |errno |syscall |A complete log|yarn install v|\[\d/\d\]|info )")
Say = Callable[[str], None]


def _silent(_: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagePolicy:
    """How a bench gets the packages that the workspace lacks."""

    install: bool = False
    """The user allows it for this command; else the setting decides."""
    only_ignored: bool = False
    """Not where git would take them for a change of the project."""
    say: Say = _silent


@dataclass(frozen=True, slots=True, kw_only=True)
class Provided:
    """The result for one project that lacks its packages."""

    note: str
    key: str = ""
    """Names the installation; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lacking:
    folder: str
    lock: str
    """The file that says what is to be installed."""
    ways: tuple[tuple[tuple[str, ...], ...], ...]
    """Each a list of commands; the first whose programs are there is taken."""
    modules: str
    """The folder that is made."""
    inputs: frozenset[str]
    """The files that decide about it."""
    runs_code: bool
    """Whether code of the workspace runs in it, so that every file may decide."""
    interpreter: tuple[str, ...] = ("node", "--version")
    variables: Mapping[str, str] = field(default_factory=dict)
    quiet: tuple[str, ...] = ("--quiet",)
    """Words that are not shown."""

    @property
    def where(self) -> str:
        return f" in {self.folder}" if self.folder else ""

    def contents(self, files: BenchFiles) -> dict[str, str]:
        """The files that decide about the installation on a bench, with their contents."""
        own = (posixpath.join(self.folder, path) for path in self.inputs)
        return contents_of(files, {*own, *(files.walk() if self.runs_code else ())})


def provide(shop: Project, bench: Bench, wanted: PackagePolicy | None = None) -> tuple[Provided, ...]:
    """Packages for every project of the bench whose files say what it needs, and that lacks it."""
    wishes = wanted or PackagePolicy()
    found = []
    allowed = wishes.install or verify_settings(shop.config).install
    for one in (*_lacking(bench.files), *_without_environment(shop, bench, allowed=allowed)):
        is_python = one.modules == environment_folder()
        if wishes.only_ignored and not is_python and not bench.files.ignores(posixpath.join(one.folder, one.modules)):
            continue
        with _ground(shop, bench, one, apart=is_python and wishes.only_ignored) as ground:
            kept = _Kept(shop.config.state / "packages", _key(shop, one, ground))
            if kept.bring(bench):
                found.append(Provided(note=f"the packages{one.where} are those of {one.lock}", key=kept.key))
            elif allowed:
                found.append(_installed(shop, one, ground, kept, wishes.say))
                if ground is not bench:
                    kept.bring(bench)
            elif not is_python:
                found.append(Provided(note=f"the packages of {one.lock}{one.where} are not installed; {HOW}"))
    return tuple(found)


@contextmanager
def _ground(shop: Project, bench: Bench, lacking: _Lacking, *, apart: bool) -> Iterator[Bench]:
    """The bench on which an installation is made: one with the workspace's own code, on which of a change stand only
    the files that say what is installed. `apart`: not the bench itself, for a build leaves more behind than packages.
    """
    changes = bench.capture().changes
    inputs = {posixpath.join(lacking.folder, path) for path in lacking.inputs}
    other = [one.path for one in changes if one.after and not is_directory(one.after) and one.path not in inputs]
    if not other and not apart:
        yield bench
        return
    with open_bench(shop) as own:
        own.apply(changes.without(other), shop.store.blobs)
        yield own


def _lacking(files: Folder) -> Iterator[_Lacking]:
    for folder in ("", *nested_projects(files)):
        inner = Within(files, folder) if folder else files
        installer = installer_of(inner)
        lock = installer.locked_by(inner)
        if lock and missing_modules(inner):
            words = (*installer.install, *installer.quiet)
            yield _Lacking(
                folder=folder,
                lock=lock,
                ways=((words,),),
                modules=installer.modules,
                inputs=installer.inputs(inner),
                runs_code=runs_code(files),
                quiet=installer.quiet,
            )


def _without_environment(shop: Project, bench: Bench, *, allowed: bool) -> Iterator[_Lacking]:
    """A Python project whose packages are not there; whether they are is looked at only where they may be installed."""
    files = bench.files
    folder = environment_folder()
    kept = shop.config.state / "packages"
    if files.exists(f"{folder}/bin/python") or not (allowed or kept.exists()):
        return
    found = python_installation(files)
    if found is None or (allowed and not _lacks(shop, bench, found)):
        return
    yield _Lacking(
        folder="",
        lock=found.lock,
        ways=found.ways,
        modules=folder,
        inputs=found.inputs,
        runs_code=found.runs_code,
        interpreter=("python3", "-c", "import sys; print(sys.version, sys.prefix)"),
        variables=found.variables,
    )


def _lacks(shop: Project, bench: Bench, found: PythonInstallation) -> bool:
    """Whether the project's interpreter misses one of the packages that the project names."""
    python = found_environment(shop.config, shop.workspace).interpreter or "python3"
    with suppress(CommandNotFound):
        return not bench.run(Execution(argv=(python, "-I", "-c", _ALL_THERE, *found.needs))).ok
    return True


_ALL_THERE = """import sys
from importlib.metadata import distribution
for name in sys.argv[1:]:
    distribution(name)
"""


def _key(shop: Project, lacking: _Lacking, bench: Bench) -> str:
    """A hash of what decides about an installation. Scripts run in it, so that it is never another workspace's."""
    programs = {way[0][0] for way in lacking.ways}
    found = [shutil.which(one, path=shop.config.search_path) or "" for one in sorted(programs)]
    version = ""
    with suppress(CommandNotFound):
        version = bench.run(Execution(argv=lacking.interpreter)).stdout.text
    parts = [
        FORM,
        [shop.workspace, lacking.folder, shop.config.search_path],
        lacking.ways,
        [version, *(stamp(os.path.realpath(program)) for program in found)],
        sorted(_sources(shop).items()),
        sorted(lacking.contents(bench.files).items()),
    ]
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _sources(shop: Project) -> dict[str, str]:
    """The user's variables that say where packages come from, without those that hold a password."""
    given = {name: shop.config.environment.get(name, "") for name in source_variables()}
    return {name: value for name, value in given.items() if value and "@" not in value and redacted(value) == value}


def _installed(shop: Project, lacking: _Lacking, bench: Bench, kept: _Kept, say: Say) -> Provided:
    variables = {**_sources(shop), **lacking.variables}
    limits = shop.config.settings.limits(SECONDS)
    say(f"installing what {lacking.lock} says{lacking.where}")
    for way in lacking.ways:
        for words in way:
            execution = Execution(
                argv=words, directory=lacking.folder, network=Network.ON, environment=variables, limits=limits
            )
            try:
                completed = bench.run(execution)
            except CommandNotFound:
                break
            if not completed.ok:
                said = stopped(completed) or _complaint(printed(completed)) or f"exit code {completed.code}"
                shown = " ".join(word for word in words if word not in lacking.quiet)
                return Provided(note=f"{shown} failed{lacking.where}: {said}")
        else:
            kept.keep(bench, lacking.folder, lacking.modules)
            return Provided(note=f"the packages of {lacking.lock} were installed{lacking.where}", key=kept.key)
    return Provided(note=f"{lacking.ways[0][0][0]} is not installed, which {lacking.lock} asks for")


def _complaint(output: str) -> str:
    """The first lines of an installer's output that say what is wrong."""
    lines = [_SPEAKER.sub("", line).strip() for line in cleaned(output).text.splitlines()]
    wrong = [line for line in lines if line and not _NOISE.match(line)]
    return " ".join(wrong[:_SHOWN_LINES])


@dataclass(frozen=True, slots=True)
class _Kept:
    """One installation beside the store, under the hash of what decided about it."""

    place: Path
    key: str

    @property
    def _folder(self) -> Path:
        return self.place / self.key

    def bring(self, bench: Bench) -> bool:
        """Whether there is one, as it was when it was kept, and it stands on the bench now."""
        try:
            places: dict[str, str] = json.loads((self._folder / _PLACES).read_text(encoding="utf-8"))
            folders = {path: self._folder / str(number) for number, path in enumerate(places)}
            if {path: _digest(folder) for path, folder in folders.items()} != places:
                raise ValueError("it was changed")
        except (OSError, ValueError):
            shutil.rmtree(self._folder, ignore_errors=True)
            return False
        for path, folder in folders.items():
            bench.bring(folder, path)
        os.utime(self._folder)
        return True

    def keep(self, bench: Bench, folder: str, modules: str) -> None:
        """Keeps what was installed. Where that fails, the next bench installs it anew."""
        self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = self.place / f".{secrets.token_hex(8)}"
        try:
            made.mkdir(mode=0o700)
            places = [path for path in bench.made_folders(modules) if path.startswith(f"{folder}/" if folder else "")]
            digests = {}
            for number, path in enumerate(places):
                bench.hand_out(path, made / str(number))
                digests[path] = _digest(made / str(number))
            (made / _PLACES).write_text(json.dumps(digests), encoding="utf-8")
            made.rename(self._folder)
        except (OSError, PawlError):
            shutil.rmtree(made, ignore_errors=True)
        self._sweep()

    def _sweep(self) -> None:
        with suppress(OSError):
            every = sorted(self.place.iterdir(), key=lambda one: one.stat().st_mtime, reverse=True)
            for old in every[MOST_KEPT:]:
                shutil.rmtree(old, ignore_errors=True)


def _digest(folder: Path) -> str:
    """Changes with every edit of anything in it."""
    return hashlib.sha256(
        "\0".join(stamps(str(folder), skipped=frozenset())).encode("utf-8", "surrogatepass")
    ).hexdigest()
