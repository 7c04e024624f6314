"""The package installers of JavaScript as values: how a project's scripts run and how its packages are installed."""

from __future__ import annotations

import functools
import posixpath
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pawl.checks.project import Folder, package_json, table, text
from pawl.checks.rungs import is_named
from pawl.core.formats import Unreadable, read_json

_HERE = ("file:", "link:", "portal:", "./", "../")
_DEPENDENCIES = (
    "dependencies",
    "devDependencies",
    "optionalDependencies",
    "peerDependencies",
    "resolutions",
    "overrides",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    name: str
    lock: tuple[str, ...]
    run: tuple[str, ...]
    install: tuple[str, ...]
    modules: str
    quiet: tuple[str, ...] = ()

    def locked_by(self, files: Folder) -> str:
        """The lock file that the project has; empty without one."""
        return next((name for name in self.lock if files.exists(name)), "")

    def inputs(self, files: Folder) -> frozenset[str]:
        """The files that decide what is installed: manifests, locks, settings, local packages, what scripts run."""
        every = frozenset(files.walk())
        manifests = [path for path in every if posixpath.basename(path) == "package.json"]
        places = {place for path in manifests for place in _places(files, path, every)}
        settings = tuple(_data()["settings"])
        return frozenset(
            path
            for path in (*every, *(name for name in settings if files.exists(name)))
            if is_named(path, (*self.lock, "package.json", *settings))
            or any(path == place or path.startswith(f"{place}/") for place in places)
        )


def _places(files: Folder, manifest: str, every: Collection[str]) -> Iterator[str]:
    """Files and folders of the workspace that a package.json takes packages from, or that its scripts name."""
    try:
        data = read_json(text(files, manifest))
    except Unreadable:
        return
    folder = posixpath.dirname(manifest)
    scripts = table(data, "scripts")
    ran = [word.strip("'\"") for name in _data()["scripts"] for word in str(scripts.get(name, "")).split()]
    taken = [value for key in _DEPENDENCIES for value in table(data, key).values() if isinstance(value, str)]
    local = [value.removeprefix(mark) for value in taken for mark in _HERE[:3] if value.startswith(mark)]
    for name in (*ran, *local, *(value for value in taken if value.startswith(_HERE[3:]))):
        place = posixpath.normpath(posixpath.join(folder, name))
        if name in ran and place not in every:
            continue
        # What a script runs may run what lies beside it.
        beside = posixpath.dirname(place) if name in ran and posixpath.dirname(place) != folder else place
        if not beside.startswith(("..", "/")) and beside != ".":
            yield beside


@functools.cache
def _data() -> dict[str, Any]:
    return tomllib.loads((resources.files("pawl.checks") / "installers.toml").read_text(encoding="utf-8"))


@functools.cache
def installers() -> tuple[Installer, ...]:
    data = _data()
    return tuple(
        Installer(
            name=entry["name"],
            lock=tuple(entry["lock"]),
            run=tuple(entry["run"]),
            install=tuple(entry["install"]),
            modules=entry["modules"],
            quiet=tuple(entry.get("quiet", ())),
        )
        for entry in data["installer"]
    )


def installer_of(files: Folder) -> Installer:
    """The one whose lock file is there, or the usual one."""
    return next((known for known in installers() if known.locked_by(files)), installers()[-1])


def missing_modules(files: Folder) -> str:
    """What to say where a project's packages are not installed; empty where they are or none are needed."""
    data = package_json(files)
    needs = any(isinstance(data.get(key), dict) and data[key] for key in ("dependencies", "devDependencies"))
    installer = installer_of(files)
    if not needs or files.exists(installer.modules):
        return ""
    how = " ".join(installer.install) if installer.locked_by(files) else f"{installer.name} install"
    return f"{installer.modules} is missing; install it with '{how}'"
