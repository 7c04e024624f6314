"""How the packages of a Python project are installed: by the lock file of its tool, its requirements, or itself."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from pawl.checks.catalog import detect
from pawl.checks.project_facts import Folder, dependencies, installer_data, is_named, python_needs, table, text, toml
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import written

_Commands = tuple[tuple[str, ...], ...]
_IGNORED = ("/bin/sh", "-c", "printf '*\\n' > .venv/.gitignore")
"""No environment is a change of the project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PythonInstaller:
    name: str
    lock: tuple[str, ...]
    commands: tuple[_Commands, ...]
    builds: bool = True
    """Whether the project itself is installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _EnvironmentTable:
    modules: str
    extras: tuple[str, ...]
    inputs: tuple[str, ...]
    plain_backends: tuple[str, ...]
    signs: tuple[re.Pattern[str], ...]
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonInstallation:
    lock: str
    """The file that says what is to be installed."""
    ways: tuple[_Commands, ...]
    needs: tuple[str, ...]
    """The distributions that must be there."""
    inputs: frozenset[str]
    runs_code: bool
    """Whether code of the workspace runs in it."""
    variables: Mapping[str, str] = field(default_factory=dict)


def environment_folder() -> str:
    """The folder of a project's own environment."""
    return _environment().modules


def source_variables() -> tuple[str, ...]:
    """Names of variables that say where packages come from."""
    return tuple(installer_data()["variables"])


def _environment() -> _EnvironmentTable:
    return written(_EnvironmentTable, installer_data()["environment"])


def python_installation(files: Folder) -> PythonInstallation | None:
    """How the project's packages are installed; None for a project that names none and needs no runner."""
    framework = detect(files).framework
    if framework is None or framework.language != "python":
        return None
    runner = [framework.name] if framework.name == "pytest" else []
    needs = python_needs(files)
    for entry in installer_data()["python"] if runner or needs else ():
        installer = written(_PythonInstaller, entry)
        present = [name for name in installer.lock if files.exists(name)]
        if present or not installer.lock:
            words = {
                "{files}": [word for name in present for word in ("-r", name)],
                "{project}": list(_project(files)),
                "{runner}": [one for one in runner if one not in dependencies(files)],
            }
            inputs = _inputs(files)
            ways = (tuple(_filled(line, words) for line in way) for way in installer.commands)
            return PythonInstallation(
                lock=next(iter(present), installer.name),
                ways=tuple((*way, _IGNORED) for way in ways),
                needs=tuple(sorted({*needs, *runner} - {"python"})),
                inputs=inputs,
                runs_code=_runs_code(files, inputs, builds=installer.builds),
                variables=_environment().variables,
            )
    return None


def offer(files: Folder) -> str:
    """Says how what a Python project lacks is installed; empty where Pawl does not know."""
    return "; 'pawl verify --install' installs it on the bench" if python_installation(files) is not None else ""


def _filled(line: tuple[str, ...], words: Mapping[str, list[str]]) -> tuple[str, ...]:
    return tuple(word for one in line for word in words.get(one, [one]))


def _project(files: Folder) -> Iterator[str]:
    """The project itself where it can be built, with the extras and groups of its tests."""
    data = toml(files, "pyproject.toml")
    wanted = _environment().extras
    extras = [name for name in wanted if name in table(table(data, "project"), "optional-dependencies")]
    if files.exists("setup.py") or "project" in data or table(data, "tool").get("poetry"):
        yield from ("-e", f".[{','.join(extras)}]" if extras else ".")
    groups = table(data, "dependency-groups")
    for name in wanted:
        listed = groups.get(name)
        yield from (one for one in listed if isinstance(one, str)) if isinstance(listed, list) else ()
    environments = table(table(table(data, "tool"), "hatch"), "envs")
    for name in ("default", "hatch-test", *wanted):
        for key in ("dependencies", "extra-dependencies"):
            listed = table(environments, name).get(key)
            yield from (one for one in listed if isinstance(one, str)) if isinstance(listed, list) else ()


def _runs_code(files: Folder, inputs: Iterable[str], *, builds: bool) -> bool:
    known = _environment()
    backend = str(table(toml(files, "pyproject.toml"), "build-system").get("build-backend", "setuptools"))
    foreign = files.exists("setup.py") or re.split(r"[.:]", backend)[0] not in known.plain_backends
    texts = [text(files, path) for path in inputs if not path.endswith((".py", ".lock"))]
    return (builds and foreign) or any(sign.search(one) for sign in known.signs for one in texts)


def _inputs(files: Folder) -> frozenset[str]:
    """The files by which it is decided what is installed, and those that a build can run."""
    patterns = _environment().inputs
    backends = [f"{place}/" for place in table(toml(files, "pyproject.toml"), "build-system").get("backend-path", [])]
    return frozenset(
        path
        for path in files.walk()
        if path.startswith((f"{environment_folder()}/", *backends))
        or (is_named(path, patterns) and ("/" not in path or posixpath.dirname(path) == "requirements"))
    )
