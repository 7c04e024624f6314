"""The package installers of JavaScript as values: how a project's scripts run and how its packages are installed."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources

from pawl.verify.project import Folder, package_json


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


@functools.cache
def installers() -> tuple[Installer, ...]:
    data = tomllib.loads((resources.files("pawl.verify") / "installers.toml").read_text(encoding="utf-8"))
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
