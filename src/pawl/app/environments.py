"""The Python environment that the user has active: what of it a command must be able to read."""

from __future__ import annotations

from pathlib import Path


def readable_roots(environment: str | None) -> tuple[str, ...]:
    """The environment itself, and the installation that its interpreter comes from.

    The environment's own note of where that is can lie in the workspace, so it is believed only where a Python
    installation really stands.
    """
    if environment is None:
        return ()
    base = _base(Path(environment))
    return (environment,) if base is None else (environment, str(base))


def _base(environment: Path) -> Path | None:
    try:
        lines = (environment / "pyvenv.cfg").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    pairs = (line.partition("=") for line in lines)
    named = {name.strip(): value.strip() for name, _, value in pairs}
    programs = Path(named.get("home", ""))
    if not programs.is_absolute() or programs.name != "bin" or not (programs / "python3").exists():
        return None
    return programs.parent if any(programs.parent.glob("lib*/python3*/os.py")) else None
