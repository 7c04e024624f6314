"""Keys in the keyring of the system, through its own program; the `.env` beside the settings holds a mark for each."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from pawl.core.redact import register
from pawl.settings.config import IN_KEYRING, host_program, host_variables

SECONDS = 20.0
"""The user may have to unlock it."""
_STORES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "secret-tool": (("store", "--label=Pawl: {name}", "service", "pawl", "name", "{name}"), "{value}"),
    "security": (("-i",), "add-generic-password -U -s pawl -a {name} -w '{value}'\n"),
}
"""The words of each program that store a key, and what it reads: no key stands in a list of processes."""
_LOOKUPS: Mapping[str, tuple[str, ...]] = {
    "secret-tool": ("lookup", "service", "pawl", "name", "{name}"),
    "security": ("find-generic-password", "-s", "pawl", "-a", "{name}", "-w"),
}


def stored(name: str, value: str, environment: Mapping[str, str]) -> bool:
    """Whether the keyring holds the key now: it was stored and read again."""
    program = _program(environment)
    if not program:
        return False
    words, given = _STORES[program]
    made = _run(program, words, name, environment, given.format(name=name, value=value))
    return made is not None and looked_up(name, environment) == value


def looked_up(name: str, environment: Mapping[str, str]) -> str:
    """The key; empty where the keyring does not give it."""
    program = _program(environment)
    found = _run(program, _LOOKUPS[program], name, environment) if program else None
    value = (found or "").rstrip("\n")
    if value:
        register(value)
    return value


def with_keys(variables: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables, those that are only marked with the key from the keyring; what the environment has needs none."""
    return {
        name: looked_up(name, environment) if value == IN_KEYRING and name not in environment else value
        for name, value in variables.items()
    }


def _program(environment: Mapping[str, str]) -> str:
    return next((name for name in _LOOKUPS if host_program(name, environment)), "")


def _run(
    program: str, words: tuple[str, ...], name: str, environment: Mapping[str, str], given: str = ""
) -> str | None:
    """Its output; None where it fails or does not end."""
    argv = [host_program(program, environment), *(word.format(name=name) for word in words)]
    try:
        env = host_variables(environment)
        done = subprocess.run(
            argv, input=given, capture_output=True, text=True, env=env, timeout=SECONDS, check=False, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
