"""Python environments: what of the user's active one a command must be able to read, and what Pawl's own brings."""

from __future__ import annotations

import sys
from pathlib import Path

from pawl.settings import files as bounded

TOOLS = ("ruff", "ty")
"""Pawl depends on them, so that every workspace can be linted and type-checked."""


def readable_roots(environment: str | None) -> tuple[str, ...]:
    """The environment itself, and the installation that its interpreter comes from.

    The environment's own note of where that is can lie in the workspace, so it is believed only where a Python
    installation really stands.
    """
    if environment is None:
        return ()
    base = _base(Path(environment))
    return (environment,) if base is None else (environment, str(base))


def brought_along() -> dict[str, str]:
    """Pawl's own tools by name, where they are installed: beside its interpreter, or where pip puts scripts."""
    import sysconfig

    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    folders = [Path(sys.executable).parent, *(Path(sysconfig.get_path("scripts", scheme)) for scheme in schemes)]
    found = {name: folder / name for folder in reversed(folders) for name in TOOLS if (folder / name).is_file()}
    return {name: str(path) for name, path in found.items()}


def own_python() -> tuple[str, tuple[str, ...]]:
    """An interpreter that can run Pawl's code in the sandbox, and what it must be able to read there.

    It is the one below Pawl's environment, so that nothing of that environment has to be shown but Pawl itself.
    """
    package = str(Path(__file__).parents[1])
    return getattr(sys, "_base_executable", sys.executable), (sys.base_prefix, package)


def _base(environment: Path) -> Path | None:
    try:
        lines = bounded.read_bytes(environment / "pyvenv.cfg").decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    pairs = (line.partition("=") for line in lines)
    named = {name.strip(): value.strip() for name, _, value in pairs}
    programs = Path(named.get("home", ""))
    if not programs.is_absolute() or programs.name != "bin" or not (programs / "python3").exists():
        return None
    return programs.parent if any(programs.parent.glob("lib*/python3*/os.py")) else None
