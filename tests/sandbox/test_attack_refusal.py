"""A machine that cannot confine a command: it is refused with a remedy or confined by less, never run bare."""

from __future__ import annotations

import os
import shutil

import pytest
from sandbox.site import Site
from users import ORDINARY

pytestmark = [pytest.mark.hostile, pytest.mark.spec("F4")]

DENY = """\
import ctypes, os, struct
from pawl.sandbox import launcher
def deny(*rules):
    # Each rule: a system call, and a bit of its first argument that must be set, or None.
    steps = [(0x20, 0, 0, 0)]
    for number, bits, answer in rules:
        if bits is None:
            steps += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | answer)]
        else:
            steps += [(0x15, 0, 4, number), (0x20, 0, 0, 16), (0x45, 0, 1, bits), (0x06, 0, 0, 0x50000 | answer)]
            steps += [(0x20, 0, 0, 0)]
    steps += [(0x06, 0, 0, 0x7FFF0000)]
    launcher._prctl(38, 1)
    launcher._load_filter(b"".join(struct.pack("=HBBI", *step) for step in steps))
X86 = os.uname().machine == "x86_64"
UNSHARE, CLONE, PRCTL = (272, 56, 157) if X86 else (97, 220, 167)
"""
NO_NAMESPACES = DENY + "deny((UNSHARE, 0x10000000, 1), (CLONE, 0x10000000, 1), (435, None, 38))\n"
NO_LANDLOCK = "deny((444, None, 38))\n"
FILTER_REFUSED = """\
import pawl.sandbox.namespaces as seccomp
import pawl.sandbox.namespaces as namespaces
import pawl.sandbox.choice as landlock
# Code 0xffff is no instruction: the kernel refuses to load this.
broken = lambda machine, sockets: bytes([255] * 8)
namespaces.filter_program = landlock.filter_program = broken
"""


def refused(answer: dict, error: str, *remedies: str) -> None:
    assert answer.get("error") == error, answer
    for remedy in remedies:
        assert remedy in answer["advice"], answer


def has_run(site: Site) -> bool:
    return (site.upper / "ran").exists() or (site.workspace / "ran").exists()


@pytest.mark.attack("A36")
@pytest.mark.parametrize("view", ["overlay", "copy"])
def test_without_bubblewrap_nothing_runs_and_the_remedy_is_named(site, view):
    site.view_kind, site.programs = view, {"bubblewrap": None}
    refused(site.shell("touch ran"), "SandboxUnavailable", "apt install bubblewrap")
    site.programs = {"bubblewrap": "/nowhere/bwrap"}
    assert site.shell("touch ran")["error"] == "SandboxUnavailable"
    assert not has_run(site)


@pytest.mark.attack("A36")
def test_a_bubblewrap_that_fails_is_reported_with_what_it_said(site):
    fake = site.folder / "fake"
    fake.write_text("#!/bin/sh\necho 'bwrap: Unknown option --disable-userns' >&2; exit 1\n")
    fake.chmod(0o755)
    site.programs = {"bubblewrap": str(fake)}
    answer = site.shell("touch ran")
    refused(answer, "SandboxUnavailable", "0.8 or newer")
    assert "Unknown option --disable-userns" in answer["message"]
    assert not has_run(site)


@pytest.mark.attack("A36")
def test_without_user_namespaces_an_overlay_is_refused_and_so_is_a_copy(site):
    site.prelude = NO_NAMESPACES
    refused(site.shell("touch ran"), "OverlayUnavailable")
    site.view_kind = "copy"
    refused(site.shell("touch ran"), "SandboxUnavailable", "apparmor", "Docker", "sysctl")
    assert not has_run(site)


@pytest.mark.attack("A36")
@pytest.mark.parametrize("kind", ["namespaces", "landlock"])
def test_a_filter_that_does_not_load_stops_the_command(site, kind):
    site.kind, site.view_kind, site.prelude = kind, "copy", FILTER_REFUSED
    refused(site.shell("touch ran"), "SandboxUnavailable", "SECCOMP")
    assert not has_run(site)


@pytest.mark.attack("A36")
def test_pawl_falls_back_to_landlock_and_says_so(site):
    site.kind, site.prelude = "chosen", NO_NAMESPACES
    refused(site.shell("touch ran"), "OverlayUnavailable")
    site.view_kind = "copy"
    answer = site.shell("touch ran; cat /etc/shadow")
    assert (answer["confinement"], answer["ending"], answer["code"]) == ("landlock", "exited", 1)
    assert "weaker" in answer["notices"][0]
    assert "apparmor" in answer["notices"][0]
    assert (site.upper / "ran").exists()


@pytest.mark.attack("A36")
def test_a_user_who_demands_namespaces_gets_no_less(site):
    site.kind, site.view_kind, site.prelude, site.minimum = "chosen", "copy", NO_NAMESPACES, "namespaces"
    refused(site.shell("touch ran"), "SandboxUnavailable", "apparmor")
    assert not has_run(site)


@pytest.mark.attack("A36")
def test_where_neither_works_both_remedies_are_named(site):
    site.kind, site.view_kind, site.prelude = "chosen", "copy", NO_NAMESPACES + NO_LANDLOCK
    answer = site.shell("touch ran")
    refused(answer, "SandboxUnavailable", "apparmor", "Landlock")
    assert "no way to confine a command here" in answer["message"]
    assert not has_run(site)


@pytest.mark.attack("A36")
def test_the_fault_of_one_command_does_not_weaken_the_next(site):
    """A workspace that cannot be shown is an error of its own; namespaces work, so Landlock is not tried."""
    site.kind, site.view_kind = "chosen", "copy"
    site.prelude = """\
import pawl.sandbox.namespaces as namespaces
namespaces.has_git_folder = lambda layers: layers.stand("broken") is not None
"""
    (site.workspace / "broken").touch()
    site.user.own(site.folder)
    answer = site.shell("touch ran")
    refused(answer, "SandboxUnavailable")
    assert not has_run(site)


@pytest.mark.attack("A36")
def test_an_overlay_that_cannot_be_mounted_is_told_apart_from_a_command_that_fails(site):
    (site.folder / "work").rmdir()
    refused(site.shell("touch ran"), "OverlayUnavailable")
    (site.folder / "work").mkdir()
    site.user.own(site.folder)
    site.programs = {"mount": "/bin/false"}
    answer = site.shell("touch ran")
    refused(answer, "OverlayUnavailable")
    assert not has_run(site)
    site.programs = {}
    assert site.shell("exit 97")["code"] == 97


@pytest.mark.parametrize("name", ["upper", "work", "copy"])
def test_a_bench_that_is_gone_is_told(site, name):
    site.view_kind = "copy" if name == "copy" else "overlay"
    order = site.order("touch", "ran")
    shutil.rmtree(site.folder / name)
    (answer,) = site.run_all(order)
    assert answer["error"] == ("SandboxUnavailable" if name == "copy" else "OverlayUnavailable")


def test_a_filter_that_pawl_itself_runs_under_is_no_hindrance(site):
    """As in a container: every process has a filter from the start."""
    site.prelude = DENY + "deny((444, None, 38))\n"
    answer = site.shell("touch ran")
    assert (answer["confinement"], answer["code"]) == ("namespaces", 0)


@pytest.mark.attack("A36")
def test_an_overlay_of_another_users_folders_is_refused(site):
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(site.upper, ORDINARY + 1, ORDINARY + 1)
    answer = site.shell("true")
    refused(answer, "OverlayUnavailable")
    assert "another user" in answer["message"]
