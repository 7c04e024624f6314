"""The clean environment a command starts with. Nothing of the caller's own environment reaches it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pawl.core.errors import UsageError
from pawl.core.execution import Execution

_CLEAN = MappingProxyType(
    {
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "CI": "1",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
)


def command_environment(execution: Execution, *, home: str, temporary: str, path: str) -> Mapping[str, str]:
    # Compilers keep what they made in a cache, for which the home is too small.
    places = {"HOME": home, "TMPDIR": temporary, "XDG_CACHE_HOME": f"{temporary}/cache", "PATH": path}
    return {**_CLEAN, **places, **execution.environment}


def check_words(execution: Execution) -> None:
    """Refuses what no process can be started with."""
    if not execution.argv or not execution.argv[0]:
        raise UsageError("a command needs at least one word", advice="name the program to run")
    for word in execution.argv:
        if "\0" in word:
            raise UsageError(f"a command word holds a NUL byte: {word!r}", advice="remove it")
    for name, value in execution.environment.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise UsageError(f"not an environment variable: {name!r}", advice="use a name without = and NUL")
