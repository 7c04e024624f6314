"""What every test may use: an environment that is not the developer's own, a state folder, a small workspace."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import environment
import pytest
from hypothesis import settings
from opened import memory, run, shop, site  # noqa: F401 (fixtures of every room)

# No deadline: two busy cores are not a failure. In CI the examples are the same each time.
settings.register_profile("pawl", deadline=None, max_examples=60, derandomize=os.getenv("CI") is not None)
settings.load_profile("pawl")

_HOMES = itertools.count()
GIT_SETTINGS = """\
[user]
    name = Test
    email = test@example.invalid
[init]
    defaultBranch = main
[commit]
    gpgSign = false
"""

FORGOTTEN = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_COUNT",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "NO_COLOR",
    "FORCE_COLOR",
)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("root") is not None and os.geteuid() != 0:
        pytest.skip("needs to be root")


@pytest.fixture(scope="session", autouse=True)
def _plain_signals() -> None:
    """A caller that ignores signals (`nohup`, a shell's background job) does not hand that on to what tests start."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def _plain_umask() -> Iterator[None]:
    """Modes in tests mean what they say, whatever the developer's umask."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def _foreign_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOME and the XDG folders are temporary, so that no test reads or writes the developer's own."""
    # Not by `mktemp`, which looks through all that were made before.
    home = tmp_path_factory.getbasetemp() / "homes" / str(next(_HOMES))
    home.mkdir(mode=0o700, parents=True)
    (home / ".gitconfig").write_text(GIT_SETTINGS)
    monkeypatch.setenv("HOME", str(home))
    for name, folder in {
        "XDG_CONFIG_HOME": ".config",
        "XDG_STATE_HOME": ".local/state",
        "XDG_DATA_HOME": ".local/share",
        "XDG_CACHE_HOME": ".cache",
        "XDG_RUNTIME_DIR": ".runtime",
    }.items():
        monkeypatch.setenv(name, str(home / folder))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in (*FORGOTTEN, *(name for name in os.environ if name.startswith(("PAWL_", "PYTHON")))):  # noqa: TID251
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def project_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's own environment: an interpreter with pytest and nothing else."""
    return environment.make(tmp_path_factory.mktemp("environment") / "venv")


@pytest.fixture
def active_environment(project_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user has the project's environment active."""
    monkeypatch.setenv("VIRTUAL_ENV", str(project_environment))
    monkeypatch.setenv("PATH", f"{project_environment}/bin:/usr/local/bin:/usr/bin:/bin")


@pytest.fixture
def state_directory(tmp_path: Path) -> Path:
    """An empty folder for Pawl's own state, private as the real one is."""
    directory = tmp_path / "state"
    directory.mkdir(mode=0o700)
    return directory


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A small folder of a user: text in two directories, a program, a link and a file that is not text."""
    root = tmp_path / "workspace"
    (root / "src").mkdir(parents=True)
    (root / "README.md").write_text("# Greeter\n\nSays hello.\n")
    (root / "src" / "greeter.py").write_text('def greet(name):\n    return f"Hello, {name}!"\n')
    (root / "src" / "main.py").write_text('from greeter import greet\n\nprint(greet("world"))\n')
    program = root / "run.sh"
    program.write_text("#!/bin/sh\nexec python3 src/main.py\n")
    program.chmod(0o755)
    (root / "latest").symlink_to("README.md")
    (root / "logo.bin").write_bytes(bytes(range(256)))
    return root
