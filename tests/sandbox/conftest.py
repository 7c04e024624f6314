"""Every attack is tried as root and as an ordinary user, and against each sandbox that claims to stop it."""

from __future__ import annotations

import os
import shutil
import sys
import zlib
from collections.abc import Iterator

import pytest
from sandbox.site import PYTHON, Site
from users import NAMES, User, become

from pawl.sandbox.launcher import landlock_version

KINDS = ("namespaces", "landlock")


@pytest.fixture(params=NAMES)
def user(request: pytest.FixtureRequest) -> User:
    return become(request.param)


@pytest.fixture
def me() -> User:
    return become("root" if os.geteuid() == 0 else "ordinary")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of both users with both sandboxes, two pairs hold each of the four; the others are for the slow suite."""
    for item in items:
        played = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if os.geteuid() == 0 and {"user", "any_site"} <= played.keys():
            pair = NAMES.index(played["user"]) + KINDS.index(played["any_site"])
            if (pair + zlib.crc32(item.originalname.encode())) % 2:
                item.add_marker(pytest.mark.slow)
    reason = None
    if sys.platform != "linux":
        reason = "the sandbox is for Linux"
    elif shutil.which("bwrap") is None:
        reason = "bubblewrap is not installed"
    elif not os.path.exists(PYTHON):
        reason = f"no {PYTHON} to run probes with inside"
    for item in items:
        if reason is not None and "tests/sandbox/" in str(item.path):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def site(user: User) -> Iterator[Site]:
    """Namespaces, on an overlay."""
    with user.folder() as folder:
        yield Site(user, folder)


@pytest.fixture(params=KINDS)
def any_site(user: User, request: pytest.FixtureRequest) -> Iterator[Site]:
    """Each sandbox: namespaces on an overlay, Landlock on a copy."""
    yield from _any_site(user, request.param)


def _any_site(user: User, kind: str) -> Iterator[Site]:
    if kind == "landlock" and landlock_version() < 6:
        pytest.skip("Landlock here is older than version 6")
    with user.folder() as folder:
        yield Site(user, folder, kind, "overlay" if kind == "namespaces" else "copy")


@pytest.fixture(params=KINDS)
def any_site_of_mine(me: User, request: pytest.FixtureRequest) -> Iterator[Site]:
    """Each sandbox, for what does not depend on the user."""
    yield from _any_site(me, request.param)


@pytest.fixture
def my_site(me: User) -> Iterator[Site]:
    """For what does not depend on the user."""
    with me.folder() as folder:
        yield Site(me, folder)
