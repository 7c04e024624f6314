"""The environment that a project's commands run in: its interpreters, though nobody has activated them, what they need
to be readable, and the import paths of the user's that lie in the workspace.

Nothing is started to find it. Files of the workspace name at most a version; everything else is where tools put it.
"""

from __future__ import annotations

import base64
import functools
import glob
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path

from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import data_table, written
from pawl.sandbox.visibility import SYSTEM_FOLDERS, is_below
from pawl.settings import files as bounded
from pawl.settings.config import Config

_PLACE = re.compile(r"\{(\w+)\}")
_LONGEST_FILE, _LONGEST_VERSION = 1 << 14, 100
_NUMBER = re.compile(r"\d+")
_IMPORT_PATHS = ("PYTHONPATH", "NODE_PATH")
_PLUGINS = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
_SYSTEM = ("/usr", *SYSTEM_FOLDERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    name: str
    language: str
    folders: tuple[str, ...]
    marked: str = ""
    bare: bool = False
    spare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    environment: tuple[_Kind, ...]
    versions: Mapping[str, tuple[tuple[str, re.Pattern[str]], ...]]
    aliases: Mapping[str, tuple[str, ...]]
    path: Mapping[str, tuple[str, ...]]


@functools.cache
def _table() -> _Table:
    return written(_Table, data_table("pawl.workspace", "environments.toml"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Of one workspace."""

    python: str = ""
    """The folder of the project's Python environment; empty where that of the PATH serves."""
    found: Mapping[str, str] = field(default_factory=dict)
    """Whose environment serves a language, for people."""
    path: str = ""
    """The search path of commands: the user's, with the environments' programs first."""
    roots: tuple[str, ...] = ()
    """Folders to be shown for reading."""
    variables: Mapping[str, str] = field(default_factory=dict)

    def program(self, name: str) -> str:
        """The path of a program of the Python environment; empty where it has none."""
        path = os.path.join(self.python, "bin", name)
        return path if self.python and os.path.exists(path) else ""

    @property
    def interpreter(self) -> str:
        return self.program("python")


def found_environment(config: Config, workspace: str) -> Environment:
    """As it is now: environments come and go."""
    places = _places(config, workspace)
    found: dict[str, tuple[str, str]] = {}
    home = str(config.home)
    for kind in _table().environment:
        if kind.language not in found and (folder := _standing(kind, places, config.search_path)):
            found[kind.language] = folder, kind.name
    folders = [folder for folder, _ in found.values()]
    active = [one for one in (config.environment.get("VIRTUAL_ENV", ""),) if os.path.isabs(one)]
    python = found.get("python", ("", ""))[0]
    programs = [os.path.join(folder, "bin") for folder in folders]
    variables = {"VIRTUAL_ENV": python} if python and os.path.exists(f"{python}/pyvenv.cfg") else {}
    variables |= {_PLUGINS: "1"} if config.environment.get(_PLUGINS) else {}
    installed = _installed(config.search_path, workspace, home)
    return Environment(
        python=python,
        found={language: whose for language, (_, whose) in found.items()},
        path=":".join((*programs, config.search_path)),
        roots=tuple(dict.fromkeys((*_roots((*folders, *active), home), *installed))),
        variables={**variables, **_import_paths(config.environment, workspace)},
    )


def _places(config: Config, workspace: str) -> dict[str, str]:
    variables = config.environment
    home = str(config.home)
    places = {
        # Pawl's own environment is on the PATH where it was activated; it is no project's.
        **{name: value for name, value in variables.items() if os.path.isabs(value) and value != sys.prefix},
        **(
            {_OF_UV: f"{workspace}/{own}"}
            if (own := variables.get(_OF_UV, "")) and not os.path.isabs(own) and ".." not in own.split("/")
            else {}
        ),
        "CONDA_ROOT": os.path.dirname(os.path.dirname(variables.get("CONDA_EXE", ""))),
        "workspace": workspace,
        "folder": os.path.basename(workspace),
        "home": home,
        "data": variables.get("XDG_DATA_HOME") or f"{home}/.local/share",
        "cache": variables.get("XDG_CACHE_HOME") or f"{home}/.cache",
        "sha256": _short(hashlib.sha256(os.fsencode(workspace)).digest()),
        "md5": _short(hashlib.md5(os.fsencode(workspace), usedforsecurity=False).digest()),
        "pipfile": _short(hashlib.sha256(os.fsencode(f"{workspace}/Pipfile")).digest()),
    }
    versions = {language: _version(workspace, language) for language in _table().versions}
    versions["node"] = _node_version(versions["node"], places)
    for language in ("python", "node"):
        program = "python3" if language == "python" else language
        if not versions[language] and not shutil.which(program, path=config.search_path):
            versions[language] = "*"
    return {**places, **versions}


_OF_UV = "UV_PROJECT_ENVIRONMENT"
_MOST_ALIASES = 4


def _is_worth(folder: str, wanted: str, program: str | None) -> bool:
    """Whether an interpreter without an environment goes before that of the PATH: a version that the project asks for
    and the PATH has not, by which no test runner is lost."""
    if program is None or not wanted[:1].isdigit() or os.path.exists(f"{folder}/pyvenv.cfg"):
        return True
    own, real = (os.path.dirname(os.path.dirname(path)) for path in (program, os.path.realpath(program)))
    if (program == f"{own}/shims/python3" and is_below(folder, own)) or os.path.exists(f"{own}/pyvenv.cfg"):
        return False  # A shim chooses by the same file.
    minor = ".".join(wanted.split(".")[:2])
    names = {os.path.basename(os.path.realpath(program))}
    if not any(_MINOR.fullmatch(name) for name in names):
        names = {os.path.basename(path) for path in glob.iglob(f"{glob.escape(real)}/lib/python3.*")}
    return f"python{minor}" not in names and (_has_runner(folder) or not _has_runner(real))


_MINOR = re.compile(r"python\d+\.\d+")


def _finds_runner(search_path: str) -> bool:
    """Whether the Python of the PATH has a test runner; any of those that a shim chooses from."""
    program = shutil.which("python3", path=search_path) or ""
    own, real = (os.path.dirname(os.path.dirname(path)) for path in (program, os.path.realpath(program)))
    chosen = glob.iglob(f"{glob.escape(own)}/versions/*") if program.endswith("/shims/python3") else ()
    alone = program and os.path.exists(f"{own}/pyvenv.cfg")
    return any(map(_has_runner, (own,) if alone else (own, real, *chosen)))


def _has_runner(installation: str) -> bool:
    places = glob.iglob(f"{glob.escape(installation)}/lib*/python3*/*-packages/pytest")
    return next(places, None) is not None


def _node_version(version: str, places: Mapping[str, str]) -> str:
    """The version that a name of one stands for; `*` for the newest that is installed."""
    table = _table().aliases
    for _ in range(_MOST_ALIASES):
        if version[:1].isdigit() or not version:
            return version
        named = (_PLACE.sub(lambda match: places.get(match[1], ""), folder) for folder in table["folders"])
        texts = (_text(os.path.join(folder, version)).strip().lstrip("v") for folder in named if ".." not in version)
        found = next(filter(None, texts), "")
        if not found or len(found) > _LONGEST_VERSION:
            return "*" if version in table["newest"] else ""
        version = found
    return ""


def _short(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).decode()[:8]


def _version(workspace: str, language: str) -> str:
    for name, pattern in _table().versions[language]:
        found = pattern.search(_text(os.path.join(workspace, name), follow=False)[:_LONGEST_FILE])
        if found and ".." not in found[1] and len(found[1]) <= _LONGEST_VERSION:
            return found[1]
    return ""


def _text(path: str, *, follow: bool = True) -> str:
    """Of a regular file; empty for anything else."""
    try:
        return bounded.read_bytes(path, follow=follow).decode("utf-8", "replace")
    except OSError:
        return ""


def _standing(kind: _Kind, places: Mapping[str, str], search_path: str) -> str:
    """The first folder that holds the interpreter; empty where there is none."""
    if kind.spare and _finds_runner(search_path):
        return ""
    for pattern in kind.folders:
        names = _PLACE.findall(pattern)
        if not all(places.get(name) for name in names):
            continue
        exact = _PLACE.sub(lambda match: "*" if places[match[1]] == "*" else glob.escape(places[match[1]]), pattern)
        fitting = sorted(glob.iglob(exact), key=_by_version, reverse=True) if glob.has_magic(exact) else [exact]
        for folder in fitting:
            there = os.access(f"{folder}/bin/{kind.language}", os.X_OK)
            if not there or not _is_marked(folder, kind.marked, places["workspace"]):
                continue
            if not kind.bare or _is_worth(folder, places["python"], shutil.which("python3", path=search_path)):
                # A link outside of the workspace, as pyenv-virtualenv makes, is not shown to commands.
                return folder if is_below(folder, places["workspace"]) else os.path.realpath(folder)
    return ""


def _by_version(folder: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(os.path.basename(folder.removesuffix("/installation")))]


def _is_marked(folder: str, name: str, workspace: str) -> bool:
    return not name or os.path.realpath(_text(os.path.join(folder, name)).strip() or "/") == workspace


def _roots(environments: Iterable[str], home: str) -> Iterator[str]:
    """The environments, and the installations that their interpreters come from."""
    for folder in environments:
        base = _base(Path(folder))
        if base is None:
            yield folder
            continue
        # A link of the workspace may lead to a folder in which an environment and much else lies.
        real = os.path.realpath(folder)
        yield from (real,) if real == folder else (f"{real}/bin", *_parts(real))
        yield from _installation(f"{base}/bin", home)


def _base(environment: Path) -> str | None:
    """Where the interpreter of a virtual environment is installed.

    The environment's own note of it can lie in the workspace, so it is believed only where Python really stands.
    """
    pairs = (line.partition("=") for line in _text(str(environment / "pyvenv.cfg")).splitlines())
    programs = Path({name.strip(): value.strip() for name, _, value in pairs}.get("home", ""))
    if not programs.is_absolute() or programs.name != "bin" or not (programs / "python3").exists():
        return None
    return str(programs.parent) if any(programs.parent.glob("lib*/python3*/os.py")) else None


def _installed(search_path: str, workspace: str, home: str) -> Iterator[str]:
    """The installations that the PATH leads to, outside of the system's own folders and of the workspace."""
    seen: set[str] = set()
    for entry in search_path.split(":"):
        if not os.path.isabs(entry):
            continue
        if is_below(os.path.realpath(entry), workspace):
            # What stands there may lead to any folder; an environment is believed as any other is.
            yield from _roots((os.path.dirname(entry),), home)
            continue
        for name in _table().path["programs"]:
            path = os.path.join(entry, name)
            if not os.path.lexists(path):
                continue
            for folder in {os.path.normpath(entry), os.path.dirname(os.path.realpath(path))} - seen:
                seen.add(folder)
                if not any(is_below(folder, one) for one in (workspace, *_SYSTEM)):
                    yield from _installation(folder, home)


def _installation(programs: str, home: str) -> Iterator[str]:
    """The folder of programs, and what was installed with them: whole, or the parts of it where keys lie beside."""
    yield programs
    folder = os.path.dirname(programs)
    parts = list(_parts(folder))
    if os.path.basename(programs) not in ("bin", "sbin", "shims") or not parts or is_below(home, folder):
        return
    has_keys = any(os.path.lexists(os.path.join(folder, name)) for name in _table().path["credentials"])
    yield from parts if has_keys else (folder,)
    base = _base(Path(folder))
    if base not in (None, folder):
        yield from _installation(f"{base}/bin", home)


def _parts(folder: str) -> Iterator[str]:
    paths = (os.path.join(folder, name) for name in _table().path["parts"])
    return (path for path in paths if os.path.lexists(path))


def _import_paths(variables: Mapping[str, str], workspace: str) -> dict[str, str]:
    """Those of the user's that lie in the workspace: others would lead where a command cannot look."""
    kept = {}
    for name in _IMPORT_PATHS:
        entries = [os.path.normpath(one) for one in variables.get(name, "").split(":") if os.path.isabs(one)]
        inside = [one for one in entries if is_below(one, workspace)]
        if inside:
            kept[name] = ":".join(inside)
    return kept
